//! Normalisation: [`steps`] is the definition, one pass over the text a step; [`one_pass`] gives the same for the usual steps.

mod one_pass;
pub(crate) mod steps;

use std::borrow::Cow;

use crate::config::NormalizeConfig;

/// Applies the configured steps. Borrows when there is nothing to change.
pub(crate) fn normalize<'a>(text: &'a str, config: &NormalizeConfig) -> Cow<'a, str> {
    if one_pass::applies(config) { one_pass::normalize(text, config) } else { steps::normalize(text, config) }
}
