//! The star rule, which decides which documents of the batch are kept.

use std::ops::Range;

/// The kept document that represents a dropped one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canonical {
    /// An existing document, by the caller's number.
    Existing(u32),
    /// A row of the batch.
    Row(u32),
}

/// The decision about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The row is kept and represents itself.
    Keep,
    /// The row is dropped; `canonical` represents it, at `distance`.
    Drop {
        /// The kept document.
        canonical: Canonical,
        /// The Hamming distance of the two fingerprints.
        distance: u8,
    },
}

/// The nearest kept existing document that makes verified pairs with the rows of a class, and for which they may be
/// dropped; among equally near ones, the caller's first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExistingNeighbour {
    /// The Hamming distance.
    pub distance: u8,
    /// The caller's number for the document.
    pub existing: u32,
}

/// The classes that may represent each class: verified pairs, stored in the directions that are allowed. At most ten
/// bytes for each pair.
#[derive(Debug, Default)]
pub struct ClassNeighbours {
    starts: Vec<usize>,
    classes: Vec<u32>,
    distances: Vec<u8>,
}

impl ClassNeighbours {
    /// Builds the neighbours from verified pairs of different classes below `n_classes`, in any order and possibly
    /// repeated: (class, other class, distance) if the rows of the first may be dropped for those of the second. `pairs` is
    /// called twice and must return the same pairs in the same order.
    ///
    /// # Panics
    /// If a class is not below `n_classes`, or if the two calls of `pairs` differ in a way that does not fit.
    #[must_use]
    pub fn new<I: Iterator<Item = (u32, u32, u8)>>(n_classes: usize, pairs: impl Fn() -> I) -> Self {
        let mut starts = vec![0usize; n_classes + 2];
        for (class, ..) in pairs() {
            starts[class as usize + 2] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let n = starts[n_classes + 1];
        let (mut classes, mut distances) = (vec![0; n], vec![0; n]);
        // starts[class + 1] runs from where the class starts to where it ends.
        for (class, keeper, distance) in pairs() {
            let at = &mut starts[class as usize + 1];
            (classes[*at], distances[*at]) = (keeper, distance);
            *at += 1;
        }
        debug_assert!(starts[n_classes] == n && starts.is_sorted(), "both passes see the same pairs");
        Self { starts, classes, distances }
    }

    fn n_classes(&self) -> usize {
        self.starts.len().saturating_sub(2)
    }

    /// Returns the bytes that the neighbours, the decisions by them and [`star_bound`](crate::star_bound()) take.
    #[must_use]
    pub fn bytes_of(n_classes: usize, n_pairs: usize) -> usize {
        n_classes.saturating_mul(28).saturating_add(n_pairs.saturating_mul(10))
    }

    /// Returns all classes, in order.
    pub(super) fn classes(&self) -> impl Iterator<Item = u32> + use<> {
        (0..).take(self.n_classes())
    }

    /// Sorts the neighbours of each class. [`Self::distinct`] and [`Self::has`] need it.
    pub(super) fn sort(&mut self) {
        let mut sorted: Vec<(u32, u8)> = Vec::new();
        for class in self.classes() {
            sorted.clear();
            sorted.extend(self.of(class));
            sorted.sort_unstable();
            let range = self.range(class);
            let places = self.classes[range.clone()].iter_mut().zip(&mut self.distances[range]);
            for (place, found) in places.zip(&sorted) {
                (*place.0, *place.1) = *found;
            }
        }
    }

    /// Returns the neighbours of a class, each once and in order, if they are sorted.
    pub(super) fn distinct(&self, class: u32) -> impl Iterator<Item = u32> {
        self.classes[self.range(class)].chunk_by(|a, b| a == b).map(|same| same[0])
    }

    /// Returns whether a class is a neighbour of another, if the neighbours are sorted.
    pub(super) fn has(&self, class: u32, other: u32) -> bool {
        self.classes[self.range(class)].binary_search(&other).is_ok()
    }

    fn range(&self, class: u32) -> Range<usize> {
        self.starts[class as usize]..self.starts[class as usize + 1]
    }

    pub(super) fn of(&self, class: u32) -> impl Iterator<Item = (u32, u8)> {
        let range = self.range(class);
        self.classes[range.clone()].iter().copied().zip(self.distances[range].iter().copied())
    }
}

/// Applies the star rule. Rows take their turn in `keep_order`, and a row is dropped only if it makes a verified pair
/// with a document that is already kept, and for which it may be dropped. The nearest such document becomes the
/// canonical document of the row; among equally near ones an existing document comes first, then the row that is
/// earliest in keep order. So every dropped document lies within the distance of the one that represents it, and loses
/// no more than is allowed.
///
/// The rows of one class must make verified pairs with each other, and may be dropped for each other: if sketches are
/// verified, every row has one.
///
/// `keep_order` lists the rows. `class_of` returns the class of each row ([`QueryRows`](crate::QueryRows)), which is
/// below the number of classes of `neighbours`. `existing` returns the nearest kept existing document for which the rows
/// of a class may be dropped. The function calls `decided` with each row in turn.
///
/// ```
/// use nearprint_join::{Canonical, ClassNeighbours, Decision, star};
///
/// // Each row is a class of its own. The first two are near each other, and so are the last two.
/// let pairs = [(0, 1, 2), (1, 0, 2), (1, 2, 3), (2, 1, 3)];
/// let neighbours = ClassNeighbours::new(3, || pairs.into_iter());
/// let mut decided = Vec::new();
/// star(0..3, Some, &neighbours, |_| None, |row, decision| decided.push((row, decision)));
/// let dropped = Decision::Drop { canonical: Canonical::Row(0), distance: 2 };
/// assert_eq!(decided, [(0, Decision::Keep), (1, dropped), (2, Decision::Keep)]);
/// ```
///
/// # Panics
/// If `class_of` returns a class that `neighbours` does not have.
pub fn star(
    keep_order: impl Iterator<Item = u32>,
    class_of: impl Fn(u32) -> Option<u32>,
    neighbours: &ClassNeighbours,
    existing: impl Fn(u32) -> Option<ExistingNeighbour>,
    mut decided: impl FnMut(u32, Decision),
) {
    // At most one row of a class is kept: the next one is at distance 0 from it. (distance, rank) orders the choice.
    let mut kept: Vec<(u32, u32)> = vec![NOT_KEPT; neighbours.n_classes()];
    for (rank, row) in (0..).zip(keep_order) {
        let decision = class_of(row).map_or(Decision::Keep, |class| {
            let own = std::iter::once((class, 0));
            let nearest_row = own
                .chain(neighbours.of(class))
                .map(|(other, distance)| (distance, kept[other as usize]))
                .filter(|&(_, kept)| kept != NOT_KEPT)
                .map(|(distance, (rank, row))| (distance, rank, row))
                .min();
            let decision = nearest(existing(class), nearest_row);
            if decision == Decision::Keep {
                kept[class as usize] = (rank, row);
            }
            decision
        });
        decided(row, decision);
    }
}

/// The value that stands in place of a kept row and its rank.
const NOT_KEPT: (u32, u32) = (u32::MAX, u32::MAX);

fn nearest(existing: Option<ExistingNeighbour>, row: Option<(u8, u32, u32)>) -> Decision {
    match (existing, row) {
        (Some(e), row) if row.is_none_or(|(distance, ..)| e.distance <= distance) => {
            Decision::Drop { canonical: Canonical::Existing(e.existing), distance: e.distance }
        }
        (_, Some((distance, _, row))) => Decision::Drop { canonical: Canonical::Row(row), distance },
        _ => Decision::Keep,
    }
}
