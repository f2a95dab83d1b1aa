use std::collections::HashSet;

use crate::NormalizeConfig;
use crate::normalize::normalize;

/// Written for this project: function words only, with the pieces that contractions leave behind (`don`, `t`, `ll`).
const ENGLISH: &str = include_str!("stop_words/en.txt");
/// Written for this project: particles, pronouns, prepositions, conjunctions, auxiliaries, measure words.
const CHINESE: &str = include_str!("stop_words/zh.txt");

/// The tokens to drop.
#[derive(Debug, Default)]
pub(crate) struct StopWords {
    words: HashSet<String>,
}

impl StopWords {
    /// The built-in lists if asked for, and the user's own words, one a line. Words are normalised like the texts; blank lines
    /// count for nothing.
    pub(crate) fn new(builtin: bool, own: Option<&str>, config: &NormalizeConfig) -> Self {
        let lists = [builtin.then_some(ENGLISH), builtin.then_some(CHINESE), own];
        let lines = lists.into_iter().flatten().flat_map(str::lines);
        let words =
            lines.map(|line| normalize(line.trim(), config).into_owned()).filter(|word| !word.is_empty()).collect();
        Self { words }
    }

    pub(crate) fn contains(&self, token: &str) -> bool {
        self.words.contains(token)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}
