//! A fan is a sorted copy of the list of a node, from which the lists of its descendants some levels below are read.
//!
//! To select the list of each descendant takes a pass over the list above it, although only a small share is kept. A
//! fan is sorted once for all descendants: by the number of leading bits in which a query differs from the node, and
//! then by the next bits. Of the queries that differ in `a` leading bits, a descendant needs those whose next bits
//! differ from its own in at most `t − a` places. They are a few ranges, and each has one distance.

use crate::kernel::{Kernel, PADDING, Task, Width};
use crate::plan::permutation::ones;

/// The largest number of bits from a node to the descendants that its fan serves.
pub(crate) const FAN_BITS: u32 = 8;

/// Queries are selected, and not read range by range, if they are fewer than so many times the ranges.
const SELECTED: usize = 8;
/// The number of values that are copied at once, up to so many beyond the end of a range.
const COPIED: usize = 8;

/// A node and the limits of the lists below it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stem<F> {
    /// A value below the node, and the bits that all such values share.
    pub(crate) value: F,
    pub(crate) mask: F,
    /// The number of bits that the descendants' prefixes have in addition, and of those below them.
    pub(crate) bits: u32,
    pub(crate) rest_bits: u32,
    /// The largest distance of a query of the node's list to the node, and of one of a descendant's list to the
    /// descendant.
    pub(crate) max_above: u32,
    pub(crate) max_distance: u32,
}

impl<F: Width> Stem<F> {
    /// Returns the number of keys of a fan: distances above, and values of the next bits.
    pub(crate) fn n_keys(&self) -> usize {
        (self.max_above as usize + 1) << self.bits
    }

    /// Returns the next bits of a value.
    #[inline(always)]
    fn next(&self, value: F) -> usize {
        (value >> self.rest_bits).low_bits() & ((1 << self.bits) - 1)
    }
}

/// The memory of a fan; it is kept from node to node.
#[derive(Debug)]
pub(crate) struct Fan<F> {
    /// The sorted list, and [`PADDING`] more values.
    values: Vec<F>,
    /// The start of the queries of each key, which is the distance above and the next bits, and the end of the last.
    starts: Vec<u32>,
    /// The key of each query of the list.
    keys: Vec<u16>,
    /// All next bits, those of fewer ones first.
    flips: Vec<Flip>,
    /// For each distance, the number of flips within it.
    n_flips: Vec<usize>,
    /// The list of the last descendant, with room for whole copies.
    near: Vec<F>,
    distances: Vec<u8>,
}

impl<F> Default for Fan<F> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            starts: Vec::new(),
            keys: Vec::new(),
            flips: Vec::new(),
            n_flips: Vec::new(),
            near: Vec::new(),
            distances: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Flip {
    bits: u16,
    distance: u8,
}

impl<F: Width> Fan<F> {
    /// Sorts the list of a node, whose queries are within `stem.max_above` of it. The list has some parts.
    pub(crate) fn build(&mut self, kernel: Kernel, list: &[&[F]], stem: Stem<F>) {
        self.set_bits(stem.bits);
        let n_queries: usize = list.iter().map(|part| part.len()).sum();
        for values in [&mut self.values, &mut self.near] {
            if values.len() < n_queries + PADDING {
                values.resize(n_queries + PADDING, F::ZERO);
            }
        }
        self.distances.resize(self.near.len(), 0);
        kernel.run(Build { fan: self, list, stem });
    }

    /// Returns the list of the descendant above `value`, and the distance of each query to the descendant.
    pub(crate) fn list(&mut self, kernel: Kernel, value: F, stem: Stem<F>) -> (&[F], &[u8]) {
        debug_assert!(self.flips.len() == 1 << stem.bits, "a fan is asked for the bits that it was built for");
        let n = kernel.run(Gather { fan: self, kernel, value, stem });
        debug_assert!(
            self.distances[..n].iter().all(|&distance| u32::from(distance) <= stem.max_distance),
            "a descendant's list holds no query beyond its distance"
        );
        (&self.near[..n], &self.distances[..n])
    }

    #[allow(clippy::cast_possible_truncation, reason = "at most 8 bits")]
    fn set_bits(&mut self, bits: u32) {
        debug_assert!(bits <= FAN_BITS, "keys and distances have room for so many bits");
        if self.flips.len() == 1 << bits {
            return;
        }
        self.flips = (0..1u16 << bits).map(|flip| Flip { bits: flip, distance: flip.count_ones() as u8 }).collect();
        self.flips.sort_by_key(|flip| flip.distance);
        let within = |distance| self.flips.partition_point(|flip| u32::from(flip.distance) <= distance);
        self.n_flips = (0..=bits).map(within).collect();
    }
}

struct Build<'a, F> {
    fan: &'a mut Fan<F>,
    list: &'a [&'a [F]],
    stem: Stem<F>,
}

impl<F: Width> Task for Build<'_, F> {
    type Output = ();

    /// A counting sort.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "a list has at most u32::MAX queries, and a key 7 + 8 bits")]
    fn run(self) {
        let Self { fan: Fan { values, starts, keys, .. }, list, stem } = self;
        debug_assert!(stem.n_keys() <= 1 << 16, "a key has 16 bits: those above the node and those below it");
        keys.clear();
        for part in list {
            keys.extend(part.iter().map(|&query| {
                let above = ((query ^ stem.value) & stem.mask).count_ones() as usize;
                (above << stem.bits | stem.next(query)) as u16
            }));
        }
        let n_keys = stem.n_keys();
        debug_assert!(
            keys.iter().all(|&key| (key as usize) < n_keys),
            "the list of a node holds no query beyond the node's distance"
        );
        starts.clear();
        starts.resize(n_keys + 2, 0);
        // Keys are counted two places further on; when a query is placed, the start of its key moves on to that of the
        // next, which stands one place further on.
        for &key in &*keys {
            starts[key as usize + 2] += 1;
        }
        let mut sum = 0;
        for start in &mut *starts {
            sum += *start;
            *start = sum;
        }
        let mut rest = keys.as_slice();
        for part in list {
            let (of_part, later) = rest.split_at(part.len());
            for (&query, &key) in part.iter().zip(of_part) {
                let at = &mut starts[key as usize + 1];
                values[*at as usize] = query;
                *at += 1;
            }
            rest = later;
        }
    }
}

struct Gather<'a, F> {
    fan: &'a mut Fan<F>,
    kernel: Kernel,
    value: F,
    stem: Stem<F>,
}

impl<F: Width> Task for Gather<'_, F> {
    type Output = usize;

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "distances are at most 128")]
    fn run(self) -> usize {
        let Self { fan: Fan { values, starts, flips, n_flips, near, distances, .. }, kernel, value, stem } = self;
        let next = stem.next(value);
        let mask = ones::<F>(stem.bits) << stem.rest_bits;
        let mut n = 0;
        for above in 0..=stem.max_above.min(stem.max_distance) {
            let reach = (stem.max_distance - above).min(stem.bits);
            let flips = &flips[..n_flips[reach as usize]];
            let first = (above as usize) << stem.bits;
            let (start, end) = (starts[first] as usize, starts[first + (1 << stem.bits)] as usize);
            if end - start < SELECTED * flips.len() {
                let n_near = F::select(kernel, &values[start..end], value, mask, reach, &mut near[n..]);
                for (&query, to) in near[n..n + n_near].iter().zip(&mut distances[n..]) {
                    *to = (above + (stem.next(query) ^ next).count_ones()) as u8;
                }
                n += n_near;
                continue;
            }
            let starts = &starts[first..];
            for flip in flips {
                let key = next ^ flip.bits as usize;
                let (start, end) = (starts[key] as usize, starts[key + 1] as usize);
                let distance = above as u8 + flip.distance;
                // Most ranges are short. The copy of their first values takes no branch on their length.
                let mut copy = |from: usize, to: usize| {
                    near[to..to + COPIED].copy_from_slice(&values[from..from + COPIED]);
                    distances[to..to + COPIED].fill(distance);
                };
                copy(start, n);
                let mut copied = COPIED;
                while copied < end - start {
                    copy(start + copied, n + copied);
                    copied += COPIED;
                }
                n += end - start;
            }
        }
        n
    }
}
