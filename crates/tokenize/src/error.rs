use crate::TokenizerKind;

/// Why an [`Analyzer`](crate::Analyzer) could not be built. Texts themselves never fail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizeError {
    /// A number in the config is below its least sensible value.
    #[error("`{key}` is {got}, it must be at least {least}")]
    TooSmall {
        /// The config key, as written in the job file below `[tokenize]`.
        key: &'static str,
        /// The value found.
        got: usize,
        /// The least value allowed.
        least: usize,
    },

    /// A part-of-speech filter was asked of a tokenizer that gives no parts of speech.
    #[error(
        "`stop_words.drop_parts_of_speech` needs jieba's tags: the tokenizer is `{kind}`, use `mixed` or `jieba`, or empty the list"
    )]
    NoPartsOfSpeech {
        /// The tokenizer configured.
        kind: TokenizerKind,
    },

    /// A user dictionary was given to a tokenizer that reads none.
    #[error("a user dictionary needs jieba: the tokenizer is `{kind}`, use `mixed` or `jieba`, or give no dictionary")]
    NoDictionary {
        /// The tokenizer configured.
        kind: TokenizerKind,
    },

    /// A line of the user dictionary is not `word [frequency] [tag]`.
    #[error("user dictionary, line {line}: {reason} in `{text}`; write `word [frequency] [tag]`")]
    UserDictionary {
        /// Line number, from 1.
        line: usize,
        /// The line as found.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}
