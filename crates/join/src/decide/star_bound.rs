//! The quality of the star rule's decisions: a bound on what could be kept, and what is kept in vain.

use std::collections::BTreeSet;

use crate::decide::star::ClassNeighbours;

/// Returns a number that no set of rows exceeds in which no row may be dropped for another one. `rivals` are the pairs of
/// classes of which the rows of one, at least, may be dropped for those of the other, stored in both directions. `is_open`
/// returns whether no existing document represents the rows of a class: no row of other classes is in such a set. Sorts
/// the rivals in place.
///
/// The function cuts the open classes into groups in which all are rivals of each other, and returns the number of groups.
///
/// **Proof.** Let S be such a set. Two rows of S are not of one class, whose rows may be dropped for each other, and not of
/// rival classes. So S has at most one row of each group. Each row of S is of an open class, and each open class is in one
/// group. Hence |S| is at most the number of groups. ∎
///
/// The rows that [`star`](crate::star()) keeps are such a set but for those that [`n_kept_in_vain`] counts. So the other kept rows
/// are at most as many as the bound, in any keep order.
///
/// The fewest groups are hard to find, so the choice is greedy: the class with the fewest rivals that are not in a group
/// yet starts the next one, and its rivals join in the same order, each if it is a rival of all that joined before. In
/// clusters in which all are rivals, and in chains of versions of which each has the nearest ones as rivals, the bound is
/// what a keep order can reach.
///
/// Takes time for the pairs, twice, and 20 bytes for each class.
///
/// ```
/// use nearprint_join::{ClassNeighbours, star_bound};
///
/// // A chain of five: the best set has the two ends and the middle.
/// let pairs = [(0, 1, 2), (1, 2, 2), (2, 3, 1), (3, 4, 3)];
/// let mut chain = ClassNeighbours::new(5, || pairs.into_iter().flat_map(|(a, b, d)| [(a, b, d), (b, a, d)]));
/// assert_eq!(star_bound(&mut chain, |_| true), 3);
/// // An existing document represents the middle.
/// assert_eq!(star_bound(&mut chain, |class| class != 2), 2);
/// ```
#[must_use]
pub fn star_bound(rivals: &mut ClassNeighbours, is_open: impl Fn(u32) -> bool) -> u64 {
    rivals.sort();
    let mut cover = Cover::new(rivals, is_open);
    let mut n_groups = cover.n_alone;
    while let Some((_, first)) = cover.queue.pop_first() {
        cover.take_group(first);
        n_groups += 1;
    }
    debug_assert!(n_groups <= rivals.classes().count() as u64, "each group has a class that is in no other");
    n_groups
}

/// Returns the number of classes with a kept row that may be dropped for another kept row: it had its turn before that row.
/// `neighbours` are those of [`star`](crate::star()). Takes time for the pairs.
#[must_use]
pub fn n_kept_in_vain(neighbours: &ClassNeighbours, is_kept: impl Fn(u32) -> bool) -> u64 {
    let in_vain = |class: &u32| is_kept(*class) && neighbours.of(*class).any(|(keeper, _)| is_kept(keeper));
    neighbours.classes().filter(in_vain).count() as u64
}

/// The classes that are not in a group yet.
struct Cover<'a> {
    by_class: &'a ClassNeighbours,
    /// The number of rivals of each class that are not in a group; [`TAKEN`] for classes in a group, and for closed ones.
    n_rivals: Vec<u32>,
    /// The classes with rivals at the start, by (number of rivals that are not in a group, class).
    queue: BTreeSet<(u32, u32)>,
    /// The number of open classes without rivals. Each is a group of its own.
    n_alone: u64,
}

const TAKEN: u32 = u32::MAX;

impl<'a> Cover<'a> {
    fn new(by_class: &'a ClassNeighbours, is_open: impl Fn(u32) -> bool) -> Self {
        let n_rivals = by_class.classes().map(|class| if is_open(class) { 0 } else { TAKEN }).collect();
        let mut cover = Self { by_class, n_rivals, queue: BTreeSet::new(), n_alone: 0 };
        for class in by_class.classes().filter(|&class| is_open(class)) {
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

    /// Returns the rivals of a class that are not in a group.
    fn rivals(&self, class: u32) -> impl Iterator<Item = u32> {
        self.by_class.distinct(class).filter(|&other| self.n_rivals[other as usize] != TAKEN)
    }

    /// Makes the next group around a class that is no longer in the queue.
    fn take_group(&mut self, first: u32) {
        let mut rivals: Vec<(u32, u32)> = self.rivals(first).map(|r| (self.n_rivals[r as usize], r)).collect();
        rivals.sort_unstable();
        let mut group = vec![first];
        for (_, rival) in rivals {
            let are_rivals = |&other: &u32| self.by_class.has(rival, other);
            if group[1..].iter().all(are_rivals) {
                group.push(rival);
            }
        }
        for &class in &group {
            self.queue.remove(&(self.n_rivals[class as usize], class));
            self.n_rivals[class as usize] = TAKEN;
        }
        for &class in &group {
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
