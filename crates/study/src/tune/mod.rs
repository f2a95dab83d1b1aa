//! The `tune` command: a sheet of one's own pairs to be labelled, and what the labels say about the distances.

mod draw;
mod estimate;
mod html;
mod sheet;
mod weights;

pub use draw::{SheetRequest, SheetSummary, Stratum, draw_sheet};
pub use estimate::{Estimate, EstimateIntervals, LabelEstimate, LabelsRequest, Recommendation, estimate_from_labels};
