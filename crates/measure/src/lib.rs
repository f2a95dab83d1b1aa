//! Measures how good the fingerprints are: scores of profiles against known pairs, scores estimated from labels by hand,
//! what nights lost, and the frequencies of tokens.

mod audit;
pub mod evaluate;
mod idf;
pub mod plot;
mod random;
pub mod resemblance;
mod review;
pub mod tune;

pub use audit::{
    Audit, AuditRequest, AuditedDrop, EstimateError, LARGE_LOSS, Losses, LostShares, MeasuredDrop, Unmeasured, audit,
    wilson,
};
pub use evaluate::{
    ByResemblance, ComponentCounts, DistanceScore, EvaluateRequest, Evaluation, Hundredth, Intervals, LengthScore,
    ResemblanceRow, Score, SketchScore, evaluate,
};
pub use idf::{IdfRequest, IdfSummary, build_idf};
pub use review::{
    Answer, Answers, NightEstimate, ReviewDraw, ReviewEstimate, ReviewRequest, ReviewStratum, ReviewedPair,
    StratumEstimate, draw_review, estimate_review, is_reviewed_pair,
};
pub use tune::{
    Estimate, EstimateIntervals, LabelEstimate, LabelsRequest, Recommendation, SheetRequest, SheetSummary, Stratum,
    draw_sheet, estimate_from_labels, is_sheet,
};
