use std::collections::HashSet;

use crate::config::{NormalizeConfig, StopWordsConfig};
#[cfg(feature = "published")]
use crate::cppjieba::STOP_WORDS as CPPJIEBA;
use crate::normalize::normalize;

/// Written for this project: function words only, with the pieces that contractions leave behind (`don`, `t`, `ll`).
const ENGLISH: &str = include_str!("stop_words/en.txt");
/// Written for this project: particles, pronouns, prepositions, conjunctions, auxiliaries, measure words.
const CHINESE: &str = include_str!("stop_words/zh.txt");

/// A config that asks for cppjieba's list is refused where there is none.
#[cfg(not(feature = "published"))]
const CPPJIEBA: &str = "";

/// The tokens to drop.
#[derive(Debug, Default)]
pub(crate) struct StopWords {
    words: HashSet<String>,
}

impl StopWords {
    /// Loads the configured lists and the user's own words, one on each line. Words are normalised like the texts,
    /// except cppjieba's; blank lines are ignored.
    pub(crate) fn new(lists: &StopWordsConfig, own: Option<&str>, config: &NormalizeConfig) -> Self {
        let builtin = lists.builtin;
        let as_they_are = lists.cppjieba.then_some(CPPJIEBA).into_iter().flat_map(str::lines).map(String::from);
        let lists = [builtin.then_some(ENGLISH), builtin.then_some(CHINESE), own];
        let lines = lists.into_iter().flatten().flat_map(str::lines);
        let words = lines.map(|line| normalize(line.trim(), config).into_owned());
        Self { words: words.chain(as_they_are).filter(|word| !word.is_empty()).collect() }
    }

    pub(crate) fn contains(&self, token: &str) -> bool {
        self.words.contains(token)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}
