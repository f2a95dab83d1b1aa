use std::ops::Range;

use crate::tokenizer::Tokenizer;

/// The parts of the text that white space separates.
pub(crate) struct Whitespace {
    /// The characters that count as white space.
    separates: fn(char) -> bool,
}

impl Whitespace {
    /// Separates at Unicode's white space.
    pub(crate) const UNICODE: Self = Self { separates: char::is_whitespace };
    /// C's `isspace`, which has the vertical tab too: mllearning's SimHash reads words from a C++ stream.
    pub(crate) const ASCII: Self = Self { separates: |c| matches!(c, ' ' | '\t'..='\r') };
}

impl Tokenizer for Whitespace {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        let mut start = None;
        for (at, c) in text.char_indices() {
            match (start, (self.separates)(c)) {
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
