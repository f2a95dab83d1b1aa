//! Pairs that sketches leave undecided, and which of them a judge reads.

use std::collections::HashMap;

/// Two classes that are left to the judge; `a` < `b`. `Ord` is the order in which it reads: the nearest come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UndecidedPair {
    /// The distance of the sketches.
    pub sketch_distance: u16,
    /// The Hamming distance of the fingerprints.
    pub distance: u8,
    /// The class with the smaller number.
    pub a: u32,
    /// The class with the larger number.
    pub b: u32,
}

/// Leaves those of the pairs, distinct, that are among the first `n` of one of their classes at least, in order. What is
/// left of several such selections, taken together, has all that is left of their pairs at once.
///
/// ```
/// use nearprint_join::{UndecidedPair, nearest_undecided};
///
/// let pair = |sketch_distance, a, b| UndecidedPair { sketch_distance, distance: 0, a, b };
/// let mut pairs = vec![pair(50, 1, 2), pair(40, 0, 1), pair(60, 0, 2), pair(40, 0, 1)];
/// nearest_undecided(&mut pairs, 1);
/// assert_eq!(pairs, [pair(40, 0, 1), pair(50, 1, 2)]);
/// ```
pub fn nearest_undecided(pairs: &mut Vec<UndecidedPair>, n: u32) {
    pairs.sort_unstable();
    pairs.dedup();
    let mut seen: HashMap<u32, u32> = HashMap::new();
    pairs.retain(|pair| {
        let ranks = [pair.a, pair.b].map(|class| {
            let rank = seen.entry(class).or_default();
            *rank += 1;
            *rank
        });
        ranks.iter().any(|&rank| rank <= n)
    });
}
