//! Finds all near pairs of fingerprints in memory, by one call.

use std::ops::Range;

use crate::error::{JoinError, Result};
use crate::kernel::{Kernel, Width};
use crate::plan::cost::{ExistingRun, Workload};
use crate::plan::table_plan::TablePlan;
use crate::probe::queries::{MapScratch, Pair, Queries};
use crate::rows::column::Column;
use crate::rows::query_rows::{QueryRows, RowPair};
use crate::rows::verify::Verifier;

/// Two fingerprints within a distance of each other, as positions in the slices that were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NearPair {
    /// The position of the first fingerprint; in a self-join, the smaller position.
    pub a: u32,
    /// The position of the second fingerprint.
    pub b: u32,
    /// The Hamming distance of the two fingerprints.
    pub distance: u8,
}

/// Returns every pair of fingerprints at different positions that differ in at most `max_distance` bits, in ascending
/// order.
///
/// ```
/// let pairs = nearprint_join::pairs_within(&[0b0000_u64, 0b0111, 0xFFFF_FFFF, 0b0001], 3)?;
/// assert_eq!(pairs.iter().map(|p| (p.a, p.b, p.distance)).collect::<Vec<_>>(), [(0, 1, 3), (0, 3, 1), (1, 3, 2)]);
/// # Ok::<(), nearprint_join::JoinError>(())
/// ```
///
/// # Errors
/// [`JoinError::TooManyRows`] if there are 2^32 − 1 or more fingerprints; [`JoinError::Distance`] if `max_distance` is
/// not below the number of their bits.
pub fn pairs_within<F: Width>(fingerprints: &[F], max_distance: u32) -> Result<Vec<NearPair>> {
    HammingJoin::new(max_distance).within(fingerprints)
}

/// Returns every pair of a fingerprint of `left` and one of `right` that differ in at most `max_distance` bits, in
/// ascending order.
///
/// ```
/// let pairs = nearprint_join::pairs_between(&[0b0011_u64, u64::MAX], &[0b0000, 0b0111, u64::MAX - 1], 2)?;
/// assert_eq!(pairs.iter().map(|p| (p.a, p.b, p.distance)).collect::<Vec<_>>(), [(0, 0, 2), (0, 1, 1), (1, 2, 1)]);
/// # Ok::<(), nearprint_join::JoinError>(())
/// ```
///
/// # Errors
/// The same as those of [`pairs_within`].
pub fn pairs_between<F: Width>(left: &[F], right: &[F], max_distance: u32) -> Result<Vec<NearPair>> {
    HammingJoin::new(max_distance).between(left, right)
}

/// Two ids whose fingerprints are within a distance of each other, and this distance.
pub type NearIds<'a, A, B = A> = (&'a A, &'a B, u8);

/// Joins rows of (id, fingerprint) as [`pairs_within`] does, and returns ids instead of positions.
///
/// ```
/// let pages = [("a.html", 0b0000_u64), ("b.html", 0b0111), ("c.html", u64::MAX)];
/// assert_eq!(nearprint_join::ids_within(&pages, 3)?, [(&"a.html", &"b.html", 3)]);
/// # Ok::<(), nearprint_join::JoinError>(())
/// ```
///
/// # Errors
/// The same as those of [`pairs_within`].
pub fn ids_within<I, F: Width>(rows: &[(I, F)], max_distance: u32) -> Result<Vec<NearIds<'_, I>>> {
    let pairs = pairs_within(&fingerprints(rows), max_distance)?;
    Ok(pairs.iter().map(|p| (&rows[p.a as usize].0, &rows[p.b as usize].0, p.distance)).collect())
}

/// Joins rows of (id, fingerprint) as [`pairs_between`] does, and returns ids instead of positions.
///
/// ```
/// let tonight = [("a.html", 0b0000_u64)];
/// let before = [("old.html", 0b0111_u64), ("other.html", u64::MAX)];
/// assert_eq!(nearprint_join::ids_between(&tonight, &before, 3)?, [(&"a.html", &"old.html", 3)]);
/// # Ok::<(), nearprint_join::JoinError>(())
/// ```
///
/// # Errors
/// The same as those of [`pairs_within`].
pub fn ids_between<'a, A, B, F: Width>(
    left: &'a [(A, F)],
    right: &'a [(B, F)],
    max_distance: u32,
) -> Result<Vec<NearIds<'a, A, B>>> {
    let pairs = pairs_between(&fingerprints(left), &fingerprints(right), max_distance)?;
    Ok(pairs.iter().map(|p| (&left[p.a as usize].0, &right[p.b as usize].0, p.distance)).collect())
}

fn fingerprints<I, F: Copy>(rows: &[(I, F)]) -> Vec<F> {
    rows.iter().map(|(_, fingerprint)| *fingerprint).collect()
}

/// A join of fingerprints in memory, with options. For joins that are larger than memory, use its building blocks
/// [`Queries`] and [`TablePlan`] directly.
///
/// ```
/// use nearprint_join::{HammingJoin, Kernel};
///
/// let join = HammingJoin::new(2).kernel(Kernel::SCALAR).table_bytes(1 << 20);
/// assert_eq!(join.within(&[7_u32, 5, 0])?.len(), 2);
/// # Ok::<(), nearprint_join::JoinError>(())
/// ```
#[derive(Debug, Clone)]
pub struct HammingJoin {
    max_distance: u32,
    kernel: Kernel,
    table_bytes: usize,
}

/// The number of fingerprints that probe at once.
const PIECE_ROWS: usize = 1 << 22;

impl HammingJoin {
    /// Makes a join of fingerprints that differ in at most `max_distance` bits. It uses the best kernel that the
    /// processor can run and tables of at most 1 GiB.
    #[must_use]
    pub fn new(max_distance: u32) -> Self {
        Self { max_distance, kernel: Kernel::best(), table_bytes: 1 << 30 }
    }

    /// Sets the kernel, which is the set of instructions that the join uses.
    #[must_use]
    pub fn kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// Limits the tables to about `table_bytes` bytes. If no set of tables fits, the join uses a single table that
    /// holds the fingerprints alone and is slower.
    #[must_use]
    pub fn table_bytes(self, table_bytes: usize) -> Self {
        Self { table_bytes, ..self }
    }

    /// Joins fingerprints with each other, as [`pairs_within`] does.
    ///
    /// # Errors
    /// The same as those of [`pairs_within`].
    pub fn within<F: Width>(&self, fingerprints: &[F]) -> Result<Vec<NearPair>> {
        let verifier = self.verifier::<F>()?;
        let mut pairs = Vec::new();
        let grouped = QueryRows::group(column(fingerprints)?, Column::default().into())?;
        self.rows_within(grouped, &verifier, F::BITS, |p| {
            pairs.push(NearPair { a: p.a, b: p.b, distance: p.distance })
        })?;
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// Joins two sets of fingerprints, as [`pairs_between`] does.
    ///
    /// # Errors
    /// The same as those of [`pairs_within`].
    pub fn between<F: Width>(&self, left: &[F], right: &[F]) -> Result<Vec<NearPair>> {
        let verifier = self.verifier::<F>()?;
        let mut pairs = Vec::new();
        let left = QueryRows::group(column(left)?, Column::default().into())?;
        let right = QueryRows::group(column(right)?, Column::default().into())?;
        self.rows_between(left, right, &verifier, F::BITS, |pair, _| pairs.push(pair))?;
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// Calls `found` with every verified pair of a row of `left` and a row of `right`, and the distance of their
    /// sketches if sketches are verified, in no particular order. This is the join of two sets of documents with
    /// sketches. `left` and `right` are results of [`QueryRows::group`], and `bits` is the number of bits of the
    /// fingerprints.
    ///
    /// # Errors
    /// The same as those of [`rows_within`](Self::rows_within).
    pub fn rows_between<F: Width>(
        &self,
        (rows, values): (QueryRows, Vec<F>),
        (existing, existing_values): (QueryRows, Vec<F>),
        verifier: &Verifier,
        bits: u32,
        mut found: impl FnMut(NearPair, Option<u16>),
    ) -> Result<()> {
        let run = ExistingRun { n_rows: existing_values.len() as u64, density_rows: existing_values.len() as u64 };
        let plan = self.plan(bits, values.len(), vec![run], false);
        let queries = Queries::try_new(values, plan, self.kernel)?;
        let (mut scratch, mut first) = (MapScratch::default(), 0);
        for piece in existing_values.chunks(PIECE_ROWS) {
            queries.map(piece, &mut scratch, |Pair { query, existing: value, distance }| {
                for class_a in rows.classes_of(query) {
                    for class_b in existing.classes_of(first + value) {
                        let (sketch_a, sketch_b) = (rows.sketch(class_a), existing.sketch(class_b));
                        let Some(sketches) = verifier.verify(distance, sketch_a, sketch_b) else { continue };
                        for &a in rows.members(class_a) {
                            for &b in existing.members(class_b) {
                                found(NearPair { a, b, distance }, sketches.bits());
                            }
                        }
                    }
                }
            });
            first += number(piece.len());
        }
        Ok(())
    }

    /// Calls `found` with every verified pair of rows, in no particular order. This is the join of documents with
    /// sketches. `rows` and `values` are the result of [`QueryRows::group`], and `bits` is the number of bits of the
    /// fingerprints.
    ///
    /// # Errors
    /// [`JoinError::Bits`] if `bits` is 0 or more than `F` has; [`JoinError::TooManyRows`] if there are more than
    /// `u32::MAX` values.
    pub fn rows_within<F: Width>(
        &self,
        (rows, values): (QueryRows, Vec<F>),
        verifier: &Verifier,
        bits: u32,
        mut found: impl FnMut(RowPair),
    ) -> Result<()> {
        let all = 0..values.len();
        let queries = Queries::try_new(values, self.plan(bits, all.len(), Vec::new(), true), self.kernel)?;
        for value in rows.repeated(numbers(&all)) {
            rows.all_pairs(value, value, 0, verifier, &mut found);
        }
        queries.map_self(all, &mut MapScratch::default(), |pair| {
            rows.all_pairs(pair.query, pair.existing, pair.distance, verifier, &mut found);
        });
        Ok(())
    }

    fn plan(&self, bits: u32, n_queries: usize, existing: Vec<ExistingRun>, itself: bool) -> TablePlan {
        let workload = Workload {
            n_queries,
            existing,
            piece_rows: if itself { n_queries } else { PIECE_ROWS },
            itself,
            memory_bytes: self.table_bytes,
            threads: 1,
            pieces_under_way: 1,
        };
        TablePlan::choose(bits, self.max_distance, &workload)
    }

    fn verifier<F: Width>(&self) -> Result<Verifier> {
        let invalid = JoinError::Distance { max_distance: self.max_distance, bits: F::BITS };
        let max_distance = u8::try_from(self.max_distance).ok().filter(|&k| u32::from(k) < F::BITS).ok_or(invalid)?;
        Ok(Verifier { max_distance, max_sketch_distance: None })
    }
}

fn column<F: Copy>(fingerprints: &[F]) -> Result<Column<F>> {
    if u32::try_from(fingerprints.len()).is_err() {
        return Err(JoinError::TooManyRows { rows: fingerprints.len() });
    }
    Ok(fingerprints.iter().map(|&fingerprint| Some(fingerprint)).collect())
}

/// Converts a number of rows, which [`column`] has checked, to 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "fewer than 2^32, as `column` made sure")]
fn number(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok(), "rows are counted before");
    n as u32
}

fn numbers(all: &Range<usize>) -> Range<u32> {
    number(all.start)..number(all.end)
}
