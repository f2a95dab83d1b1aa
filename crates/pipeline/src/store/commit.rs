//! The commit: the one object whose creation makes a night visible.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::dataset::FileRecord;
use crate::digest::Sha256Hex;
use crate::error::{PipelineError, Result, one_line};
use crate::storage::Folder;

pub(super) const VERSION: u32 = 1;

/// A state of the store, whole: reading the newest commit is enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Commit {
    pub(crate) version: u32,
    /// Version of the algorithms that made the newest night.
    pub(crate) algorithm: u32,
    pub(crate) sequence: u64,
    pub(crate) parent: Option<u64>,
    /// The night that it, or the last commit before it that did so, added or replaced.
    pub(crate) dt: String,
    pub(crate) config_digest: String,
    /// By date.
    pub(crate) nights: Vec<Night>,
    /// Left out where there is none, as in stores that were never compacted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) segments: Vec<SegmentRecord>,
    /// What `store gc` is deleting. A commit that would need it is refused. Left out where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) removing: Vec<Removal>,
    /// SHA-256 of the commit's JSON without this field. None in commits of releases that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
}

/// What one `store gc` deletes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Removal {
    /// Number of the commit that began it.
    pub(crate) sequence: u64,
    /// `runs/<digest>`, `segments/<digest>` or `gen=<digest>`, sorted.
    pub(crate) names: Vec<String>,
}

/// A night: its run in the store and its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Night {
    pub(crate) dt: String,
    pub(crate) run: RunRecord,
    /// Digests of the runs it was joined with, by date.
    pub(crate) joined: Vec<String>,
    /// Folder of its generations: `<output>/dt=D`.
    pub(crate) output: String,
    /// Digest of inputs, config and joined runs: the name of its generation.
    #[serde(rename = "gen")]
    pub(crate) gen_digest: String,
    pub(crate) manifest_sha256: String,
}

/// The files of a run, below `runs/<digest>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunRecord {
    /// Digest of the files' digests.
    pub(crate) digest: String,
    pub(crate) n_fingerprints: u64,
    pub(crate) n_short: u64,
    pub(crate) files: Vec<FileRecord>,
}

/// The merged fingerprints of several runs, below `segments/<digest>`. Derived from the runs, which stay the truth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SegmentRecord {
    /// Digest of what it merges, and of how it is cut.
    pub(crate) digest: String,
    /// Digests of the runs, by date: its rows name them by their position here.
    pub(crate) runs: Vec<String>,
    pub(crate) n_rows: u64,
    /// By ascending range of fingerprints.
    pub(crate) files: Vec<FileRecord>,
}

impl Commit {
    pub(super) async fn read(place: &Folder) -> Result<Self> {
        let content = place.get().await?;
        let missing = || PipelineError::TryAgain { reason: format!("{}: listed, but gone when read", place.url()) };
        Self::parse(place.url(), &content.ok_or_else(missing)?)
    }

    /// Refuses every byte that is not what some release wrote: a commit is canonical JSON and bears its own checksum.
    fn parse(url: &str, content: &[u8]) -> Result<Self> {
        let commit: Self = serde_json::from_slice(content)
            .map_err(|e| damaged(url, &format!("not a commit of a nearprint store ({e})")))?;
        if commit.version != VERSION {
            let reason = format!("commit version {} is not {VERSION}: use the release that wrote it", commit.version);
            return Err(PipelineError::Refused { url: url.to_owned(), reason });
        }
        if to_json(&commit)? != content {
            return Err(damaged(url, "a commit that no release wrote in this form"));
        }
        let recorded = commit.sha256.as_deref();
        if recorded.is_some() && recorded != Some(commit.own_sha256()?.as_str()) {
            return Err(damaged(url, "its content is not what its own SHA-256 says"));
        }
        Ok(commit)
    }

    fn own_sha256(&self) -> Result<String> {
        Ok(Sha256Hex::of(&to_json(&Self { sha256: None, ..self.clone() })?).0)
    }

    pub(super) fn to_json(&self) -> Result<Bytes> {
        to_json(&Self { sha256: Some(self.own_sha256()?), ..self.clone() })
    }
}

fn damaged(url: &str, reason: &str) -> PipelineError {
    PipelineError::DamagedCommit { file: url.to_owned(), reason: one_line(reason) }
}

/// Canonical JSON: fields in the order of their declaration, one line.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<Bytes> {
    let text =
        serde_json::to_string(value).map_err(|e| PipelineError::Internal { stage: "commit", reason: e.to_string() })?;
    Ok(Bytes::from(text + "\n"))
}
