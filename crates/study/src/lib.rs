//! Studies of how good the fingerprints are, and why. It scores profiles against known pairs, estimates scores from
//! labels by hand, explains single pairs, reports on nights, measures what nights lost, and compares generations.

mod audit;
mod diff;
mod error;
pub mod evaluate;
mod excerpts;
pub mod explain;
mod idf;
mod legible;
mod numbers;
mod page;
pub mod plot;
mod random;
mod report;
pub mod resemblance;
pub mod tune;

pub use audit::{
    Audit, AuditRequest, AuditedDrop, EstimateError, LARGE_LOSS, Losses, LostShares, MeasuredDrop, Unmeasured, audit,
    wilson,
};
pub use diff::{
    Change, ChangeKind, ChangedDocument, Diff, DiffPlace, DiffRequest, DiffSide, DocumentsDiff, PairsDiff, diff,
};
pub use error::{Result, StudyError};
pub use evaluate::{
    ByResemblance, ComponentCounts, DistanceScore, EvaluateRequest, Evaluation, Hundredth, Intervals, LengthScore,
    ResemblanceRow, Score, SketchScore, evaluate,
};
pub use explain::{
    DifferingBit, ExplainRequest, ExplainTexts, ExplainedFeature, ExplainedPair, ExplainedText, Explanation,
    FeatureTable, Piece, TextStatus, explain,
};
pub use idf::{IdfRequest, IdfSummary, build_idf};
pub use legible::{legible, named_source, shown_id};
pub use numbers::{and_more, counted, grouped, in_bytes, percent};
pub use report::{
    Distributions, Example, NightReport, QuarantinedRow, ReportRequest, STALE, night_markdown, night_page, report,
};
pub use tune::{
    Estimate, EstimateIntervals, LabelEstimate, LabelsRequest, Recommendation, SheetRequest, SheetSummary, Stratum,
    draw_sheet, estimate_from_labels, is_sheet,
};
