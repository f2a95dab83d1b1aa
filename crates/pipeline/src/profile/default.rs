//! nearprint's own profile.

use nearprint_fingerprint::FingerprintConfig;
use nearprint_tokenize::{FeatureConfig, TokenizeConfig, Weight};

use crate::config::{JoinConfig, ProfileConfig, SketchConfig};

pub(super) const ABOUT: &str =
    "words weighted 1 + ln(count), 64 bits, distance 6, verified by a 256-bit sketch of 3-shingles";

pub(super) fn profile() -> ProfileConfig {
    ProfileConfig {
        bits: 64,
        tokenize: TokenizeConfig {
            features: FeatureConfig { shingle: 1, weight: Weight::LogCount },
            ..TokenizeConfig::default()
        },
        fingerprint: FingerprintConfig::default(),
        sketch: Some(SketchConfig { shingle: 3, seed: 0 }),
        join: JoinConfig { max_distance: 6, max_sketch_distance: Some(56) },
    }
}
