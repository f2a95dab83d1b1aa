//! A kernel for AVX-512 with byte permutations, which unpacks eight deltas at a time. It moves the bytes of each delta
//! to its lane, and shifts the delta to the lane's lowest bit. The values are prefix sums over the lanes.
#![allow(unsafe_code, reason = "intrinsics; each block says why it is sound")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_alignr_epi64, _mm512_and_si512, _mm512_loadu_si512, _mm512_permutexvar_epi8,
    _mm512_permutexvar_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_srlv_epi64, _mm512_storeu_si512,
};

use super::scalar;

/// The largest width of a delta. Wider ones may span nine bytes.
const MAX_WIDTH: u32 = 57;

/// A proof that the processor has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes(());

impl Lanes {
    /// Returns the proof, if the processor has the instructions.
    pub fn detected() -> Option<Self> {
        let detected = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi");
        detected.then_some(Self(()))
    }

    /// See [`DeltaKernel::unpack`](super::DeltaKernel::unpack). Returns `None` if the width is 0 or too large.
    pub fn unpack(self, packed: &[u8], width: u32, min_delta: u64, before: u64, out: &mut [u64]) -> Option<u64> {
        if width == 0 || width > MAX_WIDTH {
            return None;
        }
        // Each load takes a whole vector of 64 bytes and uses `width` of them.
        let n_loads = packed.len().saturating_sub(64 - width as usize) / width as usize;
        let n = 8 * n_loads.min(out.len() / 8);
        let (vectors, rest) = out.split_at_mut(n);
        // SAFETY: `self` proves the instructions, and all n / 8 loads are inside `packed`.
        let last = unsafe { unpack_lanes(packed, width, min_delta, before, vectors) };
        Some(scalar::unpack_deltas(packed.get(n / 8 * width as usize..).unwrap_or(&[]), width, min_delta, last, rest))
    }
}

/// # Safety
/// The processor must have the instructions. The length of `out` must be a multiple of eight, and `packed` must have at
/// least `out.len() / 8 * width + 64 - width` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn unpack_lanes(packed: &[u8], width: u32, min_delta: u64, before: u64, out: &mut [u64]) -> u64 {
    let (bytes, shifts) = lanes(width);
    // SAFETY: both arrays have 64 bytes.
    let (bytes, shifts) =
        unsafe { (_mm512_loadu_si512(bytes.as_ptr().cast()), _mm512_loadu_si512(shifts.as_ptr().cast())) };
    let mask = _mm512_set1_epi64((u64::MAX >> (64 - width)).cast_signed());
    let min_deltas = _mm512_set1_epi64(min_delta.cast_signed());
    let seventh = _mm512_set1_epi64(7);
    let mut last = _mm512_set1_epi64(before.cast_signed());
    for (i, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        // SAFETY: the load is inside `packed`, as the caller guarantees; a chunk of `out` is a whole vector.
        unsafe {
            let loaded = _mm512_loadu_si512(packed.as_ptr().add(i * width as usize).cast());
            let aligned = _mm512_srlv_epi64(_mm512_permutexvar_epi8(bytes, loaded), shifts);
            let deltas = _mm512_add_epi64(_mm512_and_si512(aligned, mask), min_deltas);
            let sums = _mm512_add_epi64(prefix_sums(deltas), last);
            _mm512_storeu_si512(values.as_mut_ptr().cast(), sums);
            last = _mm512_permutexvar_epi64(seventh, sums);
        }
    }
    out.last().copied().unwrap_or(before)
}

/// Returns the sum of each lane and all lanes before it.
#[inline]
#[target_feature(enable = "avx512f")]
fn prefix_sums(lanes: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let lanes = _mm512_add_epi64(lanes, _mm512_alignr_epi64::<7>(lanes, zero));
    let lanes = _mm512_add_epi64(lanes, _mm512_alignr_epi64::<6>(lanes, zero));
    _mm512_add_epi64(lanes, _mm512_alignr_epi64::<4>(lanes, zero))
}

/// Returns the positions of the bytes that hold each of eight deltas, and the number of bits by which to shift them.
#[allow(clippy::cast_possible_truncation, reason = "bytes of 64")]
fn lanes(width: u32) -> ([u8; 64], [u64; 8]) {
    let (mut bytes, mut shifts) = ([0; 64], [0; 8]);
    for lane in 0..8 {
        let bit = lane * width as usize;
        shifts[lane] = bit as u64 % 8;
        for byte in 0..8 {
            bytes[8 * lane + byte] = (bit / 8 + byte).min(63) as u8;
        }
    }
    (bytes, shifts)
}
