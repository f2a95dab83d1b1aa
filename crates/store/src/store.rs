//! The state of a store, and the commits that change it (docs/store-format.md).

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use nearprint_fault::{Fault, Result, Words, key, words};
use nearprint_parquet::{is_sound, mend_files};
use nearprint_storage::{Folder, in_memory};

use crate::commit::{ChangeSet, Commit, Forgotten, JoinedRuns, Night, Removal, RunRecord, SegmentRecord, Stored};
use crate::info::{NightInfo, SegmentInfo, StoreInfo};
use crate::names::{
    COMMITS, PAGES, RUNS, commit_name, commit_numbers, drawn_number, generation_name, index_name, page_name, run_name,
    segment_name, short,
};
use crate::writer::StagedRun;

/// A store in the state of its newest commit. Readers see only that state, even if others write in the meantime.
#[derive(Debug)]
pub struct Store {
    pub(crate) folder: Folder,
    /// `None` before the first night.
    pub(crate) commit: Option<Commit>,
}

/// The processes that write to a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Writers {
    /// At most one at a time. A server that ignores put-if-absent is enough.
    One,
    /// Several at once, as far as this process knows.
    #[default]
    Several,
}

/// The configuration and algorithms that made the fingerprints of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeBy {
    /// The digest of the configuration.
    pub config_digest: String,
    /// The version of the algorithms.
    pub algorithm: u32,
}

/// What the commit of a night changes besides.
#[derive(Debug, Clone)]
pub struct NightChanges {
    /// What it changes in the corpus.
    pub set: ChangeSet,
    /// Later nights in whose place it puts these, because what they decided again about the night's documents counts no more.
    pub overruled: Vec<Night>,
}

/// The run of a published night that is kept.
pub struct KeptRun {
    /// The commit's record of the run.
    pub record: RunRecord,
    /// The number of its files that were damaged or missing and were written again.
    pub n_mended_files: u64,
}

/// The number of times that a writer tries to commit while others are faster.
pub const MAX_ATTEMPTS: usize = 5;

impl Store {
    /// Opens the store at a folder, which may be empty. This takes one LIST, one GET for the commit, and one for each
    /// page.
    ///
    /// ```
    /// use nearprint_storage::Storage;
    /// use nearprint_store::Store;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let temp = nearprint_storage::TempFolder::try_new(&std::env::temp_dir())?;
    /// # let url = temp.path().join("store").display().to_string();
    /// let folder = Storage::default().folder(&url)?;
    /// let store = Store::open(&folder).await?;
    /// assert!(store.is_new() && store.nights().is_empty());
    /// assert_eq!(store.info().commit, 0);
    /// assert!(Store::open_existing(&folder).await?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the commit or a page is damaged;
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the commit has an unknown version;
    /// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if the commit was pruned after it was listed; an
    /// error if the place does not answer.
    pub async fn open(folder: &Folder) -> Result<Self> {
        let commit = match commit_numbers(folder).await?.last() {
            None => None,
            Some(&number) => {
                let place = folder.join(COMMITS).join(&commit_name(number));
                let stored = Stored::read(&place).await?.into_commit(folder).await?;
                // Commits are pruned only long after they were superseded, so the listing missed a newer one.
                let pruned = || Fault::try_again(format!("{}: pruned since it was listed", place.url()));
                Some(stored.ok_or_else(pruned)?)
            }
        };
        Ok(Self { folder: folder.clone(), commit })
    }

    /// Opens the store at a folder, or returns `None` if it has no commit.
    ///
    /// # Errors
    /// The same as those of [`open`](Self::open).
    pub async fn open_existing(folder: &Folder) -> Result<Option<Self>> {
        let opened = Self::open(folder).await?;
        Ok(opened.commit.is_some().then_some(opened))
    }

    /// Returns whether no commit follows this state. Commit numbers have no gaps, so this takes one request.
    ///
    /// # Errors
    /// The place does not answer.
    pub async fn is_newest(&self) -> Result<bool> {
        Ok(self.folder.join(COMMITS).join(&commit_name(self.sequence() + 1)).find().await?.is_none())
    }

    /// Returns whether the commit of this state is still there. While none follows it, nobody takes it away but with the store.
    ///
    /// # Errors
    /// The place does not answer.
    pub async fn is_there(&self) -> Result<bool> {
        Ok(self.folder.join(COMMITS).join(&commit_name(self.sequence())).find().await?.is_some())
    }

    /// Returns the store's folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns the folder of a run.
    pub fn run_folder(&self, digest: &str) -> Folder {
        self.folder.join(&run_name(digest))
    }

    /// Removes half-written files that killed executions left among the commits, the pages and the files of a published
    /// night's run. An execution that finds its night published writes nothing there, so it would not remove them
    /// otherwise.
    pub async fn tidy(&self, night: &Night) {
        self.folder.tidy_itself().await;
        self.folder.join(RUNS).tidy_itself().await;
        self.folder.join(COMMITS).tidy().await;
        self.folder.join(PAGES).tidy().await;
        self.run_folder(&night.run.digest).tidy().await;
    }

    /// Returns the number of the newest commit; 0 before the first.
    pub fn sequence(&self) -> u64 {
        self.commit.as_ref().map_or(0, |c| c.sequence)
    }

    /// Returns what the newest commit that changed nights changed in the corpus. `None` means that there is none, or that it
    /// is one of release 0.2.0.
    pub fn changes(&self) -> Option<&ChangeSet> {
        self.commit.as_ref()?.changes.as_ref()
    }

    /// Returns the number of sets of changes that there were.
    pub fn n_change_sets(&self) -> u64 {
        // The sets are numbered from 1.
        self.changes().map_or(0, |changes| changes.number)
    }

    /// Returns the nights, by date.
    pub fn nights(&self) -> &[Night] {
        self.commit.as_ref().map_or(&[], |c| &c.nights)
    }

    /// Returns the folder of a segment.
    pub(crate) fn segment_folder(&self, digest: &str) -> Folder {
        self.folder.join(&segment_name(digest))
    }

    /// Returns the folder of an index.
    pub(crate) fn index_folder(&self, digest: &str) -> Folder {
        self.folder.join(&index_name(digest))
    }

    /// Returns the digest of the configuration of all fingerprints, or `None` before the first night.
    pub fn config_digest(&self) -> Option<&str> {
        self.commit.as_ref().map(|commit| commit.config_digest.as_str())
    }

    /// Returns whether there is no commit yet.
    pub fn is_new(&self) -> bool {
        self.commit.is_none()
    }

    /// Returns the run of a published night if the staged run has the same documents, decisions and order. Then the
    /// published run stays, so later nights that were joined with it do not become stale. Its damaged files are written
    /// again. Returns `None` if the staged run differs, or if a damaged file cannot be written again.
    ///
    /// Shadows are not compared. They say which of two runs is the later one, and the shadow is in whichever of the two
    /// was written last.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub async fn keep_run(&self, night: &Night, staged: &StagedRun) -> Result<Option<KeptRun>> {
        if !staged.is_like(&night.run) {
            return Ok(None);
        }
        let folder = self.run_folder(&night.run.digest);
        let mut damaged = Vec::new();
        for recorded in &night.run.files {
            if !is_sound(&folder.join(&recorded.name), recorded).await? {
                let same = staged.files.iter().chain(&staged.shadows_of_earlier).find(|file| file.record == *recorded);
                let Some(same) = same else {
                    return Ok(None);
                };
                damaged.push(same);
            }
        }
        let n_mended_files = mend_files(&folder, damaged).await?;
        Ok(Some(KeptRun { record: night.run.clone(), n_mended_files }))
    }

    pub(crate) fn segments(&self) -> &[SegmentRecord] {
        self.commit.as_ref().map_or(&[], |c| &c.segments)
    }

    pub(crate) fn indexes(&self) -> &[SegmentRecord] {
        self.commit.as_ref().map_or(&[], |c| &c.indexes)
    }

    /// Returns the removals of executions of `store gc` that are at work.
    pub(crate) fn removing(&self) -> &[Removal] {
        self.commit.as_ref().map_or(&[], |c| &c.removing)
    }

    /// Returns whether a commit after this state, up to `newest`, gave up one of these names to deletion. In that case
    /// the files may be gone again, even if they were written since. A commit that was pruned in the meantime may have
    /// done so, which counts as `true`.
    pub(crate) async fn gave_up_since(&self, newest: &Self, names: &[String]) -> Result<bool> {
        for number in self.sequence() + 1..=newest.sequence() {
            let stored = Stored::read(&self.folder.join(COMMITS).join(&commit_name(number))).await?;
            let gave_up = |removal: &Removal| names.iter().any(|name| removal.names.contains(name));
            if stored.removing().is_none_or(|removing| removing.iter().any(gave_up)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Refuses to create something again while `store gc` is deleting it.
    ///
    /// # Errors
    /// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if a removal at work has this name.
    pub fn refuse_removing(&self, name: &str) -> Result<()> {
        if self.removing().iter().all(|removal| removal.names.iter().all(|n| n != name)) {
            return Ok(());
        }
        let reason = format!(
            "{}: `store gc` is deleting an earlier {name}; one that was killed stands in the way for an hour",
            self.folder.url()
        );
        Err(Fault::try_again(reason))
    }

    /// Returns the night of a date.
    pub fn night(&self, dt: &str) -> Option<&Night> {
        self.nights().iter().find(|n| n.dt == dt)
    }

    /// Returns the date of the night that was last added, replaced or dropped by itself, or `None` before the first
    /// night.
    pub fn changed_night(&self) -> Option<&str> {
        self.commit.as_ref().map(|commit| commit.dt.as_str())
    }

    /// Returns what the store has forgotten, or `None` if it has forgotten no night by its age.
    pub fn forgotten(&self) -> Option<&Forgotten> {
        self.commit.as_ref()?.forgotten.as_ref()
    }

    /// Returns whether the newest commit says that the store has a night no more: because the night was the last to be
    /// dropped, or by its age.
    pub fn has_dropped(&self, dt: &str) -> bool {
        let is_forgotten = self.forgotten().is_some_and(|forgotten| dt < forgotten.before.as_str());
        is_forgotten || self.changed_night() == Some(dt) && self.night(dt).is_none()
    }

    /// Returns the nights with which a night of date `dt` is joined: those of earlier dates.
    pub fn before(&self, dt: &str) -> Vec<&Night> {
        self.nights().iter().filter(|n| n.dt.as_str() < dt).collect()
    }

    /// Returns the digest of the list of runs with which a night of date `dt` is joined.
    pub fn joined_before(&self, dt: &str) -> String {
        self.nights_before(dt).digest()
    }

    /// Returns whether nights of earlier dates were added, replaced or dropped since a night was joined with them. A night
    /// whose decisions about them were overruled stays stale even if the earlier nights came back as they were.
    pub fn is_stale(&self, night: &Night) -> bool {
        is_stale(night, &self.joined_before(&night.dt))
    }

    pub(crate) fn forgotten_runs(&self) -> Option<&str> {
        self.forgotten().map(|forgotten| forgotten.runs.as_str())
    }

    /// Refuses a store whose fingerprints cannot be compared with those of the configuration `digest`. `differing` names
    /// the settings in which the configuration of another digest differs from it, as far as that can be told.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the store has another configuration.
    pub fn refuse_other_config<D: Into<Words>>(
        &self,
        digest: &str,
        differing: impl FnOnce(&str) -> Vec<D>,
    ) -> Result<()> {
        let remedy = (
            "give the store's value, or start a new store".into(),
            words![
                "use its settings of the profile, its files (",
                key("user_dictionary"),
                ", ",
                key("stop_words"),
                ", ",
                key("idf"),
                "), its selector in ",
                key("html_text"),
                ", and the release that made it, or start a new store"
            ],
        );
        self.refuse_unlike(digest, differing, remedy)
    }

    /// Refuses this store as a reference of a night with the configuration `digest`, if its fingerprints cannot be
    /// compared with the night's. `differing` is that of [`refuse_other_config`](Self::refuse_other_config).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the store has another configuration.
    pub fn refuse_as_reference<D: Into<Words>>(
        &self,
        digest: &str,
        differing: impl FnOnce(&str) -> Vec<D>,
    ) -> Result<()> {
        let remedy = words![
            "take it out of ",
            key("references"),
            ", or name a store that was made of the same documents with this one's profile and release"
        ];
        self.refuse_unlike(digest, differing, (remedy.clone(), remedy))
    }

    /// The remedies are those for settings that are known to differ, and for others.
    fn refuse_unlike<D: Into<Words>>(
        &self,
        digest: &str,
        differing: impl FnOnce(&str) -> Vec<D>,
        (of_known, of_unknown): (Words, Words),
    ) -> Result<()> {
        let Some(commit) = self.commit.as_ref().filter(|commit| commit.config_digest != digest) else {
            return Ok(());
        };
        let known = differing(&commit.config_digest);
        let what = "the store was made with another configuration";
        let reason = match known.is_empty() {
            false => {
                let known = Words::joined(known.into_iter().map(Into::into), ", ");
                words![what, ": ", known, ": ", of_known]
            }
            true => words![
                format!(
                    "{what} (its digest {}, this one's {}), which no named profile explains: ",
                    short(&commit.config_digest),
                    short(digest)
                ),
                of_unknown
            ],
        };
        Err(Fault::refused(self.folder.url().to_owned(), reason))
    }

    /// Makes a night visible, in place of one with the same date. The same commit forgets the nights before the
    /// `keep_nights` newest, unless the night is one of the [future](Night::future). If other nights were committed first, the result is `false`, because this night may have to be joined with
    /// them. It is also `false` if `store gc` has given up the night's files in the meantime, or if others commit again
    /// and again. If only a compaction was faster, the night is committed on top of it.
    ///
    /// # Errors
    /// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if `store gc` is deleting something that the
    /// commit needs; an error if the store cannot be read or written.
    pub async fn commit(
        &self,
        night: &Night,
        changes: &NightChanges,
        keep_nights: Option<NonZeroU32>,
        made_by: &MadeBy,
    ) -> Result<bool> {
        if self.put_night(night, changes, keep_nights, made_by).await? {
            return Ok(true);
        }
        let names = [run_name(&night.run.digest), generation_name(&night.gen_digest)];
        let of_overruled = changes.overruled.iter().map(|night| generation_name(&night.gen_digest));
        let names: Vec<String> = names.into_iter().chain(of_overruled).chain(changes.set.names()).collect();
        for _ in 1..MAX_ATTEMPTS {
            let newest = Self::open(&self.folder).await?;
            // Nights may come back as they were, but the change sets between would have been passed over.
            let changed = newest.nights() != self.nights() || newest.n_change_sets() != self.n_change_sets();
            if changed || self.gave_up_since(&newest, &names).await? {
                return Ok(false);
            }
            if newest.put_night(night, changes, keep_nights, made_by).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn put_night(
        &self,
        night: &Night,
        changes: &NightChanges,
        keep_nights: Option<NonZeroU32>,
        made_by: &MadeBy,
    ) -> Result<bool> {
        debug_assert_eq!(
            changes.set.number,
            self.n_change_sets() + 1,
            "a commit that changes nights says what it changes"
        );
        debug_assert!(
            !night.dt.is_empty() && !night.run.digest.is_empty() && !night.gen_digest.is_empty(),
            "a night, its run files and its generation have names"
        );
        let mut nights: BTreeMap<String, Night> = self.nights().iter().map(|n| (n.dt.clone(), n.clone())).collect();
        nights.insert(night.dt.clone(), night.clone());
        nights.extend(changes.overruled.iter().map(|night| (night.dt.clone(), night.clone())));
        let commit = Commit {
            algorithm: made_by.algorithm,
            sequence: self.sequence() + 1,
            parent: self.commit.as_ref().map(|c| c.sequence),
            dt: night.dt.clone(),
            config_digest: made_by.config_digest.clone(),
            nights: Vec::new(),
            segments: self.segments().to_vec(),
            indexes: self.indexes().to_vec(),
            forgotten: self.forgotten().cloned(),
            changes: Some(changes.set.clone()),
            removing: self.removing().to_vec(),
            pages: Vec::new(),
        };
        let commit = commit.with_nights(nights.into_values().collect());
        let commit = match keep_nights.filter(|_| !night.future) {
            Some(n) => commit.keeping(in_memory(u64::from(n.get()))),
            None => commit,
        };
        self.put_commit(&commit).await
    }

    /// Writes a commit. Returns `false` if another commit with this number was faster.
    ///
    /// Invariants: no commit names anything that an earlier commit gives up to deletion. If an execution has written
    /// such files again before they were deleted, it ends here. Pages are written before the commit that names them.
    /// The pages of the commit before this one exist, because nobody deletes them while it is the newest.
    pub(crate) async fn put_commit(&self, commit: &Commit) -> Result<bool> {
        for night in &commit.nights {
            self.refuse_removing(&run_name(&night.run.digest))?;
            self.refuse_removing(&generation_name(&night.gen_digest))?;
        }
        for name in commit.changes.iter().flat_map(ChangeSet::names) {
            self.refuse_removing(&name)?;
        }
        for segment in &commit.segments {
            self.refuse_removing(&segment_name(&segment.digest))?;
        }
        for index in &commit.indexes {
            self.refuse_removing(&index_name(&index.digest))?;
        }
        debug_assert_eq!(
            commit.parent,
            Some(self.sequence()).filter(|_| !self.is_new()),
            "a commit follows the state that it changes"
        );
        let encoded = commit.encode()?;
        let known = self.commit.as_ref().map_or(&[][..], |before| &before.pages);
        for ((place, content), digest) in encoded.pages.into_iter().zip(&encoded.page_digests) {
            self.refuse_removing(&page_name(digest))?;
            if commit.removing.iter().any(|removal| removal.names.contains(&page_name(digest))) {
                let reason = format!("commit {} would give up its own page {digest}", commit.sequence);
                return Err(Fault::internal("commit", reason));
            }
            if !known.contains(digest) {
                self.folder.join(&place).put(content).await?;
            }
        }
        let place = self.folder.join(COMMITS).join(&commit_name(commit.sequence));
        place.put_if_absent(encoded.commit).await
    }

    /// Checks that an S3 server keeps the promise on which commits depend: a second put-if-absent must fail. With
    /// [`Writers::One`] the promise is not needed, and a server that breaks it only causes a warning.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the server breaks the promise; an error if it does
    /// not answer.
    pub async fn probe_conditional_put(&self, writers: Writers) -> Result<()> {
        probe_conditional_put(&self.folder, writers).await
    }

    /// Describes the content of the store.
    pub fn info(&self) -> StoreInfo {
        let nights: Vec<NightInfo> = JoinedRuns::before_each(self.forgotten_runs(), self.nights())
            .map(|(night, before)| night_info(night, &before))
            .collect();
        StoreInfo {
            store: self.folder.url().to_owned(),
            commit: self.sequence(),
            config_digest: self.commit.as_ref().map(|c| c.config_digest.clone()),
            n_nights: nights.len() as u64,
            n_fingerprints: nights.iter().map(|n| n.n_fingerprints).sum(),
            n_short: nights.iter().map(|n| n.n_short).sum(),
            bytes: nights.iter().map(|n| n.bytes).sum(),
            forgotten_before: self.forgotten().map(|forgotten| forgotten.before.clone()),
            nights,
            segments: self.segments().iter().map(|segment| self.segment_info(segment)).collect(),
            indexes: self.indexes().iter().map(|index| self.segment_info(index)).collect(),
        }
    }

    fn segment_info(&self, segment: &SegmentRecord) -> SegmentInfo {
        let live = self.nights().iter().filter(|n| segment.runs.contains(&n.run.digest));
        SegmentInfo {
            digest: segment.digest.clone(),
            n_runs: segment.runs.len() as u64,
            n_live_runs: live.count() as u64,
            n_rows: segment.n_rows,
            n_parts: segment.files.len() as u64,
            bytes: segment.files.iter().map(|f| f.bytes).sum(),
        }
    }
}

/// Checks that an S3 server keeps the promise of put-if-absent, like [`Store::probe_conditional_put`]. The logs of tables
/// depend on it too.
///
/// # Errors
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the server breaks the promise; an error if it does not
/// answer.
pub async fn probe_conditional_put(folder: &Folder, writers: Writers) -> Result<()> {
    if !folder.is_remote() {
        return Ok(());
    }
    let probe = folder.join("_probe").join(&format!("{:016x}", drawn_number()));
    probe.create("first".into()).await?;
    let overwritten = probe.create("second".into()).await?;
    probe.delete().await?;
    if !overwritten {
        return Ok(());
    }
    if writers == Writers::One {
        let store = folder.url();
        tracing::warn!(store, "the server ignores If-None-Match on PUT: two writers at once would lose nights");
        return Ok(());
    }
    let reason = words![
        "the server ignores If-None-Match on PUT, so two runs could overwrite each other: use another server, or set ",
        key("single_writer"),
        " where never two write at once"
    ];
    Err(Fault::refused(folder.url().to_owned(), reason.to_owned()))
}

/// Describes a night. `before` is the digest of the runs of all earlier dates.
fn night_info(night: &Night, before: &str) -> NightInfo {
    NightInfo {
        dt: night.dt.clone(),
        run: night.run.digest.clone(),
        n_fingerprints: night.run.n_fingerprints,
        n_short: night.run.n_short,
        bytes: night.run.files.iter().map(|f| f.bytes).sum(),
        output: night.output_root().to_owned(),
        stale: is_stale(night, before),
    }
}

fn is_stale(night: &Night, joined_before: &str) -> bool {
    night.joined != joined_before || !night.overruled.is_empty()
}
