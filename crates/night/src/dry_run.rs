//! A run without its work: it says what a run would do, and writes nothing.

use std::slice::from_ref;

use nearprint_documents::Documents;
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_join::JoinError;
use nearprint_parquet::{BadColumn, DT, PublishedDataset};
use nearprint_pipeline::{PlanRequest, Resources, planned, strategy};
use nearprint_storage::Storage;
use nearprint_store::{Store, identity_in};
use schemars::JsonSchema;
use serde::Serialize;

use super::documents;
use super::plan::{Plan, plan, refuse_missing_store};
use super::preflight;
use super::references::References;
use super::request::RunRequest;
use super::run::{Course, course, refuse_before_work, unknown_night};
use super::tables::read_tables;

/// The actions that a run would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DryRun {
    /// True if the run would publish the night. If not, the night is published from the same inputs and configuration.
    pub would_publish: bool,
    /// The night.
    pub dt: String,
    /// The store.
    pub store: String,
    /// The number of the store's newest commit; 0 if there is none.
    pub commit: u64,
    /// The root of the results.
    pub output: String,
    /// The number of the night's files.
    pub n_files: u64,
    /// The bytes of the night's files.
    pub input_bytes: u64,
    /// The number of rows, if the files say it: JSONL files do not.
    pub n_documents: Option<u64>,
    /// The time at which the newest input was written, in UTC.
    pub newest_input: Option<String>,
    /// The nights that the store would forget, by `keep_nights`.
    pub forgotten: Vec<String>,
    /// The number of earlier nights, and of nights of references, with which the night would be joined.
    pub n_nights: u64,
    /// The number of their fingerprints, with those of documents that the night has again.
    pub n_existing: u64,
    /// The plan of the join in a few words, if the number of documents is known. A run plans with the distinct
    /// fingerprints of the night, which are fewer.
    pub join: Option<String>,
    /// The bytes that the spill folder needs, about.
    pub spill_bytes: u64,
    /// The folders into which the run would write. It is empty if the run would not publish.
    pub writes: Vec<String>,
    /// The later nights that become stale, if the run changes what they were joined with.
    pub later_nights: Vec<String>,
}

/// Says what a run would do with a night. It reads listings, footers and the state of the store, and checks by permissions
/// that the places can be written, on S3 not even that. Nothing is written, and no lock is taken.
///
/// # Errors
/// The errors of [`run`](super::run()) that are found before its work.
pub async fn dry_run(storage: &Storage, request: &RunRequest, resources: &Resources) -> Result<DryRun> {
    request.check(storage, &resources.temp_parent())?;
    let plan = plan(storage, request).await?;
    let tables = read_tables(&plan.output).await?;
    let would_publish = match course(storage, request, &plan, &tables, None).await? {
        Course::AlreadyPublished => false,
        Course::UnknownNight => return Err(unknown_night(&plan)),
        Course::Publish => {
            refuse_before_work(storage, request, &plan, resources).await?;
            preflight::refuse_forbidden(plan.store.folder(), &plan.output, &request.dt)?;
            true
        }
    };
    said(request, &plan, resources, would_publish)
}

/// The findings at the places of a job.
#[derive(Debug, Default)]
pub struct CheckedPlaces {
    /// The faults, each with the key of the job that it is about, if it is about one.
    pub faults: Vec<(Option<&'static str>, Fault)>,
    /// The store is there. If it is not, and that is no fault, the first night makes it.
    pub has_store: bool,
    /// The newest night that has documents, if the place of the nights can be listed.
    pub newest: Option<String>,
    /// The document file whose columns were looked at.
    pub looked_at: Option<String>,
    /// Why no file was looked at, if there are documents. That is a fault of the file, and not of the job.
    pub unread: Option<Fault>,
}

impl CheckedPlaces {
    /// Returns the value of an outcome, or notes its error.
    fn note<T>(&mut self, key: Option<&'static str>, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|error| self.faults.push((key, error))).ok()
    }
}

/// Checks what a job says of its places, whatever the night: they lie apart, the documents are there, a file of their newest
/// night has the columns, the store and the references are there and have this configuration, and the permissions allow to
/// write store, output and temporary files. Nothing is written, and no fault hides another one.
pub async fn check_places(storage: &Storage, request: &RunRequest, resources: &Resources) -> CheckedPlaces {
    let mut checked = CheckedPlaces::default();
    let faults = request.faults(storage, &resources.temp_parent());
    checked.faults.extend(faults.into_iter().map(|error| (None, error)));
    let found = documents::nights_there(storage, &request.documents).await;
    for dt in checked.note(Some("documents"), found).unwrap_or_default().into_iter().rev() {
        let night = RunRequest { dt: dt.clone(), ..request.clone() }.night_documents();
        let first =
            Documents::of_first_file(storage, &night, request.columns.clone(), request.input.max_doc_bytes).await;
        match first {
            // A night's folder may be there before its files.
            Err(error) if error.kind() == ErrorKind::InputMissing => {
                checked.unread.get_or_insert(error);
                continue;
            }
            Err(error) if error.matter::<BadColumn>().is_some() => checked.faults.push((None, error)),
            Err(error) => checked.unread = Some(error),
            Ok(looked_at) => (checked.looked_at, checked.unread) = (looked_at, None),
        }
        checked.newest = Some(dt);
        break;
    }
    let store = check_store(storage, request).await;
    checked.has_store = checked.note(Some("store"), store).unwrap_or_default();
    for opened in open_references(storage, request).await {
        checked.note(Some("references"), opened);
    }
    checked.note(None, refuse_forbidden(storage, request));
    checked.note(Some("resources.spill_dir"), resources.refuse_forbidden_temp());
    checked
}

/// Opens the reference stores, each for itself.
async fn open_references(storage: &Storage, request: &RunRequest) -> Vec<Result<()>> {
    // A store that cannot be opened is a fault of its own.
    let identity = own_identity(storage, request).await.ok().flatten();
    let configuration = request.configuration();
    let mut opened = Vec::new();
    for name in &request.references {
        let reference = References::open(storage, from_ref(name), &configuration, identity.as_deref()).await;
        opened.push(reference.map(drop));
    }
    opened
}

async fn own_identity(storage: &Storage, request: &RunRequest) -> Result<Option<String>> {
    Store::open(&storage.folder(&request.store)?).await?.identity().await
}

/// Checks the store, and returns whether it is there.
async fn check_store(storage: &Storage, request: &RunRequest) -> Result<bool> {
    let store = Store::open(&storage.folder(&request.store)?).await?;
    let configuration = request.configuration();
    store.refuse_other_config(&configuration.digest(), |other| configuration.differences(other))?;
    let (identity, output) = (store.identity().await?, storage.folder(&request.output)?);
    store.refuse_lost(identity.as_deref()).await?;
    // Where the output belongs to no store yet, a first night may make one.
    if identity_in(&output).await?.is_some() {
        refuse_missing_store(&store, identity.as_deref(), request, &output).await?;
    }
    Ok(identity.is_some() || !store.is_new())
}

fn refuse_forbidden(storage: &Storage, request: &RunRequest) -> Result<()> {
    preflight::refuse_forbidden(&storage.folder(&request.store)?, &storage.folder(&request.output)?, &request.dt)
}

fn said(request: &RunRequest, plan: &Plan, resources: &Resources, would_publish: bool) -> Result<DryRun> {
    let info = plan.store.info();
    let leaving: Vec<&str> = plan.leaving(request).iter().map(|night| night.dt.as_str()).collect();
    let (earlier, later): (Vec<_>, Vec<_>) =
        info.nights.iter().filter(|night| night.dt != request.dt).partition(|night| night.dt < request.dt);
    let earlier: Vec<_> = earlier.into_iter().filter(|night| !leaving.contains(&night.dt.as_str())).collect();
    let (n_reference_nights, n_reference) = plan.references.size();
    let n_nights = earlier.len() as u64 + n_reference_nights;
    let n_existing = earlier.iter().map(|night| night.n_fingerprints).sum::<u64>() + n_reference;
    let n_documents = plan.documents.n_rows();
    let join = match n_documents.filter(|_| would_publish) {
        Some(n) => Some(join_in_words(request, resources, (n, n_existing, n_nights))?),
        None => None,
    };
    Ok(DryRun {
        would_publish,
        dt: request.dt.clone(),
        store: plan.store.folder().url().to_owned(),
        commit: info.commit,
        output: plan.output.url().to_owned(),
        n_files: plan.inputs.len() as u64,
        input_bytes: plan.inputs.iter().map(|input| input.bytes).sum(),
        n_documents,
        newest_input: plan.newest_input.clone(),
        forgotten: if would_publish { leaving.iter().map(|&dt| dt.to_owned()).collect() } else { Vec::new() },
        n_nights,
        n_existing,
        join,
        spill_bytes: preflight::spill_bytes(n_documents),
        writes: if would_publish { writes(request, plan) } else { Vec::new() },
        later_nights: if would_publish { later.iter().map(|night| night.dt.clone()).collect() } else { Vec::new() },
    })
}

fn join_in_words(
    request: &RunRequest,
    resources: &Resources,
    (query_rows, existing_rows, runs): (u64, u64, u64),
) -> Result<String> {
    let (bits, join) = (request.profile.bits, &request.profile.join);
    let (verifier, own_verifier) = (join.verifier_of_earlier(bits)?, join.verifier(bits)?);
    let max_distance = own_verifier.max_distance.into();
    let sizes = PlanRequest { existing_rows, query_rows, bits, max_distance, runs, itself: true };
    let strategy_of = |sizes: &PlanRequest| {
        let plan = planned(sizes, resources).map_err(|error| match error.cause::<JoinError>() {
            // The run itself may find room, since its distinct fingerprints are fewer.
            Some(cause) => Fault::resources(cause.to_string()),
            None => error,
        })?;
        Ok(strategy(&plan.tables, plan.n_slices))
    };
    match sizes.of_keys(verifier, own_verifier).as_slice() {
        [own, fingerprints, words @ ..] => {
            let (own, earlier) = (strategy_of(own)?, strategy_of(fingerprints)?);
            let again = match words.len() {
                0 => String::new(),
                1 => ", and so for a word of the sketches".to_owned(),
                n => format!(", and so for {n} words of the sketches"),
            };
            Ok(format!("within the night: {own}; with earlier nights: {earlier}{again}"))
        }
        [own] => strategy_of(own),
        [] => Err(Fault::internal("dry run", "a join has a key")),
    }
}

/// Returns the folders that a run writes into, as the user would list them.
fn writes(request: &RunRequest, plan: &Plan) -> Vec<String> {
    let (store, output) = (plan.store.folder(), &plan.output);
    let of_tables =
        PublishedDataset::tables().map(|dataset| output.join(dataset.name).join(&format!("{DT}={}", request.dt)));
    let all = of_tables.chain([plan.records.clone(), store.join("runs"), store.join("_commits")]);
    all.map(|folder| folder.url().to_owned()).collect()
}
