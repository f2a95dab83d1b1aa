//! Commands on a store: they describe it, check it, and take data out of it.

use nearprint_fault::{Fault, Result};
use nearprint_pipeline::Resources;
use nearprint_storage::{Progress, Storage};
use nearprint_store::maintain::{
    CompactRequest, CompactSummary, GcRequest, GcSummary, IndexRequest, IndexSummary, StoreReport,
};
use nearprint_store::{Store, StoreInfo, Writers, maintain};
use schemars::JsonSchema;
use serde::Serialize;

use crate::changes::{Leave, commit_leaving};
use crate::published::{commit_and_stale, open_store};
use crate::request::check_date;
use crate::tables::{output_roots, roll_forward};

/// Describes the store at a place by its newest commit.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if there is no store.
pub async fn store_info(storage: &Storage, url: &str) -> Result<StoreInfo> {
    open_store(storage, url).await.map(|store| store.info())
}

/// Returns the date of the newest night of a store, but for nights that were published with a [date far
/// ahead](nearprint_store::Night::future).
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if there is no store, or if it has no such night.
pub async fn latest_night(storage: &Storage, url: &str) -> Result<String> {
    let store = open_store(storage, url).await?;
    let newest = store.nights().iter().rev().find(|night| !night.future);
    newest
        .map(|night| night.dt.clone())
        .ok_or_else(|| Fault::input_missing("night", store.folder().url(), "run one first"))
}

/// Brings the tables of all outputs of a store to its state, which an execution that committed and died left undone. Outputs that
/// are not there are passed over, with a warning: nothing is about to be written for them.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if there is no store; an output cannot be read or
/// written.
pub async fn complete_tables(storage: &Storage, url: &str) -> Result<()> {
    let store = open_store(storage, url).await?;
    for output in output_roots(storage, &store, store.nights())? {
        match store.refuse_unmounted_output(storage, &output).await {
            Ok(()) => drop(roll_forward(storage, store.folder(), &output, None).await?),
            Err(error) => tracing::warn!(%error, "its tables are not completed"),
        }
    }
    Ok(())
}

/// Checks every file of a store.
///
/// # Errors
/// The store is missing or cannot be read. Damage is in the report.
pub async fn store_check(storage: &Storage, url: &str, progress: &Progress) -> Result<StoreReport> {
    maintain::check(&open_store(storage, url).await?, progress).await
}

/// Deletes the files that no commit of a store names.
///
/// # Errors
/// The store cannot be read, or a file cannot be deleted. Nothing is deleted if there is any doubt about the files that
/// are needed.
pub async fn store_gc(storage: &Storage, request: &GcRequest) -> Result<GcSummary> {
    maintain::gc(storage, request).await
}

/// Merges the fingerprints of a store's runs into one segment, which later joins read instead of the runs.
///
/// # Errors
/// The store cannot be read or written, or a run is damaged. Nothing that others see has changed then.
pub async fn store_compact(
    storage: &Storage,
    request: &CompactRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<CompactSummary> {
    let store = open_store(storage, &request.store).await?;
    maintain::compact(&store, request, resources.n_threads(), &resources.temp_parent(), progress).await
}

/// Writes sorted copies of the fingerprints of a store's runs, by which single queries find near ones at once.
///
/// # Errors
/// The store cannot be read or written, or a run is damaged. Nothing that others see has changed then.
pub async fn store_index(
    storage: &Storage,
    request: &IndexRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<IndexSummary> {
    let store = open_store(storage, &request.store).await?;
    maintain::index(&store, request, resources.n_threads(), &resources.temp_parent(), progress).await
}

/// Takes a night out of a store. Its results stay until `store gc`, but nothing names them any more.
///
/// ```
/// use nearprint_night::{DropNightRequest, store_drop_night, store_info};
/// # use nearprint_night::{Breakers, RunRequest, run};
/// # use nearprint_pipeline::Resources;
/// # use nearprint_storage::Progress;
/// use nearprint_storage::Storage;
/// use nearprint_store::Writers;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let progress = Progress::default();
/// let storage = Storage::default();
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents").to_owned();
/// # let [store, output] = ["store", "results"].map(|name| temp.path().join(name).display().to_string());
/// # let profile = nearprint_profile::by_name("default")?;
/// # let request = RunRequest::new("2026-11-19", documents, store.as_str(), output, profile);
/// # let request = RunRequest { create_store: true, breakers: Breakers::off(), ..request };
/// # run(&storage, &request, &Resources::default(), &progress).await?;
/// // `store` is a store in which one night is published.
/// let request = DropNightRequest { store, dt: "2026-11-19".to_owned(), writers: Writers::Several };
/// let dropped = store_drop_night(&storage, &request, &Resources::default()).await?;
/// assert_eq!((dropped.commit, dropped.stale.len()), (2, 0));
/// assert_eq!(store_info(&storage, &request.store).await?.n_nights, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the store has no such night.
pub async fn store_drop_night(
    storage: &Storage,
    request: &DropNightRequest,
    resources: &Resources,
) -> Result<DropNightSummary> {
    check_date("dt", &request.dt)?;
    let store = open_store(storage, &request.store).await?;
    store.probe_conditional_put(request.writers).await?;
    let leave = Leave::Dropped(request.dt.clone());
    let dropped = commit_leaving(storage, store.folder(), resources, &leave).await?;
    let store = open_store(storage, &request.store).await?;
    let dropped = dropped.first().ok_or_else(|| Fault::internal("drop-night", "a night was dropped without one"))?;
    let (commit, stale) = commit_and_stale(&store, dropped);
    Ok(DropNightSummary { store: request.store.clone(), dt: request.dt.clone(), commit, stale })
}

/// Makes a store forget all nights before a date. Later joins do as if it had never had them, and later nights do not
/// become stale. Their results stay until `store gc`, but nothing names them any more.
///
/// # Errors
/// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the date is later than the newest night; an error if
/// the date does not exist, or if the store or an output cannot be read or written.
pub async fn store_forget_before(
    storage: &Storage,
    request: &ForgetBeforeRequest,
    resources: &Resources,
) -> Result<ForgetBeforeSummary> {
    check_date("before", &request.before)?;
    let store = open_store(storage, &request.store).await?;
    store.probe_conditional_put(request.writers).await?;
    let leave = Leave::Before(request.before.clone());
    // If this is killed, the next run into an output takes the nights out of its tables.
    let forgotten = commit_leaving(storage, store.folder(), resources, &leave).await?;
    let store = open_store(storage, &request.store).await?;
    Ok(ForgetBeforeSummary {
        store: request.store.clone(),
        before: request.before.clone(),
        commit: store.sequence(),
        nights: forgotten.iter().map(|night| night.dt.clone()).collect(),
        n_documents: forgotten.iter().map(|night| night.run.n_documents()).sum(),
        n_nights_left: store.nights().len() as u64,
    })
}

/// The request to forget all nights before a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetBeforeRequest {
    /// The store.
    pub store: String,
    /// The date of the first night that stays. It must not be later than the newest night.
    pub before: String,
    /// The processes that write to the store.
    pub writers: Writers,
}

/// The summary of forgotten nights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ForgetBeforeSummary {
    /// The store.
    pub store: String,
    /// The date of the first night that stays.
    pub before: String,
    /// The number of the store's newest commit.
    pub commit: u64,
    /// The forgotten nights, by date. If there are none, nothing was committed.
    pub nights: Vec<String>,
    /// The number of documents of the forgotten nights.
    pub n_documents: u64,
    /// The number of nights that the store still has.
    pub n_nights_left: u64,
}

/// The request to drop a night.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropNightRequest {
    /// The store.
    pub store: String,
    /// The night.
    pub dt: String,
    /// The processes that write to the store.
    pub writers: Writers,
}

/// The summary of a dropped night.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DropNightSummary {
    /// The store.
    pub store: String,
    /// The night.
    pub dt: String,
    /// The number of the commit that took the night out.
    pub commit: u64,
    /// The later nights whose results were made with this one. `run --replace` joins them anew.
    pub stale: Vec<String>,
}

/// Makes a store at a place that has none. Returns false if there is one already.
///
/// ```
/// use nearprint_night::store_init;
/// use nearprint_storage::Storage;
/// use nearprint_store::Writers;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let url = temp.path().join("store").display().to_string();
/// let storage = Storage::default();
/// assert!(store_init(&storage, &url, Writers::Several).await?);
/// assert!(!store_init(&storage, &url, Writers::Several).await?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The place is an output, or a store that has lost its commits or its identity; it cannot be written to; or an S3 server ignores
/// `If-None-Match`.
pub async fn store_init(storage: &Storage, url: &str, writers: Writers) -> Result<bool> {
    let folder = storage.folder(url)?;
    folder.refuse_file_in_its_way()?;
    let store = Store::open(&folder).await?;
    let identity = store.identity().await?;
    store.refuse_lost(identity.as_deref()).await?;
    if !store.is_new() || identity.is_some() {
        return Ok(false);
    }
    store.probe_conditional_put(writers).await?;
    store.make_identity().await?;
    Ok(true)
}
