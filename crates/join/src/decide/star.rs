//! The star rule: which documents of the batch are kept.

/// The kept document that a dropped one is represented by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canonical {
    /// An existing document, by the caller's number.
    Existing(u32),
    /// A row of the batch.
    Row(u32),
}

/// What becomes of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It represents itself.
    Keep,
    /// `canonical` represents it, at `distance`.
    Drop {
        /// The kept document.
        canonical: Canonical,
        /// Hamming distance of the two fingerprints.
        distance: u8,
    },
}

/// The nearest kept existing document that makes verified pairs with the rows of a class; of equally near ones the caller's
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExistingNeighbour {
    /// Hamming distance.
    pub distance: u8,
    /// The caller's number of the document.
    pub existing: u32,
}

/// Verified pairs of classes, both ways: ten bytes a pair.
#[derive(Debug, Default)]
pub struct ClassNeighbours {
    starts: Vec<usize>,
    classes: Vec<u32>,
    distances: Vec<u8>,
}

impl ClassNeighbours {
    /// From verified pairs of different classes below `n_classes`, in any order, repeats allowed: `pairs` gives them twice, in the
    /// same order.
    #[must_use]
    pub fn new<I: Iterator<Item = (u32, u32, u8)>>(n_classes: usize, pairs: impl Fn() -> I) -> Self {
        let mut starts = vec![0usize; n_classes + 2];
        for (a, b, _) in pairs() {
            starts[a as usize + 2] += 1;
            starts[b as usize + 2] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let n = starts[n_classes + 1];
        let (mut classes, mut distances) = (vec![0; n], vec![0; n]);
        // starts[class + 1] runs from where the class starts to where it ends.
        for (a, b, distance) in pairs() {
            for (class, other) in [(a, b), (b, a)] {
                let at = &mut starts[class as usize + 1];
                (classes[*at], distances[*at]) = (other, distance);
                *at += 1;
            }
        }
        Self { starts, classes, distances }
    }

    fn n_classes(&self) -> usize {
        self.starts.len().saturating_sub(2)
    }

    /// Bytes that the neighbours, and what deciding by them takes, need.
    #[must_use]
    pub fn bytes_of(n_classes: usize, n_pairs: usize) -> usize {
        n_classes.saturating_mul(16).saturating_add(n_pairs.saturating_mul(10))
    }

    fn of(&self, class: u32) -> impl Iterator<Item = (u32, u8)> {
        let range = self.starts[class as usize]..self.starts[class as usize + 1];
        self.classes[range.clone()].iter().copied().zip(self.distances[range].iter().copied())
    }
}

/// The star rule: rows take their turn in `keep_order`, and a row is dropped only if it makes a verified pair with a
/// document that is kept by then: the nearest of those becomes its canonical; among equally near ones an existing document
/// comes first, then the row earliest in keep order. So every dropped document lies within the
/// distance of the one that represents it.
///
/// Rows of one class make verified pairs with each other: where sketches are verified, every row has one.
///
/// `keep_order` lists rows; `class_of` gives the class of each row ([`QueryRows`](crate::QueryRows)), below the neighbours' number of
/// classes; `existing` the nearest kept existing document of a class. Calls `decided` with each row in turn.
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

/// In place of a kept row and its rank.
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
