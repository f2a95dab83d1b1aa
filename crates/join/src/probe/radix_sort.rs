//! Sorting fingerprints by some of their leading bits.

use crate::kernel::Width;
use crate::plan::permutation::ones;

/// The number of bits of a pass: its counters and the lines it writes to fit the second-level cache.
const DIGIT_BITS: u32 = 12;
/// Fewer values are sorted by comparison.
const FEW: usize = 512;

/// Sorts `values` by at least the leading `sorted_bits` of the lowest `bits` bits, least significant digit first
/// (Knuth, The Art of Computer Programming, volume 3, section 5.2.5); `spare` is overwritten.
pub(crate) fn sort_by_leading_bits<F: Width>(values: &mut Vec<F>, spare: &mut Vec<F>, bits: u32, sorted_bits: u32) {
    if values.len() < FEW {
        return values.sort_unstable_by_key(|&v| v & ones::<F>(bits));
    }
    sort_by_digits(values, spare, passes(bits, sorted_bits));
}

fn sort_by_digits<F: Width>(values: &mut Vec<F>, spare: &mut Vec<F>, digits: impl Iterator<Item = Digit>) {
    for digit in digits {
        spare.resize(values.len(), F::ZERO);
        partition(&[values], spare, |value| value, digit);
        std::mem::swap(values, spare);
    }
}

/// Writes the values of all parts to `values`, sorted as [`sort_by_leading_bits`] sorts them; the first pass copies them.
pub(crate) fn gather_by_leading_bits<F: Width>(
    parts: &[&[F]],
    values: &mut Vec<F>,
    spare: &mut Vec<F>,
    bits: u32,
    sorted_bits: u32,
) {
    let n_values = parts.iter().map(|part| part.len()).sum();
    let mut digits = passes(bits, sorted_bits);
    let Some(first) = digits.next().filter(|_| n_values >= FEW) else {
        values.clear();
        parts.iter().for_each(|part| values.extend_from_slice(part));
        return sort_by_leading_bits(values, spare, bits, sorted_bits);
    };
    values.resize(n_values, F::ZERO);
    partition(parts, values, |value| value, first);
    sort_by_digits(values, spare, digits);
}

/// Returns the digits of the leading `sorted_bits` of the lowest `bits` bits, the least significant first.
fn passes(bits: u32, sorted_bits: u32) -> impl Iterator<Item = Digit> {
    let n_passes = sorted_bits.div_ceil(DIGIT_BITS);
    (0..n_passes).scan(bits - sorted_bits, move |low, pass| {
        let digit = Digit { low: *low, width: sorted_bits / n_passes + u32::from(pass < sorted_bits % n_passes) };
        *low += digit.width;
        Some(digit)
    })
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

/// The `width` bits of a value from bit `low`. There may be no such bit if `width` is 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digit {
    pub(crate) low: u32,
    pub(crate) width: u32,
}

impl Digit {
    #[inline]
    pub(crate) fn of<F: Width>(self, value: F) -> usize {
        if self.width == 0 { 0 } else { (value >> self.low).low_bits() & ((1 << self.width) - 1) }
    }
}

/// Writes `order(value)` for each value of all parts to `out`, in ascending order of a digit of the written values. Returns the
/// position at which each digit begins, and the end.
pub(crate) fn partition<F: Width>(parts: &[&[F]], out: &mut [F], order: impl Fn(F) -> F, digit: Digit) -> Vec<u32> {
    debug_assert!(
        parts.iter().map(|part| part.len()).sum::<usize>() == out.len() && u32::try_from(out.len()).is_ok(),
        "as many, and positions fit"
    );
    let starts = starts_of(parts, &order, digit);
    let mut next = starts.clone();
    for &part in parts {
        for &value in part {
            let value = order(value);
            let at = &mut next[digit.of(value)];
            out[*at as usize] = value;
            *at += 1;
        }
    }
    starts
}

/// Returns the position at which each digit begins among `order(value)` for the values of all parts, in ascending order of the
/// digit, and the end. There are at most `u32::MAX` values.
pub(crate) fn starts_of<F: Width>(parts: &[&[F]], order: impl Fn(F) -> F, digit: Digit) -> Vec<u32> {
    let mut starts = vec![0u32; (1 << digit.width) + 1];
    for &part in parts {
        for &value in part {
            starts[digit.of(order(value)) + 1] += 1;
        }
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    starts
}
