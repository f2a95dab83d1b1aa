//! The plan of a join whose map tasks run on the workers of a cluster. Pure arithmetic, on the join's cost model and on
//! the prices below.
//!
//! ```text
//! driver ─ batch ─► every worker      load      once for each worker
//! storage ─ pieces ─► worker          read      while the piece before is mapped
//!                     tables ─ pairs  map
//! pairs ─► sorted, distinct           shuffle
//! pairs ─► driver ─► decisions        driver
//! ```

use nearprint_join::{Forest, JoinCost, QueryRows, Workload, chance_of_near};
use nearprint_storage::in_memory;
use serde::Serialize;

use crate::error::{PipelineError, Result};
use crate::join_plan::{
    DECODE_NS, JoinPlan, PAGE_SKETCHES, PlanRequest, PlannedTable, ROW_GROUP_ROWS, SKETCH_INDEX_BYTES,
    SKETCH_PAGE_BYTES, fingerprint_bytes, part_of, strategy,
};
use crate::machine;
use crate::resources::Resources;
use crate::stages::decide::Decisions;

/// The prices of what the cost model of the join does not know. Those marked *estimate* have not been measured on a
/// cluster; replace them by measurements.
mod price {
    /// The nanoseconds in which a worker reads a document of the batch and groups it with its equals, on one thread: 0.12 s
    /// for 2¹⁸ documents with ids and sketches, from the log of a run on the machine of evidence/benchmarks.
    pub(super) const LOAD_DOCUMENT_NS: f64 = 500.0;
    /// The nanoseconds of the driver for each document: taking it in, deciding, and writing decisions and the store's run
    /// file. 0.8 s for 2¹⁸ documents, from the same log.
    pub(super) const DRIVER_DOCUMENT_NS: f64 = 3_000.0;
    /// The nanoseconds of the driver for each pair: the forest, and writing. 20 million pairs take 19 s on two threads
    /// (evidence/benchmarks, "Whole commands").
    pub(super) const DRIVER_PAIR_NS: f64 = 1_000.0;
    /// The nanoseconds of a core to verify a candidate by its sketch. With sketches, 2²⁶ × 2²⁰ at k = 12 takes 30 s on
    /// two threads, of which the map has 15 s; there are 16 million candidates (evidence/benchmarks, "Distance" and
    /// "Large pieces").
    pub(super) const CANDIDATE_NS: f64 = 2_000.0;
    /// The nanoseconds of a core to fetch the document of a pair. A page of 512 ids takes 12 µs: the difference between
    /// two sizes of pages (evidence/benchmarks, "Verification by sketches"). Three more columns are read.
    pub(super) const PAIR_NS: f64 = 25_000.0;

    /// The bytes of an id. The URLs of evidence/benchmarks have 60.
    pub(super) const ID_BYTES: f64 = 64.0;
    /// The bytes of an id in a file, compressed, in order: 52.6 bytes a document, less 37 for the other columns
    /// (evidence/benchmarks, "Verification by sketches").
    pub(super) const STORED_ID_BYTES: f64 = 16.0;
    /// The pairs of a document that has any. Estimate: a page of a template has more.
    pub(super) const PAIRS_OF_DOCUMENT: f64 = 3.0;
    /// The bytes of a pair on the way to the driver, beside an id: the columns of a forest candidate as a sort key, and
    /// the engine's own around it.
    pub(super) const PAIR_BYTES: f64 = 85.0;
    /// The columns that are read for the documents of pairs (id, hash of the text, canonical id, number of features), the
    /// rows of a page, and its bytes: 16 + 16 + 5 + 2 bytes a document, in pages of 512.
    pub(super) const DOCUMENT_COLUMNS: f64 = 4.0;
    pub(super) const DOCUMENT_PAGE_ROWS: f64 = 512.0;
    pub(super) const DOCUMENT_PAGE_BYTES: f64 = 5_000.0;

    /// The bytes between two pages in a bucket that are read along: `COALESCE_BYTES` of the crate `storage`.
    pub(super) const READ_ALONG_BYTES: f64 = (1 << 20) as f64;
    /// The seconds until the first byte of an answer of the object store. Estimate: some tens of milliseconds.
    pub(super) const REQUEST_SECONDS: f64 = 0.03;
    /// The requests for scattered pages that a worker has under way, as `map_piece` of the crate `tasks` does.
    pub(super) const REQUESTS_AT_ONCE: f64 = 8.0;

    /// The bytes a second at which the driver, or a worker that has the batch, hands it on. Estimate: half of a network
    /// interface of 10 Gbit/s.
    pub(super) const SERVED_BYTES: f64 = 600e6;
    /// The bytes a second that a thread of a worker writes, sends and sorts in a shuffle. Estimate.
    pub(super) const SHUFFLED_BYTES: f64 = 50e6;
    /// How often a pair is shuffled. Estimate: once to find equal ones, once to sort.
    pub(super) const N_SHUFFLES: f64 = 2.0;
    /// The bytes a second at which sorted pairs and fingerprinted documents stream to the driver. Estimate.
    pub(super) const RECEIVED_BYTES: f64 = 100e6;
    /// The seconds that a task takes beside its work, on its worker. Estimate.
    pub(super) const TASK_SECONDS: f64 = 0.1;
    /// The seconds of the driver to send a task, one after the other. Estimate.
    pub(super) const DISPATCH_SECONDS: f64 = 0.002;
    /// The seconds to start and end a stage, and the stages of a join: map, distinct, sort. Estimate.
    pub(super) const STAGE_SECONDS: f64 = 1.0;
    pub(super) const N_STAGES: f64 = 3.0;
}

/// The tasks that each worker gets at least, if there are as many row groups. So a slow worker delays the others by less
/// than a third.
const TASKS_OF_WORKER: u64 = 3;
/// The share of a worker's memory that is left to its program, its allocator and the documents of pairs, as a divisor.
const LEFT_SHARE: usize = 4;
/// The bytes of a document of the batch in the memory of a worker: its id with an offset, its fingerprint, and its places
/// among the groups. With sketches: the sketch and the number of features.
const WORKER_DOCUMENT_BYTES: usize = 64 + 8 + 8 + 12;
const SKETCHED_DOCUMENT_BYTES: usize = 32 + 4;
/// The bytes that a document takes in the driver beyond that: the hash of its text, its length, and its place in the keep
/// order.
const DRIVER_DOCUMENT_BYTES: usize = 16 + 4 + 4;
/// The bytes in the driver of a pair's existing document, which may become canonical.
const KEPT_BYTES: usize = 128;
/// The bytes of a process without data.
const PROCESS_BYTES: usize = 96 << 20;

/// The cluster that a join is planned for.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterRequest {
    /// The number of worker processes. Each runs one task at a time. At least 1.
    pub workers: usize,
    /// The threads of each. At least 1.
    pub threads: usize,
    /// The bytes that a worker process may take.
    pub worker_memory: usize,
    /// The bytes a second that a worker reads from storage. At least 1.
    pub bandwidth: u64,
    /// Whether candidates are verified by sketches. If they are not, pairs by chance are pairs.
    pub sketches: bool,
    /// The share of the new documents that make pairs, from 0 to 1.
    pub near_duplicates: f64,
    /// The time that a worker takes for what the cost model expects to take 1, as [`measured_over_model`] measures it.
    pub measured_over_model: f64,
}

/// The plan of a join on a cluster. The estimates hold for uniform fingerprints, workers of equal speed, and no failures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClusterPlan {
    /// The number of worker processes.
    pub workers: usize,
    /// The threads of each.
    pub threads: usize,
    /// The tables in a few words.
    pub strategy: String,
    /// The number of parts of the queries. Each worker reads the existing fingerprints once for each part.
    pub n_parts: usize,
    /// The tables, in their order.
    pub tables: Vec<PlannedTable>,
    /// The number of existing fingerprints that a task maps.
    pub piece_rows: usize,
    /// The number of map tasks of existing fingerprints, of all parts.
    pub n_tasks: u64,
    /// The number of tasks that the busiest worker runs.
    pub tasks_of_worker: u64,
    /// The pairs within the distance that chance makes of uniform fingerprints. With sketches, a sketch is read for each.
    pub chance_pairs: f64,
    /// The pairs that are shuffled: those of near-duplicates, and without sketches those by chance.
    pub pairs: f64,
    /// The requests to storage of all workers: one for each row group, and those for scattered pages.
    pub requests: f64,
    /// The bytes that move, and the bytes that are held.
    pub bytes: ClusterBytes,
    /// The seconds of each step.
    pub seconds: ClusterSeconds,
    /// What most of the time waits for.
    pub limit: ClusterLimit,
    /// The share of new documents that make pairs.
    pub near_duplicates: f64,
    /// The time over that of the cost model, as the request gave it.
    pub measured_over_model: f64,
}

/// The bytes of a join on a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ClusterBytes {
    /// The fingerprints that all workers read, once for each part.
    pub fingerprints: f64,
    /// The sketches of pairs by chance that all workers read, with the gaps between them.
    pub sketches: f64,
    /// The columns that all workers read for the documents of pairs.
    pub documents: f64,
    /// All that is read from storage: the sum of the three.
    pub read: f64,
    /// What the busiest worker reads of it.
    pub read_by_worker: f64,
    /// The query batch, which the driver broadcasts to the workers.
    pub batch: f64,
    /// The pairs that are shuffled, once for each shuffle.
    pub shuffled: f64,
    /// The memory of a worker process. The virtual machine of its executor has its own.
    pub worker_memory: usize,
    /// The memory of nearprint in the driver. The driver's virtual machine has its own.
    pub driver_memory: usize,
}

/// The seconds of the steps of a join on a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ClusterSeconds {
    /// Broadcasting the batch to all workers, and building the tables in each.
    pub load: f64,
    /// Reading, as the busiest worker does it.
    pub read: f64,
    /// Mapping, as the busiest worker does it.
    pub map: f64,
    /// Moving and sorting pairs.
    pub shuffle: f64,
    /// Receiving documents and pairs, deciding, and writing the results, in the driver.
    pub driver: f64,
    /// Starting stages and tasks.
    pub engine: f64,
    /// The whole. Reading and mapping overlap, so the longer of the two counts.
    pub total: f64,
}

/// The resource that a join on a cluster waits for most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterLimit {
    /// The network, over which the batch goes to every worker.
    BatchToWorkers,
    /// The processors of the workers, while each builds the tables.
    TablesOnWorkers,
    /// The bytes that workers read from storage.
    StorageBandwidth,
    /// The requests of workers to storage.
    StorageRequests,
    /// The processors of the workers, while they map.
    Processors,
    /// The shuffle of pairs.
    Shuffle,
    /// The driver.
    Driver,
    /// The engine, which starts tasks and stages.
    Engine,
}

impl ClusterLimit {
    /// Returns a description for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BatchToWorkers => "the batch on its way to the workers",
            Self::TablesOnWorkers => "every worker's tables",
            Self::StorageBandwidth => "the bandwidth of storage",
            Self::StorageRequests => "the requests to storage",
            Self::Processors => "the workers' processors",
            Self::Shuffle => "the shuffle",
            Self::Driver => "the driver",
            Self::Engine => "the engine's stages and tasks",
        }
    }
}

/// Measures this machine for [`ClusterRequest::measured_over_model`], in less than a tenth of a second. Other programs
/// that run meanwhile make it slower.
///
/// # Errors
/// [`PipelineError::Config`] if the kernel does not exist. [`PipelineError::Join`] if it cannot run here.
/// [`PipelineError::Resources`] if the threads cannot be started.
pub fn measured_over_model(resources: &Resources, threads: usize) -> Result<f64> {
    machine::measured_over_model(resources.join_kernel()?, threads)
}

/// Plans a join on a cluster. The result depends on the arguments alone.
///
/// ```
/// use nearprint_pipeline::{ClusterRequest, PlanRequest, plan_on_cluster};
///
/// let (bits, max_distance, runs) = (64, 3, 1);
/// let (existing_rows, query_rows) = (10_000_000_000, 1_000_000);
/// let request = PlanRequest { existing_rows, query_rows, bits, max_distance, runs, itself: true };
/// let cluster = ClusterRequest {
///     workers: 20,
///     threads: 8,
///     worker_memory: 16 << 30,
///     bandwidth: 500_000_000,
///     sketches: false,
///     near_duplicates: 0.3,
///     measured_over_model: 1.6,
/// };
/// let plan = plan_on_cluster(&request, &cluster)?;
/// assert!(plan.n_parts == 1 && plan.tasks_of_worker >= 3);
/// let twice = plan_on_cluster(&request, &ClusterRequest { workers: 40, ..cluster })?;
/// assert!(twice.seconds.map < plan.seconds.map && twice.bytes.read == plan.bytes.read);
/// # Ok::<(), nearprint_pipeline::PipelineError>(())
/// ```
///
/// # Errors
/// [`PipelineError::Config`] if the query batch and its tables do not fit the memory of a worker.
pub fn plan_on_cluster(request: &PlanRequest, cluster: &ClusterRequest) -> Result<ClusterPlan> {
    let sizes = Sizes::new(request, cluster);
    let workload = sizes.workload()?;
    let plan = JoinPlan::choose(request.bits, request.max_distance, &workload).map_err(beyond_worker)?;
    let pieces = workload.n_existing().div_ceil(plan.piece_rows.max(1) as u64);
    let n_tasks = pieces * plan.n_parts as u64;
    let tasks = Tasks { n: as_f64(n_tasks), of_worker: as_f64(n_tasks.div_ceil(sizes.workers)) };
    let read = sizes.read(plan.n_parts);
    let bytes = ClusterBytes {
        fingerprints: read.fingerprints,
        sketches: read.sketches.bytes,
        documents: read.documents.bytes,
        read: read.bytes(),
        read_by_worker: tasks.share(read.bytes()),
        batch: sizes.batch_bytes(),
        shuffled: sizes.pairs * (price::PAIR_BYTES + price::ID_BYTES) * price::N_SHUFFLES,
        worker_memory: PROCESS_BYTES.saturating_add(sizes.held_bytes()).saturating_add(plan.cost.memory_bytes),
        driver_memory: sizes.driver_bytes(),
    };
    let steps = sizes.steps(&workload, &plan, tasks, &bytes, read.requests());
    let limit = steps.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(ClusterLimit::Engine, |(limit, _)| *limit);
    Ok(ClusterPlan {
        workers: cluster.workers,
        threads: cluster.threads,
        strategy: strategy(&plan.tables, plan.n_parts),
        n_parts: plan.n_parts,
        tables: plan.tables.tables().iter().map(PlannedTable::of).collect(),
        piece_rows: plan.piece_rows,
        n_tasks,
        tasks_of_worker: n_tasks.div_ceil(sizes.workers),
        chance_pairs: sizes.chance_pairs,
        pairs: sizes.pairs,
        requests: read.requests(),
        bytes,
        seconds: ClusterSeconds::of(&steps),
        limit,
        near_duplicates: cluster.near_duplicates,
        measured_over_model: cluster.measured_over_model,
    })
}

/// Returns the most existing fingerprints of a task. Tasks are whole row groups.
pub(crate) fn most_piece_rows(existing_rows: u64, workers: u64) -> usize {
    in_memory(existing_rows.div_ceil(TASKS_OF_WORKER * workers)).max(whole_usize(ROW_GROUP_ROWS))
}

/// Returns the bytes of a worker's memory that are for the query batch and its tables.
pub(crate) fn usable_bytes(worker_memory: usize) -> usize {
    worker_memory - worker_memory / LEFT_SHARE
}

/// The error of a planner that got the memory of a worker.
fn beyond_worker(error: PipelineError) -> PipelineError {
    match error {
        PipelineError::Resources { reason } => {
            PipelineError::Config { key: "--worker-memory".to_owned(), reason: format!("{reason}: give workers more") }
        }
        other => other,
    }
}

/// The seconds of everything that a join may wait for.
type Steps = [(ClusterLimit, f64); 8];

impl ClusterSeconds {
    fn of(steps: &Steps) -> Self {
        let of = |wanted: &[ClusterLimit]| -> f64 {
            steps.iter().filter(|(limit, _)| wanted.contains(limit)).map(|(_, seconds)| seconds).sum()
        };
        let load = of(&[ClusterLimit::BatchToWorkers, ClusterLimit::TablesOnWorkers]);
        let read = of(&[ClusterLimit::StorageBandwidth, ClusterLimit::StorageRequests]);
        let (map, shuffle) = (of(&[ClusterLimit::Processors]), of(&[ClusterLimit::Shuffle]));
        let (driver, engine) = (of(&[ClusterLimit::Driver]), of(&[ClusterLimit::Engine]));
        Self { load, read, map, shuffle, driver, engine, total: load + read.max(map) + shuffle + driver + engine }
    }
}

/// The map tasks of existing fingerprints: all, and those of the busiest worker.
#[derive(Clone, Copy)]
struct Tasks {
    n: f64,
    of_worker: f64,
}

impl Tasks {
    /// Returns the share of the busiest worker of what all tasks do together.
    fn share(self, of_all: f64) -> f64 {
        if self.n == 0.0 { 0.0 } else { of_all / self.n * self.of_worker }
    }
}

/// Reads of pages that lie apart.
#[derive(Clone, Copy, Default)]
struct Scattered {
    bytes: f64,
    requests: f64,
}

impl Scattered {
    /// Returns the reads for `hits` rows, spread evenly over `n_rows`, of which a page has `page_rows`. Gaps of up to
    /// [`READ_ALONG_BYTES`](price::READ_ALONG_BYTES) between two pages of a row group are read along.
    fn of(hits: f64, n_rows: u64, page_rows: f64, page_bytes: f64) -> Self {
        if n_rows == 0 {
            return Self::default();
        }
        let n_pages = (as_f64(n_rows) / page_rows).ceil();
        let share = -(-hits / n_pages).exp_m1();
        let gap = 1.0 - share;
        let widest = (price::READ_ALONG_BYTES / page_bytes).floor();
        let mut along = 0.0;
        let (mut pages, mut chance) = (1.0, gap);
        while pages <= widest {
            along += pages * chance;
            (pages, chance) = (pages + 1.0, chance * gap);
        }
        let read = n_pages * share + n_pages * share * share * along;
        let row_groups = (as_f64(n_rows) / ROW_GROUP_ROWS).ceil();
        Self { bytes: read * page_bytes, requests: n_pages * share * chance + row_groups_hit(hits, row_groups) }
    }

    /// Returns the reads of so many equal ones.
    fn times(self, n: f64) -> Self {
        Self { bytes: n * self.bytes, requests: n * self.requests }
    }
}

/// Returns the number of row groups that have one of `hits` rows.
fn row_groups_hit(hits: f64, row_groups: f64) -> f64 {
    row_groups * -(-hits / row_groups).exp_m1()
}

/// What all workers read.
struct Reads {
    fingerprints: f64,
    fingerprint_requests: f64,
    sketches: Scattered,
    documents: Scattered,
}

impl Reads {
    fn bytes(&self) -> f64 {
        self.fingerprints + self.sketches.bytes + self.documents.bytes
    }

    fn requests(&self) -> f64 {
        self.fingerprint_requests + self.sketches.requests + self.documents.requests
    }
}

/// The sizes of a join on a cluster, before its plan is chosen.
struct Sizes<'a> {
    request: &'a PlanRequest,
    cluster: &'a ClusterRequest,
    workers: u64,
    threads: f64,
    n_queries: f64,
    chance_pairs: f64,
    pairs: f64,
}

impl<'a> Sizes<'a> {
    fn new(request: &'a PlanRequest, cluster: &'a ClusterRequest) -> Self {
        let n_queries = as_f64(request.query_rows);
        let of_queries = if request.itself { n_queries / 2.0 } else { 0.0 };
        let chance = chance_of_near(request.bits, request.max_distance);
        let chance_pairs = n_queries * (as_f64(request.existing_rows) + of_queries) * chance;
        let near = n_queries * cluster.near_duplicates * price::PAIRS_OF_DOCUMENT;
        Self {
            request,
            cluster,
            workers: cluster.workers.max(1) as u64,
            threads: as_f64(cluster.threads.max(1) as u64),
            n_queries,
            chance_pairs,
            pairs: near + if cluster.sketches { 0.0 } else { chance_pairs },
        }
    }

    /// Returns the bytes of the query batch in the memory of a worker.
    fn held_bytes(&self) -> usize {
        let sketched = if self.cluster.sketches { SKETCHED_DOCUMENT_BYTES } else { 0 };
        in_memory(self.request.query_rows).saturating_mul(WORKER_DOCUMENT_BYTES + sketched)
    }

    fn batch_bytes(&self) -> f64 {
        let sketched = if self.cluster.sketches { SKETCHED_DOCUMENT_BYTES } else { 0 };
        self.n_queries * (price::STORED_ID_BYTES + 8.0 + as_f64(sketched as u64))
    }

    fn driver_bytes(&self) -> usize {
        let n = in_memory(self.request.query_rows);
        // Nights beyond this are refused.
        let n = n.min(usize::MAX >> 12);
        let kept = in_memory(whole(self.pairs)).min(usize::MAX >> 12).saturating_mul(KEPT_BYTES);
        let while_grouping = QueryRows::grouping_bytes::<u64>(n);
        let while_deciding = Forest::bytes_of(n, true).saturating_add(Decisions::bytes_of(n)).saturating_add(kept);
        let documents = self.held_bytes().saturating_add(n.saturating_mul(DRIVER_DOCUMENT_BYTES));
        PROCESS_BYTES.saturating_add(documents).saturating_add(while_grouping.max(while_deciding))
    }

    /// Returns the join as a worker plans it: with the memory that the batch leaves, and pieces that give every worker
    /// its tasks.
    fn workload(&self) -> Result<Workload> {
        let limit = self.cluster.worker_memory;
        let (usable, held) = (usable_bytes(limit), self.held_bytes());
        if held >= usable {
            let reason = format!(
                "each worker holds the query batch, about {held} bytes; of {limit} bytes, {usable} are for it and its \
                 tables: give workers more, or split the night"
            );
            return Err(PipelineError::Config { key: "--worker-memory".to_owned(), reason });
        }
        Ok(Workload {
            n_queries: in_memory(self.request.query_rows),
            existing: self.request.existing(),
            piece_rows: most_piece_rows(self.request.existing_rows, self.workers),
            itself: self.request.itself,
            memory_bytes: usable - held,
            threads: self.cluster.threads.max(1),
            pieces_under_way: 0,
        })
    }

    /// Returns what all workers read. All pairs are taken for pairs with existing documents.
    fn read(&self, n_parts: usize) -> Reads {
        let (existing, parts) = (self.request.existing_rows, as_f64(n_parts as u64));
        let candidates =
            self.n_queries * as_f64(existing) * chance_of_near(self.request.bits, self.request.max_distance);
        let row_groups = (as_f64(existing) / ROW_GROUP_ROWS).ceil().max(1.0);
        let sketches = if self.cluster.sketches {
            let of_part = candidates / parts;
            let pages = Scattered::of(of_part, existing, PAGE_SKETCHES, SKETCH_PAGE_BYTES);
            let indexes = row_groups_hit(of_part, row_groups);
            let bytes = pages.bytes + indexes * SKETCH_INDEX_BYTES;
            Scattered { bytes, requests: pages.requests + indexes }.times(parts)
        } else {
            Scattered::default()
        };
        let documents =
            Scattered::of(self.pairs / parts, existing, price::DOCUMENT_PAGE_ROWS, price::DOCUMENT_PAGE_BYTES);
        Reads {
            fingerprints: parts * fingerprint_bytes(existing, self.request.runs, self.request.bits),
            fingerprint_requests: if existing == 0 { 0.0 } else { parts * row_groups },
            sketches,
            documents: documents.times(parts * price::DOCUMENT_COLUMNS),
        }
    }

    fn steps(&self, workload: &Workload, plan: &JoinPlan, tasks: Tasks, bytes: &ClusterBytes, requests: f64) -> Steps {
        let (speed, workers) = (self.cluster.measured_over_model, as_f64(self.workers));
        // In each round, the workers that have the batch hand it on to as many others.
        let served = (1.0 + workers.log2()) * bytes.batch / price::SERVED_BYTES;
        let fetched = bytes.batch / as_f64(self.cluster.bandwidth.max(1));
        let (tables_ns, own_ns) = own_ns(workload, plan);
        let tables = self.n_queries * price::LOAD_DOCUMENT_NS + speed * tables_ns / self.threads;
        let existing = as_f64(self.request.existing_rows);
        let parts = as_f64(plan.n_parts as u64);
        let verified = if self.cluster.sketches { self.chance_pairs * price::CANDIDATE_NS } else { 0.0 };
        let mapped_ns = existing * (speed * plan.cost.ns_per_fingerprint + parts * DECODE_NS)
            + verified
            + self.pairs * price::PAIR_NS;
        // Without existing fingerprints, all pairs are the queries' own.
        let mapped_ns = if tasks.n == 0.0 { mapped_ns / workers } else { tasks.share(mapped_ns) };
        let of_queries = speed * own_ns / workers;
        let map = (mapped_ns + of_queries) / self.threads / 1e9 + tasks.of_worker * price::TASK_SECONDS;
        let driver_ns = self.n_queries * price::DRIVER_DOCUMENT_NS + self.pairs * price::DRIVER_PAIR_NS;
        let pairs_bytes = bytes.shuffled / price::N_SHUFFLES;
        let documents_bytes = as_f64(self.held_bytes() as u64);
        let received = (pairs_bytes + documents_bytes) / price::RECEIVED_BYTES;
        let waiting = tasks.share(requests) * price::REQUEST_SECONDS / price::REQUESTS_AT_ONCE;
        [
            (ClusterLimit::BatchToWorkers, served.max(fetched)),
            (ClusterLimit::TablesOnWorkers, tables / 1e9),
            (ClusterLimit::StorageBandwidth, bytes.read_by_worker / as_f64(self.cluster.bandwidth.max(1))),
            (ClusterLimit::StorageRequests, waiting),
            (ClusterLimit::Processors, map),
            (ClusterLimit::Shuffle, bytes.shuffled / (workers * self.threads * price::SHUFFLED_BYTES)),
            (ClusterLimit::Driver, driver_ns / 1e9 + received),
            (ClusterLimit::Engine, price::N_STAGES * price::STAGE_SECONDS + tasks.n * price::DISPATCH_SECONDS),
        ]
    }
}

/// Returns the nanoseconds of the cost model, in one core, to build the tables of all parts, and to join the queries with
/// each other.
fn own_ns(workload: &Workload, plan: &JoinPlan) -> (f64, f64) {
    let alone = Workload { existing: Vec::new(), piece_rows: plan.piece_rows, ..workload.clone() };
    let parts = as_f64(plan.n_parts as u64);
    let of_all = |workload: &Workload| parts * JoinCost::of(&plan.tables, &part_of(workload, plan.n_parts)).total_ns;
    let tables_ns = of_all(&Workload { itself: false, ..alone.clone() });
    (tables_ns, of_all(&alone) - tables_ns)
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn as_f64(n: u64) -> f64 {
    n as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate, and not negative")]
fn whole(n: f64) -> u64 {
    n as u64
}

fn whole_usize(n: f64) -> usize {
    in_memory(whole(n))
}
