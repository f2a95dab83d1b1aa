//! The crate gaoya 0.2.2 with SipHash-2-4, keys 5 and 6. Its vote is inverted.

use nearprint_fingerprint::{BitRule, FeatureHash, FingerprintConfig};
use nearprint_tokenize::TokenizerKind;

use super::shared::{as_it_is, published};
use crate::config::ProfileConfig;

pub(super) const ABOUT: &str =
    "the Rust crate gaoya: words between ASCII punctuation and white space, SipHash-2-4, the vote inverted";

pub(super) fn profile() -> ProfileConfig {
    let feature_hash = FeatureHash::RustSipHash24 { k0: 5, k1: 6 };
    published(64, as_it_is(TokenizerKind::AsciiWords), FingerprintConfig { feature_hash, bit_rule: BitRule::Negative })
}
