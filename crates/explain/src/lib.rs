//! Why a profile takes two texts for near-duplicates, or does not, and how texts differ.
//!
//! [`explain()`] compares texts as a profile sees them. [`diff()`], [`segments`] and [`excerpts()`] show differences, and
//! [`legible()`] makes text of documents safe to show.

mod diff;
mod excerpts;
mod explain;
mod features;
mod legible;
mod text;

pub use diff::{Diff, DiffPiece, diff, segments};
pub use excerpts::excerpts;
pub use explain::{ExplainRequest, ExplainTexts, ExplainedJudge, ExplainedPair, Explanation, explain};
pub use features::{DifferingBit, ExplainedFeature, FeatureTable};
pub use legible::{is_web_address, legible, shown_id};
pub use text::{ExplainedText, TextStatus};
