//! Choosing how to join: what is to be joined, as the planner sees it.

use nearprint_join::{ExistingRun, JoinCost, TablePlan, Workload};
use serde::Serialize;

use crate::error::{PipelineError, Result};
use crate::resources::Resources;
use nearprint_dataset::ParquetFile;
use nearprint_dataset::schema::FINGERPRINT;
use nearprint_storage::in_memory;

/// Existing fingerprints mapped at once: several passes over a piece stay in the last cache, and larger ones make tables that
/// allow differing bits cheaper.
const PIECE_ROWS: [usize; 3] = [1 << 20, 1 << 21, 1 << 22];
/// Pieces of existing fingerprints that are read, mapped, or wait for their documents, for each thread: as many as keep a disk
/// busy while the threads compute; fewer where memory for tables is worth more.
const PIECES_A_THREAD: [usize; 3] = [4, 2, 1];

/// How much longer than with all memory a join of all queries at once may take before it is done in parts.
const WORTH_PARTS: f64 = 1.25;
/// Parts, at most, as a power of 2.
const MAX_LOG_PARTS: u32 = 6;
/// Nanoseconds of a core below which a join is not worth another plan.
const WORTH_NS: f64 = 1e9;
/// Reading one existing fingerprint again, about: 4.3 bytes of a disk or bucket that gives 430 MB a second to all threads.
const READ_AGAIN_NS: f64 = 10.0;

/// Nanoseconds of a core that a join may take without tables, whatever it would take with them.
const SHORT_NS: f64 = 60e9;
/// How much longer it may take beyond that.
const TOO_SLOW: f64 = 20.0;

/// A plan, its estimate, and what is in memory at once.
#[derive(Debug, Clone)]
pub(crate) struct JoinPlan {
    pub(crate) tables: TablePlan,
    /// Parts of the queries, each joined with all existing fingerprints, and with the queries from it on, before the next.
    pub(crate) n_parts: usize,
    /// Of all parts together; the memory is that of one, and of the values of all.
    pub(crate) cost: JoinCost,
    pub(crate) piece_rows: usize,
    pub(crate) pieces_under_way: usize,
    /// Bytes that count against a limit: all but one piece a thread, which readers hold whatever the plan.
    pub(crate) counted_bytes: usize,
}

impl JoinPlan {
    /// The cheapest plan for a workload, whose pieces are chosen too.
    ///
    /// # Errors
    /// [`PipelineError::Resources`] where only comparing everything with everything, or parts, fit the workload's memory, and would
    /// take far longer than a join that has enough.
    pub(crate) fn choose(bits: u32, max_distance: u32, workload: &Workload) -> Result<Self> {
        let whole = Self::cheapest(bits, max_distance, workload, 1);
        if whole.cost.total_ns < WORTH_NS {
            return Ok(whole);
        }
        let roomy = Self::cheapest(bits, max_distance, &Workload { memory_bytes: usize::MAX, ..workload.clone() }, 1);
        if whole.cost.total_ns < WORTH_PARTS * roomy.cost.total_ns {
            return Ok(whole);
        }
        let mut chosen = whole;
        for n_parts in (1..=MAX_LOG_PARTS).map(|log| 1 << log) {
            let parts = Self::cheapest(bits, max_distance, workload, n_parts);
            if parts.counted_bytes <= workload.memory_bytes && parts.cost.total_ns < chosen.cost.total_ns {
                chosen = parts;
            }
        }
        let last_resort = chosen.tables.is_scan() || chosen.n_parts > 1;
        if !last_resort || chosen.cost.total_ns < SHORT_NS.max(TOO_SLOW * roomy.cost.total_ns) {
            return Ok(chosen);
        }
        let reason = format!(
            "the query batch and its tables take about {} bytes, {} are left of the limit for tables",
            roomy.counted_bytes, workload.memory_bytes
        );
        Err(PipelineError::Resources { reason })
    }

    fn cheapest(bits: u32, max_distance: u32, workload: &Workload, n_parts: usize) -> Self {
        let of = |piece_rows, pieces| Self::of_pieces(bits, max_distance, workload, n_parts, piece_rows, pieces);
        let sizes = PIECES_A_THREAD.into_iter().flat_map(|pieces| PIECE_ROWS.map(|rows| (rows, pieces)));
        sizes.skip(1).fold(of(PIECE_ROWS[0], PIECES_A_THREAD[0]), |best, (piece_rows, pieces)| {
            let other = of(piece_rows, pieces);
            // Another size than the first must be worth it.
            let fits = other.counted_bytes <= workload.memory_bytes;
            if fits && other.cost.total_ns < 0.8 * best.cost.total_ns { other } else { best }
        })
    }

    fn of_pieces(
        bits: u32,
        max_distance: u32,
        workload: &Workload,
        n_parts: usize,
        piece_rows: usize,
        pieces_a_thread: usize,
    ) -> Self {
        let pieces_under_way = pieces_a_thread * workload.threads;
        let workload = Workload { piece_rows, pieces_under_way, ..workload.clone() };
        let part = part_of(&workload, n_parts);
        let tables = TablePlan::choose(bits, max_distance, &part);
        let mut cost = JoinCost::of(&tables, &part);
        let (n_existing, part_queries) = (workload.n_existing(), part.n_queries);
        let mut counted_bytes = cost.memory_bytes.saturating_sub(part.least_bytes());
        if n_parts > 1 {
            let of_existing = JoinCost::of(&tables, &Workload { existing: workload.existing, ..part });
            let n = as_f64(n_parts as u64);
            // The values of all; and what the parts before have mapped with is still there when tables are sorted.
            let held = workload.n_queries.saturating_add(part_queries).saturating_mul(8);
            counted_bytes = counted_bytes.saturating_add(held);
            let read_again = as_f64(n_existing) * as_f64(workload.threads as u64) * READ_AGAIN_NS;
            cost = JoinCost {
                candidates_per_fingerprint: n * of_existing.candidates_per_fingerprint,
                ns_per_fingerprint: n * of_existing.ns_per_fingerprint,
                memory_bytes: cost.memory_bytes.saturating_add(held),
                total_ns: n * cost.total_ns + (n - 1.0) * read_again,
            };
        }
        Self { tables, n_parts, cost, piece_rows, pieces_under_way, counted_bytes }
    }
}

/// The work of one of so many parts of the queries. With the queries themselves it is joined from its own first one on: with half
/// of them, and half of its own, on average. All values are held beside its tables.
fn part_of(workload: &Workload, n_parts: usize) -> Workload {
    if n_parts == 1 {
        return workload.clone();
    }
    let mut existing = workload.existing.clone();
    if workload.itself {
        let n = workload.n_queries as u64;
        let n_rows = n / 2 + n.div_ceil(2 * n_parts as u64);
        existing.push(ExistingRun { n_rows, density_rows: n });
    }
    Workload {
        n_queries: workload.n_queries.div_ceil(n_parts),
        existing,
        itself: false,
        memory_bytes: workload.memory_bytes.saturating_sub(workload.n_queries.saturating_mul(8)),
        ..workload.clone()
    }
}

/// A file of existing fingerprints as the planner sees it: how densely it covers its range of values.
pub(crate) fn existing_run(parquet: &ParquetFile, bits: u32) -> ExistingRun {
    let n_rows = parquet.n_rows();
    let differing = parquet.bounds(FINGERPRINT).map_or(u64::MAX, |(min, max)| min ^ max);
    let shared = differing.leading_zeros().saturating_sub(u64::BITS - bits);
    let density_rows = if differing == 0 { n_rows } else { n_rows.saturating_mul(1 << shared.min(40)) };
    ExistingRun { n_rows, density_rows }
}

/// Sizes to plan for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// Existing fingerprints.
    pub existing_rows: u64,
    /// Distinct query fingerprints.
    pub query_rows: u64,
    /// Bits of the fingerprints, 32 or 64.
    pub bits: u32,
    /// The largest distance that counts.
    pub max_distance: u32,
    /// Sorted runs that the existing fingerprints are spread over, equally.
    pub runs: u64,
    /// Whether the queries are joined with each other.
    pub itself: bool,
}

/// How a join of given sizes would be done. Times are of uniform fingerprints on the machine that the model was measured on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanSummary {
    /// In a few words.
    pub strategy: String,
    /// Parts of the queries that are joined one after another, so that their tables fit the memory.
    pub n_parts: usize,
    /// The tables, in their order.
    pub tables: Vec<PlannedTable>,
    /// Existing fingerprints mapped at once.
    pub piece_rows: usize,
    /// Queries that an existing fingerprint is compared with.
    pub candidates_per_fingerprint: f64,
    /// Pairs within the distance among as many uniform fingerprints, which are no near-duplicates.
    pub chance_pairs: f64,
    /// Bytes of tables and mappers.
    pub memory_bytes: usize,
    /// Threads.
    pub threads: usize,
    /// Instructions in use.
    pub kernel: &'static str,
    /// Reading and mapping one existing fingerprint, on one core.
    pub estimated_ns_per_fingerprint: f64,
    /// Of it, reading and decoding.
    pub decode_ns_per_fingerprint: f64,
    /// All of the map phase.
    pub estimated_seconds: f64,
}

/// One table of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedTable {
    /// Width of the block that leads.
    pub prefix_bits: u32,
    /// Its lowest bit.
    pub low_bit: u32,
    /// How many of its bits may differ.
    pub max_prefix_distance: u32,
}

/// Reading a fingerprint from the page cache and decoding it, about: what a join of few queries takes for each.
const DECODE_NS: f64 = 1.0;

/// Plans a join without doing it.
///
/// # Errors
/// [`PipelineError::Config`] for a kernel that does not exist or cannot run here; [`PipelineError::Resources`] where the limit
/// leaves no memory for tables.
pub fn plan(request: &PlanRequest, resources: &Resources) -> Result<PlanSummary> {
    let runs = request.runs.max(1);
    let of_run = |i: u64| request.existing_rows / runs + u64::from(i < request.existing_rows % runs);
    let run = |i: u64| ExistingRun { n_rows: of_run(i), density_rows: of_run(i) };
    let workload = Workload {
        n_queries: in_memory(request.query_rows),
        existing: (0..runs).map(run).collect(),
        piece_rows: 0,
        itself: request.itself,
        memory_bytes: resources.memory_limit.map_or(4 << 30, |limit| limit / 2),
        threads: resources.n_threads(),
        pieces_under_way: 0,
    };
    let plan = JoinPlan::choose(request.bits, request.max_distance, &workload)?;
    let tables: Vec<PlannedTable> = plan.tables.tables().iter().map(PlannedTable::of).collect();
    let decode_ns = if request.existing_rows == 0 { 0.0 } else { DECODE_NS * as_f64(plan.n_parts as u64) };
    let total_ns = plan.cost.total_ns + decode_ns * as_f64(request.existing_rows);
    let of_queries = if request.itself { as_f64(request.query_rows) / 2.0 } else { 0.0 };
    let pairs = as_f64(request.query_rows) * (as_f64(request.existing_rows) + of_queries);
    Ok(PlanSummary {
        strategy: strategy(&plan.tables, plan.n_parts),
        n_parts: plan.n_parts,
        tables,
        piece_rows: plan.piece_rows,
        candidates_per_fingerprint: plan.cost.candidates_per_fingerprint,
        chance_pairs: pairs * nearprint_join::chance_of_near(request.bits, request.max_distance),
        memory_bytes: plan.cost.memory_bytes,
        threads: workload.threads,
        kernel: resources.join_kernel()?.name().name(),
        estimated_ns_per_fingerprint: plan.cost.ns_per_fingerprint + decode_ns,
        decode_ns_per_fingerprint: decode_ns,
        estimated_seconds: total_ns / 1e9 / as_f64(workload.threads as u64),
    })
}

impl PlannedTable {
    fn of(table: &nearprint_join::Table) -> Self {
        Self {
            prefix_bits: table.block().width,
            low_bit: table.block().low,
            max_prefix_distance: table.max_prefix_distance(),
        }
    }
}

/// What a plan does, in a few words.
pub(crate) fn strategy(plan: &TablePlan, n_parts: usize) -> String {
    let tables = match plan.tables() {
        _ if plan.is_scan() => "scan: every fingerprint is compared with every query".to_owned(),
        [_] => "prefix walk: sorted runs are walked as tries, with the queries that can still be near".to_owned(),
        tables => format!("{} permuted tables, each met in its own order", tables.len()),
    };
    if n_parts == 1 { tables } else { format!("{tables}; the queries in {n_parts} parts, one after another") }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn as_f64(n: u64) -> f64 {
    n as f64
}
