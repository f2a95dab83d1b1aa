use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use crate::script::is_common_han_at;
use crate::tokenizer::Tokenizer;
use crate::words::{Symbols, WordCut, words_and_runs};

/// Every two neighbouring characters of a run of some scripts, each with its marks, as overlapping tokens; a run of one
/// character is that character. The text between the runs is cut into Unicode words.
///
/// A change of one character changes two tokens and no others, whatever the words around it, and no dictionary has to
/// know them.
pub(crate) struct Pairs {
    pub(crate) cut: WordCut,
    /// Returns whether a character belongs to the scripts.
    pub(crate) is_of_run: fn(char) -> bool,
}

impl Tokenizer for Pairs {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        words_and_runs(text, self.cut, spans, self.is_of_run, push_pairs);
    }

    fn drops_symbols(&self) -> bool {
        self.cut.symbols == Symbols::Dropped
    }
}

/// The pairs of characters of `run`, which has one at least and starts at byte `start` of the text. Marks belong to the
/// character before them.
fn push_pairs(run: &str, start: usize, spans: &mut Vec<Range<usize>>) {
    debug_assert!(!run.is_empty(), "a run of no characters would be an empty token");
    let (mut first, mut second) = (0, next_start(run, 0));
    if second == run.len() {
        spans.push(start..start + run.len());
    }
    while second < run.len() {
        let end = next_start(run, second);
        spans.push(start + first..start + end);
        (first, second) = (second, end);
    }
}

/// Returns where the character after the one at byte `at` begins, the first that is no mark; the length of `run` if there
/// is none.
#[inline]
fn next_start(run: &str, at: usize) -> usize {
    let bytes = run.as_bytes();
    if is_common_han_at(bytes, at) && (at + 3 == run.len() || is_common_han_at(bytes, at + 3)) {
        return at + 3;
    }
    let mut later = run[at..].char_indices().skip(1);
    later.find(|&(_, c)| !is_combining_mark(c)).map_or(run.len(), |(after, _)| at + after)
}
