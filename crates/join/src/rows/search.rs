//! Bisection of numbers for which no slice stands.

use std::ops::Range;

/// Returns the first number of a range for which `is_before` does not hold, or its end. `is_before` holds for the numbers up to
/// some place, and for none from there on.
///
/// ```
/// assert_eq!(nearprint_join::partition_point(3..9, |n| n * n < 40), 7);
/// assert_eq!(nearprint_join::partition_point(3..3, |_| true), 3);
/// ```
pub fn partition_point(range: Range<u32>, is_before: impl Fn(u32) -> bool) -> u32 {
    let Range { start: mut low, end: mut high } = range;
    while low < high {
        let middle = u32::midpoint(low, high);
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
