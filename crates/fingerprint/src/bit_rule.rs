//! When a bit of a fingerprint is 1.

use serde::{Deserialize, Serialize};

/// When a bit of the fingerprint is 1, v being the weight of the features that have the bit less the weight of those that have not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BitRule {
    /// v > 0, as in the paper; the default.
    #[default]
    Positive,
    /// v ≥ 0, as in the Java articles' code.
    NonNegative,
    /// v < 0: the vote inverted, as in the crate gaoya 0.2.2.
    Negative,
    /// v > 1, in whole weights: sing1ee's SimHash of 32 bits.
    AboveOne,
    /// v > 0, v summed in double precision in the order of the features, whose rounding decides where votes cancel: yanyiwu's simhash. The
    /// only rule under which the order of the features matters.
    FloatPositive,
}
