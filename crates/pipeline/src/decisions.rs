//! What becomes of each document of a night.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt8Array, UInt64Array};
use nearprint_fingerprint::hamming_distance;
use nearprint_join::{Canonical, ClassNeighbours, Clusters, Decision, ExistingNeighbour, QueryRows, star};
use serde::{Deserialize, Serialize};

use crate::dataset::{DatasetWriter, StagedFile};
use crate::error::{PipelineError, Result};
use crate::operators::{ForestState, KeptExisting};
use crate::query_batch::{QueryBatch, SkipReason};
use crate::schema::DECISIONS;
use crate::tasks::BATCH_ROWS;

/// Which documents of a cluster are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterRule {
    /// Those that make a verified pair with a kept one.
    #[default]
    Star,
    /// All but one of each connected component, however far apart its ends are.
    Component,
}

/// What becomes of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowDecision {
    pub(crate) decision: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) canonical_id: Option<String>,
    pub(crate) distance: Option<u8>,
    /// First row and number of rows of its cluster; none for skipped documents.
    cluster: Option<(u32, u32)>,
}

/// The kept existing short text with the smallest id, by text hash.
pub(crate) type ExistingShort = HashMap<[u8; 16], String>;

/// Decisions, one for each row of the batch.
pub(crate) struct Decisions {
    pub(crate) rows: Vec<RowDecision>,
}

/// How many documents were decided how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionCounts {
    /// Kept documents.
    pub n_keep: u64,
    /// Dropped documents.
    pub n_drop: u64,
    /// Skipped documents.
    pub n_skip: u64,
    /// Documents by decision and reason.
    pub by_reason: BTreeMap<String, u64>,
    /// Clusters of two or more of the night's documents.
    pub n_clusters: u64,
    /// Documents of the largest.
    pub largest_cluster: u64,
}

impl Decisions {
    /// Decides, from what the forest pass gathered.
    pub(crate) fn new(
        batch: &QueryBatch,
        rows: &QueryRows<u64>,
        forest: &mut ForestState,
        short: &ExistingShort,
        rule: ClusterRule,
    ) -> Self {
        let decided = match rule {
            ClusterRule::Star => star_decisions(batch, rows, forest),
            ClusterRule::Component => component_decisions(batch, rows, forest),
        };
        let mut made: Vec<Option<RowDecision>> = vec![None; batch.len()];
        for (row, decision) in decided {
            made[row as usize] = Some(fingerprinted(batch, forest, row, decision));
        }
        for (row, decision) in short_decisions(batch, short) {
            made[row as usize] = Some(decision);
        }
        join_short_texts(batch, forest);
        let clusters = Clusters::of(&mut forest.sets, batch.rows().end);
        let finish = |(row, made): (usize, Option<RowDecision>)| match made {
            Some(decision) => {
                RowDecision { cluster: Some((clusters.first_row[row], clusters.n_rows[row])), ..decision }
            }
            None => keep_or("skip", batch.skipped[row].map_or("empty", SkipReason::name)),
        };
        Self { rows: made.into_iter().enumerate().map(finish).collect() }
    }

    /// The first row and the number of rows of a row's cluster; none for skipped documents.
    pub(crate) fn cluster(&self, row: u32) -> Option<(u32, u32)> {
        self.rows[row as usize].cluster
    }

    pub(crate) fn counts(&self) -> DecisionCounts {
        let mut counts = DecisionCounts::default();
        for (row, made) in (0..).zip(&self.rows) {
            match made.decision {
                "keep" => counts.n_keep += 1,
                "drop" => counts.n_drop += 1,
                _ => counts.n_skip += 1,
            }
            *counts.by_reason.entry(format!("{}_{}", made.decision, made.reason)).or_default() += 1;
            if let Some((first, n)) = made.cluster
                && first == row
                && n > 1
            {
                counts.n_clusters += 1;
                counts.largest_cluster = counts.largest_cluster.max(u64::from(n));
            }
        }
        counts
    }

    pub(crate) fn write(&self, batch: &QueryBatch, folder: &Path) -> Result<Vec<StagedFile>> {
        let mut writer = DatasetWriter::new(folder, "decisions", &DECISIONS, &[]);
        for (start, made) in (0u32..).step_by(BATCH_ROWS).zip(self.rows.chunks(BATCH_ROWS)) {
            let cluster = made.iter().map(|d| d.cluster.map(|(first, _)| batch.id(first)));
            let arrays: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from_iter_values((start..).take(made.len()).map(|row| batch.id(row)))),
                Arc::new(StringArray::from_iter_values(made.iter().map(|d| d.decision))),
                Arc::new(made.iter().map(|d| d.canonical_id.as_deref()).collect::<StringArray>()),
                Arc::new(made.iter().map(|d| d.distance).collect::<UInt8Array>()),
                Arc::new(StringArray::from_iter_values(made.iter().map(|d| d.reason))),
                Arc::new(cluster.collect::<StringArray>()),
                Arc::new(made.iter().map(|d| d.cluster.map(|(_, n)| u64::from(n))).collect::<UInt64Array>()),
            ];
            let rows = RecordBatch::try_new(Arc::clone(&DECISIONS), arrays);
            writer.write(rows.map_err(|e| PipelineError::Internal { stage: "decisions", reason: e.to_string() })?)?;
        }
        writer.finish()
    }
}

fn keep_or(decision: &'static str, reason: &'static str) -> RowDecision {
    RowDecision { decision, reason, canonical_id: None, distance: None, cluster: None }
}

/// A decision, its existing document at hand.
enum Decided {
    Keep,
    Existing(KeptExisting),
    Row(u32),
}

fn fingerprinted(batch: &QueryBatch, forest: &ForestState, row: u32, decided: Decided) -> RowDecision {
    let hash = |row: u32| batch.text_hashes[row as usize];
    let (id, canonical_hash, fingerprint) = match decided {
        Decided::Keep if forest.paired[row as usize] => return keep_or("keep", "canonical"),
        Decided::Keep => return keep_or("keep", "unique"),
        Decided::Existing(existing) => (existing.id, existing.text_hash, Some(existing.fingerprint)),
        Decided::Row(other) => (batch.id(other).to_owned(), hash(other), batch.fingerprints[other as usize]),
    };
    let exact = hash(row).is_some() && hash(row) == canonical_hash;
    let distance = batch.fingerprints[row as usize].zip(fingerprint).map(|(a, b)| hamming_distance(a, b));
    RowDecision {
        decision: "drop",
        reason: if exact { "exact" } else { "near" },
        canonical_id: Some(id),
        distance: distance.and_then(|d| u8::try_from(d).ok()),
        cluster: None,
    }
}

fn fingerprinted_rows(batch: &QueryBatch, rows: &QueryRows<u64>) -> Vec<u32> {
    batch.keep_order.iter().copied().filter(|&row| rows.class_of(row).is_some()).collect()
}

fn star_decisions(batch: &QueryBatch, rows: &QueryRows<u64>, forest: &mut ForestState) -> Vec<(u32, Decided)> {
    let pairs = std::mem::take(&mut forest.class_pairs);
    let neighbours = ClassNeighbours::new(rows.n_classes(), &pairs);
    drop(pairs);
    // A class has one nearest existing document, which is told by the class alone.
    let mut existing: Vec<Option<ExistingNeighbour>> = vec![None; rows.n_classes()];
    for (&class, nearest) in &forest.nearest_kept {
        existing[class as usize] = Some(ExistingNeighbour { distance: nearest.distance, existing: class });
    }
    let decided = star(&fingerprinted_rows(batch, rows), |row| rows.class_of(row), &neighbours, &existing);
    let told = |(row, decision): (u32, Decision)| {
        let decided = match decision {
            Decision::Keep => Decided::Keep,
            Decision::Drop { canonical: Canonical::Row(other), .. } => Decided::Row(other),
            Decision::Drop { canonical: Canonical::Existing(class), .. } => {
                forest.nearest_kept.get(&class).map_or(Decided::Keep, |e| Decided::Existing(e.clone()))
            }
        };
        (row, decided)
    };
    decided.into_iter().map(told).collect()
}

/// The canonical of a component: its kept existing document with the smallest id, or its first row in keep order.
fn component_decisions(batch: &QueryBatch, rows: &QueryRows<u64>, forest: &mut ForestState) -> Vec<(u32, Decided)> {
    let mut existing: HashMap<u32, KeptExisting> = HashMap::new();
    let firsts: Vec<KeptExisting> = forest.first_kept.values().cloned().collect();
    for found in firsts {
        let root = forest.sets.find(found.node);
        let best = existing.entry(root).or_insert_with(|| found.clone());
        if found.id < best.id {
            *best = found;
        }
    }
    let mut first: HashMap<u32, u32> = HashMap::new();
    let mut decided = Vec::new();
    for row in fingerprinted_rows(batch, rows) {
        let root = forest.sets.find(row);
        let canonical = *first.entry(root).or_insert(row);
        decided.push(match existing.get(&root) {
            Some(kept) => (row, Decided::Existing(kept.clone())),
            None if canonical == row => (row, Decided::Keep),
            None => (row, Decided::Row(canonical)),
        });
    }
    decided
}

fn short_rows(batch: &QueryBatch) -> impl Iterator<Item = (u32, [u8; 16])> {
    let short = |row: &u32| batch.skipped[*row as usize] == Some(SkipReason::TooShort);
    batch
        .keep_order
        .iter()
        .copied()
        .filter(short)
        .filter_map(|row| batch.text_hashes[row as usize].map(|hash| (row, hash)))
}

/// Texts below the floor: equal normalised text, or nothing.
fn short_decisions(batch: &QueryBatch, existing: &ExistingShort) -> Vec<(u32, RowDecision)> {
    let mut kept: HashMap<[u8; 16], u32> = HashMap::new();
    let decide = |(row, hash): (u32, [u8; 16])| {
        let canonical = existing.get(&hash).cloned();
        let canonical = canonical.or_else(|| kept.get(&hash).map(|&first| batch.id(first).to_owned()));
        if canonical.is_none() {
            kept.insert(hash, row);
            return (row, keep_or("keep", "too_short"));
        }
        (row, RowDecision { canonical_id: canonical, distance: Some(0), ..keep_or("drop", "exact") })
    };
    short_rows(batch).map(decide).collect()
}

/// Equal short texts are clusters too.
fn join_short_texts(batch: &QueryBatch, forest: &mut ForestState) {
    let mut first: HashMap<[u8; 16], u32> = HashMap::new();
    for (row, hash) in short_rows(batch) {
        let other = *first.entry(hash).or_insert(row);
        forest.sets.union(row, other);
    }
}
