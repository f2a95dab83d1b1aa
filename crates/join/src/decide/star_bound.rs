//! An upper bound on what the star rule could keep, whatever the keep order.

use std::collections::BTreeSet;

use crate::decide::star::ClassNeighbours;

/// Returns a number of documents that the star rule can exceed by no keep order. `is_open` returns whether no existing
/// document represents the rows of a class: rows of other classes are always dropped. Sorts the neighbours in place.
///
/// Two classes are *rivals* if the rows of each may be dropped for those of the other. The function cuts the open classes
/// into sets in which all are rivals of each other, and returns the number of these sets.
///
/// **Proof.** Let K be the rows that [`star`](crate::star()) keeps in some keep order. Two rows of K are not of one class,
/// and not of rival classes: the later one would have been dropped for the earlier one. So K has at most one row of each
/// set. Each row of K is of an open class, and each open class is in one set. Hence |K| is at most the number of sets. ∎
///
/// The fewest sets are hard to find, so the choice is greedy: the class with the fewest rivals that are not in a set yet
/// starts the next one, and its rivals join in the same order, each if it is a rival of all that joined before. In
/// clusters in which all are rivals, and in chains of versions of which each has the nearest ones as rivals, the bound is
/// what a keep order can reach.
///
/// Takes time for the pairs, twice, and 20 bytes for each class.
///
/// ```
/// use nearprint_join::{ClassNeighbours, star_bound};
///
/// // A chain of five: the best keep order keeps the two ends and the middle.
/// let pairs = [(0, 1, 2), (1, 2, 2), (2, 3, 1), (3, 4, 3)];
/// let mut chain = ClassNeighbours::new(5, || pairs.into_iter(), |_, _| true);
/// assert_eq!(star_bound(&mut chain, |_| true), 3);
/// // An existing document represents the middle.
/// assert_eq!(star_bound(&mut chain, |class| class != 2), 2);
/// ```
#[must_use]
pub fn star_bound(neighbours: &mut ClassNeighbours, is_open: impl Fn(u32) -> bool) -> u64 {
    neighbours.sort();
    let mut cover = Cover::new(neighbours, is_open);
    let mut n_sets = cover.n_alone;
    while let Some((_, first)) = cover.queue.pop_first() {
        cover.take_set(first);
        n_sets += 1;
    }
    n_sets
}

/// The classes that are not in a set yet.
struct Cover<'a> {
    neighbours: &'a ClassNeighbours,
    /// The number of rivals of each class that are not in a set; [`TAKEN`] for classes in a set, and for closed ones.
    n_rivals: Vec<u32>,
    /// The classes with rivals at the start, by (number of rivals that are not in a set, class).
    queue: BTreeSet<(u32, u32)>,
    /// The number of open classes without rivals. Each is a set of its own.
    n_alone: u64,
}

const TAKEN: u32 = u32::MAX;

impl<'a> Cover<'a> {
    fn new(neighbours: &'a ClassNeighbours, is_open: impl Fn(u32) -> bool) -> Self {
        let n_rivals = neighbours.classes().map(|class| if is_open(class) { 0 } else { TAKEN }).collect();
        let mut cover = Self { neighbours, n_rivals, queue: BTreeSet::new(), n_alone: 0 };
        for class in neighbours.classes().filter(|&class| is_open(class)) {
            // A class has fewer than 2^32 rivals.
            let n = (0..).zip(cover.rivals(class)).last().map_or(0, |(last, _): (u32, u32)| last + 1);
            if n == 0 {
                cover.n_alone += 1;
                continue;
            }
            cover.n_rivals[class as usize] = n;
            cover.queue.insert((n, class));
        }
        cover
    }

    /// Returns the rivals of a class that are not in a set.
    fn rivals(&self, class: u32) -> impl Iterator<Item = u32> {
        let open = self.neighbours.distinct(class).filter(|&other| self.n_rivals[other as usize] != TAKEN);
        open.filter(move |&other| self.neighbours.has(other, class))
    }

    /// Makes the next set around a class that is no longer in the queue.
    fn take_set(&mut self, first: u32) {
        let mut rivals: Vec<(u32, u32)> = self.rivals(first).map(|r| (self.n_rivals[r as usize], r)).collect();
        rivals.sort_unstable();
        let mut set = vec![first];
        for (_, rival) in rivals {
            let are_rivals = |&other: &u32| self.neighbours.has(rival, other) && self.neighbours.has(other, rival);
            if set[1..].iter().all(are_rivals) {
                set.push(rival);
            }
        }
        for &class in &set {
            self.queue.remove(&(self.n_rivals[class as usize], class));
            self.n_rivals[class as usize] = TAKEN;
        }
        for &class in &set {
            let left: Vec<u32> = self.rivals(class).collect();
            for rival in left {
                let n = self.n_rivals[rival as usize];
                self.queue.remove(&(n, rival));
                self.queue.insert((n - 1, rival));
                self.n_rivals[rival as usize] = n - 1;
            }
        }
    }
}
