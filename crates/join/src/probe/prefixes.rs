//! The places of prefixes among the queries of a table, from which the list of a node is read without a pass over the lists
//! above it.

use crate::kernel::Width;
use crate::plan::near::n_near_prefixes;
use crate::probe::radix_sort::{Digit, starts_of};

/// The approximate least number of queries that have a prefix. Fewer are not worth a look for each prefix.
const QUERIES_OF_PREFIX: usize = 4;

/// Queries in the order of a table, and the place of each prefix of some length among them.
#[derive(Debug)]
pub(crate) struct Prefixes<'a, F> {
    queries: &'a [F],
    bits: u32,
    depth: u32,
    /// The queries with prefix `p` are those at `starts[p]..starts[p + 1]`.
    starts: Vec<u32>,
}

impl<'a, F: Width> Prefixes<'a, F> {
    /// Finds the prefixes of the leading `depth` of the lowest `bits` bits, in which the queries ascend. Prefixes are shorter if
    /// there are too few queries.
    pub(crate) fn of(queries: &'a [F], bits: u32, depth: u32) -> Self {
        let depth = depth.min((queries.len() / QUERIES_OF_PREFIX).checked_ilog2().unwrap_or(0));
        let prefix = Digit { low: bits - depth, width: depth };
        Self { queries, bits, depth, starts: prefix_starts(queries, prefix) }
    }

    /// Returns the bits by which prefixes of `depth` bits may differ from one in up to `max_distance` places. `None` if the list
    /// of a node is not worth reading by prefix.
    pub(crate) fn flips(&self, depth: u32, max_distance: u32) -> Option<Vec<usize>> {
        let are_known = 0 < depth && depth <= self.depth;
        // If a large share of all prefixes is near, a pass over the queries is as good.
        let few = n_near_prefixes(depth, max_distance) * 4.0 < 2f64.powi(depth.cast_signed());
        (are_known && few).then(|| (0..1usize << depth).filter(|flip| flip.count_ones() <= max_distance).collect())
    }

    /// Puts the queries into `lists` whose leading `depth` bits differ from those of `value` by one of the `flips`, and returns
    /// their number.
    pub(crate) fn near(&self, value: F, depth: u32, flips: &[usize], lists: &mut Vec<&'a [F]>) -> usize {
        let prefix = Digit { low: self.bits - depth, width: depth }.of(value);
        let longer = self.depth - depth;
        lists.clear();
        let mut n = 0;
        for flip in flips {
            let prefix = (prefix ^ flip) << longer;
            let (start, end) = (self.starts[prefix] as usize, self.starts[prefix + (1 << longer)] as usize);
            n += end - start;
            lists.push(&self.queries[start..end]);
        }
        n
    }
}

/// Returns the place at which each prefix begins among queries that ascend by it, and the end.
pub(crate) fn prefix_starts<F: Width>(queries: &[F], prefix: Digit) -> Vec<u32> {
    debug_assert!(queries.is_sorted_by_key(|&query| prefix.of(query)), "the queries of a prefix stand together");
    starts_of(&[queries], |query| query, prefix)
}
