use crate::tokenizer_kind::TokenizerKind;
use crate::weight::Weight;

/// The reason why an [`Analyzer`](crate::Analyzer) could not be built. Analysing a text never fails.
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

    /// A part-of-speech filter was configured for a tokenizer that gives no parts of speech.
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

    /// A setting reproduces a published program, and this build does not support these programs.
    #[error("`{what}` is not in this build: build with the cargo feature `published`, or leave it out")]
    NotBuilt {
        /// The key, and its value if that matters.
        what: String,
    },

    /// A setting is set that the tokenizer does not use.
    #[error("`{key}` is not used by the tokenizer `{kind}`: leave it at {default}, or use {users}")]
    UnusedByTokenizer {
        /// The config key, as written in the job file below `[tokenize]`.
        key: &'static str,
        /// The tokenizer configured.
        kind: TokenizerKind,
        /// The default value of the setting.
        default: &'static str,
        /// The tokenizers that use the setting.
        users: &'static str,
    },

    /// A weight of single tokens was configured for shingles.
    #[error(
        "`features.weight` {weight} weighs single tokens, `features.shingle` is {shingle}: set it to 1, or use another weight"
    )]
    WeightOfTokens {
        /// The weight configured.
        weight: Weight,
        /// The shingle configured.
        shingle: usize,
    },

    /// Short words were to weigh half, but the features are no single tokens with a weight of their count.
    #[error(
        "`features.short_word` needs single tokens and a weight of their count, `features.shingle` is {shingle} and `features.weight` is {weight}: set `features.short_word` to 0, or use another shingle or weight"
    )]
    ShortWordOfTokens {
        /// The weight configured.
        weight: Weight,
        /// The shingle configured.
        shingle: usize,
    },

    /// An idf table was given to a config that weighs without one.
    #[error("an idf table needs `features.weight` to be tf_idf, it is {weight}: change the weight, or give no table")]
    UnusedIdf {
        /// The weight configured.
        weight: Weight,
    },

    /// A setting looks at characters, but the tokens are bytes.
    #[error("`{key}` needs tokens of whole characters, `byte_pieces` cuts them: turn it off, or use another tokenizer")]
    NoCharacters {
        /// The config key, as written in the job file below `[tokenize]`.
        key: &'static str,
    },

    /// A line of the idf table is not `word idf`.
    #[error("idf table, line {line}: {reason} in `{text}`; write `word idf`, separated by a tab or a space")]
    Idf {
        /// Line number, from 1.
        line: usize,
        /// The line as found.
        text: String,
        /// The fault of the line.
        reason: &'static str,
    },

    /// A line of the user dictionary is not `word [frequency] [tag]`.
    #[error("user dictionary, line {line}: {reason} in `{text}`; write `word [frequency] [tag]`")]
    UserDictionary {
        /// Line number, from 1.
        line: usize,
        /// The line as found.
        text: String,
        /// The fault of the line.
        reason: &'static str,
    },
}

impl TokenizeError {
    /// Returns the key of the job file that is refused, if it is one.
    #[must_use]
    pub fn key(&self) -> Option<String> {
        match self {
            Self::TooSmall { key, .. } | Self::UnusedByTokenizer { key, .. } => Some(format!("tokenize.{key}")),
            Self::NoPartsOfSpeech { .. } => Some("tokenize.stop_words.drop_parts_of_speech".to_owned()),
            Self::NoDictionary { .. } => Some("user_dictionary".to_owned()),
            _ => None,
        }
    }
}
