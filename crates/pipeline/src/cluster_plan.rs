//! The plan of a join whose map tasks run on the workers of a cluster: tables, parts and tasks for the memory of a worker. A
//! worker holds one part of the query batch at a time, with its tables, or two parts while it joins them with each other.

use nearprint_fault::{Fault, Result, counted};
use nearprint_join::{ExistingRun, Key, Workload};
use nearprint_storage::in_memory;
use nearprint_tasks::StoredIds;
use schemars::JsonSchema;
use serde::Serialize;

use crate::join_plan::{
    JoinPlan, PlanRequest, PlannedTable, QUERY_NS, READ_AGAIN_NS, READ_SKETCH_NS, TOO_SLOW, as_f64, strategy,
};
use crate::resources::{PROCESS_BYTES, Resources};

/// The rows of a row group. A task has at least one.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// The tasks that each worker gets at least, if there are as many row groups. So a slow worker delays the others by less
/// than a third.
const TASKS_OF_WORKER: u64 = 3;
/// The share of a worker's memory that is left to its program, its allocator and the documents of pairs, as a divisor.
const LEFT_SHARE: usize = 4;
/// The nanoseconds that a join may take in any case. A longer one may be slower than with all memory by a factor, [`TOO_SLOW`].
const LONG_NS: f64 = 3600e9;
/// The numbers of parts of the batch that are considered.
const PARTS: [usize; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024];
/// The factor by which a join may be slower than with all memory before the batch is cut into parts.
const WORTH_PARTS: f64 = 1.25;
/// The factor by which a larger number of parts must be cheaper than a smaller one.
const WORTH_MORE: f64 = 0.9;
/// The number of numbers of parts, one after another and with tables, that are no better before no more are considered.
const MOST_NO_BETTER: u32 = 3;

/// The sizes of the largest of some parts of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartSizes {
    /// The number of parts into which the batch was to be cut. There are fewer if a part would have no document.
    pub(crate) n_asked: usize,
    pub(crate) n_parts: usize,
    pub(crate) n_rows: usize,
    /// The distinct fingerprints.
    pub(crate) n_values: usize,
    pub(crate) n_classes: usize,
    /// The rows, and the distinct fingerprints, of the largest two parts together.
    pub(crate) of_two: (usize, usize),
}

/// What a worker holds of each document of a part of the batch, and of the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldByWorker {
    /// The rows of the batch.
    pub(crate) n_batch_rows: usize,
    pub(crate) has_sketches: bool,
    pub(crate) has_features: bool,
    /// The keys that are fingerprints, and those that are words.
    pub(crate) n_fingerprint_keys: usize,
    pub(crate) n_word_keys: usize,
    /// The batch is joined with itself, so two parts are held at a time.
    pub(crate) itself: bool,
    /// The bytes of the sets of existing rows that later nights have again or restore.
    pub(crate) row_sets_bytes: usize,
}

impl PartSizes {
    /// Returns the distinct values of a key, at the most.
    pub(crate) fn n_queries(&self, key: Key) -> usize {
        match key {
            Key::Fingerprint => self.n_values,
            Key::Word(_) => self.n_classes,
        }
    }
}

impl HeldByWorker {
    /// Returns the bytes beside the tables of the largest part.
    pub(crate) fn bytes(&self, part: &PartSizes) -> usize {
        // The number of the row in the batch, its place among the groups, and two bits of them.
        let row = 4 + 4 + 1 + if self.has_sketches { 32 } else { 0 } + if self.has_features { 4 } else { 0 };
        let of_rows = |n_rows: usize, n_values: usize| (n_rows.saturating_mul(row), n_values.saturating_mul(8));
        let (rows, fingerprints) = of_rows(part.n_rows, part.n_values);
        // A word, its place among the classes, and the class. Beside them, the fingerprint of each class.
        let words = part.n_classes.saturating_mul(16);
        let of_classes = if self.n_word_keys > 0 { part.n_classes.saturating_mul(8) } else { 0 };
        let of_keys =
            fingerprints.saturating_mul(self.n_fingerprint_keys).saturating_add(words.saturating_mul(self.n_word_keys));
        let one = rows.saturating_add(of_keys).saturating_add(of_classes);
        let (rows_of_two, fingerprints_of_two) = of_rows(part.of_two.0, part.of_two.1);
        let two = if self.itself && part.n_parts > 1 { rows_of_two.saturating_add(fingerprints_of_two) } else { 0 };
        StoredIds::memory_bytes(self.n_batch_rows).saturating_add(self.row_sets_bytes).saturating_add(one.max(two))
    }
}

/// The plan of the join of a part, its nanoseconds of a core, and the bytes of its tables.
pub(crate) struct PartPlan<T> {
    pub(crate) plan: T,
    pub(crate) ns: f64,
    pub(crate) table_bytes: usize,
    /// Everything is compared with everything, in a key at least.
    pub(crate) is_scan: bool,
}

/// Chooses the number of parts of a batch, and plans the join of the largest one. `sizes` returns those of the largest of at most
/// so many parts, `held` the bytes of it beside its tables, and `plan` its plan within some bytes of tables. `further_ns` is what
/// each further part costs. `key` is the name of `worker_memory` in an error, and the cluster has `n_cores`.
///
/// # Errors
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if no part fits the memory, or only such that the join would take
/// far longer than with all memory.
pub(crate) fn choose_parts<T>(
    (key, worker_memory, n_cores): (&str, usize, u64),
    sizes: impl Fn(usize) -> PartSizes,
    held: impl Fn(&PartSizes) -> usize,
    plan: impl Fn(&PartSizes, usize) -> PartPlan<T>,
    further_ns: f64,
) -> Result<(PartSizes, T)> {
    let usable = worker_memory - worker_memory / LEFT_SHARE;
    let whole = sizes(1);
    let roomy = plan(&whole, usize::MAX);
    let (mut chosen, mut too_slow, mut least_bytes): (Option<(PartSizes, T, f64)>, _, _) = (None, None, usize::MAX);
    let (mut n_before, mut n_no_better) = (0, 0);
    for part in PARTS.into_iter().map(sizes) {
        if part.n_parts == n_before {
            continue;
        }
        n_before = part.n_parts;
        let held_bytes = held(&part);
        least_bytes = least_bytes.min(held_bytes);
        if held_bytes >= usable {
            continue;
        }
        let of_part = plan(&part, usable - held_bytes);
        let n = as_f64(part.n_parts as u64);
        let ns = n * of_part.ns + (n - 1.0) * further_ns;
        if ns >= (LONG_NS * as_f64(n_cores)).max(TOO_SLOW * roomy.ns) {
            // Smaller parts may leave room for tables.
            too_slow = Some(part);
            continue;
        }
        if chosen.as_ref().is_none_or(|(.., before)| ns < WORTH_MORE * before) {
            (chosen, n_no_better) = (Some((part, of_part.plan, ns)), 0);
        } else if !of_part.is_scan {
            n_no_better += 1;
        }
        if (part == whole && ns < WORTH_PARTS * roomy.ns) || n_no_better == MOST_NO_BETTER {
            break;
        }
    }
    if let Some((part, plan, _)) = chosen {
        return Ok((part, plan));
    }
    let reason = match too_slow {
        Some(part) => format!(
            "the query batch would be joined in {}, which would take far longer than with enough memory: give workers more \
             than {worker_memory} bytes ({} are enough for the batch and its tables), or split the night",
            counted(part.n_parts as u64, "part"),
            held(&whole).saturating_add(roomy.table_bytes).div_ceil(LEFT_SHARE - 1).saturating_mul(LEFT_SHARE),
        ),
        None => format!(
            "each worker holds a part of the query batch, {least_bytes} bytes at least; of {worker_memory} bytes, {usable} are for \
             it and its tables: give workers more, or split the night"
        ),
    };
    Err(Fault::config(key, reason))
}

/// Returns the work of a part of a batch of `n_values`. If the batch is joined with itself, a part is joined with itself, and with
/// half of the other values on average.
pub(crate) fn work_of_part(workload: Workload, n_values: usize, n_parts: usize) -> Workload {
    if n_parts == 1 || !workload.itself {
        return workload;
    }
    let (n, mut existing) = (n_values as u64, workload.existing.clone());
    existing.push(ExistingRun { n_rows: (n - n / n_parts as u64) / 2, density_rows: n });
    Workload { existing, ..workload }
}

/// Returns what each further part costs: each key reads the existing fingerprints again, and words read the sketches. To join the
/// parts with each other, as many documents are loaded again as the batch has: `n_loaded`, or 0 if they are not joined.
pub(crate) fn further_part_ns(
    n_existing: u64,
    n_loaded: usize,
    threads: usize,
    (n_keys, n_words): (usize, usize),
) -> f64 {
    let of_row = READ_AGAIN_NS * as_f64(n_keys as u64) + READ_SKETCH_NS * as_f64(n_words as u64);
    as_f64(n_existing) * as_f64(threads as u64) * of_row + as_f64(n_loaded as u64) * QUERY_NS
}

/// The cluster that a join is planned for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterRequest {
    /// The number of worker processes. Each runs one task at a time. At least 1.
    pub workers: usize,
    /// The threads of each. At least 1.
    pub threads: usize,
    /// The bytes that a worker process may take.
    pub worker_memory: usize,
    /// Whether candidates are verified by sketches, which the batch holds too.
    pub sketches: bool,
}

/// The plan of a join on a cluster. It holds for uniform fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClusterPlan {
    /// The number of worker processes.
    pub workers: usize,
    /// The threads of each.
    pub threads: usize,
    /// The tables in a few words.
    pub strategy: String,
    /// The number of parts of the query batch. The workers read the existing fingerprints once for each part.
    pub n_parts: usize,
    /// The tables, in their order.
    pub tables: Vec<PlannedTable>,
    /// The number of existing fingerprints that a task maps.
    pub piece_rows: usize,
    /// The number of map tasks of existing fingerprints, of all parts.
    pub n_tasks: u64,
    /// The number of tasks that the busiest worker runs.
    pub tasks_of_worker: u64,
    /// The bytes of the memory of a worker process. The virtual machine of its executor has its own.
    pub memory_bytes: usize,
}

/// Plans a join on a cluster. `resources` are the driver's, and name the kernel. The result depends on the arguments alone, or on
/// the kernel of this machine if they name none.
///
/// ```
/// use nearprint_pipeline::{ClusterRequest, PlanRequest, Resources, plan_on_cluster};
///
/// let (bits, max_distance, runs) = (64, 3, 1);
/// let (existing_rows, query_rows) = (10_000_000_000, 1_000_000);
/// let request = PlanRequest { existing_rows, query_rows, bits, max_distance, runs, itself: true };
/// let cluster = ClusterRequest { workers: 20, threads: 8, worker_memory: 16 << 30, sketches: false };
/// let plan = plan_on_cluster(&request, &cluster, &Resources::default())?;
/// assert!(plan.n_parts == 1 && plan.tasks_of_worker >= 3 && plan.memory_bytes < 16 << 30);
/// # Ok::<(), nearprint_fault::Fault>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if no part of the query batch fits the memory of a worker with its
/// tables. [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the driver has no such kernel.
pub fn plan_on_cluster(request: &PlanRequest, cluster: &ClusterRequest, resources: &Resources) -> Result<ClusterPlan> {
    let n_queries = in_memory(request.query_rows);
    let (workers, threads) = (cluster.workers.max(1) as u64, cluster.threads.max(1));
    let kernel = resources.join_kernel()?;
    let held = HeldByWorker {
        n_batch_rows: n_queries,
        has_sketches: cluster.sketches,
        has_features: cluster.sketches,
        n_fingerprint_keys: 1,
        n_word_keys: 0,
        itself: request.itself,
        // Plans know nothing of documents that nights have again.
        row_sets_bytes: 0,
    };
    let sizes = |n_parts: usize| {
        let n = n_queries.div_ceil(n_parts).max(1);
        PartSizes {
            n_asked: n_parts,
            n_parts: n_queries.div_ceil(n).max(1),
            n_rows: n,
            n_values: n,
            n_classes: n,
            of_two: (n.saturating_mul(2), n.saturating_mul(2)),
        }
    };
    let workload = Workload {
        n_queries,
        existing: request.existing(),
        piece_rows: most_piece_rows(request.existing_rows, workers),
        itself: request.itself,
        memory_bytes: 0,
        threads,
        pieces_under_way: 0,
        kernel,
    };
    let plan = |part: &PartSizes, memory_bytes: usize| {
        let of_part = Workload { n_queries: part.n_values, memory_bytes, ..workload.clone() };
        let of_part = work_of_part(of_part, n_queries, part.n_parts);
        let plan = JoinPlan::in_one_slice(request.bits, request.max_distance, &of_part);
        let (ns, table_bytes) = (plan.cost.total_ns, plan.counted_bytes);
        PartPlan { ns, table_bytes, is_scan: plan.tables.is_scan(), plan }
    };
    let n_loaded = if request.itself { n_queries } else { 0 };
    let further_ns = further_part_ns(workload.n_existing(), n_loaded, threads, (1, 0));
    let of_memory = ("--worker-memory", cluster.worker_memory, workers.saturating_mul(threads as u64));
    let (part, plan) = choose_parts(of_memory, sizes, |part| held.bytes(part), plan, further_ns)?;
    let n_tasks = workload.n_existing().div_ceil(plan.piece_rows.max(1) as u64) * part.n_parts as u64;
    Ok(ClusterPlan {
        workers: cluster.workers,
        threads,
        strategy: strategy(&plan.tables, 1),
        n_parts: part.n_parts,
        tables: plan.tables.tables().iter().map(PlannedTable::of).collect(),
        piece_rows: plan.piece_rows,
        n_tasks,
        tasks_of_worker: n_tasks.div_ceil(workers),
        memory_bytes: PROCESS_BYTES.saturating_add(held.bytes(&part)).saturating_add(plan.cost.memory_bytes),
    })
}

/// Returns the most existing fingerprints of a task of one of `workers`, at least 1. Tasks are whole row groups.
pub(crate) fn most_piece_rows(existing_rows: u64, workers: u64) -> usize {
    in_memory(existing_rows.div_ceil(TASKS_OF_WORKER.saturating_mul(workers))).max(ROW_GROUP_ROWS)
}
