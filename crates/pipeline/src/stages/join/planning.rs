//! The plan of a join: the groups of the batch, the tables, and what each pass may hold.

use nearprint_fault::Result;
use nearprint_join::{ExistingRun, Kernel, Key, LossLimit, QueryRows, Verifier, WordRows, Workload};
use nearprint_storage::in_pool;
use nearprint_tasks::{KeyQueries, QueryBatch, QuerySlices, Room, Workers};

use super::memory::{Budget, group};
use crate::cluster_plan::{most_piece_rows, table_bytes};
use crate::join_plan::{JoinPlan, PlannedKey, as_f64, keys_of};
use crate::operators::reduce::PlanRunner;
use crate::resources::Resources;
use crate::stages::decide::ClusterRule;

/// The most bytes of existing fingerprints that are read before their piece is decoded, and their largest share of the
/// memory limit. Pieces of small distances have few bytes, and a distant bucket takes long to begin an answer.
const READ_AHEAD_BYTES: usize = 64 << 20;
const READ_AHEAD_SHARE: usize = 16;

/// What makes a pair, and what follows from it.
#[derive(Debug, Clone, Copy)]
pub struct PairRules {
    /// Whether the batch is joined with itself too.
    pub itself: bool,
    /// The bits of a fingerprint.
    pub bits: u32,
    /// What makes a pair of a document of the batch and an existing one.
    pub verifier: Verifier,
    /// What makes a pair of two documents of the batch, as far as the judge does not read their texts. Words of sketches find
    /// existing documents alone.
    pub own_verifier: Verifier,
    /// The rule by which decisions follow from the forest pass. `None` means that only pairs are asked for.
    pub decides: Option<ClusterRule>,
    /// The largest lost share with which the rule drops a document.
    pub loss: LossLimit,
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
    pub(super) rules: PairRules,
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
    /// The words are mapped at once.
    pub(super) words_at_once: bool,
    pub(super) memory: PassMemory,
    pub(super) runner: PlanRunner,
}

impl Planning {
    /// Groups the batch, plans the join within the memory that is left, and builds the tables.
    pub(super) fn plan(self, batch: QueryBatch) -> Result<Planned> {
        let Self { rules, n_existing, runs, held_bytes, kernel, workers, resources } = self;
        let read_ahead_bytes = READ_AHEAD_BYTES.min(resources.counted_bytes() / READ_AHEAD_SHARE);
        let (batch, rows, values) = group(batch, rules.decides, &resources)?;
        let keys = keys_of(rules.bits, (rules.verifier, rules.own_verifier), rules.itself, !runs.is_empty());
        let has_words = keys.iter().any(|key| matches!(key.of.key, Key::Word(_)));
        let class_fingerprints = match workers {
            None if has_words => rows.class_values(&values),
            _ => Vec::new(),
        };
        let n_class_fingerprints = if has_words { rows.n_classes() } else { 0 };
        let of_keys: Vec<ValuesOfKey> = match (keys.as_slice(), workers) {
            ([_], None) => vec![ValuesOfKey::new(values, None)],
            (several, None) => {
                in_pool(|| several.iter().map(|key| ValuesOfKey::of(key.of.key, &rows, &values)).collect())
            }
            // One after another, so that the words of one key alone are in memory.
            (keys, Some(_)) => {
                in_pool(|| keys.iter().map(|key| ValuesOfKey::counted(key.of.key, &rows, values.len())).collect())
            }
        };
        let keys_bytes = match of_keys.as_slice() {
            // The tables of a single slice have its values.
            [_] => 0,
            several => several.iter().map(|key| key.bytes).sum::<usize>() + n_class_fingerprints * 8,
        };
        let reading_bytes = |threads| if has_words { Room::reading_bytes(threads) } else { 0 };
        // What those hold who build the tables.
        let of_join = |threads| batch.memory_bytes() + rows.memory_bytes() + keys_bytes + reading_bytes(threads);
        let held = match workers {
            None => of_join(resources.n_threads()),
            Some(_) => batch.memory_bytes() + rows.memory_bytes(),
        };
        let mut left = Budget::new(&resources, held_bytes + held + read_ahead_bytes, batch.len(), rules.decides)?;
        let (memory_bytes, threads) = match workers {
            None => (left.for_tables(), resources.n_threads()),
            Some(Workers { memory_bytes, threads, .. }) => {
                (table_bytes("worker_memory", memory_bytes, of_join(threads))?, threads)
            }
        };
        let most_rows = workers.map_or(0, |workers| most_piece_rows(n_existing, workers.n as u64));
        let workload = |key: &PlannedKey, values: &ValuesOfKey| Workload {
            n_queries: values.n_values,
            existing: if key.of.existing { runs_of(key.of.key, &runs) } else { Vec::new() },
            piece_rows: most_rows,
            itself: key.of.itself,
            memory_bytes,
            threads,
            pieces_under_way: 0,
            kernel,
        };
        let works = keys.iter().zip(&of_keys).map(|(key, values)| (key, workload(key, values)));
        let KeyPlans { plans, words_at_once, table_bytes } = KeyPlans::choose(&works.collect::<Vec<_>>())?;
        let piece_rows = plans.iter().map(|plan| plan.piece_rows as u64).collect();
        let pieces_under_way = plans.iter().map(|plan| plan.pieces_under_way).min().unwrap_or(1);
        let mut queries = Vec::with_capacity(keys.len());
        for ((key, of_key), plan) in keys.into_iter().zip(of_keys).zip(plans) {
            tracing::debug!(
                key = ?key.of.key,
                tables = plan.tables.tables().len(),
                slices = plan.n_slices,
                kernel = kernel.name().name(),
                estimated_ns = plan.cost.ns_per_fingerprint,
                "join planned"
            );
            queries.push(match of_key.held {
                Some((values, words)) => KeyQueries::new(key.of, values, words, plan.tables, plan.n_slices),
                None => KeyQueries::counted(key.of, of_key.n_values, plan.tables, plan.n_slices),
            });
        }
        let queries = if workers.is_some() {
            QuerySlices::unbuilt(queries, kernel)
        } else {
            left.take(table_bytes);
            QuerySlices::try_new(queries, kernel)?
        };
        let runner = PlanRunner::new(&resources, left.for_reduce(&resources))?;
        let forest_bytes = left.for_forest(&resources);
        let memory = PassMemory { pieces_under_way, read_ahead_bytes, forest_bytes };
        Ok(Planned { batch, rows, class_fingerprints, queries, piece_rows, words_at_once, memory, runner })
    }
}

/// The nanoseconds that it takes to read the sketch of an existing document, about: it has 33 bytes, and a disk or bucket gives
/// 430 MB a second to all threads.
const READ_SKETCH_NS: f64 = 77.0;

/// The plans of all keys of a join.
struct KeyPlans {
    plans: Vec<JoinPlan>,
    /// The tables of all words are in memory together, and sketches are read once.
    words_at_once: bool,
    /// The most bytes of tables and pieces that are held at a time.
    table_bytes: usize,
}

impl KeyPlans {
    /// Plans each key with all memory, because the keys are joined one after another. The words are joined at once if that is
    /// cheaper than to read sketches for each, although each then has an equal share of the memory.
    fn choose(works: &[(&PlannedKey, Workload)]) -> Result<Self> {
        let plan = |key: &PlannedKey, work: &Workload| JoinPlan::choose(key.bits, u32::from(key.max_distance), work);
        let mut plans = works.iter().map(|(key, work)| plan(key, work)).collect::<Result<Vec<_>>>()?;
        let n_others = works.iter().take_while(|(key, _)| key.of.key == Key::Fingerprint).count();
        let words = &works[n_others..];
        debug_assert!(words.iter().all(|(key, _)| key.of.key != Key::Fingerprint), "words are the last keys");
        let bytes = |plans: &[JoinPlan]| plans.iter().map(|plan| plan.counted_bytes).max().unwrap_or(0);
        if words.len() > 1
            && let Some(shares) = Self::shares(words, &plans[n_others..], plan)
        {
            plans.truncate(n_others);
            let of_words = shares.iter().map(|plan| plan.counted_bytes).sum();
            let table_bytes = bytes(&plans).max(of_words);
            plans.extend(shares);
            return Ok(Self { plans, words_at_once: true, table_bytes });
        }
        let table_bytes = bytes(&plans);
        Ok(Self { plans, words_at_once: false, table_bytes })
    }

    /// Returns the plans of the words for an equal share of the memory each. `None` if `alone`, those for all memory, are better.
    fn shares(
        words: &[(&PlannedKey, Workload)],
        alone: &[JoinPlan],
        plan: impl Fn(&PlannedKey, &Workload) -> Result<JoinPlan>,
    ) -> Option<Vec<JoinPlan>> {
        let of_share = |(key, work): &(&PlannedKey, Workload)| {
            plan(key, &Workload { memory_bytes: work.memory_bytes / words.len(), ..work.clone() })
        };
        let shares = words.iter().map(of_share).collect::<Result<Vec<_>>>().ok()?;
        let total_ns = |plans: &[JoinPlan]| plans.iter().map(|plan| plan.cost.total_ns).sum::<f64>();
        let (_, work) = words.first()?;
        // Each slice of a word alone reads the sketches.
        let n_readings: usize = alone.iter().map(|plan| plan.n_slices).sum();
        let saved_ns = as_f64(n_readings.saturating_sub(1) as u64 * work.n_existing())
            * as_f64(work.threads as u64)
            * READ_SKETCH_NS;
        let cheaper = total_ns(&shares) <= total_ns(alone) + saved_ns;
        let fits = shares.iter().map(|plan| plan.counted_bytes).sum::<usize>() <= work.memory_bytes;
        (cheaper && fits && shares.iter().all(|plan| plan.n_slices == 1)).then_some(shares)
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
    /// `None` if the workers of an engine make them again, and only their number is asked for here.
    held: Option<(Vec<u64>, Option<WordRows>)>,
    n_values: usize,
    /// The bytes of what is held, here or by each worker.
    bytes: usize,
}

impl ValuesOfKey {
    fn new(values: Vec<u64>, words: Option<WordRows>) -> Self {
        let (n_values, of_words) = (values.len(), words.as_ref().map_or(0, WordRows::memory_bytes));
        Self { held: Some((values, words)), n_values, bytes: n_values * 8 + of_words }
    }

    fn of(key: Key, rows: &QueryRows, fingerprints: &[u64]) -> Self {
        match key {
            Key::Fingerprint => Self::new(fingerprints.to_vec(), None),
            Key::Word(word) => {
                let (words, values) = WordRows::group(rows, word);
                Self::new(values, Some(words))
            }
        }
    }

    fn counted(key: Key, rows: &QueryRows, n_fingerprints: usize) -> Self {
        match key {
            Key::Fingerprint => Self { held: None, n_values: n_fingerprints, bytes: n_fingerprints * 8 },
            Key::Word(_) => Self { held: None, ..Self::of(key, rows, &[]) },
        }
    }
}

#[cfg(test)]
mod tests {
    use nearprint_fault::Result;
    use nearprint_join::{ExistingRun, Kernel, Key, Workload};
    use nearprint_tasks::KeyJoin;

    use super::KeyPlans;
    use crate::join_plan::PlannedKey;

    fn plans(n_queries: usize, n_rows: u64, memory_bytes: usize) -> Result<KeyPlans> {
        let key = |key| PlannedKey { of: KeyJoin { key, existing: true, itself: false }, bits: 64, max_distance: 8 };
        let work = Workload {
            n_queries,
            existing: vec![ExistingRun { n_rows, density_rows: n_rows }],
            piece_rows: 0,
            itself: false,
            memory_bytes,
            threads: 2,
            pieces_under_way: 0,
            kernel: Kernel::SCALAR,
        };
        let keys = [Key::Fingerprint, Key::Word(0), Key::Word(1)].map(key);
        KeyPlans::choose(&keys.iter().map(|key| (key, work.clone())).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_mapped_at_once_if_the_memory_has_room_for_the_tables_of_all() -> Result<()> {
        let (mut at_once, mut apart) = (0, 0);
        let sizes = [(1 << 20, 1 << 26), (1000, 10_000_000), (1 << 22, 1 << 22)];
        let cases = sizes.iter().flat_map(|&(n, rows)| (20..34).map(move |log| (n, rows, 1usize << log)));
        for (n_queries, n_rows, memory_bytes) in cases {
            let Ok(KeyPlans { plans, words_at_once, table_bytes }) = plans(n_queries, n_rows, memory_bytes) else {
                continue;
            };
            let bytes: Vec<usize> = plans.iter().map(|plan| plan.counted_bytes).collect();
            if words_at_once {
                at_once += 1;
                assert!(plans[1..].iter().all(|plan| plan.n_slices == 1), "{memory_bytes}");
                assert_eq!(table_bytes, bytes[0].max(bytes[1] + bytes[2]), "{memory_bytes}");
                assert!(bytes[1] + bytes[2] <= memory_bytes, "{memory_bytes}: {bytes:?}");
            } else {
                apart += 1;
                assert_eq!(Some(&table_bytes), bytes.iter().max(), "{memory_bytes}");
            }
        }
        assert!(at_once > 0 && apart > 0, "{at_once}, {apart}");
        assert!(plans(1 << 20, 1 << 26, usize::MAX)?.words_at_once);
        Ok(())
    }
}
