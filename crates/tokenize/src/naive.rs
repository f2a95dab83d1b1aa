//! Definitions that are too slow for use: the fast code of this crate is tested against them.

use std::borrow::Cow;

use crate::config::NormalizeConfig;
use crate::normalize::steps;

/// Returns the result of [`Analyzer::normalize`](crate::Analyzer::normalize): it applies each step of `config` in turn,
/// with a pass over the text for each.
#[must_use]
pub fn normalize<'a>(text: &'a str, config: &NormalizeConfig) -> Cow<'a, str> {
    steps::normalize(text, config)
}
