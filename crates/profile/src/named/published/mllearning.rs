//! mllearning's SimHash of 32 bits, in its two forms.

use nearprint_fingerprint::{BitRule, FeatureHash, FingerprintConfig};
use nearprint_tokenize::{FeatureConfig, TokenizeConfig, TokenizerConfig, TokenizerKind, Weight};

use super::shared::{as_it_is, published};
use crate::config::ProfileConfig;

pub(super) const ABOUT: &str = "mllearning's SimHash: white-space tokens weighted by their bytes, 32 bits, BKDR hash";
pub(super) const ABOUT_BYTES2: &str = "mllearning's SimHash: pieces of two bytes, 32 bits, BKDR hash";

pub(super) fn profile() -> ProfileConfig {
    let features = FeatureConfig { shingle: 1, weight: Weight::ByteLength, short_word: 0 };
    with(TokenizeConfig { features, ..as_it_is(TokenizerKind::AsciiWhitespace) })
}

pub(super) fn profile_bytes2() -> ProfileConfig {
    let plain = as_it_is(TokenizerKind::BytePieces);
    with(TokenizeConfig { tokenizer: TokenizerConfig { ngram: 2, ..plain.tokenizer }, ..plain })
}

fn with(tokenize: TokenizeConfig) -> ProfileConfig {
    published(32, tokenize, FingerprintConfig { feature_hash: FeatureHash::Bkdr131, bit_rule: BitRule::Positive })
}
