//! What a tokenizer does.

use std::borrow::Cow;
use std::ops::Range;

/// Cuts a normalised text into tokens. A new tokenizer is one file that implements this, and one line in [`build`](crate::tokenizers::build).
pub(crate) trait Tokenizer: Send + Sync {
    /// The text that [`spans`](Self::spans) is given: what came in, unless the tokenizer leaves some of it out.
    fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }

    /// Appends the byte range of each token of the prepared text, in order.
    fn spans(&self, prepared: &str, spans: &mut Vec<Range<usize>>);

    /// Whether it was told to give no token without a letter or digit, and gives none.
    fn drops_symbols(&self) -> bool {
        false
    }
}
