//! Finds all near pairs of fingerprints in memory, by one call.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::error::{JoinError, Result};
use crate::kernel::{Kernel, Width};
use crate::plan::cost::{ExistingRun, Workload};
use crate::plan::table_plan::TablePlan;
use crate::probe::queries::{MapScratch, Pair, Queries};
use crate::probe::radix_sort::sort;
use crate::rows::column::Column;
use crate::rows::query_rows::{QueryRows, RowPair};
use crate::rows::verify::{Verifier, WordKeys};

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
    stopped: Arc<AtomicBool>,
}

/// The largest number of fingerprints that probe at once. Between two pieces a join looks whether it is stopped.
const PIECE_ROWS: usize = 1 << 22;
/// The smallest number of fingerprints for which a self-join uses one more thread.
const THREAD_ROWS: usize = 1 << 16;

impl HammingJoin {
    /// Makes a join of fingerprints that differ in at most `max_distance` bits. It uses the best kernel that the
    /// processor can run and tables of at most 1 GiB.
    #[must_use]
    pub fn new(max_distance: u32) -> Self {
        Self { max_distance, kernel: Kernel::best(), table_bytes: 1 << 30, stopped: Arc::default() }
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

    /// Gives the join a flag that another thread may set to stop it. The join looks at the flag between pieces of four
    /// million fingerprints, and then ends with [`JoinError::Stopped`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::AtomicBool;
    ///
    /// use nearprint_join::{HammingJoin, JoinError};
    ///
    /// let join = HammingJoin::new(3).stopped_by(Arc::new(AtomicBool::new(true)));
    /// assert_eq!(join.within(&[1_u64, 2]), Err(JoinError::Stopped));
    /// ```
    #[must_use]
    pub fn stopped_by(self, stopped: Arc<AtomicBool>) -> Self {
        Self { stopped, ..self }
    }

    /// Joins fingerprints with each other on all threads of the rayon pool, as [`pairs_within`] does. Positions are looked up only for the values that are
    /// in a pair, after the join of the distinct values.
    ///
    /// # Errors
    /// The same as those of [`pairs_within`].
    pub fn within<F: Width>(&self, fingerprints: &[F]) -> Result<Vec<NearPair>> {
        self.verifier::<F>()?;
        refuse_too_many(fingerprints.len())?;
        let mut values = fingerprints.to_vec();
        sort(&mut values, F::BITS);
        let equal = values.chunk_by(|a, b| a == b).filter(|equal| equal.len() > 1);
        let mut near: Vec<(F, F, u8)> = equal.map(|equal| (equal[0], equal[0], 0)).collect();
        values.dedup();
        let all = 0..values.len();
        let queries = Queries::try_new(values, self.plan(F::BITS, all.len(), Vec::new(), true), self.kernel)?;
        let value = |position: u32| queries.values()[position as usize];
        let found =
            self.map_self(&queries, |Pair { query, existing, distance }| (value(query), value(existing), distance))?;
        near.extend(found.into_iter().flatten());
        let mut wanted: Vec<F> = near.iter().flat_map(|&(a, b, _)| [a, b]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let positions = Positions::of(fingerprints, wanted);
        let mut pairs = Vec::with_capacity(near.len());
        for (value_a, value_b, distance) in near {
            let (of_a, of_b) = (positions.of_value(value_a), positions.of_value(value_b));
            for &(_, a) in of_a {
                debug_assert!(!of_b.is_empty(), "a value of a pair is the fingerprint of some row");
                let others = of_b.iter().map(|&(_, b)| b).filter(|&b| value_a != value_b || a < b);
                pairs.extend(others.map(|b| NearPair { a: a.min(b), b: a.max(b), distance }));
            }
        }
        pairs.sort_unstable();
        debug_assert!(pairs.iter().all(|pair| pair.a < pair.b), "no row is near itself");
        debug_assert!(pairs.is_sorted_by(|a, b| a < b), "each pair of rows is found once");
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
            self.refuse_stopped()?;
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
            rows.all_pairs(value, value, 0, verifier, &mut found, |_| ());
        }
        let mut scratch = MapScratch::default();
        for start in (0..queries.values().len()).step_by(PIECE_ROWS) {
            self.refuse_stopped()?;
            queries.map_self(start..queries.values().len().min(start + PIECE_ROWS), &mut scratch, |pair| {
                rows.all_pairs(pair.query, pair.existing, pair.distance, verifier, &mut found, |_| ());
            });
        }
        Ok(())
    }

    /// Joins the queries with each other, in pieces that the threads of the rayon pool share, and returns what
    /// `near` makes of the pairs of each piece. All of them are in memory at once.
    fn map_self<F: Width, T: Send>(
        &self,
        queries: &Queries<F>,
        near: impl Fn(Pair) -> T + Sync,
    ) -> Result<Vec<Vec<T>>> {
        let n = queries.values().len();
        let of_threads = rayon::current_num_threads().min(n / THREAD_ROWS).max(1);
        let piece_rows = n.div_ceil(n.div_ceil(PIECE_ROWS).next_multiple_of(of_threads).max(1)).max(1);
        let starts: Vec<usize> = (0..n).step_by(piece_rows).collect();
        let pieces = starts.into_par_iter().map_init(MapScratch::default, |scratch, start| {
            self.refuse_stopped()?;
            let mut of_piece = Vec::new();
            queries.map_self(start..n.min(start + piece_rows), scratch, |pair| of_piece.push(near(pair)));
            Ok(of_piece)
        });
        let pieces = pieces.collect::<Result<Vec<Vec<T>>>>()?;
        self.refuse_stopped()?;
        Ok(pieces)
    }

    fn refuse_stopped(&self) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) { Err(JoinError::Stopped) } else { Ok(()) }
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
            kernel: self.kernel,
        };
        TablePlan::choose(bits, self.max_distance, &workload)
    }

    fn verifier<F: Width>(&self) -> Result<Verifier> {
        let invalid = JoinError::Distance { max_distance: self.max_distance, bits: F::BITS };
        let max_distance = u8::try_from(self.max_distance).ok().filter(|&k| u32::from(k) < F::BITS).ok_or(invalid)?;
        Ok(Verifier { max_distance, words: WordKeys::NONE, max_sketch_distance: None, judged_to: None })
    }
}

/// The positions of some fingerprints in a slice.
struct Positions<F>(Vec<(F, u32)>);

impl<F: Width> Positions<F> {
    /// Finds the `wanted` values in a slice.
    fn of(fingerprints: &[F], wanted: Vec<F>) -> Self {
        Self(places_of(fingerprints, &wanted))
    }

    /// Returns the entries of a value, in ascending order of the position.
    fn of_value(&self, value: F) -> &[(F, u32)] {
        let from = self.0.partition_point(|&(other, _)| other < value);
        let to = from + self.0[from..].partition_point(|&(other, _)| other == value);
        &self.0[from..to]
    }
}

/// Returns where each of the `wanted` values, which ascend, stands in a slice, in ascending order of (value, place). A bitmap of
/// hashes passes over most of the others.
///
/// ```
/// assert_eq!(nearprint_join::places_of(&[9_u64, 5, 9], &[7, 9]), [(9, 0), (9, 2)]);
/// ```
#[must_use]
pub fn places_of<F: Width>(values: &[F], wanted: &[F]) -> Vec<(F, u32)> {
    let log_bits = (wanted.len().max(1).ilog2() + 5).max(6);
    #[allow(clippy::cast_possible_truncation, reason = "a hash has fewer bits than a slice of 2^32 rows has positions")]
    let hash = |value: F| {
        let folded = (value.low_bits() as u64) ^ (value >> (F::BITS / 2)).low_bits() as u64;
        (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - log_bits)) as usize
    };
    let mut hashes = vec![0u64; 1 << (log_bits - 6)];
    for &value in wanted {
        hashes[hash(value) / 64] |= 1 << (hash(value) % 64);
    }
    let known = |value: F| hashes[hash(value) / 64] >> (hash(value) % 64) & 1 == 1;
    let mut found: Vec<(F, u32)> = values.iter().copied().zip(0..).filter(|&(value, _)| known(value)).collect();
    found.par_sort_unstable();
    let mut at = 0;
    found.retain(|&(value, _)| {
        while wanted.get(at).is_some_and(|&next| next < value) {
            at += 1;
        }
        wanted.get(at) == Some(&value)
    });
    found
}

fn refuse_too_many(rows: usize) -> Result<()> {
    if u32::try_from(rows).is_ok_and(|rows| rows < u32::MAX) { Ok(()) } else { Err(JoinError::TooManyRows { rows }) }
}

fn column<F: Copy>(fingerprints: &[F]) -> Result<Column<F>> {
    refuse_too_many(fingerprints.len())?;
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
