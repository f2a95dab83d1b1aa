//! The tables of the query fingerprints, each sorted by another order of their bits, and the join of sorted runs with
//! them.

use nearprint_fingerprint::hamming_distance;
use std::ops::Range;

use crate::kernel::{Kernel, NearPrefix, Width};
use crate::plan::cost::{ExistingRun, JoinCost, StepTimes, Workload, merge_bits};
use crate::plan::permutation::{common_prefix, leading_ones, ones};
use crate::plan::table_plan::{Table, TablePlan};
use crate::probe::radix_sort::{sort, sort_by_leading_bits};
use crate::probe::walk::{Leaf, Lists, Walk, for_each_group};

/// The largest number of pairs of a leaf that are simply compared. A larger leaf is joined by tables of its own over
/// the remaining bits, if that is cheaper: a skewed batch takes more time, but no probe ever scans the whole batch.
const COMPARED_PAIRS: usize = 1 << 26;

/// The largest number of leading bits that rows and runs are sorted by: two passes. Groups and leaves are no narrower.
pub(crate) const ROW_BITS: u32 = 22;

/// The number of rows that a list is selected from at a time.
const SELECTED_ROWS: usize = 1 << 16;

/// One table for each block of a plan.
///
/// Invariant: a pair within the plan's distance is reported exactly once, from the first table in whose block it is
/// near enough.
#[derive(Debug)]
pub(crate) struct PermutedTables<F> {
    plan: TablePlan,
    kernel: Kernel,
    /// The queries in each table's order, ascending in the bits of the plan. The first table, whose order is the
    /// queries' own, ascends in all of these bits; the others ascend in the leading [`ROW_BITS`].
    rows: Vec<Vec<F>>,
}

/// The memory that mapping needs in addition to the tables; it is kept from piece to piece.
#[derive(Debug)]
pub(crate) struct Scratch<F> {
    pub(crate) run: Vec<F>,
    pub(crate) spare: Vec<F>,
    list: Vec<F>,
    pub(crate) lists: Lists<F>,
    pub(crate) starts: Vec<u32>,
}

impl<F> Default for Scratch<F> {
    fn default() -> Self {
        Self { run: Vec::new(), spare: Vec::new(), list: Vec::new(), lists: Lists::default(), starts: Vec::new() }
    }
}

impl<F: Width> PermutedTables<F> {
    /// Builds the tables. `values` are distinct and ascend in the lowest `plan.bits()` bits; they become the first table.
    /// Above these bits they may differ: the queries of a hot leaf are near its prefix and need not share it.
    pub(crate) fn build(values: Vec<F>, plan: TablePlan, kernel: Kernel) -> Self {
        let mut spare = Vec::new();
        let low = ones::<F>(plan.bits());
        debug_assert!(values.is_sorted_by_key(|&v| v & low), "the first table is in the order of the values");
        let others = &plan.tables()[1..];
        let permuted: Vec<Vec<F>> = others.iter().map(|table| Self::rows_of(&values, table, &mut spare)).collect();
        let rows = std::iter::once(values).chain(permuted).collect();
        Self { plan, kernel, rows }
    }

    fn rows_of(values: &[F], table: &Table, spare: &mut Vec<F>) -> Vec<F> {
        let mut rows: Vec<F> = values.iter().map(|&v| table.permutation.permute(v)).collect();
        let bits = table.permutation.bits();
        sort_by_leading_bits(&mut rows, spare, bits, ROW_BITS.min(bits));
        rows
    }

    pub(crate) fn plan(&self) -> &TablePlan {
        &self.plan
    }

    pub(crate) fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Returns the queries, in ascending order.
    pub(crate) fn values(&self) -> &[F] {
        &self.rows[0]
    }

    /// Returns the queries in the order of table `t`.
    pub(crate) fn rows(&self, t: usize) -> &[F] {
        &self.rows[t]
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.rows.iter().map(|rows| rows.len() * size_of::<F>()).sum()
    }

    /// Calls `found(fingerprint, query)` once for every pair within the distance of a fingerprint of `run`, which
    /// ascends in the plan's bits, and a query.
    pub(crate) fn map(&self, run: &[F], scratch: &mut Scratch<F>, found: &mut dyn FnMut(F, F)) {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return };
        let bits = self.plan.bits();
        debug_assert!(
            run.is_sorted_by_key(|&value| value & ones::<F>(bits)),
            "the first and the last value bound the bits that all share"
        );
        let root = leading_ones::<F>(bits, common_prefix(first, last, bits));
        for (t, table) in self.plan.tables().iter().enumerate() {
            let mut permuted = std::mem::take(&mut scratch.run);
            let (run, sorted_bits) = if table.permutation.is_identity() {
                (run, bits)
            } else {
                permuted.clear();
                permuted.extend(run.iter().map(|&f| table.permutation.permute(f)));
                let sorted_bits = self.sorted_bits(table, permuted.len());
                sort_by_leading_bits(&mut permuted, &mut scratch.spare, bits, sorted_bits);
                (permuted.as_slice(), sorted_bits)
            };
            let (prefix, mask) = (table.permutation.permute(first), table.permutation.permute(root));
            self.join_table(t, (run, &self.rows[t]), sorted_bits, (prefix, mask), scratch, found);
            scratch.run = permuted;
        }
    }

    /// Calls `found(a, b)` once for every pair of queries within the distance, if one of the two stands in `range`: the later one
    /// in the order of a table that is merged, the smaller one in that of a table that is walked. Ranges that together cut the
    /// rows report every pair once. After each table, `probed` is called with a share of the rows of the range.
    pub(crate) fn map_self(
        &self,
        range: Range<usize>,
        scratch: &mut Scratch<F>,
        probed: &mut dyn FnMut(usize),
        found: &mut dyn FnMut(F, F),
    ) {
        let n_tables = self.plan.tables().len();
        for (t, table) in self.plan.tables().iter().enumerate() {
            if table.max_prefix_distance == 0 {
                self.merge_self(t, &range, &mut scratch.starts, &mut |a, b| self.report(t, a, b, found));
            } else {
                self.walk_self(t, &range, scratch, found);
            }
            probed((t + 1) * range.len() / n_tables - t * range.len() / n_tables);
        }
    }

    /// Compares every two rows of a group of which one is in `range`, and the other one stands before it.
    fn merge_self(&self, t: usize, range: &Range<usize>, starts: &mut Vec<u32>, found: &mut dyn FnMut(F, F)) {
        let (rows, bits) = (&self.rows[t], self.plan.bits());
        let depth = merge_bits(self.plan.tables()[t].block.width, 0, rows.len(), rows.len()).min(ROW_BITS);
        let mask = leading_ones::<F>(bits, depth);
        let mut at = range.start;
        for_each_group(self.kernel, &rows[range.clone()], mask, starts, &mut |group: &[F]| {
            if at == range.start {
                let before = &rows[..at];
                let before = &before[before.partition_point(|&row| row & mask < group[0] & mask)..];
                self.join_leaf(group, before, &[], depth, found);
            }
            at += group.len();
            self.join_group(group, depth, found);
        });
    }

    fn walk_self(&self, t: usize, range: &Range<usize>, scratch: &mut Scratch<F>, found: &mut dyn FnMut(F, F)) {
        let (rows, bits) = (self.rows[t].as_slice(), self.plan.bits());
        let run = &rows[range.clone()];
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return };
        let sorted_bits = if self.plan.tables()[t].permutation.is_identity() { bits } else { ROW_BITS.min(bits) };
        let root = leading_ones::<F>(bits, common_prefix(first, last, bits).min(sorted_bits));
        let sorted = leading_ones::<F>(bits, sorted_bits);
        debug_assert!(
            run.iter().all(|&row| (row ^ first) & !ones::<F>(bits) == F::ZERO),
            "values are told by their bits"
        );
        let order = self.plan.tables()[t].permutation;
        // The smaller of two in the order of the table finds the pair, so those before the run are not needed. In the run any
        // two meet twice, and each meets itself.
        let later = &rows[rows.partition_point(|&row| row & sorted < first & sorted)..];
        self.join_table(t, (run, later), sorted_bits, (first, root), scratch, &mut |a, b| {
            if order.permute(a) < order.permute(b) {
                found(a, b);
            }
        });
    }

    /// Returns the number of leading bits that a run of `n` fingerprints must be sorted by.
    fn sorted_bits(&self, table: &Table, n: usize) -> u32 {
        let m = self.rows[0].len();
        let needed = if table.max_prefix_distance == 0 {
            merge_bits(table.block.width, 0, n, m)
        } else {
            self.walk(table).leaf_depth(0, self.plan.bits(), n, m)
        };
        needed.min(ROW_BITS)
    }

    pub(crate) fn merge(&self, table: &Table) -> Merge {
        Merge { kernel: self.kernel, bits: self.plan.bits(), block_width: table.block.width }
    }

    pub(crate) fn walk(&self, table: &Table) -> Walk {
        Walk {
            kernel: self.kernel,
            bits: self.plan.bits(),
            prefix_bits: table.block.width,
            max_prefix_distance: table.max_prefix_distance,
            max_distance: self.plan.max_distance(),
        }
    }

    /// Joins a run in the order of table `t` with those of some rows of the table that differ from `root.0` in few of the bits
    /// `root.1`. All fingerprints of the run agree in these bits.
    fn join_table(
        &self,
        t: usize,
        (run, rows): (&[F], &[F]),
        sorted_bits: u32,
        root: (F, F),
        scratch: &mut Scratch<F>,
        found: &mut dyn FnMut(F, F),
    ) {
        let table = &self.plan.tables()[t];
        let mut list = std::mem::take(&mut scratch.list);
        let rows = self.near_root(rows, root, &mut list);
        let mut leaf = |run: &[F], queries: &[F], distances: &[u8], depth: u32| {
            self.join_leaf(run, queries, distances, depth, &mut |a, b| self.report(t, a, b, found));
        };
        if table.max_prefix_distance == 0 {
            self.merge(table).merge(run, rows, sorted_bits, &mut scratch.starts, &mut leaf);
        } else {
            self.walk(table).walk(run, sorted_bits, rows, &mut scratch.lists, &mut leaf);
        }
        scratch.list = list;
    }

    /// Returns the rows, in order, that can be near to something that agrees with `root.0` in the bits `root.1`.
    pub(crate) fn near_root<'a>(&self, rows: &'a [F], root: (F, F), list: &'a mut Vec<F>) -> &'a [F] {
        if root.1.count_ones() <= self.plan.max_distance() {
            return rows;
        }
        let mut n = 0;
        // The rows are selected slice by slice, so that only the part of the list that receives rows is touched. Memory
        // that is not touched takes no space, and a list that does not move leaves no copies of itself to the
        // allocator.
        list.reserve_exact((rows.len() + crate::kernel::PADDING).saturating_sub(list.len()));
        for slice in rows.chunks(SELECTED_ROWS) {
            let room = n + slice.len() + crate::kernel::PADDING;
            if list.len() < room {
                list.resize(room, F::ZERO);
            }
            n += F::select(self.kernel, slice, root.0, root.1, self.plan.max_distance(), &mut list[n..]);
        }
        debug_assert!(n <= rows.len(), "rows are selected, and none is added");
        &list[..n]
    }

    /// Compares a leaf, whose fingerprints agree in their leading `depth` bits. If the distances of the queries to them
    /// in these bits are known, they are given.
    pub(crate) fn join_leaf(
        &self,
        run: &[F],
        queries: &[F],
        distances: &[u8],
        depth: u32,
        found: &mut dyn FnMut(F, F),
    ) {
        if run.len() * queries.len() > COMPARED_PAIRS
            && depth > 0
            && let Some(plan) = self.split(run.len(), queries.len(), depth)
        {
            return self.join_hot(run, queries, plan, found);
        }
        debug_assert!(
            distances.is_empty() || distances.len() == queries.len(),
            "each query has its distance, or none has"
        );
        let max_distance = self.plan.max_distance();
        if distances.is_empty() {
            return F::pairs(self.kernel, run, queries, max_distance, found);
        }
        let list = NearPrefix { values: queries, distances, rest_bits: self.plan.bits() - depth };
        F::pairs_of_prefix(self.kernel, run, list, max_distance, found);
    }

    /// Compares rows, which agree in their leading `depth` bits, with each other.
    fn join_group(&self, rows: &[F], depth: u32, found: &mut dyn FnMut(F, F)) {
        if rows.len() * rows.len() > COMPARED_PAIRS
            && depth > 0
            && let Some(plan) = self.split(0, rows.len(), depth)
        {
            let all = 0..rows.len();
            let rows = sorted(rows, plan.bits());
            return Self::build(rows, plan, self.kernel).map_self(all, &mut Scratch::default(), &mut |_| (), found);
        }
        F::pairs_within(self.kernel, rows, self.plan.max_distance(), found);
    }

    /// Returns the plan of a hot leaf over the bits below its prefix, for `n` fingerprints and `m` queries, or for the
    /// queries with each other if `n` is 0; `None` if comparing all pairs is cheaper.
    fn split(&self, n: usize, m: usize, depth: u32) -> Option<TablePlan> {
        let rest = self.plan.bits() - depth;
        if rest <= self.plan.max_distance() {
            return None;
        }
        let workload = Workload {
            n_queries: m,
            existing: vec![ExistingRun { n_rows: n as u64, density_rows: n as u64 }],
            piece_rows: n.max(1),
            itself: n == 0,
            memory_bytes: usize::MAX,
            threads: 1,
            pieces_under_way: 1,
            kernel: self.kernel,
        };
        let plan = TablePlan::choose(rest, self.plan.max_distance(), &workload);
        let scan = JoinCost::of(&TablePlan::scan(rest, self.plan.max_distance()), &workload).total_ns;
        // Both sides are sorted by the remaining bits, in more passes than a table is.
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let sorting = 4.0 * StepTimes::of(self.kernel).sort * (n + m) as f64;
        (JoinCost::of(&plan, &workload).total_ns + sorting < scan).then_some(plan)
    }

    fn join_hot(&self, run: &[F], queries: &[F], plan: TablePlan, found: &mut dyn FnMut(F, F)) {
        let (run, queries) = (sorted(run, plan.bits()), sorted(queries, plan.bits()));
        Self::build(queries, plan, self.kernel).map(&run, &mut Scratch::default(), found);
    }

    /// Passes on a pair of table `t`, in its order, unless an earlier table reports it.
    pub(crate) fn report(&self, t: usize, a: F, b: F, found: &mut dyn FnMut(F, F)) {
        let table = &self.plan.tables()[t];
        let (a, b) = (table.permutation.invert(a), table.permutation.invert(b));
        debug_assert!(hamming_distance(a, b) <= self.plan.max_distance(), "a kernel finds near pairs, and no other");
        let near = |table: &Table| {
            let mask = table.block.mask::<F>();
            hamming_distance(a & mask, b & mask) <= table.max_prefix_distance
        };
        if near(table) && !self.plan.tables()[..t].iter().any(near) {
            found(a, b);
        }
    }
}

/// Returns a copy in the order of the lowest `bits` bits.
fn sorted<F: Width>(values: &[F], bits: u32) -> Vec<F> {
    let mut values = values.to_vec();
    sort(&mut values, bits);
    values
}

/// The parameters by which two sets in the order of a table are merged: by the leading bits of the block, among the
/// `bits` bits that count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merge {
    kernel: Kernel,
    bits: u32,
    block_width: u32,
}

impl Merge {
    /// Calls `leaf` with the groups of `run` and of `rows` that agree in leading bits of the block. It uses as many
    /// bits as leave groups of a few rows. Both sets ascend in their leading `sorted_bits`.
    pub(crate) fn merge<F: Width>(
        &self,
        run: &[F],
        rows: &[F],
        sorted_bits: u32,
        starts: &mut Vec<u32>,
        leaf: Leaf<'_, F>,
    ) {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return };
        let root = common_prefix(first, last, self.bits).min(sorted_bits).min(self.block_width);
        let shared = leading_ones::<F>(self.bits, root);
        let rows = &rows[rows.partition_point(|&row| row & shared < first & shared)..];
        let rows = &rows[..rows.partition_point(|&row| row & shared <= first & shared)];
        let depth = merge_bits(self.block_width, root, run.len(), rows.len()).min(sorted_bits);
        let sorted = leading_ones::<F>(self.bits, sorted_bits);
        debug_assert!(run.is_sorted_by_key(|&row| row & sorted), "a merge passes over its run once");
        let mask = leading_ones::<F>(self.bits, depth);
        debug_assert!(rows.is_sorted_by_key(|&row| row & mask), "a merge passes over its queries once");
        let mut at = 0;
        for_each_group(self.kernel, run, mask, starts, &mut |group: &[F]| {
            let prefix = group[0] & mask;
            at += rows[at..].iter().take_while(|&&row| row & mask < prefix).count();
            let n = rows[at..].iter().take_while(|&&row| row & mask == prefix).count();
            if n > 0 {
                leaf(group, &rows[at..at + n], &[], depth);
            }
            at += n;
        });
    }
}
