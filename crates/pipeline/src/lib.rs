//! The stages of a night: they turn documents into fingerprints, pairs, decisions and the store's run files.
//!
//! ```text
//! documents ─► fingerprint tasks ─► query batch ─► tables ─┐
//! store's files ──────────────────────────────► map tasks ─┴─► reduce ─► pairs ─► decisions ─► run files
//! ```
//!
//! `nearprint-night` calls them one after another. [`fingerprint`] and [`join`] do parts of a night for files of the
//! user's own. The tasks are those of `nearprint-tasks`, which depend on no engine. Here, DataFusion's operators drive
//! them, or they are given to other runners.

mod cluster_plan;
mod context;
mod error;
mod excerpt;
mod fingerprint_command;
mod join_command;
mod join_plan;
mod machine;
mod operators;
mod overlaps;
mod remaining_time;
mod resources;
mod stages;

pub use cluster_plan::{ClusterPlan, ClusterRequest, plan_on_cluster};
pub use context::CommandContext;
pub use error::{StaleNight, TooManyBadRows, is_late, is_without_documents, not_published};
pub use excerpt::excerpt;
pub use fingerprint_command::{FingerprintSummary, fingerprint};
pub use join_command::{JoinRequest, JoinSummary, join};
pub use join_plan::{JoinPlan, PlanRequest, PlanSummary, PlannedSketches, PlannedTable, plan, planned, strategy};
pub use operators::reduce::SpillStats;
pub use remaining_time::RemainingTime;
pub use resources::Resources;
pub use stages::changes::{DecidedNight, Forgetting, NightsChange};
pub use stages::decide::{ClusterRule, DecisionBasis, DecisionCounts, Decisions, StarQuality, is_near_duplicate};
pub use stages::existing::{ExistingOfAll, ReferenceNames, existing_of_all};
pub use stages::families::Families;
pub use stages::fingerprint::{
    FingerprintCounts, FingerprintRequest, Fingerprinted, TextsOfRevisits, fingerprint_batch, fingerprint_documents,
    write_quarantine, write_skipped,
};
pub use stages::hosts::{HostCounts, count_hosts, read_hosts, write_hosts};
pub use stages::join::{Join, NearDuplicates, PairCounts, PairRules, PairsMode, refuse_beyond_driver};
pub use stages::judge::{JudgeCounts, NightJudge, read_undecided};
pub use stages::orphans::{DecidedOrphans, Redeciding, Tonight};
pub use stages::sources::{NO_SOURCE, RowSources};
pub use stages::store_run::{recrawls, write_run};
pub use stages::stubs::{STUB, StubClass, StubRules, StubSearch, StubSignal, Stubs};
pub use stages::texts_elsewhere::TextsElsewhere;
