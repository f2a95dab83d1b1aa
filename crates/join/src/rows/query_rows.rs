//! The query batch by rows: the documents behind each distinct fingerprint, and the pairs of documents that a pair of
//! fingerprints stands for.
//!
//! Rows are numbered in the order of their document ids. Rows with equal fingerprints, equal sketches and equal numbers
//! of features form a *class*: its members are at distance 0 from each other, and at the same distance from any other
//! document and with the same lost share for it. So pairs are verified once for classes, however many identical pages
//! there are.

use std::borrow::Borrow;
use std::sync::Arc;

use nearprint_fingerprint::{Fingerprint, Sketch};
use rayon::prelude::*;

use crate::error::{JoinError, Result};
use crate::rows::column::Column;
use crate::rows::lost_share::lost_share;
use crate::rows::row_set::Starts;
use crate::rows::search::partition_point;
use crate::rows::undecided::UndecidedPair;
use crate::rows::verify::{Nearness, Verifier};

/// Two rows of the batch that are near-duplicates; `a` < `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowPair {
    /// The row with the smaller id.
    pub a: u32,
    /// The row with the larger id.
    pub b: u32,
    /// The Hamming distance of the fingerprints.
    pub distance: u8,
    /// The distance of the sketches, if sketches are verified.
    pub sketch_distance: Option<u16>,
}

/// The classes of each value (distinct fingerprint), in ascending order, and the rows of each class, in ascending
/// order. The values themselves stand in the tables of the [`Queries`](crate::Queries); the position of a value there
/// is its number here.
///
/// ```
/// use nearprint_join::{Column, QueryRows};
///
/// let fingerprints: Column<u64> = [Some(7), None, Some(5), Some(7)].into_iter().collect();
/// let (rows, values) = QueryRows::group(fingerprints, Column::default().into())?;
/// assert_eq!(values, [5, 7]);
/// assert_eq!((rows.classes_of(1), rows.members(1)), (1..2, &[0, 3][..]));
/// # Ok::<(), nearprint_join::JoinError>(())
/// ```
#[derive(Debug)]
pub struct QueryRows {
    /// The rows in order of (fingerprint, sketch, number of features, row).
    rows: Vec<u32>,
    /// The positions in `rows` at which a class starts.
    classes: Starts,
    /// The classes at which a value starts.
    values: Starts,
    sketches: Arc<Column<Sketch>>,
    n_features: Arc<Column<u32>>,
}

/// The class of a row that has no fingerprint.
const NO_CLASS: u32 = u32::MAX;

/// The class of each row.
#[derive(Debug)]
pub struct ClassOfRows(Vec<u32>);

impl ClassOfRows {
    /// Returns the class of a row, or `None` if the row has no fingerprint.
    #[must_use]
    pub fn of(&self, row: u32) -> Option<u32> {
        self.0.get(row as usize).copied().filter(|&class| class != NO_CLASS)
    }

    /// Returns the bytes that the classes of `n_rows` rows take.
    #[must_use]
    pub fn bytes_of(n_rows: usize) -> usize {
        n_rows.saturating_mul(4)
    }
}

impl QueryRows {
    /// Groups rows whose features are not counted. See [`group_counted`](Self::group_counted).
    ///
    /// # Errors
    /// As `group_counted`.
    ///
    /// # Panics
    /// As `group_counted`.
    pub fn group<F: Fingerprint>(
        fingerprints: impl Borrow<Column<F>>,
        sketches: Arc<Column<Sketch>>,
    ) -> Result<(Self, Vec<F>)> {
        Self::group_counted(fingerprints, sketches, Arc::default())
    }

    /// Groups rows, which are given in id order, and returns them with their values in ascending order; rows without a
    /// fingerprint are left out. `sketches`, and `n_features` (the numbers of distinct features that the sketches see),
    /// have either no rows or the same rows as `fingerprints`. If `fingerprints` is passed by value, it is freed early.
    ///
    /// # Errors
    /// [`JoinError::TooManyRows`] if there are more than `u32::MAX` − 1 rows.
    ///
    /// # Panics
    /// Debug builds panic if `sketches` or `n_features` has another number of rows than 0 and that of `fingerprints`.
    pub fn group_counted<F: Fingerprint>(
        fingerprints: impl Borrow<Column<F>>,
        sketches: Arc<Column<Sketch>>,
        n_features: Arc<Column<u32>>,
    ) -> Result<(Self, Vec<F>)> {
        let column: &Column<F> = fingerprints.borrow();
        debug_assert!(
            [sketches.n_rows(), n_features.n_rows()].iter().all(|n| [0, column.n_rows()].contains(n)),
            "sketches and numbers of features are of the same rows, or there are none"
        );
        let n = column.n_rows();
        if n == NO_CLASS {
            return Err(JoinError::TooManyRows { rows: n as usize });
        }
        #[expect(clippy::cast_possible_truncation, reason = "no more than rows, which are 32-bit numbers")]
        let mut order: Vec<(F, u32)> = Vec::with_capacity(column.n_values() as usize);
        order.extend((0..n).filter_map(|row| column.get(row).map(|&f| (f, row))));
        debug_assert_eq!(order.len() as u64, column.n_values(), "rows with a fingerprint are those that are grouped");
        drop(fingerprints);
        order.par_sort_unstable();
        for equal in order.chunk_by_mut(|a, b| a.0 == b.0).filter(|equal| equal.len() > 1) {
            equal.sort_unstable_by_key(|&(_, row)| (sketches.get(row), n_features.get(row), row));
        }
        let mut grouped = Self {
            rows: Vec::with_capacity(order.len()),
            classes: Starts::default(),
            values: Starts::default(),
            sketches,
            n_features,
        };
        let mut values: Vec<F> = Vec::with_capacity(order.len());
        for &(value, row) in &order {
            let new_value = values.last() != Some(&value);
            let is_same = |&before: &u32| {
                grouped.sketches.get(before).map(|s| s.0) == grouped.sketches.get(row).map(|s| s.0)
                    && grouped.n_features.get(before) == grouped.n_features.get(row)
            };
            let new_class = new_value || !grouped.rows.last().is_some_and(is_same);
            if new_value {
                values.push(value);
            }
            if new_class {
                grouped.values.push(new_value);
            }
            grouped.classes.push(new_class);
            grouped.rows.push(row);
        }
        debug_assert_eq!(values.len(), grouped.n_values(), "each value has its group of classes");
        debug_assert!(values.is_sorted_by(|a, b| a < b), "values ascend, each once: their places number them");
        Ok((grouped, values))
    }

    /// Returns the bytes that grouping `n_rows` rows takes at its peak, including the values and the result, but not
    /// the fingerprints and sketches.
    #[must_use]
    pub fn grouping_bytes<F>(n_rows: usize) -> usize {
        n_rows.saturating_mul(size_of::<(F, u32)>() + size_of::<F>() + 5)
    }

    /// Returns the number of values.
    #[must_use]
    pub fn n_values(&self) -> usize {
        self.values.n_groups() as usize
    }

    /// Returns the number of classes.
    #[must_use]
    pub fn n_classes(&self) -> usize {
        self.classes.n_groups() as usize
    }

    /// Returns the class of each of `n_rows` rows.
    ///
    /// # Panics
    /// If the batch has a row that is not below `n_rows`.
    #[must_use]
    pub fn class_of_rows(&self, n_rows: u32) -> ClassOfRows {
        let mut classes = vec![NO_CLASS; n_rows as usize];
        for class in 0..self.classes.n_groups() {
            for &row in self.members(class) {
                classes[row as usize] = class;
            }
        }
        ClassOfRows(classes)
    }

    /// Returns the value of each class; `values` are those of all rows.
    ///
    /// # Panics
    /// If there are fewer values.
    #[must_use]
    pub fn class_values<F: Copy>(&self, values: &[F]) -> Vec<F> {
        let mut of_classes = Vec::with_capacity(self.n_classes());
        for (number, &value) in (0..self.values.n_groups()).zip(values) {
            of_classes.resize(self.classes_of(number).end as usize, value);
        }
        debug_assert_eq!(of_classes.len(), self.n_classes(), "each value has its classes");
        of_classes
    }

    /// Returns the classes of a value.
    #[must_use]
    pub fn classes_of(&self, value: u32) -> std::ops::Range<u32> {
        self.values.group(value)
    }

    /// Cuts the values, in their order, into at most `n_parts` ranges with about the same number of rows behind each. No range is
    /// empty. The rows of a value are in one range, however many they are.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "rows and values have 32-bit numbers")]
    pub fn cut(&self, n_parts: usize) -> Vec<std::ops::Range<u32>> {
        let (n_values, n_rows) = (self.values.n_groups(), self.rows.len());
        let (mut parts, mut start) = (Vec::new(), 0);
        for part in 1..=n_parts.max(1) {
            let n_before = (n_rows as u128 * part as u128 / n_parts.max(1) as u128) as u32;
            let end = partition_point(start..n_values, |value| self.n_rows_before(value) < n_before);
            if end > start {
                parts.push(start..end);
                start = end;
            }
        }
        debug_assert_eq!(start, n_values, "the parts have all values");
        parts
    }

    /// Returns the rows of a range of values, in order of (fingerprint, sketch, number of features, row).
    #[must_use]
    pub fn rows_of(&self, values: std::ops::Range<u32>) -> &[u32] {
        &self.rows[self.n_rows_before(values.start) as usize..self.n_rows_before(values.end) as usize]
    }

    /// Returns the classes of a range of values.
    #[must_use]
    pub fn classes_of_values(&self, values: std::ops::Range<u32>) -> std::ops::Range<u32> {
        self.values.start(values.start)..self.values.start(values.end)
    }

    /// Returns the number of rows of the values before one of them.
    fn n_rows_before(&self, value: u32) -> u32 {
        self.classes.start(self.values.start(value))
    }

    /// Returns the values of a range, in ascending order, that have several rows: only these make pairs with
    /// themselves.
    pub fn repeated(&self, range: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
        let mut class = self.values.start(range.start);
        let mut row = self.classes.start(class);
        range.filter(move |_| {
            let next_class = self.values.next_after(class);
            let next_row = (class..next_class).fold(row, |row, _| self.classes.next_after(row));
            let n_rows = next_row - row;
            (class, row) = (next_class, next_row);
            n_rows > 1
        })
    }

    /// Returns the rows of a class, in ascending order; a class is never empty.
    #[must_use]
    pub fn members(&self, class: u32) -> &[u32] {
        let positions = self.classes.group(class);
        &self.rows[positions.start as usize..positions.end as usize]
    }

    /// Returns the smallest row of a class.
    fn first(&self, class: u32) -> u32 {
        debug_assert!(class < self.classes.n_groups(), "a class is asked for by a number below their count");
        self.rows[self.classes.start(class) as usize]
    }

    /// Returns the sketch that all rows of a class share.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn sketch(&self, class: u32) -> Option<&Sketch> {
        self.sketches.get(self.first(class))
    }

    /// Returns the number of distinct features of each row of a class, or `None` if they are not counted.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn n_features(&self, class: u32) -> Option<u32> {
        self.n_features.get(self.first(class)).copied()
    }

    /// Returns the [lost share](lost_share) of the rows of a class for those of another, or `None` if it is unknown,
    /// because one of them has no sketch or no number of features.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn lost_share(&self, class: u32, keeper: u32) -> Option<f64> {
        let rows = [class, keeper].map(|class| self.first(class));
        let [own, keepers] = rows.map(|row| self.n_features.get(row).copied());
        let (own, keepers) = (own?, keepers?);
        let [a, b] = rows.map(|row| self.sketches.get(row));
        #[expect(clippy::cast_possible_truncation, reason = "a sketch has 256 bits")]
        let distance = a?.distance(b?) as u16;
        Some(lost_share(own, keepers, distance))
    }

    /// Returns the bytes held, without those of the sketches and the numbers of features.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.rows.capacity() * 4 + self.classes.memory_bytes() + self.values.memory_bytes()
    }

    /// Calls `found` with every verified pair of rows behind two values at `distance`, or behind one value if the two
    /// are the same, and `undecided` with each pair of classes that the judge decides.
    pub fn all_pairs(
        &self,
        value_a: u32,
        value_b: u32,
        distance: u8,
        verifier: &Verifier,
        mut found: impl FnMut(RowPair),
        undecided: impl FnMut(UndecidedPair),
    ) {
        let near = |class_a: u32, class_b: u32, sketch_distance| {
            for &a in self.members(class_a) {
                for &b in self.members(class_b) {
                    if class_a != class_b || a < b {
                        found(ordered(a, b, distance, sketch_distance));
                    }
                }
            }
        };
        self.verified_classes(value_a, value_b, distance, verifier, near, undecided);
    }

    /// Calls `found` with the pairs of rows behind two values that a spanning forest can need. Among them is one pair
    /// for each pair of verified classes; their number grows with the rows and the class pairs, not with the row pairs.
    ///
    /// In the forest's order (distance, a, b) the first row of a class meets every other member before those meet each
    /// other. So behind two different values only the first rows of the classes matter. Behind one value, each class is
    /// joined, row by row, to its *centre*, which is the smallest row of the class itself and of the classes verified
    /// with it. `found_classes` receives the pairs of different classes, and `undecided` those that the judge decides.
    pub fn forest_pairs(
        &self,
        (value_a, value_b): (u32, u32),
        distance: u8,
        verifier: &Verifier,
        mut found: impl FnMut(RowPair),
        mut found_classes: impl FnMut(u32, u32),
        undecided: impl FnMut(UndecidedPair),
    ) {
        let first = |class: u32| self.first(class);
        if value_a != value_b {
            let near = |a, b, sketch_distance| {
                found(ordered(first(a), first(b), distance, sketch_distance));
                found_classes(a, b);
            };
            return self.verified_classes(value_a, value_b, distance, verifier, near, undecided);
        }
        let classes = self.classes_of(value_a);
        // (centre, its class, sketch distance); `None` if a class has no sketch to be verified by.
        let mut centres: Vec<Option<(u32, u32, Option<u16>)>> = vec![None; classes.len()];
        let near = |a: u32, b: u32, sketch_distance| {
            if a != b {
                found(ordered(first(a), first(b), 0, sketch_distance));
                found_classes(a, b);
            }
            for (class, other) in [(a, b), (b, a)] {
                let centre = &mut centres[(class - classes.start) as usize];
                let offered = (first(other), other, sketch_distance);
                *centre = Some(centre.map_or(offered, |known| known.min(offered)));
            }
        };
        self.verified_classes(value_a, value_a, 0, verifier, near, undecided);
        for (class, centre) in classes.zip(centres) {
            let Some((centre, _, sketch_distance)) = centre else { continue };
            for &row in self.members(class).iter().filter(|&&row| row != centre) {
                found(ordered(centre, row, 0, sketch_distance));
            }
        }
    }

    /// Calls `found` once with each pair of classes of two values that passes the sketch test, including a class with
    /// itself, and `undecided` with each pair that is left to the judge.
    fn verified_classes(
        &self,
        value_a: u32,
        value_b: u32,
        distance: u8,
        verifier: &Verifier,
        mut found: impl FnMut(u32, u32, Option<u16>),
        mut undecided: impl FnMut(UndecidedPair),
    ) {
        let of_b = self.classes_of(value_b);
        for a in self.classes_of(value_a) {
            let bs = if value_a == value_b { a..of_b.end } else { of_b.clone() };
            let sketch = self.sketch(a);
            for b in bs {
                match verifier.nearness(distance, sketch, self.sketch(b)) {
                    Nearness::Near(sketch_distance) => found(a, b, sketch_distance.bits()),
                    Nearness::Undecided(sketch_distance) => {
                        undecided(UndecidedPair { sketch_distance, distance, a: a.min(b), b: a.max(b) });
                    }
                    Nearness::Far => {}
                }
            }
        }
    }
}

fn ordered(a: u32, b: u32, distance: u8, sketch_distance: Option<u16>) -> RowPair {
    debug_assert!(a != b, "a row makes no pair with itself");
    RowPair { a: a.min(b), b: a.max(b), distance, sketch_distance }
}
