//! MD5 (RFC 1321), the first or the last bytes of the digest read big-endian.

use md5::{Digest, Md5};

use crate::fingerprint::Fingerprint;

/// seomoz's simhash-py, in the recipe of its tests: the first 8 bytes.
pub(super) fn first<F: Fingerprint>(feature: &[u8]) -> F {
    let digest = digest(feature);
    F::from_u128(if F::BITS > 64 { digest } else { digest >> 64 })
}

/// Python's simhash 2.1.2 (1e0ng): the last 8 bytes, all 16 for 128 bits.
pub(super) fn last<F: Fingerprint>(feature: &[u8]) -> F {
    F::from_u128(digest(feature))
}

fn digest(feature: &[u8]) -> u128 {
    u128::from_be_bytes(Md5::digest(feature).into())
}
