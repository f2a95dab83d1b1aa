//! seomoz's simhash-py, with the recipe of its own tests from text to hashes. A text of fewer than 4 word characters
//! has no window: the program gives each such text 0, but here it has no fingerprint and counts as too short.

use nearprint_fingerprint::{FeatureHash, FingerprintConfig};
use nearprint_tokenize::{TokenizeConfig, TokenizerConfig, TokenizerKind};

use crate::config::ProfileConfig;

pub(super) const ABOUT: &str =
    "seomoz's simhash-py: lower-cased windows of 4 word characters, one vote each, the first 8 bytes of their MD5";

pub(super) fn profile() -> ProfileConfig {
    let python = super::python_simhash::profile();
    let fingerprint = FingerprintConfig { feature_hash: FeatureHash::Md5First, ..python.fingerprint };
    let tokenizer = TokenizerConfig { kind: TokenizerKind::FullWordCharNgrams, ..python.tokenize.tokenizer };
    ProfileConfig { fingerprint, tokenize: TokenizeConfig { tokenizer, ..python.tokenize }, ..python }
}
