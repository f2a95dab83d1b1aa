//! FNV-1a of 64 bits (Fowler, Noll, Vo) as Rust's `Hash` feeds it a `str`.

use std::hash::Hasher;

use fnv::FnvHasher;

use super::siphash24::STR_END;
use crate::fingerprint::Fingerprint;

/// The crate simhash 0.3.0 with its FNV hasher.
pub(super) fn hash_str<F: Fingerprint>(feature: &[u8]) -> F {
    let mut hasher = FnvHasher::default();
    hasher.write(feature);
    hasher.write_u8(STR_END);
    F::from_u128(u128::from(hasher.finish()))
}
