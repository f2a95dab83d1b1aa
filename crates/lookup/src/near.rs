//! The rows whose fingerprints are near a query's.

use std::sync::Arc;

use nearprint_join::{Kernel, near_values};
use nearprint_storage::row_number;
use nearprint_store::Store;

use crate::counts::Counts;
use crate::error::Result;
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

/// Compares all fingerprints of a run with a query, and returns the near rows and their distances.
///
/// # Errors
/// The run is damaged or cannot be read.
pub async fn scan(
    run: &OpenRun,
    store: &Store,
    memory: &Arc<Memory>,
    query: u64,
    (kernel, max_distance): (Kernel, u32),
    counts: &Counts,
) -> Result<Vec<(u32, u32)>> {
    let (mut near, mut scratch) = (Vec::new(), Vec::new());
    if run.night.run.n_fingerprints == 0 {
        return Ok(near);
    }
    if let Some(values) = run.values(store, memory, counts).await? {
        near_values(kernel, values, query, max_distance, &mut scratch, |at, distance| {
            near.push((row_number(at), distance));
        });
        return Ok(near);
    }
    let n_row_groups = run.fingerprints(store).await?.n_row_groups();
    let mut first = 0;
    for group in 0..n_row_groups {
        let values = run.row_group(store, group, counts).await?;
        near_values(kernel, &values, query, max_distance, &mut scratch, |at, distance| {
            near.push((row_number(first + at), distance));
        });
        first += values.len();
    }
    Ok(near)
}
