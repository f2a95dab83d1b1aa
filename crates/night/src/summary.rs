//! The summary of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::breakers::TrippedBreaker;
use super::measured::{MeasuredNight, SourceCounts};
use super::references::JoinedReference;
use nearprint_pipeline::{DecisionCounts, FingerprintCounts, JudgeCounts, PairCounts, STUB, SpillStats, StubClass};
use nearprint_store::RecrawlCounts;

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// This run published the night.
    Published,
    /// The night was published before, from the same input and configuration.
    AlreadyPublished,
    /// A breaker stopped the night before it was published.
    Stopped,
}

impl RunStatus {
    /// Returns the name that summaries have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::AlreadyPublished => "already_published",
            Self::Stopped => "stopped",
        }
    }
}

/// The execution that the counts of a night are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountsOf {
    /// This one.
    ThisRun,
    /// The one that published the night. What was forgotten since is still counted.
    Publication,
}

/// The summary of a run. Its counts are also in the published manifest.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunSummary {
    /// The outcome of this execution.
    pub status: RunStatus,
    /// The night.
    pub dt: String,
    /// The root of the results: the folder of the tables.
    pub output: String,
    /// The generation of the night, which is in the names of its files and of the folder of its manifest. `None` if
    /// nothing was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// The number of the store's commit.
    pub commit: u64,
    /// The execution that the counts of the night are of: this one, or the one that published the night. What was forgotten since
    /// is still counted in the latter.
    pub counts_of: CountsOf,
    /// The counts of the night.
    #[serde(flatten)]
    pub counts: RunCounts,
    /// The reference stores with which the night was joined, in the order of their list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<JoinedReference>,
    /// The data that the reduce spilled, in this execution.
    pub spill: SpillStats,
    /// The number of permuted tables of the queries, in this execution.
    pub n_tables: usize,
    /// The number of slices of the queries that were joined one after another, so that their tables fit the memory
    /// limit. On a cluster, the number of parts of the batch, of which a worker held one at a time, or two while it joined them
    /// with each other.
    pub n_parts: usize,
    /// The later nights whose results were made without this one. `--replace` joins them anew.
    pub stale: Vec<String>,
    /// The nights that this execution's commit made the store forget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<String>,
    /// The number of files of a published night that were damaged or gone, and that `--replace` wrote again.
    #[serde(skip_serializing_if = "is_zero")]
    pub n_mended_files: u64,
    /// The time at which the newest input was written, in UTC. `None` in reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_input: Option<String>,
    /// The breakers that stopped the night.
    pub breakers: Vec<TrippedBreaker>,
    /// The values that the breakers looked at, in this execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredNight>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The counts of a night.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunCounts {
    /// The counts of documents.
    #[serde(flatten)]
    pub documents: FingerprintCounts,
    /// The number of fingerprints of earlier nights, and of references, that probed.
    pub n_existing: u64,
    /// The number of documents whose ids an earlier night has.
    pub n_same_id: u64,
    /// The numbers of documents by what they are to the nights before. `None` means that release 0.2.0 published the night.
    #[serde(flatten)]
    pub by_recrawl: Option<RecrawlCounts>,
    /// The counts of pairs.
    #[serde(flatten)]
    pub pairs: PairCounts,
    /// What the judge read, and what it found. `None` means that the profile has no judge, or that the night is of release
    /// 0.2.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeCounts>,
    /// The counts of decisions.
    #[serde(flatten)]
    pub decisions: DecisionCounts,
    /// The number of dropped documents of earlier nights whose canonical documents are gone since this night, so that it
    /// decided them again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_orphaned: u64,
    /// The number of these that are kept now.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_restored: u64,
    /// The number of different texts, of all documents but stubs. `None` means that release 0.2.0 published the night.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_texts: Option<u64>,
    /// The texts that most stubs have, ten at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stubs: Vec<StubClass>,
    /// The sources that lost the most documents as near-duplicates, ten at most.
    pub sources: Vec<SourceCounts>,
}

impl RunCounts {
    /// Returns the number of stubs.
    #[must_use]
    pub fn n_stubs(&self) -> u64 {
        self.decisions.by_reason.get(&format!("drop_{STUB}")).copied().unwrap_or_default()
    }
}
