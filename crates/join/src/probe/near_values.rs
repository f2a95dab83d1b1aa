//! The values near one query.

use nearprint_fingerprint::hamming_distance;

use crate::kernel::{Kernel, PADDING, Width};

/// The number of values that the kernel goes through at once; what it selects stays in the first cache.
const STEP: usize = 1 << 11;

/// Calls `found` with the position and the distance of each of `values` within `max_distance` of a query, in ascending
/// order of position. The values may have any order; they may be permuted, if the query is permuted likewise.
/// `scratch` is memory that is reused.
///
/// ```
/// use nearprint_join::{Kernel, near_values};
///
/// let mut found = Vec::new();
/// let (values, mut scratch) = ([0b0111_u64, u64::MAX, 0b0001, 0b0111], Vec::new());
/// near_values(Kernel::best(), &values, 0b0101, 1, &mut scratch, |at, distance| found.push((at, distance)));
/// assert_eq!(found, [(0, 1), (2, 1), (3, 1)]);
/// ```
pub fn near_values<F: Width>(
    kernel: Kernel,
    values: &[F],
    query: F,
    max_distance: u32,
    scratch: &mut Vec<F>,
    mut found: impl FnMut(usize, u32),
) {
    scratch.resize(STEP + PADDING, F::ZERO);
    for (step, values) in values.chunks(STEP).enumerate() {
        let n = F::select(kernel, values, query, F::MAX, max_distance, scratch);
        // Few steps have a near value: only these are looked at one by one.
        if n > 0 {
            let distances = values.iter().map(|value| hamming_distance(*value, query)).enumerate();
            distances.filter(|(_, k)| *k <= max_distance).for_each(|(at, k)| found(step * STEP + at, k));
        }
    }
}
