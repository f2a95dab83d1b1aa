//! The query batch by rows: documents behind each distinct fingerprint, and the pairs of documents that a pair of
//! fingerprints stands for.
//!
//! Rows are numbered in the order of their document ids. Rows with equal fingerprint and equal sketch form a *class*: its
//! members are at distance 0 from each other and at one distance from every other document, so pairs are verified once
//! for classes, however many identical pages there are.

use nearprint_fingerprint::{Fingerprint, Sketch};

use crate::error::{JoinError, Result};
use crate::verify::Verifier;

/// Two rows of the batch that are near-duplicates; `a` < `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowPair {
    /// The row with the smaller id.
    pub a: u32,
    /// The row with the larger id.
    pub b: u32,
    /// Hamming distance of the fingerprints.
    pub distance: u8,
    /// Distance of the sketches, where sketches are verified.
    pub sketch_distance: Option<u16>,
}

/// Values (distinct fingerprints, ascending), the classes of each value, and the rows of each class, ascending.
#[derive(Debug)]
pub struct QueryRows<F> {
    values: Vec<F>,
    /// `value_starts[v]..value_starts[v + 1]` are the classes of value v.
    value_starts: Vec<u32>,
    sketches: Vec<Option<Sketch>>,
    class_starts: Vec<u32>,
    rows: Vec<u32>,
    class_of_row: Vec<u32>,
}

/// The class of a row that has no fingerprint.
const NO_CLASS: u32 = u32::MAX;

impl<F: Fingerprint> QueryRows<F> {
    /// Groups rows, given in id order; a row without a fingerprint takes no part. `sketches` is empty or as long as
    /// `fingerprints`.
    ///
    /// # Errors
    /// [`JoinError::TooManyRows`] past `u32::MAX` − 1 rows.
    pub fn new(fingerprints: &[Option<F>], sketches: &[Option<Sketch>]) -> Result<Self> {
        let too_many = JoinError::TooManyRows { rows: fingerprints.len() };
        let n = u32::try_from(fingerprints.len()).ok().filter(|&n| n < NO_CLASS).ok_or(too_many)?;
        let sketch = |row: u32| sketches.get(row as usize).copied().flatten();
        let mut order: Vec<(F, Option<Sketch>, u32)> =
            (0..n).filter_map(|row| fingerprints[row as usize].map(|f| (f, sketch(row), row))).collect();
        order.sort_unstable();
        Ok(Self::group(&order, fingerprints.len()))
    }

    #[allow(clippy::cast_possible_truncation, reason = "fewer than 2^32 rows")]
    fn group(order: &[(F, Option<Sketch>, u32)], n_rows: usize) -> Self {
        let mut grouped = Self {
            values: Vec::new(),
            value_starts: Vec::new(),
            sketches: Vec::new(),
            class_starts: Vec::new(),
            rows: order.iter().map(|&(_, _, row)| row).collect(),
            class_of_row: vec![NO_CLASS; n_rows],
        };
        for (at, (value, sketch, row)) in order.iter().enumerate() {
            let new_value = grouped.values.last() != Some(value);
            if new_value {
                grouped.values.push(*value);
                grouped.value_starts.push(grouped.sketches.len() as u32);
            }
            if new_value || grouped.sketches.last() != Some(sketch) {
                grouped.sketches.push(*sketch);
                grouped.class_starts.push(at as u32);
            }
            grouped.class_of_row[*row as usize] = grouped.sketches.len() as u32 - 1;
        }
        grouped.value_starts.push(grouped.sketches.len() as u32);
        grouped.class_starts.push(order.len() as u32);
        grouped
    }

    /// The distinct fingerprints, ascending.
    #[must_use]
    pub fn values(&self) -> &[F] {
        &self.values
    }

    /// The number of classes.
    #[must_use]
    pub fn n_classes(&self) -> usize {
        self.sketches.len()
    }

    /// The class of a row; none where the row has no fingerprint.
    #[must_use]
    pub fn class_of(&self, row: u32) -> Option<u32> {
        self.class_of_row.get(row as usize).copied().filter(|&class| class != NO_CLASS)
    }

    /// The classes of a value.
    #[must_use]
    pub fn classes_of(&self, value: u32) -> std::ops::Range<u32> {
        self.value_starts[value as usize]..self.value_starts[value as usize + 1]
    }

    /// The rows of a class, ascending; never empty.
    #[must_use]
    pub fn members(&self, class: u32) -> &[u32] {
        &self.rows[self.class_starts[class as usize] as usize..self.class_starts[class as usize + 1] as usize]
    }

    /// The sketch that all rows of a class share.
    #[must_use]
    pub fn sketch(&self, class: u32) -> Option<&Sketch> {
        self.sketches[class as usize].as_ref()
    }

    /// Bytes held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let u32s = self.value_starts.len() + self.class_starts.len() + self.rows.len() + self.class_of_row.len();
        self.values.len() * size_of::<F>() + self.sketches.len() * size_of::<Option<Sketch>>() + u32s * 4
    }

    /// Every verified pair of rows behind two values at `distance`; behind one value where they are the same.
    pub fn all_pairs(
        &self,
        value_a: u32,
        value_b: u32,
        distance: u8,
        verifier: &Verifier,
        mut found: impl FnMut(RowPair),
    ) {
        self.verified_classes(value_a, value_b, distance, verifier, |class_a, class_b, sketch_distance| {
            for &a in self.members(class_a) {
                for &b in self.members(class_b) {
                    if class_a != class_b || a < b {
                        found(ordered(a, b, distance, sketch_distance));
                    }
                }
            }
        });
    }

    /// The pairs of rows behind two values that a spanning forest can need, among them one for each pair of verified
    /// classes: as many as rows and class pairs, not as row pairs.
    ///
    /// In the forest's order (distance, a, b) the first row of a class meets every other member before those meet each
    /// other. So behind two different values only the classes' first rows matter; behind one value each class is joined,
    /// row by row, to its *centre*, the smallest row of itself and the classes verified with it.
    pub fn forest_pairs(
        &self,
        value_a: u32,
        value_b: u32,
        distance: u8,
        verifier: &Verifier,
        mut found: impl FnMut(RowPair),
    ) {
        let first = |class: u32| self.members(class)[0];
        if value_a != value_b {
            return self.verified_classes(value_a, value_b, distance, verifier, |a, b, sketch_distance| {
                found(ordered(first(a), first(b), distance, sketch_distance));
            });
        }
        let classes = self.classes_of(value_a);
        // (centre, its class, sketch distance); none where a class has no sketch to be verified by.
        let mut centres: Vec<Option<(u32, u32, Option<u16>)>> = vec![None; classes.len()];
        self.verified_classes(value_a, value_a, 0, verifier, |a, b, sketch_distance| {
            if a != b {
                found(ordered(first(a), first(b), 0, sketch_distance));
            }
            for (class, other) in [(a, b), (b, a)] {
                let centre = &mut centres[(class - classes.start) as usize];
                let offered = (first(other), other, sketch_distance);
                *centre = Some(centre.map_or(offered, |known| known.min(offered)));
            }
        });
        for (class, centre) in classes.zip(centres) {
            let Some((centre, _, sketch_distance)) = centre else { continue };
            for &row in self.members(class).iter().filter(|&&row| row != centre) {
                found(ordered(centre, row, 0, sketch_distance));
            }
        }
    }

    /// Pairs of classes of two values that pass the sketch, each once, a class with itself included.
    fn verified_classes(
        &self,
        value_a: u32,
        value_b: u32,
        distance: u8,
        verifier: &Verifier,
        mut found: impl FnMut(u32, u32, Option<u16>),
    ) {
        for a in self.classes_of(value_a) {
            let bs = self.classes_of(value_b);
            let bs = if value_a == value_b { a..bs.end } else { bs };
            for b in bs {
                if let Some(sketch_distance) = verifier.verify(distance, self.sketch(a), self.sketch(b)) {
                    found(a, b, sketch_distance);
                }
            }
        }
    }
}

fn ordered(a: u32, b: u32, distance: u8, sketch_distance: Option<u16>) -> RowPair {
    RowPair { a: a.min(b), b: a.max(b), distance, sketch_distance }
}
