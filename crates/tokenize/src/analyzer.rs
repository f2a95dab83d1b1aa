use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[cfg(feature = "published")]
use crate::byte_pieces;
use crate::config::{FeatureConfig, MinFeatures, NormalizeConfig, TokenizeConfig, TokenizerConfig};
use crate::distinct::{DistinctTokens, Scratch};
use crate::error::TokenizeError;
use crate::idf::IdfTable;
use crate::jieba::dictionary;
use crate::normalize::normalize;
use crate::script::{is_alphanumeric, is_mostly_han};
use crate::shingle;
use crate::shingle::Features;
use crate::stop_words::StopWords;
use crate::tokenizer::Tokenizer;
use crate::tokenizer_kind::TokenizerKind;
use crate::tokenizers;
use crate::tokens::Tokens;
use crate::weight::Weight;

/// A [`TokenizeConfig`] made ready: dictionary and word lists loaded. Build one and share it between threads.
pub struct Analyzer {
    normalize: NormalizeConfig,
    tokenizer: Box<dyn Tokenizer>,
    drop_without_alphanumeric: bool,
    drop_single_characters: bool,
    stop_words: StopWords,
    /// Whether the tokens show bytes.
    of_bytes: bool,
    /// The user's table.
    idf: Option<Arc<IdfTable>>,
    min_features: MinFeatures,
}

/// The *contents* of the files that a config names: this crate reads none itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// A jieba user dictionary: `word [frequency] [tag]` a line. Words are normalised like the texts. `mixed` gives jieba
    /// Han runs only, so only words all in Han can be found there.
    pub user_dictionary: Option<String>,
    /// Stop words of the user's own, one a line, beside or instead of the built-in ones. Each is compared with whole tokens.
    pub stop_words: Option<String>,
    /// An idf table of the user's own, `word idf` a line, instead of jieba's; [`IdfBuilder`](crate::IdfBuilder) writes one. Words stand in
    /// it as tokens of normalised texts do.
    pub idf: Option<String>,
}

impl Analyzer {
    /// Loads what `config` needs. The first one in a process that uses jieba decodes its dictionary.
    ///
    /// # Errors
    /// A number below its least value, a part-of-speech filter or user dictionary without jieba, or a bad dictionary line.
    pub fn try_new(config: &TokenizeConfig, resources: &Resources) -> Result<Self, TokenizeError> {
        config.validate()?;
        refuse_unused(config, resources)?;
        refuse_unbuilt(config, resources)?;
        let user_dictionary = resources.user_dictionary.as_deref();
        let tokenizer = tokenizers::build(config, || dictionary(user_dictionary, &config.normalize))?;
        let own = resources.stop_words.as_deref();
        Ok(Self {
            normalize: config.normalize.clone(),
            tokenizer,
            drop_without_alphanumeric: config.tokenizer.drop_tokens_without_alphanumeric,
            drop_single_characters: config.stop_words.single_characters,
            stop_words: StopWords::new(&config.stop_words, own, &config.normalize),
            of_bytes: config.tokenizer.kind == TokenizerKind::BytePieces,
            idf: resources.idf.as_deref().map(IdfTable::parse).transpose()?.map(Arc::new),
            min_features: config.min_features,
        })
    }

    /// The text that tokens are cut from and that exact duplicates share. Borrows when nothing changes.
    ///
    /// Idempotent, except that HTML entities are decoded once each time (`&amp;lt;` becomes `&lt;`, and that `<`).
    #[must_use]
    pub fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        normalize(text, &self.normalize)
    }

    /// The tokens of a text that [`normalize`](Self::normalize) gave, without those that the config drops. Linear in its length.
    #[must_use]
    pub fn tokens<'a>(&self, normalized: &'a str) -> Tokens<'a> {
        let mut spans = Vec::with_capacity(normalized.len() / 4);
        let text = self.cut(normalized, &mut spans);
        Tokens::new(text, spans)
    }

    /// The same tokens, counted and numbered, in memory that is used again for the next text.
    #[must_use]
    pub fn distinct_tokens<'a>(&self, normalized: &'a str, scratch: &'a mut Scratch) -> DistinctTokens<'a> {
        scratch.clear();
        let text = self.cut(normalized, &mut scratch.spans);
        scratch.number_tokens(text)
    }

    /// Whether the features of `config` are the distinct tokens, each with a weight that is a function of its count alone.
    #[must_use]
    pub fn features_are_tokens(&self, config: &FeatureConfig) -> bool {
        config.shingle <= 1 && config.weight.is_of_count() && !self.of_bytes
    }

    /// The distinct shingles of `config.shingle` tokens (0 is taken as 1) with their weights. Linear in the number of tokens, times its
    /// logarithm for [`Weight::TfIdf`].
    ///
    /// That weight uses the user's table or, without one, jieba's own, which is decoded at its first use in a process.
    #[must_use]
    pub fn features(&self, tokens: &Tokens<'_>, config: &FeatureConfig) -> Features {
        let shown = shingle::features(tokens, config);
        let features = if self.of_bytes { of_bytes(&shown) } else { shown };
        match config.weight {
            Weight::ByteLength => by_length(&features),
            Weight::TfIdf { top } => {
                let table = self.idf.clone().unwrap_or_else(IdfTable::builtin);
                table.weigh(&features, top, tokens.text_bytes())
            }
            _ => features,
        }
    }

    /// Appends the kept tokens' ranges in the text that is returned.
    fn cut<'a>(&self, normalized: &'a str, spans: &mut Vec<Range<usize>>) -> Cow<'a, str> {
        let text = self.tokenizer.prepare(normalized);
        self.tokenizer.spans(&text, spans);
        if self.drop_without_alphanumeric && !self.tokenizer.drops_symbols() {
            spans.retain(|span| text[span.clone()].chars().any(is_alphanumeric));
        }
        if self.drop_single_characters {
            spans.retain(|span| text[span.clone()].chars().nth(1).is_some());
        }
        if !self.stop_words.is_empty() {
            spans.retain(|span| !self.stop_words.contains(&text[span.clone()]));
        }
        text
    }

    /// Whether `n_distinct` features are as many as [`MinFeatures`] asks of the text's script. None never are.
    #[must_use]
    pub fn has_enough(&self, normalized: &str, n_distinct: usize) -> bool {
        let MinFeatures { han, other } = self.min_features;
        if n_distinct == 0 || n_distinct < han.min(other) {
            return false;
        }
        n_distinct >= han.max(other) || n_distinct >= if is_mostly_han(normalized) { han } else { other }
    }
}

impl fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analyzer").field("normalize", &self.normalize).finish_non_exhaustive()
    }
}

/// The same features with the bytes that they show.
#[cfg(feature = "published")]
fn of_bytes(shown: &Features) -> Features {
    let bytes: Vec<(Vec<u8>, u64)> =
        shown.iter().map(|(feature, weight)| (byte_pieces::bytes(feature), weight)).collect();
    Features::of(bytes.iter().map(|(feature, weight)| (feature.as_slice(), *weight)))
}

#[cfg(not(feature = "published"))]
fn of_bytes(_: &Features) -> Features {
    unreachable!("byte pieces are refused where they are not built")
}

/// No product overflows: all tokens together are no longer than the text, which is far below 2^48 bytes.
fn by_length(features: &Features) -> Features {
    Features::of(features.iter().map(|(feature, weight)| (feature, weight * feature.len() as u64)))
}

/// Data of published programs that this build lacks.
fn refuse_unbuilt(config: &TokenizeConfig, resources: &Resources) -> Result<(), TokenizeError> {
    let unbuilt = |what: &str| Err(TokenizeError::NotBuilt { what: what.to_owned() });
    match config.features.weight {
        _ if cfg!(feature = "published") => Ok(()),
        _ if config.stop_words.cppjieba => unbuilt("stop_words.cppjieba"),
        Weight::TfIdf { .. } if resources.idf.is_none() => unbuilt("features.weight = tf_idf, without an idf table"),
        _ => Ok(()),
    }
}

/// Settings that the configured tokenizer cannot honour are refused, not ignored.
fn refuse_unused(config: &TokenizeConfig, resources: &Resources) -> Result<(), TokenizeError> {
    let kind = config.tokenizer.kind;
    let weight = config.features.weight;
    if resources.idf.is_some() && !matches!(weight, Weight::TfIdf { .. }) {
        return Err(TokenizeError::UnusedIdf { weight });
    }
    refuse_unused_by_tokenizer(&config.tokenizer)?;
    if kind == TokenizerKind::BytePieces {
        refuse_characters(config, resources)?;
    }
    if matches!(kind, TokenizerKind::Mixed | TokenizerKind::Jieba) {
        return Ok(());
    }
    if !config.stop_words.drop_parts_of_speech.is_empty() {
        return Err(TokenizeError::NoPartsOfSpeech { kind });
    }
    if resources.user_dictionary.is_some() {
        return Err(TokenizeError::NoDictionary { kind });
    }
    Ok(())
}

/// Settings that differ from their defaults although the tokenizer does not look at them.
fn refuse_unused_by_tokenizer(config: &TokenizerConfig) -> Result<(), TokenizeError> {
    use TokenizerKind::{
        BytePieces, CharNgrams, Cppjieba, FullWordCharNgrams, Jieba, Mixed, Utf16Ngrams, WordCharNgrams,
    };
    let (kind, unset) = (config.kind, TokenizerConfig::default());
    let unused = |key, default, users| Err(TokenizeError::UnusedByTokenizer { key, kind, default, users });
    if config.hmm != unset.hmm && !matches!(kind, Mixed | Jieba | Cppjieba) {
        return unused("tokenizer.hmm", "false", "`mixed`, `jieba` or `cppjieba`");
    }
    if config.ngram != unset.ngram
        && !matches!(kind, CharNgrams | WordCharNgrams | FullWordCharNgrams | Utf16Ngrams | BytePieces)
    {
        return unused(
            "tokenizer.ngram",
            "4",
            "`char_ngrams`, `word_char_ngrams`, `full_word_char_ngrams`, `utf16_ngrams` or `byte_pieces`",
        );
    }
    Ok(())
}

/// What looks at characters cannot look at pieces of them.
fn refuse_characters(config: &TokenizeConfig, resources: &Resources) -> Result<(), TokenizeError> {
    let asked = [
        ("tokenizer.drop_tokens_without_alphanumeric", config.tokenizer.drop_tokens_without_alphanumeric),
        ("stop_words.builtin", config.stop_words.builtin),
        ("stop_words.cppjieba", config.stop_words.cppjieba),
        ("stop_words.single_characters", config.stop_words.single_characters),
        ("stop_words", resources.stop_words.is_some()),
        ("features.weight.tf_idf", matches!(config.features.weight, Weight::TfIdf { .. })),
    ];
    asked.into_iter().find(|(_, on)| *on).map_or(Ok(()), |(key, _)| Err(TokenizeError::NoCharacters { key }))
}
