//! Precision, recall and F1, and how far they can be trusted.

use serde::Serialize;

use crate::random::{Random, percentile_interval};

/// Precision and recall by pair. A gray pair counts neither way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Score {
    /// Pairs found, gray ones left out.
    pub n_found: u64,
    /// Positive pairs found.
    pub n_true: u64,
    /// Gray pairs found.
    pub n_gray: u64,
    /// Positive pairs of the truth.
    pub n_positive: u64,
    /// `n_true` / `n_found`; 1 where nothing is found.
    pub precision: f64,
    /// `n_true` / `n_positive`; none where nothing is positive.
    pub recall: Option<f64>,
    /// Their harmonic mean; none where nothing is positive.
    pub f1: Option<f64>,
    /// 95 % intervals.
    pub ci: Intervals,
}

/// 95 % confidence intervals, `[low, high]`.
///
/// Pairs of one cluster are right or wrong together, so what is drawn anew is not pairs but connected components of positive, gray and
/// found pairs: 1000 resamples of as many components as there are, with replacement, from a fixed seed; the interval is the middle
/// 95 % of their values. Where all components are right, or all wrong, no resample can be otherwise: the other end is then that
/// of the exact binomial interval for as many components, 0.025^(1/n) or one less that. A single component that is partly right tells
/// nothing of others: there is no interval then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Intervals {
    /// None where nothing is found.
    pub precision: Option<[f64; 2]>,
    /// None where nothing is positive.
    pub recall: Option<[f64; 2]>,
    /// None where nothing is positive.
    pub f1: Option<[f64; 2]>,
    /// Components that were resampled: those with a pair that is found or positive.
    pub n_components: u64,
}

/// Pairs of a component, or sums of such.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs found.
    pub n_found: u64,
    /// Of these, positive ones.
    pub n_true: u64,
    /// Of these, gray ones, which count neither way.
    pub n_gray: u64,
    /// Positive pairs, found or not.
    pub n_positive: u64,
}

impl Counts {
    fn plus(self, other: &Self) -> Self {
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

    /// 2 true / (found + positive), which is the harmonic mean of precision and recall.
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
    /// The score of components, and its intervals.
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

/// The least share of right ones among all that n right ones of n leave likely enough.
#[allow(clippy::cast_precision_loss, reason = "a count")]
fn exact_low(n: usize) -> f64 {
    0.025_f64.powf(1.0 / n.max(1) as f64)
}
