//! The reduce phase in memory: it merges the output of all mappers.

/// Returns the distinct pairs of all mappers, sorted. Neither the order of the mappers nor that of their pairs matters.
pub fn reduce<P: Ord>(mapped: impl IntoIterator<Item = Vec<P>>) -> Vec<P> {
    let mut pairs: Vec<P> = mapped.into_iter().flatten().collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}
