//! The inner loop of reading fingerprints: it unpacks values in Parquet's encoding DELTA_BINARY_PACKED. [`scalar`] is
//! the definition.

pub mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86_64;

/// Unpacks a miniblock into values and returns the last one. Each delta has `width` bits, at most 64, which are taken
/// from the lowest bit up. Each value is the one before it, plus `min_delta`, plus its delta, modulo 2^64. `packed`
/// must hold at least `out.len()` deltas.
pub fn unpack_deltas(packed: &[u8], width: u32, min_delta: u64, before: u64, out: &mut [u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(last) = x86_64::unpack_deltas(packed, width, min_delta, before, out) {
        return last;
    }
    scalar::unpack_deltas(packed, width, min_delta, before, out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::{scalar, unpack_deltas};

    #[test]
    fn every_width_and_length_unpacks_as_the_definition_does() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state ^ (state >> 29)
        };
        for width in 0..=64u32 {
            for n in (0..=72).chain([128, 256]) {
                for spare in [0, 1, 7, 64, 100] {
                    let n_bytes = (n * width as usize).div_ceil(8) + spare;
                    let packed: Vec<u8> = (0..n_bytes).map(|_| next().to_le_bytes()[3]).collect();
                    let (min_delta, before) = (next(), next());
                    let (mut fast, mut defined) = (vec![0; n], vec![0; n]);
                    let last = scalar::unpack_deltas(&packed, width, min_delta, before, &mut defined);
                    assert_eq!(unpack_deltas(&packed, width, min_delta, before, &mut fast), last, "{width} {n}");
                    assert_eq!(fast, defined, "width {width}, {n} values");
                }
            }
        }
    }
}
