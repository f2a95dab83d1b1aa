//! SipHash-2-4 (Aumasson, Bernstein 2012) as Rust's `Hash` feeds it a `str`.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128, SipHasher24 as SipHasher24Of128};

use crate::fingerprint::Fingerprint;

/// The byte that `Hash for str` writes after the bytes, so that neighbouring strings cannot be confused.
pub(super) const STR_END: u8 = 0xFF;

/// Returns the 64-bit output, or the 128-bit output for wider fingerprints, as gaoya 0.2.2 takes them.
pub(super) fn hash_str<F: Fingerprint>(feature: &[u8], k0: u64, k1: u64) -> F {
    if F::BITS > 64 {
        let mut hasher = SipHasher24Of128::new_with_keys(k0, k1);
        hasher.write(feature);
        hasher.write_u8(STR_END);
        F::from_u128(hasher.finish128().as_u128())
    } else {
        let mut hasher = SipHasher24::new_with_keys(k0, k1);
        hasher.write(feature);
        hasher.write_u8(STR_END);
        F::from_u128(u128::from(hasher.finish()))
    }
}
