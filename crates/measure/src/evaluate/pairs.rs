//! The pairs that are positive, gray or found, and the scores at given distances.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use nearprint_fault::Result;
use nearprint_join::{Column, HammingJoin, QueryRows, SketchDistance, UnionFind, Verifier};
use nearprint_storage::row_number;
use nearprint_tasks::QueryBatch;

use super::score::{Counts, Score};
use super::truth::{Label, Truth};

#[derive(Debug, Clone, Copy)]
struct Distances {
    distance: u8,
    sketches: SketchDistance,
}

#[derive(Debug, Clone, Copy)]
struct LabelledPair {
    a: u32,
    b: u32,
    label: Label,
    /// The distances of the two texts, if the join found the pair.
    found: Option<Distances>,
}

impl LabelledPair {
    fn is_found(&self, limits: &Verifier) -> bool {
        self.found.is_some_and(|d| limits.allows(d.distance, d.sketches))
    }
}

/// The pairs that count in at least one row of the tables.
#[derive(Debug)]
pub struct Pairs {
    pairs: Vec<LabelledPair>,
    /// The number of normalised characters of each document.
    lengths: Vec<u32>,
}

/// Joins the documents that are not left out with each other. Every pair that at least one of `rows` allows is kept.
/// `candidates` has the widest limits, and it compares sketches if there are any.
pub fn find(
    batch: &QueryBatch,
    truth: &Truth,
    left_out: &[bool],
    candidates: Verifier,
    bits: u32,
    rows: &[Verifier],
) -> Result<Pairs> {
    let mut found: HashMap<(u32, u32), Distances> = HashMap::new();
    let mut others = Vec::new();
    let mut add = |a: u32, b: u32, distances: Distances| {
        let label = truth.label(a, b);
        if label != Label::Negative {
            found.insert((a.min(b), a.max(b)), distances);
        } else if rows.iter().any(|row| row.allows(distances.distance, distances.sketches)) {
            others.push(LabelledPair { a, b, label, found: Some(distances) });
        }
    };
    self_join(batch, left_out, candidates, bits, &mut add)?;
    same_short_texts(batch, left_out, |a, b| {
        add(a, b, Distances { distance: 0, sketches: SketchDistance::NotCompared })
    });
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
    let rows = QueryRows::group(fingerprints, Arc::clone(&batch.sketches))?;
    let join = HammingJoin::new(verifier.max_distance.into());
    join.rows_within(rows, &verifier, bits, |p| {
        let sketches = p.sketch_distance.map_or(SketchDistance::NotCompared, SketchDistance::Bits);
        found(p.a, p.b, Distances { distance: p.distance, sketches });
    })?;
    Ok(())
}

/// Finds the pairs of texts below the feature floor, which are pairs if the normalised texts are equal.
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
    /// Returns the pairs of rows that are found at the given limits, smaller row first.
    pub fn found(&self, limits: &Verifier) -> HashSet<(u32, u32)> {
        let found = self.pairs.iter().filter(|pair| pair.is_found(limits));
        found.map(|pair| (pair.a.min(pair.b), pair.a.max(pair.b))).collect()
    }

    /// Returns the score of all pairs at the given limits.
    pub fn score(&self, limits: &Verifier) -> Score {
        self.scores(limits, &[]).remove(0)
    }

    /// Returns one score for each range of lengths. A range goes from one of `starts` to just below the next, and the
    /// length of a pair is that of its shorter text. If `starts` is empty, the only score is that of all pairs. The
    /// components are those of all pairs, regardless of length.
    pub fn scores(&self, limits: &Verifier, starts: &[u32]) -> Vec<Score> {
        let found = |pair: &LabelledPair| pair.is_found(limits);
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
