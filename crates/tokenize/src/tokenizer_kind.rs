//! The tokenizers by name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The tokenizers, by their name in a job file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenizerKind {
    /// Each two neighbouring characters of a run of Han, everything else as [`Words`](Self::Words). The default.
    #[default]
    Bigrams,
    /// Runs of Han through jieba, everything else as [`Words`](Self::Words).
    Mixed,
    /// The whole text through jieba: punctuation and white space are tokens too, unless dropped.
    Jieba,
    /// Unicode words (UAX #29), cut further at whatever is not a letter, digit, mark or `_`, so that alphabetic text gives
    /// what `\w+` gives, and each Han character is a word.
    Words,
    /// What Unicode white space separates.
    Whitespace,
    /// What ASCII white space separates, the vertical tab too: mllearning's SimHash.
    AsciiWhitespace,
    /// Every window of `ngram` characters, white space removed first.
    CharNgrams,
    /// Every window of `ngram` characters, all that Python's `\W` matches removed first; a text of fewer characters is one window: Python's simhash.
    WordCharNgrams,
    /// The same, but a text of fewer characters has no window: seomoz's simhash-py.
    FullWordCharNgrams,
    /// Every window of `ngram` UTF-16 units, nothing removed: sing1ee's SimHash.
    Utf16Ngrams,
    /// The UTF-8 bytes in pieces of `ngram`, which may cut characters: mllearning's SimHash. Takes no stop words, and cannot drop
    /// tokens without a letter or digit.
    BytePieces,
    /// What ASCII punctuation and ASCII white space separate: the crate gaoya.
    AsciiWords,
    /// The whole text through cppjieba's rules: yanyiwu's simhash. Every character is in some token, unless dropped.
    Cppjieba,
}

impl TokenizerKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Bigrams,
        Self::Mixed,
        Self::Jieba,
        Self::Words,
        Self::Whitespace,
        Self::AsciiWhitespace,
        Self::CharNgrams,
        Self::WordCharNgrams,
        Self::FullWordCharNgrams,
        Self::Utf16Ngrams,
        Self::BytePieces,
        Self::AsciiWords,
        Self::Cppjieba,
    ];
}

impl fmt::Display for TokenizerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bigrams => "bigrams",
            Self::Mixed => "mixed",
            Self::Jieba => "jieba",
            Self::Words => "words",
            Self::Whitespace => "whitespace",
            Self::AsciiWhitespace => "ascii_whitespace",
            Self::CharNgrams => "char_ngrams",
            Self::WordCharNgrams => "word_char_ngrams",
            Self::FullWordCharNgrams => "full_word_char_ngrams",
            Self::Utf16Ngrams => "utf16_ngrams",
            Self::BytePieces => "byte_pieces",
            Self::AsciiWords => "ascii_words",
            Self::Cppjieba => "cppjieba",
        })
    }
}
