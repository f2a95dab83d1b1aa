//! Tables of the query fingerprints, each sorted by another order of their bits.

use std::collections::HashMap;

use nearprint_fingerprint::Fingerprint;
use rayon::prelude::*;

use crate::kernel::scalar;
use crate::permutation::{Permutation, ones};
use crate::table_plan::{TablePlan, lookup_bits};

/// A range of a table that shares its prefix and is longer than this is a *hot block*: it gets tables of its own over the
/// bits that are left, so that a skewed batch costs more memory but never a scan of itself for each probe.
const HOT_ROWS: usize = 2048;

/// One table for each block order of a plan.
///
/// Invariant: a pair within the plan's distance is reported exactly once, from the first table whose lookup prefix both
/// share.
#[derive(Debug)]
pub(crate) struct PermutedTables<F> {
    plan: TablePlan,
    tables: Vec<PermutedTable<F>>,
}

impl<F: Fingerprint> PermutedTables<F> {
    /// `values` are distinct and have no bit above `plan.bits()`.
    pub(crate) fn build(values: &[F], plan: TablePlan) -> Self {
        let tables = plan.tables().par_iter().map(|p| PermutedTable::build(values, p, plan.max_distance())).collect();
        Self { plan, tables }
    }

    pub(crate) fn plan(&self) -> &TablePlan {
        &self.plan
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.tables.iter().map(PermutedTable::memory_bytes).sum()
    }

    /// Calls `found(i, value, distance)` once for every `fingerprints[i]` and every table value within the distance;
    /// table by table, so that one table at a time is in the caches.
    pub(crate) fn probe(&self, fingerprints: &[F], found: &mut dyn FnMut(usize, F, u32)) {
        for t in 0..self.tables.len() {
            for (i, &fingerprint) in fingerprints.iter().enumerate() {
                self.probe_table(t, fingerprint, &mut |value, distance| found(i, value, distance));
            }
        }
    }

    fn probe_table(&self, t: usize, fingerprint: F, found: &mut dyn FnMut(F, u32)) {
        let (earlier, table) = (&self.tables[..t], &self.tables[t]);
        table.probe(fingerprint, self.plan.max_distance(), &mut |value, distance| {
            let differing = fingerprint ^ value;
            if !earlier.iter().any(|other| differing & other.lookup_mask == F::ZERO) {
                found(value, distance);
            }
        });
    }
}

/// Permuted values in ascending order, found by their leading `lookup_bits` bits.
#[derive(Debug)]
struct PermutedTable<F> {
    permutation: Permutation,
    /// Bits of the plan's prefix that the directory resolves; at most the prefix's, so that no pair is missed.
    lookup_bits: u32,
    /// The lookup bits where they stand in an unpermuted fingerprint.
    lookup_mask: F,
    rows: Vec<F>,
    /// `rows[starts[p]..starts[p + 1]]` have the lookup prefix p.
    starts: Vec<u32>,
    /// Hot blocks by lookup prefix, over the bits below it.
    hot: HashMap<usize, PermutedTables<F>>,
}

impl<F: Fingerprint> PermutedTable<F> {
    fn build(values: &[F], permutation: &Permutation, max_distance: u32) -> Self {
        let bits = permutation.bits();
        let lookup_bits = lookup_bits(permutation.prefix_bits(), values.len());
        let mut rows: Vec<F> = values.iter().map(|&v| permutation.permute(v)).collect();
        rows.par_sort_unstable();
        let mut table = Self {
            permutation: permutation.clone(),
            lookup_bits,
            lookup_mask: permutation.invert(ones::<F>(bits) ^ ones::<F>(bits - lookup_bits)),
            rows,
            starts: Vec::new(),
            hot: HashMap::new(),
        };
        table.starts = table.directory();
        table.hot = table.split_hot_blocks(max_distance);
        table
    }

    /// The bits that are not looked up.
    fn rest_bits(&self) -> u32 {
        self.permutation.bits() - self.lookup_bits
    }

    fn prefix_of(&self, permuted: F) -> usize {
        // A shift by all bits would overflow; no lookup bits means one range.
        if self.lookup_bits == 0 {
            0
        } else {
            usize::try_from((permuted >> self.rest_bits()).to_u128()).unwrap_or(usize::MAX)
        }
    }

    fn directory(&self) -> Vec<u32> {
        let mut starts = vec![0u32; (1 << self.lookup_bits) + 1];
        for &row in &self.rows {
            starts[self.prefix_of(row) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        starts
    }

    fn split_hot_blocks(&self, max_distance: u32) -> HashMap<usize, PermutedTables<F>> {
        let rest = self.rest_bits();
        if self.lookup_bits == 0 {
            return HashMap::new();
        }
        let hot = (0..self.starts.len() - 1).filter(|&p| self.range(p).len() > HOT_ROWS);
        let split = hot.filter_map(|prefix| {
            let rows = self.range(prefix);
            let plan = TablePlan::choose(rest, max_distance, rows.len(), rows.len() as u64, usize::MAX);
            let splits = plan.tables().iter().any(|t| t.prefix_bits() > 0);
            splits.then(|| {
                let low: Vec<F> = rows.iter().map(|&row| row & ones::<F>(rest)).collect();
                (prefix, PermutedTables::build(&low, plan))
            })
        });
        split.collect()
    }

    fn range(&self, prefix: usize) -> &[F] {
        &self.rows[self.starts[prefix] as usize..self.starts[prefix + 1] as usize]
    }

    fn memory_bytes(&self) -> usize {
        let own = self.rows.len() * size_of::<F>() + self.starts.len() * size_of::<u32>();
        own + self.hot.values().map(PermutedTables::memory_bytes).sum::<usize>()
    }

    fn probe(&self, fingerprint: F, max_distance: u32, found: &mut dyn FnMut(F, u32)) {
        let permuted = self.permutation.permute(fingerprint);
        let prefix = self.prefix_of(permuted);
        let rows = self.range(prefix);
        if rows.len() > HOT_ROWS
            && let Some(tables) = self.hot.get(&prefix)
        {
            return self.probe_hot(tables, permuted, found);
        }
        scalar::within(permuted, rows, max_distance, |row, distance| found(self.permutation.invert(row), distance));
    }

    fn probe_hot(&self, tables: &PermutedTables<F>, permuted: F, found: &mut dyn FnMut(F, u32)) {
        let low = ones::<F>(self.rest_bits());
        let lead = permuted & !low;
        tables.probe(&[permuted & low], &mut |_, value, distance| {
            found(self.permutation.invert(lead | value), distance);
        });
    }
}
