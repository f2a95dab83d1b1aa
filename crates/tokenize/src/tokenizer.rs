//! The interface of a tokenizer.

use std::borrow::Cow;
use std::ops::Range;

/// Cuts a normalised text into tokens. A new tokenizer is one file that implements this, and one line in
/// [`build`](crate::tokenizers::build).
pub(crate) trait Tokenizer: Send + Sync {
    /// Returns the text that [`spans`](Self::spans) receives: the input, unless the tokenizer leaves some of it out.
    fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }

    /// Appends the byte range of each token of the prepared text, in order.
    fn spans(&self, prepared: &str, spans: &mut Vec<Range<usize>>);

    /// Appends the same ranges if all letters, digits and marks of the text are ASCII or common Han characters, each of which
    /// is a token, and returns whether that is so. If it is not, or not certain, the ranges are not complete.
    fn spans_of_common(&self, _prepared: &str, _spans: &mut Vec<Range<usize>>) -> bool {
        false
    }

    /// Returns whether the tokenizer is configured to produce no token without a letter or digit, and so produces none.
    fn drops_symbols(&self) -> bool {
        false
    }
}
