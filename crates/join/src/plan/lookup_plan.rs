//! The tables by which sorted copies of fingerprints answer single queries.

use std::ops::RangeInclusive;

use crate::error::{JoinError, Result};
use crate::kernel::Kernel;
use crate::plan::near::n_near_prefixes;
use crate::plan::permutation::{Permutation, leading_ones, ones};
use crate::plan::table_plan::{Table, TablePlan, nearly_equal};
use crate::probe::near_values::near_values;

/// A plan to answer one query at a time from [`COPIES`](Self::COPIES) copies of the existing fingerprints, each of which
/// is sorted by a permutation of the bits. This is the online mode of Manku, Jain, Das Sarma (WWW 2007, section 3): a
/// query looks at the stretches of a copy in which the leading block is near its own. With fewer copies than the paper
/// has, some bits of the block may differ ([`TablePlan`]), so there are more stretches.
///
/// ```
/// use nearprint_join::{Kernel, LookupPlan};
///
/// let existing = [0b0001_u64, 0b0111, 0b1000_0000_1111, u64::MAX];
/// let (plan, query) = (LookupPlan::new(64, 3, 1 << 24, 1024)?, 0b1111);
/// assert!(plan.ranges(0, query)[0].contains(&0b0111));
/// let mut found = Vec::new();
/// for table in 0..plan.n_tables() {
///     let mut copy: Vec<u64> = existing.iter().map(|&value| plan.permutation(table).permute(value)).collect();
///     copy.sort_unstable();
///     plan.near(Kernel::best(), table, &copy, query, &mut Vec::new(), |at, distance| found.push((plan.permutation(table).invert(copy[at]), distance)));
/// }
/// found.sort_unstable();
/// assert_eq!(found, [(0b0001, 3), (0b0111, 1), (0b1000_0000_1111, 1)]);
/// # Ok::<(), nearprint_join::JoinError>(())
/// ```
#[derive(Debug, Clone)]
pub struct LookupPlan {
    plan: TablePlan,
    /// For each table, the differences of a leading block that are small enough, as permuted values have them.
    differences: Vec<Vec<u64>>,
}

impl LookupPlan {
    /// The number of copies.
    pub const COPIES: u32 = 4;

    /// Returns the orders of the copies. In the first, nothing is moved.
    ///
    /// # Errors
    /// [`JoinError::Tables`] if there are fewer bits than copies.
    pub fn copies(bits: u32) -> Result<Vec<Permutation>> {
        let plan = TablePlan::new(bits, 0, &[0; Self::COPIES as usize])?;
        Ok(plan.tables().iter().map(Table::permutation).collect())
    }

    /// Makes the plan for fingerprints of `bits` bits, of which `n_rows` exist, in copies that are read by pages of
    /// `page_rows` rows. If single stretches would cost more than one copy as a whole, the plan has one table, the first
    /// copy.
    ///
    /// # Errors
    /// [`JoinError::Bits`] if values of 64 bits do not hold the fingerprints; [`JoinError::Distance`] if `max_distance`
    /// is not below the bits; [`JoinError::Tables`] if there are fewer bits than copies.
    pub fn new(bits: u32, max_distance: u32, n_rows: u64, page_rows: u64) -> Result<Self> {
        if bits > u64::BITS {
            return Err(JoinError::Bits { bits, type_bits: u64::BITS });
        }
        if max_distance >= bits {
            return Err(JoinError::Distance { max_distance, bits });
        }
        let allowed = nearly_equal(Self::COPIES, (max_distance + 1).saturating_sub(Self::COPIES));
        let plan = TablePlan::new(bits, max_distance, &allowed)?;
        let plan = if rows_of(&plan, n_rows, page_rows) < as_float(n_rows) {
            plan
        } else {
            TablePlan::scan(bits, max_distance)
        };
        let differences = plan.tables().iter().map(|table| differences(bits, table)).collect();
        Ok(Self { plan, differences })
    }

    /// Returns the number of tables, each of which is the copy of the same number.
    #[must_use]
    pub fn n_tables(&self) -> usize {
        self.plan.tables().len()
    }

    /// Returns whether the first copy is read as a whole.
    #[must_use]
    pub fn is_scan(&self) -> bool {
        self.plan.is_scan()
    }

    /// Returns the order of a table.
    ///
    /// # Panics
    /// Panics if there is no such table, as all methods do that take one.
    #[must_use]
    pub fn permutation(&self, table: usize) -> Permutation {
        self.plan.tables()[table].permutation()
    }

    /// Returns the ranges of permuted values that a query looks at in a table, in ascending order and apart from each
    /// other.
    #[must_use]
    pub fn ranges(&self, table: usize, fingerprint: u64) -> Vec<RangeInclusive<u64>> {
        let Table { permutation, block, .. } = self.plan.tables()[table];
        let rest: u64 = ones(self.plan.bits() - block.width);
        let prefix = permutation.permute(fingerprint) & !rest;
        let mut starts: Vec<u64> = self.differences[table].iter().map(|difference| prefix ^ difference).collect();
        starts.sort_unstable();
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        for start in starts {
            match ranges.last_mut().filter(|last| last.end().checked_add(1) == Some(start)) {
                Some(last) => *last = *last.start()..=start | rest,
                None => ranges.push(start..=start | rest),
            }
        }
        debug_assert!(ranges.is_sorted_by(|a, b| a.end() < b.start()), "ranges ascend, and no two share a value");
        ranges
    }

    /// Calls `found` with the position and the distance of each of `values`, which are permuted and ascend, that is
    /// near the query, unless an earlier table finds it too. So the tables find each near value once, if each gets at
    /// least the values in its ranges. `scratch` is memory that is reused.
    pub fn near(
        &self,
        kernel: Kernel,
        table: usize,
        values: &[u64],
        fingerprint: u64,
        scratch: &mut Vec<u64>,
        mut found: impl FnMut(usize, u32),
    ) {
        let permutation = self.permutation(table);
        let query = permutation.permute(fingerprint);
        near_values(kernel, values, query, self.plan.max_distance(), scratch, |at, distance| {
            if self.first_table(permutation.invert(values[at]) ^ fingerprint) == Some(table) {
                found(at, distance);
            }
        });
    }

    /// Returns the first table in whose ranges a value is that differs in these bits from the query.
    fn first_table(&self, difference: u64) -> Option<usize> {
        let is_near =
            |table: &Table| (difference & table.block.mask::<u64>()).count_ones() <= table.max_prefix_distance;
        self.plan.tables().iter().position(is_near)
    }
}

/// Returns the number of rows that a query is expected to read: those of its ranges, and the rest of the pages at their
/// ends.
fn rows_of(plan: &TablePlan, n_rows: u64, page_rows: u64) -> f64 {
    let of_table = |table: &Table| {
        let width = table.block.width;
        let of_range = as_float(n_rows) / 2f64.powi(width.cast_signed()) + as_float(page_rows);
        n_near_prefixes(width, table.max_prefix_distance) * of_range
    };
    plan.tables().iter().map(of_table).sum()
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn as_float(n: u64) -> f64 {
    n as f64
}

fn differences(bits: u32, table: &Table) -> Vec<u64> {
    let (width, shift) = (table.block.width, bits - table.block.width);
    let small = (0..1u64 << width).filter(|difference| difference.count_ones() <= table.max_prefix_distance);
    let differences: Vec<u64> = small.map(|difference| difference.checked_shl(shift).unwrap_or(0)).collect();
    debug_assert!(
        differences.iter().all(|difference| difference & !leading_ones::<u64>(bits, width) == 0),
        "a difference lies in the leading bits alone"
    );
    differences
}
