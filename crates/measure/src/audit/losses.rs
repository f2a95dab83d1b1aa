//! The numbers of an audit: shares, their quantiles and intervals.

use schemars::JsonSchema;
use serde::Serialize;

/// The lost share from which on a loss counts as large.
pub const LARGE_LOSS: f64 = 0.1;
/// A document is longer than its keeper if it has more than this many hundredths of the keeper's characters.
const LONGER_HUNDREDTHS: u64 = 102;

/// The measurements of a dropped document and its keeper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredDrop {
    /// The share of the document's distinct word 3-grams that the keeper lacks.
    pub words: f64,
    /// The share of the document's distinct features of the sketch that the keeper lacks. `None` means that the profile
    /// makes no sketches.
    pub features: Option<f64>,
    /// The estimate of `features` that the night published. `None` means that it has none.
    pub estimated: Option<f64>,
    /// The characters of the normalised text.
    pub length: u64,
    /// The characters of the keeper's normalised text.
    pub keeper_length: u64,
}

impl MeasuredDrop {
    /// Returns whether the document is longer than its keeper by more than 2 %.
    #[must_use]
    pub fn is_longer(&self) -> bool {
        100 * u128::from(self.length) > u128::from(LONGER_HUNDREDTHS) * u128::from(self.keeper_length)
    }
}

/// The losses of some dropped documents.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Losses {
    /// The number of documents.
    pub n: u64,
    /// The lost shares of word 3-grams.
    pub words: LostShares,
    /// The lost shares of the features of the sketch. `None` means that the profile makes no sketches, or that there are
    /// no documents.
    pub features: Option<LostShares>,
    /// The documents that are longer than their keepers by more than 2 %.
    pub n_longer: u64,
    /// The share of these.
    pub share_longer: Option<f64>,
    /// The 95 % interval of the share (Wilson).
    pub share_longer_ci: Option<[f64; 2]>,
}

impl Losses {
    /// Counts documents that were measured.
    #[must_use]
    pub fn of(drops: &[MeasuredDrop]) -> Self {
        let n = drops.len() as u64;
        let n_longer = drops.iter().filter(|drop| drop.is_longer()).count() as u64;
        let features: Vec<f64> = drops.iter().filter_map(|drop| drop.features).collect();
        Self {
            n,
            words: LostShares::of(drops.iter().map(|drop| drop.words).collect()),
            features: (!features.is_empty()).then(|| LostShares::of(features)),
            n_longer,
            share_longer: share(n_longer, n),
            share_longer_ci: wilson(n_longer, n),
        }
    }
}

/// The distribution of lost shares. A quantile is the least share that at least that part of the documents do not
/// exceed. Without documents there are no values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LostShares {
    /// The mean.
    pub mean: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// The 90 % quantile.
    pub p90: Option<f64>,
    /// The 95 % quantile.
    pub p95: Option<f64>,
    /// The 99 % quantile.
    pub p99: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// The documents that lose a tenth or more.
    pub n_large: u64,
    /// The share of these.
    pub share_large: Option<f64>,
    /// The 95 % interval of the share (Wilson).
    pub share_large_ci: Option<[f64; 2]>,
}

impl LostShares {
    fn of(mut shares: Vec<f64>) -> Self {
        shares.sort_by(f64::total_cmp);
        let n = shares.len() as u64;
        let n_large = shares.iter().filter(|&&share| share >= LARGE_LOSS).count() as u64;
        Self {
            mean: mean(&shares),
            median: quantile(&shares, 50),
            p90: quantile(&shares, 90),
            p95: quantile(&shares, 95),
            p99: quantile(&shares, 99),
            max: shares.last().copied(),
            n_large,
            share_large: share(n_large, n),
            share_large_ci: wilson(n_large, n),
        }
    }
}

/// The differences between the lost shares that a night published and the exact ones, over near-duplicates that have both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct EstimateError {
    /// The number of documents.
    pub n: u64,
    /// The mean of the estimates.
    pub mean_estimate: Option<f64>,
    /// The mean of estimate minus exact share. It is negative if losses are underestimated.
    pub mean_error: Option<f64>,
    /// The least number such that 95 % of the estimates differ from the exact share by at most as much.
    pub within_95: Option<f64>,
    /// The largest difference.
    pub max: Option<f64>,
}

impl EstimateError {
    /// Compares the estimates of documents with the exact shares of features.
    #[must_use]
    pub fn of(drops: &[MeasuredDrop]) -> Self {
        let both: Vec<(f64, f64)> = drops.iter().filter_map(|drop| drop.estimated.zip(drop.features)).collect();
        let errors: Vec<f64> = both.iter().map(|(estimated, exact)| estimated - exact).collect();
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        Self {
            n: both.len() as u64,
            mean_estimate: mean(&both.iter().map(|(estimated, _)| *estimated).collect::<Vec<_>>()),
            mean_error: mean(&errors),
            within_95: quantile(&sizes, 95),
            max: sizes.last().copied(),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a number of documents")]
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the least of the sorted values that at least `percent` of them do not exceed.
fn quantile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[allow(clippy::cast_precision_loss, reason = "numbers of documents")]
fn share(n_some: u64, n: u64) -> Option<f64> {
    (n > 0).then(|| n_some as f64 / n as f64)
}

/// Returns the 95 % interval of a share of which `n_some` of `n` independent draws were seen (Wilson, "Probable
/// Inference, the Law of Succession, and Statistical Inference", 1927), or `None` without draws.
///
/// ```
/// use nearprint_measure::wilson;
///
/// let [low, high] = wilson(10, 100).unwrap();
/// assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4);
/// assert_eq!(wilson(0, 500).unwrap()[0], 0.0);
/// assert_eq!(wilson(0, 0), None);
/// ```
#[allow(clippy::cast_precision_loss, reason = "numbers of documents")]
#[must_use]
pub fn wilson(n_some: u64, n: u64) -> Option<[f64; 2]> {
    /// The 97.5 % quantile of the normal distribution.
    const Z: f64 = 1.959_963_984_540_054;
    let p = share(n_some, n)?;
    let n_draws = n as f64;
    let wide = Z * Z / n_draws;
    let centre = p + wide / 2.0;
    let half = Z * (p * (1.0 - p) / n_draws + wide / (4.0 * n_draws)).sqrt();
    let low = if n_some == 0 { 0.0 } else { (centre - half) / (1.0 + wide) };
    let high = if n_some == n { 1.0 } else { (centre + half) / (1.0 + wide) };
    Some([low, high])
}

#[cfg(test)]
mod tests {
    use super::{LostShares, MeasuredDrop, quantile};

    #[test]
    fn a_quantile_is_a_value_that_was_measured() {
        let sorted: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!([50, 90, 95, 99].map(|percent| quantile(&sorted, percent)), [10.0, 18.0, 19.0, 20.0].map(Some));
        assert_eq!((quantile(&[7.0], 1), quantile(&[], 50)), (Some(7.0), None));
    }

    #[test]
    fn a_tenth_is_large_and_two_percent_more_is_not_longer() {
        assert_eq!(LostShares::of(vec![1.0 / 10.0, 0.099]).n_large, 1);
        let of = |length| MeasuredDrop { words: 0.0, features: None, estimated: None, length, keeper_length: 100 };
        assert_eq!((of(102).is_longer(), of(103).is_longer()), (false, true));
    }
}
