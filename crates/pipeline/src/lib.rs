//! A night's work: it turns documents into fingerprints, pairs, decisions and the store's next commit.
//!
//! ```text
//! documents ─► fingerprint tasks ─► query batch ─► tables ─┐
//! store's files ──────────────────────────────► map tasks ─┴─► reduce ─► pairs ─► decisions ─┐
//!                                                            generation, run files, commit ◄─┘
//! ```
//!
//! [`run`] does the whole work. [`fingerprint`] and [`join`] do parts of it for files of the user's own. The tasks are
//! those of `nearprint-tasks`, which depend on no engine. Here, DataFusion's operators drive them. [`run_elsewhere`]
//! gives them to other runners.

mod ahead;
mod apart;
mod check;
mod cluster_plan;
mod engine;
mod error;
mod filter;
mod forget;
mod join_command;
mod join_plan;
mod machine;
mod night;
mod resources;
mod stages;
mod store_commands;
mod work;

pub use check::{CheckReport, CheckRequest, CheckedReference, check};
pub use cluster_plan::{
    ClusterBytes, ClusterLimit, ClusterPlan, ClusterRequest, ClusterSeconds, measured_over_model, plan_on_cluster,
};
pub use engine::reduce::SpillStats;
pub use error::{PipelineError, Result};
pub use filter::{FilterCounts, FilterRequest, FilterSummary, FilteredNight, filter};
pub use forget::{ForgetIdsRequest, ForgetIdsSummary, store_forget_ids};
pub use join_command::{JoinRequest, JoinSummary, join};
pub use join_plan::{PlanRequest, PlanSummary, PlannedSketches, PlannedTable, plan};
pub use night::published::{NightHistory, NightRecord, published_files, published_history, published_night};
pub use night::request::{is_among_documents, night_pattern, usual_lost_share};
pub use night::{
    Breakers, CheckedPlaces, CountsOf, DocumentShare, DropRate, DryRun, Evidence, Generation, Generations,
    JoinedNights, JoinedReference, LargestCluster, LossySources, MAX_LOST_SHARE, MeanLoss, Measured, NO_SOURCE,
    NightFiles, NightInput, RunCounts, RunRequest, RunStatus, RunSummary, SourceCounts, SourceLoss, TrippedBreaker,
    check_places, dry_run, run, run_elsewhere,
};
pub use resources::Resources;
pub use stages::decide::{ClusterRule, DecisionCounts, StarQuality};
pub use stages::fingerprint::{
    FingerprintCounts, FingerprintRequest, FingerprintSummary, fingerprint, fingerprint_batch,
};
pub use stages::join::{PairCounts, PairsMode};
pub use store_commands::{
    DropNightRequest, DropNightSummary, ForgetBeforeRequest, ForgetBeforeSummary, store_check, store_compact,
    store_drop_night, store_forget_before, store_gc, store_index, store_info, store_init,
};
