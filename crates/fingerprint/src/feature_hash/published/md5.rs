//! MD5 (RFC 1321), the first or the last bytes of the digest read big-endian.

use md5::{Digest, Md5};

use crate::fingerprint::Fingerprint;

/// Returns the first 8 bytes, as seomoz's simhash-py does in the recipe of its tests.
pub(super) fn first<F: Fingerprint>(feature: &[u8]) -> F {
    let digest = digest(feature);
    F::from_u128(if F::BITS > 64 { digest } else { digest >> 64 })
}

/// Returns the last 8 bytes, or all 16 for 128 bits, as Python's simhash 2.1.2 (1e0ng) does.
pub(super) fn last<F: Fingerprint>(feature: &[u8]) -> F {
    F::from_u128(digest(feature))
}

fn digest(feature: &[u8]) -> u128 {
    u128::from_be_bytes(Md5::digest(feature).into())
}
