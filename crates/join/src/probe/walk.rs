//! The prefix walk treats sorted fingerprints as a trie and keeps, at each of its nodes, the queries that can still be
//! near.
//!
//! A sorted run is a binary trie. On the way down, the walk keeps only those queries whose leading bits differ from the
//! node's in few enough places. Of m uniform queries these are m · Σ C(p, i) / 2^p at depth p, so the list shrinks by
//! about half with every bit. When the run's range is short, the walk compares everything that is left. It needs no
//! tables of the run, reads it once, in order, and touches only data in the innermost caches.

use crate::kernel::{Kernel, PADDING, Width};
use crate::plan::near::n_near_prefixes;
use crate::plan::permutation::{common_prefix, leading_ones};
use crate::probe::crossing::{half_mask, split};
use crate::probe::fan::{FAN_BITS, Fan, Stem};
use crate::probe::prefixes::Prefixes;

/// The approximate number of fingerprints of a leaf.
pub(crate) const LEAF_ROWS: usize = 16;
/// The largest distance at which leaves have twice as many, and no list becomes a fan: lists are shorter from bit to bit.
const FEW_DIFFERING: u32 = 4;
/// The number of bits from one level to the next: four children share their parent's list, which costs as much as two
/// levels of two children.
pub(crate) const STEP_BITS: u32 = 2;
/// A list this short is not made shorter.
const SHORT_LIST: usize = 4;
/// A list becomes a fan if at least so many more fingerprints are below its node.
const FAN_ROWS: usize = 4 * LEAF_ROWS;
/// A list becomes a fan if it has at least so many times as many queries as the fan has keys, each of which it touches.
const FAN_QUERIES: usize = 2;
/// The number of fingerprints whose leaves are found at once, to be compared while they are in the innermost cache.
const SLICE_ROWS: usize = 4096;

/// The limits by which a walk prunes: of the `bits` lowest bits, at most `max_prefix_distance` of the leading
/// `prefix_bits` may differ, and at most `max_distance` in all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    pub(crate) kernel: Kernel,
    pub(crate) bits: u32,
    pub(crate) prefix_bits: u32,
    pub(crate) max_prefix_distance: u32,
    pub(crate) max_distance: u32,
}

/// A function that takes fingerprints of a run that agree in some leading bits, the queries that may be near to them,
/// the distances of the queries to the fingerprints in these bits, if they are known, and the number of these bits.
pub(crate) type Leaf<'a, F> = &'a mut dyn FnMut(&[F], &[F], &[u8], u32);

/// The lists of the nodes from the root to the leaf, one after the other; the memory is kept from walk to walk.
#[derive(Debug)]
pub(crate) struct Lists<F> {
    values: Vec<F>,
    starts: Vec<u32>,
    fan: Fan<F>,
}

impl<F> Default for Lists<F> {
    fn default() -> Self {
        Self { values: Vec::new(), starts: Vec::new(), fan: Fan::default() }
    }
}

/// A level of the trie: the list of the node that was visited last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level<F> {
    depth: u32,
    mask: F,
    max_distance: u32,
    start: usize,
    len: usize,
}

impl Walk {
    /// Calls `leaf(fingerprints, queries, distances, depth)` such that, for every fingerprint of `run` and every query of `list`
    /// within the distances, both stand in one leaf. `run` is in ascending order of its leading `sorted_bits`; the
    /// fingerprints of a leaf agree in their leading `depth` bits.
    pub(crate) fn walk<F: Width>(
        &self,
        run: &[F],
        sorted_bits: u32,
        list: &[F],
        lists: &mut Lists<F>,
        leaf: Leaf<'_, F>,
    ) {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return };
        let mask = half_mask(first, last, self.bits, sorted_bits);
        for run in mask.map_or([run, &[]], |mask| split(run, first, mask)) {
            let (Some(&first), Some(&last)) = (run.first(), run.last()) else { continue };
            let root = common_prefix(first, last, self.bits).min(sorted_bits);
            let levels = self.levels(root, sorted_bits, run.len(), list.len());
            Walker::new(*self, levels, first, list, lists).feed(run, leaf);
        }
    }
}

/// A walk under way: runs are fed to it in ascending order of their leading bits, as far as the leaves reach.
#[derive(Debug)]
pub(crate) struct Walker<'a, F> {
    walk: Walk,
    levels: Vec<Level<F>>,
    /// The number of levels whose lists are those of the nodes above the last leaf.
    valid: usize,
    last_leaf: F,
    /// The position of the level whose lists may become fans.
    fan_level: usize,
    /// Whether the fan is that of the node above the last leaf. `None` if none was asked for there.
    fanned: Option<bool>,
    lists: &'a mut Lists<F>,
    /// The queries by prefix, and the bits by which the prefixes of a fan's list differ from its node.
    prefixes: Option<(&'a Prefixes<'a, F>, Vec<usize>)>,
}

impl<'a, F: Width> Walker<'a, F> {
    /// Begins a walk of fingerprints that agree with `first` in the bits of the first of `levels`.
    pub(crate) fn new(walk: Walk, mut levels: Vec<Level<F>>, first: F, list: &[F], lists: &'a mut Lists<F>) -> Self {
        let values = &mut lists.values;
        // Lists about halve from level to level; room that is not touched takes no memory.
        values.reserve_exact((3 * (list.len() + PADDING)).saturating_sub(values.len()));
        if values.len() < list.len() + PADDING {
            values.resize(list.len() + PADDING, F::ZERO);
        }
        levels[0].len = F::select(walk.kernel, list, first, levels[0].mask, levels[0].max_distance, values);
        let fan_level = (levels.len() - 1).saturating_sub((FAN_BITS / STEP_BITS) as usize);
        Self { walk, levels, valid: 1, last_leaf: first, fan_level, fanned: None, lists, prefixes: None }
    }

    /// Takes the lists of fans from the queries by prefix, if they are long enough.
    pub(crate) fn with_prefixes(mut self, prefixes: Option<&'a Prefixes<'a, F>>) -> Self {
        let Level { depth, max_distance, .. } = self.levels[self.fan_level];
        self.prefixes = prefixes.and_then(|prefixes| Some((prefixes, prefixes.flips(depth, max_distance)?)));
        self
    }

    /// Walks the next run, which is in ascending order of the leading bits that the leaves have.
    pub(crate) fn feed(&mut self, run: &[F], leaf: Leaf<'_, F>) {
        let Self { walk, levels, valid, last_leaf, fan_level, fanned, lists, prefixes } = self;
        let Lists { values, starts, fan } = &mut **lists;
        let Level { mask, depth: leaf_depth, .. } = levels[levels.len() - 1];
        let mut parts = Vec::new();
        debug_assert!(
            run.is_sorted_by_key(|&row| row & mask),
            "a walk comes to each leaf once, in the order of prefixes"
        );
        let mut at = 0;
        for_each_group(walk.kernel, run, mask, starts, &mut |group: &[F]| {
            let shared = common_prefix(group[0], *last_leaf, walk.bits);
            *last_leaf = group[0];
            while levels[*valid - 1].depth > shared {
                *valid -= 1;
            }
            let node = levels[*fan_level].depth;
            *fanned = fanned.filter(|_| node <= shared);
            let stem = walk.stem(levels, *fan_level, group[0]);
            let may_fan = walk.max_distance > FEW_DIFFERING && stem.bits > 0 && fanned.is_none();
            let ahead = run.get(at + FAN_ROWS).filter(|_| may_fan);
            if ahead.is_some_and(|&row| (row ^ group[0]) & stem.mask == F::ZERO) {
                let least = FAN_QUERIES * stem.n_keys();
                if let Some((prefixes, flips)) = prefixes
                    && prefixes.near(group[0], node, flips, &mut parts) >= least
                {
                    fan.build(walk.kernel, &parts, stem);
                    *fanned = Some(true);
                } else {
                    walk.descend_to(*fan_level, levels, valid, group[0], values);
                    let Level { start, len, .. } = levels[*fan_level];
                    *fanned = Some(*valid > *fan_level && len >= least);
                    if *fanned == Some(true) {
                        fan.build(walk.kernel, &[&values[start..start + len]], stem);
                    }
                }
            }
            at += group.len();
            if *fanned == Some(true) {
                let (list, distances) = fan.list(walk.kernel, group[0], stem);
                if !list.is_empty() {
                    leaf(group, list, distances, leaf_depth);
                }
                return;
            }
            walk.descend_to(levels.len() - 1, levels, valid, group[0], values);
            let bottom = levels[*valid - 1];
            if bottom.len > 0 {
                leaf(group, &values[bottom.start..bottom.start + bottom.len], &[], leaf_depth);
            }
        });
    }
}

impl Walk {
    /// Returns the node of a level above `value`, and the limits of the leaves below it.
    fn stem<F: Width>(&self, levels: &[Level<F>], level: usize, value: F) -> Stem<F> {
        let (node, leaf) = (levels[level], levels[levels.len() - 1]);
        debug_assert!(
            node.depth <= leaf.depth && leaf.depth <= self.bits,
            "a leaf lies below its node, inside the fingerprint"
        );
        Stem {
            value,
            mask: node.mask,
            bits: leaf.depth - node.depth,
            rest_bits: self.bits - leaf.depth,
            max_above: node.max_distance.min(node.depth),
            max_distance: leaf.max_distance.min(leaf.depth),
        }
    }

    /// Makes the lists of the levels from `valid` to `to`, as long as they are not short.
    fn descend_to<F: Width>(
        &self,
        to: usize,
        levels: &mut [Level<F>],
        valid: &mut usize,
        value: F,
        values: &mut Vec<F>,
    ) {
        while *valid <= to && levels[*valid - 1].len > SHORT_LIST {
            self.descend(levels, *valid, value, values);
            *valid += 1;
        }
    }

    /// Makes the list of level `to` from the list of the level above it.
    fn descend<F: Width>(&self, levels: &mut [Level<F>], to: usize, value: F, values: &mut Vec<F>) {
        let above = levels[to - 1];
        let start = above.start + above.len;
        if values.len() < start + above.len + PADDING {
            values.resize(start + above.len + PADDING, F::ZERO);
        }
        let (known, room) = values.split_at_mut(start);
        let list = &known[above.start..start];
        let level = &mut levels[to];
        level.len = F::select(self.kernel, list, value, level.mask, level.max_distance, room);
        debug_assert!(level.len <= above.len, "a descendant's list is a part of the list above it");
        // If nothing was dropped, the list above serves: lists that do not shrink take no memory.
        level.start = if level.len == above.len { above.start } else { start };
    }

    /// Returns the levels from the root, in whose bits all of the run agree, to the leaves.
    pub(crate) fn levels<F: Width>(
        &self,
        root: u32,
        sorted_bits: u32,
        n_rows: usize,
        n_queries: usize,
    ) -> Vec<Level<F>> {
        let bottom = self.leaf_depth(root, sorted_bits, n_rows, n_queries);
        let mut depths: Vec<u32> = (root..=bottom).rev().step_by(STEP_BITS as usize).collect();
        if depths.last() != Some(&root) {
            depths.push(root);
        }
        depths.reverse();
        let level = |depth: u32| Level {
            depth,
            mask: leading_ones::<F>(self.bits, depth),
            max_distance: self.limit(depth),
            start: 0,
            len: 0,
        };
        depths.into_iter().map(level).collect()
    }

    /// Returns the depth at which ranges of uniform rows, or the lists, are short.
    pub(crate) fn leaf_depth(&self, root: u32, sorted_bits: u32, n_rows: usize, n_queries: usize) -> u32 {
        // At small distances lists are short, and it takes longer to begin a leaf than to compare twice as many rows.
        let leaf_rows = if self.max_distance <= FEW_DIFFERING { 2 * LEAF_ROWS } else { LEAF_ROWS };
        let short_range = root + (n_rows / leaf_rows).checked_ilog2().unwrap_or(0);
        // Bits below the prefix, which may all differ, hardly shorten a list.
        let useful = if root < self.prefix_bits { self.prefix_bits } else { self.bits };
        let deepest = short_range.min(sorted_bits).min(useful);
        let expected = |depth: u32| self.list_share(depth) / self.list_share(root) * to_f64(n_queries);
        (root..deepest).find(|&depth| expected(depth) < 1.0).unwrap_or(deepest)
    }

    /// Returns the number of leading `depth` bits that may differ.
    pub(crate) fn limit(&self, depth: u32) -> u32 {
        if depth <= self.prefix_bits { self.max_prefix_distance } else { self.max_distance }
    }

    /// Returns the share of uniform queries that a node at `depth` keeps.
    pub(crate) fn list_share(&self, depth: u32) -> f64 {
        let lead = depth.min(self.prefix_bits);
        let led = n_near_prefixes(lead, self.max_prefix_distance);
        led * n_near_prefixes(depth - lead, self.max_distance) / 2f64.powi(depth.cast_signed())
    }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn to_f64(n: usize) -> f64 {
    n as f64
}

/// Calls `group` with each longest range of values that agree in the bits of `mask`, in order.
pub(crate) fn for_each_group<F: Width>(
    kernel: Kernel,
    values: &[F],
    mask: F,
    starts: &mut Vec<u32>,
    group: &mut dyn FnMut(&[F]),
) {
    let (mut at, mut rows) = (0, SLICE_ROWS);
    while at < values.len() {
        let end = values.len().min(at + rows);
        let slice = &values[at..end];
        if starts.len() < slice.len() + PADDING {
            starts.resize(slice.len() + PADDING, 0);
        }
        let n_starts = F::group_starts(kernel, slice, mask, starts);
        let mut from = 0;
        for &start in &starts[..n_starts] {
            group(&slice[from..start as usize]);
            from = start as usize;
        }
        if end == values.len() {
            return group(&slice[from..]);
        }
        // The last group may continue beyond the slice. If a group fills the slice, the next slice is longer.
        rows = if from == 0 { 2 * rows } else { SLICE_ROWS };
        at += from;
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAF_ROWS, Lists, Walk};
    use crate::kernel::Kernel;

    #[test]
    fn a_run_around_the_middle_of_all_values_has_leaves_no_larger_than_another_one() {
        let largest_leaf = |from: u64| {
            let run: Vec<u64> = (0..1 << 16).map(|i| from + (i << 36)).collect();
            let list: Vec<u64> = run.iter().step_by(100).copied().collect();
            let walk =
                Walk { kernel: Kernel::SCALAR, bits: 64, prefix_bits: 64, max_prefix_distance: 3, max_distance: 3 };
            let mut largest = 0;
            walk.walk(&run, 64, &list, &mut Lists::default(), &mut |rows, _, _, _| largest = rows.len().max(largest));
            largest
        };
        // In place of 32 they have 64, because either side covers half of the values that agree in its leading bits.
        let (aside, around) = (largest_leaf(1 << 62), largest_leaf((1 << 63) - (30_000 << 36)));
        assert!(aside <= 2 * LEAF_ROWS && around <= 4 * LEAF_ROWS, "{aside}, {around}");
    }
}
