//! `store gc`: deleting files that no commit names.
//!
//! Files are named by their content, so another execution may create the very files that are being deleted here.
//! Commits keep the two apart. Names are listed in a commit (`removing`) before they are deleted, and no later commit
//! may use them until they are gone. An execution that was at work in the meantime has to commit on top of that commit.
//! It then looks at all commits since it began, and so it notices.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use futures::{StreamExt, TryStreamExt};
use nearprint_delta::{TableLog, version_of};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::{CHANGES, DELTA_LOG, PublishedDataset, PublishedName, is_part_name};
use nearprint_storage::{Folder, FoundFile, Storage, is_scratch_name, utc};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commit::{Commit, Removal, Stored, pruned};
use crate::error::others_committed;
use crate::identity::{identity_in, missing_store};
use crate::index::is_table_name;
use crate::names::{
    COMMITS, MANIFEST, PAGES, RECORDS, commit_name, commit_number, generation_name, index_name, is_digest, is_hex,
    night_records, page_name, run_name, segment_name,
};
use crate::store::{MAX_ATTEMPTS, Store, Writers};

/// The request of a `store gc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcRequest {
    /// The store.
    pub store: String,
    /// A root of results, in addition to those that the newest commit names.
    pub output: Option<String>,
    /// The age that a file must have before it is deleted, and the time for which the newest commit must have
    /// ceased to name it.
    pub grace: Duration,
    /// Leftovers are listed and not deleted.
    pub dry_run: bool,
    /// The processes that write to the store.
    pub writers: Writers,
}

/// The result of a `store gc`, or of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GcSummary {
    /// The store.
    pub store: String,
    /// The number of the newest commit.
    pub commit: u64,
    /// True for a dry run, in which nothing is deleted.
    pub dry_run: bool,
    /// The number of files that were deleted, or would be.
    pub n_files: u64,
    /// The bytes of the files in `n_files` and `n_left`.
    pub bytes: u64,
    /// The number of places where such files were found: folders, or single files.
    pub n_removed: u64,
    /// The first of these places.
    pub removed: Vec<RemovedFiles>,
    /// The number of files that are left for the next time, because this execution took too long.
    pub n_left: u64,
    /// The number of files that no commit names and that wait for the grace time to pass.
    pub n_waiting: u64,
    /// The bytes of the files in `n_waiting`.
    pub waiting_bytes: u64,
    /// The time from which on all files in `n_waiting` may be deleted, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_until: Option<String>,
    /// Multipart uploads that were never ended. They were aborted, or would be.
    pub uploads: Vec<String>,
    /// The number of commits that nobody needs any more. Their content was removed, or would be; their numbers stay in
    /// use.
    pub n_pruned_commits: u64,
    /// Outputs that belong to another store, or do not name a store yet. They were not searched.
    pub foreign_outputs: Vec<String>,
}

/// Files that are deleted together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RemovedFiles {
    /// A run, a segment, an index, a generation, or a single file.
    pub place: String,
    /// The number of files.
    pub n_files: u64,
    /// The size of the files in bytes.
    pub bytes: u64,
}

/// The number of places that a summary lists.
const LISTED: usize = 20;

/// The time after which deletions end, well before others may take this execution for dead.
const WORK_TIME: Duration = Duration::from_secs(30 * 60);
/// The age at which a `store gc` counts as dead.
const DEAD_AFTER: Duration = Duration::from_secs(60 * 60);
/// The number of deletions that are under way at once.
const CONCURRENT: usize = 8;
/// The number of times that a `store gc` tries to commit that it is done while others commit.
const END_ATTEMPTS: usize = 100;

/// Files that no commit names.
#[derive(Debug)]
pub struct Leftover {
    root: Folder,
    /// The path of a folder or file below the root.
    name: String,
    /// The name that commits use; `None` for files that commits never name.
    removal: Option<String>,
    /// The files.
    pub files: Vec<FoundFile>,
    /// The time since which nobody needs the files: since they were written, or since the newest commit or the newest
    /// version of a table ceased to name them.
    since: SystemTime,
}

impl Leftover {
    /// Returns the size of the files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

    fn place(&self) -> String {
        format!("{}/{}", self.root.url().trim_end_matches('/'), self.name)
    }
}

/// Deletes files that no commit of a store names and that are older than the grace time.
///
/// # Errors
/// An error of the store or of one of its outputs. In case of any doubt about what is needed, nothing is deleted.
pub async fn gc(storage: &Storage, request: &GcRequest) -> Result<GcSummary> {
    let folder = storage.folder(&request.store)?;
    for _ in 0..MAX_ATTEMPTS {
        let Some(store) = Store::open_existing(&folder).await? else { return Err(missing_store(&folder).await) };
        let cutoff = SystemTime::now().checked_sub(request.grace).unwrap_or(SystemTime::UNIX_EPOCH);
        let (roots, foreign_outputs) = own_output_roots(&store, storage, request.output.as_deref()).await?;
        let leftovers = leftovers(&store, &roots, cutoff).await?;
        let (found, waiting): (Vec<_>, Vec<_>) = leftovers.into_iter().partition(|leftover| leftover.since <= cutoff);
        for leftover in &found {
            tracing::debug!(
                place = leftover.place(),
                files = leftover.files.len(),
                bytes = leftover.bytes(),
                "leftover"
            );
        }
        let old = superseded_before(&store, cutoff).await?;
        if request.dry_run {
            let uploads = abort_stale_uploads(&store, request, &roots).await?;
            let summary = summary(&store, &found, store.sequence(), 0, true).with_waiting(&waiting, request.grace);
            return Ok(GcSummary { uploads, n_pruned_commits: old.len() as u64, foreign_outputs, ..summary });
        }
        let begun = match begin_removal(&store, &found, request.writers).await? {
            Removing::Lost => {
                tracing::warn!("somebody else committed meanwhile: looking again");
                continue;
            }
            Removing::NoNames => None,
            Removing::Begun(sequence) => Some(sequence),
        };
        let hold = Hold { folder: folder.clone(), newest: begun.unwrap_or(store.sequence()).into(), begun };
        // Commits are pruned first, so that no commit that still has its content names a file that is gone.
        hold.prune(&old).await?;
        let n_left = hold.delete(&found).await?;
        let commit = match begun {
            Some(sequence) => end_removal(&folder, sequence).await?,
            None => store.sequence(),
        };
        let uploads = abort_stale_uploads(&store, request, &roots).await?;
        let summary = summary(&store, &found, commit, n_left, false).with_waiting(&waiting, request.grace);
        return Ok(GcSummary { uploads, n_pruned_commits: old.len() as u64, foreign_outputs, ..summary });
    }
    Err(others_committed(MAX_ATTEMPTS))
}

/// The outcome of an attempt to commit the names that are about to be deleted.
enum Removing {
    /// Somebody else committed first.
    Lost,
    /// No name has to be given up.
    NoNames,
    /// The commit of this number gives the names up.
    Begun(u64),
}

fn summary(store: &Store, found: &[Leftover], commit: u64, n_left: u64, dry_run: bool) -> GcSummary {
    let removed = |leftover: &Leftover| RemovedFiles {
        place: leftover.place(),
        n_files: leftover.files.len() as u64,
        bytes: leftover.bytes(),
    };
    debug_assert!(
        n_left <= found.iter().map(|leftover| leftover.files.len() as u64).sum(),
        "no more files are left than were found"
    );
    GcSummary {
        store: store.folder().url().to_owned(),
        commit,
        dry_run,
        n_files: found.iter().map(|l| l.files.len() as u64).sum::<u64>() - n_left,
        bytes: found.iter().map(Leftover::bytes).sum(),
        n_removed: found.len() as u64,
        removed: found.iter().take(LISTED).map(removed).collect(),
        n_left,
        n_waiting: 0,
        waiting_bytes: 0,
        waiting_until: None,
        uploads: Vec::new(),
        n_pruned_commits: 0,
        foreign_outputs: Vec::new(),
    }
}

impl GcSummary {
    fn with_waiting(self, waiting: &[Leftover], grace: Duration) -> Self {
        let until = waiting.iter().map(|leftover| leftover.since).max();
        Self {
            n_waiting: waiting.iter().map(|leftover| leftover.files.len() as u64).sum(),
            waiting_bytes: waiting.iter().map(Leftover::bytes).sum(),
            waiting_until: until.and_then(|until| until.checked_add(grace)).map(utc),
            ..self
        }
    }
}

/// The right to delete. It is an entry in the newest commit that nobody has ended.
struct Hold {
    folder: Folder,
    /// The number of the newest commit that was seen.
    newest: AtomicU64,
    /// The number of the commit that gave up the deleted names, or `None` if no name had to be given up.
    begun: Option<u64>,
}

impl Hold {
    /// Deletes the files, and returns the number of those for which there was no time. The manifest of a generation is
    /// deleted before the rest of it, so what has a manifest is complete.
    async fn delete(&self, found: &[Leftover]) -> Result<u64> {
        let began = Instant::now();
        let mut n_left = 0;
        for leftover in found {
            let (first, rest): (Vec<&FoundFile>, Vec<&FoundFile>) =
                leftover.files.iter().partition(|file| file.name.ends_with("/manifest.json"));
            if began.elapsed() > WORK_TIME {
                n_left += leftover.files.len() as u64;
                continue;
            }
            for files in [first, rest] {
                let delete = |file: &FoundFile| leftover.root.delete_found(file.name.clone(), || self.refuse_lost());
                let deletions: Vec<_> = files.into_iter().map(delete).collect();
                futures::stream::iter(deletions).buffer_unordered(CONCURRENT).try_collect::<()>().await?;
            }
        }
        Ok(n_left)
    }

    /// Fails if somebody ended the entry. A process that slept does not notice that on its own clock: the machine may
    /// have been suspended, the process stopped, or the server may have hung. Meanwhile, the files that it was to
    /// delete may have come into use again.
    ///
    /// Invariant: commit numbers are never used twice. So as long as no commit follows the newest known one, that is
    /// the newest.
    async fn refuse_lost(&self) -> Result<()> {
        let Some(begun) = self.begun else {
            return Ok(());
        };
        let next = self.folder.join(COMMITS).join(&commit_name(self.newest.load(Ordering::Relaxed) + 1));
        if next.find().await?.is_none() {
            return Ok(());
        }
        let newest = Store::open(&self.folder).await?;
        if newest.removing().iter().all(|removal| removal.sequence != begun) {
            let reason = format!(
                "{}: others took this `store gc` for dead after an hour, so it stopped deleting",
                self.folder.url()
            );
            return Err(Fault::try_again(reason));
        }
        self.newest.fetch_max(newest.sequence(), Ordering::Relaxed);
        Ok(())
    }

    /// Removes the content of commits that nobody needs.
    async fn prune(&self, old: &[u64]) -> Result<()> {
        for &number in old {
            self.folder.join(COMMITS).join(&commit_name(number)).put(pruned(number)).await?;
        }
        Ok(())
    }
}

/// Commits that the names in the removal `sequence` are gone. Returns the number of the commit.
async fn end_removal(folder: &Folder, sequence: u64) -> Result<u64> {
    for _ in 0..END_ATTEMPTS {
        let store = Store::open(folder).await?;
        let removing: Vec<Removal> = store.removing().iter().filter(|r| r.sequence != sequence).cloned().collect();
        if removing.len() == store.removing().len() {
            return Ok(store.sequence());
        }
        if let Some(commit) = put_removing(&store, removing).await? {
            return Ok(commit);
        }
    }
    Err(others_committed(END_ATTEMPTS))
}

/// Returns the names in the newest commit, and those in all commits that were the newest at some time after
/// `cutoff`, because somebody may still read these states.
///
/// # Errors
/// A commit or page is damaged, or the store does not answer.
async fn needed(store: &Store, cutoff: SystemTime) -> Result<Needed> {
    let mut needed = Needed::default();
    needed.add(store.commit.iter().flat_map(Commit::names), None);
    let is_of_removal = |number: u64| store.removing().iter().any(|removal| removal.sequence == number);
    let mut seen: HashSet<String> = store.commit.iter().flat_map(|commit| commit.pages.iter().cloned()).collect();
    // The latest come first, so a page is read with the last commit that names it.
    for commit in commit_files(store).await?.into_iter().rev() {
        let is_kept = is_of_removal(commit.number);
        if commit.number != store.sequence() && (is_kept || commit.superseded.is_none_or(|at| at > cutoff)) {
            let stored = Stored::read(&store.folder.join(COMMITS).join(&commit_name(commit.number))).await?;
            let names = stored.unseen(&store.folder, &mut seen).await?.1;
            needed.add(names.into_iter(), commit.superseded.filter(|_| !is_kept));
        }
    }
    Ok(needed)
}

/// Returns the numbers of commits that are not needed any more. They were superseded before `cutoff`, no removal at
/// work began with them, and they still have their content.
async fn superseded_before(store: &Store, cutoff: SystemTime) -> Result<Vec<u64>> {
    let is_old = |commit: &CommitOnDisk| {
        commit.superseded.is_some_and(|at| at <= cutoff)
            && commit.bytes > pruned(commit.number).len() as u64
            && store.removing().iter().all(|removal| removal.sequence != commit.number)
    };
    Ok(commit_files(store).await?.iter().filter(|commit| is_old(commit)).map(|commit| commit.number).collect())
}

/// Returns all commits, by number.
async fn commit_files(store: &Store) -> Result<Vec<CommitOnDisk>> {
    let found = store.folder.join(COMMITS).inventory().await?;
    let mut commits: Vec<(u64, FoundFile)> =
        found.into_iter().filter_map(|file| Some((commit_number(&file.name)?, file))).collect();
    commits.sort_unstable_by_key(|(number, _)| *number);
    let superseded: Vec<Option<SystemTime>> =
        commits.iter().skip(1).map(|(_, file)| Some(file.modified)).chain([None]).collect();
    let on_disk =
        |((number, file), superseded): ((u64, FoundFile), _)| CommitOnDisk { number, bytes: file.bytes, superseded };
    Ok(commits.into_iter().zip(superseded).map(on_disk).collect())
}

/// Returns, by place, all files below the store and its roots of results that nearprint wrote and that the newest
/// commit and the newest versions of the tables do not name. Whoever deletes those that are needed no more since
/// `cutoff` disturbs no reader of a later state.
///
/// # Errors
/// A commit, a page or the log of a table is damaged; a folder cannot be listed.
pub async fn leftovers(store: &Store, roots: &[Folder], cutoff: SystemTime) -> Result<Vec<Leftover>> {
    let mut needed = needed(store, cutoff).await?;
    let mut inventories = Vec::new();
    for root in roots {
        let inventory = root.inventory().await?;
        needed.add_tables(root, &inventory).await?;
        inventories.push(inventory);
    }
    let mut found = grouped(&store.folder, store.folder.inventory().await?, store_place, &needed);
    for (root, inventory) in roots.iter().zip(inventories) {
        found.extend(grouped(root, inventory, output_place, &needed));
    }
    Ok(found)
}

/// Aborts multipart uploads that killed executions left below the store and its roots of results. Only keys are
/// considered that nearprint creates there.
async fn abort_stale_uploads(store: &Store, request: &GcRequest, roots: &[Folder]) -> Result<Vec<String>> {
    let mut uploads = BTreeSet::new();
    let (grace, dry_run) = (request.grace, request.dry_run);
    uploads.extend(store.folder.abort_stale_uploads(grace, dry_run, |key| store_place(key).is_some()).await?);
    for root in roots {
        uploads.extend(root.abort_stale_uploads(grace, dry_run, |key| output_place(key).is_some()).await?);
    }
    Ok(uploads.into_iter().collect())
}

/// Returns the roots of results that belong to this store, and the places of the others.
///
/// # Errors
/// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if `output` belongs to another store; an error
/// if the identity of the store or of `output` cannot be read.
pub async fn own_output_roots(
    store: &Store,
    storage: &Storage,
    output: Option<&str>,
) -> Result<(Vec<Folder>, Vec<String>)> {
    let identity = store.identity().await?;
    if let Some(output) = output {
        store.refuse_output_of_another(identity.as_deref(), &storage.folder(output)?).await?;
    }
    Ok(own_outputs(store, output_roots(store, storage, output)?).await)
}

/// Divides roots of results into those that belong to this store, and the places of the others.
pub async fn own_outputs(store: &Store, roots: Vec<Folder>) -> (Vec<Folder>, Vec<String>) {
    let identity = store.identity().await.ok().flatten();
    let (mut own, mut foreign) = (Vec::new(), Vec::new());
    for root in roots {
        match identity_in(&root).await {
            Ok(owner) if owner.is_some() && owner == identity => own.push(root),
            _ => foreign.push(root.url().to_owned()),
        }
    }
    (own, foreign)
}

/// Returns the roots of results: the folders that contain the folders of the nights, and `output`. Each folder
/// occurs once.
///
/// # Errors
/// The place of an output cannot be opened.
pub fn output_roots(store: &Store, storage: &Storage, output: Option<&str>) -> Result<Vec<Folder>> {
    let of_nights = store.nights().iter().map(|night| night.output_root().to_owned());
    let urls: BTreeSet<String> = of_nights.chain(output.map(str::to_owned)).collect();
    let mut roots = BTreeMap::new();
    for url in urls {
        let folder = storage.folder(&url)?;
        let place = folder.local_path().map_or_else(|| folder.url().to_owned(), |path| path.display().to_string());
        roots.insert(place, folder);
    }
    Ok(roots.into_values().collect())
}

/// Commits the names that are about to be deleted.
async fn begin_removal(store: &Store, found: &[Leftover], writers: Writers) -> Result<Removing> {
    let names: BTreeSet<String> = found.iter().filter_map(|leftover| leftover.removal.clone()).collect();
    let mut removing = removals_at_work(store).await?;
    if names.is_empty() && removing == store.removing() {
        return Ok(Removing::NoNames);
    }
    store.probe_conditional_put(writers).await?;
    let gives_up = !names.is_empty();
    if gives_up {
        removing.push(Removal { sequence: store.sequence() + 1, names: names.into_iter().collect() });
    }
    Ok(match put_removing(store, removing).await? {
        None => Removing::Lost,
        Some(sequence) if gives_up => Removing::Begun(sequence),
        Some(_) => Removing::NoNames,
    })
}

/// Commits that the removals of dead executions of `store gc` are over. Returns `false` if there are none. A dead
/// `store gc` deletes nothing any more, but it may have left files that it was to delete.
///
/// # Errors
/// The time of a removal's commit cannot be read, or the commit cannot be written.
pub async fn end_dead_removals(store: &Store) -> Result<bool> {
    let at_work = removals_at_work(store).await?;
    let any_dead = at_work != store.removing();
    if any_dead {
        put_removing(store, at_work).await?;
    }
    Ok(any_dead)
}

/// Returns the removals of those executions of `store gc` that are not dead.
async fn removals_at_work(store: &Store) -> Result<Vec<Removal>> {
    let mut at_work = Vec::new();
    for removal in store.removing() {
        let begun = store.folder.join(COMMITS).join(&commit_name(removal.sequence)).file().await?.modified;
        // One that was begun later than this clock says is at work.
        if begun.elapsed().unwrap_or_default() < DEAD_AFTER {
            at_work.push(removal.clone());
        }
    }
    Ok(at_work)
}

/// Commits the same nights with other removals. Returns `None` if another commit was faster.
async fn put_removing(store: &Store, removing: Vec<Removal>) -> Result<Option<u64>> {
    let Some(before) = &store.commit else {
        return Ok(None);
    };
    let commit = Commit { removing, ..before.next() };
    Ok(store.put_commit(&commit).await?.then_some(commit.sequence))
}

/// The file of a commit.
struct CommitOnDisk {
    number: u64,
    bytes: u64,
    /// The time at which the next commit was written; `None` for the newest.
    superseded: Option<SystemTime>,
}

/// The place of a file: a name below the root, and the name that commits use.
type Place = (String, Option<String>);

/// The names that commits and tables need, or needed until lately.
#[derive(Default)]
struct Needed {
    /// When each name ceased to be needed; `None` if it is needed now.
    until: HashMap<String, Option<SystemTime>>,
}

impl Needed {
    /// Adds names that were needed `until` some time, or that are needed now. The later of two times counts.
    fn add(&mut self, names: impl Iterator<Item = String>, until: Option<SystemTime>) {
        for name in names {
            let known = self.until.entry(name).or_insert(until);
            *known = (*known).zip(until).map(|(a, b)| a.max(b));
        }
    }

    /// Adds the generations that the tables of an output name, and those that they named before. The commit that
    /// replaced a generation is older than the version of the table that did: readers of the table count from then on.
    async fn add_tables(&mut self, root: &Folder, inventory: &[FoundFile]) -> Result<()> {
        let generation = |path: &str| Some(generation_name(PublishedName::parse(path)?.generation));
        for dataset in PublishedDataset::tables() {
            let prefix = format!("{}/{DELTA_LOG}/", dataset.name);
            let written = |file: &FoundFile| Some((version_of(file.name.strip_prefix(&prefix)?)?, file.modified));
            let written: HashMap<u64, SystemTime> = inventory.iter().filter_map(written).collect();
            if written.is_empty() {
                // A table `changes` whose log is lost can be read again with the log, which nothing else makes anew.
                if dataset.name == CHANGES.name {
                    let below = format!("{}/", dataset.name);
                    let of_file = |file: &FoundFile| generation(file.name.strip_prefix(&below)?);
                    self.add(inventory.iter().filter_map(of_file), None);
                }
                continue;
            }
            let log = TableLog::open(root, dataset).await?;
            self.add(log.files().filter_map(|file| generation(&file.path)), None);
            for removed in log.removed() {
                let at = written.get(&removed.version).copied();
                self.add(generation(&removed.path).into_iter(), Some(at.unwrap_or_else(SystemTime::now)));
            }
        }
        Ok(())
    }

    fn is_needed(&self, name: &str) -> bool {
        self.until.get(name).is_some_and(Option::is_none)
    }

    fn until(&self, name: &str) -> Option<SystemTime> {
        self.until.get(name).copied().flatten()
    }
}

fn grouped(
    root: &Folder,
    files: Vec<FoundFile>,
    place: impl Fn(&str) -> Option<Place>,
    needed: &Needed,
) -> Vec<Leftover> {
    let mut found: BTreeMap<Place, Vec<FoundFile>> = BTreeMap::new();
    for file in files {
        let Some((name, removal)) = place(&file.name) else {
            continue;
        };
        if removal.as_ref().is_none_or(|removal| !needed.is_needed(removal)) {
            found.entry((name, removal)).or_default().push(file);
        }
    }
    let leftover = |((name, removal), files): (Place, Vec<FoundFile>)| {
        let written = files.iter().map(|file| file.modified);
        let needed_until = removal.as_ref().and_then(|removal| needed.until(removal));
        let since = written.chain(needed_until).max().unwrap_or(SystemTime::UNIX_EPOCH);
        Leftover { root: root.clone(), name, removal, files, since }
    };
    found.into_iter().map(leftover).collect()
}

/// Returns the place of a file below the store, if its path has a form that nearprint writes. Other files are not
/// nearprint's to delete.
fn store_place(file: &str) -> Option<Place> {
    let parts: Vec<&str> = file.split('/').collect();
    match parts[..] {
        ["runs", digest, dataset, name]
            if is_digest(digest) && RUN_DATASETS.contains(&dataset) && is_part_name(name) =>
        {
            Some((run_name(digest), Some(run_name(digest))))
        }
        ["segments", digest, name] if is_digest(digest) && is_part_name(name) => {
            Some((segment_name(digest), Some(segment_name(digest))))
        }
        ["indexes", digest, table, name] if is_digest(digest) && is_table_name(table) && is_part_name(name) => {
            Some((index_name(digest), Some(index_name(digest))))
        }
        [PAGES, name] if name.strip_suffix(".json").is_some_and(is_digest) => {
            let digest = name.trim_end_matches(".json");
            Some((file.to_owned(), Some(page_name(digest))))
        }
        ["_probe", name] if name.len() == 16 && is_hex(name) => Some((file.to_owned(), None)),
        [] | [_] => None,
        ["runs" | "segments" | "indexes" | PAGES | COMMITS, .., name] => {
            is_scratch_name(name).then(|| (file.to_owned(), None))
        }
        _ => None,
    }
}

/// Returns the place of a file below an output, if its path has a form that nearprint writes. The files of a generation
/// have one place: the folder of its manifest. A set of changes belongs to no generation, and is named like one. The logs of tables are never deleted.
fn output_place(file: &str) -> Option<Place> {
    let parts: Vec<&str> = file.split('/').collect();
    let generation = |folder: String, digest: &str| {
        let name = generation_name(digest);
        Some((format!("{folder}/{name}"), Some(name)))
    };
    let digest_of = |name: &'_ str| name.strip_prefix("gen=").filter(|digest| is_digest(digest)).map(str::to_owned);
    let is_dataset = PublishedDataset::of(file).is_some();
    match &parts[..] {
        [RECORDS, night, below, MANIFEST] => {
            if let (Some(dt), Some(digest)) = (night.strip_prefix("dt="), digest_of(below)) {
                return generation(night_records(dt), &digest);
            }
        }
        [RECORDS, "_probe", name] if name.len() == 16 && is_hex(name) => return Some((file.to_owned(), None)),
        [_, path @ ..] if is_dataset => {
            if let Some(name) = PublishedName::parse(&path.join("/")) {
                if parts[0] == CHANGES.name {
                    return Some((file.to_owned(), Some(generation_name(name.generation))));
                }
                return generation(night_records(name.dt), name.generation);
            }
        }
        _ => {}
    }
    let is_own = is_dataset || parts.len() > 1 && parts[0] == RECORDS;
    (is_own && is_scratch_name(parts[parts.len() - 1])).then(|| (file.to_owned(), None))
}

const RUN_DATASETS: [&str; 8] =
    ["fingerprints", "short", "empty", "ids", "shadows", "dependents", "families", "redecided"];
