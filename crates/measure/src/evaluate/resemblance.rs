//! The share of pairs that are found, by the exact resemblance of their texts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::TryStreamExt;
use nearprint_documents::{DocumentBatch, Documents};
use nearprint_fault::{Fault, Result};
use nearprint_join::UnionFind;
use nearprint_storage::{blocking, row_number};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::score::{Counts, Score};
use crate::resemblance::{AlikePair, LEAST_TENTHS, ShingleSet, Shingler, alike_pairs};

/// The first tenth whose pairs are clustered.
const LEAST: u64 = LEAST_TENTHS as u64;

/// The pairs by resemblance, and the share of them that is found at the profile's own distances. Labels play no part.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ByResemblance {
    /// The documents whose pairs are counted: those that are not left out and have a letter or digit, whether or not
    /// they have a fingerprint.
    pub n_documents: u64,
    /// The pairs by tenths of resemblance in ascending order, from the pairs below 0.4 to those that have the same
    /// shingles. Every pair of the documents is in one of the rows.
    pub rows: Vec<ResemblanceRow>,
    /// The pairs of 0.4 and more by hundredths, without the hundredths that have no pair.
    pub by_hundredth: Vec<Hundredth>,
}

/// The pairs in a range of resemblance.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ResemblanceRow {
    /// The least resemblance.
    pub from: f64,
    /// The resemblance that is just too large. `None` means that the resemblance of the row is exactly 1.
    pub below: Option<f64>,
    /// The pairs in the range, found or not.
    pub n_pairs: u64,
    /// The pairs among them that are found.
    pub n_found: u64,
    /// `n_found` / `n_pairs`, or `None` if there are no pairs.
    pub share: Option<f64>,
    /// The 95 % interval of the share, made like [`Intervals::recall`](super::Intervals::recall). It resamples the
    /// components of the pairs in this row and those above it. The pairs below 0.4 are not clustered and have none.
    pub ci: Option<[f64; 2]>,
    /// The components with a pair in this row.
    pub n_components: u64,
    /// The counts of these components, so that the shares of several sets can be pooled with an interval.
    pub components: Vec<ComponentCounts>,
}

/// The counts that some components have in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ComponentCounts {
    /// The pairs of each component.
    pub n_pairs: u64,
    /// The pairs of each component that are found.
    pub n_found: u64,
    /// The number of components with these counts.
    pub n_components: u64,
}

/// The pairs whose resemblance, rounded down, is a certain number of hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hundredth {
    /// The resemblance in hundredths.
    pub hundredth: u64,
    /// The pairs, found or not.
    pub n_pairs: u64,
    /// The pairs among them that are found.
    pub n_found: u64,
}

/// The shingles of documents, by id.
pub type SetsById = HashMap<String, ShingleSet>;

/// Reads the documents whose ids are not in `left_out`, and returns the shingles of each. Rows that are no documents
/// are passed over here.
pub async fn read(documents: &Documents, left_out: &HashSet<String>) -> Result<SetsById> {
    let shingler = Arc::new(Shingler::try_new()?);
    let mut sets = HashMap::new();
    for range in documents.ranges() {
        let mut batches = documents.read(&range).batches;
        while let Some(batch) = batches.try_next().await? {
            let shingler = Arc::clone(&shingler);
            let found = blocking("evaluate", move || Ok::<_, Fault>(of_batch(&shingler, &batch))).await?;
            sets.extend(found.into_iter().filter(|(id, _)| !left_out.contains(id)));
        }
    }
    Ok(sets)
}

fn of_batch(shingler: &Shingler, batch: &DocumentBatch) -> Vec<(String, ShingleSet)> {
    let of_row = |row: usize| {
        let text = batch.text(row).ok().flatten()?;
        Some((batch.ids.value(row).to_owned(), shingler.shingles(text)))
    };
    (0..batch.rows.len()).into_par_iter().filter_map(of_row).collect()
}

impl ByResemblance {
    /// Counts the pairs of documents, given their shingles by row and the pairs of rows that are found, smaller row
    /// first. A document without shingles takes no part.
    ///
    /// ```
    /// use nearprint_measure::ByResemblance;
    /// use nearprint_measure::resemblance::ShingleSet;
    ///
    /// let sets = [vec![1, 2, 3, 4], vec![1, 2, 3, 4], vec![1, 2, 3]].map(ShingleSet::new);
    /// let counted = ByResemblance::of(&sets, &[(0, 1), (1, 2)].into());
    /// let shares: Vec<_> = counted.rows.iter().filter_map(|row| Some((row.from, row.share?))).collect();
    /// assert_eq!(shares, [(0.7, 0.5), (1.0, 1.0)]);
    /// ```
    #[must_use]
    pub fn of(sets: &[ShingleSet], found: &HashSet<(u32, u32)>) -> Self {
        let takes_part = |row: u32| sets.get(row as usize).is_some_and(|set| !set.is_empty());
        let n_documents = sets.iter().filter(|set| !set.is_empty()).count() as u64;
        let n_found = found.iter().filter(|(a, b)| takes_part(*a) && takes_part(*b)).count() as u64;
        let alike: Vec<(AlikePair, bool)> =
            alike_pairs(sets).into_iter().map(|pair| (pair, found.contains(&(pair.a, pair.b)))).collect();
        let mut rows = rows(&alike, sets.len());
        let (n_alike, n_alike_found) = rows.iter().fold((0, 0), |(n, f), row| (n + row.n_pairs, f + row.n_found));
        let n_others = n_documents * n_documents.saturating_sub(1) / 2 - n_alike;
        rows.insert(0, row(0, &[Counts { n_positive: n_others, ..found_of(n_found - n_alike_found) }]));
        Self { n_documents, rows, by_hundredth: by_hundredth(&alike) }
    }
}

/// Returns the rows from 0.4 on, in ascending order. `n_rows` is the number of documents.
fn rows(alike: &[(AlikePair, bool)], n_rows: usize) -> Vec<ResemblanceRow> {
    let mut by_tenth: BTreeMap<u64, Vec<&(AlikePair, bool)>> = (LEAST..=10).map(|t| (t, Vec::new())).collect();
    for pair in alike {
        by_tenth.entry(pair.0.resemblance.parts(10)).or_default().push(pair);
    }
    let mut clusters = UnionFind::new(row_number(n_rows));
    let mut of_tenth = |(tenth, pairs): (u64, Vec<&(AlikePair, bool)>)| {
        for (pair, _) in &pairs {
            clusters.union(pair.a, pair.b);
        }
        let mut components: BTreeMap<u32, Counts> = BTreeMap::new();
        for (pair, found) in pairs {
            let counts = components.entry(clusters.find(pair.a)).or_default();
            *counts = counts.plus(&Counts { n_positive: 1, ..found_of(u64::from(*found)) });
        }
        row(tenth, &components.into_values().collect::<Vec<_>>())
    };
    let mut rows: Vec<ResemblanceRow> = by_tenth.into_iter().rev().map(&mut of_tenth).collect();
    rows.reverse();
    rows
}

/// Returns the counts of pairs that are found, each of which counts as true here.
fn found_of(n_found: u64) -> Counts {
    Counts { n_found, n_true: n_found, n_gray: 0, n_positive: 0 }
}

/// Returns the row that begins at a tenth, from the counts of its components, whose positive pairs are all pairs of the
/// row. Tenth 0 stands for all pairs below the least resemblance, which are not clustered.
#[allow(clippy::cast_precision_loss, reason = "tenths")]
fn row(tenth: u64, components: &[Counts]) -> ResemblanceRow {
    let is_clustered = tenth >= LEAST;
    let score = Score::of(components);
    let mut counts: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for component in components.iter().filter(|_| is_clustered) {
        *counts.entry((component.n_positive, component.n_true)).or_default() += 1;
    }
    let next = if is_clustered { tenth + 1 } else { LEAST };
    ResemblanceRow {
        from: tenth as f64 / 10.0,
        below: (next <= 10).then_some(next as f64 / 10.0),
        n_pairs: score.n_positive,
        n_found: score.n_true,
        share: score.recall,
        ci: score.ci.recall.filter(|_| is_clustered),
        n_components: counts.values().sum(),
        components: counts
            .into_iter()
            .map(|((n_pairs, n_found), n_components)| ComponentCounts { n_pairs, n_found, n_components })
            .collect(),
    }
}

fn by_hundredth(alike: &[(AlikePair, bool)]) -> Vec<Hundredth> {
    let mut counts: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (pair, found) in alike {
        let (n_pairs, n_found) = counts.entry(pair.resemblance.parts(100)).or_default();
        *n_pairs += 1;
        *n_found += u64::from(*found);
    }
    counts.into_iter().map(|(hundredth, (n_pairs, n_found))| Hundredth { hundredth, n_pairs, n_found }).collect()
}
