//! Estimates precision, recall and F1 at each distance from a labelled sheet, which has a sample of the pairs of each
//! distance.

use std::collections::{BTreeMap, BTreeSet};

use nearprint_fault::{Fault, Result, Words, counted, key, words};
use nearprint_join::{SketchDistance, Verifier, WordKeys};
use nearprint_profile::{HtmlText, ProfileConfig};
use nearprint_storage::Storage;
use nearprint_tokenize::Resources as AnalyzerResources;
use schemars::JsonSchema;
use serde::Serialize;

use super::sheet::{self, LabelledRow, Sheet};
use super::weights::{Stratum, Weights, draw, estimate, ratio, strata};
use crate::evaluate::truth::Label;
use crate::random::{Random, percentile_interval};

/// The labels, and the profile whose distances are evaluated.
#[derive(Debug, Clone)]
pub struct LabelsRequest {
    /// A sheet that `tune` drew, with its label column filled.
    pub labels: String,
    /// The profile that the sheet was drawn with. Its distances are evaluated.
    pub profile: ProfileConfig,
    /// The contents of the user dictionary and the stop words.
    pub analyzer_resources: AnalyzerResources,
    /// Which text of web pages the sheet was drawn from.
    pub html_text: HtmlText,
}

/// The estimate at given distances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// The largest Hamming distance of a pair.
    pub max_distance: u32,
    /// The largest sketch distance of a pair. `None` means that sketches are not compared.
    pub max_sketch_distance: Option<u16>,
    /// The number of labels `pos` and `neg` of pairs within these distances.
    pub n_labels: u64,
    /// The estimated number of pairs within these distances, without gray pairs.
    pub n_pairs: f64,
    /// The share of these pairs that is positive. `None` means that there are no labels to estimate it from.
    pub precision: Option<f64>,
    /// The share of the positive pairs of the sheet's whole range that lies within these distances.
    pub recall: Option<f64>,
    /// The harmonic mean of precision and recall.
    pub f1: Option<f64>,
    /// The 95 % intervals.
    pub ci: EstimateIntervals,
}

/// 95 % intervals, `[low, high]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct EstimateIntervals {
    /// The interval of the precision.
    pub precision: Option<[f64; 2]>,
    /// The interval of the recall.
    pub recall: Option<[f64; 2]>,
    /// The interval of F1.
    pub f1: Option<[f64; 2]>,
}

/// Summary of the labels, and the estimates from them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabelEstimate {
    /// The sheet.
    pub labels: String,
    /// The number of rows.
    pub n_rows: u64,
    /// The number of labels `pos`.
    pub n_positive: u64,
    /// The number of labels `neg`.
    pub n_negative: u64,
    /// The number of labels `gray`, which count neither way.
    pub n_gray: u64,
    /// The number of rows without a label.
    pub n_unlabelled: u64,
    /// The number of rows that repeat the pair of another row. Such a pair counts once, and `n_rows` does not include
    /// the repetitions.
    pub n_repeated: u64,
    /// The distances that have pairs but no label. The estimates do not include their pairs.
    pub unlabelled_distances: Vec<u8>,
    /// Warnings to read before relying on the estimates.
    pub warnings: Vec<Words>,
    /// The largest distance of the sheet. Recall is relative to the positive pairs up to this distance.
    pub sheet_max_distance: u32,
    /// The estimate at the profile's own distances.
    pub own: Estimate,
    /// The estimates for each Hamming distance, at the profile's sketch distance.
    pub by_max_distance: Vec<Estimate>,
    /// The estimates for each sketch distance, at the profile's Hamming distance. The list is empty if the sheet or the
    /// profile has no sketches.
    pub by_max_sketch_distance: Vec<Estimate>,
    /// The recommended distances, which leave the profile's judge in if it has one. `None` means that the labels do not suffice
    /// to compute F1.
    pub recommendation: Option<Recommendation>,
}

/// The distances with the highest estimated F1.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Recommendation {
    /// The estimate at these distances.
    #[serde(flatten)]
    pub best: Estimate,
    /// True if these distances are the profile's own.
    pub is_own: bool,
    /// The share of the draws in which F1 is higher here than at the profile's own distances.
    pub better_than_own: f64,
    /// True if there are enough labels to follow the recommendation.
    pub enough_labels: bool,
    /// The reasons why there are not enough labels.
    pub too_few: Vec<Words>,
}

/// Estimates precision, recall and F1 from the labels of a sheet.
///
/// ```
/// use nearprint_storage::Storage;
/// use nearprint_measure::{LabelsRequest, estimate_from_labels};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = nearprint_storage::TempFolder::try_new(&std::env::temp_dir())?;
/// # let labels = temp.path().join("sheet.csv").display().to_string();
/// // A sheet whose columns of texts were removed. There is one pair at distance 0, and one at distance 3.
/// std::fs::write(&labels, "distance,sketch_distance,n_pairs,id_a,id_b,label,strata,profile\n\
///     0,0,1,a.html,b.html,pos,0=1 1=0 2=0 3=1,digest\n\
///     3,20,1,a.html,c.html,neg,0=1 1=0 2=0 3=1,digest\n")?;
/// let request = LabelsRequest {
///     labels,
///     profile: nearprint_profile::by_name("default")?,
///     analyzer_resources: nearprint_tokenize::Resources::default(),
///     html_text: nearprint_profile::HtmlText::Main,
/// };
/// let estimate = estimate_from_labels(&Storage::default(), &request).await?;
/// assert_eq!((estimate.n_positive, estimate.n_negative, estimate.n_unlabelled), (1, 1, 0));
/// assert_eq!((estimate.own.precision, estimate.own.recall), (Some(0.5), Some(1.0)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The sheet does not exist, or it is not in the form that `tune` wrote.
pub async fn estimate_from_labels(storage: &Storage, request: &LabelsRequest) -> Result<LabelEstimate> {
    let url = &request.labels;
    let missing = || Fault::input_missing("sheet", url.clone(), words!["draw one with ", key("sheet")]);
    let content = storage.folder(url)?.get().await?.ok_or_else(missing)?;
    let labelled = Labelled::new(sheet::read(url, &content)?, request.profile.sketch.is_some());
    let verifier = request.profile.join.verifier(request.profile.bits)?;
    let own_sketch = verifier.max_sketch_distance.filter(|_| labelled.has_sketches);
    let own = PairLimits { distance: verifier.max_distance.into(), sketch: own_sketch };
    let mut warnings = labelled.warnings(&request.profile.digest(&request.analyzer_resources, &request.html_text)?);
    if let Some(judge) = request.profile.judge() {
        let (near, far) = (judge.config.min_sketch_distance, judge.config.max_sketch_distance);
        let decided = format!("within a night, the judge decides pairs whose sketches differ in more than {near} bits");
        let larger = format!("counts for earlier nights alone, and from {far} on it leaves the judge out");
        warnings.push(format!("{decided}: a larger max_sketch_distance {larger}").into());
    }
    Ok(LabelEstimate { warnings, ..labelled.summary(url, own, &request.profile) })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PairLimits {
    distance: u32,
    sketch: Option<u16>,
}

impl PairLimits {
    fn allow(&self, row: &LabelledRow) -> bool {
        // No distance is larger than 128.
        let max_distance = u8::try_from(self.distance).unwrap_or(u8::MAX);
        let sketches = row.sketch_distance.map_or(SketchDistance::Missing, SketchDistance::Bits);
        Verifier { max_distance, words: WordKeys::NONE, max_sketch_distance: self.sketch, judged_to: None }
            .allows(row.distance, sketches)
    }
}

/// Weighted numbers of pairs: those found, the positive ones among these, and all positive ones.
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
/// The number of distances by which a recommended wider sheet exceeds this one.
const WIDER: u32 = 4;
/// The least number of labels of a distance, or of positive labels, for a reliable estimate.
const FEW: u64 = 10;
/// The least number of labels in all that can tell one distance from another.
const FEW_IN_ALL: u64 = 50;

struct Labelled {
    sheet: Sheet,
    /// Both the rows and the profile have sketches.
    has_sketches: bool,
    strata: BTreeMap<u8, Stratum>,
    estimate: Weights,
    draws: Vec<Weights>,
}

impl Labelled {
    fn new(sheet: Sheet, has_sketches: bool) -> Self {
        let strata = strata(&sheet);
        let estimate = estimate(&sheet.rows, &strata);
        let mut random = Random::new(SEED);
        let draws = (0..DRAWS).map(|_| draw(&sheet.rows, &strata, &mut random)).collect();
        let has_sketches = has_sketches && sheet.rows.iter().any(|row| row.sketch_distance.is_some());
        Self { sheet, has_sketches, strata, estimate, draws }
    }

    fn unlabelled_distances(&self) -> Vec<u8> {
        self.strata.iter().filter(|(_, stratum)| stratum.labelled.is_empty()).map(|(distance, _)| *distance).collect()
    }

    fn warnings(&self, digest: &str) -> Vec<Words> {
        let mut warnings = Vec::new();
        if self.sheet.about.profile != digest {
            warnings.push(words![
                "the sheet was drawn with another profile: give the ",
                key("config"),
                ", ",
                key("profile"),
                " and ",
                key("set"),
                " with which it was drawn"
            ]);
        }
        if self.sheet.n_repeated > 0 {
            let n = self.sheet.n_repeated;
            warnings.push(format!("rows that repeat the pair of another row: {n}; each pair counts once").into());
        }
        for distance in self.unlabelled_distances() {
            let pairs = counted(self.strata[&distance].n_pairs, "pair");
            let rows = self.sheet.rows.iter().filter(|row| row.distance == distance).count();
            let gone = if rows == 0 { "all rows are gone" } else { "no row has a label" };
            warnings.push(format!("distance {distance}: {gone}: the estimates are without its {pairs}").into());
        }
        warnings
    }

    fn count(&self, label: Option<Label>) -> u64 {
        self.sheet.rows.iter().filter(|row| row.label == label).count() as u64
    }

    fn sums(&self, weights: &Weights, limits: PairLimits) -> Sums {
        let mut sums = Sums::default();
        for (row, &weight) in self.sheet.rows.iter().zip(&weights.rows) {
            let found = limits.allow(row);
            match row.label {
                Some(Label::Positive) => sums.add(weight, if found { weight } else { 0.0 }, true),
                Some(Label::Negative) if found => sums.add(weight, weight, false),
                _ => {}
            }
        }
        // Nothing is known about the sketches of pairs that no label stands for, so half of these pairs are assumed to
        // pass.
        let pass = if limits.sketch.is_some() { 0.5 } else { 1.0 };
        for &(distance, positive, negative) in &weights.unseen {
            let pass = if u32::from(distance) <= limits.distance { pass } else { 0.0 };
            sums.add(positive, positive * pass, true);
            sums.add(negative, negative * pass, false);
        }
        sums
    }

    fn at(&self, limits: PairLimits) -> Estimate {
        let sums = self.sums(&self.estimate, limits);
        let draws: Vec<Sums> = self.draws.iter().map(|draw| self.sums(draw, limits)).collect();
        let interval =
            |of: fn(&Sums) -> Option<f64>| percentile_interval(draws.iter().filter_map(of).collect(), of(&sums)?);
        let within = |row: &&LabelledRow| {
            let told = matches!(row.label, Some(Label::Positive | Label::Negative));
            told && limits.allow(row)
        };
        Estimate {
            max_distance: limits.distance,
            max_sketch_distance: limits.sketch,
            n_labels: self.sheet.rows.iter().filter(within).count() as u64,
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

    fn summary(&self, labels: &str, own: PairLimits, profile: &ProfileConfig) -> LabelEstimate {
        let last = self.sheet.about.max_distance();
        let sketches = self.sketch_limits(own);
        LabelEstimate {
            labels: labels.to_owned(),
            n_rows: self.sheet.rows.len() as u64,
            n_positive: self.count(Some(Label::Positive)),
            n_negative: self.count(Some(Label::Negative)),
            n_gray: self.count(Some(Label::Gray)),
            n_unlabelled: self.count(None),
            n_repeated: self.sheet.n_repeated,
            unlabelled_distances: self.unlabelled_distances(),
            warnings: Vec::new(),
            sheet_max_distance: last,
            own: self.at(own),
            by_max_distance: (0..=last).map(|distance| self.at(PairLimits { distance, ..own })).collect(),
            by_max_sketch_distance: sketches.iter().map(|&sketch| self.at(PairLimits { sketch, ..own })).collect(),
            recommendation: self.recommendation(own, last, &sketches, profile),
        }
    }

    /// Returns the sketch limits: every eighth distance up to the sheet's largest, the largest itself, the profile's
    /// own, and `None`, which compares no sketches. The list is empty if there are no sketches.
    fn sketch_limits(&self, own: PairLimits) -> Vec<Option<u16>> {
        let largest = self.sheet.rows.iter().filter_map(|row| row.sketch_distance).max();
        let Some(largest) = largest.filter(|_| self.has_sketches) else {
            return Vec::new();
        };
        // A profile cannot set the limit 256.
        let largest = largest.min(255);
        let steps: BTreeSet<u16> = (0..=largest).step_by(SKETCH_STEP).chain([largest]).chain(own.sketch).collect();
        steps.into_iter().map(Some).chain([None]).collect()
    }

    /// Returns the best limits up to the sheet's largest distance, with the profile's judge if it has one. Nothing is known
    /// about pairs beyond it.
    fn recommendation(
        &self,
        own: PairLimits,
        last: u32,
        sketches: &[Option<u16>],
        profile: &ProfileConfig,
    ) -> Option<Recommendation> {
        let f1 = |limits: PairLimits| self.sums(&self.estimate, limits).f1();
        // From there on the judge would be left out.
        let judged_to = profile.judge().map(|judge| judge.config.max_sketch_distance);
        let is_below = |bits: u16| judged_to.is_none_or(|end| u32::from(bits) < end);
        let allowed = sketches.iter().copied().filter(|sketch| sketch.is_some_and(is_below));
        // If several limits are equally good, the profile's own come first, then those with its sketch distance, then
        // the smallest.
        let sketches = [own.sketch].into_iter().chain(allowed);
        let all = sketches.flat_map(|sketch| (0..=last).map(move |distance| PairLimits { distance, sketch }));
        let nearest = PairLimits { distance: own.distance.min(last), ..own };
        let mut best = (nearest, f1(nearest)?);
        for limits in all {
            if let Some(f1) = f1(limits).filter(|&f1| f1 > best.1 + 1e-9) {
                best = (limits, f1);
            }
        }
        let (limits, estimate) = (best.0, self.at(best.0));
        let better = self.draws.iter().filter(|draw| self.sums(draw, limits).f1() > self.sums(draw, own).f1()).count();
        let mut too_few = self.too_few(&estimate);
        too_few.extend(beyond(own, limits, last, profile.bits));
        Some(Recommendation {
            best: estimate,
            is_own: limits == own,
            better_than_own: share(better, self.draws.len()),
            enough_labels: too_few.is_empty(),
            too_few,
        })
    }

    fn too_few(&self, best: &Estimate) -> Vec<Words> {
        let mut reasons = Vec::new();
        let n_positive = self.count(Some(Label::Positive));
        let n_told = n_positive + self.count(Some(Label::Negative));
        if n_told < FEW_IN_ALL {
            reasons.push(format!("{n_told} labels are pos or neg: label at least {FEW_IN_ALL}").into());
        }
        if n_positive < FEW {
            reasons.push(format!("{n_positive} labels are pos: label at least {FEW}").into());
        }
        for (distance, stratum) in &self.strata {
            let n = stratum.labelled.len() as u64;
            if n < FEW && 2 * n < stratum.n_pairs {
                reasons.push(format!("distance {distance}: {n} of {} pairs have a label", stratum.n_pairs).into());
            }
        }
        if let Some([low, high]) = best.ci.f1.filter(|[low, high]| high - low > 0.2) {
            reasons.push(format!("F1 there may be anything from {low:.2} to {high:.2}").into());
        }
        reasons
    }
}

/// Returns the reason why the sheet ends at too small a distance, with a sufficient `--max-distance`. Returns `None` if
/// the sheet is wide enough.
fn beyond(own: PairLimits, best: PairLimits, last: u32, bits: u32) -> Option<Words> {
    let (what, wider) = if own.distance > last {
        (format!("the profile's max_distance {} is beyond the sheet's largest, {last}", own.distance), own.distance)
    } else if best.distance == last && last + 1 < bits {
        (format!("the best distance is the sheet's largest, {last}"), (last + WIDER).min(bits - 1))
    } else {
        return None;
    };
    Some(words![format!("{what}: draw a wider one with "), key("max_distance"), format!(" {wider}")])
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
