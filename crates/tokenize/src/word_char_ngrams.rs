use std::borrow::Cow;
use std::ops::Range;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::char_ngrams::CharNgrams;
use crate::tokenizer::Tokenizer;

/// Every window of `n` characters of the text without all that Python's `\W` matches. So cut Python's simhash 2.1.2
/// (1e0ng) and the recipe of seomoz's simhash-py tests, lower-cased before.
pub(crate) struct WordCharNgrams {
    windows: CharNgrams,
    /// Characters below which a text has no window.
    least: usize,
}

impl WordCharNgrams {
    /// Python's simhash: a text of fewer characters, but at least one, is one window. `n` is at least 1.
    pub(crate) fn new(n: usize) -> Self {
        Self { windows: CharNgrams::new(n), least: 1 }
    }

    /// simhash-py's: a text of fewer characters has no window. `n` is at least 1.
    pub(crate) fn full(n: usize) -> Self {
        Self { windows: CharNgrams::new(n), least: n }
    }
}

impl Tokenizer for WordCharNgrams {
    fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.chars().all(is_python_word) {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(text.chars().filter(|&c| is_python_word(c)).collect())
        }
    }

    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        if text.chars().take(self.least).count() == self.least {
            self.windows.spans(text, spans);
        }
    }
}

/// `\w` of Python's `re` on a `str`: `isalnum()` or `_`, which is the general categories L and N. Rust's
/// `is_alphanumeric` has alphabetic marks too.
fn is_python_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    matches!(c.general_category_group(), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}
