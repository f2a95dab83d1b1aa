//! AVX2: four fingerprints, or eight low halves, at a time. Bits are counted by a table of nibbles (Muła, Kurz, Lemire,
//! "Faster Population Counts Using AVX2 Instructions", The Computer Journal 61(1), 2018, section 2).
#![allow(unsafe_code, reason = "intrinsics; each block says why it is sound")]

use std::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_cvtsi64_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_setr_epi8, _mm_srli_epi16,
    _mm_storeu_si128, _mm_unpacklo_epi8, _mm256_add_epi8, _mm256_adds_epu8, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi8, _mm256_cmpgt_epi32, _mm256_cmpgt_epi64,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_min_epi32, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_movemask_pd, _mm256_permutevar8x32_epi32, _mm256_sad_epu8, _mm256_set1_epi8,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi8, _mm256_setr_epi32,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srl_epi64, _mm256_srli_epi16, _mm256_storeu_si256,
    _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi8,
    _mm256_unpacklo_epi16, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};
use std::mem::MaybeUninit;

use super::super::{Kernel, KernelName, NearPrefix, PADDING, scalar};

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

/// The largest distance for which low halves are compared first, as in the AVX-512 kernel. Beyond, more bits decide.
const HALVES_UP_TO: u32 = 6;

/// Calls `found(a, b)` for every pair of `lanes` and `rows` within the distance. Fewer bits than all are compared first:
/// their distance is at most that of the whole values, so nothing is missed.
pub(in super::super) fn pairs(
    kernel: Kernel,
    lanes: &[u64],
    rows: &[u64],
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    assert!(kernel.name() == KernelName::Avx2);
    // SAFETY: the kernel proves the instructions.
    unsafe {
        if max_distance <= HALVES_UP_TO {
            pairs_by_halves(lanes, rows, max_distance, found);
        } else {
            let list = NearPrefix { values: lanes, distances: &[], rest_bits: u64::BITS };
            pairs_by_rests(rows, list, max_distance, max_distance, &mut |row, lane| found(lane, row));
        }
    }
}

/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2,popcnt")]
unsafe fn pairs_by_halves(lanes: &[u64], rows: &[u64], max_distance: u32, found: &mut dyn FnMut(u64, u64)) {
    for lanes in lanes.chunks(2 * 8) {
        // Lanes without a value repeat one; only those with a value are compared again.
        let mut padded = [lanes[0]; 2 * 8];
        padded[..lanes.len()].copy_from_slice(lanes);
        for rows in rows.chunks(ROWS_AT_ONCE) {
            // SAFETY: the caller proves AVX2, and that is all that near_halves asks for.
            let near = unsafe {
                if lanes.len() > 8 {
                    near_halves::<2>(&padded, rows, max_distance)
                } else {
                    near_halves::<1>(&padded[..8], rows, max_distance)
                }
            };
            if near {
                pairs_whole(lanes, rows, max_distance, found);
            }
        }
    }
}

/// Finds the pairs of a block.
#[target_feature(enable = "popcnt")]
fn pairs_whole(lanes: &[u64], rows: &[u64], max_distance: u32, found: &mut dyn FnMut(u64, u64)) {
    for &lane in lanes {
        for &row in rows {
            if (lane ^ row).count_ones() <= max_distance {
                found(lane, row);
            }
        }
    }
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

/// The lanes of a vector of bytes.
const BYTES: usize = 32;

/// The number of rows that are compared with a block of lanes before near lanes are looked for.
const TABLE_ROWS: usize = 16;

/// Lists this short do not fill the lanes that a block of bytes has, so that rows fill the vectors instead.
const SHORT_LIST: usize = BYTES / 2;

/// For each four bits, their distances to all four bits.
static NIBBLE_DISTANCES: [ByteTable; 16] = nibble_distances();

#[derive(Clone, Copy)]
#[repr(align(16))]
struct ByteTable([u8; 16]);

#[allow(clippy::cast_possible_truncation, reason = "at most 4")]
const fn nibble_distances() -> [ByteTable; 16] {
    let mut tables = [ByteTable([0; 16]); 16];
    let mut i = 0;
    while i < 256 {
        tables[i / 16].0[i % 16] = ((i / 16) ^ (i % 16)).count_ones() as u8;
        i += 1;
    }
    tables
}

/// See [`Width::pairs_of_prefix`](super::super::Width::pairs_of_prefix).
///
/// The leading bits of the rest decide: as many as make it rare that unrelated values differ in few of them.
pub(in super::super) fn pairs_of_prefix(
    kernel: Kernel,
    rows: &[u64],
    list: NearPrefix<'_, u64>,
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    assert!(kernel.name() == KernelName::Avx2 && list.values.len() == list.distances.len());
    if max_distance <= HALVES_UP_TO && list.values.len() <= SHORT_LIST {
        // SAFETY: the kernel proves the instructions.
        return unsafe { pairs_by_halves(rows, list.values, max_distance, found) };
    }
    // SAFETY: the kernel proves the instructions.
    unsafe { pairs_by_rests(rows, list, list.max_rest(max_distance), max_distance, found) }
}

/// Compares rests, of which at most `max_rest` bits of most values may differ from those of a near row. Of unrelated 24
/// bits, one in 7,200 differs in 3 and fewer; so does one of 32 bits in 3,700 in 6, one of 40 bits in 3,000 in 9, and one of
/// 48 bits in 2,900 in 12.
///
/// # Safety
/// The processor has AVX2.
unsafe fn pairs_by_rests(
    rows: &[u64],
    list: NearPrefix<'_, u64>,
    max_rest: u32,
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    // SAFETY: the caller proves AVX2, and that is all that pairs_by_nibbles asks for.
    unsafe {
        match max_rest {
            0..=3 => pairs_by_nibbles::<6>(rows, list, max_distance, found),
            4..=6 => pairs_by_nibbles::<8>(rows, list, max_distance, found),
            7..=9 => pairs_by_nibbles::<10>(rows, list, max_distance, found),
            _ => pairs_by_nibbles::<12>(rows, list, max_distance, found),
        }
    }
}

/// Compares the leading `4 N` bits of the rest, `N` ≤ 12. Lanes whose least distance to some rows is near are compared
/// with these rows again. If no distances to the prefix are given, they are 0.
///
/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2,popcnt")]
#[allow(clippy::cast_possible_truncation, reason = "N is at most 12")]
unsafe fn pairs_by_nibbles<const N: usize>(
    rows: &[u64],
    list: NearPrefix<'_, u64>,
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    let n_bits = (4 * N as u32).min(list.rest_bits);
    let shift = list.rest_bits - n_bits;
    let mask = if n_bits == 0 { 0 } else { u64::MAX >> (64 - n_bits) };
    // Lanes without a value have a distance of 255.
    let limit = u8::try_from(max_distance).map_or(254, |limit| limit.min(254));
    let limit = _mm256_set1_epi8(limit.cast_signed());
    for rows in rows.chunks(TABLE_ROWS) {
        let mut tables = [const { MaybeUninit::uninit() }; TABLE_ROWS];
        for (tables, &row) in tables.iter_mut().zip(rows) {
            tables.write(row_tables::<N>((row >> shift) & mask));
        }
        // SAFETY: as many were written as there are rows.
        let tables: &[[__m128i; N]] = unsafe { std::slice::from_raw_parts(tables.as_ptr().cast(), rows.len()) };
        for (i, values) in list.values.chunks(BYTES).enumerate() {
            let distances = list.distances.get(i * BYTES..i * BYTES + values.len()).unwrap_or(&[0; BYTES]);
            let mut near = match (values.first_chunk(), distances.first_chunk()) {
                (Some(values), Some(distances)) => near_lanes(values, distances, shift, mask, tables, limit),
                _ => {
                    let (mut all_values, mut all_distances) = ([0; BYTES], [u8::MAX; BYTES]);
                    all_values[..values.len()].copy_from_slice(values);
                    all_distances[..values.len()].copy_from_slice(&distances[..values.len()]);
                    near_lanes(&all_values, &all_distances, shift, mask, tables, limit)
                }
            };
            while near != 0 {
                let lane = near.trailing_zeros() as usize;
                let value = values[4 * (lane % 8) + 2 * (lane / 16) + lane / 8 % 2];
                pairs_whole(rows, &[value], max_distance, found);
                near &= near - 1;
            }
        }
    }
}

/// Returns the tables of the lowest `N` nibbles of a row.
#[inline]
#[target_feature(enable = "avx2")]
fn row_tables<const N: usize>(row: u64) -> [__m128i; N] {
    let nibble = _mm_set1_epi8(0x0f);
    let bytes = _mm_cvtsi64_si128(row.cast_signed());
    let (low, high) = (_mm_and_si128(bytes, nibble), _mm_and_si128(_mm_srli_epi16::<4>(bytes), nibble));
    let mut nibbles = [0u8; 16];
    // SAFETY: the array has the bytes of a vector.
    unsafe { _mm_storeu_si128(nibbles.as_mut_ptr().cast(), _mm_unpacklo_epi8(low, high)) };
    std::array::from_fn(|i| {
        let table = &NIBBLE_DISTANCES[usize::from(nibbles[i] & 0x0f)];
        // SAFETY: a table has the bytes of a vector.
        unsafe { _mm_loadu_si128(table.0.as_ptr().cast()) }
    })
}

/// Returns the lanes whose distance, together with the least one to a row, is at most `limit`. Lane `16 l + 8 h + i` has
/// value `4 i + 2 l + h`.
#[inline]
#[target_feature(enable = "avx2")]
fn near_lanes<const N: usize>(
    values: &[u64; BYTES],
    distances: &[u8; BYTES],
    shift: u32,
    mask: u64,
    tables: &[[__m128i; N]],
    limit: __m256i,
) -> u32 {
    let planes = nibble_planes::<N>(values, shift, mask);
    let mut nearest = _mm256_set1_epi8(-1);
    for tables in tables {
        let mut sum = _mm256_setzero_si256();
        for (&table, &plane) in tables.iter().zip(&planes) {
            sum = _mm256_add_epi8(sum, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), plane));
        }
        nearest = _mm256_min_epu8(nearest, sum);
    }
    // SAFETY: the array has the bytes of a vector.
    let distances = unsafe { _mm256_loadu_si256(distances.as_ptr().cast()) };
    // As the values: of each four, the first goes to the low half of the low lane, the second to its high half.
    let to_words = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    let words = _mm256_shuffle_epi8(distances, to_words);
    let distances = _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    let total = _mm256_adds_epu8(nearest, distances);
    _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(total, limit), total)).cast_unsigned()
}

/// Returns nibble `n` of the bits of `mask`, after a shift to the right, of all values, for each `n` < `N`.
#[inline]
#[target_feature(enable = "avx2")]
fn nibble_planes<const N: usize>(values: &[u64; BYTES], shift: u32, mask: u64) -> [__m256i; N] {
    let (shift, mask) = (_mm_cvtsi64_si128(i64::from(shift)), _mm256_set1_epi64x(mask.cast_signed()));
    let load = |i: usize| {
        // SAFETY: there are eight vectors of four values.
        let values = unsafe { _mm256_loadu_si256(values.as_ptr().add(4 * i).cast()) };
        _mm256_and_si256(_mm256_srl_epi64(values, shift), mask)
    };
    let v: [__m256i; 8] = std::array::from_fn(load);
    // In each half, the bytes of two, four and eight values alternate; "low" and "high" are values of a vector.
    let halves = |interleave: &dyn Fn(__m256i, __m256i) -> __m256i| -> [__m256i; 4] {
        let two: [__m256i; 4] = std::array::from_fn(|i| interleave(v[2 * i], v[2 * i + 1]));
        let (first, second) = (_mm256_unpacklo_epi16(two[0], two[1]), _mm256_unpacklo_epi16(two[2], two[3]));
        let (third, fourth) = (_mm256_unpackhi_epi16(two[0], two[1]), _mm256_unpackhi_epi16(two[2], two[3]));
        [
            _mm256_unpacklo_epi32(first, second),
            _mm256_unpackhi_epi32(first, second),
            _mm256_unpacklo_epi32(third, fourth),
            _mm256_unpackhi_epi32(third, fourth),
        ]
    };
    let low = halves(&|a, b| _mm256_unpacklo_epi8(a, b));
    let high = halves(&|a, b| _mm256_unpackhi_epi8(a, b));
    let nibble = _mm256_set1_epi8(0x0f);
    std::array::from_fn(|n| {
        let (low, high) = (low[n / 4], high[n / 4]);
        let bytes = if n / 2 % 2 == 0 { _mm256_unpacklo_epi64(low, high) } else { _mm256_unpackhi_epi64(low, high) };
        _mm256_and_si256(if n % 2 == 0 { bytes } else { _mm256_srli_epi16::<4>(bytes) }, nibble)
    })
}
