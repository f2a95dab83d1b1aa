//! Review: people look at pairs of published nights and say whether they are the same, and their answers tell how good the
//! nights are.

mod answers;
mod draw;
mod estimate;

pub use answers::{Answer, Answers, ReviewStratum, ReviewedPair, is_reviewed_pair};
pub use draw::{ReviewDraw, ReviewRequest, draw_review};
pub use estimate::{NightEstimate, ReviewEstimate, StratumEstimate, estimate_review};
