//! sing1ee's Java SimHash, and its form of 32 bits, which in a job file is `bits = 32` with `fingerprint.bit_rule =
//! "above_one"`.

use nearprint_fingerprint::{BitRule, FeatureHash, FingerprintConfig};
use nearprint_tokenize::{TokenizeConfig, TokenizerConfig, TokenizerKind};

use super::shared::{as_it_is, published};
use crate::config::ProfileConfig;

pub(super) const ABOUT: &str = "sing1ee's Java SimHash: pairs of UTF-16 units, Murmur 2 with a signed tail";

pub(super) fn profile() -> ProfileConfig {
    let plain = as_it_is(TokenizerKind::Utf16Ngrams);
    let tokenize = TokenizeConfig { tokenizer: TokenizerConfig { ngram: 2, ..plain.tokenizer }, ..plain };
    let feature_hash = FeatureHash::MurmurSigned;
    published(64, tokenize, FingerprintConfig { feature_hash, bit_rule: BitRule::Positive })
}

pub(crate) fn profile_of_32_bits() -> ProfileConfig {
    let wide = profile();
    ProfileConfig {
        bits: 32,
        fingerprint: FingerprintConfig { bit_rule: BitRule::AboveOne, ..wide.fingerprint },
        ..wide
    }
}
