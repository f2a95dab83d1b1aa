use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[cfg(feature = "published")]
use crate::byte_pieces;
use crate::config::{FeatureConfig, MinFeatures, NormalizeConfig, TokenizeConfig, TokenizerConfig};
use crate::distinct::{DistinctTokens, Scratch, WordsAndPairs};
use crate::error::TokenizeError;
use crate::idf::IdfTable;
use crate::jieba::dictionary;
use crate::normalize::normalize;
use crate::script::{MainScript, has_unspaced, is_alphanumeric, main_script};
use crate::shingle;
use crate::shingle::Features;
use crate::stop_words::StopWords;
use crate::tokenizer::Tokenizer;
use crate::tokenizer_kind::TokenizerKind;
use crate::tokenizers;
use crate::tokens::Tokens;
use crate::weight::Weight;

/// A [`TokenizeConfig`] that is ready for use, with its dictionary and word lists loaded. Build one and share it
/// between threads.
///
/// ```
/// use nearprint_tokenize::{Analyzer, Resources, TokenizeConfig};
///
/// let resources = Resources { stop_words: Some("the\nof".to_owned()), ..Resources::default() };
/// let analyzer = Analyzer::try_new(&TokenizeConfig::default(), &resources)?;
/// let text = analyzer.normalize("The Art of War");
/// let tokens = analyzer.tokens(&text);
/// assert_eq!(tokens.iter().collect::<Vec<_>>(), ["art", "war"]);
/// # Ok::<(), nearprint_tokenize::TokenizeError>(())
/// ```
pub struct Analyzer {
    normalize: NormalizeConfig,
    tokenizer: Box<dyn Tokenizer>,
    drop_without_alphanumeric: bool,
    drop_single_characters: bool,
    stop_words: StopWords,
    kind: TokenizerKind,
    /// The user's table.
    idf: Option<Arc<IdfTable>>,
    min_features: MinFeatures,
}

/// The *contents* of the files that a config names; this crate does not read files itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// A jieba user dictionary, with one `word [frequency] [tag]` on each line. Words are normalised like the texts.
    /// `mixed` passes only runs of Han to jieba, so it finds only words that consist of Han alone.
    pub user_dictionary: Option<String>,
    /// The user's own stop words, one on each line, in addition to the built-in ones or instead of them. Each is
    /// compared with whole tokens.
    pub stop_words: Option<String>,
    /// The user's own idf table, with one `word idf` on each line, instead of jieba's;
    /// [`IdfBuilder`](crate::IdfBuilder) writes one. The words must be as tokens of normalised texts are.
    pub idf: Option<String>,
}

impl Analyzer {
    /// Loads the data that `config` needs. The first analyzer in a process that uses jieba decodes its dictionary.
    ///
    /// # Errors
    /// [`TokenizeError`] if a number is below its least value, if a setting or file does not suit the tokenizer or the
    /// weight, or if a line of a file is malformed.
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
            kind: config.tokenizer.kind,
            idf: resources.idf.as_deref().map(IdfTable::parse).transpose()?.map(Arc::new),
            min_features: config.min_features,
        })
    }

    /// Returns the normalised text, from which tokens are cut and which exact duplicates share. The result borrows from
    /// `text` if nothing changes.
    ///
    /// The method is idempotent, except that each call decodes HTML entities once (`&amp;lt;` becomes `&lt;`, and that
    /// becomes `<`).
    #[must_use]
    pub fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        normalize(text, &self.normalize)
    }

    /// Returns the tokens of a text that [`normalize`](Self::normalize) returned, without those that the config drops,
    /// in time linear in the length of the text.
    #[must_use]
    pub fn tokens<'a>(&self, normalized: &'a str) -> Tokens<'a> {
        let mut spans = Vec::with_capacity(normalized.len() / 4);
        let text = self.cut(normalized, &mut spans);
        Tokens::new(text, spans)
    }

    /// Returns the same tokens, counted and numbered, in memory that is reused for the next text.
    ///
    /// ```
    /// use nearprint_tokenize::{Analyzer, Resources, Scratch, TokenizeConfig};
    ///
    /// let analyzer = Analyzer::try_new(&TokenizeConfig::default(), &Resources::default())?;
    /// let mut scratch = Scratch::default();
    /// let tokens = analyzer.distinct_tokens("a rose is a rose", &mut scratch);
    /// assert_eq!(tokens.iter().collect::<Vec<_>>(), [(&b"a"[..], 2), (&b"rose"[..], 2), (&b"is"[..], 1)]);
    /// assert_eq!(tokens.sequence(), [0, 1, 2, 0, 1]);
    /// # Ok::<(), nearprint_tokenize::TokenizeError>(())
    /// ```
    ///
    /// # Panics
    /// If the text has 4 GiB or more.
    #[must_use]
    pub fn distinct_tokens<'a>(&self, normalized: &'a str, scratch: &'a mut Scratch) -> DistinctTokens<'a> {
        scratch.clear();
        let text = self.cut(normalized, &mut scratch.spans);
        scratch.number_tokens(text)
    }

    /// Returns the tokens of a text as this analyzer cuts them, which has the tokenizer [`Words`](TokenizerKind::Words),
    /// and as [`Pairs`](TokenizerKind::Pairs) with the same settings does. Returns `None` where the second do not follow
    /// from the first: if the text has letters, digits or marks besides ASCII and the common Han, if stop words or single
    /// characters are dropped, or if the analyzer has another tokenizer.
    ///
    /// ```
    /// use nearprint_tokenize::{Analyzer, Resources, Scratch, TokenizeConfig, TokenizerConfig, TokenizerKind};
    ///
    /// let words = TokenizerConfig { kind: TokenizerKind::Words, ..TokenizerConfig::default() };
    /// let analyzer = Analyzer::try_new(&TokenizeConfig { tokenizer: words, ..TokenizeConfig::default() }, &Resources::default())?;
    /// let mut scratch = Scratch::default();
    /// let both = analyzer.words_and_pairs("雨天 rose 天", &mut scratch).unwrap();
    /// assert_eq!(both.words().iter().map(|(word, _)| word).collect::<Vec<_>>(), ["雨", "天", "rose"].map(str::as_bytes));
    /// assert_eq!(both.pairs().collect::<Vec<_>>(), [("雨天".as_bytes(), 1)]);
    /// assert_eq!(both.unpaired().collect::<Vec<_>>(), [(1, "天".as_bytes(), 1), (2, "rose".as_bytes(), 1)]);
    /// # Ok::<(), nearprint_tokenize::TokenizeError>(())
    /// ```
    ///
    /// # Panics
    /// If the text has 4 GiB or more.
    #[must_use]
    pub fn words_and_pairs<'a>(&self, normalized: &'a str, scratch: &'a mut Scratch) -> Option<WordsAndPairs<'a>> {
        let drops = self.drop_single_characters || !self.stop_words.is_empty();
        if drops || self.kind != TokenizerKind::Words {
            return None;
        }
        scratch.clear();
        let is_common = self.tokenizer.spans_of_common(normalized, &mut scratch.spans);
        is_common.then(|| scratch.number_words_and_pairs(normalized))
    }

    /// Returns whether the text has characters of which the tokenizer [`Pairs`](TokenizerKind::Pairs) makes pairs. If
    /// it has none, [`Words`](TokenizerKind::Words) with the same settings cuts the same tokens.
    #[must_use]
    pub fn has_pairs(normalized: &str) -> bool {
        has_unspaced(normalized)
    }

    /// Returns whether the features of `config` are the distinct tokens, each with a weight that is a function of its
    /// count alone.
    #[must_use]
    pub fn features_are_tokens(&self, config: &FeatureConfig) -> bool {
        config.shingle <= 1 && config.weight.is_of_count() && self.kind != TokenizerKind::BytePieces
    }

    /// Returns the distinct shingles of `config.shingle` tokens (0 counts as 1) with their weights. The time is linear
    /// in the number of tokens; for [`Weight::TfIdf`] it is that number times its logarithm.
    ///
    /// [`Weight::TfIdf`] uses the user's table or, if there is none, jieba's own, which is decoded at its first use in
    /// a process.
    #[must_use]
    pub fn features(&self, tokens: &Tokens<'_>, config: &FeatureConfig) -> Features {
        let shown = shingle::features(tokens, config);
        let features = if self.kind == TokenizerKind::BytePieces { of_bytes(&shown) } else { shown };
        match config.weight {
            Weight::ByteLength => by_length(&features),
            Weight::TfIdf { top } => {
                let table = self.idf.clone().unwrap_or_else(IdfTable::builtin);
                table.weigh(&features, top, tokens.text_bytes())
            }
            _ => features,
        }
    }

    /// Appends the ranges of the kept tokens, and returns the text that they refer to.
    fn cut<'a>(&self, normalized: &'a str, spans: &mut Vec<Range<usize>>) -> Cow<'a, str> {
        let text = self.tokenizer.prepare(normalized);
        self.tokenizer.spans(&text, spans);
        debug_assert!(
            spans.iter().all(|span| text.get(span.clone()).is_some_and(|token| !token.is_empty())),
            "a token is a piece of the text, and has a character at least"
        );
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

    /// Returns whether `n_distinct` features are as many as [`MinFeatures`] requires for the script of the text. Zero
    /// features are never enough.
    #[must_use]
    pub fn has_enough(&self, normalized: &str, n_distinct: usize) -> bool {
        let MinFeatures { han, unspaced, other } = self.min_features;
        let unspaced = unspaced.unwrap_or(other);
        if n_distinct == 0 || n_distinct < han.min(unspaced).min(other) {
            return false;
        }
        let floor = || match main_script(normalized) {
            MainScript::Han => han,
            MainScript::Unspaced => unspaced,
            MainScript::Other => other,
        };
        n_distinct >= han.max(unspaced).max(other) || n_distinct >= floor()
    }
}

impl fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analyzer").field("normalize", &self.normalize).finish_non_exhaustive()
    }
}

/// Returns the same features with the bytes that they represent.
#[cfg(feature = "published")]
fn of_bytes(shown: &Features) -> Features {
    let bytes: Vec<(Vec<u8>, u64)> =
        shown.iter().map(|(feature, weight)| (byte_pieces::bytes(feature), weight)).collect();
    Features::of(bytes.iter().map(|(feature, weight)| (feature.as_slice(), *weight)), shown.unit())
}

#[cfg(not(feature = "published"))]
fn of_bytes(_: &Features) -> Features {
    unreachable!("byte pieces are refused where they are not built")
}

/// No product overflows: all tokens together are no longer than the text, which is far below 2^48 bytes.
fn by_length(features: &Features) -> Features {
    Features::of(features.iter().map(|(feature, weight)| (feature, weight * feature.len() as u64)), features.unit())
}

/// Refuses data of published programs that this build lacks.
fn refuse_unbuilt(config: &TokenizeConfig, resources: &Resources) -> Result<(), TokenizeError> {
    let unbuilt = |what: &str| Err(TokenizeError::NotBuilt { what: what.to_owned() });
    match config.features.weight {
        _ if cfg!(feature = "published") => Ok(()),
        _ if config.stop_words.cppjieba => unbuilt("stop_words.cppjieba"),
        Weight::TfIdf { .. } if resources.idf.is_none() => unbuilt("features.weight = tf_idf, without an idf table"),
        _ => Ok(()),
    }
}

/// Refuses settings that the configured tokenizer cannot honour, instead of ignoring them.
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

/// Refuses settings that differ from their defaults although the tokenizer does not use them.
fn refuse_unused_by_tokenizer(config: &TokenizerConfig) -> Result<(), TokenizeError> {
    let (kind, unset) = (config.kind, TokenizerConfig::default());
    let unused = |key, default, users| Err(TokenizeError::UnusedByTokenizer { key, kind, default, users });
    if config.hmm != unset.hmm && !kind.uses_hmm() {
        return unused("tokenizer.hmm", "false", "`mixed`, `jieba` or `cppjieba`");
    }
    if config.long_run != unset.long_run && !kind.uses_long_run() {
        return unused("tokenizer.long_run", "0", "`pairs`, `bigrams`, `mixed` or `words`");
    }
    if config.ngram != unset.ngram && !kind.uses_ngram() {
        return unused(
            "tokenizer.ngram",
            "4",
            "`char_ngrams`, `word_char_ngrams`, `full_word_char_ngrams`, `utf16_ngrams` or `byte_pieces`",
        );
    }
    Ok(())
}

/// Refuses settings that look at characters, because the tokens are pieces of characters.
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
