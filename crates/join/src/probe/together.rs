//! Mapping by all threads together: a piece of existing fingerprints is cut by its leading bits, and each thread joins
//! one stripe after another.
//!
//! Each permuted table writes the piece, in its order, into buckets of some leading bits: one pass of a radix sort over a
//! chunk for each thread. A bucket fits a second-level cache, where one thread gathers its chunks and
//! sorts it by as many bits as the leaves of the walk have. So the piece needs one copy, whatever the number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::kernel::Width;
use crate::plan::cost::merge_bits;
use crate::plan::permutation::{common_prefix, ones};
use crate::plan::table_plan::Table;
use crate::probe::crossing::{half_mask, split};
use crate::probe::fan::FAN_BITS;
use crate::probe::permuted_table::{PermutedTables, ROW_BITS, Scratch};
use crate::probe::prefixes::Prefixes;
use crate::probe::radix_sort::{Digit, gather_by_leading_bits, partition};
use crate::probe::walk::Walker;

/// The largest number of leading bits of a bucket: the lines that one pass writes to fit the second-level cache.
const BUCKET_BITS: u32 = 10;
/// The approximate least number of rows in a bucket.
const BUCKET_ROWS: usize = 1 << 12;
/// The largest number of leading bits of a stripe, the buckets that one thread joins one after another.
const STRIPE_BITS: u32 = 6;
/// The number of stripes for each thread, at least, so that no thread waits long for the last stripe of another.
const STRIPES_OF_THREAD: usize = 4;
/// The largest bucket whose memory a thread keeps. Buckets of skewed fingerprints may have more rows.
const KEPT_ROWS: usize = 1 << 22;
/// The largest number of rows that a thread writes into buckets at a time: these are near enough to each other for the caches.
const CHUNK_ROWS: usize = 1 << 18;

/// The order of the fingerprints of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOrder {
    /// They ascend, which spares a table the work of putting them in order.
    Ascending,
    /// They have any order, and may be repeated.
    Any,
}

/// The memory that the threads need; it is kept from piece to piece.
#[derive(Debug)]
pub(crate) struct SharedScratch<F> {
    copy: Vec<F>,
    list: Vec<F>,
    threads: Mutex<Vec<Scratch<F>>>,
}

impl<F> Default for SharedScratch<F> {
    fn default() -> Self {
        Self { copy: Vec::new(), list: Vec::new(), threads: Mutex::default() }
    }
}

/// The pairs of a piece, as (existing fingerprint, query), and their number.
#[derive(Debug)]
pub(crate) struct FoundPairs<F> {
    /// In no particular order. No more than the limit.
    pub(crate) pairs: Vec<(F, F)>,
    /// The number of pairs, also if they are more than the limit.
    pub(crate) n_pairs: usize,
}

/// Rows in the order of a table and in buckets. `starts[b]..starts[b + 1]` are those of bucket `b`.
struct Chunk<'a, F> {
    rows: &'a [F],
    starts: Vec<u32>,
}

impl<F> Chunk<'_, F> {
    fn bucket(&self, bucket: usize) -> &[F] {
        &self.rows[self.starts[bucket] as usize..self.starts[bucket + 1] as usize]
    }
}

/// Rows that are mapped at once.
struct Rows<'a, F> {
    runs: Vec<&'a [F]>,
    /// One of the rows.
    first: F,
    /// Holds all bits in which some row differs from it, and perhaps more.
    differing: F,
}

impl<'a, F: Width> Rows<'a, F> {
    fn len(&self) -> usize {
        self.runs.iter().map(|run| run.len()).sum()
    }

    /// Splits the rows at the middle of the values that agree in their leading bits, if they cover little of these values. The
    /// runs ascend.
    fn halves(&self, bits: u32) -> Option<[Self; 2]> {
        let (first, last) = ends(&self.runs, bits)?;
        let mask = half_mask(first, last, bits, bits)?;
        let halves: Vec<[&'a [F]; 2]> = self.runs.iter().map(|run| split(run, first, mask)).collect();
        let half = |n: usize| halves.iter().map(|of_run| of_run[n]).filter(|run| !run.is_empty()).collect();
        Some([self.of_runs(half(0), bits)?, self.of_runs(half(1), bits)?])
    }

    /// Returns the rows of some runs, which are among these rows. `None` if there are none.
    fn of_runs(&self, runs: Vec<&'a [F]>, bits: u32) -> Option<Self> {
        let (first, last) = ends(&runs, bits)?;
        let differing = self.differing & ones::<F>(bits - common_prefix(first, last, bits));
        Some(Self { runs, first, differing })
    }
}

/// Returns the least and the largest value of runs that ascend. `None` if they have no rows.
fn ends<F: Width>(runs: &[&[F]], bits: u32) -> Option<(F, F)> {
    let low = ones::<F>(bits);
    let first = runs.iter().filter_map(|run| run.first()).min_by_key(|&&row| row & low)?;
    let last = runs.iter().filter_map(|run| run.last()).max_by_key(|&&row| row & low)?;
    Some((*first, *last))
}

/// The way in which a table's rows are cut.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// The number of leading bits in which all rows agree.
    root: u32,
    /// The number of leading bits that runs are sorted by.
    sorted_bits: u32,
    bucket_bits: u32,
    stripe_bits: u32,
}

impl<F: Width> PermutedTables<F> {
    /// Returns the pairs of fingerprints of `runs` with queries. A fingerprint that stands in several places may be in as many
    /// equal pairs. `probed` is called with numbers of rows while the work goes on; they add up to the rows of the runs. A
    /// stripe of one table counts its rows as a share of all tables.
    pub(crate) fn map_together(
        &self,
        (runs, order): (&[&[F]], RunOrder),
        scratch: &mut SharedScratch<F>,
        limit: usize,
        probed: &(dyn Fn(usize) + Sync),
    ) -> FoundPairs<F> {
        let n_pairs = AtomicUsize::new(0);
        let (n_tables, n_joined) = (self.plan().tables().len(), AtomicUsize::new(0));
        let joined = |n: usize| {
            let before = n_joined.fetch_add(n, Ordering::Relaxed);
            probed((before + n) / n_tables - before / n_tables);
        };
        let count_pair = || n_pairs.fetch_add(1, Ordering::Relaxed) < limit;
        let mut pairs = Vec::new();
        let Some(&first) = runs.iter().find_map(|run| run.first()) else {
            return FoundPairs { pairs, n_pairs: 0 };
        };
        let differing = runs
            .par_iter()
            .map(|run| run.par_chunks(CHUNK_ROWS).map(|rows| differing(first, rows)).reduce(|| F::ZERO, |a, b| a | b))
            .reduce(|| F::ZERO, |a, b| a | b);
        let all = [Rows { runs: runs.to_vec(), first, differing }];
        let halves = if order == RunOrder::Ascending { all[0].halves(self.plan().bits()) } else { None };
        for (t, table) in self.plan().tables().iter().enumerate() {
            let in_order = table.permutation.is_identity() && order == RunOrder::Ascending;
            // In the order of another table, rows that lie near each other are spread over all values.
            for rows in halves.as_ref().filter(|_| in_order).map_or(&all[..], |halves| halves) {
                pairs.extend(self.map_rows(t, (rows, in_order), scratch, &joined, &count_pair).into_iter().flatten());
            }
        }
        debug_assert_eq!(
            n_joined.load(Ordering::Relaxed),
            n_tables * all[0].len(),
            "the stripes of a table share its rows out, each row to one of them"
        );
        let n_pairs = n_pairs.into_inner();
        debug_assert_eq!(pairs.len(), n_pairs.min(limit), "pairs are held up to the limit, and counted beyond it");
        FoundPairs { pairs, n_pairs }
    }

    /// Returns the pairs of some rows in table `t`, by stripe. `count_pair` returns whether the pair is held, too.
    fn map_rows(
        &self,
        t: usize,
        (existing, in_order): (&Rows<'_, F>, bool),
        scratch: &mut SharedScratch<F>,
        joined: &(dyn Fn(usize) + Sync),
        count_pair: &(dyn Fn() -> bool + Sync),
    ) -> Vec<Vec<(F, F)>> {
        let (bits, table) = (self.plan().bits(), &self.plan().tables()[t]);
        let SharedScratch { copy, list, threads } = scratch;
        let threads = &*threads;
        let known = ones::<F>(bits) & !existing.differing;
        let (prefix, mask) = (table.permutation.permute(existing.first), table.permutation.permute(known));
        let rows = self.near_root(self.rows(t), (prefix, mask), list);
        let cut = self.cut(table, table.permutation.permute(existing.differing), existing.len(), rows.len());
        let chunks = if in_order {
            existing.runs.par_iter().map(|run| self.in_place(run, cut)).collect()
        } else {
            self.permuted(table, &existing.runs, cut, copy)
        };
        let prefixes = (table.max_prefix_distance > 0).then(|| {
            let fan_depth = cut.sorted_bits - FAN_BITS.min(cut.sorted_bits);
            // The queries of a permuted table ascend in so many leading bits only.
            let ascending = if table.permutation.is_identity() { bits } else { ROW_BITS.min(bits) };
            Prefixes::of(rows, bits, fan_depth.min(ascending))
        });
        let stripes = 0..1usize << cut.stripe_bits;
        stripes
            .into_par_iter()
            .with_max_len(1)
            .map(|stripe| {
                // A thread that finds no memory kept takes new memory.
                let mut own = threads.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
                let mut pairs = Vec::new();
                let queries = (rows, prefixes.as_ref());
                let n = self.join_stripe(t, (&chunks, in_order), queries, cut, stripe, &mut own, &mut |a, b| {
                    if count_pair() {
                        pairs.push((a, b));
                    }
                });
                joined(n);
                if own.run.capacity() <= KEPT_ROWS {
                    threads.lock().unwrap_or_else(PoisonError::into_inner).push(own);
                }
                pairs
            })
            .collect()
    }

    fn cut(&self, table: &Table, differing: F, n_rows: usize, n_queries: usize) -> Cut {
        let bits = self.plan().bits();
        let merges = table.max_prefix_distance == 0;
        // A merge needs queries that ascend, and those of a permuted table ascend in so many bits only.
        let ascending = if merges && !table.permutation.is_identity() { ROW_BITS.min(bits) } else { bits };
        let root = common_prefix(F::ZERO, differing, bits).min(ascending);
        let needed = if merges {
            merge_bits(table.block.width, root, n_rows, n_queries).min(ascending)
        } else {
            self.walk(table).leaf_depth(root, bits, n_rows, n_queries)
        };
        let sorted_bits = needed.min(root + ROW_BITS).max(root);
        let worth = (n_rows / BUCKET_ROWS).checked_ilog2().unwrap_or(0);
        let bucket_bits = (sorted_bits - root).min(BUCKET_BITS).min(worth);
        let least = (STRIPES_OF_THREAD * rayon::current_num_threads()).next_power_of_two().ilog2();
        // A stripe begins with a pass over all queries, so that more stripes need as many rows each.
        let worth = (n_rows / n_queries.max(1)).checked_ilog2().unwrap_or(0);
        debug_assert!(
            root + bucket_bits <= sorted_bits && sorted_bits <= bits,
            "a bucket is sorted by the bits behind its own"
        );
        Cut { root, sorted_bits, bucket_bits, stripe_bits: bucket_bits.min(STRIPE_BITS.min(least.max(worth))) }
    }

    /// Returns the bits of a permuted value that say in which bucket it is.
    fn bucket(&self, cut: Cut) -> Digit {
        Digit { low: self.plan().bits() - cut.root - cut.bucket_bits, width: cut.bucket_bits }
    }

    /// Finds the buckets of a run that is in the order of the table.
    fn in_place<'a>(&self, run: &'a [F], cut: Cut) -> Chunk<'a, F> {
        let bucket = self.bucket(cut);
        let mut starts = vec![0];
        let mut at = 0;
        for next in 1..=1usize << cut.bucket_bits {
            at += run[at..].partition_point(|&value| bucket.of(value) < next);
            #[allow(clippy::cast_possible_truncation, reason = "a piece has at most u32::MAX rows")]
            starts.push(at as u32);
        }
        debug_assert_eq!(at, run.len(), "the buckets hold all rows of the run");
        Chunk { rows: run, starts }
    }

    /// Writes the rows of all runs to `copy`, in the order of the table and in buckets.
    fn permuted<'a>(&self, table: &Table, runs: &[&[F]], cut: Cut, copy: &'a mut Vec<F>) -> Vec<Chunk<'a, F>> {
        let n_rows: usize = runs.iter().map(|run| run.len()).sum();
        if copy.len() < n_rows {
            copy.reserve_exact(n_rows - copy.len());
            copy.resize(n_rows, F::ZERO);
        }
        let mut rest = &mut copy[..n_rows];
        let mut chunks = Vec::new();
        for parts in chunks_of(runs) {
            let (out, later) = rest.split_at_mut(parts.iter().map(|part| part.len()).sum());
            chunks.push((parts, out));
            rest = later;
        }
        debug_assert!(rest.is_empty(), "the chunks fill the copy");
        let bucket = self.bucket(cut);
        let written = chunks.into_par_iter().with_max_len(1).map(|(parts, out)| {
            let starts = partition(&parts, out, |value| table.permutation.permute(value), bucket);
            Chunk { rows: &*out, starts }
        });
        written.collect()
    }

    /// Joins the buckets of a stripe with the queries `rows`, which are in the order of table `t`. Returns the number of
    /// rows of the stripe.
    #[allow(clippy::too_many_arguments, reason = "one caller")]
    fn join_stripe(
        &self,
        t: usize,
        (chunks, in_order): (&[Chunk<'_, F>], bool),
        (rows, prefixes): (&[F], Option<&Prefixes<'_, F>>),
        cut: Cut,
        stripe: usize,
        scratch: &mut Scratch<F>,
        found: &mut dyn FnMut(F, F),
    ) -> usize {
        let (bits, table) = (self.plan().bits(), &self.plan().tables()[t]);
        let per_stripe = 1usize << (cut.bucket_bits - cut.stripe_bits);
        let buckets = stripe * per_stripe..(stripe + 1) * per_stripe;
        let firsts = chunks.iter().filter_map(|chunk| {
            let all = chunk.starts[buckets.start] as usize..chunk.starts[buckets.end] as usize;
            chunk.rows[all].first()
        });
        let Some(&first) = firsts.copied().collect::<Vec<F>>().first() else { return 0 };
        let n_rows: usize = chunks.iter().map(|c| (c.starts[buckets.end] - c.starts[buckets.start]) as usize).sum();
        let Scratch { run: bucket, spare, lists, starts, .. } = scratch;
        let mut leaf = |run: &[F], queries: &[F], distances: &[u8], depth: u32| {
            self.join_leaf(run, queries, distances, depth, &mut |a, b| self.report(t, a, b, found));
        };
        let root = cut.root + cut.stripe_bits;
        let mut walker = (table.max_prefix_distance > 0).then(|| {
            let walk = self.walk(table);
            let levels = walk.levels(root, cut.sorted_bits, n_rows, rows.len());
            Walker::new(walk, levels, first, rows, lists).with_prefixes(prefixes)
        });
        let merge = self.merge(table);
        for b in buckets {
            let parts: Vec<&[F]> = chunks.iter().map(|chunk| chunk.bucket(b)).filter(|part| !part.is_empty()).collect();
            let run = match (parts.as_slice(), in_order) {
                ([], _) => continue,
                (&[run], true) => run,
                _ => {
                    let known = cut.root + cut.bucket_bits;
                    gather_by_leading_bits(&parts, bucket, spare, bits - known, cut.sorted_bits - known);
                    bucket.as_slice()
                }
            };
            match &mut walker {
                Some(walker) => walker.feed(run, &mut leaf),
                None => merge.merge(run, rows, cut.sorted_bits, starts, &mut leaf),
            }
        }
        n_rows
    }
}

/// Cuts runs, and puts those together that are short.
fn chunks_of<'a, F>(runs: &[&'a [F]]) -> Vec<Vec<&'a [F]>> {
    let (mut chunks, mut chunk, mut n_rows) = (Vec::new(), Vec::new(), 0);
    for part in runs.iter().flat_map(|run| run.chunks(CHUNK_ROWS)) {
        if n_rows + part.len() > CHUNK_ROWS {
            chunks.push(std::mem::take(&mut chunk));
            n_rows = 0;
        }
        chunk.push(part);
        n_rows += part.len();
    }
    chunks.push(chunk);
    chunks
}

/// Returns the bits in which some row differs from `first`.
fn differing<F: Width>(first: F, rows: &[F]) -> F {
    rows.iter().fold(F::ZERO, |bits, &row| bits | (row ^ first))
}

#[cfg(test)]
mod tests {
    use super::{Rows, differing};

    #[test]
    fn rows_around_a_middle_are_mapped_by_halves_and_others_at_once() {
        let rows = |runs: Vec<&'static [u64]>| {
            let first = *runs.iter().find_map(|run| run.first()).unwrap();
            let differing = runs.iter().fold(0, |bits, run| bits | differing(first, run));
            Rows { runs, first, differing }
        };
        let middle = rows(vec![&[0x7FF0, 0x7FFF, 0x8000], &[0x8001, 0x8003], &[]]);
        let [left, right] = middle.halves(16).unwrap();
        assert_eq!((left.runs, left.first, left.differing), (vec![&[0x7FF0, 0x7FFF][..]], 0x7FF0, 0xF));
        assert_eq!((right.runs, right.first, right.differing), (vec![&[0x8000][..], &[0x8001, 0x8003]], 0x8000, 3));
        assert!(rows(vec![&[0x1000, 0xF000], &[]]).halves(16).is_none(), "they cover nearly all values");
        assert!(rows(vec![&[0x7777], &[0x7777]]).halves(16).is_none(), "they are equal");
    }
}
