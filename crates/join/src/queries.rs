//! The map phase: the new batch's fingerprints in permuted tables, probed with existing fingerprints.

use nearprint_fingerprint::Fingerprint;

use crate::permuted_table::PermutedTables;
use crate::table_plan::TablePlan;

/// Probes between two looks at the next table: their fingerprints stay in the innermost cache.
const PROBE_SLICE: usize = 2048;

/// Two distinct fingerprints within the plan's distance, as positions among the queries' values and among the existing
/// fingerprints that were probed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// Position in [`Queries::values`].
    pub query: u32,
    /// Position in the slice given to [`Queries::map`].
    pub existing: u32,
    /// Their Hamming distance.
    pub distance: u8,
}

/// The query batch, ready to be probed: its distinct fingerprints and the permuted tables over them.
///
/// Complete for every distance up to the plan's, whatever the distribution of the fingerprints: each pair comes out
/// exactly once, in no particular order.
#[derive(Debug)]
pub struct Queries<F> {
    values: Vec<F>,
    tables: PermutedTables<F>,
}

impl<F: Fingerprint> Queries<F> {
    /// Tables of `values`; repeats are collapsed. Bits above the plan's must be 0. At most `u32::MAX` values.
    #[must_use]
    pub fn new(mut values: Vec<F>, plan: TablePlan) -> Self {
        values.sort_unstable();
        values.dedup();
        let tables = PermutedTables::build(&values, plan);
        Self { values, tables }
    }

    /// The distinct fingerprints, ascending.
    #[must_use]
    pub fn values(&self) -> &[F] {
        &self.values
    }

    /// The plan that the tables follow.
    #[must_use]
    pub fn plan(&self) -> &TablePlan {
        self.tables.plan()
    }

    /// Bytes of the values and tables.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.values.len() * size_of::<F>() + self.tables.memory_bytes()
    }

    /// Every pair of a query value and an `existing` fingerprint within the distance. Probing with each distinct existing
    /// fingerprint once is the caller's part; order does not matter, sorted input is kind to the caches.
    pub fn map(&self, existing: &[F], mut found: impl FnMut(Pair)) {
        for (slice, start) in existing.chunks(PROBE_SLICE).zip((0..).step_by(PROBE_SLICE)) {
            self.tables.probe(slice, &mut |i, value, distance| {
                if let Ok(query) = self.values.binary_search(&value) {
                    found(pair(query, start + i, distance));
                }
            });
        }
    }

    /// Every pair of two different query values with the second one in `range`, as `existing`, and `query` < `existing`.
    /// Ranges that cut the values give every pair once.
    pub fn map_self(&self, range: std::ops::Range<usize>, mut found: impl FnMut(Pair)) {
        let start = range.start;
        self.map(&self.values[range], |p| {
            let existing = p.existing as usize + start;
            if (p.query as usize) < existing {
                found(pair(p.query as usize, existing, u32::from(p.distance)));
            }
        });
    }
}

/// Positions of fewer than 2^32 values, and a distance of at most 128 bits, fit.
#[allow(clippy::cast_possible_truncation, reason = "bounded as said")]
fn pair(query: usize, existing: usize, distance: u32) -> Pair {
    Pair { query: query as u32, existing: existing as u32, distance: distance as u8 }
}
