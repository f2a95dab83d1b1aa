use std::ops::Range;

use crate::tokenizer::Tokenizer;

/// What ASCII punctuation and ASCII white space separate: the words of the crate gaoya 0.2.2.
pub(crate) struct AsciiWords;

impl Tokenizer for AsciiWords {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            if c.is_ascii_punctuation() || c.is_ascii_whitespace() {
                spans.extend((start < at).then_some(start..at));
                start = at + c.len_utf8();
            }
        }
        spans.extend((start < text.len()).then_some(start..text.len()));
    }
}
