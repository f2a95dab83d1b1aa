//! The rule that decides when a bit of a fingerprint is 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule that decides when a bit of the fingerprint is 1. Let v be the weight of the features that have the bit,
/// minus the weight of those that do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BitRule {
    /// v > 0, as in the paper; the default.
    #[default]
    Positive,
    /// v ≥ 0, as in the Java articles' code.
    NonNegative,
    /// v < 0: the vote is inverted, as in the crate gaoya 0.2.2.
    Negative,
    /// v > 1, in whole weights, as in sing1ee's SimHash of 32 bits.
    AboveOne,
    /// v > 0, with v summed in double precision in the order of the features, so that rounding decides where votes
    /// cancel, as in yanyiwu's simhash. This is the only rule under which the order of the features matters.
    FloatPositive,
}
