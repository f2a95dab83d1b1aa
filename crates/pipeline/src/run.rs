//! The nightly run: documents of a date to pairs, decisions, and the store's next commit.

mod breakers;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use breakers::{Breakers, DocumentShare, DropRate, LargestCluster, Measured, SourceLoss, TrippedBreaker};

use nearprint_tokenize::Resources as AnalyzerResources;
use serde::{Deserialize, Serialize};

use crate::apart;
use crate::config::{ALGORITHM_VERSION, ProfileConfig};
use crate::dataset::{FileRecord, StagedFile};
use crate::decisions::{ClusterRule, DecisionCounts, Decisions};
use crate::digest::Sha256Hex;
use crate::documents::{DocumentColumns, Documents};
use crate::engine::{Resources, SpillStats};
use crate::error::{PipelineError, Result};
use crate::fingerprint_stage::{
    FingerprintCounts, FingerprintRequest, Fingerprinted, fingerprint_documents, write_quarantine, write_skipped,
};
use crate::near_duplicates::{Join, NearDuplicates, PairCounts, PairsMode};
use crate::night_documents;
use crate::operators::Gathered;
use crate::output::{mend_files, upload};
use crate::preflight;
use crate::progress::Progress;
use crate::quarantine::{BadFile, InputPolicy};
use crate::query_batch::KeepKey;
use crate::roots::Roots;
use crate::storage::{Folder, Storage};
use crate::store::{
    CheckReport, CheckRequest, CompactRequest, CompactSummary, GcRequest, GcSummary, JoinedRuns, Night, StagedRun,
    Store, existing_short, generation_name, missing_store, to_json, write_run,
};
use crate::temp_folder::remove_dead;

/// A night's work.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The night, `YYYY-MM-DD`.
    pub dt: String,
    /// Root of the documents: the night's lie under `dt=<date>/`, or where `{dt}` says.
    pub documents: String,
    /// The store.
    pub store: String,
    /// Root of the results.
    pub output: String,
    /// Columns.
    pub columns: DocumentColumns,
    /// Keys of the keep order, after existing documents and before the id.
    pub keep: Vec<KeepKey>,
    /// Which of the columns to keep names a document's source; none where ids do.
    pub source_column: Option<String>,
    /// Text to pair.
    pub profile: ProfileConfig,
    /// Contents of the user's dictionary and stop words.
    pub analyzer_resources: AnalyzerResources,
    /// Which rows and files are set aside, and how many may be.
    pub input: InputPolicy,
    /// Which pairs are written.
    pub pairs: PairsMode,
    /// The most pairs that `all` may write.
    pub max_pairs: u64,
    /// Which documents of a cluster are dropped.
    pub clusters: ClusterRule,
    /// Allows a date older than the newest.
    pub late: bool,
    /// Replaces a published night.
    pub replace: bool,
    /// Nobody else writes to the store: a server that cannot tell who was first will do.
    pub single_writer: bool,
    /// What stops the night before it is published.
    pub breakers: Breakers,
    /// Where documents, store and output must lie.
    pub roots: Roots,
    /// Refuses a spill folder without room for the night.
    pub preflight: bool,
    /// Makes the store where there is none; otherwise a place without a store is an error.
    pub create_store: bool,
    /// The job file: no temporary folder that holds it is ever removed.
    pub job_file: Option<PathBuf>,
}

/// What a run did. Its counts are also the published manifest's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// `published`, `already_published`, or `stopped` by a breaker.
    pub status: &'static str,
    /// The night.
    pub dt: String,
    /// Where the results are.
    pub output: String,
    /// Number of the store's commit.
    pub commit: u64,
    /// Counts.
    #[serde(flatten)]
    pub counts: RunCounts,
    /// What the reduce spilled, in this execution.
    pub spill: SpillStats,
    /// Permuted tables of the queries, in this execution.
    pub n_tables: usize,
    /// Parts of the queries that were joined one after another, so that their tables fit the memory limit.
    pub n_parts: usize,
    /// Later nights whose results were made without this one: `--replace` joins them anew.
    pub stale: Vec<String>,
    /// Files of a published night that were damaged or gone, and that `--replace` wrote again.
    #[serde(skip_serializing_if = "is_zero")]
    pub n_mended_files: u64,
    /// When the newest input was written, in UTC; none in reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_input: Option<String>,
    /// The breakers that stopped it.
    pub breakers: Vec<TrippedBreaker>,
    /// What the breakers looked at, in this execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What a night came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounts {
    /// Documents.
    #[serde(flatten)]
    pub documents: FingerprintCounts,
    /// Fingerprints of earlier nights that probed.
    pub n_existing: u64,
    /// Documents whose id an earlier night has.
    pub n_same_id: u64,
    /// Pairs.
    #[serde(flatten)]
    pub pairs: PairCounts,
    /// Decisions.
    #[serde(flatten)]
    pub decisions: DecisionCounts,
}

/// What a generation holds and was made from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    nearprint: String,
    algorithm: u32,
    dt: String,
    config_digest: String,
    inputs: Vec<InputRecord>,
    ignored_inputs: Vec<String>,
    /// Files that could not be read, and why; none of their rows counts.
    #[serde(default)]
    bad_files: Vec<BadFile>,
    joined: Vec<String>,
    counts: RunCounts,
    pub(crate) files: Vec<FileRecord>,
}

impl Manifest {
    /// The manifest of a night's generation, as the commit names it.
    pub(crate) async fn read(generation: &Folder, night: &Night) -> Result<Self> {
        let manifest = generation.join(MANIFEST);
        let content = manifest
            .get()
            .await?
            .ok_or_else(|| PipelineError::damaged(manifest.url(), "committed, but its manifest is gone"))?;
        if Sha256Hex::of(&content).0 != night.manifest_sha256 {
            return Err(PipelineError::damaged(
                manifest.url(),
                "its SHA-256 is not the one that the store's commit records",
            ));
        }
        serde_json::from_slice(&content).map_err(|e| PipelineError::damaged(manifest.url(), e))
    }

    /// Whether it says of the night what the commit says.
    pub(crate) fn is_of(&self, night: &Night, config_digest: &str) -> bool {
        self.dt == night.dt && JoinedRuns::of(&self.joined) == night.joined && self.config_digest == config_digest
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct InputRecord {
    url: String,
    bytes: u64,
    version: String,
}

/// Runs that lost the race for a commit join again against the new state, this often.
const MAX_ATTEMPTS: usize = 5;

/// Runs a night.
///
/// # Errors
/// Bad input; a night that is published with other content; a store of another configuration. Nothing is visible of a
/// run that fails.
pub async fn run(
    storage: &Storage,
    request: &RunRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<RunSummary> {
    check_date(&request.dt)?;
    request.profile.validate()?;
    request.breakers.validate()?;
    request.refuse_outside_roots(storage)?;
    apart::refuse_run(storage, request, &resources.temp_parent())?;
    remove_dead(&resources.temp_parent(), &request.local_places(storage));
    let mut written = None;
    for _ in 0..MAX_ATTEMPTS {
        if let Some(summary) = attempt(storage, request, &mut written, resources, progress).await? {
            return Ok(summary);
        }
        tracing::warn!("another run committed meanwhile: joining again");
    }
    Err(PipelineError::TryAgain { reason: format!("other runs committed {MAX_ATTEMPTS} times meanwhile") })
}

/// What the run is about, before any document is read.
struct Plan {
    store: Store,
    documents: Documents,
    config_digest: String,
    joined: Vec<String>,
    inputs: Vec<InputRecord>,
    /// Digest of all that the night's results depend on.
    digest: String,
    newest_input: Option<String>,
    output: Folder,
    /// `<output>/dt=D`
    night: Folder,
}

async fn attempt(
    storage: &Storage,
    request: &RunRequest,
    written: &mut Option<String>,
    resources: &Resources,
    progress: &Progress,
) -> Result<Option<RunSummary>> {
    let plan = plan(storage, request).await?;
    complete_newest(storage, &plan.store, request).await;
    match plan.store.night(&request.dt) {
        Some(published) if published.request == plan.digest => {
            let is_here = storage.folder(&published.output)?.is_same_place(&plan.night);
            // Asked to replace it, a run makes a night anew even from the same inputs: that mends damaged files. Once it has written
            // this very generation, a commit of another run that did the same is as good as its own.
            if is_here && (!request.replace || written.as_ref() == Some(&published.gen_digest)) {
                return published_already(storage, plan, request).await;
            }
            if !request.replace {
                return Err(moved(published, &plan));
            }
        }
        Some(_) => refuse_republishing(&plan, request)?,
        None => {
            refuse_late(&plan.store, request)?;
            if !request.replace && plan.night.join(CURRENT).find().await?.is_some() {
                return refuse_unknown_night(&plan, request).await;
            }
        }
    }
    if request.preflight {
        preflight::refuse_full(&resources.temp_parent(), plan.documents.n_rows())?;
    }
    preflight::refuse_unwritable(plan.store.folder(), &plan.output, &plan.night).await?;
    plan.store.probe_conditional_put(request.single_writer).await?;
    if plan.store.end_dead_removals().await? {
        return Ok(None);
    }
    let done = execute(storage, request, plan, resources, progress).await?;
    Ok(done.map_err(|generation| *written = Some(generation)).ok())
}

/// A night that is published from the same inputs and configuration, in the same place.
async fn published_already(storage: &Storage, plan: Plan, request: &RunRequest) -> Result<Option<RunSummary>> {
    roll_forward(storage, &plan.store, &request.dt).await?;
    plan.output.tidy_itself().await;
    plan.night.tidy().await;
    let published = plan.store.night(&request.dt).ok_or_else(|| internal("a published night is gone"))?;
    plan.store.tidy(published).await;
    let Some(store) = still_published(&plan.store, published).await? else {
        return Ok(None);
    };
    let summary = already_published(storage, &store, published).await?;
    Ok(Some(RunSummary { newest_input: plan.newest_input, ..summary }))
}

/// The store as it is now, where a night is what it was; none where another commit replaced or dropped it meanwhile.
async fn still_published(store: &Store, night: &Night) -> Result<Option<Store>> {
    let newest = Store::open(store.folder()).await?;
    let is_there = newest.night(&night.dt) == Some(night);
    Ok(is_there.then_some(newest))
}

fn internal(reason: &str) -> PipelineError {
    PipelineError::Internal { stage: "run", reason: reason.to_owned() }
}

fn moved(published: &Night, plan: &Plan) -> PipelineError {
    let reason = format!(
        "{} is published in {}, not here: name that output, or publish the night here with --replace",
        published.dt, published.output
    );
    PipelineError::OutputExists { url: plan.night.url().to_owned(), reason }
}

/// Refuses a night that is published here and that this store does not know: another store made it, or this one was put back to an
/// earlier state. None where another run has published it since the store was opened.
async fn refuse_unknown_night(plan: &Plan, request: &RunRequest) -> Result<Option<RunSummary>> {
    if Store::open(plan.store.folder()).await?.night(&request.dt).is_some() {
        return Ok(None);
    }
    let reason = format!(
        "a night is published here that {} does not know: check `store`, name another output, or publish anew with --replace",
        plan.store.folder().url()
    );
    Err(PipelineError::OutputExists { url: plan.night.url().to_owned(), reason })
}

async fn plan(storage: &Storage, request: &RunRequest) -> Result<Plan> {
    request.profile.join.verifier(request.profile.bits)?;
    let config_digest = request.profile.digest(&request.analyzer_resources)?;
    let store = Store::open(&storage.folder(&request.store)?).await?;
    store.refuse_other_config(&config_digest)?;
    let identity = store.identity().await?;
    refuse_missing_store(&store, identity.as_deref(), request)?;
    let output = storage.folder(&request.output)?;
    store.refuse_output_of_another(identity.as_deref(), &output).await?;
    store.refuse_lost_commits(&output).await?;
    store.refuse_unmounted_output(storage, &output).await?;
    warn_of_misnamed_nights(storage, &request.documents).await;
    let documents = night_documents::open(storage, request).await?;
    for file in documents.files() {
        request.roots.refuse_file_outside(storage, &file.url)?;
    }
    let newest_input = documents.files().map(|f| f.modified).max().map(utc);
    let joined: Vec<String> = store.before(&request.dt).into_iter().map(|n| n.run.digest.clone()).collect();
    let mut inputs: Vec<InputRecord> = documents
        .files()
        .chain(documents.bad.iter().map(|(file, _)| file))
        .map(|f| InputRecord { url: f.url.clone(), bytes: f.size, version: f.version.clone() })
        .collect();
    inputs.sort();
    let digest = request_digest(request, &config_digest, &inputs, &joined);
    let night = output.join(&format!("dt={}", request.dt));
    Ok(Plan { store, documents, config_digest, joined, inputs, digest, newest_input, output, night })
}

/// A store that is not there may be on a disk that is not mounted, or under another name: only who says so makes a new one.
fn refuse_missing_store(store: &Store, identity: Option<&str>, request: &RunRequest) -> Result<()> {
    if request.create_store || identity.is_some() || !store.is_new() {
        return Ok(());
    }
    let remedy = "check the path, and that its disk is mounted; a first night makes the store with --create-store, or after \
                  `nearprint store init`";
    Err(PipelineError::InputMissing { what: "store", url: request.store.clone(), remedy })
}

fn utc(time: SystemTime) -> String {
    chrono::DateTime::<chrono::Utc>::from(time).to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// Digest of all that a night's results depend on, but for the release that writes them.
fn request_digest(request: &RunRequest, config_digest: &str, inputs: &[InputRecord], joined: &[String]) -> String {
    let keep: Vec<(&str, bool)> = request.keep.iter().map(|k| (k.column.as_str(), k.descending)).collect();
    let parts = serde_json::json!({
        "algorithm": ALGORITHM_VERSION,
        "dt": request.dt,
        "config_digest": config_digest,
        "inputs": inputs,
        "joined": joined,
        "columns": request.columns,
        "max_doc_bytes": request.input.max_doc_bytes,
        "on_duplicate_id": request.input.on_duplicate_id,
        "keep": keep,
        "join": request.profile.join,
        "pairs": request.pairs,
        "clusters": request.clusters,
    });
    Sha256Hex::of(parts.to_string().as_bytes()).0[..32].to_owned()
}

/// A night's results in the spill folder, ready to be published.
struct Staged {
    files: Vec<StagedFile>,
    run: StagedRun,
    bad_files: Vec<BadFile>,
    counts: RunCounts,
    spill: SpillStats,
    n_tables: usize,
    n_parts: usize,
    measured: Measured,
}

/// What a night came to, or the generation that it wrote before another commit was first.
type Attempt = std::result::Result<RunSummary, String>;

async fn execute(
    storage: &Storage,
    request: &RunRequest,
    mut plan: Plan,
    resources: &Resources,
    progress: &Progress,
) -> Result<Attempt> {
    let ignored_inputs = plan.documents.ignored.clone();
    let documents = std::mem::take(&mut plan.documents);
    let temp = resources.temp_dir()?;
    let mut staged = stage(request, &plan, documents, temp.path(), resources, progress).await?;
    staged.measured.compare(storage, &plan.store, request, &staged.counts).await;
    let tripped = request.breakers.tripped(&staged.measured);
    if !tripped.is_empty() {
        return Ok(Ok(stopped(request, &plan, staged, tripped)));
    }
    let manifest = Manifest {
        version: 1,
        nearprint: env!("CARGO_PKG_VERSION").to_owned(),
        algorithm: ALGORITHM_VERSION,
        dt: request.dt.clone(),
        config_digest: plan.config_digest.clone(),
        inputs: std::mem::take(&mut plan.inputs),
        ignored_inputs,
        bad_files: staged.bad_files.clone(),
        joined: plan.joined.clone(),
        counts: staged.counts.clone(),
        files: staged.files.iter().map(|f| f.record.clone()).collect(),
    };
    publish(storage, request, &plan, staged, &manifest, progress).await
}

/// Everything up to publication.
async fn stage(
    request: &RunRequest,
    plan: &Plan,
    documents: Documents,
    folder: &Path,
    resources: &Resources,
    progress: &Progress,
) -> Result<Staged> {
    let mut done = fingerprint_documents(&request.fingerprint_request(), documents, resources, progress).await?;
    let recrawls = plan.store.recrawls(&done.batch, &request.dt).await?;
    done.batch.put_first(|row| recrawls.is_incumbent(row));
    let shadowed = plan.store.shadowed_before(&request.dt, &recrawls).await?;
    let short = existing_short(&plan.store, &done.batch, &request.dt, &shadowed).await?;
    let existing = plan.store.existing(&request.dt, shadowed).await?;
    let mut files = write_skipped(&done.batch, folder, "skipped")?;
    files.extend(write_quarantine(&done, folder, "quarantine")?);
    let bad_files = done.bad_files();
    let Fingerprinted { batch, counts: documents, .. } = done;
    let (bits, verifier) = (request.profile.bits, request.profile.join.verifier(request.profile.bits)?);
    let held_bytes = recrawls.memory_bytes();
    let join = Join { existing, itself: true, bits, verifier, decides: Some(request.clusters), held_bytes };
    let near = NearDuplicates::new(batch, join, resources, progress.clone()).await?;
    let (written, pairs, spill, gathered) = write_pairs(&near, request, folder).await?;
    files.extend(written);
    let (n_existing, n_tables, n_parts) = (near.n_existing(), near.n_tables(), near.n_parts());
    let (batch, rows) = near.into_batch();
    progress.start("decide", "documents", batch.len() as u64);
    let decisions = Decisions::new(&batch, &rows, gathered, short)?;
    files.extend(decisions.write(&batch, folder)?);
    files.sort_by(|a, b| a.record.name.cmp(&b.record.name));
    let run = write_run(&batch, &decisions, &recrawls, &plan.config_digest, &folder.join("run"))?;
    let n_same_id = recrawls.n_same_id();
    let counts = RunCounts { documents, n_existing, n_same_id, pairs, decisions: decisions.counts() };
    let measured = Measured::of(&batch, &decisions, &request.breakers);
    Ok(Staged { files, run, bad_files, counts, spill, n_tables, n_parts, measured })
}

/// Nothing was published.
fn stopped(request: &RunRequest, plan: &Plan, staged: Staged, tripped: Vec<TrippedBreaker>) -> RunSummary {
    RunSummary {
        status: "stopped",
        dt: request.dt.clone(),
        output: plan.night.url().to_owned(),
        commit: plan.store.info().commit,
        counts: staged.counts,
        spill: staged.spill,
        n_tables: staged.n_tables,
        n_parts: staged.n_parts,
        stale: Vec::new(),
        n_mended_files: 0,
        newest_input: plan.newest_input.clone(),
        breakers: tripped,
        measured: Some(staged.measured),
    }
}

/// The generation, the run, and then the commit that makes both visible.
///
/// Invariant: a generation is named by its manifest, which names all its files by their SHA-256. So no other content is ever written
/// under the name of a published one; what writes there again writes the same bytes.
async fn publish(
    storage: &Storage,
    request: &RunRequest,
    plan: &Plan,
    staged: Staged,
    manifest: &Manifest,
    progress: &Progress,
) -> Result<Attempt> {
    let content = to_json(manifest)?;
    let manifest_sha256 = Sha256Hex::of(&content).0;
    let published = plan.store.night(&request.dt);
    let kept = match published {
        Some(night) => plan.store.keep_run(night, &staged.run).await?,
        None => None,
    };
    if let (Some(night), Some(of_run)) = (published.filter(|night| night.request == plan.digest), &kept)
        && let Some(of_generation) = mend(storage, plan, night, &staged, &content).await?
    {
        roll_forward(storage, &plan.store, &request.dt).await?;
        let Some(store) = still_published(&plan.store, night).await? else {
            return Ok(Err(night.gen_digest.clone()));
        };
        let summary = already_published(storage, &store, night).await?;
        let n_mended_files = of_run.n_mended_files + of_generation;
        return Ok(Ok(RunSummary {
            spill: staged.spill,
            n_tables: staged.n_tables,
            n_parts: staged.n_parts,
            newest_input: plan.newest_input.clone(),
            measured: Some(staged.measured),
            n_mended_files,
            ..summary
        }));
    }
    let (run, run_files) = match kept {
        Some(kept) => (kept.record, Vec::new()),
        None => (staged.run.record.clone(), staged.run.files.clone()),
    };
    let gen_digest = manifest_sha256[..32].to_owned();
    plan.store.refuse_removing(&generation_name(&gen_digest))?;
    plan.store.claim_output(&plan.store.make_identity().await?, &plan.output).await?;
    let generation = plan.night.join(&generation_name(&gen_digest));
    upload(&generation, &staged.files, progress).await?;
    generation.join(MANIFEST).put(content).await?;
    upload(&plan.store.run_folder(&run.digest), &run_files, progress).await?;
    let night = Night {
        dt: request.dt.clone(),
        run,
        joined: JoinedRuns::of(&plan.joined),
        output: plan.night.url().to_owned(),
        request: plan.digest.clone(),
        gen_digest: gen_digest.clone(),
        manifest_sha256,
    };
    if !plan.store.commit(&night, &plan.config_digest).await? {
        return Ok(Err(gen_digest));
    }
    let store = Store::open(plan.store.folder()).await?;
    roll_forward(storage, &store, &request.dt).await?;
    let (commit, stale) = commit_and_stale(&store, &night);
    Ok(Ok(RunSummary {
        status: "published",
        dt: request.dt.clone(),
        output: generation.url().to_owned(),
        commit,
        counts: staged.counts,
        spill: staged.spill,
        n_tables: staged.n_tables,
        n_parts: staged.n_parts,
        stale,
        n_mended_files: 0,
        newest_input: plan.newest_input.clone(),
        breakers: Vec::new(),
        measured: Some(staged.measured),
    }))
}

/// Writes again what is damaged or gone of a published generation whose files are those that were staged; gives their number. None where
/// the generation is elsewhere, or where its files are others, or may be.
async fn mend(
    storage: &Storage,
    plan: &Plan,
    night: &Night,
    staged: &Staged,
    manifest: &bytes::Bytes,
) -> Result<Option<u64>> {
    let place = storage.folder(&night.output)?;
    if !place.is_same_place(&plan.night) {
        return Ok(None);
    }
    let generation = place.join(&generation_name(&night.gen_digest));
    let is_same_manifest = Sha256Hex::of(manifest).0 == night.manifest_sha256;
    let published = match Manifest::read(&generation, night).await {
        Ok(published) => Some(published),
        Err(PipelineError::Damaged { .. }) => None,
        Err(error) => return Err(error),
    };
    let is_same = |published: &Manifest| published.files.iter().eq(staged.files.iter().map(|file| &file.record));
    if !is_same_manifest && !published.as_ref().is_some_and(is_same) {
        return Ok(None);
    }
    let mut n_mended = mend_files(&generation, &staged.files).await?;
    if published.is_none() {
        generation.join(MANIFEST).put(manifest.clone()).await?;
        n_mended += 1;
    }
    Ok(Some(n_mended))
}

impl RunRequest {
    /// Where its documents, store, output and job file are on local disks.
    fn local_places(&self, storage: &Storage) -> Vec<PathBuf> {
        let documents = night_pattern(&self.documents, &self.dt);
        let places = [&documents, &self.store, &self.output].into_iter().filter_map(|url| storage.base_of(url).ok());
        places.filter_map(|place| place.local_path().map(Path::to_path_buf)).chain(self.job_file.clone()).collect()
    }

    fn refuse_outside_roots(&self, storage: &Storage) -> Result<()> {
        let documents = night_pattern(&self.documents, &self.dt);
        for (key, url) in [("documents", &documents), ("store", &self.store), ("output", &self.output)] {
            self.roots.refuse_outside(storage, key, url)?;
        }
        Ok(())
    }

    fn fingerprint_request(&self) -> FingerprintRequest {
        FingerprintRequest {
            documents: self.documents.clone(),
            columns: self.columns.clone(),
            keep: self.keep.clone(),
            source: self.source_column.clone(),
            profile: self.profile.clone(),
            analyzer_resources: self.analyzer_resources.clone(),
            input: self.input.clone(),
        }
    }
}

/// Decisions follow from the forest's candidates, whichever pairs are written.
async fn write_pairs(
    near: &NearDuplicates,
    request: &RunRequest,
    folder: &Path,
) -> Result<(Vec<StagedFile>, PairCounts, SpillStats, Gathered)> {
    let (files, pairs, spill, gathered) = match request.pairs {
        PairsMode::Forest => near.write_forest(folder).await?,
        PairsMode::All => {
            let (files, counts, spill) = near.write_all(folder, request.max_pairs).await?;
            let (more, gathered) = near.forest_state().await?;
            (files, counts, spill.plus(more), gathered)
        }
    };
    let nothing = || PipelineError::Internal { stage: "forest", reason: "nothing to decide by".to_owned() };
    Ok((files, pairs, spill, gathered.ok_or_else(nothing)?))
}

/// In a generation.
const MANIFEST: &str = "manifest.json";
/// In a night's folder: the name of its generation.
const CURRENT: &str = "_current";

/// What plain readers look for, from what is committed: `_SUCCESS` in the generation, and the name of the current one beside
/// it. A run that dies before this is completed by the next one.
///
/// Invariant: whoever writes them looks at the commits again after it, so that of several writers the last leaves what is committed
/// last.
async fn roll_forward(storage: &Storage, store: &Store, dt: &str) -> Result<()> {
    let mut night = store.night(dt).cloned();
    while let Some(committed) = night.take() {
        if !write_pointers(&storage.folder(&committed.output)?, &committed.gen_digest).await? {
            break;
        }
        let newest = Store::open(store.folder()).await?;
        match newest.night(dt) {
            // Dropped meanwhile.
            None => delete_pointer(storage, &committed).await?,
            Some(now) => night = Some(now).filter(|now| **now != committed).cloned(),
        }
    }
    Ok(())
}

/// False where they are there already.
async fn write_pointers(night: &Folder, gen_digest: &str) -> Result<bool> {
    let generation = night.join(&generation_name(gen_digest));
    let success = generation.join("_SUCCESS");
    let has_success = success.get().await?.is_some();
    let current = bytes::Bytes::from(format!("{}\n", generation_name(gen_digest)));
    let pointer = night.join(CURRENT);
    let has_pointer = pointer.get().await?.as_ref() == Some(&current);
    if (!has_success || !has_pointer) && generation.join(MANIFEST).find().await?.is_none() {
        // Nobody is led to results that are not there, as on a disk that is not mounted.
        return Err(PipelineError::damaged(generation.join(MANIFEST).url(), "committed, but its manifest is gone"));
    }
    if !has_success {
        success.put(bytes::Bytes::new()).await?;
    }
    if !has_pointer {
        pointer.put(current).await?;
    }
    Ok(!has_success || !has_pointer)
}

/// Completes the night of the newest commit, if the run that made it died before it could. Where that cannot be done it is not this
/// night's matter.
async fn complete_newest(storage: &Storage, store: &Store, request: &RunRequest) {
    let Some(newest) = store.newest().filter(|newest| newest.dt != request.dt) else {
        return;
    };
    let done = async {
        request.roots.refuse_outside(storage, "output", &newest.output)?;
        roll_forward(storage, store, &newest.dt).await
    };
    if let Err(error) = done.await {
        tracing::warn!(night = newest.dt, %error, "cannot complete it: run its date again");
    }
}

/// The number of the commit, and later nights that were made without this one.
fn commit_and_stale(store: &Store, night: &Night) -> (u64, Vec<String>) {
    let info = store.info();
    let stale = info.nights.iter().filter(|n| n.stale && n.dt > night.dt).map(|n| n.dt.clone()).collect();
    (info.commit, stale)
}

async fn already_published(storage: &Storage, store: &Store, night: &Night) -> Result<RunSummary> {
    let place = storage.folder(&night.output)?;
    let generation = place.join(&generation_name(&night.gen_digest));
    let read = Manifest::read(&generation, night).await?;
    let (commit, stale) = commit_and_stale(store, night);
    Ok(RunSummary {
        status: "already_published",
        dt: night.dt.clone(),
        output: generation.url().to_owned(),
        commit,
        counts: read.counts,
        spill: SpillStats::default(),
        n_tables: 0,
        n_parts: 0,
        stale,
        n_mended_files: 0,
        newest_input: None,
        breakers: Vec::new(),
        measured: None,
    })
}

/// A published night's summary, and the dates of the nights before it.
pub(crate) async fn published_night(storage: &Storage, store_url: &str, dt: &str) -> Result<(RunSummary, Vec<String>)> {
    check_date(dt)?;
    let store = open_store(storage, store_url).await?;
    let night = store.night(dt).ok_or_else(|| PipelineError::InputMissing {
        what: "published night",
        url: format!("{store_url} dt={dt}"),
        remedy: "run it first",
    })?;
    let earlier = store.before(dt).into_iter().map(|n| n.dt.clone()).collect();
    let summary = already_published(storage, &store, night).await?;
    Ok((RunSummary { status: "published", ..summary }, earlier))
}

fn refuse_republishing(plan: &Plan, request: &RunRequest) -> Result<()> {
    if request.replace {
        return Ok(());
    }
    let reason = format!(
        "{} is published from other inputs, configuration or earlier nights: keep it, or publish anew with --replace",
        request.dt
    );
    Err(PipelineError::OutputExists { url: plan.night.url().to_owned(), reason })
}

fn refuse_late(store: &Store, request: &RunRequest) -> Result<()> {
    match store.nights().last() {
        Some(newest) if newest.dt > request.dt && !request.late => {
            let reason =
                format!("{} is older than the store's newest night {}: say --late to add it", request.dt, newest.dt);
            Err(PipelineError::Usage { reason })
        }
        _ => Ok(()),
    }
}

/// `YYYY-MM-DD`, a day that exists.
pub(crate) fn check_date(dt: &str) -> Result<()> {
    let invalid =
        || PipelineError::Usage { reason: format!("--dt '{}' is not a date like 2026-11-20", dt.escape_debug()) };
    let parts: Vec<&str> = dt.split('-').collect();
    let [year, month, day] = parts[..] else {
        return Err(invalid());
    };
    let digits = |text: &str, n: usize| {
        (text.len() == n && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<u32>().ok()).flatten()
    };
    let (year, month, day) = (digits(year, 4), digits(month, 2), digits(day, 2));
    let (Some(year), Some(month), Some(day)) = (year, month, day) else {
        return Err(invalid());
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    if (1..=days).contains(&day) { Ok(()) } else { Err(invalid()) }
}

/// Folders beside the nights' whose names are no dates: what lies there belongs to no night.
async fn warn_of_misnamed_nights(storage: &Storage, documents: &str) {
    if documents.contains("{dt}") {
        return;
    }
    // Whether the root can be listed is for the night's own folder to tell.
    let names = match storage.folder(documents) {
        Ok(root) => root.names().await.unwrap_or_default(),
        Err(_) => return,
    };
    for name in names.iter().filter_map(|name| name.strip_prefix("dt=")).filter(|dt| check_date(dt).is_err()) {
        tracing::warn!("{documents}/dt={}: not a date like 2026-11-20, in no night", name.escape_debug());
    }
}

pub(crate) fn night_pattern(documents: &str, dt: &str) -> String {
    if documents.contains("{dt}") {
        documents.replace("{dt}", dt)
    } else {
        format!("{}/dt={dt}", documents.trim_end_matches('/'))
    }
}

/// The store at a place, as its newest commit has it.
///
/// # Errors
/// [`PipelineError::InputMissing`] where there is no store.
pub async fn store_info(storage: &Storage, url: &str) -> Result<crate::StoreInfo> {
    open_store(storage, url).await.map(|store| store.info())
}

/// Checks every file of a store.
///
/// # Errors
/// The store's; damage is in the report.
pub async fn store_check(storage: &Storage, url: &str, progress: &Progress) -> Result<crate::StoreReport> {
    open_store(storage, url).await?.check(progress).await
}

/// Checks every file of a store and of what it published.
///
/// # Errors
/// The store's; damage is in the report.
pub async fn check(storage: &Storage, request: &CheckRequest, progress: &Progress) -> Result<CheckReport> {
    if let Some(dt) = &request.dt {
        check_date(dt)?;
    }
    crate::store::check(storage, request, progress).await
}

/// Deletes what no commit of a store names.
///
/// # Errors
/// The store's. Nothing is deleted after any doubt about what is needed.
pub async fn store_gc(storage: &Storage, request: &GcRequest) -> Result<GcSummary> {
    crate::store::gc(storage, request).await
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
    open_store(storage, &request.store).await?.compact(request, resources, progress).await
}

/// Takes a night out of a store. Its results stay until `store gc`, but nothing names them any more.
///
/// # Errors
/// [`PipelineError::InputMissing`] where the store has no such night.
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

/// Takes away the pointer to a night's generation, unless it names another one.
async fn delete_pointer(storage: &Storage, night: &Night) -> Result<()> {
    let current = storage.folder(&night.output)?.join(CURRENT);
    let named = bytes::Bytes::from(format!("{}\n", generation_name(&night.gen_digest)));
    match current.get().await? == Some(named) {
        true => current.delete().await,
        false => Ok(()),
    }
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
    store.make_identity().await.map(|_| true)
}

async fn open_store(storage: &Storage, url: &str) -> Result<Store> {
    let opened = Store::open_existing(&storage.folder(url)?).await?;
    opened.ok_or_else(|| missing_store(url))
}
