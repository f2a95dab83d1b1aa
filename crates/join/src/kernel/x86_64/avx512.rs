//! AVX-512 with `vpopcntq`: eight fingerprints, or sixteen low halves, at a time.
#![allow(unsafe_code, reason = "intrinsics; each block says why it is sound")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_and_si512, _mm512_castsi512_si128, _mm512_cmple_epu32_mask,
    _mm512_cmple_epu64_mask, _mm512_cvtepu8_epi32, _mm512_loadu_si512, _mm512_mask_cmple_epu64_mask,
    _mm512_maskz_compress_epi32, _mm512_maskz_compress_epi64, _mm512_maskz_loadu_epi8, _mm512_maskz_loadu_epi64,
    _mm512_min_epu32, _mm512_permutex2var_epi32, _mm512_permutexvar_epi32, _mm512_popcnt_epi32, _mm512_popcnt_epi64,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setr_epi32, _mm512_storeu_si512, _mm512_test_epi64_mask,
    _mm512_xor_si512,
};

use super::super::{Kernel, KernelName, NearPrefix, PADDING, Width, scalar};

/// The lanes of a vector of fingerprints.
const LANES: usize = 8;

/// See [`Width::select`](super::super::Width::select).
pub(in super::super) fn select(
    kernel: Kernel,
    list: &[u64],
    prefix: u64,
    mask: u64,
    max_distance: u32,
    out: &mut [u64],
) -> usize {
    assert!(kernel.name() == KernelName::Avx512 && out.len() >= list.len() + PADDING);
    // SAFETY: the kernel proves the instructions; `out` has the room that is asked for.
    unsafe { select_lanes(list, prefix, mask, max_distance, out) }
}

/// # Safety
/// The processor has the instructions, and `out` is at least `LANES` longer than `list`.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,popcnt")]
unsafe fn select_lanes(list: &[u64], prefix: u64, mask: u64, max_distance: u32, out: &mut [u64]) -> usize {
    let prefix = _mm512_set1_epi64(prefix.cast_signed());
    let mask = _mm512_set1_epi64(mask.cast_signed());
    let max_distance = _mm512_set1_epi64(i64::from(max_distance));
    let distance = |values: __m512i| _mm512_popcnt_epi64(_mm512_and_si512(_mm512_xor_si512(values, prefix), mask));
    let mut n = 0;
    let (vectors, rest) = list.as_chunks::<LANES>();
    for vector in vectors {
        // SAFETY: a chunk is a whole vector; at most as many values as were read are kept, so n + LANES ≤ list.len() +
        // LANES.
        unsafe {
            let values = _mm512_loadu_si512(vector.as_ptr().cast());
            let near = _mm512_cmple_epu64_mask(distance(values), max_distance);
            _mm512_storeu_si512(out.as_mut_ptr().add(n).cast(), _mm512_maskz_compress_epi64(near, values));
            n += near.count_ones() as usize;
        }
    }
    if !rest.is_empty() {
        let there = first_lanes(rest.len());
        // SAFETY: masked lanes are not read; at most rest.len() values are kept behind the n before them, so the store
        // ends at n + LANES ≤ list.len() + LANES.
        unsafe {
            let values = _mm512_maskz_loadu_epi64(there, rest.as_ptr().cast());
            let near = _mm512_mask_cmple_epu64_mask(there, distance(values), max_distance);
            _mm512_storeu_si512(out.as_mut_ptr().add(n).cast(), _mm512_maskz_compress_epi64(near, values));
            n += near.count_ones() as usize;
        }
    }
    n
}

/// Returns a mask of the first `n` < 8 lanes.
#[inline]
fn first_lanes(n: usize) -> u8 {
    !(u8::MAX << n)
}

/// Calls `found(a, b)` for every pair of `lanes` and `rows` within the distance.
///
/// Up to [`HALVES_UP_TO`], low halves are compared first, sixteen at a time: their distance is at most that of the whole
/// values, so nothing is missed, and for uniform fingerprints only one pair of halves in 700,000 is within 3. Beyond it,
/// too many halves are near by chance, so whole values are compared, eight at a time. In both cases, the least distance
/// of each lane to many rows is looked at once, and only blocks with a near pair are compared again, pair by pair.
pub(in super::super) fn pairs(
    kernel: Kernel,
    lanes: &[u64],
    rows: &[u64],
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    assert!(kernel.name() == KernelName::Avx512);
    // SAFETY: the kernel proves the instructions.
    unsafe {
        if max_distance <= HALVES_UP_TO {
            pairs_by_halves(lanes, rows, max_distance, found);
        } else {
            pairs_by_wholes(lanes, rows, max_distance, found);
        }
    }
}

/// The largest distance for which low halves are compared first. Of unrelated pairs of halves, one in 3,700 is within 6,
/// and one in 290 is within 8.
const HALVES_UP_TO: u32 = 6;

/// The number of rows that are compared before near lanes are looked for.
const ROWS_AT_ONCE: usize = 64;

/// Returns the number of rows whose low halves are compared before hits are looked for. For larger distances low halves
/// are often near by chance, so the number is smaller, and less is compared again.
fn rows_at_once(max_distance: u32) -> usize {
    if max_distance > 4 { 8 } else { ROWS_AT_ONCE }
}

/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,popcnt")]
unsafe fn pairs_by_halves(lanes: &[u64], rows: &[u64], max_distance: u32, found: &mut dyn FnMut(u64, u64)) {
    for lanes in lanes.chunks(4 * 16) {
        for rows in rows.chunks(rows_at_once(max_distance)) {
            // SAFETY: the caller proves the instructions, and that is all that near_halves asks for.
            let near = unsafe {
                match lanes.len().div_ceil(16) {
                    1 => near_halves::<1>(lanes, rows, max_distance),
                    2 => near_halves::<2>(lanes, rows, max_distance),
                    3 => near_halves::<3>(lanes, rows, max_distance),
                    _ => near_halves::<4>(lanes, rows, max_distance),
                }
            };
            if near {
                // SAFETY: the caller proves the instructions, and that is all that pairs_whole asks for.
                unsafe { pairs_whole(lanes, rows, max_distance, found) }
            }
        }
    }
}

/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,popcnt")]
unsafe fn pairs_by_wholes(lanes: &[u64], rows: &[u64], max_distance: u32, found: &mut dyn FnMut(u64, u64)) {
    for lanes in lanes.chunks(WHOLE_VECTORS * LANES) {
        for rows in rows.chunks(ROWS_AT_ONCE) {
            // SAFETY: the caller proves the instructions, and that is all that pairs_of_wholes asks for.
            unsafe {
                match lanes.len().div_ceil(LANES) {
                    1 => pairs_of_wholes::<1>(lanes, rows, max_distance, found),
                    2 => pairs_of_wholes::<2>(lanes, rows, max_distance, found),
                    3 => pairs_of_wholes::<3>(lanes, rows, max_distance, found),
                    4 => pairs_of_wholes::<4>(lanes, rows, max_distance, found),
                    5 => pairs_of_wholes::<5>(lanes, rows, max_distance, found),
                    6 => pairs_of_wholes::<6>(lanes, rows, max_distance, found),
                    7 => pairs_of_wholes::<7>(lanes, rows, max_distance, found),
                    _ => pairs_of_wholes::<WHOLE_VECTORS>(lanes, rows, max_distance, found),
                }
            }
        }
    }
}

/// The largest number of vectors of lanes that are compared with a row while it is in a register.
const WHOLE_VECTORS: usize = 8;

/// Compares up to `8 N` lanes with the rows, and those vectors of lanes that are near to a row once more.
///
/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,popcnt")]
unsafe fn pairs_of_wholes<const N: usize>(
    lanes: &[u64],
    rows: &[u64],
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    let mut values = [_mm512_set1_epi64(0); N];
    let mut nearest = [_mm512_set1_epi64(-1); N];
    let (whole, rest) = lanes.as_chunks::<LANES>();
    for (i, values) in values.iter_mut().enumerate() {
        *values = match whole.get(i) {
            // SAFETY: a chunk is a whole vector.
            Some(vector) => unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) },
            // SAFETY: masked lanes are not read.
            None => unsafe { _mm512_maskz_loadu_epi64(first_lanes(rest.len()), rest.as_ptr().cast()) },
        };
    }
    for &row in rows {
        let row = _mm512_set1_epi64(row.cast_signed());
        for (nearest, &values) in nearest.iter_mut().zip(&values) {
            // Distances fill the low halves of the lanes, and the high halves are 0 after the first row.
            *nearest = _mm512_min_epu32(*nearest, _mm512_popcnt_epi64(_mm512_xor_si512(values, row)));
        }
    }
    let limit = _mm512_set1_epi64(i64::from(max_distance));
    let mut least = nearest[0];
    for &nearest in &nearest[1..] {
        least = _mm512_min_epu32(least, nearest);
    }
    if _mm512_cmple_epu64_mask(least, limit) == 0 {
        return;
    }
    for (lanes, nearest) in lanes.chunks(LANES).zip(nearest) {
        let there = if lanes.len() < LANES { first_lanes(lanes.len()) } else { u8::MAX };
        if _mm512_mask_cmple_epu64_mask(there, nearest, limit) != 0 {
            // SAFETY: the caller proves the instructions, and that is all that pairs_whole asks for.
            unsafe { pairs_whole(lanes, rows, max_distance, found) }
        }
    }
}

/// The lanes of a vector of low halves.
const HALVES: usize = 2 * LANES;

/// See [`Width::pairs_of_prefix`](super::super::Width::pairs_of_prefix).
///
/// Low halves are compared if the distances to the prefix leave few bits for them, and whole values otherwise.
pub(in super::super) fn pairs_of_prefix(
    kernel: Kernel,
    rows: &[u64],
    list: NearPrefix<'_, u64>,
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    assert!(kernel.name() == KernelName::Avx512 && list.values.len() == list.distances.len());
    if list.values.len() < HALVES || list.max_rest(max_distance) > HALVES_UP_TO {
        return Width::pairs(kernel, rows, list.values, max_distance, found);
    }
    for (lanes, distances) in
        list.values.chunks(REST_VECTORS * HALVES).zip(list.distances.chunks(REST_VECTORS * HALVES))
    {
        let lanes = NearPrefix { values: lanes, distances, rest_bits: list.rest_bits };
        for rows in rows.chunks(ROWS_AT_ONCE) {
            // SAFETY: the kernel proves the instructions.
            unsafe {
                match lanes.values.len().div_ceil(HALVES) {
                    1 => pairs_by_rests::<1>(rows, lanes, max_distance, found),
                    2 => pairs_by_rests::<2>(rows, lanes, max_distance, found),
                    3 => pairs_by_rests::<3>(rows, lanes, max_distance, found),
                    4 => pairs_by_rests::<4>(rows, lanes, max_distance, found),
                    5 => pairs_by_rests::<5>(rows, lanes, max_distance, found),
                    6 => pairs_by_rests::<6>(rows, lanes, max_distance, found),
                    7 => pairs_by_rests::<7>(rows, lanes, max_distance, found),
                    _ => pairs_by_rests::<REST_VECTORS>(rows, lanes, max_distance, found),
                }
            }
        }
    }
}

/// The largest number of vectors of low halves that are compared with a row while it is in a register.
const REST_VECTORS: usize = 8;

/// Compares the low halves of up to `16 N` lanes with those of the rows, as far as they lie below the prefix. Lanes whose least
/// distance, together with that to the prefix, is near are compared with all rows again.
///
/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,popcnt")]
unsafe fn pairs_by_rests<const N: usize>(
    rows: &[u64],
    list: NearPrefix<'_, u64>,
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    let rest = u32::MAX.checked_shr(u32::BITS.saturating_sub(list.rest_bits)).unwrap_or(0);
    let mut halves = [_mm512_set1_epi32(0); N];
    let (whole, others) = list.values.as_chunks::<HALVES>();
    for (i, half) in halves.iter_mut().enumerate() {
        // SAFETY: the caller proves the instructions, and fewer than sixteen lanes are left behind the whole vectors.
        let low = unsafe { whole.get(i).map_or_else(|| low_halves(others), |lanes| low_halves(lanes)) };
        *half = _mm512_and_si512(low, _mm512_set1_epi32(rest.cast_signed()));
    }
    let mut nearest = [_mm512_set1_epi32(-1); N];
    for &row in rows {
        #[allow(clippy::cast_possible_truncation, reason = "the low half")]
        let row = _mm512_set1_epi32((row as u32 & rest).cast_signed());
        for (nearest, &half) in nearest.iter_mut().zip(&halves) {
            *nearest = _mm512_min_epu32(*nearest, _mm512_popcnt_epi32(_mm512_xor_si512(half, row)));
        }
    }
    let limit = _mm512_set1_epi32(max_distance.cast_signed());
    for (i, nearest) in nearest.into_iter().enumerate() {
        let at = i * HALVES;
        let there = first_halves(list.values.len() - at);
        // SAFETY: masked lanes are not read; there are as many distances as values, of which N vectors have some.
        let distances = unsafe { _mm512_maskz_loadu_epi8(u64::from(there), list.distances.as_ptr().add(at).cast()) };
        let distances = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(distances));
        let mut near = there & _mm512_cmple_epu32_mask(_mm512_add_epi32(nearest, distances), limit);
        while near != 0 {
            let value = list.values[at + near.trailing_zeros() as usize];
            // SAFETY: the caller proves the instructions, and that is all that pairs_whole asks for.
            unsafe { pairs_whole(rows, &[value], max_distance, found) }
            near &= near - 1;
        }
    }
}

/// Returns a mask of the first `n` of sixteen lanes, or of all if there are no more.
#[inline]
fn first_halves(n: usize) -> u16 {
    if n < HALVES { !(u16::MAX << n) } else { u16::MAX }
}

/// Returns whether the low half of one of up to `16 N` lanes is within the distance of the low half of a row.
///
/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,popcnt")]
unsafe fn near_halves<const N: usize>(lanes: &[u64], rows: &[u64], max_distance: u32) -> bool {
    let mut halves = [_mm512_set1_epi32(0); N];
    for (half, lanes) in halves.iter_mut().zip(lanes.chunks(16)) {
        // SAFETY: a chunk has at most sixteen lanes.
        *half = unsafe { low_halves(lanes) };
    }
    let mut nearest = [_mm512_set1_epi32(-1); N];
    for &row in rows {
        #[allow(clippy::cast_possible_truncation, reason = "the low half")]
        let row = _mm512_set1_epi32((row as u32).cast_signed());
        for (nearest, &half) in nearest.iter_mut().zip(&halves) {
            *nearest = _mm512_min_epu32(*nearest, _mm512_popcnt_epi32(_mm512_xor_si512(half, row)));
        }
    }
    let max_distance = _mm512_set1_epi32(max_distance.cast_signed());
    let mut near = 0;
    for (i, nearest) in nearest.into_iter().enumerate() {
        near |= _mm512_cmple_epu32_mask(nearest, max_distance) & first_halves(lanes.len() - i * HALVES);
    }
    near != 0
}

/// See [`Width::may_have_pairs`](super::super::Width::may_have_pairs).
pub(in super::super) fn may_have_pairs(kernel: Kernel, values: &[u64], max_distance: u32) -> bool {
    assert!(kernel.name() == KernelName::Avx512 && values.len() <= 2 * LANES);
    // SAFETY: the kernel proves the instructions; there are at most sixteen values.
    unsafe { may_have_pairs_lanes(values, max_distance) }
}

/// Compares the low halves with themselves, rotated by 1 to 8 lanes: any two of sixteen lanes meet.
///
/// # Safety
/// The processor has the instructions; there are at most sixteen values.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
unsafe fn may_have_pairs_lanes(values: &[u64], max_distance: u32) -> bool {
    // SAFETY: the caller proves the instructions, and that there are at most sixteen values.
    let halves = unsafe { low_halves(values) };
    let there = first_halves(values.len());
    let limit = _mm512_set1_epi32(max_distance.cast_signed());
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut near = 0;
    for turn in 1..=8 {
        // Indices count modulo 16.
        let turned = _mm512_permutexvar_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(turn)), halves);
        let distances = _mm512_popcnt_epi32(_mm512_xor_si512(halves, turned));
        near |= _mm512_cmple_epu32_mask(distances, limit) & there & there.rotate_right(turn.cast_unsigned());
    }
    near != 0
}

/// Returns the low halves of up to sixteen values, followed by zeros.
///
/// # Safety
/// The processor has the instructions; there are at most sixteen values.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn low_halves(values: &[u64]) -> __m512i {
    let (first, second) = values.split_at(values.len().min(LANES));
    let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    // SAFETY: the caller proves the instructions; `load` takes as many values as there are, up to eight.
    unsafe { _mm512_permutex2var_epi32(load(first), even, load(second)) }
}

/// Loads up to eight values, followed by zeros.
///
/// # Safety
/// The processor has the instructions.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(values: &[u64]) -> __m512i {
    if values.len() >= LANES {
        // SAFETY: eight values are there.
        unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
    } else {
        // SAFETY: masked lanes are not read.
        unsafe { _mm512_maskz_loadu_epi64(first_lanes(values.len()), values.as_ptr().cast()) }
    }
}

/// See [`Width::is_ascending`](super::super::Width::is_ascending).
pub(in super::super) fn is_ascending(kernel: Kernel, values: &[u64]) -> bool {
    assert!(kernel.name() == KernelName::Avx512);
    // SAFETY: the kernel proves the instructions.
    unsafe { is_ascending_lanes(values) }
}

/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx512f")]
unsafe fn is_ascending_lanes(values: &[u64]) -> bool {
    let Some((_, seconds)) = values.split_first() else { return true };
    let (vectors, rest) = seconds.as_chunks::<LANES>();
    let mut descents = 0;
    for (second, first) in vectors.iter().zip(values.chunks_exact(LANES)) {
        // SAFETY: both are whole vectors.
        descents |= unsafe {
            _mm512_cmple_epu64_mask(
                _mm512_loadu_si512(second.as_ptr().cast()),
                _mm512_loadu_si512(first.as_ptr().cast()),
            )
        };
    }
    descents == 0 && scalar::is_ascending(&values[values.len() - rest.len() - 1..])
}

/// See [`Width::group_starts`](super::super::Width::group_starts).
pub(in super::super) fn group_starts(kernel: Kernel, values: &[u64], mask: u64, starts: &mut [u32]) -> usize {
    assert!(kernel.name() == KernelName::Avx512 && starts.len() >= values.len() + PADDING);
    // SAFETY: the kernel proves the instructions; `starts` has the room that is asked for.
    unsafe { group_starts_lanes(values, mask, starts) }
}

/// # Safety
/// The processor has the instructions, and `starts` is at least 16 longer than `values`.
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "fewer than 2^31 values")]
unsafe fn group_starts_lanes(values: &[u64], mask: u64, starts: &mut [u32]) -> usize {
    let masks = _mm512_set1_epi64(mask.cast_signed());
    let lanes = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    let Some((_, seconds)) = values.split_first() else { return 0 };
    let mut n = 0;
    let (vectors, rest) = seconds.as_chunks::<{ 2 * LANES }>();
    for (i, vector) in vectors.iter().enumerate() {
        // SAFETY: sixteen values and the one before are there; n ≤ 16 i, so n + 16 ≤ values.len() + 16.
        unsafe {
            let first = values.as_ptr().add(2 * LANES * i);
            let changed = |at: usize| {
                let before = _mm512_loadu_si512(first.add(at).cast());
                let after = _mm512_loadu_si512(vector.as_ptr().add(at).cast());
                _mm512_test_epi64_mask(_mm512_xor_si512(before, after), masks)
            };
            let starting = u16::from(changed(0)) | u16::from(changed(LANES)) << LANES;
            let positions = _mm512_add_epi32(lanes, _mm512_set1_epi32((2 * LANES * i) as i32));
            _mm512_storeu_si512(starts.as_mut_ptr().add(n).cast(), _mm512_maskz_compress_epi32(starting, positions));
            n += starting.count_ones() as usize;
        }
    }
    let done = values.len() - rest.len() - 1;
    let n_rest = scalar::group_starts(&values[done..], mask, &mut starts[n..]);
    for start in &mut starts[n..n + n_rest] {
        *start += done as u32;
    }
    n + n_rest
}

/// Finds the pairs of a piece.
///
/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,popcnt")]
unsafe fn pairs_whole(lanes: &[u64], rows: &[u64], max_distance: u32, found: &mut dyn FnMut(u64, u64)) {
    let limit = _mm512_set1_epi64(i64::from(max_distance));
    let (vectors, rest) = lanes.as_chunks::<LANES>();
    for vector in vectors {
        // SAFETY: a chunk is a whole vector.
        let values = unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) };
        for &row in rows {
            let differing = _mm512_xor_si512(values, _mm512_set1_epi64(row.cast_signed()));
            let mut near = _mm512_cmple_epu64_mask(_mm512_popcnt_epi64(differing), limit);
            while near != 0 {
                found(vector[near.trailing_zeros() as usize], row);
                near &= near - 1;
            }
        }
    }
    scalar::pairs(rest, rows, max_distance, found);
}
