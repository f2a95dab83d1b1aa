//! nearprint's own profile. evidence/accuracy has the measurements behind each choice.

use nearprint_fingerprint::{FeatureHash, FingerprintConfig, JudgeConfig};
use nearprint_tokenize::{FeatureConfig, MinFeatures, TokenizeConfig, TokenizerConfig, TokenizerKind, Weight};

use crate::config::{EarlierConfig, JoinConfig, ProfileConfig, SketchConfig, usual_lost_share};

pub(super) const ABOUT: &str = "words and pairs of characters (in scripts without spaces) weighted 1 + ln(count), short words half; 64 bits, distance 12, verified by a sketch of 256 bits, and by a judge that reads texts of one night";

/// What finds documents of earlier nights, as well as a distance of 12 would, in half the time (evidence/keys).
pub(super) const EARLIER: EarlierConfig = EarlierConfig { max_distance: 8, words: 2, max_word_distance: 8 };

/// The first seed whose scores are not below the median (evidence/accuracy).
const SEED: u64 = 2;

pub(super) fn profile() -> ProfileConfig {
    ProfileConfig {
        bits: 64,
        tokenize: TokenizeConfig {
            tokenizer: TokenizerConfig { kind: TokenizerKind::Pairs, long_run: 100, ..TokenizerConfig::default() },
            features: FeatureConfig { shingle: 1, weight: Weight::LogCount, short_word: 3 },
            min_features: MinFeatures { han: 10, unspaced: Some(10), other: 8 },
            ..TokenizeConfig::default()
        },
        fingerprint: FingerprintConfig {
            feature_hash: FeatureHash::Xxh3 { seed: SEED },
            ..FingerprintConfig::default()
        },
        sketch: Some(SketchConfig { shingle: 3, seed: SEED, tokenizer: Some(TokenizerKind::Words) }),
        join: JoinConfig { max_distance: 12, max_sketch_distance: Some(36), earlier: Some(EARLIER) },
        judge: Some(JudgeConfig {
            min_sketch_distance: 28,
            max_sketch_distance: 80,
            min_edit_similarity: 0.84,
            min_contained: 0.95,
            min_opening: 0.7,
            max_looks: 16,
        }),
        max_lost_share: usual_lost_share(),
    }
}
