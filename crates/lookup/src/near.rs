//! The rows whose fingerprints are near a query's.

use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_join::{Kernel, near_values};
use nearprint_storage::{blocking, row_number};
use nearprint_store::Store;

use crate::budget::Budget;
use crate::counts::Counts;
use crate::nights::{Memory, OpenRun};

/// A row whose fingerprint is near a query's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Near {
    /// The position of the night.
    pub night: usize,
    /// The row of its fingerprints.
    pub row: u32,
    /// The number of the query.
    pub query: u32,
    /// The distance to the query.
    pub distance: u32,
}

/// Rows that follow each other, at one distance to a query. Copies of a page are such rows: rows are in the order of
/// their fingerprints. So all copies together take the memory of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdjacentRows {
    /// The first row.
    pub first: u32,
    /// The number of rows.
    pub n: u32,
    /// The distance to the query.
    pub distance: u32,
}

impl AdjacentRows {
    /// Returns one row.
    pub fn of(row: u32, distance: u32) -> Self {
        Self { first: row, n: 1, distance }
    }

    /// Takes a row, if it follows the others and has their distance. Returns whether it does.
    pub fn takes(&mut self, row: u32, distance: u32) -> bool {
        let follows = self.distance == distance && row.checked_sub(self.first) == Some(self.n);
        self.n += u32::from(follows);
        follows
    }
}

/// Rows of a night that are near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NearRows {
    /// The position of the night.
    pub night: usize,
    /// The rows of its fingerprints, or of its short texts.
    pub rows: AdjacentRows,
}

impl NearRows {
    /// Adds a row to those that were found before it.
    pub fn add(found: &mut Vec<Self>, night: usize, row: u32, distance: u32) {
        if !found.last_mut().is_some_and(|last| last.night == night && last.rows.takes(row, distance)) {
            found.push(Self { night, rows: AdjacentRows::of(row, distance) });
        }
    }

    /// Returns each of the rows, as near to query 0.
    pub fn each(self) -> impl Iterator<Item = Near> {
        let Self { night, rows: AdjacentRows { first, n, distance } } = self;
        debug_assert!(n > 0 && first.checked_add(n - 1).is_some(), "rows have 32-bit numbers, and a stretch has a row");
        (0..n).map(move |at| Near { night, row: first + at, query: 0, distance })
    }
}

/// The number of fingerprints that are compared on the thread of the request, in about 30 microseconds. More of them are
/// compared on a thread that nobody else waits for.
const INLINE_ROWS: usize = 1 << 16;

/// Compares all fingerprints of a night's run with a query, and returns the near rows, which ascend.
///
/// # Errors
/// The run is damaged or cannot be read.
pub async fn scan(
    (night, run): (usize, &OpenRun),
    store: &Store,
    (memory, reads): (&Arc<Memory>, &Budget),
    query: u64,
    (kernel, max_distance): (Kernel, u32),
    counts: &Counts,
) -> Result<Vec<NearRows>> {
    if run.night.run.n_fingerprints == 0 {
        return Ok(Vec::new());
    }
    let near = async |values: Arc<Vec<u64>>, before: usize| {
        let is_short = values.len() <= INLINE_ROWS;
        let compare = move || {
            let (mut near, mut scratch) = (Vec::new(), Vec::new());
            near_values(kernel, &values, query, max_distance, &mut scratch, |at, distance| {
                NearRows::add(&mut near, night, row_number(before + at), distance);
            });
            near
        };
        if is_short { Ok(compare()) } else { blocking("query", move || Ok::<_, Fault>(compare())).await }
    };
    if let Some(values) = run.values(store, (memory, reads), counts).await? {
        return near(values, 0).await;
    }
    let (mut all, mut before) = (Vec::new(), 0);
    for group in 0..run.fingerprints(store).await?.n_row_groups() {
        let _taken = reads.take(run.row_group_bytes(store, group).await?).await?;
        let values = Arc::new(run.row_group(store, group, counts).await?);
        let n_rows = values.len();
        all.extend(near(values, before).await?);
        before += n_rows;
    }
    Ok(all)
}
