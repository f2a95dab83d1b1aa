//! Many queries at once: their keys are joined with those of the store, as a night's batch is.

use std::ops::Range;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_join::{
    ExistingRun, JoinCost, Kernel, Key, NearExisting, Queries, RunOrder, TablePlan, TogetherScratch, Workload,
    places_of,
};
use nearprint_storage::{blocking, in_pool, row_number};
use nearprint_store::Store;
use rayon::prelude::*;

use crate::budget::Budget;
use crate::counts::Counts;
use crate::near::Near;
use crate::nights::{Memory, OpenRun};
use crate::query::LookupOptions;

/// The least and the largest number of fingerprints that are joined together.
const PIECE_ROWS: (usize, usize) = (1 << 16, 1 << 22);
/// The bytes of a join for each of the fingerprints that are joined together: two pieces, as they are read, and a
/// permuted copy.
const PIECE_ROW_BYTES: usize = 64;

/// The queries of a batch by one key.
#[derive(Debug)]
pub struct Batch {
    key: Key,
    /// Values of the key and the numbers of their queries, in ascending order.
    asked: Vec<(u64, u32)>,
    plan: TablePlan,
    kernel: Kernel,
    piece_rows: usize,
    max_near: usize,
    /// The number of words that the runs hold in memory, if the key is one.
    n_words: usize,
    nanoseconds: f64,
}

impl Batch {
    /// Plans a join of `asked`, values of a key and the numbers of their queries, with `n_rows` documents, whose fingerprints
    /// have `bits` bits.
    pub fn new(key: Key, mut asked: Vec<(u64, u32)>, bits: u32, n_rows: u64, options: &LookupOptions) -> Self {
        asked.sort_unstable();
        let piece_rows = (options.join_bytes / PIECE_ROW_BYTES).clamp(PIECE_ROWS.0, PIECE_ROWS.1);
        let workload = Workload {
            n_queries: asked.len(),
            existing: vec![ExistingRun { n_rows, density_rows: n_rows }],
            piece_rows,
            itself: false,
            memory_bytes: options.join_bytes,
            threads: options.threads,
            pieces_under_way: 2,
            kernel: options.kernel,
        };
        let (bits, max_distance) = match key {
            Key::Fingerprint => (bits, options.keys.max_distance),
            Key::Word(_) => (u64::BITS, options.keys.max_word_distance),
        };
        let plan = TablePlan::choose(bits, max_distance, &workload);
        let nanoseconds = JoinCost::of(&plan, &workload).total_ns;
        let (kernel, max_near, n_words) = (options.kernel, options.max_near_rows, options.keys.words as usize);
        Self { key, asked, plan, kernel, piece_rows, max_near, n_words, nanoseconds }
    }

    /// Returns the estimated nanoseconds of the join on one core.
    pub fn nanoseconds(&self) -> f64 {
        self.nanoseconds
    }

    /// Joins the batch with all rows of some runs, and returns the near ones in no particular order, or `None` if there are more
    /// than the options allow.
    ///
    /// # Errors
    /// A run is damaged or cannot be read.
    pub async fn near(
        self,
        runs: &[&OpenRun],
        store: &Store,
        memory: (&Arc<Memory>, &Budget),
        counts: &Counts,
    ) -> Result<Option<Vec<Near>>> {
        let Self { key, asked, plan, kernel, piece_rows, max_near, n_words, .. } = self;
        if asked.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let key = BatchKey { key, n_words };
        let joining = blocking("query", move || {
            let values = asked.iter().map(|(value, _)| *value).collect();
            let queries = Queries::try_new(values, plan, kernel)?;
            Ok::<_, Fault>(Joining { key, queries, asked, scratch: TogetherScratch::default(), near: Vec::new() })
        });
        let mut joining = joining.await?;
        let pieces = pieces(key, runs, piece_rows, store, memory, counts).await?;
        let read = |piece: Vec<RunStretch>| async move {
            let mut of_piece = Vec::with_capacity(piece.len());
            for stretch in piece {
                of_piece.push(stretch.read(key, runs, store, counts).await?);
            }
            Ok::<_, Fault>(of_piece)
        };
        let mut pieces = futures::stream::iter(pieces).map(read).buffered(2);
        while let Some(piece) = pieces.try_next().await? {
            let mapped = blocking("query", move || Ok::<_, Fault>(in_pool(|| joining.map(&piece, max_near))));
            match mapped.await? {
                Some(next) => joining = next,
                None => return Ok(None),
            }
        }
        Ok(Some(joining.near))
    }
}

/// A key of a batch.
#[derive(Debug, Clone, Copy)]
struct BatchKey {
    key: Key,
    n_words: usize,
}

impl BatchKey {
    /// Returns the values of a run that stay in memory, in the order of its rows.
    async fn values(
        self,
        run: &OpenRun,
        store: &Store,
        memory: (&Arc<Memory>, &Budget),
        counts: &Counts,
    ) -> Result<Option<Arc<Vec<u64>>>> {
        let Key::Word(word) = self.key else { return run.values(store, memory, counts).await };
        let words = run.words(store, memory, self.n_words, counts).await?;
        Ok(words.and_then(|words| words.get(usize::from(word)).map(Arc::clone)))
    }

    /// Reads the values of a row group.
    async fn of_group(self, run: &OpenRun, store: &Store, group: usize, counts: &Counts) -> Result<Vec<u64>> {
        let Key::Word(word) = self.key else { return run.row_group(store, group, counts).await };
        run.word_of_group(store, group, word, counts).await
    }
}

/// Rows of a run: those of a row group, or some of those that stay in memory.
struct RunStretch {
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
async fn pieces(
    key: BatchKey,
    runs: &[&OpenRun],
    piece_rows: usize,
    store: &Store,
    memory: (&Arc<Memory>, &Budget),
    counts: &Counts,
) -> Result<Vec<Vec<RunStretch>>> {
    let mut stretches = Vec::new();
    for (night, run) in runs.iter().enumerate().filter(|(_, run)| run.night.run.n_fingerprints > 0) {
        if let Some(values) = key.values(run, store, memory, counts).await? {
            stretches.extend((0..values.len()).step_by(piece_rows).map(|first_row| {
                let n_rows = piece_rows.min(values.len() - first_row);
                RunStretch { night, first_row, n_rows, from: From::Memory(Arc::clone(&values)) }
            }));
            continue;
        }
        let parquet = run.fingerprints(store).await?;
        let mut first_row = 0;
        for group in 0..parquet.n_row_groups() {
            #[allow(clippy::cast_possible_truncation, reason = "a run has fewer than 2^32 rows")]
            let n_rows = parquet.row_group_rows(group) as usize;
            stretches.push(RunStretch { night, first_row, n_rows, from: From::Group(group) });
            first_row += n_rows;
        }
    }
    let (mut pieces, mut n_rows): (Vec<Vec<RunStretch>>, usize) = (Vec::new(), 0);
    for stretch in stretches {
        n_rows += stretch.n_rows;
        match pieces.last_mut().filter(|_| n_rows <= piece_rows) {
            Some(piece) => piece.push(stretch),
            None => {
                n_rows = stretch.n_rows;
                pieces.push(vec![stretch]);
            }
        }
    }
    Ok(pieces)
}

/// Values of a key that are joined, in the order of their rows. Fingerprints ascend.
struct Existing {
    night: usize,
    first_row: usize,
    /// The values, and which of them these are.
    values: (Arc<Vec<u64>>, Range<usize>),
}

impl RunStretch {
    async fn read(self, key: BatchKey, runs: &[&OpenRun], store: &Store, counts: &Counts) -> Result<Existing> {
        let Self { night, first_row, n_rows, from } = self;
        let values = match from {
            From::Group(group) => (Arc::new(key.of_group(runs[night], store, group, counts).await?), 0..n_rows),
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
    key: BatchKey,
    queries: Queries<u64>,
    asked: Vec<(u64, u32)>,
    scratch: TogetherScratch<u64>,
    near: Vec<Near>,
}

impl Joining {
    /// Joins a piece. Returns `None` if there are more than `max_near` near rows in all.
    fn map(mut self, piece: &[Existing], max_near: usize) -> Option<Self> {
        let runs: Vec<&[u64]> = piece.iter().map(Existing::values).collect();
        let is_word = self.key.key.word().is_some();
        let order = if is_word { RunOrder::Any } else { RunOrder::Ascending };
        let pairs = self.queries.map_together_counted((&runs, order), &mut self.scratch, max_near, &|_| ()).ok()?;
        let find = if is_word { rows_in_any_order } else { rows_of };
        let of_runs: Vec<Vec<(Range<usize>, &NearExisting<u64>)>> =
            piece.par_iter().map(|existing| find(&pairs, existing.values())).collect();
        for (existing, of_run) in piece.iter().zip(of_runs) {
            for (rows, pair) in of_run {
                let asked = self.queries.values()[pair.query as usize];
                let first = self.asked.partition_point(|(other, _)| *other < asked);
                debug_assert!(
                    self.asked.get(first).is_some_and(|(other, _)| *other == asked),
                    "a pair is of a value that was asked for"
                );
                for &(_, query) in self.asked[first..].iter().take_while(|(other, _)| *other == asked) {
                    if self.near.len() + rows.len() > max_near {
                        return None;
                    }
                    let (night, distance) = (existing.night, (!is_word).then_some(u32::from(pair.distance)));
                    let row = |row| row_number(existing.first_row + row);
                    self.near.extend(rows.clone().map(|at| Near { night, row: row(at), query, distance }));
                }
            }
        }
        Some(self)
    }
}

/// Returns the positions of the existing value of each pair, for the pairs that have one of the `values`. Both ascend; whichever
/// are more are searched.
fn rows_of<'a>(pairs: &'a [NearExisting<u64>], values: &[u64]) -> Vec<(Range<usize>, &'a NearExisting<u64>)> {
    debug_assert!(pairs.is_sorted_by_key(|pair| pair.existing), "pairs ascend, as the values do");
    let mut found = Vec::new();
    if pairs.len() <= values.len() {
        let mut from = 0;
        for pairs in pairs.chunk_by(|a, b| a.existing == b.existing) {
            from += values[from..].partition_point(|&value| value < pairs[0].existing);
            let n = values[from..].partition_point(|&value| value == pairs[0].existing);
            found.extend(pairs.iter().filter(|_| n > 0).map(|pair| (from..from + n, pair)));
        }
        return found;
    }
    let (mut from, mut first) = (0, 0);
    for equal in values.chunk_by(|a, b| a == b) {
        from += pairs[from..].partition_point(|pair| pair.existing < equal[0]);
        let of_value = pairs[from..].iter().take_while(|pair| pair.existing == equal[0]);
        found.extend(of_value.map(|pair| (first..first + equal.len(), pair)));
        first += equal.len();
    }
    found
}

/// Does the same as [`rows_of`] for values in any order, with a range for each position.
fn rows_in_any_order<'a>(pairs: &'a [NearExisting<u64>], values: &[u64]) -> Vec<(Range<usize>, &'a NearExisting<u64>)> {
    let mut wanted: Vec<u64> = pairs.iter().map(|pair| pair.existing).collect();
    wanted.dedup();
    let mut found = Vec::new();
    for (value, place) in places_of(values, &wanted) {
        let first = pairs.partition_point(|pair| pair.existing < value);
        let of_value = pairs[first..].iter().take_while(|pair| pair.existing == value);
        found.extend(of_value.map(|pair| (place as usize..place as usize + 1, pair)));
    }
    found
}
