//! What a labelled sheet says: precision, recall and F1 at each distance, estimated from a sample of each distance.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::sheet::{self, LabelledRow};
use super::weights::{Stratum, Weights, draw, estimate, ratio, strata};
use crate::config::JoinConfig;
use crate::error::{PipelineError, Result};
use crate::evaluate::Label;
use crate::random::{Random, percentile_interval};
use crate::storage::Storage;

/// Labels, and the distances they are asked about.
#[derive(Debug, Clone)]
pub struct LabelsRequest {
    /// A sheet that `tune` drew, with its label column filled.
    pub labels: String,
    /// The profile's distances.
    pub join: JoinConfig,
    /// Bits of its fingerprints.
    pub bits: u32,
}

/// An estimate at some distances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Largest Hamming distance of a pair.
    pub max_distance: u32,
    /// Largest sketch distance of a pair; none where sketches are not compared.
    pub max_sketch_distance: Option<u16>,
    /// Labels `pos` and `neg` of pairs within these.
    pub n_labels: u64,
    /// Pairs within these, estimated, without gray ones.
    pub n_pairs: f64,
    /// Share of them that is positive; none where no label says.
    pub precision: Option<f64>,
    /// Share of the positive pairs of the sheet's whole range that is within these.
    pub recall: Option<f64>,
    /// Harmonic mean.
    pub f1: Option<f64>,
    /// 95 % intervals.
    pub ci: EstimateIntervals,
}

/// 95 % intervals, `[low, high]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct EstimateIntervals {
    /// Of the precision.
    pub precision: Option<[f64; 2]>,
    /// Of the recall.
    pub recall: Option<[f64; 2]>,
    /// Of F1.
    pub f1: Option<[f64; 2]>,
}

/// Summary of labels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelEstimate {
    /// The sheet.
    pub labels: String,
    /// Rows.
    pub n_rows: u64,
    /// Labels `pos`.
    pub n_positive: u64,
    /// Labels `neg`.
    pub n_negative: u64,
    /// Labels `gray`: they count neither way.
    pub n_gray: u64,
    /// Rows without a label.
    pub n_unlabelled: u64,
    /// The sheet's largest distance: recall is relative to the positive pairs up to it.
    pub sheet_max_distance: u32,
    /// The profile's own distances.
    pub own: Estimate,
    /// For each distance, at the profile's sketch distance.
    pub by_max_distance: Vec<Estimate>,
    /// For each sketch distance, at the profile's distance; empty where the sheet has none.
    pub by_max_sketch_distance: Vec<Estimate>,
    /// None without labels.
    pub recommendation: Option<Recommendation>,
}

/// The distances with the highest estimated F1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// The estimate there.
    #[serde(flatten)]
    pub best: Estimate,
    /// Whether these are the profile's own.
    pub is_own: bool,
    /// Share of the draws in which its F1 is above the profile's own.
    pub better_than_own: f64,
    /// Whether the labels are enough to go by.
    pub enough_labels: bool,
    /// Why they are not.
    pub too_few: Vec<String>,
}

/// Estimates from labels.
///
/// # Errors
/// A sheet that is not there or not as `tune` wrote it.
pub async fn estimate_from_labels(storage: &Storage, request: &LabelsRequest) -> Result<LabelEstimate> {
    let url = &request.labels;
    let missing = || PipelineError::InputMissing { what: "sheet", url: url.clone(), remedy: "draw one with --sheet" };
    let content = storage.folder(url)?.get().await?.ok_or_else(missing)?;
    let rows = sheet::read(url, &content)?;
    let labelled = Labelled::new(url, rows)?;
    let verifier = request.join.verifier(request.bits)?;
    let own_sketch = verifier.max_sketch_distance.filter(|_| labelled.has_sketches());
    Ok(labelled.summary(url, Limits { distance: verifier.max_distance.into(), sketch: own_sketch }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    distance: u32,
    sketch: Option<u16>,
}

impl Limits {
    fn sketch_allows(&self, row: &LabelledRow) -> bool {
        self.sketch.is_none_or(|limit| row.sketch_distance.is_some_and(|d| d <= limit))
    }
}

/// Pairs, by how they count.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    found: f64,
    right: f64,
    positive: f64,
}

impl Sums {
    fn precision(&self) -> Option<f64> {
        (self.found > 0.0).then(|| self.right / self.found)
    }

    fn recall(&self) -> Option<f64> {
        (self.positive > 0.0).then(|| self.right / self.positive)
    }

    fn f1(&self) -> Option<f64> {
        (self.found + self.positive > 0.0).then(|| 2.0 * self.right / (self.found + self.positive))
    }
}

const DRAWS: usize = 1000;
const SEED: u64 = 2;
const SKETCH_STEP: usize = 8;
/// Labels below which a distance, or the positives, say little.
const FEW: u64 = 10;
/// Labels below which no distance is told from another.
const FEW_IN_ALL: u64 = 50;

struct Labelled {
    rows: Vec<LabelledRow>,
    strata: BTreeMap<u8, Stratum>,
    estimate: Weights,
    draws: Vec<Weights>,
}

impl Labelled {
    fn new(file: &str, rows: Vec<LabelledRow>) -> Result<Self> {
        let strata = strata(file, &rows)?;
        let estimate = estimate(&rows, &strata);
        let mut random = Random::new(SEED);
        let draws = (0..DRAWS).map(|_| draw(&rows, &strata, &mut random)).collect();
        Ok(Self { rows, strata, estimate, draws })
    }

    fn has_sketches(&self) -> bool {
        self.rows.iter().any(|row| row.sketch_distance.is_some())
    }

    fn count(&self, label: Option<Label>) -> u64 {
        self.rows.iter().filter(|row| row.label == label).count() as u64
    }

    fn sums(&self, weights: &Weights, limits: Limits) -> Sums {
        let mut sums = Sums::default();
        for (row, &weight) in self.rows.iter().zip(&weights.rows) {
            let found = u32::from(row.distance) <= limits.distance && limits.sketch_allows(row);
            match row.label {
                Some(Label::Positive) => sums.add(weight, if found { weight } else { 0.0 }, true),
                Some(Label::Negative) if found => sums.add(weight, weight, false),
                _ => {}
            }
        }
        // Nothing is known of the sketches of what no label stands for: half of it is taken to pass.
        let pass = if limits.sketch.is_some() { 0.5 } else { 1.0 };
        for &(distance, positive, negative) in &weights.unseen {
            let pass = if u32::from(distance) <= limits.distance { pass } else { 0.0 };
            sums.add(positive, positive * pass, true);
            sums.add(negative, negative * pass, false);
        }
        sums
    }

    fn at(&self, limits: Limits) -> Estimate {
        let sums = self.sums(&self.estimate, limits);
        let draws: Vec<Sums> = self.draws.iter().map(|draw| self.sums(draw, limits)).collect();
        let interval =
            |of: fn(&Sums) -> Option<f64>| percentile_interval(draws.iter().filter_map(of).collect(), of(&sums)?);
        let within = |row: &&LabelledRow| {
            let told = matches!(row.label, Some(Label::Positive | Label::Negative));
            told && u32::from(row.distance) <= limits.distance && limits.sketch_allows(row)
        };
        Estimate {
            max_distance: limits.distance,
            max_sketch_distance: limits.sketch,
            n_labels: self.rows.iter().filter(within).count() as u64,
            n_pairs: sums.found,
            precision: sums.precision(),
            recall: sums.recall(),
            f1: sums.f1(),
            ci: EstimateIntervals {
                precision: interval(Sums::precision),
                recall: interval(Sums::recall),
                f1: interval(Sums::f1),
            },
        }
    }

    fn summary(&self, labels: &str, own: Limits) -> LabelEstimate {
        let last = self.strata.keys().last().copied().map_or(0, u32::from);
        let sketches = self.sketch_limits(own);
        LabelEstimate {
            labels: labels.to_owned(),
            n_rows: self.rows.len() as u64,
            n_positive: self.count(Some(Label::Positive)),
            n_negative: self.count(Some(Label::Negative)),
            n_gray: self.count(Some(Label::Gray)),
            n_unlabelled: self.count(None),
            sheet_max_distance: last,
            own: self.at(own),
            by_max_distance: (0..=last).map(|distance| self.at(Limits { distance, ..own })).collect(),
            by_max_sketch_distance: sketches.iter().map(|&sketch| self.at(Limits { sketch, ..own })).collect(),
            recommendation: self.recommendation(own, last, &sketches),
        }
    }

    /// Every eighth up to the sheet's largest, the profile's own, and none compared; empty where the sheet has no sketches.
    fn sketch_limits(&self, own: Limits) -> Vec<Option<u16>> {
        let Some(largest) = self.rows.iter().filter_map(|row| row.sketch_distance).max() else {
            return Vec::new();
        };
        let steps: BTreeSet<u16> = (0..=largest).step_by(SKETCH_STEP).chain(own.sketch).collect();
        steps.into_iter().map(Some).chain([None]).collect()
    }

    fn recommendation(&self, own: Limits, last: u32, sketches: &[Option<u16>]) -> Option<Recommendation> {
        let f1 = |limits: Limits| self.sums(&self.estimate, limits).f1();
        let sketches = if sketches.is_empty() { &[None] } else { sketches };
        // The profile's own where nothing is better, then its sketch distance, then the smallest.
        let sketches = [own.sketch].into_iter().chain(sketches.iter().copied());
        let all = sketches.flat_map(|sketch| (0..=last).map(move |distance| Limits { distance, sketch }));
        let mut best = (own, f1(own)?);
        for limits in all {
            if let Some(f1) = f1(limits).filter(|&f1| f1 > best.1 + 1e-9) {
                best = (limits, f1);
            }
        }
        let (limits, estimate) = (best.0, self.at(best.0));
        let better = self.draws.iter().filter(|draw| self.sums(draw, limits).f1() > self.sums(draw, own).f1()).count();
        let too_few = self.too_few(&estimate, last);
        Some(Recommendation {
            best: estimate,
            is_own: limits == own,
            better_than_own: share(better, self.draws.len()),
            enough_labels: too_few.is_empty(),
            too_few,
        })
    }

    fn too_few(&self, best: &Estimate, last: u32) -> Vec<String> {
        let mut reasons = Vec::new();
        let n_positive = self.count(Some(Label::Positive));
        let n_told = n_positive + self.count(Some(Label::Negative));
        if n_told < FEW_IN_ALL {
            reasons.push(format!("{n_told} labels are pos or neg: label at least {FEW_IN_ALL}"));
        }
        if n_positive < FEW {
            reasons.push(format!("{n_positive} labels are pos: label at least {FEW}"));
        }
        for (distance, stratum) in &self.strata {
            let n = stratum.labelled.len() as u64;
            if n < FEW && 2 * n < stratum.n_pairs {
                reasons.push(format!("distance {distance}: {n} of {} pairs have a label", stratum.n_pairs));
            }
        }
        if let Some([low, high]) = best.ci.f1.filter(|[low, high]| high - low > 0.2) {
            reasons.push(format!("F1 there may be anything from {low:.2} to {high:.2}"));
        }
        if best.max_distance == last {
            reasons.push("the best distance is the sheet's largest: draw one with a larger --max-distance".to_owned());
        }
        reasons
    }
}

impl Sums {
    fn add(&mut self, weight: f64, found: f64, positive: bool) {
        self.found += found;
        if positive {
            self.right += found;
            self.positive += weight;
        }
    }
}

fn share(part: usize, whole: usize) -> f64 {
    ratio(part as u64, whole as u64)
}
