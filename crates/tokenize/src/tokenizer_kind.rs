//! The tokenizers by name.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tokenizers, by their name in a job file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenizerKind {
    /// Every two neighbouring characters, each with its marks, of a run of scripts that put no spaces between words (Han,
    /// kana, Thai, Lao, Myanmar, Khmer); everything else is cut as by [`Words`](Self::Words). The default.
    #[default]
    Pairs,
    /// Every two neighbouring characters of a run of Han; everything else is cut as by [`Words`](Self::Words).
    Bigrams,
    /// Runs of Han are cut by jieba, and everything else as by [`Words`](Self::Words).
    Mixed,
    /// jieba cuts the whole text: punctuation and white space are tokens too, unless they are dropped.
    Jieba,
    /// Unicode words (UAX #29), cut further at every character that is not a letter, digit, mark or `_`, so that
    /// alphabetic text is cut as by `\w+`, and each Han character is a word.
    Words,
    /// The parts of the text that Unicode white space separates.
    Whitespace,
    /// The parts of the text that ASCII white space, including the vertical tab, separates: mllearning's SimHash.
    AsciiWhitespace,
    /// Every window of `ngram` characters, after white space is removed.
    CharNgrams,
    /// Every window of `ngram` characters, after all that Python's `\W` matches is removed; a text of fewer characters
    /// is one window: Python's simhash.
    WordCharNgrams,
    /// The same, but a text of fewer characters has no window: seomoz's simhash-py.
    FullWordCharNgrams,
    /// Every window of `ngram` UTF-16 units, with nothing removed: sing1ee's SimHash.
    Utf16Ngrams,
    /// The UTF-8 bytes in pieces of `ngram` bytes, which may cut characters: mllearning's SimHash. This tokenizer
    /// accepts no stop words, and cannot drop tokens without a letter or digit.
    BytePieces,
    /// The parts of the text that ASCII punctuation and ASCII white space separate: the crate gaoya.
    AsciiWords,
    /// The whole text is cut by cppjieba's rules: yanyiwu's simhash. Every character is in some token, unless it is
    /// dropped.
    Cppjieba,
}

impl TokenizerKind {
    /// Returns whether the tokenizer looks at [`hmm`](crate::TokenizerConfig::hmm).
    pub(crate) fn uses_hmm(self) -> bool {
        matches!(self, Self::Mixed | Self::Jieba | Self::Cppjieba)
    }

    /// Returns whether the tokenizer looks at [`long_run`](crate::TokenizerConfig::long_run).
    pub(crate) fn uses_long_run(self) -> bool {
        matches!(self, Self::Pairs | Self::Bigrams | Self::Mixed | Self::Words)
    }

    /// Returns whether the tokenizer looks at [`ngram`](crate::TokenizerConfig::ngram).
    pub(crate) fn uses_ngram(self) -> bool {
        matches!(
            self,
            Self::CharNgrams | Self::WordCharNgrams | Self::FullWordCharNgrams | Self::Utf16Ngrams | Self::BytePieces
        )
    }

    /// All tokenizers.
    pub const ALL: [Self; 14] = [
        Self::Pairs,
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
            Self::Pairs => "pairs",
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
