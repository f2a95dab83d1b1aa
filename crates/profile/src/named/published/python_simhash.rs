//! Python's simhash 2.1.2 (1e0ng): `Simhash(text)`. A text without a word character has no fingerprint here; the
//! program gives it the fingerprint of an empty feature.

use nearprint_fingerprint::{BitRule, FeatureHash, FingerprintConfig};
use nearprint_tokenize::{NormalizeConfig, TokenizeConfig, TokenizerConfig, TokenizerKind};

use super::shared::{as_it_is, published};
use crate::config::ProfileConfig;

pub(super) const ABOUT: &str =
    "Python's simhash: lower-cased windows of 4 word characters, weighted by count, the last 8 bytes of their MD5";

pub(super) fn profile() -> ProfileConfig {
    let plain = as_it_is(TokenizerKind::WordCharNgrams);
    let tokenize = TokenizeConfig {
        normalize: NormalizeConfig { lower_case: true, ..plain.normalize },
        tokenizer: TokenizerConfig { ngram: 4, ..plain.tokenizer },
        ..plain
    };
    published(64, tokenize, FingerprintConfig { feature_hash: FeatureHash::Md5Last, bit_rule: BitRule::Positive })
}
