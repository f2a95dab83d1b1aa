//! The crate simhash 0.3.0. Its FNV form is `fingerprint.feature_hash = "rust_fnv1a"`.

use nearprint_fingerprint::{BitRule, FeatureHash, FingerprintConfig};
use nearprint_tokenize::TokenizerKind;

use super::shared::{as_it_is, published};
use crate::config::ProfileConfig;

pub(super) const ABOUT: &str = "the Rust crate simhash: words between white space, SipHash-2-4 with keys 0";

pub(super) fn profile() -> ProfileConfig {
    let feature_hash = FeatureHash::RustSipHash24 { k0: 0, k1: 0 };
    published(64, as_it_is(TokenizerKind::Whitespace), FingerprintConfig { feature_hash, bit_rule: BitRule::Positive })
}
