//! Murmur 2 (Austin Appleby) as sing1ee's Java has it, seed 0: the bytes of the tail are Java's signed bytes.

use crate::fingerprint::Fingerprint;

/// Returns MurmurHash64A for fingerprints of 64 bits, and MurmurHash2 for narrower ones.
pub(super) fn hash<F: Fingerprint>(feature: &[u8]) -> F {
    F::from_u128(if F::BITS > 32 { u128::from(hash_64(feature)) } else { u128::from(hash_32(feature)) })
}

fn hash_64(feature: &[u8]) -> u64 {
    const M: u64 = 0xC6A4_A793_5BD1_E995;
    const R: u32 = 47;
    let (blocks, tail) = feature.as_chunks::<8>();
    let mut h = (feature.len() as u64).wrapping_mul(M);
    for block in blocks {
        let k = u64::from_le_bytes(*block).wrapping_mul(M);
        h = (h ^ (k ^ (k >> R)).wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (byte, shift) in tail.iter().zip((0_u32..).step_by(8)) {
            h ^= i64::from(byte.cast_signed()).cast_unsigned() << shift;
        }
        h = h.wrapping_mul(M);
    }
    h = (h ^ (h >> R)).wrapping_mul(M);
    h ^ (h >> R)
}

/// Returns MurmurHash2. The last byte is the lowest of the tail's number, the reverse of the order in the blocks.
fn hash_32(feature: &[u8]) -> u32 {
    const M: u32 = 0x5BD1_E995;
    const R: u32 = 24;
    let (blocks, tail) = feature.as_chunks::<4>();
    #[expect(clippy::cast_possible_truncation, reason = "Java's int, cut to 32 bits")]
    let mut h = feature.len() as u32;
    for block in blocks {
        let k = u32::from_le_bytes(*block).wrapping_mul(M);
        h = h.wrapping_mul(M) ^ (k ^ (k >> R)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (byte, shift) in tail.iter().rev().zip((0_u32..).step_by(8)) {
            h ^= i32::from(byte.cast_signed()).cast_unsigned() << shift;
        }
        h = h.wrapping_mul(M);
    }
    h = (h ^ (h >> 13)).wrapping_mul(M);
    h ^ (h >> 15)
}
