//! The tokens of a text.

use std::borrow::Cow;
use std::ops::Range;

/// The tokens of one text, in order: byte ranges of the text, which is borrowed unless the tokenizer had to change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens<'a> {
    text: Cow<'a, str>,
    spans: Vec<Range<usize>>,
}

impl<'a> Tokens<'a> {
    /// `spans` are byte ranges of `text`, on character boundaries.
    pub(crate) fn new(text: Cow<'a, str>, spans: Vec<Range<usize>>) -> Self {
        Self { text, spans }
    }

    /// Returns the tokens, in the order of the text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// Returns the number of tokens, including repeated ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the number of bytes of the text that the tokens lie in.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }
}
