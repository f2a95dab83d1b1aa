//! The manifest of a generation: its content, and the inputs that it was made from.

use std::collections::BTreeSet;

use nearprint_documents::{BadFile, BadReason};
use nearprint_fault::{Result, foreign};
use nearprint_parquet::{FileRecord, PublishedDataset};
use nearprint_storage::{DeletedRows, Folder, InputFile, Sha256Hex};
use nearprint_store::{JoinedRuns, MANIFEST, Night, damaged};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::references::JoinedReference;
use super::summary::RunCounts;

/// The manifest of a night: what a run published for it, and what it was made from.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// The version of the manifest.
    pub(crate) version: u32,
    /// The release of nearprint that published the night.
    pub(crate) nearprint: String,
    /// The version of the algorithm: of fingerprints, sketches and decisions.
    pub(crate) algorithm: u32,
    /// The night.
    pub(crate) dt: String,
    /// The SHA-256 of the configuration of the store, in hex.
    pub(crate) config_digest: String,
    /// The files of documents.
    pub(crate) inputs: Vec<InputRecord>,
    /// The folder below which the paths of HTML files are their documents' ids; empty if whole paths are. Left out if there
    /// are no HTML files, and by release 0.2.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) html_root: Option<String>,
    /// The size in bytes above which a text made its row no document. Left out by release 0.2.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_doc_bytes: Option<u64>,
    /// The files of other kinds in the same folder, which were passed over.
    pub(crate) ignored_inputs: Vec<String>,
    /// The files that could not be read, and the reasons. None of their rows counts.
    pub(crate) bad_files: Vec<BadFile>,
    /// The runs of earlier nights with which the night was joined, by their digests.
    pub(crate) joined: Vec<String>,
    /// Left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) references: Vec<JoinedReference>,
    /// The digest of the runs before these that the store had forgotten then, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forgotten_runs: Option<String>,
    /// The counts of the run. Documents that were forgotten since are among them.
    pub(crate) counts: RunCounts,
    /// The documents that were forgotten since the run, or `None` if the results are those of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forgotten: Option<Forgotten>,
    /// The published files. Their names are paths below the root of the results, without the generation.
    pub(crate) files: Vec<FileRecord>,
}

/// The number of documents that a night's results lack, since they were forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Forgotten {
    /// The number of the night's documents that were forgotten.
    pub(crate) n_documents: u64,
}

impl Manifest {
    /// Reads the manifest of a night's generation, and checks it against the commit.
    pub(crate) async fn read(generation: &Folder, night: &Night) -> Result<Self> {
        let manifest = generation.join(MANIFEST);
        let content =
            manifest.get().await?.ok_or_else(|| damaged(manifest.url(), "committed, but its manifest is gone"))?;
        if Sha256Hex::of(&content).0 != night.manifest_sha256 {
            let reason = "its SHA-256 is not the one that the store's commit records";
            return Err(damaged(manifest.url(), reason));
        }
        serde_json::from_slice(&content).map_err(|e| damaged(manifest.url(), foreign(&e)))
    }

    /// Returns the inputs that the run read, without those that it passed over because they cannot be read.
    pub(crate) fn read_inputs(&self) -> Vec<InputRecord> {
        let bad: BTreeSet<&str> = self.bad_files.iter().map(|bad| bad.url.as_str()).collect();
        self.inputs.iter().filter(|input| !bad.contains(input.url.as_str())).cloned().collect()
    }

    /// Returns the name of each reference and the digest of its run files, as [`References::states`] does.
    ///
    /// [`References::states`]: super::references::References::states
    pub(crate) fn states(&self) -> Vec<(&str, String)> {
        self.references.iter().map(|reference| (reference.store.as_str(), reference.joined.clone())).collect()
    }

    /// Returns the number of documents that the night's results lack, since they were forgotten.
    pub(crate) fn n_forgotten(&self) -> u64 {
        self.forgotten.as_ref().map_or(0, |forgotten| forgotten.n_documents)
    }

    /// Returns the files of documents, sorted as those of a plan.
    pub(crate) fn sorted_inputs(&self) -> Vec<InputRecord> {
        let mut inputs = self.inputs.clone();
        inputs.sort();
        inputs
    }

    /// Returns whether the rule for repeated ids left rows out.
    pub(crate) fn has_repeated_ids(&self) -> bool {
        let documents = &self.counts.documents;
        // Until release 0.2.0, such rows were counted among the bad rows.
        documents.n_repeated_ids > 0 || documents.bad_rows_by_reason.contains_key(BadReason::RepeatedId.name())
    }

    /// Returns the files of a dataset, with their paths below its table.
    pub(crate) fn files_of<'a>(
        &'a self,
        night: &'a Night,
        dataset: &'a PublishedDataset,
    ) -> impl Iterator<Item = (String, &'a FileRecord)> {
        self.files.iter().filter_map(|file| {
            let path = night.file_path(&file.name);
            Some((path.strip_prefix(dataset.name)?.strip_prefix('/')?.to_owned(), file))
        })
    }

    /// Returns whether the manifest agrees with the commit about the night.
    pub(crate) fn is_of(&self, night: &Night, config_digest: &str) -> bool {
        let joined = JoinedRuns::of(self.forgotten_runs.as_deref(), &self.joined);
        self.dt == night.dt && joined == night.joined && self.config_digest == config_digest
    }
}

/// A file of documents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(crate) struct InputRecord {
    /// The path or URL of the file.
    pub(crate) url: String,
    /// The size in bytes.
    pub(crate) bytes: u64,
    /// The version of the content: an `ETag` of an object store, or time and size on a disk.
    pub(crate) version: String,
    /// The rows of the file that do not count, because its table has deleted them: a 64-bit Roaring bitmap of their numbers
    /// from 0, in the portable format and in base64. Left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deleted_rows: Option<DeletedRows>,
}

impl InputRecord {
    pub(crate) fn of(file: &InputFile) -> Self {
        let InputFile { url, size, version, deleted_rows, .. } = file;
        Self { url: url.clone(), bytes: *size, version: version.clone(), deleted_rows: deleted_rows.clone() }
    }
}
