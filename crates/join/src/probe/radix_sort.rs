//! Sorting fingerprints by some of their leading bits.

use crate::kernel::Width;
use crate::plan::permutation::ones;

/// The number of bits of a pass: its counters and the lines it writes to fit the second-level cache.
const DIGIT_BITS: u32 = 11;
/// Fewer values are sorted by comparison.
const FEW: usize = 512;

/// Sorts `values` by at least the leading `sorted_bits` of the lowest `bits` bits, least significant digit first
/// (Knuth, The Art of Computer Programming, volume 3, section 5.2.5); `spare` is overwritten.
pub(crate) fn sort_by_leading_bits<F: Width>(values: &mut Vec<F>, spare: &mut Vec<F>, bits: u32, sorted_bits: u32) {
    if values.len() < FEW {
        return values.sort_unstable_by_key(|&v| v & ones::<F>(bits));
    }
    if spare.len() != values.len() {
        spare.resize(values.len(), F::ZERO);
    }
    let n_passes = sorted_bits.div_ceil(DIGIT_BITS);
    let mut low = bits - sorted_bits;
    for pass in 0..n_passes {
        let width = sorted_bits / n_passes + u32::from(pass < sorted_bits % n_passes);
        partition(values, spare, |value| value, low, width);
        std::mem::swap(values, spare);
        low += width;
    }
}

/// Sorts `values` by the lowest `bits` bits: radix passes over the leading bits, then a comparison sort of the values
/// that agree in them.
pub(crate) fn sort<F: Width>(values: &mut Vec<F>, bits: u32) {
    let leading = bits.min(LEADING_BITS);
    sort_by_leading_bits(values, &mut Vec::new(), bits, leading);
    let (all, rest) = (ones::<F>(bits), bits - leading);
    for group in values.chunk_by_mut(|&a, &b| rest == 0 || ((a ^ b) & all) >> rest == F::ZERO) {
        if group.len() > 1 {
            group.sort_unstable_by_key(|&v| v & all);
        }
    }
}

/// Three passes, after which few uniform values are still out of order.
const LEADING_BITS: u32 = 33;

/// Returns the `width` bits from bit `low`. There may be no such bit if `width` is 0.
#[inline]
pub(crate) fn digit<F: Width>(value: F, low: u32, width: u32) -> usize {
    if width == 0 { 0 } else { (value >> low).low_bits() & ((1 << width) - 1) }
}

/// Writes `order(value)` for each value to `out`, in ascending order of the digit of `width` bits from bit `low` of the
/// written values. Returns the position at which each digit begins, and the end.
pub(crate) fn partition<F: Width>(
    values: &[F],
    out: &mut [F],
    order: impl Fn(F) -> F,
    low: u32,
    width: u32,
) -> Vec<u32> {
    debug_assert!(values.len() == out.len() && u32::try_from(values.len()).is_ok(), "as many, and positions fit");
    let digit = |value: F| digit(value, low, width);
    let mut starts = vec![0u32; (1 << width) + 1];
    for &value in values {
        starts[digit(order(value)) + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    for &value in values {
        let value = order(value);
        let at = &mut next[digit(value)];
        out[*at as usize] = value;
        *at += 1;
    }
    starts
}
