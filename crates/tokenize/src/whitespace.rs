use std::ops::Range;

use crate::tokenizer::Tokenizer;

/// What Unicode white space separates.
pub(crate) struct Whitespace;

impl Tokenizer for Whitespace {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        let mut start = None;
        for (at, c) in text.char_indices() {
            match (start, c.is_whitespace()) {
                (None, false) => start = Some(at),
                (Some(from), true) => {
                    spans.push(from..at);
                    start = None;
                }
                _ => {}
            }
        }
        spans.extend(start.map(|from| from..text.len()));
    }
}
