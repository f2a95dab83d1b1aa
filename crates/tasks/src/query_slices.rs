//! The tables of the queries, for each key of a join. If memory does not hold all tables of a key at once, they are built for
//! one slice of its queries after another.

use std::ops::Range;
use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_join::{
    Kernel, Key, MapScratch, NearExisting, Pair, Queries, RunOrder, TablePlan, TogetherScratch, TooManyPairs, WordRows,
};
use nearprint_storage::{blocking, in_pool, row_number};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

/// The values of the batch in one key, and with what they are joined.
#[derive(Debug)]
pub struct KeyQueries {
    of: KeyJoin,
    plan: TablePlan,
    /// The distinct values, ascending. Empty if the tables have them, or if only their number is known.
    values: Vec<u64>,
    n_values: usize,
    /// The number of values that tables have: the first ones. The others are only joined with them.
    n_in_tables: usize,
    /// The number of values in a slice. The last slice may have fewer.
    slice_values: usize,
    n_slices: usize,
    /// The classes behind the values, if they are words.
    words: Option<WordRows>,
}

/// A key, and with what its values are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyJoin {
    /// The key.
    pub key: Key,
    /// The values are joined with those of existing documents.
    pub existing: bool,
    /// The values are joined with each other. Only fingerprints are.
    pub itself: bool,
}

impl KeyQueries {
    /// Makes the queries of a key, which are cut into slices of about the same size. `values` are distinct and ascending;
    /// `words` has the classes behind them, if they are words.
    ///
    /// # Panics
    /// Panics if `n_slices` is 0.
    #[must_use]
    pub fn new(of: KeyJoin, values: Vec<u64>, words: Option<WordRows>, plan: TablePlan, n_slices: usize) -> Self {
        debug_assert!(words.is_some() == matches!(of.key, Key::Word(_)), "words have their classes");
        let counted = Self::counted(of, values.len(), plan, n_slices);
        Self { values, words, ..counted }
    }

    /// Makes the queries of fingerprints, of which only the first ones are in the tables. `values` are distinct and ascending.
    ///
    /// # Panics
    /// Panics if there are fewer values.
    #[must_use]
    pub(crate) fn with_others(of: KeyJoin, values: Vec<u64>, plan: TablePlan, n_in_tables: usize) -> Self {
        debug_assert!(n_in_tables <= values.len(), "the tables have some of the values");
        Self { n_values: values.len(), values, ..Self::counted(of, n_in_tables, plan, 1) }
    }

    /// Makes the queries of a key whose tables others build, from values of their own.
    ///
    /// # Panics
    /// Panics if `n_slices` is 0.
    #[must_use]
    pub fn counted(of: KeyJoin, n_values: usize, plan: TablePlan, n_slices: usize) -> Self {
        debug_assert!(n_slices > 0, "all values in one slice are one slice");
        let slice_values = n_values.div_ceil(n_slices).max(1);
        let n_slices = n_values.div_ceil(slice_values).max(1);
        debug_assert!(n_slices * slice_values >= n_values, "the slices hold all values");
        Self { of, plan, values: Vec::new(), n_values, n_in_tables: n_values, slice_values, n_slices, words: None }
    }

    /// Returns the key, and with what it is joined.
    #[must_use]
    pub fn of(&self) -> KeyJoin {
        self.of
    }

    /// Returns the number of slices.
    #[must_use]
    pub fn n_slices(&self) -> usize {
        self.n_slices
    }

    /// Returns the number of distinct values.
    #[must_use]
    pub fn n_values(&self) -> usize {
        self.n_values
    }

    /// Returns the distinct values, ascending, if there are several slices or some are in no table.
    pub(crate) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns whether all values are in the tables of one slice.
    pub(crate) fn is_in_one_slice(&self) -> bool {
        self.n_slices == 1 && self.n_in_tables == self.n_values
    }

    /// Returns the plan of the tables.
    #[must_use]
    pub fn plan(&self) -> &TablePlan {
        &self.plan
    }

    /// Returns the classes behind the values, if they are words.
    pub(crate) fn words(&self) -> Option<&WordRows> {
        self.words.as_ref()
    }
}

/// The keys of a join, and the tables of the slices that are being joined. The slices of all keys are numbered one after
/// another.
#[derive(Debug)]
pub struct QuerySlices {
    keys: Vec<KeyQueries>,
    /// The key of each slice, and its number among those of the key.
    slices: Vec<(usize, usize)>,
    kernel: Kernel,
    built: Mutex<Built>,
}

/// The slices whose tables are in memory, and the tables of each.
#[derive(Debug, Default)]
struct Built {
    slices: Range<usize>,
    tables: Vec<Arc<Queries<u64>>>,
}

impl QuerySlices {
    /// Builds the tables if there is only one slice of one key.
    ///
    /// # Errors
    /// The plan has more bits than the values have.
    pub fn try_new(keys: Vec<KeyQueries>, kernel: Kernel) -> Result<Self> {
        let mut slices = Self::unbuilt(keys, kernel);
        if let [key] = slices.keys.as_mut_slice()
            && key.is_in_one_slice()
        {
            let queries = Arc::new(Queries::try_new(std::mem::take(&mut key.values), key.plan.clone(), kernel)?);
            slices.built = Mutex::new(Built { slices: 0..1, tables: vec![queries] });
        }
        Ok(slices)
    }

    /// Makes the slices, whose tables are built when they are asked for. Of [counted](KeyQueries::counted) keys, others build them.
    #[must_use]
    pub fn unbuilt(keys: Vec<KeyQueries>, kernel: Kernel) -> Self {
        debug_assert!(keys.first().is_some_and(|first| first.of.key == Key::Fingerprint), "fingerprints are a key");
        let slices_of = |(number, key): (usize, &KeyQueries)| (0..key.n_slices).map(move |slice| (number, slice));
        let slices = keys.iter().enumerate().flat_map(slices_of).collect();
        Self { keys, slices, kernel, built: Mutex::default() }
    }

    /// Returns the keys.
    #[must_use]
    pub fn keys(&self) -> &[KeyQueries] {
        &self.keys
    }

    /// Returns the number of slices of all keys.
    #[must_use]
    pub fn n_slices(&self) -> usize {
        self.slices.len()
    }

    /// Returns the key of a slice, and the slice's number among those of the key.
    ///
    /// # Panics
    /// If there is no such slice.
    #[must_use]
    pub fn of_slice(&self, slice: usize) -> (&KeyQueries, usize) {
        let (key, of_key) = self.slices[slice];
        (&self.keys[key], of_key)
    }

    /// Returns the bits of a fingerprint.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.keys[0].plan.bits()
    }

    /// Returns the instructions of the join.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Returns the places of a slice's values among all values of its key.
    #[must_use]
    pub fn values_of(&self, slice: usize) -> Range<usize> {
        let (key, slice) = self.of_slice(slice);
        slice * key.slice_values..key.n_in_tables.min((slice + 1) * key.slice_values)
    }

    /// Returns the tables of some slices, one by one. The tables of others are given up first.
    ///
    /// # Errors
    /// The plan has more bits than the values have.
    pub async fn tables(self: &Arc<Self>, slices: Range<usize>) -> Result<Vec<Arc<SliceTables>>> {
        let queries = self.queries(slices.clone()).await?;
        let of_slice = |(slice, queries)| Arc::new(SliceTables { queries, start: self.values_of(slice).start });
        Ok(slices.zip(queries).map(of_slice).collect())
    }

    async fn queries(self: &Arc<Self>, slices: Range<usize>) -> Result<Vec<Arc<Queries<u64>>>> {
        let mut built = self.built.lock().await;
        if built.slices == slices {
            return Ok(built.tables.clone());
        }
        *built = Built::default();
        let (own, wanted) = (Arc::clone(self), slices.clone());
        let build = move || {
            let of_slice = |slice: usize| {
                let (key, _) = own.of_slice(slice);
                let values = key.values[own.values_of(slice)].to_vec();
                Ok::<_, Fault>(Arc::new(Queries::try_new(values, key.plan.clone(), own.kernel)?))
            };
            in_pool(|| wanted.into_par_iter().map(of_slice).collect::<Result<Vec<_>>>())
        };
        let tables = blocking("tables", build).await?;
        let bytes = tables.iter().map(|queries| queries.memory_bytes()).sum::<usize>();
        tracing::debug!(?slices, of = self.n_slices(), bytes, "query tables built");
        *built = Built { slices, tables: tables.clone() };
        Ok(tables)
    }
}

/// The tables of one slice.
#[derive(Debug)]
pub struct SliceTables {
    /// The tables.
    pub queries: Arc<Queries<u64>>,
    /// The position among all values of the key at which the slice begins.
    start: usize,
}

impl SliceTables {
    /// Returns the position among all values at which the slice ends.
    #[must_use]
    pub fn end(&self) -> usize {
        self.start + self.queries.values().len()
    }

    /// Finds the pairs of the values of `runs` with the values of the slice. All threads work together. The pairs ascend, and name the values of the slice by their positions among all values. `probed` is called with
    /// numbers of rows while the work goes on.
    ///
    /// # Errors
    /// [`TooManyPairs`] if there are more than `max_pairs`.
    ///
    /// # Panics
    /// Panics if a run has more than `u32::MAX` values.
    pub fn map_together(
        &self,
        runs: (&[&[u64]], RunOrder),
        scratch: &mut TogetherScratch<u64>,
        max_pairs: usize,
        probed: &(dyn Fn(usize) + Sync),
    ) -> std::result::Result<Vec<NearExisting<u64>>, TooManyPairs> {
        let start = row_number(self.start);
        let mut pairs = self.queries.map_together_counted(runs, scratch, max_pairs, probed)?;
        pairs.iter_mut().for_each(|pair| pair.query += start);
        Ok(pairs)
    }

    /// Finds the pairs of some `existing` values with the values of the slice. The first existing value has the number
    /// `first`. Pairs name the values of the slice by their positions among all values.
    ///
    /// # Panics
    /// May panic if an existing value would have a number that is larger than `u32::MAX`.
    pub fn map(&self, first: usize, existing: &[u64], scratch: &mut MapScratch<u64>, mut found: impl FnMut(Pair)) {
        let (start, first) = (row_number(self.start), row_number(first));
        self.queries.map(existing, scratch, |pair| {
            found(Pair { query: pair.query + start, existing: pair.existing + first, ..pair });
        });
    }
}
