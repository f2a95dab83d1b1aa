//! Commits. Creating a commit is the one step that makes a night visible.
//!
//! A commit names all nights, but contains only the latest of them. The earlier ones, by date, are divided into *pages*
//! of [`PAGE_NIGHTS`] nights. A page is an object of its own. It is named by its content, and all commits with the same
//! nights share it. So the data that a night adds to the history does not grow with the number of nights before it.

use std::collections::BTreeMap;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use nearprint_fault::{Fault, Result, foreign};
use nearprint_parquet::{FileRecord, PublishedName, published_path};
use nearprint_storage::{Folder, Sha256Hex};
use serde::{Deserialize, Serialize};

use crate::error::damaged_commit;
use crate::names::{generation_name, index_name, night_records, page_name, run_name, segment_name};

pub const VERSION: u32 = 2;

/// What to do with a store that only releases before 0.2.0 can read.
const MAKE_ANEW: &str = "name another store and another output, and run its nights again";

/// The number of nights in a page. A commit itself contains fewer.
const PAGE_NIGHTS: usize = 32;

/// A complete state of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The version of the algorithms that made the newest night.
    pub algorithm: u32,
    /// The number of the commit.
    pub sequence: u64,
    /// The number of the commit before this one, or `None` in the first.
    pub parent: Option<u64>,
    /// The date of the night that was last added, replaced or dropped by itself, by this commit or one before it.
    pub dt: String,
    /// The digest of the configuration of all fingerprints.
    pub config_digest: String,
    /// The nights, by date.
    pub nights: Vec<Night>,
    /// The segments that `store compact` made.
    pub segments: Vec<SegmentRecord>,
    /// The indexes that `store index` made.
    pub indexes: Vec<SegmentRecord>,
    /// The nights that the store has forgotten by their age, or `None` if there are none.
    pub forgotten: Option<Forgotten>,
    /// What the newest commit that changed nights changed in the corpus, or `None` if that was one of release 0.2.0.
    pub changes: Option<ChangeSet>,
    /// The names that `store gc` is deleting. A commit that needs one of them is refused.
    pub removing: Vec<Removal>,
    /// The digests of the pages from which the commit was read. [`encode`](Self::encode) ignores them.
    pub pages: Vec<String>,
}

/// The content of a file in `_commits/`.
#[derive(Debug)]
pub enum Stored {
    /// A commit whose pages are not read yet.
    Whole(Box<CommitFile>),
    /// A commit with this number whose content `store gc` removed, because no reader needs it any more. The number
    /// stays in use.
    Pruned(u64),
}

/// A commit in the form in which it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitFile {
    version: u32,
    algorithm: u32,
    pub sequence: u64,
    pub parent: Option<u64>,
    dt: String,
    config_digest: String,
    /// The digests of the pages with the earlier nights, by date.
    pages: Vec<String>,
    nights: Vec<Night>,
    /// The digest of the page with the segments. The field is left out if there are none, as in a store that was never
    /// compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    segments: Option<String>,
    /// The digest of the page with the indexes. The field is left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    indexes: Option<String>,
    /// The field is left out in a store that has forgotten no night by its age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forgotten: Option<Forgotten>,
    /// The field is left out after a commit of release 0.2.0. Releases that do not know it refuse the commit: they would
    /// change nights and not say so to those who follow the changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<ChangeSet>,
    /// The field is left out if the list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removing: Vec<Removal>,
    /// The SHA-256 of the commit's JSON without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// Content that commits share, in `pages/<digest>.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Page {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nights: Vec<Night>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    segments: Vec<SegmentRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    indexes: Vec<SegmentRecord>,
}

/// The names that one `store gc` is deleting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removal {
    /// The number of the commit that began the removal.
    pub sequence: u64,
    /// Names of the form `runs/<digest>`, `segments/<digest>`, `indexes/<digest>`, `pages/<digest>` or `gen=<digest>`,
    /// sorted.
    pub names: Vec<String>,
}

/// The nights that a store has forgotten by their age. Invariant: no night of the commit has an earlier date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forgotten {
    /// The date. All nights before it are forgotten.
    pub before: String,
    /// The digest of their runs, with which the lists of joined runs of later nights begin ([`JoinedRuns`]).
    pub runs: String,
}

/// What a commit changes in the corpus: files of the dataset `changes`. The tables follow it, and only then another commit
/// changes nights.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSet {
    /// The number of the set, from 1.
    pub number: u64,
    /// The outputs whose tables change.
    pub outputs: Vec<ChangedOutput>,
    /// The number of the newest set of which the table of an output has rows, by the root of its results. It is 0 if it has none.
    /// Outputs without a night of the store are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub newest: BTreeMap<String, u64>,
}

/// The files that a set of changes brings into the table of an output, and takes out of it. Their names are paths below the
/// output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedOutput {
    /// The root of the results.
    pub output: String,
    /// The files that leave the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The files that come into it.
    pub added: Vec<FileRecord>,
    /// The number of the newest set of which the table had rows before, or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

impl ChangedOutput {
    /// Returns the digest in the names of the files of a set of changes. Their names are those that the files have when they
    /// are staged, such as `changes/part-00000.parquet`.
    #[must_use]
    pub fn digest(staged: &[FileRecord]) -> String {
        run_digest(staged)
    }

    /// Returns staged files under the names that they have below an output, as files that come into its table. `dt` is the
    /// date under which the table has them.
    #[must_use]
    pub fn adding(output: &str, dt: &str, staged: &[FileRecord]) -> Self {
        // Rows have the number of their set, so only equal sets of one number have equal names.
        let digest = Self::digest(staged);
        let named = |file: &FileRecord| FileRecord { name: published_path(&file.name, dt, &digest), ..file.clone() };
        Self { output: output.to_owned(), removed: Vec::new(), added: staged.iter().map(named).collect(), after: None }
    }
}

impl ChangeSet {
    /// Returns the names of its files, in the form that removals use.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let added = self.outputs.iter().flat_map(|output| &output.added);
        added.filter_map(|file| Some(generation_name(PublishedName::parse(file.name.split_once('/')?.1)?.generation)))
    }
}

/// A night: its run in the store, and its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Night {
    /// The date.
    pub dt: String,
    /// The run.
    pub run: RunRecord,
    /// The digest of the list of runs with which the night was joined ([`JoinedRuns`]).
    pub joined: String,
    /// The digest by which the lists of later nights name the night's run, if ids were forgotten in the run since the
    /// first of them was joined. It is the digest that the run had then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_as: Option<String>,
    /// The folder with the manifests of the night's generations: `<output>/_nearprint/dt=D`.
    pub output: String,
    /// The digest of everything from which the night was made: inputs, configuration and joined runs. An execution with
    /// the same request finds the night published.
    pub request: String,
    /// The digest of the published files, which is the name of the generation.
    #[serde(rename = "gen")]
    pub gen_digest: String,
    /// The SHA-256 of the night's manifest.
    pub manifest_sha256: String,
    /// The date was far ahead of the night's documents when the night was published, which was asked for. Such a
    /// night never counts among the newest ones that a store keeps, and forgets none. The field is left out if it is not
    /// so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub future: bool,
    /// The night's run says about rows of other runs that they were decided again. Releases that do not know this refuse
    /// the commit: they would take documents for dropped that are kept. The field is left out if it is not so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redecides: bool,
    /// The night's results have stubs, of which its run knows nothing. The field is left out if it is not so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_stubs: bool,
    /// The dates of earlier nights that were made, or made again, since: what this night decided again about their documents
    /// counts no more. The field is left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overruled: Vec<String>,
}

impl Night {
    /// Returns the digest by which lists of joined runs name the night's run. Forgetting ids in a run leaves it as it
    /// is, so later nights do not become stale.
    #[must_use]
    pub fn joined_as(&self) -> &str {
        self.joined_as.as_ref().unwrap_or(&self.run.digest)
    }

    /// Returns the root of the results: the output, as it was given to the run that published the night.
    #[must_use]
    pub fn output_root(&self) -> &str {
        let records = night_records(&self.dt);
        debug_assert!(self.output.ends_with(&records), "commits that name another folder are refused: {self:?}");
        match self.output.strip_suffix(&records).unwrap_or(&self.output) {
            "" => ".",
            "/" => "/",
            root => root.strip_suffix('/').unwrap_or(root),
        }
    }

    /// Returns the path of the night's generation below the root of the results: the folder with its manifest.
    #[must_use]
    pub fn generation_path(&self) -> String {
        format!("{}/{}", night_records(&self.dt), generation_name(&self.gen_digest))
    }

    /// Returns the path below the root of the results of a file that the night's manifest names.
    #[must_use]
    pub fn file_path(&self, name: &str) -> String {
        published_path(name, &self.dt, &self.gen_digest)
    }
}

/// The files of a run, in `runs/<digest>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// The digest of the digests of the files.
    pub digest: String,
    /// The number of documents with a fingerprint.
    pub n_fingerprints: u64,
    /// The number of documents below the feature floor.
    pub n_short: u64,
    /// The files.
    pub files: Vec<FileRecord>,
}

impl RunRecord {
    /// Returns whether the run has a file of this name.
    #[must_use]
    pub fn has_file(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name.split('/').next() == Some(name))
    }

    /// Returns whether release 0.2.0 made the run: its runs do not say which rows were dropped for which documents.
    #[must_use]
    pub fn is_of_release_0_2(&self) -> bool {
        !self.has_file("dependents")
    }

    /// Returns whether the run says about rows of other runs that they were decided again.
    #[must_use]
    pub fn redecides(&self) -> bool {
        self.has_file("redecided")
    }

    /// Returns the number of documents, with and without a fingerprint.
    #[must_use]
    pub fn n_documents(&self) -> u64 {
        self.files.iter().filter(|file| file.name.starts_with("ids/")).map(|file| file.rows).sum()
    }
}

/// Returns the name of a run, which is a digest of its content.
pub(crate) fn run_digest(files: &[FileRecord]) -> String {
    debug_assert!(
        files.iter().all(|f| f.sha256.len() == 64 && !f.name.is_empty()),
        "a digest of files rests on their names and SHA-256"
    );
    let lines: String = files.iter().map(|f| format!("{} {}\n", f.name, f.sha256)).collect();
    Sha256Hex::of(lines.as_bytes()).0[..32].to_owned()
}

/// The merged fingerprints of several runs, in `segments/<digest>`. A segment is derived from its runs, which remain
/// the source of truth. The record of an index, in `indexes/<digest>`, has the same form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentRecord {
    /// The digest of the segment's runs, and of the way in which it is cut into files.
    pub digest: String,
    /// The digests of the runs, by date. The rows of the segment name a run by its position in this list.
    pub runs: Vec<String>,
    /// The number of fingerprints.
    pub n_rows: u64,
    /// The files: of a segment by ascending range of fingerprints, of an index by table.
    pub files: Vec<FileRecord>,
}

/// The digest of the runs with which a night is joined. The runs are added one after another, by date.
///
/// Forgotten nights stay in the digest: it begins with theirs. So a night that was joined with them is stale only if one
/// of the nights that are left has changed.
#[derive(Debug, Clone, Default)]
pub struct JoinedRuns(String);

impl JoinedRuns {
    /// Returns the digest of a list of runs, which are given by their digests. `forgotten` is the digest of the forgotten
    /// runs before them, if there are any.
    pub fn of<'a>(forgotten: Option<&str>, digests: impl IntoIterator<Item = &'a String>) -> String {
        let mut joined = Self::after(forgotten);
        digests.into_iter().for_each(|digest| joined.push(digest));
        joined.digest()
    }

    fn after(forgotten: Option<&str>) -> Self {
        // The list begins with the empty text if nothing was forgotten.
        Self(forgotten.unwrap_or_default().to_owned())
    }

    fn push(&mut self, digest: &str) {
        // All digests have the same length, so different lists give different texts here.
        self.0 = Sha256Hex::of(format!("{}{digest}", self.0).as_bytes()).0;
    }

    fn digest(&self) -> String {
        Sha256Hex::of(self.0.as_bytes()).0[..32].to_owned()
    }

    /// Returns each night with the digest of all runs before it. The nights must be sorted by date.
    pub fn before_each<'a>(
        forgotten: Option<&str>,
        nights: &'a [Night],
    ) -> impl Iterator<Item = (&'a Night, String)> + use<'a> {
        nights.iter().scan(Self::after(forgotten), |joined, night| {
            let before = joined.digest();
            joined.push(night.joined_as());
            Some((night, before))
        })
    }
}

impl Stored {
    /// Reads the commit at a place.
    ///
    /// # Errors
    /// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if there is none;
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if its content is damaged;
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if it has an unknown version; an error if the place
    /// does not answer.
    pub async fn read(place: &Folder) -> Result<Self> {
        let content = place.get().await?;
        let missing = || Fault::try_again(format!("{}: listed, but gone when read", place.url()));
        Self::parse(place.url(), &content.ok_or_else(missing)?)
    }

    /// Parses a commit. Content that differs in any byte from what a release wrote is refused: a commit is canonical
    /// JSON and contains its own checksum.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the content is damaged;
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if it has an unknown version.
    pub fn parse(url: &str, content: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            version: Option<u32>,
            pruned: Option<u64>,
        }
        let head: Head = from_json(url, content)?;
        match head {
            Head { pruned: Some(number), version: None } if pruned(number) == content => Ok(Self::Pruned(number)),
            Head { version: Some(VERSION), .. } => CommitFile::parse(url, content).map(|c| Self::Whole(Box::new(c))),
            Head { version: Some(version), .. } => {
                let remedy = if version < VERSION { MAKE_ANEW } else { "use the release that wrote it" };
                let reason = format!("commit version {version} is not {VERSION}: {remedy}");
                Err(Fault::refused(url.to_owned(), reason))
            }
            Head { .. } => Err(damaged_commit(url, "not a commit of a nearprint store")),
        }
    }

    /// Returns the commit's number and its parent's number. A pruned commit does not say its parent.
    pub fn place(&self) -> (u64, Option<u64>) {
        match self {
            Self::Whole(commit) => (commit.sequence, commit.parent),
            Self::Pruned(number) => (*number, None),
        }
    }

    /// Returns the names that `store gc` was deleting, or `None` if the commit was pruned.
    pub fn removing(&self) -> Option<&[Removal]> {
        match self {
            Self::Whole(commit) => Some(&commit.removing),
            Self::Pruned(_) => None,
        }
    }

    /// Returns the commit with its pages, which are below `store`, or `None` if the commit was pruned.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a page is missing or damaged;
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if a night is of a release before 0.2.0; an error if the
    /// store does not answer.
    pub async fn into_commit(self, store: &Folder) -> Result<Option<Commit>> {
        match self {
            Self::Whole(commit) => commit.with_pages(store).await.map(Some),
            Self::Pruned(_) => Ok(None),
        }
    }

    /// Returns the nights and the needed names of the commit, with those of its pages that are not in `seen`. These
    /// pages are added to `seen`.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a page is missing or damaged; an error if the
    /// store does not answer.
    pub async fn unseen(self, store: &Folder, seen: &mut HashSet<String>) -> Result<(Vec<Night>, Vec<String>)> {
        let commit = match self {
            Self::Pruned(_) => return Ok((Vec::new(), Vec::new())),
            Self::Whole(mut commit) => {
                commit.pages.retain(|page| seen.insert(page.clone()));
                commit.segments = commit.segments.filter(|page| seen.insert(page.clone()));
                commit.indexes = commit.indexes.filter(|page| seen.insert(page.clone()));
                commit.with_pages(store).await?
            }
        };
        let names = commit.names().collect();
        Ok((commit.nights, names))
    }
}

impl CommitFile {
    fn parse(url: &str, content: &[u8]) -> Result<Self> {
        let commit: Self = from_json(url, content)?;
        if to_json(&commit)? != content {
            return Err(damaged_commit(url, "a commit that no release wrote in this form"));
        }
        if commit.sha256.as_deref() != Some(commit.own_sha256()?.as_str()) {
            return Err(damaged_commit(url, "its content is not what its own SHA-256 says"));
        }
        Ok(commit)
    }

    fn own_sha256(&self) -> Result<String> {
        Ok(Sha256Hex::of(&to_json(&Self { sha256: None, ..self.clone() })?).0)
    }

    async fn with_pages(self, store: &Folder) -> Result<Commit> {
        use futures::{StreamExt, TryStreamExt};
        let pages: Vec<String> = self.pages.iter().chain(&self.segments).chain(&self.indexes).cloned().collect();
        let read = futures::stream::iter(pages.clone()).map(|digest| async move { Page::read(store, &digest).await });
        let read: Vec<Page> = read.buffered(PAGES_AT_ONCE).try_collect().await?;
        let (mut nights, mut segments, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
        for page in read {
            nights.extend(page.nights);
            segments.extend(page.segments);
            indexes.extend(page.indexes);
        }
        nights.extend(self.nights);
        if let Some(night) = nights.iter().find(|night| !night.output.ends_with(&night_records(&night.dt))) {
            let reason = format!("the results of night {} are no tables, as before 0.2.0: {MAKE_ANEW}", night.dt);
            return Err(Fault::refused(store.url(), reason));
        }
        Ok(Commit {
            algorithm: self.algorithm,
            sequence: self.sequence,
            parent: self.parent,
            dt: self.dt,
            config_digest: self.config_digest,
            nights,
            segments,
            indexes,
            forgotten: self.forgotten,
            changes: self.changes,
            removing: self.removing,
            pages,
        })
    }
}

/// The number of pages that are read at once.
const PAGES_AT_ONCE: usize = 16;

impl Page {
    async fn read(store: &Folder, digest: &str) -> Result<Self> {
        let place = store.join(&page_file(digest));
        let content =
            place.get().await?.ok_or_else(|| damaged_commit(place.url(), "a commit names it, but it is gone"))?;
        if page_digest(&content) != digest {
            return Err(damaged_commit(place.url(), "its content is not what its name says"));
        }
        from_json(place.url(), &content)
    }
}

fn page_digest(content: &[u8]) -> String {
    Sha256Hex::of(content).0[..32].to_owned()
}

fn page_file(digest: &str) -> String {
    format!("{}.json", page_name(digest))
}

/// A commit as bytes, together with the pages that it names. A page consists of its path below the store and its
/// content.
pub struct Encoded {
    pub commit: Bytes,
    pub pages: Vec<(String, Bytes)>,
    pub page_digests: Vec<String>,
}

impl Commit {
    /// Encodes the commit and its pages.
    ///
    /// Invariant: the same state always has the same bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if the state cannot be written as JSON.
    pub fn encode(&self) -> Result<Encoded> {
        let n_paged = self.nights.len() / PAGE_NIGHTS * PAGE_NIGHTS;
        let (earlier, latest) = self.nights.split_at(n_paged);
        let mut encoded = Encoded { commit: Bytes::new(), pages: Vec::new(), page_digests: Vec::new() };
        for nights in earlier.chunks(PAGE_NIGHTS) {
            encoded.add(&Page { nights: nights.to_vec(), ..Page::default() })?;
        }
        let pages = encoded.page_digests.clone();
        let segments = match self.segments.is_empty() {
            true => None,
            false => Some(encoded.add(&Page { segments: self.segments.clone(), ..Page::default() })?),
        };
        let indexes = match self.indexes.is_empty() {
            true => None,
            false => Some(encoded.add(&Page { indexes: self.indexes.clone(), ..Page::default() })?),
        };
        let file = CommitFile {
            version: VERSION,
            algorithm: self.algorithm,
            sequence: self.sequence,
            parent: self.parent,
            dt: self.dt.clone(),
            config_digest: self.config_digest.clone(),
            pages,
            nights: latest.to_vec(),
            segments,
            indexes,
            forgotten: self.forgotten.clone(),
            changes: self.changes.clone(),
            removing: self.removing.clone(),
            sha256: None,
        };
        encoded.commit = to_json(&CommitFile { sha256: Some(file.own_sha256()?), ..file })?;
        Ok(encoded)
    }

    /// Returns the commit after this one, with the same state.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { sequence: self.sequence + 1, parent: Some(self.sequence), ..self.clone() }
    }

    /// Returns the commit with other nights. It has only the segments and indexes of which at least half of the rows are
    /// of their runs: nobody would read the others, so they would take up room for nothing.
    #[must_use]
    pub fn with_nights(self, nights: Vec<Night>) -> Self {
        let rows: HashMap<&str, u64> = nights.iter().map(|n| (n.run.digest.as_str(), n.run.n_fingerprints)).collect();
        let n_live =
            |segment: &SegmentRecord| -> u64 { segment.runs.iter().filter_map(|run| rows.get(run.as_str())).sum() };
        let live = |derived: Vec<SegmentRecord>| {
            derived.into_iter().filter(|record| is_worth_reading(n_live(record), record)).collect()
        };
        let (segments, indexes) = (live(self.segments), live(self.indexes));
        Self { nights, segments, indexes, ..self }
    }

    /// Returns the commit without the nights before a date, and these nights. Nothing changes if there are none.
    #[must_use]
    pub fn forgetting_before(mut self, date: &str) -> (Self, Vec<Night>) {
        let (gone, left): (Vec<Night>, Vec<Night>) =
            std::mem::take(&mut self.nights).into_iter().partition(|night| night.dt.as_str() < date);
        if !gone.is_empty() {
            let mut runs = JoinedRuns::after(self.forgotten.as_ref().map(|forgotten| forgotten.runs.as_str()));
            gone.iter().for_each(|night| runs.push(night.joined_as()));
            self.forgotten = Some(Forgotten { before: date.to_owned(), runs: runs.0 });
        }
        debug_assert!(
            gone.last().zip(left.first()).is_none_or(|(gone, left)| gone.dt < left.dt),
            "what is forgotten is older than what stays"
        );
        (self.with_nights(left), gone)
    }

    /// Returns the commit without the nights before the `n` newest, among which nights of the
    /// [future](Night::future) do not count.
    #[must_use]
    pub fn keeping(self, n: usize) -> Self {
        let oldest = self.nights.iter().filter(|night| !night.future).nth_back(n.saturating_sub(1));
        match oldest.map(|night| night.dt.clone()) {
            Some(oldest) => self.forgetting_before(&oldest).0,
            None => self,
        }
    }

    /// Returns the names of everything that the commit needs, in the form that removals use.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let nights = self.nights.iter().flat_map(|n| [run_name(&n.run.digest), generation_name(&n.gen_digest)]);
        let segments = self.segments.iter().map(|s| segment_name(&s.digest));
        let indexes = self.indexes.iter().map(|index| index_name(&index.digest));
        let changes = self.changes.iter().flat_map(ChangeSet::names);
        nights.chain(segments).chain(indexes).chain(changes).chain(self.pages.iter().map(|page| page_name(page)))
    }
}

/// Returns whether a join reads a segment, of whose rows `n_live` take part, and not their runs. The same holds for a lookup
/// and an index.
pub fn is_worth_reading(n_live: u64, segment: &SegmentRecord) -> bool {
    n_live > 0 && 2 * n_live >= segment.n_rows
}

impl Encoded {
    fn add(&mut self, page: &Page) -> Result<String> {
        let content = to_json(page)?;
        let digest = page_digest(&content);
        self.pages.push((page_file(&digest), content));
        self.page_digests.push(digest.clone());
        Ok(digest)
    }
}

/// Returns the content that `store gc` leaves in a commit that no reader needs any more.
pub fn pruned(number: u64) -> Bytes {
    Bytes::from(format!("{{\"pruned\":{number}}}\n"))
}

fn from_json<T: serde::de::DeserializeOwned>(url: &str, content: &[u8]) -> Result<T> {
    serde_json::from_slice(content)
        .map_err(|e| damaged_commit(url, format!("not a commit of a nearprint store ({})", foreign(&e))))
}

/// Returns canonical JSON: one line, with the fields in the order of their declaration.
///
/// # Errors
/// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if the value cannot be written as JSON.
pub fn to_json<T: Serialize>(value: &T) -> Result<Bytes> {
    let text = serde_json::to_string(value).map_err(|e| Fault::internal("commit", e))?;
    Ok(Bytes::from(text + "\n"))
}
