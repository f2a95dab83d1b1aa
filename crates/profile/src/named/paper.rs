//! Manku, Jain, Das Sarma (WWW 2007): weighted words, 64 bits, k = 3, no second check.

use nearprint_fingerprint::FingerprintConfig;
use nearprint_tokenize::{FeatureConfig, TokenizeConfig, TokenizerConfig, TokenizerKind, Weight};

use crate::config::{JoinConfig, ProfileConfig, usual_lost_share};

pub(super) const ABOUT: &str = "Manku et al. 2007: words weighted by count, 64 bits, distance 3, no sketch";

pub(super) fn profile() -> ProfileConfig {
    ProfileConfig {
        bits: 64,
        tokenize: TokenizeConfig {
            tokenizer: TokenizerConfig { kind: TokenizerKind::Mixed, ..TokenizerConfig::default() },
            features: FeatureConfig { shingle: 1, weight: Weight::Count, short_word: 0 },
            ..TokenizeConfig::default()
        },
        fingerprint: FingerprintConfig::default(),
        sketch: None,
        join: JoinConfig { max_distance: 3, max_sketch_distance: None, earlier: None },
        judge: None,
        max_lost_share: usual_lost_share(),
    }
}
