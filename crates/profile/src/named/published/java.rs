//! The Java SimHash of the source articles 000 and 003: every token of jieba counts, whatever it is.

use nearprint_fingerprint::{BitRule, FeatureHash, FingerprintConfig};
use nearprint_tokenize::{
    FeatureConfig, MinFeatures, NormalizeConfig, TokenizeConfig, TokenizerConfig, TokenizerKind, Weight,
};

use crate::config::{JoinConfig, ProfileConfig, usual_lost_share};

pub(super) const ABOUT: &str =
    "the articles' Java program: 1000003 hash over UTF-16 units, bit 1 when the sum is >= 0, distance 3";

pub(super) fn profile() -> ProfileConfig {
    let plain = TokenizerConfig {
        kind: TokenizerKind::Jieba,
        hmm: false,
        drop_tokens_without_alphanumeric: false,
        ..TokenizerConfig::default()
    };
    ProfileConfig {
        bits: 64,
        tokenize: TokenizeConfig {
            normalize: NormalizeConfig::NONE,
            tokenizer: plain,
            features: FeatureConfig { shingle: 1, weight: Weight::Count, short_word: 0 },
            // The published program fingerprints whatever has a word.
            min_features: MinFeatures { han: 1, unspaced: None, other: 1 },
            ..TokenizeConfig::default()
        },
        fingerprint: FingerprintConfig { feature_hash: FeatureHash::JavaPlain, bit_rule: BitRule::NonNegative },
        sketch: None,
        join: JoinConfig { max_distance: 3, max_sketch_distance: None, earlier: None },
        judge: None,
        max_lost_share: usual_lost_share(),
    }
}
