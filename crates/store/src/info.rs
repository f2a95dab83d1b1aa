//! What a store has, by its newest commit.

use schemars::JsonSchema;
use serde::Serialize;

/// What a store has, by its newest commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreInfo {
    /// The store.
    pub store: String,
    /// The number of the newest commit; 0 if there is none.
    pub commit: u64,
    /// The digest of the configuration of all fingerprints.
    pub config_digest: Option<String>,
    /// The number of nights.
    pub n_nights: u64,
    /// The number of fingerprints in all nights.
    pub n_fingerprints: u64,
    /// The number of documents below the feature floor.
    pub n_short: u64,
    /// The size of all runs in bytes.
    pub bytes: u64,
    /// The date before which the store has forgotten all nights, or `None` if it has forgotten none by its age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgotten_before: Option<String>,
    /// The nights, by date. Whoever shows them adds what their manifests say.
    #[serde(skip)]
    pub nights: Vec<NightInfo>,
    /// The segments that `store compact` made.
    pub segments: Vec<SegmentInfo>,
    /// The indexes that `store index` made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<SegmentInfo>,
}

/// A segment of the store, or an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SegmentInfo {
    /// The digest of the segment or index.
    pub digest: String,
    /// The number of runs that it covers.
    pub n_runs: u64,
    /// The number of these runs that still belong to a night. The others were replaced, dropped or forgotten.
    pub n_live_runs: u64,
    /// The number of fingerprints.
    pub n_rows: u64,
    /// The number of files.
    pub n_parts: u64,
    /// The size of the files in bytes.
    pub bytes: u64,
}

/// A night of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NightInfo {
    /// The date.
    pub dt: String,
    /// The digest of the night's run.
    pub run: String,
    /// The number of fingerprints.
    pub n_fingerprints: u64,
    /// The number of documents below the feature floor.
    pub n_short: u64,
    /// The size of the run in bytes.
    pub bytes: u64,
    /// The root of the results into which the night was published.
    pub output: String,
    /// True if nights of earlier dates were added, replaced or dropped after this one was joined. `run --replace` joins
    /// it again. Forgotten nights and ids do not count.
    pub stale: bool,
}
