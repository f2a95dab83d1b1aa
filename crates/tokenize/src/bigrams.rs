use std::ops::Range;

use crate::tokenizer::Tokenizer;
use crate::words::{Symbols, words_and_han};

/// Every two neighbouring characters of a run of Han characters, as overlapping tokens; a run of one character is that
/// character. The text between the runs is cut into Unicode words.
///
/// A change of one character changes two tokens and no others, whatever the words around it, and no dictionary has to
/// know them.
pub(crate) struct Bigrams {
    pub(crate) symbols: Symbols,
}

impl Tokenizer for Bigrams {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        words_and_han(text, self.symbols, spans, push_pairs);
    }

    fn drops_symbols(&self) -> bool {
        self.symbols == Symbols::Dropped
    }
}

/// The pairs of characters of `run`, which has one at least and starts at byte `start` of the text.
fn push_pairs(run: &str, start: usize, spans: &mut Vec<Range<usize>>) {
    debug_assert!(!run.is_empty(), "a run of no characters would be an empty token");
    let before = spans.len();
    let mut ends = run.char_indices().map(|(at, c)| start + at + c.len_utf8());
    let (mut first, mut second) = (start, ends.next().unwrap_or(start));
    for end in ends {
        spans.push(first..end);
        (first, second) = (second, end);
    }
    if spans.len() == before {
        spans.push(start..second);
    }
}
