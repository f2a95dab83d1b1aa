//! seomoz's simhash-py, with the recipe of its own tests from text to hashes.

use nearprint_fingerprint::{FeatureHash, FingerprintConfig};

use crate::config::ProfileConfig;

pub(super) const ABOUT: &str =
    "seomoz's simhash-py: lower-cased windows of 4 word characters, one vote each, the first 8 bytes of their MD5";

pub(super) fn profile() -> ProfileConfig {
    let python = super::python_simhash::profile();
    let fingerprint = FingerprintConfig { feature_hash: FeatureHash::Md5First, ..python.fingerprint };
    ProfileConfig { fingerprint, ..python }
}
