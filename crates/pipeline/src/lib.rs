//! The edge of nearprint: documents and datasets on disk and S3, the join inside DataFusion, the store, the nightly run.
//!
//! ```text
//! documents ─► FingerprintExec ─► QueryBatch ─► tables ─┐
//! store's runs ────────────────────────────► ProbeExec ─┴─► reduce ─► pairs ─► decisions ─► generation, run, commit
//! ```
//!
//! [`run`] is the whole; [`fingerprint`], [`join`] and [`evaluate`] are its parts for other uses. The work is cut into tasks
//! ([`FingerprintTask`], [`MapTask`]) that know no engine; DataFusion's operators drive them here.

mod analyze;
mod apart;
mod columns;
mod config;
mod dataset;
mod decimal_order;
mod decisions;
mod digest;
mod documents;
mod engine;
mod error;
mod evaluate;
mod excerpts;
mod explain;
mod fingerprint_column;
mod fingerprint_stage;
mod fingerprints;
mod idf;
mod join_command;
mod join_plan;
mod kernel;
mod legible;
mod locked;
mod near_duplicates;
mod night_documents;
mod operators;
mod output;
mod output_file;
mod page_checksums;
mod page_claims;
mod page_guard;
mod parquet_file;
mod preflight;
pub mod profile;
mod progress;
mod quarantine;
mod query_batch;
mod query_parts;
mod random;
mod reduce_pool;
mod report;
mod roots;
mod row_number;
mod run;
mod run_lock;
pub mod schema;
mod storage;
mod store;
mod tasks;
mod temp_folder;
mod thrift;
mod tune;

pub use analyze::{FingerprintedText, Outcome, TextFingerprinter};
pub use apart::refuse_file;
pub use config::{ALGORITHM_VERSION, JoinConfig, ProfileConfig, SketchConfig};
pub use dataset::{FileRecord, writer_properties};
pub use decisions::{ClusterRule, DecisionCounts};
pub use documents::DocumentColumns;
pub use engine::{Resources, SpillStats};
pub use error::{ErrorKind, PipelineError, Result, utf8};
pub use evaluate::{DistanceScore, EvaluateRequest, Evaluation, Intervals, LengthScore, Score, SketchScore, evaluate};
pub use explain::{
    DifferingBit, ExplainRequest, ExplainTexts, ExplainedFeature, ExplainedPair, ExplainedText, Explanation,
    FeatureTable, Piece, explain,
};
pub use fingerprint_stage::{FingerprintCounts, FingerprintRequest, FingerprintSummary, fingerprint};
pub use idf::{IdfRequest, IdfSummary, build_idf};
pub use join_command::{JoinRequest, JoinSummary, join};
pub use join_plan::{PlanRequest, PlanSummary, PlannedTable, plan};
pub use legible::legible;
pub use near_duplicates::{PairCounts, PairsMode};
pub use output_file::LocalFile;
pub use progress::{Progress, Snapshot};
pub use quarantine::{BadFile, BadReason, DuplicateIds, InputPolicy};
pub use query_batch::{KeepKey, LENGTH};
pub use report::{Example, NightReport, ReportRequest, report};
pub use roots::Roots;
pub use run::{
    Breakers, DocumentShare, DropNightRequest, DropNightSummary, DropRate, LargestCluster, Measured, RunCounts,
    RunRequest, RunSummary, SourceLoss, TrippedBreaker, check, run, store_check, store_compact, store_drop_night,
    store_gc, store_info, store_init,
};
pub use run_lock::RunLock;
pub use storage::{Requests, S3Config, Storage};
pub use store::{
    CheckReport, CheckRequest, CompactRequest, CompactSummary, GcRequest, GcSummary, NightInfo, RemovedFiles,
    SegmentInfo, StoreInfo, StoreProblem, StoreReport,
};
pub use tasks::{FingerprintTask, MapTask};
pub use temp_folder::remove_temp_folders;
pub use tune::{
    Estimate, EstimateIntervals, LabelEstimate, LabelsRequest, Recommendation, SheetRequest, SheetSummary, Stratum,
    draw_sheet, estimate_from_labels,
};
