use std::ops::Range;

use crate::script::{han_run_len, is_han};
use crate::tokenizer::Tokenizer;
use crate::words::{Scan, Symbols};

/// Each two neighbouring characters of a run of Han characters, which overlap; a run of one is that character. Everything between the runs as
/// Unicode words.
///
/// A change of one character changes two tokens and none further away, whatever the words around it, and no dictionary has to know them.
pub(crate) struct Bigrams {
    pub(crate) symbols: Symbols,
}

impl Tokenizer for Bigrams {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        let mut scan = Scan { text, at: 0, symbols: self.symbols, spans };
        while scan.at < text.len() {
            scan.take_ascii();
            match han_run_len(text, scan.at) {
                0 => scan.take_other(is_han),
                n => {
                    push_pairs(&text[..scan.at + n], scan.at, scan.spans);
                    scan.at += n;
                }
            }
        }
    }

    fn drops_symbols(&self) -> bool {
        self.symbols == Symbols::Dropped
    }
}

/// The pairs of the characters from byte `start` of `text` on, of which there is one at least.
fn push_pairs(text: &str, start: usize, spans: &mut Vec<Range<usize>>) {
    let before = spans.len();
    let mut ends = text[start..].char_indices().map(|(at, c)| start + at + c.len_utf8());
    let (mut first, mut second) = (start, ends.next().unwrap_or(start));
    for end in ends {
        spans.push(first..end);
        (first, second) = (second, end);
    }
    if spans.len() == before {
        spans.push(start..second);
    }
}
