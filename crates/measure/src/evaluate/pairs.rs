//! The pairs that are positive, gray or found, and the scores at given distances.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use nearprint_fault::Result;
use nearprint_fingerprint::Judge;
use nearprint_join::{
    ClassOfRows, Column, HammingJoin, JudgedPairs, QueryRows, SketchDistance, UndecidedPair, UnionFind, Verifier,
    nearest_undecided,
};
use nearprint_pipeline::{JudgeCounts, read_undecided};
use nearprint_storage::{Progress, row_number};
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
    /// Whether the judge took the pair for near-duplicates.
    is_judged: bool,
}

impl LabelledPair {
    fn is_found(&self, limits: &Verifier) -> bool {
        let by_judge =
            |d: &Distances| self.is_judged && limits.judged_to.is_some() && d.distance <= limits.max_distance;
        self.found.is_some_and(|d| limits.allows(d.distance, d.sketches) || by_judge(&d))
    }
}

/// The pairs that count in at least one row of the tables.
#[derive(Debug)]
pub struct Pairs {
    pairs: Vec<LabelledPair>,
    /// The number of normalised characters of each document.
    lengths: Vec<u32>,
}

/// Joins the documents that are not left out with each other. Every pair that at least one of `rows` allows is kept, and
/// every pair that the judge takes for near-duplicates. `candidates` has the widest limits, and it compares sketches if there
/// are any.
pub fn find(
    batch: &QueryBatch,
    truth: &Truth,
    left_out: &[bool],
    candidates: Verifier,
    bits: u32,
    (rows, judge): (&[Verifier], Option<&ProfileJudge>),
) -> Result<(Pairs, Option<JudgeCounts>)> {
    let taking_part = |row: u32| batch.fingerprints.get(row).copied().filter(|_| !left_out[row as usize]);
    let fingerprints: Column<u64> = batch.rows().map(taking_part).collect();
    let (grouped, values) =
        QueryRows::group_counted(fingerprints, Arc::clone(&batch.sketches), Arc::clone(&batch.n_features))?;
    let classes = grouped.class_of_rows(batch.n_rows);
    let mut undecided = Vec::new();
    let mut leave = |a: u32, b: u32, distance: u8, sketch_distance: u16| {
        let reads = judge.is_some_and(|judge| judge.reads(distance, sketch_distance));
        if reads && let Some((a, b)) = classes.of(a).zip(classes.of(b)) {
            undecided.push(UndecidedPair { sketch_distance, distance, a: a.min(b), b: a.max(b) });
        }
    };
    let mut found: HashMap<(u32, u32), Distances> = HashMap::new();
    let mut others = Vec::new();
    let mut add = |a: u32, b: u32, distances: Distances| {
        if let Some(sketch_distance) = distances.sketches.bits() {
            leave(a, b, distances.distance, sketch_distance);
        }
        let label = truth.label(a, b);
        if label != Label::Negative {
            found.insert((a.min(b), a.max(b)), distances);
        } else if rows.iter().any(|row| row.allows(distances.distance, distances.sketches))
            || judge.zip(distances.sketches.bits()).is_some_and(|(judge, bits)| judge.reads(distances.distance, bits))
        {
            others.push(LabelledPair { a, b, label, found: Some(distances), is_judged: false });
        }
    };
    HammingJoin::new(candidates.max_distance.into()).rows_within((grouped, values), &candidates, bits, |p| {
        let sketches = p.sketch_distance.map_or(SketchDistance::NotCompared, SketchDistance::Bits);
        add(p.a, p.b, Distances { distance: p.distance, sketches });
    })?;
    same_short_texts(batch, left_out, |a, b| {
        add(a, b, Distances { distance: 0, sketches: SketchDistance::NotCompared })
    });
    let labelled = truth.labels.iter().map(|(&(a, b), &label)| {
        let found = found.get(&(a, b)).copied();
        LabelledPair { a, b, label, found, is_judged: false }
    });
    let mut pairs: Vec<LabelledPair> = labelled.chain(others).collect();
    let counts = judge.map(|judge| judge.mark(batch, &classes, undecided, &mut pairs)).transpose()?;
    pairs.retain(|pair| {
        let allows = |d: Distances| rows.iter().any(|row| row.allows(d.distance, d.sketches));
        pair.label != Label::Negative || pair.is_judged || pair.found.is_some_and(allows)
    });
    pairs.sort_unstable_by_key(|p| (p.a, p.b));
    let lengths = batch.lengths.iter().map(|length| length.copied().unwrap_or(0)).collect();
    Ok((Pairs { pairs, lengths }, counts))
}

/// The judge of a profile, and the limits between which it is asked.
#[derive(Debug, Clone, Copy)]
pub struct ProfileJudge {
    pub judge: Judge,
    pub verifier: Verifier,
}

impl ProfileJudge {
    /// Returns whether texts are read whose fingerprints and sketches are at these distances: those that a night would read, also
    /// where larger distances are listed.
    fn reads(&self, distance: u8, sketch_distance: u16) -> bool {
        distance <= self.verifier.max_distance
            && self.verifier.max_sketch_distance.is_some_and(|near| sketch_distance > near)
            && self.verifier.judged_to.is_some_and(|far| sketch_distance <= far)
    }

    /// Reads the undecided pairs as a night would, and marks those whose texts are alike.
    fn mark(
        &self,
        batch: &QueryBatch,
        classes: &ClassOfRows,
        mut undecided: Vec<UndecidedPair>,
        pairs: &mut [LabelledPair],
    ) -> Result<JudgeCounts> {
        undecided.sort_unstable();
        undecided.dedup();
        let n_undecided = undecided.len() as u64;
        nearest_undecided(&mut undecided, self.judge.config.max_looks);
        let Some(words) = &batch.words else { return Ok(JudgeCounts { n_undecided, ..JudgeCounts::default() }) };
        let mut first: HashMap<u32, u32> = HashMap::new();
        for row in batch.rows().filter(|&row| batch.have_words.get(row).is_some()) {
            if let Some(class) = classes.of(row) {
                first.entry(class).or_insert(row);
            }
        }
        let first = |class| first.get(&class).copied();
        let (judged, n_read) =
            read_undecided(&self.judge, |row| words.read(row), first, undecided, &Progress::default())?;
        let judged = JudgedPairs::new(judged);
        for pair in pairs {
            let both = classes.of(pair.a).zip(classes.of(pair.b));
            pair.is_judged = both.is_some_and(|(a, b)| judged.get(a, b).is_some());
        }
        Ok(JudgeCounts::of(n_undecided, n_read, &judged))
    }
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
