//! The choice of the way to join, and the sizes that it depends on.

use nearprint_fault::{Fault, Result};
use nearprint_join::{ExistingRun, JoinCost, Key, TablePlan, Verifier, WordKeys, Workload};
use nearprint_parquet::ParquetFile;
use nearprint_parquet::schema::FINGERPRINT;
use nearprint_storage::in_memory;
use nearprint_tasks::KeyJoin;
use schemars::JsonSchema;
use serde::Serialize;

use crate::machine;
use crate::resources::Resources;

/// The numbers of existing fingerprints that may be mapped together. The lists of a walk serve all rows of a piece, so
/// larger pieces make tables cheaper that allow differing bits. The last piece would have few rows if pieces were not of equal
/// size; a sixteenth more than a power of 2 keeps a little more than that in one piece.
const PIECE_ROWS: [usize; 7] = [17 << 16, 17 << 17, 17 << 18, 17 << 19, 17 << 20, 17 << 21, 17 << 22];
/// The numbers of pieces that may be decoded, mapped, or wait for their documents. Two keep the threads busy while documents
/// are fetched; one leaves more memory for tables.
const PIECES_UNDER_WAY: [usize; 2] = [2, 1];
/// The most rows of a piece beside which another is under way. Larger pieces take far longer to map than to decode, and
/// the columns of the next one are read meanwhile in any case.
const SHARED_PIECE_ROWS: usize = 17 << 20;

/// The nanoseconds that it takes to get the memory of a row of a piece from the system.
const TOUCH_NS: f64 = 8.0;
/// The nanoseconds of a core that are lost with each piece: threads wait for the last stripes of one, and for the next.
const PIECE_NS: f64 = 3e6;
/// The factor by which a size of pieces must be cheaper than a smaller one.
const WORTH_LARGER: f64 = 0.9;
/// The most values of the queries' own that are mapped at once with the tables of one slice.
pub(crate) const OWN_ROWS: usize = 5 << 20;

/// The factor by which a join of all queries at once may be slower than with all memory before it is done in slices.
const WORTH_SLICES: f64 = 1.25;
/// The largest number of slices, as a power of 2.
const MAX_LOG_SLICES: u32 = 6;
/// The nanoseconds of a core below which a join is not worth another plan.
const WORTH_NS: f64 = 1e9;
/// The nanoseconds that it takes to read one existing fingerprint again, about. It has 4.3 bytes, and a disk or bucket
/// gives 430 MB a second to all threads.
pub(crate) const READ_AGAIN_NS: f64 = 10.0;
/// The nanoseconds that it takes to read the sketch of an existing document, about. It has 33 bytes.
pub(crate) const READ_SKETCH_NS: f64 = 77.0;

/// The nanoseconds of a core that a join may take in any case, without tables or in slices.
const SHORT_NS: f64 = 60e9;
/// The factor by which a longer join may be slower than one with all memory.
pub(crate) const TOO_SLOW: f64 = 40.0;

/// A plan, its estimate, and the amounts that are in memory at once.
#[derive(Debug, Clone)]
pub struct JoinPlan {
    /// The tables of the queries.
    pub tables: TablePlan,
    /// The number of slices of the queries. Each slice is joined with all existing fingerprints, and with the queries
    /// from its first one on, before the next slice.
    pub n_slices: usize,
    /// The cost of all slices together. The memory is that of one slice, and of the values of all slices.
    pub(crate) cost: JoinCost,
    pub(crate) piece_rows: usize,
    pub(crate) pieces_under_way: usize,
    /// The bytes that count against a limit: all except those of one piece, which is held whatever the plan.
    pub(crate) counted_bytes: usize,
}

impl JoinPlan {
    /// Returns the cheapest plan for a workload. The pieces of the workload are chosen too: of at most its `piece_rows`, if
    /// they are not 0.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if only a scan or slices fit the memory of the
    /// workload, and they would take far longer than a join that has enough.
    pub(crate) fn choose(bits: u32, max_distance: u32, workload: &Workload) -> Result<Self> {
        let whole = Self::cheapest(bits, max_distance, workload, 1);
        if whole.cost.total_ns < WORTH_NS {
            return Ok(whole);
        }
        let roomy = Self::cheapest(bits, max_distance, &Workload { memory_bytes: usize::MAX, ..workload.clone() }, 1);
        if whole.cost.total_ns < WORTH_SLICES * roomy.cost.total_ns {
            return Ok(whole);
        }
        let mut chosen = whole;
        for n_slices in (1..=MAX_LOG_SLICES).map(|log| 1 << log) {
            let slices = Self::cheapest(bits, max_distance, workload, n_slices);
            if slices.counted_bytes <= workload.memory_bytes && slices.cost.total_ns < chosen.cost.total_ns {
                chosen = slices;
            }
        }
        let last_resort = chosen.tables.is_scan() || chosen.n_slices > 1;
        if !last_resort || chosen.cost.total_ns < SHORT_NS.max(TOO_SLOW * roomy.cost.total_ns) {
            return Ok(chosen);
        }
        let reason = format!(
            "the query batch and its tables take about {} bytes, {} are left of the limit for tables",
            roomy.counted_bytes, workload.memory_bytes
        );
        Err(Fault::resources(reason))
    }

    /// Returns the cheapest plan without slices, however slow it is.
    pub(crate) fn in_one_slice(bits: u32, max_distance: u32, workload: &Workload) -> Self {
        Self::cheapest(bits, max_distance, workload, 1)
    }

    fn cheapest(bits: u32, max_distance: u32, workload: &Workload, n_slices: usize) -> Self {
        let of = |piece_rows, pieces| Self::of_pieces(bits, max_distance, workload, n_slices, piece_rows, pieces);
        let sizes = PIECES_UNDER_WAY.into_iter().flat_map(|pieces| PIECE_ROWS.map(|rows| (rows, pieces)));
        let sizes = sizes.filter(|&(rows, pieces)| pieces == 1 || rows <= SHARED_PIECE_ROWS);
        sizes.skip(1).fold(of(PIECE_ROWS[0], PIECES_UNDER_WAY[0]), |best, (piece_rows, pieces)| {
            let other = of(piece_rows, pieces);
            let fits = other.counted_bytes <= workload.memory_bytes;
            if fits && other.cost.total_ns < WORTH_LARGER * best.cost.total_ns { other } else { best }
        })
    }

    fn of_pieces(
        bits: u32,
        max_distance: u32,
        workload: &Workload,
        n_slices: usize,
        piece_rows: usize,
        pieces_under_way: usize,
    ) -> Self {
        let piece_rows = if workload.piece_rows > 0 { piece_rows.min(workload.piece_rows) } else { piece_rows };
        // Slices of the queries are joined with each other in ranges that are no larger.
        let piece_rows = if workload.itself && n_slices > 1 { piece_rows.min(OWN_ROWS) } else { piece_rows };
        let workload = Workload { piece_rows, pieces_under_way, ..workload.clone() };
        let workload_rows = workload.held_rows();
        let slice = slice_of(&workload, n_slices);
        let tables = TablePlan::choose(bits, max_distance, &slice);
        let mut cost = JoinCost::of(&tables, &slice);
        cost.total_ns += as_f64((workload_rows * pieces_under_way) as u64) * TOUCH_NS;
        let n_pieces = workload.n_existing().div_ceil(workload_rows.max(1) as u64);
        cost.total_ns += as_f64(n_pieces) * PIECE_NS;
        let (n_existing, slice_queries) = (workload.n_existing(), slice.n_queries);
        let mut counted_bytes = cost.memory_bytes.saturating_sub(slice.least_bytes());
        if n_slices > 1 {
            let of_existing = JoinCost::of(&tables, &Workload { existing: workload.existing, ..slice });
            let n = as_f64(n_slices as u64);
            // All values are held, and the scratch memory of the slices before is still there when tables are sorted.
            let held = workload.n_queries.saturating_add(slice_queries).saturating_mul(8);
            counted_bytes = counted_bytes.saturating_add(held);
            let read_again = as_f64(n_existing) * as_f64(workload.threads as u64) * READ_AGAIN_NS;
            cost = JoinCost {
                candidates_per_fingerprint: n * of_existing.candidates_per_fingerprint,
                ns_per_fingerprint: n * of_existing.ns_per_fingerprint,
                memory_bytes: cost.memory_bytes.saturating_add(held),
                total_ns: n * cost.total_ns + (n - 1.0) * read_again,
            };
        }
        debug_assert!(cost.total_ns.is_finite() && cost.total_ns >= 0.0, "plans are compared by their costs");
        Self { tables, n_slices, cost, piece_rows: workload_rows, pieces_under_way, counted_bytes }
    }
}

/// Returns the work of one of `n_slices` slices of the queries. If the queries are joined with each other, a slice is
/// joined with the queries from its own first one on: on average, with half of all queries, and half of its own. All
/// values are held beside its tables.
fn slice_of(workload: &Workload, n_slices: usize) -> Workload {
    if n_slices == 1 {
        return workload.clone();
    }
    debug_assert!(n_slices > 0, "all queries at once are one slice");
    let mut existing = workload.existing.clone();
    if workload.itself {
        let n = workload.n_queries as u64;
        let n_rows = n / 2 + n.div_ceil(2 * n_slices as u64);
        existing.push(ExistingRun { n_rows, density_rows: n });
    }
    Workload {
        n_queries: workload.n_queries.div_ceil(n_slices),
        existing,
        itself: false,
        memory_bytes: workload.memory_bytes.saturating_sub(workload.n_queries.saturating_mul(8)),
        ..workload.clone()
    }
}

/// Returns a file of existing fingerprints as the planner sees it, with the density of the values in its range.
pub(crate) fn existing_run(parquet: &ParquetFile, bits: u32) -> ExistingRun {
    let n_rows = parquet.n_rows();
    let differing = parquet.bounds(FINGERPRINT).map_or(u64::MAX, |(min, max)| min ^ max);
    let shared = differing.leading_zeros().saturating_sub(u64::BITS - bits);
    let density_rows = if differing == 0 { n_rows } else { n_rows.saturating_mul(1 << shared.min(40)) };
    ExistingRun { n_rows, density_rows }
}

/// A key of a join, and the distance within which its values are near.
pub(crate) struct PlannedKey {
    pub(crate) of: KeyJoin,
    pub(crate) bits: u32,
    pub(crate) max_distance: u8,
}

/// Returns the keys of a join by the limits of a pair with an existing document and of a pair of the batch. If nothing but one
/// distance of fingerprints makes candidates, one key has everything.
pub(crate) fn keys_of(
    bits: u32,
    (verifier, own_verifier): (Verifier, Verifier),
    itself: bool,
    has_existing: bool,
) -> Vec<PlannedKey> {
    let key = |key, existing, itself, bits, max_distance| {
        let of = KeyJoin { key, existing, itself };
        PlannedKey { of, bits, max_distance }
    };
    let is_one = verifier.words == WordKeys::NONE && verifier.max_distance == own_verifier.max_distance;
    if is_one || !has_existing {
        let max_distance = if itself { own_verifier.max_distance } else { verifier.max_distance };
        return vec![key(Key::Fingerprint, has_existing, itself, bits, max_distance)];
    }
    let own = itself.then(|| key(Key::Fingerprint, false, true, bits, own_verifier.max_distance));
    let fingerprints = key(Key::Fingerprint, true, false, bits, verifier.max_distance);
    let WordKeys { n, max_distance } = verifier.words;
    let words = (0..n).map(|word| key(Key::Word(word), true, false, u64::BITS, max_distance));
    own.into_iter().chain([fingerprints]).chain(words).collect()
}

/// The sizes to plan for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// The number of existing fingerprints.
    pub existing_rows: u64,
    /// The number of distinct query fingerprints.
    pub query_rows: u64,
    /// The bits of a fingerprint, 32 or 64.
    pub bits: u32,
    /// The largest distance that counts.
    pub max_distance: u32,
    /// The number of sorted runs over which the existing fingerprints are spread equally.
    pub runs: u64,
    /// True if the queries are joined with each other.
    pub itself: bool,
}

/// The plan of a join of given sizes. The times hold for uniform fingerprints on this machine. Its speed is measured, so
/// they vary a little from one plan to the next; the plan itself does not.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlanSummary {
    /// The plan in a few words.
    pub strategy: String,
    /// The number of slices of the queries that are joined one after another, so that their tables fit the memory.
    pub n_parts: usize,
    /// The tables, in their order.
    pub tables: Vec<PlannedTable>,
    /// The number of existing fingerprints that are mapped at once.
    pub piece_rows: usize,
    /// The number of queries that an existing fingerprint is compared with.
    pub candidates_per_fingerprint: f64,
    /// The number of pairs within the distance among as many uniform fingerprints. They are not near-duplicates.
    pub chance_pairs: f64,
    /// The bytes of tables and mappers.
    pub memory_bytes: usize,
    /// The bytes of existing fingerprints that are read, once for each slice.
    pub fingerprint_bytes: f64,
    /// The reads of verification by sketches for the pairs by chance, if there is one.
    pub sketches: PlannedSketches,
    /// The number of threads.
    pub threads: usize,
    /// The instructions in use.
    pub kernel: &'static str,
    /// The time that this machine takes for what the cost model expects to take 1.
    pub measured_over_model: f64,
    /// The nanoseconds that it takes to read and map one existing fingerprint, on one core.
    pub estimated_ns_per_fingerprint: f64,
    /// The share of these nanoseconds that reading and decoding take.
    pub decode_ns_per_fingerprint: f64,
    /// The seconds of the map phase.
    pub estimated_map_seconds: f64,
    /// The seconds of the whole join: the map phase, reading and grouping the queries, and the start of the process.
    pub estimated_seconds: f64,
}

/// The reading of sketches that a join with `max_sketch_distance` does for pairs that are near by chance. True
/// near-duplicates come on top: each costs a page at most.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlannedSketches {
    /// The number of pairs of a query and an existing fingerprint within the distance, of uniform fingerprints.
    pub candidates: f64,
    /// The number of pages in which their sketches are.
    pub pages: f64,
    /// The bytes that are read: these pages, short gaps between them, and page indexes.
    pub bytes: f64,
}

impl PlannedSketches {
    /// Returns the reading for `candidates` that are spread evenly over `n_existing` rows.
    fn of(candidates: f64, n_existing: u64) -> Self {
        if n_existing == 0 {
            return Self { candidates, pages: 0.0, bytes: 0.0 };
        }
        let hit = |n: f64| n * -(-candidates / n).exp_m1();
        let n_pages = (as_f64(n_existing) / PAGE_SKETCHES).ceil();
        let n_row_groups = (as_f64(n_existing) / ROW_GROUP_ROWS).ceil();
        let pages = hit(n_pages);
        // Gaps of up to 3 pages between two pages are read along.
        let (share, gap) = (pages / n_pages, 1.0 - pages / n_pages);
        let along = n_pages * share * share * (1..=3).map(|n| f64::from(n) * gap.powi(n)).sum::<f64>();
        let bytes = (pages + along) * SKETCH_PAGE_BYTES + hit(n_row_groups) * SKETCH_INDEX_BYTES;
        Self { candidates, pages, bytes }
    }
}

/// The rows of a page of sketches, its bytes with its header, the rows of a row group, and the bytes of the page index of
/// its sketches, as docs/store-format.md gives them.
const PAGE_SKETCHES: f64 = 128.0;
const SKETCH_PAGE_BYTES: f64 = 4_126.0;
const ROW_GROUP_ROWS: f64 = (1 << 20) as f64;
const SKETCH_INDEX_BYTES: f64 = 110_000.0;

/// The factor by which files of fingerprints are larger than the entropy of sorted values.
const OVER_ENTROPY: f64 = 1.05;

/// Returns the bytes of `n` uniform fingerprints in sorted runs of equal size.
fn fingerprint_bytes(n: u64, runs: u64, bits: u32) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let entropy = f64::from(bits) - (as_f64(n) / as_f64(runs.max(1))).max(1.0).log2() + std::f64::consts::LOG2_E;
    as_f64(n) * OVER_ENTROPY * entropy.clamp(0.0, f64::from(bits)) / 8.0
}

/// One table of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedTable {
    /// The width of the leading block, in bits.
    pub prefix_bits: u32,
    /// The lowest bit of the block.
    pub low_bit: u32,
    /// The number of bits of the block that may differ.
    pub max_prefix_distance: u32,
}

/// The nanoseconds that it takes to read a fingerprint from the page cache, decode it and hand it to the map, about. A
/// join of few queries takes this for each.
const DECODE_NS: f64 = 4.0;

/// The nanoseconds that it takes to read a query, find its equals and put it into the tables, about, on any number of
/// threads. evidence/benchmarks has the measurements.
pub(crate) const QUERY_NS: f64 = 150.0;

/// The nanoseconds between the start of a process and its first task, and between its last task and its end.
const PROCESS_NS: f64 = 30e6;

/// Plans a join without doing it.
///
/// ```
/// use nearprint_pipeline::{PlanRequest, Resources, plan};
///
/// let request = PlanRequest {
///     existing_rows: 100_000_000,
///     query_rows: 1_000_000,
///     bits: 64,
///     max_distance: 3,
///     runs: 30,
///     itself: true,
/// };
/// let plan = plan(&request, &Resources { threads: Some(8), ..Resources::default() })?;
/// assert_eq!((plan.threads, plan.n_parts), (8, 1));
/// assert!(!plan.tables.is_empty() && plan.chance_pairs < 1.0);
/// # Ok::<(), nearprint_fault::Fault>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the kernel does not exist.
/// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if it cannot run here.
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the limit leaves no memory for tables.
pub fn plan(request: &PlanRequest, resources: &Resources) -> Result<PlanSummary> {
    let plan = planned(request, resources)?;
    let threads = resources.n_threads();
    let tables: Vec<PlannedTable> = plan.tables.tables().iter().map(PlannedTable::of).collect();
    let kernel = resources.join_kernel()?;
    let measured_over_model = machine::measured_over_model(kernel, threads)?;
    let decode_ns = if request.existing_rows == 0 { 0.0 } else { DECODE_NS * as_f64(plan.n_slices as u64) };
    let map_seconds = map_seconds(&plan, request, threads, measured_over_model);
    let of_queries = if request.itself { as_f64(request.query_rows) / 2.0 } else { 0.0 };
    let pairs = as_f64(request.query_rows) * (as_f64(request.existing_rows) + of_queries);
    let chance = nearprint_join::chance_of_near(request.bits, request.max_distance);
    let candidates = as_f64(request.query_rows) * as_f64(request.existing_rows) * chance;
    Ok(PlanSummary {
        strategy: strategy(&plan.tables, plan.n_slices),
        n_parts: plan.n_slices,
        tables,
        piece_rows: plan.piece_rows,
        candidates_per_fingerprint: plan.cost.candidates_per_fingerprint,
        chance_pairs: pairs * chance,
        memory_bytes: plan.cost.memory_bytes,
        fingerprint_bytes: as_f64(plan.n_slices as u64)
            * fingerprint_bytes(request.existing_rows, request.runs, request.bits),
        sketches: PlannedSketches::of(candidates, request.existing_rows),
        threads,
        kernel: kernel.name().name(),
        measured_over_model,
        estimated_ns_per_fingerprint: measured_over_model * plan.cost.ns_per_fingerprint + decode_ns,
        decode_ns_per_fingerprint: decode_ns,
        estimated_map_seconds: map_seconds,
        estimated_seconds: map_seconds + seconds_around(request),
    })
}

/// Returns the seconds of a join that has some keys, as [`plan`] estimates them for one, on a machine of known speed.
///
/// # Errors
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the limit leaves no memory for tables.
pub(crate) fn estimated_seconds(keys: &[PlanRequest], resources: &Resources, measured_over_model: f64) -> Result<f64> {
    let seconds_of = |key: &PlanRequest| {
        let plan = planned(key, resources)?;
        Ok(map_seconds(&plan, key, resources.n_threads(), measured_over_model))
    };
    let of_keys: f64 = keys.iter().map(seconds_of).sum::<Result<f64>>()?;
    // The queries are read once, whatever the number of keys.
    Ok(of_keys + keys.first().map_or(0.0, seconds_around))
}

fn map_seconds(plan: &JoinPlan, request: &PlanRequest, threads: usize, measured_over_model: f64) -> f64 {
    let decode_ns = DECODE_NS * as_f64(plan.n_slices as u64) * as_f64(request.existing_rows);
    (measured_over_model * plan.cost.total_ns + decode_ns) / 1e9 / as_f64(threads as u64)
}

fn seconds_around(request: &PlanRequest) -> f64 {
    (PROCESS_NS + QUERY_NS * as_f64(request.query_rows)) / 1e9
}

/// Returns the tables and pieces for given sizes.
pub fn planned(request: &PlanRequest, resources: &Resources) -> Result<JoinPlan> {
    let workload = Workload {
        n_queries: in_memory(request.query_rows),
        existing: request.existing(),
        piece_rows: 0,
        itself: request.itself,
        memory_bytes: resources.memory_limit.map_or(4 << 30, |limit| limit / 2),
        threads: resources.n_threads(),
        pieces_under_way: 0,
        kernel: resources.join_kernel()?,
    };
    JoinPlan::choose(request.bits, request.max_distance, &workload)
}

impl PlanRequest {
    /// Returns the sizes of the join in each of its keys, if these are its sizes and the limits of its pairs.
    #[must_use]
    pub fn of_keys(&self, verifier: Verifier, own_verifier: Verifier) -> Vec<Self> {
        let keys = keys_of(self.bits, (verifier, own_verifier), self.itself, self.existing_rows > 0);
        let sizes = |PlannedKey { of, bits, max_distance }: PlannedKey| Self {
            existing_rows: if of.existing { self.existing_rows } else { 0 },
            bits,
            max_distance: max_distance.into(),
            itself: of.itself,
            ..self.clone()
        };
        keys.into_iter().map(sizes).collect()
    }

    /// Returns the runs of existing fingerprints.
    pub(crate) fn existing(&self) -> Vec<ExistingRun> {
        let runs = self.runs.max(1);
        let of_run = |i: u64| self.existing_rows / runs + u64::from(i < self.existing_rows % runs);
        (0..runs).map(|i| ExistingRun { n_rows: of_run(i), density_rows: of_run(i) }).collect()
    }
}

impl PlannedTable {
    pub(crate) fn of(table: &nearprint_join::Table) -> Self {
        Self {
            prefix_bits: table.block().width,
            low_bit: table.block().low,
            max_prefix_distance: table.max_prefix_distance(),
        }
    }
}

/// Describes a plan in a few words.
pub fn strategy(plan: &TablePlan, n_slices: usize) -> String {
    let tables = match plan.tables() {
        _ if plan.is_scan() => "scan: every fingerprint is compared with every query".to_owned(),
        [_] => "prefix walk: sorted runs are walked as tries, with the queries that can still be near".to_owned(),
        tables => format!("{} permuted tables, each met in its own order", tables.len()),
    };
    if n_slices == 1 { tables } else { format!("{tables}; the queries in {n_slices} slices, one after another") }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn as_f64(n: u64) -> f64 {
    n as f64
}
