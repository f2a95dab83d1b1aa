//! What `store info` shows.

use serde::Serialize;

/// What `store info` shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreInfo {
    /// The store.
    pub store: String,
    /// Number of the newest commit; 0 where there is none.
    pub commit: u64,
    /// Digest of the configuration of all its fingerprints.
    pub config_digest: Option<String>,
    /// Nights.
    pub n_nights: u64,
    /// Fingerprints of all nights.
    pub n_fingerprints: u64,
    /// Texts below the feature floor.
    pub n_short: u64,
    /// Bytes of all runs.
    pub bytes: u64,
    /// By date.
    pub nights: Vec<NightInfo>,
    /// What `store compact` merged.
    pub segments: Vec<SegmentInfo>,
}

/// A segment of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SegmentInfo {
    /// Its digest.
    pub digest: String,
    /// Runs that it merges.
    pub n_runs: u64,
    /// Of these, runs that are still a night's; the others were replaced since.
    pub n_live_runs: u64,
    /// Fingerprints.
    pub n_rows: u64,
    /// Files.
    pub n_parts: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// A night of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NightInfo {
    /// Date.
    pub dt: String,
    /// Digest of its run.
    pub run: String,
    /// Fingerprints.
    pub n_fingerprints: u64,
    /// Texts below the feature floor.
    pub n_short: u64,
    /// Bytes of the run.
    pub bytes: u64,
    /// Where its results are.
    pub output: String,
    /// Whether nights of earlier dates were added or replaced since it ran: `run --replace` joins it anew.
    pub stale: bool,
}
