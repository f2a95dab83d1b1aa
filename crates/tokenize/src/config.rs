use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TokenizeError;
use crate::script::{is_common_han_at, n_letters};
use crate::tokenizer_kind::TokenizerKind;
use crate::weight::{Top, Weight};

/// All settings that features depend on besides the text. They are part of the store's config digest, so a store
/// accepts no other settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenizeConfig {
    /// The normalisation of the text before it is cut.
    pub normalize: NormalizeConfig,
    /// The cutting of the text into tokens.
    pub tokenizer: TokenizerConfig,
    /// The tokens that are dropped.
    pub stop_words: StopWordsConfig,
    /// The settings by which tokens become weighted features.
    pub features: FeatureConfig,
    /// The floor below which a text is not fingerprinted.
    pub min_features: MinFeatures,
}

impl TokenizeConfig {
    /// Refuses numbers that make no sense.
    pub(crate) fn validate(&self) -> Result<(), TokenizeError> {
        at_least_one("tokenizer.ngram", self.tokenizer.ngram)?;
        at_least_one("features.shingle", self.features.shingle)?;
        match self.features.weight {
            Weight::CappedCount { cap: 0 } => at_least_one("features.weight.capped_count.cap", 0),
            Weight::TfIdf { top: Top::Best(0) } => at_least_one("features.weight.tf_idf.top.best", 0),
            weight @ (Weight::ByteLength | Weight::TfIdf { .. }) if self.features.shingle > 1 => {
                Err(TokenizeError::WeightOfTokens { weight, shingle: self.features.shingle })
            }
            weight if self.features.short_word > 0 && (self.features.shingle > 1 || !weight.is_of_count()) => {
                Err(TokenizeError::ShortWordOfTokens { weight, shingle: self.features.shingle })
            }
            _ => Ok(()),
        }
    }
}

fn at_least_one(key: &'static str, got: usize) -> Result<(), TokenizeError> {
    if got == 0 { Err(TokenizeError::TooSmall { key, got, least: 1 }) } else { Ok(()) }
}

/// The steps of normalisation, in the order in which they are applied: HTML entities, control characters, NFKC, lower
/// case, case folding, special characters, white space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NormalizeConfig {
    /// Apply Unicode normal form KC: full-width forms, ligatures and compatibility ideographs become their plain
    /// equivalents.
    pub nfkc: bool,
    /// Apply full Unicode case folding (`ß` becomes `ss`), which is not tied to a language.
    pub case_fold: bool,
    /// Decode character references with their `;` (`&amp;`, `&#20013;`, `&#x4e2d;`), exactly once.
    pub html_entities: bool,
    /// Remove control characters other than white space, and invisible format characters (zero-width spaces and
    /// joiners, soft hyphen, byte order mark, directional marks, tags).
    pub control_characters: bool,
    /// Collapse each run of Unicode white space to one space, and remove white space at both ends.
    pub white_space: bool,
    /// Remove special characters as the source article 002 does: every character that is not a letter, a digit, a mark
    /// on one or white space is removed without a replacement (`foo-bar` becomes `foobar`). Han, kana and Hangul are
    /// letters. Off by default.
    pub special_characters: bool,
    /// Convert to lower case as Python's `str.lower` does: the full mapping, with the final sigma. Off by default;
    /// `case_fold` makes more forms equal.
    #[serde(skip_serializing_if = "is_off")]
    pub lower_case: bool,
}

impl NormalizeConfig {
    /// Applies no step: the text stays as it is.
    pub const NONE: Self = Self {
        nfkc: false,
        case_fold: false,
        html_entities: false,
        control_characters: false,
        white_space: false,
        special_characters: false,
        lower_case: false,
    };
}

/// Returns whether a number is 0, which turns a setting off.
fn is_zero(setting: &usize) -> bool {
    *setting == 0
}

/// Returns whether a setting is off. Later settings are left out of a config's text, and so of its digest, while they
/// are off.
fn is_off(setting: &bool) -> bool {
    !setting
}

impl Default for NormalizeConfig {
    fn default() -> Self {
        Self {
            nfkc: true,
            case_fold: true,
            html_entities: true,
            control_characters: true,
            white_space: true,
            special_characters: false,
            lower_case: false,
        }
    }
}

/// The settings by which a normalised text is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenizerConfig {
    /// The tokenizer.
    pub kind: TokenizerKind,
    /// With this, jieba guesses words that its dictionary lacks with its hidden Markov model (`mixed`, `jieba` and
    /// `cppjieba`). Off by default: the labelled sets score a little better without it (macro F1 of log counts at
    /// distance 3 / 6: .882 / .971 against .878 / .969, means over six hash seeds), and a guessed word changes with its
    /// neighbours.
    pub hmm: bool,
    /// The number of characters in a window (`char_ngrams`, `word_char_ngrams`, `full_word_char_ngrams`), of UTF-16
    /// units in a window (`utf16_ngrams`) or of bytes in a piece (`byte_pieces`), at least 1.
    #[schemars(range(min = 1))]
    pub ngram: usize,
    /// Tokens without a letter or digit are dropped. If they are kept, punctuation and table rules swamp the
    /// words of a page.
    pub drop_tokens_without_alphanumeric: bool,
    /// The least number of ASCII characters without white space between them that are one token (`pairs`, `bigrams`,
    /// `mixed` and `words`): base64, hashes and long links would otherwise be many tokens without meaning. With 0, the default of
    /// this setting, no run is one token.
    #[serde(skip_serializing_if = "is_zero")]
    pub long_run: usize,
}

impl TokenizerConfig {
    /// Returns the settings with the defaults of those that the tokenizer does not use.
    #[must_use]
    pub fn without_unused(self) -> Self {
        let (kind, unset) = (self.kind, Self::default());
        Self {
            hmm: if kind.uses_hmm() { self.hmm } else { unset.hmm },
            long_run: if kind.uses_long_run() { self.long_run } else { unset.long_run },
            ngram: if kind.uses_ngram() { self.ngram } else { unset.ngram },
            ..self
        }
    }

    /// Returns the version of this tokenizer's rules, which is raised with every change that cuts some text
    /// differently; it is 1 for rules that never changed. A store's config digest includes it if it is above 1, so a
    /// change of one tokenizer leaves the stores of the others valid.
    #[must_use]
    pub fn rules_version(&self) -> u32 {
        match self.kind {
            // 2: letters and digits are one word, as cppjieba has it since 5.6.3; only what goes through its model is
            // cut by that rule.
            TokenizerKind::Cppjieba if self.hmm => 2,
            _ => 1,
        }
    }
}

impl Default for TokenizerConfig {
    fn default() -> Self {
        Self { kind: TokenizerKind::Pairs, hmm: false, ngram: 4, drop_tokens_without_alphanumeric: true, long_run: 0 }
    }
}

/// The tokens that are dropped because they carry no content. By default there are none: repeated function words are
/// the same in both documents of a near-duplicate pair. The user can supply a file of words through
/// [`Resources::stop_words`](crate::Resources::stop_words).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopWordsConfig {
    /// Drop the English and Chinese function words of the built-in lists.
    pub builtin: bool,
    /// Drop tokens whose jieba tag starts with one of these (`u` drops `u`, `uj`, `ul`, …; `x` drops punctuation).
    /// `mixed` applies it to Han runs only.
    pub drop_parts_of_speech: Vec<String>,
    /// Drop the words of cppjieba's list, English and Chinese. They are compared without normalisation.
    #[serde(skip_serializing_if = "is_off")]
    pub cppjieba: bool,
    /// Drop tokens of a single character.
    #[serde(skip_serializing_if = "is_off")]
    pub single_characters: bool,
}

/// The settings by which tokens become features. The fingerprint and the sketch each have their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FeatureConfig {
    /// The number of consecutive tokens in one feature, at least 1; with 1, each token is a feature.
    #[schemars(range(min = 1))]
    pub shingle: usize,
    /// The rule by which the weight of a feature follows from the number of its occurrences.
    pub weight: Weight,
    /// The largest number of letters of a short word; a short word weighs half. In languages with an alphabet, the most
    /// frequent words are short (Zipf, "Human Behavior and the Principle of Least Effort", 1949), and they say least
    /// about a text. A character of a script without spaces and a Hangul syllable count as two letters. With 0, the
    /// default of this setting, every word has its whole weight. For single tokens (`shingle` = 1) and weights of their
    /// counts only.
    #[serde(skip_serializing_if = "is_zero")]
    pub short_word: usize,
}

impl FeatureConfig {
    /// Returns the weight of a feature that is one token and occurs `count` times, in units of 1/65536.
    #[must_use]
    #[inline]
    pub fn weight_of_token(&self, token: &[u8], count: u64) -> u64 {
        let weight = self.weight.of(count);
        if self.is_short(token) { weight / 2 } else { weight }
    }

    #[inline]
    fn is_short(&self, token: &[u8]) -> bool {
        if self.short_word == 0 {
            return false;
        }
        match token.get(..=self.short_word) {
            // No character counts as more letters than it has bytes.
            None => true,
            // Nearly all words: they begin with more letters of one byte each.
            Some(more) if more.is_ascii() => false,
            // Two Han characters are four letters.
            _ if self.short_word < 4 && is_common_han_at(token, 0) && is_common_han_at(token, 3) => false,
            // No letter has more than four bytes.
            _ if token.len() > 4 * self.short_word => false,
            _ => str::from_utf8(token).is_ok_and(|token| n_letters(token) <= self.short_word),
        }
    }
}

impl Default for FeatureConfig {
    fn default() -> Self {
        Self { shingle: 1, weight: Weight::LogCount, short_word: 0 }
    }
}

/// The floor: a text with fewer distinct features gets no fingerprint, and equals only texts that are the same after
/// normalisation. A text without features never has a fingerprint.
///
/// The default was measured with the profile `han-bigrams` on 10,821 short Chinese reviews and twelve hash seeds: 3 pairs
/// that are not alike were found with 8 features, 2 with 9, and none with 10 (evidence/accuracy). On the six sets of
/// pages and articles no positive pair needs a lower floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MinFeatures {
    /// The number of distinct features that a Han text needs: a text in which more than half of the letters and digits
    /// are Han.
    pub han: usize,
    /// The number of distinct features that a text of other scripts without spaces needs: a text that is no Han text, and
    /// in which more than half of the letters and digits are Han, kana, Thai, Lao, Myanmar or Khmer. If it is not set,
    /// `other` applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unspaced: Option<usize>,
    /// The number of distinct features that any other text needs.
    pub other: usize,
}

impl MinFeatures {
    /// Returns the smallest floor of any script, which is at least 1.
    #[must_use]
    pub fn smallest(self) -> usize {
        self.han.min(self.unspaced.unwrap_or(self.other)).min(self.other).max(1)
    }
}

impl Default for MinFeatures {
    fn default() -> Self {
        Self { han: 10, unspaced: None, other: 8 }
    }
}
