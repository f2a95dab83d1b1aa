//! The map phase: sorted runs of existing fingerprints probe the permuted tables of the new batch.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{JoinError, Result};
use crate::kernel::{Kernel, Width};
use crate::plan::permutation::ones;
use crate::plan::table_plan::TablePlan;
use crate::probe::permuted_table::{PermutedTables, Scratch};
use crate::probe::prefixes::prefix_starts;
use crate::probe::radix_sort::{Digit, sort};
use crate::probe::together::{FoundPairs, RunOrder, SharedScratch};

/// Two distinct fingerprints within the plan's distance, as positions among the queries' values and among the existing
/// fingerprints that were mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// Position in [`Queries::values`].
    pub query: u32,
    /// Position in the slice given to [`Queries::map`]; if several of its fingerprints are equal, the position of the
    /// first.
    pub existing: u32,
    /// The Hamming distance of the two fingerprints.
    pub distance: u8,
}

/// An existing fingerprint and a query within the plan's distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NearExisting<F> {
    /// The existing fingerprint.
    pub existing: F,
    /// Position in [`Queries::values`].
    pub query: u32,
    /// The Hamming distance of the two fingerprints.
    pub distance: u8,
}

/// More pairs than [`Queries::map_together`] was to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyPairs {
    /// The number of pairs.
    pub n_pairs: usize,
}

/// The query batch, ready to be joined: its distinct fingerprints in permuted tables.
///
/// The join is complete for every distance up to the plan's, whatever the distribution of the fingerprints: each pair
/// is reported exactly once, in no particular order.
#[derive(Debug)]
pub struct Queries<F> {
    tables: PermutedTables<F>,
    /// The place of each value of `prefix` among the values, by which they are found.
    prefix: Digit,
    starts: Vec<u32>,
}

/// The number of values with the same leading bits among which one is looked for, about.
const VALUES_OF_PREFIX: usize = 16;
/// The most leading bits by which values are looked for: as many starts as fit the second-level cache.
const PLACE_BITS: u32 = 16;

impl<F: Width> Queries<F> {
    /// Builds the tables of `values`; repeated values are collapsed. Bits above the plan's must be 0.
    ///
    /// # Errors
    /// [`JoinError::Bits`] if the plan has no bits or more bits than the values; [`JoinError::TooManyRows`] if there
    /// are more than `u32::MAX` values.
    ///
    /// # Panics
    /// Debug builds panic if a value has more bits than the plan.
    pub fn try_new(mut values: Vec<F>, plan: TablePlan, kernel: Kernel) -> Result<Self> {
        if !(1..=F::BITS).contains(&plan.bits()) {
            return Err(JoinError::Bits { bits: plan.bits(), type_bits: F::BITS });
        }
        if u32::try_from(values.len()).is_err() {
            return Err(JoinError::TooManyRows { rows: values.len() });
        }
        if !values.is_sorted() {
            sort(&mut values, F::BITS);
        }
        values.dedup();
        debug_assert!(values.is_sorted_by(|a, b| a < b), "a value has one position, which bisection finds");
        debug_assert!(values.last().is_none_or(|&v| v <= ones(plan.bits())), "a value has more bits than the plan");
        let width = (values.len() / VALUES_OF_PREFIX).checked_ilog2().unwrap_or(0).min(PLACE_BITS).min(plan.bits());
        let prefix = Digit { low: plan.bits() - width, width };
        let starts = prefix_starts(&values, prefix);
        Ok(Self { tables: PermutedTables::build(values, plan, kernel), prefix, starts })
    }

    /// Returns the distinct fingerprints, in ascending order.
    #[must_use]
    pub fn values(&self) -> &[F] {
        self.tables.values()
    }

    /// Returns the plan that the tables follow.
    #[must_use]
    pub fn plan(&self) -> &TablePlan {
        self.tables.plan()
    }

    /// Returns the kernel in use.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.tables.kernel()
    }

    /// Returns the bytes that the tables take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.tables.memory_bytes() + self.starts.len() * size_of::<u32>()
    }

    /// Calls `found` with every pair of a query value and one of the `existing` fingerprints within the distance. The
    /// fingerprints should be distinct and in ascending order, as a store's runs are; otherwise the method makes a
    /// sorted copy.
    ///
    /// # Panics
    /// If there are more than `u32::MAX` existing fingerprints.
    pub fn map(&self, existing: &[F], scratch: &mut MapScratch<F>, mut found: impl FnMut(Pair)) {
        assert!(u32::try_from(existing.len()).is_ok(), "positions of a pair are 32-bit numbers: map fewer at once");
        if F::is_ascending(self.kernel(), existing) {
            return self.map_run(existing, scratch, &mut found);
        }
        let mut order: Vec<(F, u32)> = existing.iter().copied().zip(0..).collect();
        order.sort_unstable();
        order.dedup_by_key(|(value, _)| *value);
        let values: Vec<F> = order.iter().map(|(value, _)| *value).collect();
        self.map_run(&values, scratch, &mut |pair| found(Pair { existing: order[pair.existing as usize].1, ..pair }));
    }

    /// Returns every pair of a query value and a fingerprint of one of `runs` within the distance, once, in ascending
    /// order of the existing fingerprint and then of the query. All threads of the rayon pool work on the runs together,
    /// so the more rows the runs have, the less work a row takes. Each run is in ascending order.
    ///
    /// ```
    /// use nearprint_join::{Kernel, NearExisting, Queries, TablePlan, TogetherScratch};
    ///
    /// let plan = TablePlan::new(64, 3, &[0, 0, 0, 0])?;
    /// let queries = Queries::try_new(vec![0b1111_u64, u64::MAX], plan, Kernel::best())?;
    /// let pairs = queries.map_together(&[&[1, 2, 4], &[1, 99]], &mut TogetherScratch::default(), 100);
    /// assert_eq!(pairs.unwrap()[0], NearExisting { existing: 1, query: 0, distance: 3 });
    /// # Ok::<(), nearprint_join::JoinError>(())
    /// ```
    ///
    /// # Errors
    /// [`TooManyPairs`] if there are more than `max_pairs`, where a fingerprint counts for each place that it stands in: map
    /// ranges of the runs one after another.
    ///
    /// # Panics
    /// If a run has more than `u32::MAX` fingerprints.
    pub fn map_together(
        &self,
        runs: &[&[F]],
        scratch: &mut TogetherScratch<F>,
        max_pairs: usize,
    ) -> std::result::Result<Vec<NearExisting<F>>, TooManyPairs> {
        self.map_together_counted((runs, RunOrder::Ascending), scratch, max_pairs, &|_| ())
    }

    /// As [`map_together`](Self::map_together), but the runs may have any order, and `probed` is called, by any thread, with
    /// numbers of rows while the work goes on. The numbers add up to the rows of all runs, also if there are too many pairs.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn map_together_counted(
        &self,
        (runs, order): (&[&[F]], RunOrder),
        scratch: &mut TogetherScratch<F>,
        max_pairs: usize,
        probed: &(dyn Fn(usize) + Sync),
    ) -> std::result::Result<Vec<NearExisting<F>>, TooManyPairs> {
        for run in runs {
            assert!(u32::try_from(run.len()).is_ok(), "positions in a run are 32-bit numbers: cut it");
            debug_assert!(order == RunOrder::Any || run.is_sorted(), "a run is in the order that is said");
        }
        let FoundPairs { pairs, n_pairs } = self.tables.map_together((runs, order), &mut scratch.0, max_pairs, probed);
        if n_pairs > max_pairs {
            return Err(TooManyPairs { n_pairs });
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most u32::MAX queries, and a distance of at most 128")]
        let near = |(existing, query): (F, F)| NearExisting {
            existing,
            query: self.position(query) as u32,
            distance: (existing ^ query).count_ones() as u8,
        };
        let mut pairs: Vec<NearExisting<F>> = pairs.into_par_iter().map(near).collect();
        pairs.par_sort_unstable();
        pairs.dedup();
        Ok(pairs)
    }

    fn map_run(&self, run: &[F], scratch: &mut MapScratch<F>, found: &mut dyn FnMut(Pair)) {
        self.tables.map(run, &mut scratch.0, &mut |a, b| found(self.pair(b, position(run, a), a)));
    }

    /// Calls `found` with every pair of two different query values, the smaller one as `query` and the larger one as
    /// `existing`, if a certain one of the two stands in `range` in the order of the table that finds the pair. Ranges
    /// that together cut `0..values().len()` report every pair once.
    ///
    /// # Panics
    /// If `range` reaches beyond the values.
    pub fn map_self(&self, range: Range<usize>, scratch: &mut MapScratch<F>, found: impl FnMut(Pair)) {
        self.map_self_counted(range, scratch, &mut |_| (), found);
    }

    /// As [`map_self`](Self::map_self), but `probed` is called with numbers of values while the work goes on, table by table.
    /// The numbers add up to the length of the range.
    ///
    /// # Panics
    /// If `range` reaches beyond the values.
    pub fn map_self_counted(
        &self,
        range: Range<usize>,
        scratch: &mut MapScratch<F>,
        probed: &mut dyn FnMut(usize),
        mut found: impl FnMut(Pair),
    ) {
        self.tables.map_self(range, &mut scratch.0, probed, &mut |a, b| {
            let (smaller, larger) = if a < b { (a, b) } else { (b, a) };
            found(self.pair(smaller, self.position(larger), larger));
        });
    }
}

/// The memory of a mapper, which holds copies of the fingerprints that it maps. A mapper that keeps it from one piece
/// to the next need not allocate it anew.
#[derive(Debug)]
pub struct MapScratch<F>(Scratch<F>);

impl<F> Default for MapScratch<F> {
    fn default() -> Self {
        Self(Scratch::default())
    }
}

/// The memory of [`Queries::map_together`]: a copy of the runs, and room for each thread.
#[derive(Debug)]
pub struct TogetherScratch<F>(SharedScratch<F>);

impl<F> Default for TogetherScratch<F> {
    fn default() -> Self {
        Self(SharedScratch::default())
    }
}

impl<F: Width> Queries<F> {
    /// Makes a pair. The positions of at most `u32::MAX` values, and a distance of at most 128 bits, fit their types.
    #[allow(clippy::cast_possible_truncation, reason = "bounded as said")]
    fn pair(&self, query: F, existing: usize, value: F) -> Pair {
        let near = (query ^ value).count_ones() <= self.plan().max_distance();
        debug_assert!(near, "a pair is within the distance of its plan");
        Pair {
            query: self.position(query) as u32,
            existing: existing as u32,
            distance: (query ^ value).count_ones() as u8,
        }
    }

    /// Returns the position of a value that there is.
    fn position(&self, value: F) -> usize {
        let prefix = self.prefix.of(value);
        let start = self.starts[prefix] as usize;
        start + position(&self.values()[start..self.starts[prefix + 1] as usize], value)
    }
}

fn position<F: Ord>(values: &[F], value: F) -> usize {
    let position = values.partition_point(|v| *v < value);
    debug_assert!(
        values.get(position).is_some_and(|v| *v == value),
        "a value of a pair is one of those that were mapped"
    );
    position
}
