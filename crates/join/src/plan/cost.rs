//! The cost model by which table plans are ranked.

use crate::kernel::{Kernel, KernelName};
use crate::plan::near::n_near_prefixes;
use crate::plan::permutation::Block;
use crate::plan::table_plan::{Table, TablePlan};
use crate::probe::fan::FAN_BITS;
use crate::probe::walk::{STEP_BITS, Walk};

/// The approximate number of values in a range of [`Queries::map_self`](crate::Queries::map_self) for which the cost of
/// a plan is estimated.
pub const SELF_ROWS: usize = 1 << 16;

/// The number of rows of the smallest pieces of a large join.
const LEAST_PIECE_ROWS: usize = 1 << 20;
/// The bytes of a row of a piece: the fingerprint, and at most as much as it was read.
const PIECE_ROW_BYTES: usize = 16;

/// The sets of fingerprints that are to be joined, and the memory that the join may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// The number of distinct query fingerprints.
    pub n_queries: usize,
    /// The existing fingerprints.
    pub existing: Vec<ExistingRun>,
    /// The number of existing fingerprints in a piece, which all threads map together.
    pub piece_rows: usize,
    /// The queries are joined with each other.
    pub itself: bool,
    /// The bytes that the tables and the mapping may take in addition to [`least_bytes`](Self::least_bytes).
    pub memory_bytes: usize,
    /// The number of threads that map a piece.
    pub threads: usize,
    /// The number of pieces that are in memory: the one that is mapped, and those that are read or wait for their
    /// documents.
    pub pieces_under_way: usize,
    /// The kernel that maps.
    pub kernel: Kernel,
}

/// Existing fingerprints in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExistingRun {
    /// The number of fingerprints.
    pub n_rows: u64,
    /// The number of fingerprints there would be if the run covered all values with the same density; it is more than
    /// `n_rows` if the run covers only a part of the range of values.
    pub density_rows: u64,
}

impl Workload {
    /// Returns the bytes that any plan takes: one piece of the smallest size.
    #[must_use]
    pub fn least_bytes(&self) -> usize {
        self.held_rows().min(LEAST_PIECE_ROWS).saturating_mul(PIECE_ROW_BYTES)
    }

    /// Returns the bytes of a piece: its fingerprints, and a copy of them as they were read.
    fn piece_bytes(&self) -> usize {
        self.held_rows().saturating_mul(PIECE_ROW_BYTES)
    }

    /// Returns the number of rows in each of the fewest equal pieces that have at most `piece_rows`.
    #[must_use]
    pub fn held_rows(&self) -> usize {
        // Where an address has 32 bits, more rows than it can count make pieces as large as one can be.
        let n_existing = usize::try_from(self.n_existing()).unwrap_or(usize::MAX);
        let rows = n_existing.div_ceil(n_existing.div_ceil(self.piece_rows.max(1)).max(1));
        debug_assert!(rows <= self.piece_rows.max(1), "a piece has no more rows than one may have");
        rows
    }

    /// Returns whether the memory limit allows a plan of this cost.
    #[must_use]
    pub fn fits(&self, cost: &JoinCost) -> bool {
        cost.memory_bytes.saturating_sub(self.least_bytes()) <= self.memory_bytes
    }

    /// Returns the number of existing fingerprints of all runs.
    #[must_use]
    pub fn n_existing(&self) -> u64 {
        self.existing.iter().map(|run| run.n_rows).sum()
    }
}

/// The estimated cost of a join of uniform fingerprints; times are in nanoseconds of one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JoinCost {
    /// The number of queries that each existing fingerprint is compared with.
    pub candidates_per_fingerprint: f64,
    /// The time to map one existing fingerprint.
    pub ns_per_fingerprint: f64,
    /// The memory, in bytes, of the tables and of the pieces that are mapped.
    pub memory_bytes: usize,
    /// The time to build the tables, to map the existing fingerprints, and to join the queries with each other.
    pub total_ns: f64,
}

/// The times of the steps of a map, relative to that of sorting, which stands for 6 ns. Only their proportions matter to a
/// choice.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StepTimes {
    /// To move a fingerprint to its place in another order.
    pub sort: f64,
    /// To pass over a fingerprint without a comparison.
    pub pass: f64,
    /// To select a list: for each call.
    pub select_call: f64,
    /// To select a list: for each eight of its queries.
    pub select_vector: f64,
    /// To sort a query of a fan.
    pub fan_query: f64,
    /// To find a range of the queries of a fan.
    pub fan_range: f64,
    /// To copy a query of a fan.
    pub fan_copy: f64,
    /// To compare a group of two sorted sets, or a leaf: for each.
    pub leaf_call: f64,
    /// To compare a group: for each sixteen of its pairs.
    pub pair_vector: f64,
    /// To compare a leaf: for each 32 of its queries.
    pub lanes: f64,
    /// To compare a leaf: for each 32 of its pairs and each byte that decides.
    pub lanes_byte: f64,
}

impl StepTimes {
    /// Returns the times by which the plans that are chosen for this kernel are nearest to the fastest ones, over half of the
    /// sizes and distances in evidence/benchmarks. The scalar kernel and NEON, for which none were measured, have those of AVX2.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        match kernel.name() {
            KernelName::Avx512 => Self {
                sort: 6.0,
                pass: 1.215,
                select_call: 6.617,
                select_vector: 0.822,
                fan_query: 3.711,
                fan_range: 0.842,
                fan_copy: 0.541,
                leaf_call: 8.172,
                pair_vector: 0.655,
                lanes: 5.564,
                lanes_byte: 0.273,
            },
            KernelName::Avx2 | KernelName::Neon | KernelName::Scalar => Self {
                sort: 6.0,
                pass: 0.471,
                select_call: 7.72,
                select_vector: 1.056,
                fan_query: 7.502,
                fan_range: 0.858,
                fan_copy: 2.317,
                leaf_call: 3.001,
                pair_vector: 1.88,
                lanes: 2.608,
                lanes_byte: 0.703,
            },
        }
    }
}

/// Returns the number of bytes that are compared first if so many bits below a prefix may differ.
fn compared_bytes(max_rest: u32) -> f64 {
    match max_rest {
        0..=3 => 3.0,
        4..=6 => 4.0,
        7..=9 => 5.0,
        _ => 6.0,
    }
}

/// The cost of a step and the number of pairs that it compares.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    ns: f64,
    pairs: f64,
}

impl JoinCost {
    /// Estimates the cost of a plan.
    #[must_use]
    pub fn of(plan: &TablePlan, workload: &Workload) -> Self {
        Self::with(plan, workload, &StepTimes::of(workload.kernel))
    }

    /// Estimates the cost of a plan whose steps take these times. The nanoseconds are a sum of products, of the time of each step
    /// and of how often it is taken: this is what a fit needs.
    #[must_use]
    pub fn with(plan: &TablePlan, workload: &Workload, times: &StepTimes) -> Self {
        let timed = Timed { plan, times };
        let m = as_f64(workload.n_queries as u64);
        let mut mapped = Step::default();
        let rows = workload.held_rows().max(1) as u64;
        for run in workload.existing.iter().filter(|run| run.n_rows > 0) {
            let pieces = as_f64(run.n_rows) / as_f64(rows);
            let piece = timed.piece(as_f64(rows), m, (run.density_rows / rows).checked_ilog2().unwrap_or(0));
            mapped.add(Step { ns: piece.ns * pieces, pairs: piece.pairs * pieces });
        }
        let n_permuted = plan.tables().iter().filter(|t| !t.permutation.is_identity()).count();
        let mut total_ns = mapped.ns + as_f64(n_permuted as u64) * m * times.sort;
        if workload.itself {
            total_ns += plan.tables().iter().map(|table| timed.self_ns(table, m)).sum::<f64>();
        }
        let n_existing = as_f64(workload.n_existing().max(1));
        Self {
            candidates_per_fingerprint: mapped.pairs / n_existing,
            ns_per_fingerprint: mapped.ns / n_existing,
            memory_bytes: workload
                .n_queries
                .saturating_mul(plan.tables().len() * 8)
                .saturating_add(plan.scratch_bytes(workload)),
            total_ns,
        }
    }
}

impl TablePlan {
    /// Returns the plan with the least estimated time among those whose tables fit the workload's memory. If none fits,
    /// returns [`scan`](Self::scan), which is the smallest.
    #[must_use]
    pub fn choose(bits: u32, max_distance: u32, workload: &Workload) -> Self {
        Self::alternatives(bits, max_distance)
            .map(|plan| (JoinCost::of(&plan, workload), plan))
            .filter(|(cost, _)| workload.fits(cost))
            .min_by(|(a, _), (b, _)| a.total_ns.total_cmp(&b.total_ns))
            .map_or_else(|| Self::scan(bits, max_distance), |(_, plan)| plan)
    }

    /// Returns the bytes that are held in addition to the tables. While pieces are mapped, these are the pieces
    /// themselves, a permuted copy of the one that is mapped and, for each thread, the lists of a walk. Before that, it is
    /// the spare that sorting the tables needs. The larger of the two counts.
    fn scratch_bytes(&self, workload: &Workload) -> usize {
        let copies = if self.tables().len() > 1 { workload.held_rows().saturating_mul(8) } else { 0 };
        let lists = if self.is_scan() { 0 } else { self.list_bytes(workload) };
        let mapped = copies.saturating_add(lists.saturating_mul(workload.threads));
        let sorting = if self.tables().len() > 1 { workload.n_queries.saturating_mul(8) } else { 0 };
        mapped.saturating_add(workload.piece_bytes().saturating_mul(workload.pieces_under_way)).max(sorting)
    }

    /// Returns the bytes of the lists: the queries that can be near to anything in a piece, three times, as they are
    /// selected and on the way down from there. If the queries are joined with each other, a query takes at most 30
    /// bytes, as measured with 2^24 of them.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate, of at most all queries")]
    fn list_bytes(&self, workload: &Workload) -> usize {
        let rows = workload.held_rows().max(1) as u64;
        let of_run = |run: &ExistingRun| run.density_rows / rows;
        let share = |pieces: u64| {
            let root = pieces.checked_ilog2().unwrap_or(0).min(self.bits());
            self.tables().iter().map(|table| self.narrowed(table, root)).fold(0.0, f64::max)
        };
        let of_runs = workload.existing.iter().filter(|run| run.n_rows > 0).map(of_run);
        let widest = of_runs.min().map_or(0.0, share).min(1.0);
        let itself =
            if workload.itself { (8.0 + 64.0 * share((workload.n_queries / SELF_ROWS) as u64)).min(30.0) } else { 0.0 };
        (as_f64(workload.n_queries as u64) * itself.max(24.0 * widest)) as usize
    }
}

impl Step {
    fn add(&mut self, other: Self) {
        self.ns += other.ns;
        self.pairs += other.pairs;
    }
}

impl TablePlan {
    /// Returns the share of uniform queries that can be near to anything in a piece whose fingerprints agree in `root`
    /// leading bits.
    fn narrowed(&self, table: &Table, root: u32) -> f64 {
        let allowed = if table.permutation.is_identity() && root <= table.block.width {
            table.max_prefix_distance
        } else {
            self.max_distance()
        };
        if self.is_scan() { 1.0 } else { n_near_prefixes(root, allowed) / 2f64.powi(root.cast_signed()) }
    }
}

/// A plan, and the times of its steps.
struct Timed<'a> {
    plan: &'a TablePlan,
    times: &'a StepTimes,
}

impl Timed<'_> {
    /// Estimates a piece of `n` existing fingerprints that agree in `root` leading bits.
    fn piece(&self, n: f64, m: f64, root: u32) -> Step {
        let root = root.min(self.plan.bits());
        let mut all = Step::default();
        for (i, table) in self.plan.tables().iter().enumerate() {
            all.ns += m / 8.0 * self.times.select_vector;
            if !table.permutation.is_identity() {
                all.ns += n * self.times.sort;
            }
            all.add(self.step(table, n, m * self.plan.narrowed(table, root), if i == 0 { root } else { 0 }));
        }
        all
    }

    /// Estimates the time to join `m` queries with each other in one table. Merged groups compare every pair once. A
    /// walk selects, for each range of the queries, all queries that are near to any in the range. It compares them with the
    /// later half of all, on average; the estimate has all of them, as when the choice of plans was measured.
    fn self_ns(&self, table: &Table, m: f64) -> f64 {
        if table.max_prefix_distance == 0 {
            return self.step(table, m / 2.0, m, 0).ns;
        }
        let ranges = m / as_f64(SELF_ROWS as u64);
        let narrows = ranges.log2() > f64::from(self.plan.max_distance());
        let selecting = if narrows { ranges * m / 8.0 * self.times.select_vector } else { 0.0 };
        self.step(table, m, m, 0).ns + selecting
    }

    /// Estimates the join of `n` fingerprints in one table with `m` queries that were selected for the `root` leading
    /// bits.
    fn step(&self, table: &Table, n: f64, m: f64, root: u32) -> Step {
        if table.max_prefix_distance == 0 {
            return merge_step(self.times, table.block, n, m, root, self.plan.max_distance());
        }
        let walk = Walk {
            kernel: Kernel::SCALAR,
            bits: self.plan.bits(),
            prefix_bits: table.block.width,
            max_prefix_distance: table.max_prefix_distance,
            max_distance: self.plan.max_distance(),
        };
        walk_step(self.times, &walk, n, m, root)
    }
}

fn merge_step(times: &StepTimes, block: Block, n: f64, m: f64, root: u32, max_distance: u32) -> Step {
    let bits = merge_bits(block.width, root, rows(n), rows(m));
    let groups = 2f64.powi((bits - root.min(bits)).cast_signed());
    let pairs = n * m / groups;
    let occupied = groups.min(n).min(m);
    let (long, short) = (n.max(m) / groups, (n.min(m) / groups).max(1.0));
    let compared = if max_distance <= 6 {
        (long / 16.0).ceil().max(1.0) * short * times.pair_vector
    } else {
        lanes_ns(times, long, short, max_distance)
    };
    Step { ns: (n + m) * times.pass + occupied * (times.leaf_call + compared), pairs }
}

/// Estimates the time to compare `n_lanes` with `n_rows`, of which at most `max_rest` bits of a rest differ in a pair.
fn lanes_ns(times: &StepTimes, n_lanes: f64, n_rows: f64, max_rest: u32) -> f64 {
    (n_lanes / 32.0).ceil().max(1.0) * (times.lanes + n_rows * compared_bytes(max_rest) * times.lanes_byte)
}

fn walk_step(times: &StepTimes, walk: &Walk, n: f64, m: f64, root: u32) -> Step {
    let bottom = walk.leaf_depth(root, walk.bits, rows(n), rows(m));
    let fan = bottom - FAN_BITS.min(bottom - root);
    let len = |depth: u32| m * walk.list_share(depth) / walk.list_share(root);
    let nodes = |depth: u32| 2f64.powi((depth - root).cast_signed()).min(n);
    let mut ns = n * times.pass;
    let mut depth = fan;
    while depth > root {
        let above = depth - STEP_BITS.min(depth - root);
        ns += nodes(depth) * (times.select_call + (len(above) / 8.0).ceil() * times.select_vector);
        depth = above;
    }
    let leaves = nodes(bottom).max(1.0);
    let (n_queries, n_rows) = (len(bottom), n / leaves);
    let limit = walk.limit(bottom);
    let ranges: f64 = (0..=limit.min(fan))
        .map(|above| {
            let share = n_prefixes_at(fan, above) / n_near_prefixes(fan, limit);
            n_near_prefixes(bottom - fan, limit - above).min(len(fan) * share)
        })
        .sum();
    ns += nodes(fan) * len(fan) * times.fan_query;
    ns += leaves * (ranges * times.fan_range + n_queries * times.fan_copy);
    ns +=
        leaves * n_queries.min(1.0) * (times.leaf_call + lanes_ns(times, n_queries, n_rows, walk.max_distance - limit));
    Step { ns, pairs: n * n_queries }
}

/// Returns the number of prefixes that differ from a given one in exactly `distance` bits.
fn n_prefixes_at(bits: u32, distance: u32) -> f64 {
    n_near_prefixes(bits, distance) - distance.checked_sub(1).map_or(0.0, |nearer| n_near_prefixes(bits, nearer))
}

/// The approximate number of rows of a merged group: a vector of 32-bit halves.
const GROUP_ROWS: usize = 16;

/// Returns the number of leading bits by which two sorted sets are merged: those of the block, as long as they leave
/// more than a few rows on both sides, beyond the `root` bits in which all rows agree.
pub(crate) fn merge_bits(block_width: u32, root: u32, n: usize, m: usize) -> u32 {
    let useful = root + (n.max(m) / GROUP_ROWS).checked_ilog2().unwrap_or(0);
    useful.min(block_width)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
fn rows(n: f64) -> usize {
    n as usize
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn as_f64(n: u64) -> f64 {
    n as f64
}
