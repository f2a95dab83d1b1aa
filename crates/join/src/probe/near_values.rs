//! The values near one query, in values that are sorted.

use nearprint_fingerprint::hamming_distance;

use crate::kernel::{Kernel, PADDING, Width};

/// The number of values that the kernel goes through at once; what it selects stays in the first cache.
const STEP: usize = 1 << 11;

/// Calls `found` with the position and the distance of each of `values` within `max_distance` of a query, in ascending
/// order of position. The values must ascend; they may be permuted, if the query is permuted likewise.
///
/// ```
/// use nearprint_join::{Kernel, near_values};
///
/// let mut found = Vec::new();
/// near_values(Kernel::best(), &[0b0001_u64, 0b0111, 0b0111, u64::MAX], 0b0101, 1, |at, distance| found.push((at, distance)));
/// assert_eq!(found, [(0, 1), (1, 1), (2, 1)]);
/// ```
pub fn near_values<F: Width>(
    kernel: Kernel,
    values: &[F],
    query: F,
    max_distance: u32,
    mut found: impl FnMut(usize, u32),
) {
    let mut selected = vec![F::ZERO; STEP.min(values.len()) + PADDING];
    for (step, values) in values.chunks(STEP).enumerate() {
        let n = F::select(kernel, values, query, F::MAX, max_distance, &mut selected);
        // The selected values ascend too. Equal ones are found together, by the first of them.
        for equal in selected[..n].chunk_by(|a, b| a == b) {
            let first = values.partition_point(|value| *value < equal[0]);
            let distance = hamming_distance(equal[0], query);
            (first..first + equal.len()).for_each(|at| found(step * STEP + at, distance));
        }
    }
}
