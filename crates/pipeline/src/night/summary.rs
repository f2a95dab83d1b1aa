//! What a run did.

use serde::{Deserialize, Serialize};

use super::breakers::{Measured, TrippedBreaker};
use crate::engine::reduce::SpillStats;
use crate::stages::decide::DecisionCounts;
use crate::stages::fingerprint::FingerprintCounts;
use crate::stages::join::PairCounts;

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
