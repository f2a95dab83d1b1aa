//! The plan of a join: the groups of the batch, the tables, and what each pass may hold.

use nearprint_fault::Result;
use nearprint_join::{ExistingRun, Kernel, Key, LossLimit, QueryRows, Verifier, WordRows, Workload};
use nearprint_tasks::{KeyQueries, QueryBatch, QuerySlices, Workers};

use super::memory::{Budget, group};
use crate::cluster_plan::{most_piece_rows, table_bytes};
use crate::join_plan::{JoinPlan, keys_of};
use crate::operators::reduce::PlanRunner;
use crate::resources::Resources;
use crate::stages::decide::ClusterRule;

/// The most bytes of existing fingerprints that are read before their piece is decoded, and their largest share of the
/// memory limit. Pieces of small distances have few bytes, and a distant bucket takes long to begin an answer.
const READ_AHEAD_BYTES: usize = 64 << 20;
const READ_AHEAD_SHARE: usize = 16;

/// What makes a pair, and what follows from it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Whether the batch is joined with itself too.
    pub(super) itself: bool,
    /// What makes a pair of a document of the batch and an existing one.
    pub(super) verifier: Verifier,
    /// What makes a pair of two documents of the batch, as far as their texts are not read. Words are no keys here.
    pub(super) own_verifier: Verifier,
    /// The rule by which decisions follow from the forest pass. `None` means that there are no decisions.
    pub(super) decides: Option<ClusterRule>,
    /// The largest lost share with which the rule drops a document.
    pub(super) loss: LossLimit,
}

/// What the passes of a join may hold beside its tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassMemory {
    pub(super) pieces_under_way: usize,
    pub(super) read_ahead_bytes: usize,
    /// The bytes for the data that the forest pass gathers.
    pub(super) forest_bytes: usize,
}

/// What a join is planned by.
pub(super) struct Planning {
    pub(super) bits: u32,
    pub(super) rules: Rules,
    pub(super) n_existing: u64,
    /// The runs of the existing files.
    pub(super) runs: Vec<ExistingRun>,
    /// The bytes that the caller holds meanwhile.
    pub(super) held_bytes: usize,
    pub(super) kernel: Kernel,
    /// The processes that map, if an engine has them.
    pub(super) workers: Option<Workers>,
    pub(super) resources: Resources,
}

/// A join before its first task.
pub(super) struct Planned {
    pub(super) batch: QueryBatch,
    pub(super) rows: QueryRows,
    /// The fingerprint of each class, if words are keys.
    pub(super) class_fingerprints: Vec<u64>,
    /// The tables, or the values of which the workers of an engine build them.
    pub(super) queries: QuerySlices,
    /// The rows of a piece, about, for each key.
    pub(super) piece_rows: Vec<u64>,
    pub(super) memory: PassMemory,
    pub(super) runner: PlanRunner,
}

impl Planning {
    /// Groups the batch, plans the join within the memory that is left, and builds the tables.
    pub(super) fn plan(self, batch: QueryBatch) -> Result<Planned> {
        let Self { bits, rules, n_existing, runs, held_bytes, kernel, workers, resources } = self;
        let read_ahead_bytes = READ_AHEAD_BYTES.min(resources.counted_bytes() / READ_AHEAD_SHARE);
        let (batch, rows, values) = group(batch, rules.decides, &resources)?;
        let keys = keys_of(bits, (rules.verifier, rules.own_verifier), rules.itself, !runs.is_empty());
        let has_words = keys.iter().any(|key| matches!(key.of.key, Key::Word(_)));
        let class_fingerprints = if has_words { rows.class_values(&values) } else { Vec::new() };
        let of_keys = match keys.as_slice() {
            [_] => vec![ValuesOfKey { values, words: None }],
            several => several.iter().map(|key| ValuesOfKey::of(key.of.key, &rows, &values)).collect(),
        };
        let keys_bytes = match of_keys.as_slice() {
            // The tables of a single slice have its values.
            [_] => 0,
            several => several.iter().map(ValuesOfKey::memory_bytes).sum::<usize>() + class_fingerprints.len() * 8,
        };
        let held = held_bytes + batch.memory_bytes() + rows.memory_bytes() + keys_bytes + read_ahead_bytes;
        let mut left = Budget::new(&resources, held, batch.len(), rules.decides)?;
        let (memory_bytes, threads) = match workers {
            None => (left.for_tables(), resources.n_threads()),
            Some(workers) => {
                let held = batch.memory_bytes() + rows.memory_bytes() + keys_bytes;
                (table_bytes("worker_memory", workers.memory_bytes, held)?, workers.threads)
            }
        };
        let (mut queries, mut piece_rows, mut pieces_under_way, mut table_bytes) = (Vec::new(), Vec::new(), 2, 0);
        for (key, ValuesOfKey { values, words }) in keys.into_iter().zip(of_keys) {
            let most_rows = workers.map_or(0, |workers| most_piece_rows(n_existing, workers.n as u64));
            let workload = Workload {
                n_queries: values.len(),
                existing: if key.of.existing { runs_of(key.of.key, &runs) } else { Vec::new() },
                piece_rows: most_rows,
                itself: key.of.itself,
                memory_bytes,
                threads,
                pieces_under_way: 0,
            };
            let plan = JoinPlan::choose(key.bits, u32::from(key.max_distance), &workload)?;
            tracing::debug!(
                key = ?key.of.key,
                tables = plan.tables.tables().len(),
                slices = plan.n_slices,
                kernel = kernel.name().name(),
                estimated_ns = plan.cost.ns_per_fingerprint,
                "join planned"
            );
            piece_rows.push(plan.piece_rows as u64);
            pieces_under_way = pieces_under_way.min(plan.pieces_under_way);
            table_bytes = table_bytes.max(plan.counted_bytes);
            queries.push(KeyQueries::new(key.of, values, words, plan.tables, plan.n_slices));
        }
        let queries = if workers.is_some() {
            QuerySlices::unbuilt(queries, kernel)
        } else {
            // The tables of one key are in memory at a time.
            left.take(table_bytes);
            QuerySlices::try_new(queries, kernel)?
        };
        let runner = PlanRunner::new(&resources, left.for_reduce(&resources))?;
        let forest_bytes = left.for_forest(&resources);
        let memory = PassMemory { pieces_under_way, read_ahead_bytes, forest_bytes };
        Ok(Planned { batch, rows, class_fingerprints, queries, piece_rows, memory, runner })
    }
}

/// Returns the runs of existing values as a key has them: words have any value, wherever their fingerprints lie.
fn runs_of(key: Key, runs: &[ExistingRun]) -> Vec<ExistingRun> {
    match key {
        Key::Fingerprint => runs.to_vec(),
        Key::Word(_) => runs.iter().map(|run| ExistingRun { density_rows: run.n_rows, ..*run }).collect(),
    }
}

/// The distinct values of the batch in a key, and the classes behind them, if they are words.
struct ValuesOfKey {
    values: Vec<u64>,
    words: Option<WordRows>,
}

impl ValuesOfKey {
    fn of(key: Key, rows: &QueryRows, fingerprints: &[u64]) -> Self {
        match key {
            Key::Fingerprint => Self { values: fingerprints.to_vec(), words: None },
            Key::Word(word) => {
                let (words, values) = WordRows::group(rows, word);
                Self { values, words: Some(words) }
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.values.len() * 8 + self.words.as_ref().map_or(0, WordRows::memory_bytes)
    }
}
