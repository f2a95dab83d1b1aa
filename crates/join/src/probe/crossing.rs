//! What a sorted run covers of the values that agree in its leading bits, and where it is split if that is little.
//!
//! A walk takes its depth from the number of rows and from the leading bits in which all rows agree. A run around the middle of all
//! values agrees in no bit, however few values it covers, and its leaves would be far too large. Therefore such a run is split at
//! the middle. If its rows lie evenly, each half then covers at least half of the values that agree in its own leading bits.

use crate::kernel::Width;
use crate::plan::permutation::{common_prefix, leading_ones};
use crate::probe::radix_sort::Digit;

/// The number of bits that tell how much a run covers.
const COVER_BITS: u32 = 16;

/// Returns a mask of leading bits: the rows that agree with `first` in them are one half of the run, and the others are the
/// other half. Returns `None` if the run covers more than three quarters of the values that agree in its leading bits, or if
/// its leading bits are all equal. The run ascends from `first` to `last` in its leading `sorted_bits`.
///
/// Runs that cover a little more than half are common: a piece whose number of rows is a power of 2 rarely ends where the bits
/// change.
pub(crate) fn half_mask<F: Width>(first: F, last: F, bits: u32, sorted_bits: u32) -> Option<F> {
    let root = common_prefix(first, last, bits);
    if root >= sorted_bits {
        return None;
    }
    let width = COVER_BITS.min(bits - root);
    let place = Digit { low: bits - root - width, width };
    debug_assert!(place.of(first) < place.of(last), "the first bit that differs is not set in the first row of a run");
    let covered = place.of(last) - place.of(first) + 1;
    (4 * covered <= 3 << width).then(|| leading_ones(bits, root + 1))
}

/// Splits a run into the rows that agree with `first` in the bits of a [`half_mask`], and the others.
pub(crate) fn split<F: Width>(run: &[F], first: F, mask: F) -> [&[F]; 2] {
    let (left, right) = run.split_at(run.partition_point(|&row| (row ^ first) & mask == F::ZERO));
    [left, right]
}
