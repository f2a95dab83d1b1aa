use std::borrow::Cow;
use std::ops::Range;

use crate::tokenizer::Tokenizer;

/// Every window of `n` characters of the text without its white space. A text of fewer characters, but at least one, is
/// one window.
pub(crate) struct CharNgrams {
    n: usize,
}

impl CharNgrams {
    /// `n` is at least 1.
    pub(crate) fn new(n: usize) -> Self {
        Self { n }
    }
}

impl Tokenizer for CharNgrams {
    fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.contains(char::is_whitespace) {
            Cow::Owned(text.chars().filter(|c| !c.is_whitespace()).collect())
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Two cursors over the character boundaries, `n` apart.
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        if text.is_empty() {
            return;
        }
        let starts = text.char_indices().map(|(at, _)| at);
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).skip(self.n - 1);
        let before = spans.len();
        spans.extend(starts.zip(ends).map(|(start, end)| start..end));
        if spans.len() == before {
            spans.push(0..text.len());
        }
    }
}
