//! For how many pairs each label stands.

use std::collections::{BTreeMap, HashMap};

use nearprint_join::UnionFind;

use super::sheet::{LabelledRow, Sheet};
use crate::random::Random;

/// The pairs of one distance.
#[derive(Debug)]
pub struct Stratum {
    pub n_pairs: u64,
    /// Positions of the labelled rows.
    pub labelled: Vec<usize>,
    /// Labelled rows that do not hang together by a document.
    pub n_independent: u64,
}

/// For how many pairs each row stands, and for how many pairs of a distance no label stands.
#[derive(Debug)]
pub struct Weights {
    pub rows: Vec<f64>,
    /// (distance, positive, negative)
    pub unseen: Vec<(u8, f64, f64)>,
}

/// The distances that have pairs, also those whose rows are gone.
pub fn strata(sheet: &Sheet) -> BTreeMap<u8, Stratum> {
    let (mut strata, rows) = (BTreeMap::new(), &sheet.rows);
    for (distance, &n_pairs) in (0..).zip(&sheet.about.strata).filter(|(_, n_pairs)| **n_pairs > 0) {
        let is_labelled = |&at: &usize| rows[at].distance == distance && rows[at].label.is_some();
        let labelled: Vec<usize> = (0..rows.len()).filter(is_labelled).collect();
        let n_independent = n_components(rows, &labelled);
        strata.insert(distance, Stratum { n_pairs, labelled, n_independent });
    }
    strata
}

/// Connected components of the pairs.
fn n_components(rows: &[LabelledRow], pairs: &[usize]) -> u64 {
    let (mut nodes, mut sets) = (HashMap::new(), UnionFind::default());
    let mut n = 0;
    for row in pairs.iter().map(|&at| &rows[at]) {
        let [a, b] = [&row.id_a, &row.id_b].map(|id| {
            *nodes.entry(id.as_str()).or_insert_with(|| {
                n += 1;
                sets.add()
            })
        });
        n -= u64::from(sets.union(a, b));
    }
    n
}

/// Each labelled row stands for as many pairs as its distance has for a label.
pub fn estimate(rows: &[LabelledRow], strata: &BTreeMap<u8, Stratum>) -> Weights {
    let mut weights = vec![0.0; rows.len()];
    for stratum in strata.values() {
        for &at in &stratum.labelled {
            weights[at] = ratio(stratum.n_pairs, stratum.labelled.len() as u64);
        }
    }
    Weights { rows: weights, unseen: Vec::new() }
}

/// A Bayesian bootstrap (Rubin, 1981) of each distance: its pairs are shared out among the labelled ones, and to one half of a positive
/// and one half of a negative pair that nobody saw, in random proportions (Jeffreys' prior). Rows that hang together by a document count as
/// one observation. It speaks of documents like these, not of these alone: labels of all their pairs leave an interval too.
pub fn draw(rows: &[LabelledRow], strata: &BTreeMap<u8, Stratum>, random: &mut Random) -> Weights {
    let mut weights = Weights { rows: vec![0.0; rows.len()], unseen: Vec::new() };
    for (&distance, stratum) in strata {
        let n = stratum.labelled.len() as u64;
        let shape = ratio(stratum.n_independent, n.max(1));
        let parts: Vec<f64> = stratum.labelled.iter().map(|_| random.gamma(shape)).collect();
        let unseen = [random.gamma(0.5), random.gamma(0.5)];
        let scale = ratio(stratum.n_pairs, 1) / parts.iter().chain(&unseen).sum::<f64>();
        for (&at, part) in stratum.labelled.iter().zip(parts) {
            weights.rows[at] = scale * part;
        }
        weights.unseen.push((distance, scale * unseen[0], scale * unseen[1]));
    }
    weights
}

#[allow(clippy::cast_precision_loss, reason = "counts of pairs")]
pub fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
