//! For how many pairs each label stands.

use std::collections::{BTreeMap, HashMap};

use nearprint_join::UnionFind;

use super::sheet::{LabelledRow, bad_row};
use crate::error::Result;
use crate::random::Random;

/// The pairs of one distance.
#[derive(Debug)]
pub(super) struct Stratum {
    pub(super) n_pairs: u64,
    /// Positions of the labelled rows.
    pub(super) labelled: Vec<usize>,
    /// Labelled rows that do not hang together by a document.
    pub(super) n_independent: u64,
}

/// For how many pairs each row stands, and for how many pairs of a distance no label stands.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) rows: Vec<f64>,
    /// (distance, positive, negative)
    pub(super) unseen: Vec<(u8, f64, f64)>,
}

pub(super) fn strata(file: &str, rows: &[LabelledRow]) -> Result<BTreeMap<u8, Stratum>> {
    let mut strata: BTreeMap<u8, Stratum> = BTreeMap::new();
    let mut n_rows: BTreeMap<u8, u64> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let new = || Stratum { n_pairs: row.n_pairs, labelled: Vec::new(), n_independent: 0 };
        let stratum = strata.entry(row.distance).or_insert_with(new);
        let n = n_rows.entry(row.distance).or_default();
        *n += 1;
        let refuse = |reason: &str| Err(bad_row(file, at as u64 + 2, reason.to_owned()));
        if stratum.n_pairs != row.n_pairs {
            return refuse("n_pairs differs from that of an earlier row of this distance: do not mix sheets");
        }
        if *n > stratum.n_pairs {
            return refuse("more rows of this distance than n_pairs: remove repeated rows");
        }
        stratum.labelled.extend(row.label.is_some().then_some(at));
    }
    for stratum in strata.values_mut() {
        stratum.n_independent = n_components(rows, &stratum.labelled);
    }
    Ok(strata)
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
pub(super) fn estimate(rows: &[LabelledRow], strata: &BTreeMap<u8, Stratum>) -> Weights {
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
pub(super) fn draw(rows: &[LabelledRow], strata: &BTreeMap<u8, Stratum>, random: &mut Random) -> Weights {
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
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
