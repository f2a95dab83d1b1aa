//! Advanced SIMD (NEON): two fingerprints, or four low halves, at a time.
#![allow(unsafe_code, reason = "intrinsics; each block says why it is sound")]

use std::arch::aarch64::{
    vcntq_u8, vdupq_n_u32, veorq_u32, vld1q_u32, vminq_u32, vminvq_u32, vpaddlq_u8, vpaddlq_u16, vreinterpretq_u8_u32,
};

use super::{Kernel, KernelName, scalar};

/// See [`Width::select`](super::Width::select). Two lanes gain nothing over the portable loop, whose population count
/// is a vector instruction here.
pub(super) fn select(_: Kernel, list: &[u64], prefix: u64, mask: u64, max_distance: u32, out: &mut [u64]) -> usize {
    scalar::select(list, prefix, mask, max_distance, out)
}

/// The numbers of lanes and rows that are compared before hits are looked for.
const LANES: usize = 16;
const ROWS: usize = 64;

/// Calls `found(a, b)` for every pair of `lanes` and `rows` within the distance. Low halves are compared first: their
/// distance is at most the whole one, so nothing is missed.
pub(super) fn pairs(kernel: Kernel, lanes: &[u64], rows: &[u64], max_distance: u32, found: &mut dyn FnMut(u64, u64)) {
    assert!(kernel.name() == KernelName::Neon);
    let (pieces, rest) = lanes.split_at(lanes.len() - lanes.len() % LANES);
    for lanes in pieces.chunks(LANES) {
        for rows in rows.chunks(ROWS) {
            // SAFETY: the kernel proves the instructions; the piece has LANES lanes.
            if unsafe { nearest_half(lanes, rows) } <= max_distance {
                scalar::pairs(lanes, rows, max_distance, found);
            }
        }
    }
    scalar::pairs(rest, rows, max_distance, found);
}

/// Returns the least distance of the low halves of `LANES` lanes and the rows.
///
/// # Safety
/// The processor has Advanced SIMD; there are at least `LANES` lanes.
#[target_feature(enable = "neon")]
#[allow(clippy::cast_possible_truncation, reason = "low halves")]
unsafe fn nearest_half(lanes: &[u64], rows: &[u64]) -> u32 {
    let mut low = [0u32; LANES];
    for (low, &lane) in low.iter_mut().zip(lanes) {
        *low = lane as u32;
    }
    let mut nearest = [vdupq_n_u32(u32::MAX); LANES / 4];
    for &row in rows {
        let row = vdupq_n_u32(row as u32);
        for (i, nearest) in nearest.iter_mut().enumerate() {
            // SAFETY: four halves from 4 i on are there.
            let half = unsafe { vld1q_u32(low.as_ptr().add(4 * i)) };
            let bytes = vcntq_u8(vreinterpretq_u8_u32(veorq_u32(half, row)));
            *nearest = vminq_u32(*nearest, vpaddlq_u16(vpaddlq_u8(bytes)));
        }
    }
    nearest.into_iter().map(|nearest| vminvq_u32(nearest)).fold(u32::MAX, u32::min)
}
