//! yanyiwu's simhash over cppjieba: the features are the keywords of highest TF-IDF, as many as its auto rule takes. To
//! take a fixed number N, set `tokenize.features.weight = { tf_idf = { top = { best = N } } }`.

use nearprint_fingerprint::{BitRule, FeatureHash, FingerprintConfig};
use nearprint_tokenize::{FeatureConfig, StopWordsConfig, TokenizeConfig, TokenizerConfig, TokenizerKind, Top, Weight};

use super::shared::{as_it_is, published};
use crate::config::ProfileConfig;

pub(super) const ABOUT: &str =
    "yanyiwu's simhash: cppjieba's keywords by TF-IDF, one per 120 bytes but 5 to 200, Jenkins' lookup3";

pub(super) fn profile() -> ProfileConfig {
    let plain = as_it_is(TokenizerKind::Cppjieba);
    let tokenize = TokenizeConfig {
        tokenizer: TokenizerConfig { hmm: true, ..plain.tokenizer },
        stop_words: StopWordsConfig { cppjieba: true, single_characters: true, ..plain.stop_words },
        features: FeatureConfig { shingle: 1, weight: Weight::TfIdf { top: Top::Auto }, short_word: 0 },
        ..plain
    };
    published(64, tokenize, FingerprintConfig { feature_hash: FeatureHash::Lookup3, bit_rule: BitRule::FloatPositive })
}
