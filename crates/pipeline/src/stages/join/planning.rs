//! The plan of a join: the groups of the batch, the tables, and what each pass may hold.

use std::convert::Infallible;
use std::ops::Range;

use nearprint_fault::Result;
use nearprint_join::{ExistingRun, Kernel, Key, LossLimit, QueryRows, Verifier, WordRows, Workload};
use nearprint_storage::in_pool;
use nearprint_tasks::{KeyQueries, QueryBatch, QuerySlices, Room, Workers};

use super::memory::{Budget, group};
use crate::cluster_plan::{
    HeldByWorker, PartPlan, PartSizes, choose_parts, further_part_ns, most_piece_rows, work_of_part,
};
use crate::join_plan::{JoinPlan, PlannedKey, READ_SKETCH_NS, as_f64, keys_of};
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
    /// The bytes of the sets of existing rows, which a worker of an engine holds too.
    pub(super) row_sets_bytes: usize,
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
    /// The tables, or the plans by which the workers of an engine build them.
    pub(super) queries: QuerySlices,
    /// The values of each part of the batch that the workers of an engine hold. `None` if the batch is joined here, whole.
    pub(super) parts: Option<Vec<Range<u32>>>,
    /// The rows of a piece, about, for each key.
    pub(super) piece_rows: Vec<u64>,
    /// The words are mapped at once.
    pub(super) words_at_once: bool,
    pub(super) memory: PassMemory,
    pub(super) runner: PlanRunner,
}

/// The plans of a join as its tasks need them. The fields are those of [`Planned`].
struct PlannedJoin {
    queries: QuerySlices,
    parts: Option<Vec<Range<u32>>>,
    piece_rows: Vec<u64>,
    words_at_once: bool,
    pieces_under_way: usize,
    /// The most bytes of tables and pieces that are held here at a time.
    table_bytes: usize,
}

impl Planning {
    /// Groups the batch, and plans the join within the memory that is left, here or in each worker. Tables are built here only.
    pub(super) fn plan(self, batch: QueryBatch) -> Result<Planned> {
        let read_ahead_bytes = READ_AHEAD_BYTES.min(self.resources.counted_bytes() / READ_AHEAD_SHARE);
        let Self { rules, runs, .. } = &self;
        let (batch, rows, values) = group(batch, rules.decides, &self.resources)?;
        let keys = keys_of(rules.bits, (rules.verifier, rules.own_verifier), rules.itself, !runs.is_empty());
        let has_words = keys.iter().any(|key| matches!(key.of.key, Key::Word(_)));
        let class_fingerprints =
            if has_words && self.workers.is_none() { rows.class_values(&values) } else { Vec::new() };
        let held_bytes = self.held_bytes + batch.memory_bytes() + rows.memory_bytes() + read_ahead_bytes;
        let budget = |more: usize| Budget::new(&self.resources, held_bytes + more, batch.len(), rules.decides);
        let (join, mut left) = match self.workers {
            None => {
                let of_keys = match keys.as_slice() {
                    [_] => vec![ValuesOfKey { values, words: None }],
                    several => {
                        in_pool(|| several.iter().map(|key| ValuesOfKey::of(key.of.key, &rows, &values)).collect())
                    }
                };
                let keys_bytes = match of_keys.as_slice() {
                    // The tables of a single slice have its values.
                    [_] => 0,
                    several => several.iter().map(ValuesOfKey::bytes).sum::<usize>() + class_fingerprints.len() * 8,
                };
                let reading_bytes = if has_words { Room::reading_bytes(self.resources.n_threads()) } else { 0 };
                let left = budget(keys_bytes + reading_bytes)?;
                (self.here(keys, of_keys, left.for_tables())?, left)
            }
            Some(workers) => {
                let left = budget(0)?;
                (self.elsewhere(workers, keys, &batch, &rows)?, left)
            }
        };
        left.take(join.table_bytes);
        let runner = PlanRunner::new(&self.resources, left.for_reduce(&self.resources))?;
        let forest_bytes = left.for_forest(&self.resources);
        let PlannedJoin { queries, parts, piece_rows, words_at_once, pieces_under_way, .. } = join;
        let memory = PassMemory { pieces_under_way, read_ahead_bytes, forest_bytes };
        Ok(Planned { batch, rows, class_fingerprints, queries, parts, piece_rows, words_at_once, memory, runner })
    }

    /// Plans the join of a batch that is whole, and builds the tables if there is one slice of one key.
    fn here(&self, keys: Vec<PlannedKey>, of_keys: Vec<ValuesOfKey>, memory_bytes: usize) -> Result<PlannedJoin> {
        let work = |key: &PlannedKey, values: &ValuesOfKey| Workload {
            memory_bytes,
            ..self.workload(key, values.values.len(), 0, self.resources.n_threads())
        };
        let works = keys.iter().zip(&of_keys).map(|(key, values)| (key, work(key, values)));
        let plans = KeyPlans::choose(&works.collect::<Vec<_>>())?;
        plans.log(&keys, 1, self.kernel);
        let with_values = keys.into_iter().zip(of_keys).zip(&plans.plans).map(|((key, of_key), plan)| {
            KeyQueries::new(key.of, of_key.values, of_key.words, plan.tables.clone(), plan.n_slices)
        });
        let queries = QuerySlices::try_new(with_values.collect(), self.kernel)?;
        Ok(plans.planned(queries, None))
    }

    /// Plans the join of a batch of which each worker holds a part at a time.
    fn elsewhere(
        &self,
        workers: Workers,
        keys: Vec<PlannedKey>,
        batch: &QueryBatch,
        rows: &QueryRows,
    ) -> Result<PlannedJoin> {
        let n_word_keys = keys.iter().filter(|key| matches!(key.of.key, Key::Word(_))).count();
        let held = HeldByWorker {
            n_batch_rows: batch.len(),
            has_sketches: batch.sketches.n_values() > 0,
            has_features: batch.n_features.n_values() > 0,
            n_fingerprint_keys: keys.len() - n_word_keys,
            n_word_keys,
            itself: self.rules.itself,
            row_sets_bytes: self.row_sets_bytes,
        };
        let reading_bytes = if n_word_keys > 0 { Room::reading_bytes(workers.threads) } else { 0 };
        let sizes = |n_parts: usize| {
            let parts = rows.cut(n_parts);
            // The sizes of the largest part, and of the largest two together.
            let largest = |of: &dyn Fn(Range<u32>) -> usize| {
                let mut sizes: Vec<usize> = parts.iter().cloned().map(of).collect();
                sizes.sort_unstable_by(|a, b| b.cmp(a));
                (sizes.first().copied().unwrap_or(0), sizes.iter().take(2).sum())
            };
            let (n_rows, rows_of_two) = largest(&|values| rows.rows_of(values).len());
            let (n_values, values_of_two) = largest(&|values| values.len());
            let (n_classes, _) = largest(&|values| rows.classes_of_values(values).len());
            let of_two = (rows_of_two, values_of_two);
            PartSizes { n_asked: n_parts, n_parts: parts.len().max(1), n_rows, n_values, n_classes, of_two }
        };
        let piece_rows = most_piece_rows(self.n_existing, workers.n.max(1) as u64);
        let work = |key: &PlannedKey, part: &PartSizes, memory_bytes: usize| {
            let work = self.workload(key, part.n_queries(key.of.key), piece_rows, workers.threads);
            work_of_part(Workload { memory_bytes, ..work }, rows.n_values(), part.n_parts)
        };
        let plan = |part: &PartSizes, memory_bytes: usize| {
            let works: Vec<_> = keys.iter().map(|key| (key, work(key, part, memory_bytes))).collect();
            let plan = KeyPlans::in_one_slice(&works);
            let ns = plan.plans.iter().map(|plan| plan.cost.total_ns).sum();
            let is_scan = plan.plans.iter().any(|plan| plan.tables.is_scan());
            PartPlan { ns, table_bytes: plan.table_bytes, is_scan, plan }
        };
        let n_existing_keys = keys.iter().filter(|key| key.of.existing).count();
        let n_loaded = if self.rules.itself { batch.len() } else { 0 };
        let further_ns = further_part_ns(self.n_existing, n_loaded, workers.threads, (n_existing_keys, n_word_keys));
        let n_cores = (workers.n as u64).saturating_mul(workers.threads as u64);
        let of_memory = ("worker_memory", workers.memory_bytes, n_cores);
        let held = |part: &PartSizes| held.bytes(part) + reading_bytes;
        let (part, plans) = choose_parts(of_memory, sizes, held, plan, further_ns)?;
        plans.log(&keys, part.n_parts, self.kernel);
        let counted = keys
            .into_iter()
            .zip(&plans.plans)
            .map(|(key, plan)| KeyQueries::counted(key.of, part.n_queries(key.of.key), plan.tables.clone(), 1));
        let queries = QuerySlices::unbuilt(counted.collect(), self.kernel);
        // The tables are in the memory of the workers.
        Ok(PlannedJoin { table_bytes: 0, ..plans.planned(queries, Some(rows.cut(part.n_asked))) })
    }

    fn workload(&self, key: &PlannedKey, n_queries: usize, piece_rows: usize, threads: usize) -> Workload {
        Workload {
            n_queries,
            existing: if key.of.existing { runs_of(key.of.key, &self.runs) } else { Vec::new() },
            piece_rows,
            itself: key.of.itself,
            memory_bytes: 0,
            threads,
            pieces_under_way: 0,
            kernel: self.kernel,
        }
    }
}

/// The plans of all keys of a join.
struct KeyPlans {
    plans: Vec<JoinPlan>,
    /// The tables of all words are in memory together, and sketches are read once.
    words_at_once: bool,
    /// The most bytes of tables and pieces that are held at a time.
    table_bytes: usize,
}

impl KeyPlans {
    fn log(&self, keys: &[PlannedKey], n_parts: usize, kernel: Kernel) {
        for (key, plan) in keys.iter().zip(&self.plans) {
            tracing::debug!(
                key = ?key.of.key,
                tables = plan.tables.tables().len(),
                parts = n_parts,
                slices = plan.n_slices,
                kernel = kernel.name().name(),
                estimated_ns = plan.cost.ns_per_fingerprint,
                "join planned"
            );
        }
    }

    fn planned(&self, queries: QuerySlices, parts: Option<Vec<Range<u32>>>) -> PlannedJoin {
        PlannedJoin {
            queries,
            parts,
            piece_rows: self.plans.iter().map(|plan| plan.piece_rows as u64).collect(),
            words_at_once: self.words_at_once,
            pieces_under_way: self.plans.iter().map(|plan| plan.pieces_under_way).min().unwrap_or(1),
            table_bytes: self.table_bytes,
        }
    }

    /// Plans each key with all memory, because the keys are joined one after another. The words are joined at once if that is
    /// cheaper than to read sketches for each, although each then has an equal share of the memory.
    fn choose(works: &[(&PlannedKey, Workload)]) -> Result<Self> {
        Self::of(works, |key, work| JoinPlan::choose(key.bits, u32::from(key.max_distance), work))
    }

    /// As [`choose`](Self::choose), but no key has slices.
    fn in_one_slice(works: &[(&PlannedKey, Workload)]) -> Self {
        let plan = |key: &PlannedKey, work: &Workload| JoinPlan::in_one_slice(key.bits, key.max_distance.into(), work);
        let of_all = Self::of(works, |key, work| Ok::<_, Infallible>(plan(key, work)));
        of_all.unwrap_or_else(|never| match never {})
    }

    fn of<E>(
        works: &[(&PlannedKey, Workload)],
        plan: impl Fn(&PlannedKey, &Workload) -> std::result::Result<JoinPlan, E>,
    ) -> std::result::Result<Self, E> {
        let mut plans = works.iter().map(|(key, work)| plan(key, work)).collect::<std::result::Result<Vec<_>, _>>()?;
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
    fn shares<E>(
        words: &[(&PlannedKey, Workload)],
        alone: &[JoinPlan],
        plan: impl Fn(&PlannedKey, &Workload) -> std::result::Result<JoinPlan, E>,
    ) -> Option<Vec<JoinPlan>> {
        let of_share = |(key, work): &(&PlannedKey, Workload)| {
            plan(key, &Workload { memory_bytes: work.memory_bytes / words.len(), ..work.clone() })
        };
        let shares = words.iter().map(of_share).collect::<std::result::Result<Vec<_>, _>>().ok()?;
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

    fn bytes(&self) -> usize {
        self.values.len() * 8 + self.words.as_ref().map_or(0, WordRows::memory_bytes)
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
