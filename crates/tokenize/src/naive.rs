//! Definitions, too slow for use: what the fast ways of this crate are tested against.

use std::borrow::Cow;

use crate::config::NormalizeConfig;
use crate::normalize::steps;

/// What [`Analyzer::normalize`](crate::Analyzer::normalize) gives: each step of `config` in turn, a pass over the text each.
#[must_use]
pub fn normalize<'a>(text: &'a str, config: &NormalizeConfig) -> Cow<'a, str> {
    steps::normalize(text, config)
}
