//! The tables of the queries. If memory does not hold all at once, they are built for one slice of the queries after
//! another.

use std::ops::Range;
use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_join::{Kernel, MapScratch, NearExisting, Pair, Queries, TablePlan, TogetherScratch, TooManyPairs};
use nearprint_storage::{blocking, row_number};
use tokio::sync::Mutex;

/// The distinct fingerprints of the batch, cut into slices of about the same size, and the tables of the slice that is
/// being joined.
#[derive(Debug)]
pub struct QuerySlices {
    plan: TablePlan,
    kernel: Kernel,
    /// The distinct fingerprints, ascending. Empty if there is one slice, because its tables have them.
    values: Vec<u64>,
    n_values: usize,
    /// The number of values in a slice. The last slice may have fewer.
    slice_values: usize,
    n_slices: usize,
    tables: Mutex<Option<(usize, Arc<Queries<u64>>)>>,
}

impl QuerySlices {
    /// Builds the tables if there is only one slice. `values` are distinct and ascending.
    ///
    /// # Errors
    /// The plan has more bits than the values have.
    ///
    /// # Panics
    /// Panics if `n_slices` is 0.
    pub fn try_new(values: Vec<u64>, plan: TablePlan, n_slices: usize, kernel: Kernel) -> Result<Self> {
        let mut slices = Self::unbuilt(values, plan, n_slices, kernel);
        if slices.n_slices == 1 {
            let values = std::mem::take(&mut slices.values);
            let queries = Arc::new(Queries::try_new(values, slices.plan.clone(), kernel)?);
            slices.tables = Mutex::new(Some((0, queries)));
        }
        Ok(slices)
    }

    /// Holds the values for others, who build the tables. Here no tables are built before they are asked for.
    ///
    /// # Panics
    /// Panics if `n_slices` is 0.
    #[must_use]
    pub fn unbuilt(values: Vec<u64>, plan: TablePlan, n_slices: usize, kernel: Kernel) -> Self {
        debug_assert!(n_slices > 0, "all values in one slice are one slice");
        let n_values = values.len();
        let slice_values = n_values.div_ceil(n_slices).max(1);
        let n_slices = n_values.div_ceil(slice_values).max(1);
        debug_assert!(n_slices * slice_values >= n_values, "the slices hold all values");
        Self { plan, kernel, values, n_values, slice_values, n_slices, tables: Mutex::new(None) }
    }

    /// Returns the number of slices.
    #[must_use]
    pub fn n_slices(&self) -> usize {
        self.n_slices
    }

    /// Returns the number of distinct fingerprints.
    #[must_use]
    pub fn n_values(&self) -> usize {
        self.n_values
    }

    /// Returns the distinct fingerprints, ascending, if there are several slices. The tables of a single slice have them.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the plan of the tables.
    #[must_use]
    pub fn plan(&self) -> &TablePlan {
        &self.plan
    }

    /// Returns the instructions of the join.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Returns the positions of a slice's values among all values.
    #[must_use]
    pub fn values_of(&self, slice: usize) -> Range<usize> {
        debug_assert!(slice < self.n_slices, "a slice is named by a number below their count");
        slice * self.slice_values..self.n_values.min((slice + 1) * self.slice_values)
    }

    /// Returns the tables of a slice. The tables of another slice are given up first.
    ///
    /// # Errors
    /// The plan has more bits than the values have.
    pub async fn tables(self: &Arc<Self>, slice: usize) -> Result<SliceTables> {
        let queries = self.queries(slice).await?;
        Ok(SliceTables { queries, start: self.values_of(slice).start })
    }

    async fn queries(self: &Arc<Self>, slice: usize) -> Result<Arc<Queries<u64>>> {
        let mut tables = self.tables.lock().await;
        if let Some((_, queries)) = tables.as_ref().filter(|(built, _)| *built == slice) {
            return Ok(Arc::clone(queries));
        }
        *tables = None;
        let own = Arc::clone(self);
        let build = move || {
            let values = own.values[own.values_of(slice)].to_vec();
            Ok::<_, Fault>(Arc::new(Queries::try_new(values, own.plan.clone(), own.kernel)?))
        };
        let queries = blocking("tables", build).await?;
        tracing::debug!(slice, of = self.n_slices, bytes = queries.memory_bytes(), "query tables built");
        *tables = Some((slice, Arc::clone(&queries)));
        Ok(queries)
    }
}

/// The tables of one slice.
#[derive(Debug)]
pub struct SliceTables {
    /// The tables.
    pub queries: Arc<Queries<u64>>,
    /// The position among all values at which the slice begins.
    start: usize,
}

impl SliceTables {
    /// Returns the position among all values at which the slice ends.
    #[must_use]
    pub fn end(&self) -> usize {
        self.start + self.queries.values().len()
    }

    /// Finds the pairs of the values of `runs`, each of which ascends, with the values of the slice. All threads work
    /// together. The pairs ascend, and name the values of the slice by their positions among all values. `probed` is called with
    /// numbers of rows while the work goes on.
    ///
    /// # Errors
    /// [`TooManyPairs`] if there are more than `max_pairs`.
    ///
    /// # Panics
    /// Panics if a run has more than `u32::MAX` values.
    pub fn map_together(
        &self,
        runs: &[&[u64]],
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
