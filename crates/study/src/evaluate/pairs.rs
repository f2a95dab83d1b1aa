//! The pairs that are positive, gray or found, and the scores of those within given distances.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nearprint_join::{Column, Kernel, MapScratch, Queries, QueryRows, TablePlan, UnionFind, Verifier, Workload};

use super::score::{Counts, Score};
use super::truth::{Label, Truth};
use crate::error::Result;
use nearprint_pipeline::QueryBatch;
use nearprint_storage::row_number;

/// Limits of a row of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub max_distance: u32,
    pub max_sketch_distance: Option<u16>,
}

#[derive(Debug, Clone, Copy)]
struct Distances {
    distance: u8,
    /// None where there are no sketches, or where short texts are the same.
    sketch_distance: Option<u16>,
}

impl Limits {
    fn allow(&self, found: Distances) -> bool {
        let sketch_is_near =
            self.max_sketch_distance.is_none_or(|limit| found.sketch_distance.is_none_or(|d| d <= limit));
        u32::from(found.distance) <= self.max_distance && sketch_is_near
    }
}

#[derive(Debug, Clone, Copy)]
struct LabelledPair {
    a: u32,
    b: u32,
    label: Label,
    /// Where the two were candidates.
    found: Option<Distances>,
}

/// Pairs that count in some row of the tables.
#[derive(Debug)]
pub struct Pairs {
    pairs: Vec<LabelledPair>,
    /// Normalised characters of each document.
    lengths: Vec<u32>,
}

/// Self-joins the documents that are not left out. Every pair that some of `rows` allows is kept; `candidates` is the widest of them,
/// with sketches compared where there are any.
pub fn find(
    batch: &QueryBatch,
    truth: &Truth,
    left_out: &[bool],
    candidates: Verifier,
    bits: u32,
    rows: &[Limits],
) -> Result<Pairs> {
    let mut found: HashMap<(u32, u32), Distances> = HashMap::new();
    let mut others = Vec::new();
    let mut add = |a: u32, b: u32, distances: Distances| {
        let label = truth.label(a, b);
        if label != Label::Negative {
            found.insert((a.min(b), a.max(b)), distances);
        } else if rows.iter().any(|row| row.allow(distances)) {
            others.push(LabelledPair { a, b, label, found: Some(distances) });
        }
    };
    self_join(batch, left_out, candidates, bits, &mut add)?;
    same_short_texts(batch, left_out, |a, b| add(a, b, Distances { distance: 0, sketch_distance: None }));
    let labelled = truth.labels.iter().map(|(&(a, b), &label)| {
        let found = found.get(&(a, b)).copied();
        LabelledPair { a, b, label, found }
    });
    let mut pairs: Vec<LabelledPair> = labelled.chain(others).collect();
    pairs.sort_unstable_by_key(|p| (p.a, p.b));
    Ok(Pairs { pairs, lengths: batch.lengths.iter().map(|length| length.copied().unwrap_or(0)).collect() })
}

fn self_join(
    batch: &QueryBatch,
    left_out: &[bool],
    verifier: Verifier,
    bits: u32,
    mut found: impl FnMut(u32, u32, Distances),
) -> Result<()> {
    let taking_part = |row: u32| batch.fingerprints.get(row).copied().filter(|_| !left_out[row as usize]);
    let fingerprints: Column<u64> = batch.rows().map(taking_part).collect();
    join_rows(QueryRows::group(fingerprints, Arc::clone(&batch.sketches))?, verifier, bits, |p| {
        found(p.a, p.b, Distances { distance: p.distance, sketch_distance: p.sketch_distance });
    })
}

/// Every verified pair of rows, which come with their values, in no particular order.
pub fn join_rows(
    (rows, values): (QueryRows, Vec<u64>),
    verifier: Verifier,
    bits: u32,
    mut found: impl FnMut(nearprint_join::RowPair),
) -> Result<()> {
    let n = values.len();
    let workload = Workload {
        n_queries: n,
        existing: Vec::new(),
        piece_rows: n,
        itself: true,
        memory_bytes: 1 << 30,
        threads: 1,
        pieces_under_way: 1,
    };
    let plan = TablePlan::choose(bits, u32::from(verifier.max_distance), &workload);
    let queries = Queries::try_new(values, plan, Kernel::best())?;
    for value in 0..row_number(n) {
        rows.all_pairs(value, value, 0, &verifier, &mut found);
    }
    queries.map_self(0..n, &mut MapScratch::default(), |pair| {
        rows.all_pairs(pair.query, pair.existing, pair.distance, &verifier, &mut found);
    });
    Ok(())
}

/// Below the feature floor, equal normalised texts are pairs.
fn same_short_texts(batch: &QueryBatch, left_out: &[bool], mut found: impl FnMut(u32, u32)) {
    let mut same: HashMap<[u8; 16], Vec<u32>> = HashMap::new();
    let short = |row: &u32| !left_out[*row as usize] && batch.fingerprints.get(*row).is_none();
    for row in batch.rows().filter(short) {
        if let Some(&hash) = batch.text_hashes.get(row) {
            let others = same.entry(hash).or_default();
            others.iter().for_each(|&other| found(other, row));
            others.push(row);
        }
    }
}

impl Pairs {
    /// The score of all pairs within the limits.
    pub fn score(&self, limits: &Limits) -> Score {
        self.scores(limits, &[]).remove(0)
    }

    /// The scores of pairs whose shorter text has a length from each of `starts` to below the next; of all where there is none.
    /// Components are those of all pairs, whatever their lengths.
    pub fn scores(&self, limits: &Limits, starts: &[u32]) -> Vec<Score> {
        let found = |pair: &LabelledPair| pair.found.is_some_and(|d| limits.allow(d));
        let mut sets = UnionFind::new(row_number(self.lengths.len()));
        for pair in self.pairs.iter().filter(|p| p.label != Label::Negative || found(p)) {
            sets.union(pair.a, pair.b);
        }
        let mut counts: Vec<BTreeMap<u32, Counts>> = vec![BTreeMap::new(); starts.len().max(1)];
        for pair in &self.pairs {
            let length = self.lengths[pair.a as usize].min(self.lengths[pair.b as usize]);
            let bucket = starts.iter().rposition(|&start| start <= length).unwrap_or(0);
            let counts = counts[bucket].entry(sets.find(pair.a)).or_default();
            let (is_found, is_positive) = (u64::from(found(pair)), u64::from(pair.label == Label::Positive));
            let is_gray = u64::from(pair.label == Label::Gray);
            counts.n_found += is_found * (1 - is_gray);
            counts.n_true += is_found * is_positive;
            counts.n_gray += is_found * is_gray;
            counts.n_positive += is_positive;
        }
        counts.iter().map(|by_component| Score::of(&by_component.values().copied().collect::<Vec<_>>())).collect()
    }
}
