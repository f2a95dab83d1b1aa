//! The `tune` command, which draws a sheet of pairs to label, and estimates from the labels how good each distance is.

mod draw;
mod estimate;
mod html;
mod sheet;
mod weights;

pub use draw::{SheetRequest, SheetSummary, Stratum, draw_sheet};
pub use estimate::{Estimate, EstimateIntervals, LabelEstimate, LabelsRequest, Recommendation, estimate_from_labels};
pub use sheet::is_sheet;
