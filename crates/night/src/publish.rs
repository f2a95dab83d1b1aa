//! Publication: it writes the generation, the run files, and the commit that makes both visible. The tables follow.

use std::collections::BTreeSet;

use nearprint_documents::BadFile;
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_parquet::{FileRecord, StagedFile, mend_files, upload_new};
use nearprint_pipeline::{HostCounts, SpillStats};
use nearprint_profile::ALGORITHM_VERSION;
use nearprint_storage::{NewFiles, Progress, Sha256Hex, Storage};
use nearprint_store::{
    Damage, JoinedRuns, MANIFEST, MadeBy, Night, NightChanges, StagedRun, Store, generation_name, run_name, to_json,
};

use super::changes::{named_changes, next_set};
use super::manifest::Manifest;
use super::measured::MeasuredNight;
use super::plan::Plan;
use super::published::{already_published, commit_and_stale};
use super::references::JoinedReference;
use super::request::RunRequest;
use super::results_left::ResultsLeft;
use super::summary::{CountsOf, RunCounts, RunStatus, RunSummary};
use super::tables::roll_forward;

/// The results of a night in the spill folder, ready to be published.
pub(crate) struct Staged {
    pub(crate) files: Vec<StagedFile>,
    pub(crate) run: StagedRun,
    /// What the commit changes in the corpus.
    pub(crate) changes: Vec<StagedFile>,
    /// Later nights whose decisions about documents of this one count no more, with their results without these.
    pub(crate) overruled: Vec<(Night, Option<ResultsLeft>)>,
    pub(crate) bad_files: Vec<BadFile>,
    pub(crate) counts: RunCounts,
    /// The counts of its sources.
    pub(crate) hosts: Vec<HostCounts>,
    pub(crate) references: Vec<JoinedReference>,
    pub(crate) spill: SpillStats,
    pub(crate) n_tables: usize,
    pub(crate) n_parts: usize,
    pub(crate) measured: MeasuredNight,
}

/// The outcome of an attempt to make a night.
pub(crate) enum Attempt {
    /// The night is published, by this run or an earlier one, or breakers stopped it.
    Done(Box<RunSummary>),
    /// The store is not, or no longer, in the state from which the night was to be made. Nothing was written for it.
    Outdated,
    /// Another commit was first. The attempt had written this generation.
    LostRace {
        /// The digest of the generation.
        generation: String,
    },
}

/// Writes the generation, the run files, and then the commit that makes both visible.
///
/// Invariant: a generation is named by its manifest, which names all its files by their SHA-256. So no other content is
/// ever written under the name of a published generation. A run that writes there again writes the same bytes.
pub(crate) async fn publish(
    storage: &Storage,
    request: &RunRequest,
    plan: &Plan,
    mut staged: Staged,
    manifest: &Manifest,
    progress: &Progress,
) -> Result<Attempt> {
    let content = to_json(manifest)?;
    let published = plan.store.night(&request.dt);
    let kept = match published {
        Some(night) => plan.store.keep_run(night, &staged.run).await?,
        None => None,
    };
    // A stale night says with a commit that it is stale no more, also if the same files come out: others overruled its decisions,
    // or forgot a late night before it.
    let same = published.filter(|night| night.request == plan.digest && !plan.store.is_stale(night));
    if let (Some(night), Some(of_run)) = (same, &kept)
        && let Some(of_generation) = mend(storage, plan, night, &staged, &content).await?
    {
        return mended(storage, plan, night, staged, of_run.n_mended_files + of_generation).await;
    }
    let (run, joined_as, run_files) = match kept {
        Some(kept) => (kept.record, published.and_then(|night| night.joined_as.clone()), Vec::new()),
        None => (staged.run.record.clone(), None, staged.run.files.clone()),
    };
    let manifest_sha256 = Sha256Hex::of(&content).0;
    let gen_digest = manifest_sha256[..32].to_owned();
    plan.store.refuse_removing(&generation_name(&gen_digest))?;
    plan.store.claim_output(&plan.store.make_identity().await?, &plan.output).await?;
    let night = Night {
        dt: request.dt.clone(),
        redecides: run.redecides(),
        has_stubs: staged.counts.n_stubs() > 0,
        run,
        joined: JoinedRuns::of(manifest.forgotten_runs.as_deref(), &plan.joined),
        joined_as,
        output: plan.records.url().to_owned(),
        request: plan.digest.clone(),
        gen_digest,
        manifest_sha256,
        future: plan.is_future(request),
        overruled: Vec::new(),
    };
    // Until the commit, a failure deletes what it finds here.
    let mut new = NewFiles::default();
    let records: Vec<FileRecord> = staged.changes.iter().map(|file| file.record.clone()).collect();
    let set = next_set(storage, &plan.store, (&plan.output, &request.dt), &records).await?;
    let mut files = named(&staged.files, &night);
    files.extend(named_changes(&plan.store, &staged.changes, &set)?);
    upload_new(&plan.output, &files, &mut new, "publish", progress).await?;
    new.put(&plan.output, &format!("{}/{MANIFEST}", night.generation_path()), content).await?;
    upload_new(plan.store.folder(), &of_run(&run_files, &night), &mut new, "commit", progress).await?;
    let mut overruled = Vec::new();
    for (mut later, results) in std::mem::take(&mut staged.overruled) {
        if let Some(results) = results {
            results.publish(storage, &plan.store, &mut later, &mut new).await?;
        }
        overruled.push(later);
    }
    let changes = NightChanges { set, overruled };
    let made_by = MadeBy { config_digest: plan.config_digest.clone(), algorithm: ALGORITHM_VERSION };
    new.keep();
    match plan.store.commit(&night, &changes, request.keep_nights, &made_by).await {
        Ok(true) => {}
        Ok(false) => {
            delete_unpublished(&plan.store, &night, new).await;
            return Ok(Attempt::LostRace { generation: night.gen_digest });
        }
        Err(error) => {
            // Whether an error of this kind comes after the commit cannot be told.
            if error.kind() != ErrorKind::TryAgain {
                delete_unpublished(&plan.store, &night, new).await;
            }
            return Err(error);
        }
    }
    roll_forward(storage, plan.store.folder(), &plan.output, Some(&request.dt)).await?;
    let store = Store::open(plan.store.folder()).await?;
    let forgotten: Vec<&Night> = plan.store.nights().iter().filter(|night| store.has_dropped(&night.dt)).collect();
    leave(storage, plan, published.into_iter().chain(forgotten.iter().copied()).chain(&changes.overruled)).await;
    let forgotten = forgotten.into_iter().map(|night| night.dt.clone()).collect();
    Ok(Attempt::Done(Box::new(summary(plan, night, &store, forgotten, staged))))
}

/// Deletes what was written for a night that was not committed. Everything stays if the store has the night of this very
/// content by now, or cannot be read.
async fn delete_unpublished(store: &Store, night: &Night, new: NewFiles) {
    let is_it = |there: &Night| there.gen_digest == night.gen_digest && there.run.digest == night.run.digest;
    if Store::open(store.folder()).await.is_ok_and(|now| !now.night(&night.dt).is_some_and(is_it)) {
        new.delete();
    }
}

/// Returns the summary of a night that is still published, and of which damaged or missing files were written again.
async fn mended(storage: &Storage, plan: &Plan, night: &Night, staged: Staged, n_mended_files: u64) -> Result<Attempt> {
    roll_forward(storage, plan.store.folder(), &plan.output, Some(&night.dt)).await?;
    let Some(store) = still_published(&plan.store, night).await? else {
        return Ok(Attempt::LostRace { generation: night.gen_digest.clone() });
    };
    let summary = already_published(storage, &store, night).await?;
    let summary = RunSummary {
        spill: staged.spill,
        n_tables: staged.n_tables,
        n_parts: staged.n_parts,
        newest_input: plan.newest_input.clone(),
        measured: Some(staged.measured),
        n_mended_files,
        ..summary
    };
    Ok(Attempt::Done(Box::new(summary)))
}

/// Returns the summary of a night that was just committed. `forgotten` are the nights that the commit left out.
fn summary(plan: &Plan, night: Night, store: &Store, forgotten: Vec<String>, staged: Staged) -> RunSummary {
    let (commit, stale) = commit_and_stale(store, &night);
    let (status, generation) = (RunStatus::Published, Some(night.gen_digest));
    RunSummary { status, generation, commit, stale, forgotten, ..of_staged(night.dt, plan, staged) }
}

/// Returns the summary of a night that is staged, of which nothing is published.
pub(crate) fn of_staged(dt: String, plan: &Plan, staged: Staged) -> RunSummary {
    RunSummary {
        status: RunStatus::Stopped,
        dt,
        output: plan.output.url().to_owned(),
        generation: None,
        commit: plan.store.info().commit,
        counts_of: CountsOf::ThisRun,
        counts: staged.counts,
        references: staged.references,
        spill: staged.spill,
        n_tables: staged.n_tables,
        n_parts: staged.n_parts,
        stale: Vec::new(),
        forgotten: Vec::new(),
        n_mended_files: 0,
        newest_input: plan.newest_input.clone(),
        breakers: Vec::new(),
        measured: Some(staged.measured),
    }
}

/// Returns staged files under the names that they have below the output.
fn named(files: &[StagedFile], night: &Night) -> Vec<StagedFile> {
    let named = |file: &StagedFile| {
        let record = FileRecord { name: night.file_path(&file.record.name), ..file.record.clone() };
        StagedFile { record, path: file.path.clone() }
    };
    files.iter().map(named).collect()
}

/// Returns the staged files of a run under the names that they have below the store.
pub(crate) fn of_run(files: &[StagedFile], night: &Night) -> Vec<StagedFile> {
    let named = |file: &StagedFile| {
        let name = format!("{}/{}", run_name(&night.run.digest), file.record.name);
        StagedFile { record: FileRecord { name, ..file.record.clone() }, path: file.path.clone() }
    };
    files.iter().map(named).collect()
}

/// Takes nights that were replaced or forgotten out of the tables of other outputs than that of the run, and the decisions of
/// nights that were overruled. A failure is only a warning: the next run into that output does it.
async fn leave(storage: &Storage, plan: &Plan, nights: impl Iterator<Item = &Night>) {
    let roots: BTreeSet<&str> = nights.map(Night::output_root).collect();
    for root in roots {
        let left = async {
            let output = storage.folder(root)?;
            if !output.is_same_place(&plan.output) {
                roll_forward(storage, plan.store.folder(), &output, None).await?;
            }
            Ok::<_, Fault>(())
        };
        if let Err(error) = left.await {
            tracing::warn!(output = root, %error, "nights are still in its tables: run any date there");
        }
    }
}

/// Writes again the damaged or missing files of a published generation, if its files are those that were staged.
/// Returns their number. `None` means that the generation is elsewhere, or that its files are, or may be, different.
pub(crate) async fn mend(
    storage: &Storage,
    plan: &Plan,
    night: &Night,
    staged: &Staged,
    manifest: &bytes::Bytes,
) -> Result<Option<u64>> {
    if !storage.folder(night.output_root())?.is_same_place(&plan.output) {
        return Ok(None);
    }
    let generation = plan.output.join(&night.generation_path());
    let is_same_manifest = Sha256Hex::of(manifest).0 == night.manifest_sha256;
    let published = match Manifest::read(&generation, night).await {
        Ok(published) => Some(published),
        Err(error) if error.matter() == Some(&Damage::File) => None,
        Err(error) => return Err(error),
    };
    let is_same = |published: &Manifest| published.files.iter().eq(staged.files.iter().map(|file| &file.record));
    if !is_same_manifest && !published.as_ref().is_some_and(is_same) {
        return Ok(None);
    }
    let mut n_mended = mend_files(&plan.output, &named(&staged.files, night)).await?;
    if published.is_none() {
        generation.join(MANIFEST).put(manifest.clone()).await?;
        n_mended += 1;
    }
    Ok(Some(n_mended))
}

/// Returns the store as it is now, if it has the night unchanged. `None` means that another commit replaced or dropped
/// the night meanwhile.
pub(crate) async fn still_published(store: &Store, night: &Night) -> Result<Option<Store>> {
    let newest = Store::open(store.folder()).await?;
    let is_there = newest.night(&night.dt) == Some(night);
    Ok(is_there.then_some(newest))
}
