//! Studies of how good the fingerprints are, and why. It scores profiles against known pairs, estimates scores from
//! labels by hand, explains single pairs, and reports on nights.

mod error;
pub mod evaluate;
mod excerpts;
pub mod explain;
mod idf;
mod legible;
pub mod plot;
mod random;
mod report;
pub mod resemblance;
pub mod tune;

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
pub use legible::legible;
pub use report::{Example, NightReport, ReportRequest, report};
pub use tune::{
    Estimate, EstimateIntervals, LabelEstimate, LabelsRequest, Recommendation, SheetRequest, SheetSummary, Stratum,
    draw_sheet, estimate_from_labels,
};
