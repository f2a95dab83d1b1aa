//! Normalisation: [`steps`] is the definition, with one pass over the text for each step; [`one_pass`] does the same in
//! one pass for the usual steps.

mod one_pass;
pub(crate) mod steps;

use std::borrow::Cow;

use crate::config::NormalizeConfig;

/// Applies the configured steps. The result borrows from the text if there is nothing to change.
pub(crate) fn normalize<'a>(text: &'a str, config: &NormalizeConfig) -> Cow<'a, str> {
    if one_pass::applies(config) { one_pass::normalize(text, config) } else { steps::normalize(text, config) }
}
