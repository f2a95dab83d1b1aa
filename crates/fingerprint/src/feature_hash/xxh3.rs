//! XXH3, with a seed.

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use crate::fingerprint::Fingerprint;

/// Returns XXH3-128 for fingerprints wider than 64 bits, otherwise the low bits of XXH3-64.
#[inline]
pub(crate) fn hash<F: Fingerprint>(feature: &[u8], seed: u64) -> F {
    if F::BITS > 64 {
        F::from_u128(xxh3_128_with_seed(feature, seed))
    } else {
        F::from_u128(u128::from(xxh3_64_with_seed(feature, seed)))
    }
}
