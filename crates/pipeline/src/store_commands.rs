//! Commands on a store: what it holds, whether it is sound, and what is taken out of it.

use nearprint_storage::{Progress, Storage};
use nearprint_store::{CompactRequest, CompactSummary, GcRequest, GcSummary, Store, StoreInfo, StoreReport};
use serde::Serialize;

use crate::error::Result;
use crate::night::pointers::delete_pointer;
use crate::night::published::{commit_and_stale, open_store};
use crate::night::request::check_date;
use crate::resources::Resources;

/// The store at a place, as its newest commit has it.
///
/// # Errors
/// [`StoreError::InputMissing`](nearprint_store::StoreError::InputMissing) where there is no store.
pub async fn store_info(storage: &Storage, url: &str) -> Result<StoreInfo> {
    open_store(storage, url).await.map(|store| store.info())
}

/// Checks every file of a store.
///
/// # Errors
/// The store's; damage is in the report.
pub async fn store_check(storage: &Storage, url: &str, progress: &Progress) -> Result<StoreReport> {
    Ok(open_store(storage, url).await?.check(progress).await?)
}

/// Deletes what no commit of a store names.
///
/// # Errors
/// The store's. Nothing is deleted after any doubt about what is needed.
pub async fn store_gc(storage: &Storage, request: &GcRequest) -> Result<GcSummary> {
    Ok(nearprint_store::gc(storage, request).await?)
}

/// Merges the fingerprints of a store's runs into one segment, which later joins read instead of the runs.
///
/// # Errors
/// The store's; a damaged run; nothing that others see has changed then.
pub async fn store_compact(
    storage: &Storage,
    request: &CompactRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<CompactSummary> {
    let store = open_store(storage, &request.store).await?;
    Ok(store.compact(request, resources.n_threads(), &resources.temp_parent(), progress).await?)
}

/// Takes a night out of a store. Its results stay until `store gc`, but nothing names them any more.
///
/// # Errors
/// [`StoreError::InputMissing`](nearprint_store::StoreError::InputMissing) where the store has no such night.
pub async fn store_drop_night(storage: &Storage, request: &DropNightRequest) -> Result<DropNightSummary> {
    check_date(&request.dt)?;
    let store = open_store(storage, &request.store).await?;
    store.probe_conditional_put(request.single_writer).await?;
    // Killed before its commit, it leaves a night that is behind, which a run of its date completes.
    if let Some(night) = store.night(&request.dt) {
        delete_pointer(storage, night).await?;
    }
    let dropped = store.drop_night(&request.dt).await?;
    // Another command may have completed it meanwhile.
    delete_pointer(storage, &dropped).await?;
    let store = open_store(storage, &request.store).await?;
    let (commit, stale) = commit_and_stale(&store, &dropped);
    Ok(DropNightSummary { store: request.store.clone(), dt: request.dt.clone(), commit, stale })
}

/// Which night to drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropNightRequest {
    /// The store.
    pub store: String,
    /// The night.
    pub dt: String,
    /// Nobody else writes to the store: a server that cannot tell who was first will do.
    pub single_writer: bool,
}

/// A night that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DropNightSummary {
    /// The store.
    pub store: String,
    /// The night.
    pub dt: String,
    /// Number of the commit that took it out.
    pub commit: u64,
    /// Later nights, whose results were made with it: `run --replace` joins them anew.
    pub stale: Vec<String>,
}

/// Makes a store at a place that has none; false where there is one.
///
/// # Errors
/// A place that cannot be written to; an S3 server that ignores `If-None-Match`.
pub async fn store_init(storage: &Storage, url: &str, single_writer: bool) -> Result<bool> {
    let store = Store::open(&storage.folder(url)?).await?;
    if !store.is_new() || store.identity().await?.is_some() {
        return Ok(false);
    }
    store.probe_conditional_put(single_writer).await?;
    store.make_identity().await?;
    Ok(true)
}
