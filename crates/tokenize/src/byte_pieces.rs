use std::borrow::Cow;
use std::ops::Range;

use crate::tokenizer::Tokenizer;

/// The text's UTF-8 bytes in pieces of `n` bytes; the last piece may be shorter. This is mllearning's SimHash, with n =
/// 2.
///
/// Pieces cut characters, so they are not strings: as tokens, their bytes are shown as the characters U+0000 to U+00FF,
/// and [`bytes`] converts them back when they become features.
pub(crate) struct BytePieces {
    n: usize,
}

impl BytePieces {
    /// `n` is at least 1.
    pub(crate) fn new(n: usize) -> Self {
        Self { n }
    }
}

impl Tokenizer for BytePieces {
    fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.bytes().map(char::from).collect()) }
    }

    fn spans(&self, shown: &str, spans: &mut Vec<Range<usize>>) {
        let mut starts = shown.char_indices().map(|(at, _)| at).step_by(self.n).peekable();
        while let Some(start) = starts.next() {
            spans.push(start..starts.peek().copied().unwrap_or(shown.len()));
        }
    }
}

/// Returns the bytes that a token, or a shingle of tokens, represents.
#[expect(clippy::expect_used, reason = "a byte left out would be another feature")]
pub(crate) fn bytes(shown: &[u8]) -> Vec<u8> {
    let shown = str::from_utf8(shown).expect("tokens are pieces of a str, and what joins them is ASCII");
    shown.chars().map(|c| u8::try_from(c).expect("bytes are shown as U+0000 to U+00FF")).collect()
}
