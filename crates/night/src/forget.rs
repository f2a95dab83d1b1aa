//! `nearprint store forget --ids`: documents are taken out of a store and out of the results that it published.
//!
//! One commit names the new runs and the new generations of all nights that had the documents. The tables follow it, as
//! they follow the commit of a run.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use nearprint_delta::TableLog;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::{CHANGES, FileRecord, ParquetFile, StagedFile, create_folder, upload_new};
use nearprint_pipeline::{Forgetting, Resources};
use nearprint_storage::{Folder, NewFiles, Progress, Storage};
use nearprint_store::maintain::{ForgottenIds, RunWithout, commit_forgetting, end_dead_removals, runs_without};
use nearprint_store::{ChangeSet, ChangedOutput, Night, Store, Writers, others_committed};
use schemars::JsonSchema;
use serde::Serialize;

use crate::changes::{named_changes, newest_of_others};
use crate::publish::of_run;
use crate::published::open_store;
use crate::results_left::{changes_left, results_without};
use crate::tables::{is_root_of, newest_set_there, roll_all_forward, set_of};

/// The number of times that the work is done anew while others commit.
const MAX_ATTEMPTS: usize = 5;

/// The request to forget documents.
#[derive(Debug, Clone)]
pub struct ForgetIdsRequest {
    /// The store.
    pub store: String,
    /// The ids of the documents.
    pub ids: ForgottenIds,
    /// The processes that write to the store.
    pub writers: Writers,
}

/// The summary of forgotten documents. It names no document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ForgetIdsSummary {
    /// The store.
    pub store: String,
    /// The number of the store's newest commit.
    pub commit: u64,
    /// The number of different ids in the request.
    pub n_ids: u64,
    /// The number of ids that the store or its results had.
    pub n_found: u64,
    /// The number of ids that neither had.
    pub n_not_found: u64,
    /// The number of documents that were forgotten: of an id, one for each night that had it.
    pub n_documents: u64,
    /// The number of documents that represent themselves from now on, because their canonical one is forgotten.
    pub n_represented: u64,
    /// The nights whose run files were written anew, by date.
    pub nights: Vec<String>,
    /// The nights whose results were published anew, by date.
    pub results: Vec<String>,
    /// The number of files of `changes` that were written anew.
    pub n_change_files: u64,
}

impl ForgetIdsSummary {
    /// Returns whether the store or its results named one of the documents.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        !self.nights.is_empty() || !self.results.is_empty() || self.n_change_files > 0
    }
}

/// Forgets documents in all nights of a store, and in the results of these nights. Later joins do as if the store had never
/// had the documents. The files that still have them stay until `store gc`, but nothing names them any more.
///
/// # Errors
/// A file of the store, or of a published night, is missing or damaged; others commit again and again; an error if a place
/// cannot be read or written. Nothing is forgotten then, or all of it, and the tables follow with the next run.
pub async fn store_forget_ids(
    storage: &Storage,
    request: &ForgetIdsRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<ForgetIdsSummary> {
    for _ in 0..MAX_ATTEMPTS {
        let store = open_store(storage, &request.store).await?;
        store.probe_conditional_put(request.writers).await?;
        if end_dead_removals(&store).await? {
            continue;
        }
        roll_all_forward(storage, &store, store.nights()).await?;
        if let Some(summary) = attempt(storage, &store, request, resources, progress).await? {
            // Also if an execution before this one committed and died.
            let committed = open_store(storage, &request.store).await?;
            roll_all_forward(storage, &committed, committed.nights()).await?;
            return Ok(ForgetIdsSummary { commit: committed.sequence(), ..summary });
        }
        tracing::warn!("somebody else committed meanwhile: looking again");
    }
    Err(others_committed(MAX_ATTEMPTS))
}

/// Writes what is left of all nights, and commits it. Returns `None` if another commit was faster.
async fn attempt(
    storage: &Storage,
    store: &Store,
    request: &ForgetIdsRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<Option<ForgetIdsSummary>> {
    let ids = &request.ids;
    let temp = resources.temp_dir()?;
    let found = runs_without(store, ids, temp.path(), progress).await?;
    let mut known = found.ids;
    let mut summary = ForgetIdsSummary {
        store: request.store.clone(),
        commit: store.sequence(),
        n_ids: ids.len(),
        n_found: 0,
        n_not_found: 0,
        n_documents: 0,
        n_represented: found.runs.iter().map(|run| run.n_represented).sum(),
        nights: found.runs.iter().rev().map(|run| run.dt.clone()).collect(),
        results: Vec::new(),
        n_change_files: 0,
    };
    let forgetting = Forgetting { store, ids, represented: &found.represented };
    let mut runs: HashMap<String, RunWithout> = found.runs.into_iter().map(|run| (run.dt.clone(), run)).collect();
    let mut changed = Vec::new();
    // Until the commit, a failure deletes what it finds here.
    let mut written = NewFiles::default();
    progress.start("forget", "results", store.nights().len() as u64);
    for night in store.nights() {
        let mut new = night.clone();
        let mut n_documents = 0;
        if let Some(without) = runs.remove(&night.dt) {
            n_documents = without.n_documents;
            new.joined_as = Some(night.joined_as().to_owned());
            new.redecides = without.run.record.redecides();
            new.run = without.run.record;
            let files = of_run(&without.run.files, &new);
            upload_new(store.folder(), &files, &mut written, "publish", &Progress::default()).await?;
        }
        if let Some(mut left) = results_without(storage, night, (ids, &found.represented), temp.path()).await? {
            known.extend(left.named.drain());
            // The results have decisions about the documents of the store, and about stubs.
            n_documents = n_documents.max(left.n_documents);
            left.publish(storage, store, &mut new, &mut written).await?;
            summary.results.push(night.dt.clone());
        }
        if new != *night {
            changed.push(new);
        }
        summary.n_documents += n_documents;
        progress.advance(1);
    }
    debug_assert!(runs.is_empty(), "each run that was rewritten is of a night of the store");
    debug_assert!(changed.is_sorted_by(|a, b| a.dt < b.dt), "a night is changed once");
    let (changes, of_changes) = changes_without(storage, forgetting, temp.path(), &mut written).await?;
    known.extend(of_changes);
    summary.n_found = known.len() as u64;
    debug_assert!(summary.n_found <= ids.len(), "no id is found that is not to be forgotten");
    summary.n_not_found = ids.len() - summary.n_found;
    summary.n_change_files = changes.outputs.iter().map(|of| of.removed.len() as u64).sum();
    written.keep();
    if !summary.is_committed() {
        return Ok(Some(summary));
    }
    if commit_forgetting(store, changed, changes).await? {
        return Ok(Some(summary));
    }
    // Another commit was first. What it shares with this one, its own execution has written.
    written.delete();
    Ok(None)
}

/// Writes the sets of changes of all outputs anew, as far as they name one of the documents, and that those which they
/// represented are restored. Returns the documents that they named too.
async fn changes_without(
    storage: &Storage,
    forgetting: Forgetting<'_>,
    temp: &Path,
    written: &mut NewFiles,
) -> Result<(ChangeSet, HashSet<String>)> {
    let Forgetting { store, ids, .. } = forgetting;
    let dt = store.changed_night().ok_or_else(|| Fault::internal("forget", "a store without a night"))?;
    let newest = store.nights().last().map(Night::output_root);
    let of_changes = store.changes().into_iter().flat_map(|set| &set.outputs).map(|of| of.output.as_str());
    let roots: BTreeSet<&str> = store.nights().iter().map(Night::output_root).chain(of_changes).collect();
    let known = store.changes().map_or_else(BTreeMap::new, |set| set.newest.clone());
    let mut set = ChangeSet { number: store.n_change_sets() + 1, outputs: Vec::new(), newest: known };
    let (mut outputs, mut named_there): (Vec<Folder>, HashSet<String>) = Default::default();
    for (i, root) in roots.into_iter().enumerate() {
        let output = storage.folder(root)?;
        // Two jobs may write one output as two texts.
        if outputs.iter().any(|other| other.is_same_place(&output)) {
            continue;
        }
        outputs.push(output.clone());
        let log = TableLog::open(&output, &CHANGES).await?;
        let after = Some(newest_set_there(storage, store, &output, &log).await?);
        let mut of = ChangedOutput { output: root.to_owned(), removed: Vec::new(), added: Vec::new(), after };
        let (mut staged, mut newest_there) = (Vec::new(), 0);
        for (j, file) in log.files().enumerate() {
            let parquet = ParquetFile::open(log.table().join(&file.path).file().await?).await?;
            let folder = temp.join(format!("changes-{i}-{j}"));
            let Some(left) = changes_left(&parquet, ids, &folder).await? else {
                newest_there = newest_there.max(set_of(file).unwrap_or(0));
                continue;
            };
            newest_there = newest_there.max(left.newest);
            named_there.extend(left.named);
            of.removed.push(format!("{}/{}", CHANGES.name, file.path));
            add(&mut of, &mut staged, &file.dt, left.files);
        }
        if newest.is_some_and(|newest| is_root_of(storage, newest, &output)) {
            let folder = temp.join("changes");
            create_folder(&folder)?;
            let restored = forgetting.write(&folder).await?;
            if restored.iter().any(|file| file.record.rows > 0) {
                newest_there = set.number;
            }
            add(&mut of, &mut staged, dt, restored);
        }
        set.newest = newest_of_others(storage, store, &set, &output);
        set.newest.insert(root.to_owned(), newest_there);
        if of.added.is_empty() && of.removed.is_empty() {
            continue;
        }
        let of_output = ChangeSet { outputs: vec![of], ..set.clone() };
        let named = named_changes(store, &staged, &of_output)?;
        upload_new(&output, &named, written, "publish", &Progress::default()).await?;
        set.outputs.extend(of_output.outputs);
    }
    Ok((set, named_there))
}

/// Adds staged files of changes to those of an output. Files without rows are left out: several would have one name.
fn add(of: &mut ChangedOutput, staged: &mut Vec<StagedFile>, dt: &str, files: Vec<StagedFile>) {
    let files: Vec<StagedFile> = files.into_iter().filter(|file| file.record.rows > 0).collect();
    let records: Vec<FileRecord> = files.iter().map(|file| file.record.clone()).collect();
    of.added.extend(ChangedOutput::adding(&of.output, dt, &records).added);
    staged.extend(files);
}
