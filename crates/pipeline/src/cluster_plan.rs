//! The plan of a join whose map tasks run on the workers of a cluster: tables, slices and tasks for the memory of a worker.
//! Each worker holds the whole query batch and the tables of one slice.

use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_join::Workload;
use nearprint_storage::in_memory;
use schemars::JsonSchema;
use serde::Serialize;

use crate::join_plan::{JoinPlan, PlanRequest, PlannedTable, strategy};
use crate::resources::Resources;

/// The rows of a row group. A task has at least one.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// The tasks that each worker gets at least, if there are as many row groups. So a slow worker delays the others by less
/// than a third.
const TASKS_OF_WORKER: u64 = 3;
/// The share of a worker's memory that is left to its program, its allocator and the documents of pairs, as a divisor.
const LEFT_SHARE: usize = 4;
/// The bytes of a document of the batch in the memory of a worker: an id of 64 bytes with an offset, its fingerprint, and its
/// places among the groups. With sketches: the sketch and the number of features.
const DOCUMENT_BYTES: usize = 64 + 8 + 8 + 12;
const SKETCHED_DOCUMENT_BYTES: usize = 32 + 4;
/// The bytes of a process without data.
const PROCESS_BYTES: usize = 96 << 20;

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
    /// The number of slices of the queries. Each worker reads the existing fingerprints once for each slice.
    pub n_parts: usize,
    /// The tables, in their order.
    pub tables: Vec<PlannedTable>,
    /// The number of existing fingerprints that a task maps.
    pub piece_rows: usize,
    /// The number of map tasks of existing fingerprints, of all slices.
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
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the query batch and its tables do not fit the memory of
/// a worker. [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the driver has no such kernel.
pub fn plan_on_cluster(request: &PlanRequest, cluster: &ClusterRequest, resources: &Resources) -> Result<ClusterPlan> {
    let n_queries = in_memory(request.query_rows);
    let document_bytes = DOCUMENT_BYTES + if cluster.sketches { SKETCHED_DOCUMENT_BYTES } else { 0 };
    let held_bytes = n_queries.saturating_mul(document_bytes);
    let (workers, threads) = (cluster.workers.max(1) as u64, cluster.threads.max(1));
    let workload = Workload {
        n_queries,
        existing: request.existing(),
        piece_rows: most_piece_rows(request.existing_rows, workers),
        itself: request.itself,
        memory_bytes: table_bytes("--worker-memory", cluster.worker_memory, held_bytes)?,
        threads,
        pieces_under_way: 0,
        kernel: resources.join_kernel()?,
    };
    let plan = JoinPlan::choose(request.bits, request.max_distance, &workload).map_err(beyond_worker)?;
    let n_tasks = workload.n_existing().div_ceil(plan.piece_rows.max(1) as u64) * plan.n_slices as u64;
    Ok(ClusterPlan {
        workers: cluster.workers,
        threads,
        strategy: strategy(&plan.tables, plan.n_slices),
        n_parts: plan.n_slices,
        tables: plan.tables.tables().iter().map(PlannedTable::of).collect(),
        piece_rows: plan.piece_rows,
        n_tasks,
        tasks_of_worker: n_tasks.div_ceil(workers),
        memory_bytes: PROCESS_BYTES.saturating_add(held_bytes).saturating_add(plan.cost.memory_bytes),
    })
}

/// Returns the most existing fingerprints of a task. Tasks are whole row groups.
pub(crate) fn most_piece_rows(existing_rows: u64, workers: u64) -> usize {
    in_memory(existing_rows.div_ceil(TASKS_OF_WORKER * workers)).max(ROW_GROUP_ROWS)
}

/// Returns the bytes that the query batch, of `held_bytes`, leaves to tables in the memory of a worker. `key` is the name of
/// this memory in an error.
///
/// # Errors
/// [`ErrorKind::Config`] if it leaves none.
pub(crate) fn table_bytes(key: &str, worker_memory: usize, held_bytes: usize) -> Result<usize> {
    let usable = worker_memory - worker_memory / LEFT_SHARE;
    if held_bytes >= usable {
        let reason = format!(
            "each worker holds the query batch, {held_bytes} bytes; of {worker_memory} bytes, {usable} are for it and its \
             tables: give workers more, or split the night"
        );
        return Err(Fault::config(key, reason));
    }
    Ok(usable - held_bytes)
}

/// The error of a planner that got the memory of a worker.
fn beyond_worker(error: Fault) -> Fault {
    match error.kind() {
        ErrorKind::LocalIo => {
            Fault::config("--worker-memory", format!("{}: give workers more", error.reason_in_file()))
        }
        _ => error,
    }
}
