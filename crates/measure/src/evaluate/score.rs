//! Precision, recall and F1 with their confidence intervals.

use schemars::JsonSchema;
use serde::Serialize;

use crate::random::{Random, percentile_interval};

/// Precision and recall, counted by pair. A gray pair counts neither for nor against them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Score {
    /// The pairs found, without the gray ones.
    pub n_found: u64,
    /// The positive pairs found.
    pub n_true: u64,
    /// The gray pairs found.
    pub n_gray: u64,
    /// The positive pairs of the labels.
    pub n_positive: u64,
    /// `n_true` / `n_found`, or 1 if no pair is found.
    pub precision: f64,
    /// `n_true` / `n_positive`, or `None` if no pair is positive.
    pub recall: Option<f64>,
    /// The harmonic mean of precision and recall, or `None` if no pair is positive.
    pub f1: Option<f64>,
    /// The 95 % intervals.
    pub ci: Intervals,
}

/// 95 % confidence intervals, `[low, high]`.
///
/// The pairs of one cluster are right or wrong together. So the bootstrap does not resample pairs, but connected
/// components of positive, gray and found pairs. It draws 1000 resamples with replacement from a fixed seed, and each
/// resample has as many components as there are. The interval is the middle 95 % of the values of the resamples.
///
/// If all components are right, or all are wrong, every resample gives the same value. The other end of the interval is
/// then that of the exact binomial interval for n components: 0.025^(1/n) if all are right, and 1 - 0.025^(1/n) if all
/// are wrong. A single component that is partly right says nothing about other components, so there is no interval in
/// that case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Intervals {
    /// The interval of the precision, or `None` if no pair is found.
    pub precision: Option<[f64; 2]>,
    /// The interval of the recall, or `None` if no pair is positive.
    pub recall: Option<[f64; 2]>,
    /// The interval of F1, or `None` if no pair is positive.
    pub f1: Option<[f64; 2]>,
    /// The components that were resampled, which are those with a pair that is positive, or found and not gray.
    pub n_components: u64,
}

/// The counts of pairs of a component, or the sums for several components.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The pairs found, without the gray ones.
    pub n_found: u64,
    /// The positive pairs found.
    pub n_true: u64,
    /// The gray pairs found, which count neither way.
    pub n_gray: u64,
    /// The positive pairs, found or not.
    pub n_positive: u64,
}

impl Counts {
    /// Returns the sums of two counts.
    pub fn plus(self, other: &Self) -> Self {
        Self {
            n_found: self.n_found + other.n_found,
            n_true: self.n_true + other.n_true,
            n_gray: self.n_gray + other.n_gray,
            n_positive: self.n_positive + other.n_positive,
        }
    }

    fn precision(&self) -> Option<f64> {
        ratio(self.n_true, self.n_found)
    }

    fn recall(&self) -> Option<f64> {
        ratio(self.n_true, self.n_positive)
    }

    /// Returns 2 · true / (found + positive), which is the harmonic mean of precision and recall.
    fn f1(&self) -> Option<f64> {
        ratio(2 * self.n_true, self.n_found + self.n_positive).filter(|_| self.n_positive > 0)
    }
}

#[allow(clippy::cast_precision_loss, reason = "a ratio of counts")]
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

const RESAMPLES: usize = 1000;
const SEED: u64 = 1;

impl Score {
    /// Returns the score of the components with its intervals.
    pub fn of(components: &[Counts]) -> Self {
        let all = components.iter().fold(Counts::default(), Counts::plus);
        Self {
            n_found: all.n_found,
            n_true: all.n_true,
            n_gray: all.n_gray,
            n_positive: all.n_positive,
            precision: all.precision().unwrap_or(1.0),
            recall: all.recall(),
            f1: all.f1(),
            ci: Intervals::of(components, &all),
        }
    }
}

impl Intervals {
    fn of(components: &[Counts], all: &Counts) -> Self {
        let told: Vec<Counts> = components.iter().filter(|c| c.n_found + c.n_positive > 0).copied().collect();
        let resamples = resample(&told);
        let interval = |of: fn(&Counts) -> Option<f64>| {
            let estimate = of(all)?;
            let n = told.iter().filter(|c| of(c).is_some()).count();
            let [low, high] = percentile_interval(resamples.iter().filter_map(of).collect(), estimate)?;
            if n < 2 && estimate > 0.0 && estimate < 1.0 {
                return None;
            }
            let low = if estimate >= 1.0 { low.min(exact_low(n)) } else { low };
            Some([low, if estimate <= 0.0 { high.max(1.0 - exact_low(n)) } else { high }])
        };
        Self {
            precision: interval(Counts::precision),
            recall: interval(Counts::recall),
            f1: interval(Counts::f1),
            n_components: told.len() as u64,
        }
    }
}

fn resample(components: &[Counts]) -> Vec<Counts> {
    let mut random = Random::new(SEED);
    let mut draw = || components[random.below(components.len())];
    (0..RESAMPLES).map(|_| (0..components.len()).fold(Counts::default(), |sum, _| sum.plus(&draw()))).collect()
}

/// Returns the lower end of the exact interval for the share of right components if n of n components are right.
#[allow(clippy::cast_precision_loss, reason = "a count")]
fn exact_low(n: usize) -> f64 {
    0.025_f64.powf(1.0 / n.max(1) as f64)
}
