//! The default profile until November 2026, for stores that were made with it.

use nearprint_fingerprint::FingerprintConfig;
use nearprint_tokenize::{FeatureConfig, TokenizeConfig, TokenizerConfig, TokenizerKind, Weight};

use crate::config::{JoinConfig, ProfileConfig, SketchConfig};

pub(super) const ABOUT: &str = "the default until November 2026, for its stores: words and Han bigrams weighted 1 + ln(count), 64 bits, distance 8, a sketch of 256 bits";

pub(super) fn profile() -> ProfileConfig {
    ProfileConfig {
        bits: 64,
        tokenize: TokenizeConfig {
            tokenizer: TokenizerConfig { kind: TokenizerKind::Bigrams, ..TokenizerConfig::default() },
            features: FeatureConfig { shingle: 1, weight: Weight::LogCount, short_word: 0 },
            ..TokenizeConfig::default()
        },
        fingerprint: FingerprintConfig::default(),
        sketch: Some(SketchConfig { shingle: 2, seed: 0, tokenizer: None }),
        join: JoinConfig { max_distance: 8, max_sketch_distance: Some(40), earlier: None },
        judge: None,
        max_lost_share: 0.04,
    }
}
