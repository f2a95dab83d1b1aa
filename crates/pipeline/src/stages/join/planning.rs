//! The plan of a join: the groups of the batch, the tables, and what each pass may hold.

use nearprint_fault::Result;
use nearprint_join::{ExistingRun, Kernel, LossLimit, QueryRows, Verifier, Workload};
use nearprint_tasks::{QueryBatch, QuerySlices, Workers};

use super::memory::{Budget, group};
use crate::cluster_plan::{most_piece_rows, table_bytes};
use crate::join_plan::JoinPlan;
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
    /// What makes a pair of two documents with near fingerprints.
    pub(super) verifier: Verifier,
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
    /// The tables, or the values of which the workers of an engine build them.
    pub(super) queries: QuerySlices,
    pub(super) piece_rows: u64,
    pub(super) memory: PassMemory,
    pub(super) runner: PlanRunner,
}

impl Planning {
    /// Groups the batch, plans the join within the memory that is left, and builds the tables.
    pub(super) fn plan(self, batch: QueryBatch) -> Result<Planned> {
        let Self { bits, rules, n_existing, runs, held_bytes, kernel, workers, resources } = self;
        let read_ahead_bytes = READ_AHEAD_BYTES.min(resources.counted_bytes() / READ_AHEAD_SHARE);
        let (batch, rows, values) = group(batch, rules.decides, &resources)?;
        let held = held_bytes + batch.memory_bytes() + rows.memory_bytes() + read_ahead_bytes;
        let mut left = Budget::new(&resources, held, batch.len(), rules.decides)?;
        let (memory_bytes, threads) = match workers {
            None => (left.for_tables(), resources.n_threads()),
            Some(workers) => {
                let held = batch.memory_bytes() + rows.memory_bytes();
                (table_bytes("worker_memory", workers.memory_bytes, held)?, workers.threads)
            }
        };
        let workload = Workload {
            n_queries: values.len(),
            existing: runs,
            piece_rows: workers.map_or(0, |workers| most_piece_rows(n_existing, workers.n as u64)),
            itself: rules.itself,
            memory_bytes,
            threads,
            pieces_under_way: 0,
        };
        let plan = JoinPlan::choose(bits, u32::from(rules.verifier.max_distance), &workload)?;
        tracing::debug!(
            tables = plan.tables.tables().len(),
            slices = plan.n_slices,
            kernel = kernel.name().name(),
            estimated_ns = plan.cost.ns_per_fingerprint,
            "join planned"
        );
        let queries = if workers.is_some() {
            QuerySlices::unbuilt(values, plan.tables, plan.n_slices, kernel)
        } else {
            left.take(plan.counted_bytes);
            QuerySlices::try_new(values, plan.tables, plan.n_slices, kernel)?
        };
        let runner = PlanRunner::new(&resources, left.for_reduce(&resources))?;
        let (pieces_under_way, forest_bytes) = (plan.pieces_under_way, left.for_forest(&resources));
        let memory = PassMemory { pieces_under_way, read_ahead_bytes, forest_bytes };
        Ok(Planned { batch, rows, queries, piece_rows: plan.piece_rows as u64, memory, runner })
    }
}
