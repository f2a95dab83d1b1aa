//! Many queries at once: their fingerprints are joined with those of the store, as a night's batch is.

use std::ops::Range;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use nearprint_join::{ExistingRun, JoinCost, Kernel, Queries, TablePlan, TogetherScratch, Workload};
use nearprint_storage::{blocking, row_number};
use nearprint_store::Store;

use crate::counts::Counts;
use crate::error::{LookupError, Result};
use crate::near::Near;
use crate::nights::{Memory, OpenRun};

/// The number of fingerprints that are joined together.
const PIECE_ROWS: usize = 1 << 22;
/// The bytes of the permuted tables of the queries, at most.
const TABLE_BYTES: usize = 256 << 20;

/// The queries of a batch that have fingerprints.
#[derive(Debug)]
pub struct Batch {
    /// Fingerprints and the numbers of their queries, in ascending order.
    asked: Vec<(u64, u32)>,
    plan: TablePlan,
    kernel: Kernel,
}

impl Batch {
    /// Plans a join of `asked`, fingerprints and the numbers of their queries, with runs of these numbers of rows.
    /// Returns also the estimated nanoseconds of the join on one core.
    pub fn new(mut asked: Vec<(u64, u32)>, runs: &[u64], limits: (u32, u32), kernel: Kernel) -> (Self, f64) {
        asked.sort_unstable();
        let workload = Workload {
            n_queries: asked.len(),
            existing: runs.iter().map(|&n_rows| ExistingRun { n_rows, density_rows: n_rows }).collect(),
            piece_rows: PIECE_ROWS,
            itself: false,
            memory_bytes: TABLE_BYTES,
            threads: rayon::current_num_threads(),
            pieces_under_way: 2,
        };
        let (bits, max_distance) = limits;
        let plan = TablePlan::choose(bits, max_distance, &workload);
        let nanoseconds = JoinCost::of(&plan, &workload).total_ns;
        (Self { asked, plan, kernel }, nanoseconds)
    }

    /// Joins the batch with all fingerprints of some runs, and returns the near rows in no particular order, or `None`
    /// if there are more than `max_near`.
    ///
    /// # Errors
    /// A run is damaged or cannot be read.
    pub async fn near(
        self,
        runs: &[&OpenRun],
        store: &Store,
        memory: &Arc<Memory>,
        max_near: usize,
        counts: &Counts,
    ) -> Result<Option<Vec<Near>>> {
        let Self { asked, plan, kernel } = self;
        let joining = blocking("query", move || {
            let values = asked.iter().map(|(fingerprint, _)| *fingerprint).collect();
            let queries = Queries::try_new(values, plan, kernel)?;
            Ok::<_, LookupError>(Joining { queries, asked, scratch: TogetherScratch::default(), near: Vec::new() })
        });
        let mut joining = joining.await?;
        let pieces = pieces(runs, store, memory, counts).await?;
        let read = |piece: Vec<Stretch>| async move {
            let mut of_piece = Vec::with_capacity(piece.len());
            for stretch in piece {
                of_piece.push(stretch.read(runs, store, counts).await?);
            }
            Ok::<_, LookupError>(of_piece)
        };
        let mut pieces = futures::stream::iter(pieces).map(read).buffered(2);
        while let Some(piece) = pieces.try_next().await? {
            let mapped = blocking("query", move || Ok::<_, LookupError>(joining.map(&piece, max_near)));
            match mapped.await? {
                Some(next) => joining = next,
                None => return Ok(None),
            }
        }
        Ok(Some(joining.near))
    }
}

/// Rows of a run: those of a row group, or some of those that stay in memory.
struct Stretch {
    /// The position of the run.
    night: usize,
    first_row: usize,
    n_rows: usize,
    from: From,
}

enum From {
    Group(usize),
    Memory(Arc<Vec<u64>>),
}

/// Cuts runs into pieces of about equally many fingerprints, which are read and joined one after another.
async fn pieces(runs: &[&OpenRun], store: &Store, memory: &Arc<Memory>, counts: &Counts) -> Result<Vec<Vec<Stretch>>> {
    let mut stretches = Vec::new();
    for (night, run) in runs.iter().enumerate().filter(|(_, run)| run.night.run.n_fingerprints > 0) {
        if let Some(values) = run.values(store, memory, counts).await? {
            stretches.extend((0..values.len()).step_by(PIECE_ROWS).map(|first_row| {
                let n_rows = PIECE_ROWS.min(values.len() - first_row);
                Stretch { night, first_row, n_rows, from: From::Memory(Arc::clone(values)) }
            }));
            continue;
        }
        let parquet = run.fingerprints(store).await?;
        let mut first_row = 0;
        for group in 0..parquet.n_row_groups() {
            #[allow(clippy::cast_possible_truncation, reason = "a run has fewer than 2^32 rows")]
            let n_rows = parquet.row_group_rows(group) as usize;
            stretches.push(Stretch { night, first_row, n_rows, from: From::Group(group) });
            first_row += n_rows;
        }
    }
    let (mut pieces, mut n_rows): (Vec<Vec<Stretch>>, usize) = (Vec::new(), 0);
    for stretch in stretches {
        n_rows += stretch.n_rows;
        match pieces.last_mut().filter(|_| n_rows <= PIECE_ROWS) {
            Some(piece) => piece.push(stretch),
            None => {
                n_rows = stretch.n_rows;
                pieces.push(vec![stretch]);
            }
        }
    }
    Ok(pieces)
}

/// Fingerprints that are joined, in ascending order.
struct Existing {
    night: usize,
    first_row: usize,
    /// The fingerprints, and which of them these are.
    values: (Arc<Vec<u64>>, Range<usize>),
}

impl Stretch {
    async fn read(self, runs: &[&OpenRun], store: &Store, counts: &Counts) -> Result<Existing> {
        let Self { night, first_row, n_rows, from } = self;
        let values = match from {
            From::Group(group) => (Arc::new(runs[night].row_group(store, group, counts).await?), 0..n_rows),
            From::Memory(values) => (values, first_row..first_row + n_rows),
        };
        Ok(Existing { night, first_row, values })
    }
}

impl Existing {
    fn values(&self) -> &[u64] {
        &self.values.0[self.values.1.clone()]
    }
}

/// A join under way.
struct Joining {
    queries: Queries<u64>,
    asked: Vec<(u64, u32)>,
    scratch: TogetherScratch<u64>,
    near: Vec<Near>,
}

impl Joining {
    /// Joins a piece. Returns `None` if there are more than `max_near` near rows in all.
    fn map(mut self, piece: &[Existing], max_near: usize) -> Option<Self> {
        let runs: Vec<&[u64]> = piece.iter().map(Existing::values).collect();
        let pairs = self.queries.map_together(&runs, &mut self.scratch, max_near).ok()?;
        for existing in piece {
            let mut values = existing.values();
            let mut row = existing.first_row;
            // The pairs ascend by the existing fingerprint, as the fingerprints do.
            for of_value in pairs.chunk_by(|a, b| a.existing == b.existing) {
                let value = of_value[0].existing;
                let before = values.partition_point(|&other| other < value);
                let n_equal = values[before..].partition_point(|&other| other == value);
                let rows = row + before..row + before + n_equal;
                (values, row) = (&values[before..], row + before);
                for pair in of_value {
                    let asked = self.queries.values()[pair.query as usize];
                    let first = self.asked.partition_point(|(other, _)| *other < asked);
                    let of_asked = self.asked[first..].iter().take_while(|(other, _)| *other == asked);
                    for &(_, query) in of_asked {
                        if self.near.len() + rows.len() > max_near {
                            return None;
                        }
                        let near = |row| Near {
                            night: existing.night,
                            row: row_number(row),
                            query,
                            distance: u32::from(pair.distance),
                        };
                        self.near.extend(rows.clone().map(near));
                    }
                }
            }
        }
        Some(self)
    }
}
