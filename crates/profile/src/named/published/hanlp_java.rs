//! The Java program of article 002: it removes special characters, pads short words, caps over-frequent words and drops
//! stop parts of speech.

use nearprint_fingerprint::{FeatureHash, FingerprintConfig};
use nearprint_tokenize::{FeatureConfig, NormalizeConfig, StopWordsConfig, TokenizeConfig, TokenizerConfig, Weight};

use crate::config::ProfileConfig;

pub(super) const ABOUT: &str =
    "article 002's Java program: special characters removed, words padded to 3, at most 6 occurrences";

/// A word is skipped once its count is above 5, so it counts at most this often.
const OVER_FREQUENCY_CAP: u32 = 6;

pub(super) fn profile() -> ProfileConfig {
    let java = super::java::profile();
    ProfileConfig {
        tokenize: TokenizeConfig {
            normalize: NormalizeConfig { special_characters: true, case_fold: true, ..java.tokenize.normalize },
            // The article's cut of its own test sentence keeps the name 蒋固金 whole, which jieba does with its HMM.
            tokenizer: TokenizerConfig { hmm: true, ..java.tokenize.tokenizer },
            stop_words: StopWordsConfig { drop_parts_of_speech: vec!["w".to_owned()], ..StopWordsConfig::default() },
            features: FeatureConfig {
                shingle: 1,
                weight: Weight::CappedCount { cap: OVER_FREQUENCY_CAP },
                short_word: 0,
            },
            ..java.tokenize
        },
        fingerprint: FingerprintConfig { feature_hash: FeatureHash::JavaPad3, ..java.fingerprint },
        ..java
    }
}
