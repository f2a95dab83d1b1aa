//! The BKDR string hash (Brian Kernighan, Dennis Ritchie) as mllearning's SimHash has it.

use crate::fingerprint::Fingerprint;

const MULTIPLIER: u32 = 131;
const MASK: u32 = 0x7FFF_FFFF;

/// Bytes are C's signed `char`s, sums wrap at 32 bits, and the highest bit is cleared once at the end.
pub(super) fn hash<F: Fingerprint>(feature: &[u8]) -> F {
    let sum = feature.iter().fold(0_u32, |hash, &byte| {
        hash.wrapping_mul(MULTIPLIER).wrapping_add(i32::from(byte.cast_signed()).cast_unsigned())
    });
    F::from_u128(u128::from(sum & MASK))
}
