//! nearprint's own profile. docs/accuracy.md has the measurements behind each choice.

use nearprint_fingerprint::FingerprintConfig;
use nearprint_tokenize::{FeatureConfig, TokenizeConfig, TokenizerConfig, TokenizerKind, Weight};

use crate::config::{JoinConfig, ProfileConfig, SketchConfig};

pub(super) const ABOUT: &str =
    "words and Han bigrams weighted 1 + ln(count), 64 bits, distance 8, verified by a sketch of 256 bits";

pub(super) fn profile() -> ProfileConfig {
    ProfileConfig {
        bits: 64,
        tokenize: TokenizeConfig {
            tokenizer: TokenizerConfig { kind: TokenizerKind::Bigrams, ..TokenizerConfig::default() },
            features: FeatureConfig { shingle: 1, weight: Weight::LogCount },
            ..TokenizeConfig::default()
        },
        fingerprint: FingerprintConfig::default(),
        sketch: Some(SketchConfig { shingle: 2, seed: 0 }),
        join: JoinConfig { max_distance: 8, max_sketch_distance: Some(40) },
    }
}
