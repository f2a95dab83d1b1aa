//! The commit: the one object whose creation makes a night visible.
//!
//! A commit names all nights, but holds only the latest of them: each [`PAGE_NIGHTS`] earlier ones, by date, are a *page*, an object of
//! its own that is named by its content and shared by all commits that have the same nights in it. So what a night adds to the history
//! does not grow with the nights before it.

use std::collections::HashSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::names::{generation_name, page_name, run_name, segment_name};
use nearprint_dataset::FileRecord;
use nearprint_storage::Folder;
use nearprint_storage::Sha256Hex;

pub const VERSION: u32 = 2;

/// Nights of a page. A commit holds fewer itself.
const PAGE_NIGHTS: usize = 32;

/// A state of the store, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Version of the algorithms that made the newest night.
    pub algorithm: u32,
    /// Its number.
    pub sequence: u64,
    /// The number of the commit before it; none in the first.
    pub parent: Option<u64>,
    /// The night that it, or the last commit before it that did so, added, replaced or dropped.
    pub dt: String,
    /// Digest of the configuration of all fingerprints.
    pub config_digest: String,
    /// By date.
    pub nights: Vec<Night>,
    /// What `store compact` merged.
    pub segments: Vec<SegmentRecord>,
    /// What `store gc` is deleting. A commit that would need it is refused.
    pub removing: Vec<Removal>,
    /// Digests of the pages that it was read from; none in one that is not written yet.
    pub pages: Vec<String>,
}

/// What stands in a file of `_commits/`.
#[derive(Debug)]
pub enum Stored {
    /// Pages are not read yet.
    Whole(Box<CommitFile>),
    /// A commit of the format before pages.
    First(Box<FirstCommit>),
    /// `store gc` took the content of the commit of this number: no reader needs it any more. The number stays taken.
    Pruned(u64),
}

/// A commit as it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitFile {
    version: u32,
    algorithm: u32,
    pub sequence: u64,
    pub parent: Option<u64>,
    dt: String,
    config_digest: String,
    /// Digests of the pages of the earlier nights, by date.
    pages: Vec<String>,
    nights: Vec<Night>,
    /// Digest of the page of the segments. Left out where there is none, as in stores that were never compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    segments: Option<String>,
    /// Left out where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removing: Vec<Removal>,
    /// SHA-256 of the commit's JSON without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// What commits share, below `pages/<digest>.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Page {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nights: Vec<Night>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    segments: Vec<SegmentRecord>,
}

/// What one `store gc` deletes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removal {
    /// Number of the commit that began it.
    pub sequence: u64,
    /// `runs/<digest>`, `segments/<digest>`, `pages/<digest>` or `gen=<digest>`, sorted.
    pub names: Vec<String>,
}

/// A night: its run in the store and its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Night {
    /// Its date.
    pub dt: String,
    /// Its run.
    pub run: RunRecord,
    /// Digest of the list of runs that it was joined with ([`JoinedRuns`]).
    pub joined: String,
    /// Folder of its generations: `<output>/dt=D`.
    pub output: String,
    /// Digest of what it was made from: inputs, configuration and joined runs. A run of the same is published already.
    pub request: String,
    /// Digest of what was published: the name of its generation.
    #[serde(rename = "gen")]
    pub gen_digest: String,
    /// SHA-256 of its manifest.
    pub manifest_sha256: String,
}

/// The files of a run, below `runs/<digest>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Digest of the files' digests.
    pub digest: String,
    /// Documents with a fingerprint.
    pub n_fingerprints: u64,
    /// Texts below the floor of features.
    pub n_short: u64,
    /// Its files.
    pub files: Vec<FileRecord>,
}

/// The merged fingerprints of several runs, below `segments/<digest>`. Derived from the runs, which stay the truth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentRecord {
    /// Digest of what it merges, and of how it is cut.
    pub digest: String,
    /// Digests of the runs, by date: its rows name them by their position here.
    pub runs: Vec<String>,
    /// Fingerprints.
    pub n_rows: u64,
    /// By ascending range of fingerprints.
    pub files: Vec<FileRecord>,
}

/// The runs that a night is joined with, by date, one after another.
#[derive(Debug, Clone, Default)]
pub struct JoinedRuns(String);

impl JoinedRuns {
    /// The digest of a list of runs, given by their digests.
    pub fn of<'a>(digests: impl IntoIterator<Item = &'a String>) -> String {
        let mut joined = Self::default();
        digests.into_iter().for_each(|digest| joined.push(digest));
        joined.digest()
    }

    fn push(&mut self, digest: &str) {
        // Each digest has one length, so lists that differ differ here too.
        self.0 = Sha256Hex::of(format!("{}{digest}", self.0).as_bytes()).0;
    }

    fn digest(&self) -> String {
        Sha256Hex::of(self.0.as_bytes()).0[..32].to_owned()
    }

    /// Of each of these nights, by date, the digest of all before it.
    pub fn before_each(nights: &[Night]) -> impl Iterator<Item = (&Night, String)> {
        nights.iter().scan(Self::default(), |joined, night| {
            let before = joined.digest();
            joined.push(&night.run.digest);
            Some((night, before))
        })
    }
}

impl Stored {
    pub async fn read(place: &Folder) -> Result<Self> {
        let content = place.get().await?;
        let missing = || StoreError::TryAgain { reason: format!("{}: listed, but gone when read", place.url()) };
        Self::parse(place.url(), &content.ok_or_else(missing)?)
    }

    /// Refuses every byte that is not what some release wrote: a commit is canonical JSON and bears its own checksum.
    pub fn parse(url: &str, content: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            version: Option<u32>,
            pruned: Option<u64>,
        }
        let head: Head = from_json(url, content)?;
        match head {
            Head { pruned: Some(number), version: None } if pruned(number) == content => Ok(Self::Pruned(number)),
            Head { version: Some(1), .. } => FirstCommit::parse(url, content).map(|c| Self::First(Box::new(c))),
            Head { version: Some(VERSION), .. } => CommitFile::parse(url, content).map(|c| Self::Whole(Box::new(c))),
            Head { version: Some(version), .. } => {
                let reason = format!("commit version {version} is not {VERSION}: use the release that wrote it");
                Err(StoreError::Refused { url: url.to_owned(), reason })
            }
            Head { .. } => Err(damaged(url, "not a commit of a nearprint store")),
        }
    }

    /// Its number and its parent's, which a pruned one does not say.
    pub fn place(&self) -> (u64, Option<u64>) {
        match self {
            Self::Whole(commit) => (commit.sequence, commit.parent),
            Self::First(commit) => (commit.sequence, commit.parent),
            Self::Pruned(number) => (*number, None),
        }
    }

    /// What `store gc` was deleting; none where it was pruned.
    pub fn removing(&self) -> Option<&[Removal]> {
        match self {
            Self::Whole(commit) => Some(&commit.removing),
            Self::First(commit) => Some(&commit.removing),
            Self::Pruned(_) => None,
        }
    }

    /// The commit with its pages, which lie below `store`; none where it was pruned.
    pub async fn into_commit(self, store: &Folder) -> Result<Option<Commit>> {
        match self {
            Self::Whole(commit) => commit.with_pages(store).await.map(Some),
            Self::First(commit) => Ok(Some(commit.into_commit())),
            Self::Pruned(_) => Ok(None),
        }
    }

    /// Nights and names that stand in the commit itself, and those of its pages that are not `seen` yet.
    pub async fn unseen(self, store: &Folder, seen: &mut HashSet<String>) -> Result<(Vec<Night>, Vec<String>)> {
        let commit = match self {
            Self::Pruned(_) => return Ok((Vec::new(), Vec::new())),
            Self::First(commit) => commit.into_commit(),
            Self::Whole(mut commit) => {
                commit.pages.retain(|page| seen.insert(page.clone()));
                commit.segments = commit.segments.filter(|page| seen.insert(page.clone()));
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
            return Err(damaged(url, "a commit that no release wrote in this form"));
        }
        if commit.sha256.as_deref() != Some(commit.own_sha256()?.as_str()) {
            return Err(damaged(url, "its content is not what its own SHA-256 says"));
        }
        Ok(commit)
    }

    fn own_sha256(&self) -> Result<String> {
        Ok(Sha256Hex::of(&to_json(&Self { sha256: None, ..self.clone() })?).0)
    }

    async fn with_pages(self, store: &Folder) -> Result<Commit> {
        use futures::{StreamExt, TryStreamExt};
        let pages: Vec<String> = self.pages.iter().chain(&self.segments).cloned().collect();
        let read = futures::stream::iter(pages.clone()).map(|digest| async move { Page::read(store, &digest).await });
        let read: Vec<Page> = read.buffered(PAGES_AT_ONCE).try_collect().await?;
        let (mut nights, mut segments) = (Vec::new(), Vec::new());
        for page in read {
            nights.extend(page.nights);
            segments.extend(page.segments);
        }
        nights.extend(self.nights);
        Ok(Commit {
            algorithm: self.algorithm,
            sequence: self.sequence,
            parent: self.parent,
            dt: self.dt,
            config_digest: self.config_digest,
            nights,
            segments,
            removing: self.removing,
            pages,
        })
    }
}

/// Pages that are read at once.
const PAGES_AT_ONCE: usize = 16;

impl Page {
    async fn read(store: &Folder, digest: &str) -> Result<Self> {
        let place = store.join(&page_file(digest));
        let content = place.get().await?.ok_or_else(|| damaged(place.url(), "a commit names it, but it is gone"))?;
        if page_digest(&content) != digest {
            return Err(damaged(place.url(), "its content is not what its name says"));
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

/// A commit as bytes, and the pages that it names: (path below the store, content).
pub struct Encoded {
    pub commit: Bytes,
    pub pages: Vec<(String, Bytes)>,
    pub page_digests: Vec<String>,
}

impl Commit {
    /// Invariant: the same state is the same bytes.
    pub fn encode(&self) -> Result<Encoded> {
        let n_paged = self.nights.len() / PAGE_NIGHTS * PAGE_NIGHTS;
        let (earlier, latest) = self.nights.split_at(n_paged);
        let mut encoded = Encoded { commit: Bytes::new(), pages: Vec::new(), page_digests: Vec::new() };
        for nights in earlier.chunks(PAGE_NIGHTS) {
            encoded.add(&Page { nights: nights.to_vec(), segments: Vec::new() })?;
        }
        let pages = encoded.page_digests.clone();
        let segments = match self.segments.is_empty() {
            true => None,
            false => Some(encoded.add(&Page { nights: Vec::new(), segments: self.segments.clone() })?),
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
            removing: self.removing.clone(),
            sha256: None,
        };
        encoded.commit = to_json(&CommitFile { sha256: Some(file.own_sha256()?), ..file })?;
        Ok(encoded)
    }

    /// The names of what it needs, as removals have them.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let nights = self.nights.iter().flat_map(|n| [run_name(&n.run.digest), generation_name(&n.gen_digest)]);
        let segments = self.segments.iter().map(|s| segment_name(&s.digest));
        nights.chain(segments).chain(self.pages.iter().map(|page| page_name(page)))
    }
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

/// What `store gc` leaves of a commit that no reader needs any more.
pub fn pruned(number: u64) -> Bytes {
    Bytes::from(format!("{{\"pruned\":{number}}}\n"))
}

/// Format version 1: all nights and the runs that each was joined with in every commit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstCommit {
    version: u32,
    algorithm: u32,
    sequence: u64,
    parent: Option<u64>,
    dt: String,
    config_digest: String,
    nights: Vec<FirstNight>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    segments: Vec<SegmentRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removing: Vec<Removal>,
    /// None in commits of releases that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstNight {
    dt: String,
    run: RunRecord,
    joined: Vec<String>,
    output: String,
    /// Its generation was named by what it was made from.
    #[serde(rename = "gen")]
    gen_digest: String,
    manifest_sha256: String,
}

impl FirstCommit {
    fn parse(url: &str, content: &[u8]) -> Result<Self> {
        let commit: Self = from_json(url, content)?;
        if to_json(&commit)? != content {
            return Err(damaged(url, "a commit that no release wrote in this form"));
        }
        let own = Sha256Hex::of(&to_json(&Self { sha256: None, ..commit.clone() })?).0;
        if commit.sha256.as_ref().is_some_and(|recorded| *recorded != own) {
            return Err(damaged(url, "its content is not what its own SHA-256 says"));
        }
        Ok(commit)
    }

    fn into_commit(self) -> Commit {
        let night = |night: FirstNight| Night {
            dt: night.dt,
            run: night.run,
            joined: JoinedRuns::of(&night.joined),
            output: night.output,
            request: night.gen_digest.clone(),
            gen_digest: night.gen_digest,
            manifest_sha256: night.manifest_sha256,
        };
        Commit {
            algorithm: self.algorithm,
            sequence: self.sequence,
            parent: self.parent,
            dt: self.dt,
            config_digest: self.config_digest,
            nights: self.nights.into_iter().map(night).collect(),
            segments: self.segments,
            removing: self.removing,
            pages: Vec::new(),
        }
    }
}

fn from_json<T: serde::de::DeserializeOwned>(url: &str, content: &[u8]) -> Result<T> {
    serde_json::from_slice(content).map_err(|e| damaged(url, &format!("not a commit of a nearprint store ({e})")))
}

fn damaged(url: &str, reason: &str) -> StoreError {
    StoreError::DamagedCommit { file: url.to_owned(), reason: nearprint_storage::one_line(reason) }
}

/// Canonical JSON: fields in the order of their declaration, one line.
pub fn to_json<T: Serialize>(value: &T) -> Result<Bytes> {
    let text =
        serde_json::to_string(value).map_err(|e| StoreError::Internal { stage: "commit", reason: e.to_string() })?;
    Ok(Bytes::from(text + "\n"))
}
