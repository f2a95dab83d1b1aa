use std::borrow::Cow;
use std::ops::Range;

use crate::tokenizer::Tokenizer;

/// Every window of `n` UTF-16 units, as Java cuts a string: a character beyond U+FFFF is two units. Half of such a
/// character becomes `?`, as Java's `getBytes` makes it. A text of fewer units has no window. This is sing1ee's
/// SimHash, with n = 2.
pub(crate) struct Utf16Ngrams {
    n: usize,
}

impl Utf16Ngrams {
    /// `n` is at least 1.
    pub(crate) fn new(n: usize) -> Self {
        Self { n }
    }
}

impl Tokenizer for Utf16Ngrams {
    /// All windows, one after the other. Each still has `n` units, since `?` is one too.
    fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let units: Vec<u16> = text.encode_utf16().collect();
        if units.len() == self.n {
            return Cow::Borrowed(text);
        }
        let windows = units.windows(self.n).flat_map(|window| char::decode_utf16(window.iter().copied()));
        Cow::Owned(windows.map(|c| c.unwrap_or('?')).collect())
    }

    fn spans(&self, windows: &str, spans: &mut Vec<Range<usize>>) {
        let (mut start, mut n_units) = (0, 0);
        for (at, c) in windows.char_indices() {
            n_units += c.len_utf16();
            if n_units >= self.n {
                spans.push(start..at + c.len_utf8());
                (start, n_units) = (at + c.len_utf8(), 0);
            }
        }
    }
}
