//! The definitions of the results, which compare everything with everything: the fast paths are tested against them.

use nearprint_fingerprint::{Fingerprint, Sketch, hamming_distance};

use crate::decide::cluster::UnionFind;
use crate::rows::query_rows::RowPair;
use crate::rows::verify::Verifier;

/// Returns every (query, existing, distance) within `max_distance`, by position, in ascending order.
pub fn cross_pairs<F: Fingerprint>(queries: &[F], existing: &[F], max_distance: u32) -> Vec<(usize, usize, u32)> {
    let all = queries
        .iter()
        .enumerate()
        .flat_map(|(q, &a)| existing.iter().enumerate().map(move |(e, &b)| (q, e, hamming_distance(a, b))));
    all.filter(|&(_, _, distance)| distance <= max_distance).collect()
}

/// Returns every verified pair of rows that have a fingerprint, in ascending order.
#[must_use]
pub fn row_pairs<F: Fingerprint>(
    fingerprints: &[Option<F>],
    sketches: &[Option<Sketch>],
    verifier: &Verifier,
) -> Vec<RowPair> {
    let sketch = |row: u32| sketches.get(row as usize).and_then(Option::as_ref);
    let mut pairs = Vec::new();
    for (a, fa) in (0..).zip(fingerprints) {
        for (b, fb) in (0..a).zip(fingerprints) {
            let (Some(fa), Some(fb)) = (*fa, *fb) else {
                continue;
            };
            let Ok(distance) = u8::try_from(hamming_distance(fa, fb)) else {
                continue;
            };
            if let Some(sketch_distance) = verifier.verify(distance, sketch(a), sketch(b)) {
                pairs.push(RowPair { a: b, b: a, distance, sketch_distance: sketch_distance.bits() });
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Returns the spanning forest: it takes the pairs in order of (distance, a, b), and keeps each pair that joins two
/// components, in that order.
///
/// # Panics
/// If a pair contains a row that is not below `n_rows`.
#[must_use]
pub fn forest(pairs: &[RowPair], n_rows: u32) -> Vec<RowPair> {
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable_by_key(|p| (p.distance, p.a, p.b));
    let mut sets = UnionFind::new(n_rows);
    pairs.retain(|p| sets.union(p.a, p.b));
    pairs
}
