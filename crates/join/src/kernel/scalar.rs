//! The portable kernel, and the definition of what every other kernel must do.

use nearprint_fingerprint::{Fingerprint, hamming_distance};

/// Moves the values of `list` that differ from `prefix` in at most `max_distance` of the bits of `mask` to the front of
/// `out`, in their order, and returns their number. `out` is at least as long as `list`.
///
/// # Panics
/// If `out` is shorter than `list`.
pub fn select<F: Fingerprint>(list: &[F], prefix: F, mask: F, max_distance: u32, out: &mut [F]) -> usize {
    let mut n = 0;
    for &value in list {
        out[n] = value; // n counts values before this one, so it is below the length
        n += usize::from(((value ^ prefix) & mask).count_ones() <= max_distance);
    }
    n
}

/// Calls `found(a, b)` for every pair of a value of `left` and one of `right` within `max_distance`.
pub fn pairs<F: Fingerprint>(left: &[F], right: &[F], max_distance: u32, found: &mut dyn FnMut(F, F)) {
    for &b in right {
        for &a in left {
            if hamming_distance(a, b) <= max_distance {
                found(a, b);
            }
        }
    }
}

/// Calls `found(a, b)` once for every two values at different positions within `max_distance`.
pub fn pairs_within<F: Fingerprint>(values: &[F], max_distance: u32, found: &mut dyn FnMut(F, F)) {
    for (i, &b) in values.iter().enumerate() {
        pairs(&values[..i], &[b], max_distance, found);
    }
}

/// Returns whether every value is greater than the one before.
pub fn is_ascending<F: Fingerprint>(values: &[F]) -> bool {
    values.is_sorted_by(|a, b| a < b)
}

/// Writes the positions, from 1, at which the bits of `mask` change from one value to the next, to the front of
/// `starts`, and returns their number. `starts` is at least as long as `values`, of which there are fewer than 2^32.
///
/// # Panics
/// If `starts` has fewer than `values.len()` − 1 elements.
pub fn group_starts<F: Fingerprint>(values: &[F], mask: F, starts: &mut [u32]) -> usize {
    let mut n = 0;
    for (position, pair) in (1..).zip(values.windows(2)) {
        starts[n] = position;
        n += usize::from((pair[0] ^ pair[1]) & mask != F::ZERO);
    }
    n
}
