//! The definitions, by comparing everything with everything: the oracles that the fast paths are tested against.

use nearprint_fingerprint::{Fingerprint, hamming_distance};

use crate::decide::cluster::UnionFind;
use crate::rows::query_rows::RowPair;
use crate::rows::verify::Verifier;
use nearprint_fingerprint::Sketch;

/// Every (query, existing, distance) within `max_distance`, by position, ascending.
pub fn cross_pairs<F: Fingerprint>(queries: &[F], existing: &[F], max_distance: u32) -> Vec<(usize, usize, u32)> {
    let all = queries
        .iter()
        .enumerate()
        .flat_map(|(q, &a)| existing.iter().enumerate().map(move |(e, &b)| (q, e, hamming_distance(a, b))));
    all.filter(|&(_, _, distance)| distance <= max_distance).collect()
}

/// Every verified pair of rows that have a fingerprint, ascending.
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

/// The spanning forest: pairs in order of (distance, a, b), those that join two components; in that order.
#[must_use]
pub fn forest(pairs: &[RowPair], n_rows: u32) -> Vec<RowPair> {
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable_by_key(|p| (p.distance, p.a, p.b));
    let mut sets = UnionFind::new(n_rows);
    pairs.retain(|p| sets.union(p.a, p.b));
    pairs
}
