//! The weights of labels. The weight of a label is the number of pairs that it stands for.

use std::collections::{BTreeMap, HashMap};

use nearprint_join::UnionFind;

use super::sheet::{LabelledRow, Sheet};
use crate::random::Random;

/// The pairs of one distance.
#[derive(Debug)]
pub struct Stratum {
    pub n_pairs: u64,
    /// The positions of the labelled rows.
    pub labelled: Vec<usize>,
    /// The number of groups of labelled rows that share no document with one another.
    pub n_independent: u64,
}

/// The number of pairs that each row stands for, and the pairs of each distance that no label stands for.
#[derive(Debug)]
pub struct Weights {
    pub rows: Vec<f64>,
    /// The distance, and the positive and negative pairs that no label stands for.
    pub unseen: Vec<(u8, f64, f64)>,
}

/// Returns the distances that have pairs, including those whose rows were removed from the sheet.
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

/// Counts the connected components of the pairs. Pairs with a common document are connected.
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

/// Weights each labelled row by the number of pairs per label of its distance.
pub fn estimate(rows: &[LabelledRow], strata: &BTreeMap<u8, Stratum>) -> Weights {
    let mut weights = vec![0.0; rows.len()];
    for stratum in strata.values() {
        for &at in &stratum.labelled {
            weights[at] = ratio(stratum.n_pairs, stratum.labelled.len() as u64);
        }
    }
    Weights { rows: weights, unseen: Vec::new() }
}

/// Draws random weights by a Bayesian bootstrap (Rubin, 1981) of each distance. The pairs of the distance are divided
/// in random proportions among its labelled rows, half an unseen positive pair and half an unseen negative pair
/// (Jeffreys' prior). Rows that are connected by common documents count as one observation. The result is about
/// documents like these, not about these documents alone, so even labels on all their pairs leave an interval.
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
