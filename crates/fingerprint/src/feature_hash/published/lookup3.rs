//! `hashlittle2` of lookup3 (Bob Jenkins, May 2006, public domain), both seeds 0, as yanyiwu's simhash uses it.

use crate::fingerprint::Fingerprint;

const START: u32 = 0xDEAD_BEEF;
const BLOCK_BYTES: usize = 12;

/// Returns the hash with `c` in the high half and `b` in the low half.
///
/// The last block, of 1 to 12 bytes, is padded with zeros and mixed by `finish`; the blocks before it are mixed by
/// `mix`; an empty feature is not mixed at all.
pub(super) fn hash<F: Fingerprint>(feature: &[u8]) -> F {
    #[expect(clippy::cast_possible_truncation, reason = "C's size_t, cut to 32 bits")]
    let length = feature.len() as u32;
    let mut state = [START.wrapping_add(length); 3];
    let n_whole = feature.len().saturating_sub(1) / BLOCK_BYTES;
    let (whole, last) = feature.split_at(n_whole * BLOCK_BYTES);
    for block in whole.chunks_exact(BLOCK_BYTES) {
        add(&mut state, block);
        mix(&mut state);
    }
    if !last.is_empty() {
        add(&mut state, last);
        finish(&mut state);
    }
    let [_, b, c] = state;
    F::from_u128((u128::from(c) << 32) | u128::from(b))
}

/// Adds up to 12 bytes as three little-endian words.
fn add(state: &mut [u32; 3], block: &[u8]) {
    for (word, bytes) in state.iter_mut().zip(block.chunks(4)) {
        let value = bytes.iter().rev().fold(0_u32, |value, &byte| (value << 8) | u32::from(byte));
        *word = word.wrapping_add(value);
    }
}

fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    for [first, second, third] in [[4, 6, 8], [16, 19, 4]] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(third);
        b = b.wrapping_add(a);
    }
    *state = [a, b, c];
}

fn finish(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    *state = [a, b, c];
}
