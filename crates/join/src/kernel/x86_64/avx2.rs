//! AVX2: four fingerprints, or eight low halves, at a time. Bits are counted by a table of nibbles (Muła, Kurz, Lemire,
//! "Faster Population Counts Using AVX2 Instructions", The Computer Journal 61(1), 2018, section 2).
#![allow(unsafe_code, reason = "intrinsics; each block says why it is sound")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpgt_epi32, _mm256_cmpgt_epi64,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_min_epi32, _mm256_movemask_epi8,
    _mm256_movemask_pd, _mm256_permutevar8x32_epi32, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi16, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::super::{Kernel, KernelName, PADDING, scalar};

/// The lanes of a vector of fingerprints.
const LANES: usize = 4;

/// For each selection of four values, the positions from which the 32-bit halves of the selected values come.
static COMPRESS: [[i32; 8]; 16] = compress_table();

const fn compress_table() -> [[i32; 8]; 16] {
    let mut table = [[0; 8]; 16];
    let mut selected = 0;
    while selected < 16 {
        let (mut lane, mut n) = (0, 0);
        while lane < 4 {
            if selected >> lane & 1 == 1 {
                table[selected][2 * n] = 2 * lane;
                table[selected][2 * n + 1] = 2 * lane + 1;
                n += 1;
            }
            lane += 1;
        }
        selected += 1;
    }
    table
}

/// See [`Width::select`](super::super::Width::select).
pub(in super::super) fn select(
    kernel: Kernel,
    list: &[u64],
    prefix: u64,
    mask: u64,
    max_distance: u32,
    out: &mut [u64],
) -> usize {
    assert!(kernel.name() == KernelName::Avx2 && out.len() >= list.len() + PADDING);
    // SAFETY: the kernel proves the instructions; `out` has the room that is asked for.
    unsafe { select_lanes(list, prefix, mask, max_distance, out) }
}

/// # Safety
/// The processor has AVX2, and `out` is at least `LANES` longer than `list`.
#[target_feature(enable = "avx2,popcnt")]
unsafe fn select_lanes(list: &[u64], prefix: u64, mask: u64, max_distance: u32, out: &mut [u64]) -> usize {
    let prefixes = _mm256_set1_epi64x(prefix.cast_signed());
    let masks = _mm256_set1_epi64x(mask.cast_signed());
    let limit = _mm256_set1_epi64x(i64::from(max_distance));
    let mut n = 0;
    let (vectors, rest) = list.as_chunks::<LANES>();
    for vector in vectors {
        // SAFETY: a chunk is a whole vector, and so is a row of the table; at most as many values as were read are
        // kept, so n + LANES ≤ list.len() + LANES.
        unsafe {
            let values = _mm256_loadu_si256(vector.as_ptr().cast());
            let bytes = byte_counts(_mm256_and_si256(_mm256_xor_si256(values, prefixes), masks));
            let distances = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
            let far = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(distances, limit)));
            let near = (!far & 0b1111).cast_unsigned();
            let order = _mm256_loadu_si256(COMPRESS[near as usize].as_ptr().cast());
            _mm256_storeu_si256(out.as_mut_ptr().add(n).cast(), _mm256_permutevar8x32_epi32(values, order));
            n += near.count_ones() as usize;
        }
    }
    n + scalar::select(rest, prefix, mask, max_distance, &mut out[n..])
}

/// Returns the number of bits in each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn byte_counts(values: __m256i) -> __m256i {
    let counts = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let nibble = _mm256_set1_epi8(0x0f);
    let low = _mm256_shuffle_epi8(counts, _mm256_and_si256(values, nibble));
    let high = _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16::<4>(values), nibble));
    _mm256_add_epi8(low, high)
}

/// The number of rows that are compared before hits are looked for: few enough that a hit costs little to find again.
const ROWS_AT_ONCE: usize = 64;

/// Calls `found(a, b)` for every pair of `lanes` and `rows` within the distance. Low halves are compared first, as in
/// the AVX-512 kernel.
pub(in super::super) fn pairs(
    kernel: Kernel,
    lanes: &[u64],
    rows: &[u64],
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    assert!(kernel.name() == KernelName::Avx2);
    let (vectors, rest) = lanes.split_at(lanes.len() - lanes.len() % 8);
    for lanes in vectors.chunks(2 * 8) {
        for rows in rows.chunks(ROWS_AT_ONCE) {
            // SAFETY: the kernel proves the instructions.
            let near = unsafe {
                if lanes.len() == 16 {
                    near_halves::<2>(lanes, rows, max_distance)
                } else {
                    near_halves::<1>(lanes, rows, max_distance)
                }
            };
            if near {
                scalar::pairs(lanes, rows, max_distance, found);
            }
        }
    }
    scalar::pairs(rest, rows, max_distance, found);
}

/// Returns whether the low half of one of `8 N` lanes is within the distance of the low half of a row.
///
/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2,popcnt")]
#[allow(clippy::cast_possible_truncation, reason = "low halves")]
unsafe fn near_halves<const N: usize>(lanes: &[u64], rows: &[u64], max_distance: u32) -> bool {
    let mut halves = [_mm256_setzero_si256(); N];
    for (half, lanes) in halves.iter_mut().zip(lanes.as_chunks::<8>().0) {
        let low = lanes.map(|lane| lane as u32);
        // SAFETY: eight halves are a whole vector.
        *half = unsafe { _mm256_loadu_si256(low.as_ptr().cast()) };
    }
    let mut nearest = [_mm256_set1_epi32(i32::MAX); N];
    for &row in rows {
        let row = _mm256_set1_epi32((row as u32).cast_signed());
        for (nearest, &half) in nearest.iter_mut().zip(&halves) {
            let bytes = byte_counts(_mm256_xor_si256(half, row));
            let distances = _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1)), _mm256_set1_epi16(1));
            *nearest = _mm256_min_epi32(*nearest, distances);
        }
    }
    let beyond = _mm256_set1_epi32(max_distance.cast_signed() + 1);
    nearest.into_iter().any(|nearest| _mm256_movemask_epi8(_mm256_cmpgt_epi32(beyond, nearest)) != 0)
}
