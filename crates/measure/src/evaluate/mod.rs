//! Precision and recall on labelled documents.

pub(crate) mod pairs;
pub(crate) mod resemblance;
pub mod score;
pub(crate) mod truth;

use std::collections::{BTreeSet, HashSet};

use nearprint_documents::{DocumentColumns, DocumentPlace, Documents, InputPolicy, Repeats};
use nearprint_fault::{Result, Words, key, words};
use nearprint_join::Verifier;
use nearprint_pipeline::{
    FingerprintCounts, FingerprintRequest, Fingerprinted, JudgeCounts, Resources, fingerprint_batch,
};
use nearprint_profile::{JoinConfig, ProfileConfig};
use nearprint_storage::{Progress, Storage, blocking};
use nearprint_tasks::QueryBatch;
use nearprint_tokenize::Resources as AnalyzerResources;
use pairs::{Pairs, ProfileJudge};
use rayon::prelude::*;
use resemblance::SetsById;
use schemars::JsonSchema;
use serde::Serialize;

use crate::resemblance::ShingleSet;

pub use resemblance::{ByResemblance, ComponentCounts, Hundredth, ResemblanceRow};
pub use score::{Intervals, Score};
pub use truth::Label;
use truth::{Grade, Truth};

/// The profile to evaluate, and the labelled documents.
#[derive(Debug, Clone)]
pub struct EvaluateRequest {
    /// The place of the documents.
    pub documents: DocumentPlace,
    /// The columns of the documents.
    pub columns: DocumentColumns,
    /// The rule for rows with one id.
    pub repeats: Repeats,
    /// The file of labelled pairs: tab-separated `id_a`, `id_b`, `label` (`pos`, `gray`, `neg`), with a header.
    pub truth: String,
    /// The file of ids to leave out, one per line.
    pub ignore: Option<String>,
    /// The profile.
    pub profile: ProfileConfig,
    /// The contents of the user dictionary and the stop words.
    pub analyzer_resources: AnalyzerResources,
    /// The largest distance to list. `None`, or a smaller number, means the profile's.
    pub max_distance: Option<u32>,
    /// The texts of all documents are compared, and the pairs counted by their exact resemblance.
    pub by_resemblance: bool,
    /// The pairs are counted by the column `grade` of the labels.
    pub by_grade: bool,
}

/// The score at a largest Hamming distance and the profile's own sketch distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct DistanceScore {
    /// The largest Hamming distance of a pair.
    pub max_distance: u32,
    /// The score.
    #[serde(flatten)]
    pub score: Score,
}

/// The score at a largest sketch distance and the profile's own Hamming distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SketchScore {
    /// The largest sketch distance of a pair. `None` means that sketches are not verified.
    pub max_sketch_distance: Option<u16>,
    /// The score.
    #[serde(flatten)]
    pub score: Score,
}

/// The score of the pairs in a range of lengths. The length of a pair is that of its shorter text in normalised
/// characters.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LengthScore {
    /// The least length.
    pub min_length: u32,
    /// The largest length. `None` means that the range has no upper limit.
    pub max_length: Option<u32>,
    /// The score at the profile's own distances.
    #[serde(flatten)]
    pub own: Score,
    /// The score for each largest Hamming distance.
    pub by_max_distance: Vec<DistanceScore>,
}

/// The pairs of one grade.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GradeRow {
    /// The grade.
    pub grade: String,
    /// The number of pairs that have it.
    pub n_pairs: u64,
    /// The number of these that are found at the profile's own distances.
    pub n_found: u64,
    /// The share that is found.
    pub share: f64,
}

/// Summary of the `evaluate` command.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Evaluation {
    /// The score at the profile's own distances, with its judge.
    #[serde(flatten)]
    pub own: DistanceScore,
    /// What the judge read, and what it found. `None` means that the profile has no judge.
    pub judge: Option<JudgeCounts>,
    /// The profile's largest sketch distance, which counts where no judge reads. `None` means that sketches are not verified.
    pub max_sketch_distance: Option<u16>,
    /// The counts of the documents.
    #[serde(flatten)]
    pub documents: FingerprintCounts,
    /// The ids to leave out, whether or not a document has them.
    pub n_ignored: u64,
    /// The ids among them that no document has.
    pub n_ignored_unknown: u64,
    /// Warnings to read before relying on the scores.
    pub warnings: Vec<Words>,
    /// The score for each largest Hamming distance, with the profile's judge. It reads pairs up to the profile's own distance: rows
    /// above that lack what it would find among the others.
    pub by_max_distance: Vec<DistanceScore>,
    /// The score for each largest sketch distance, without the judge. It is empty if the profile makes no sketches.
    pub by_max_sketch_distance: Vec<SketchScore>,
    /// The scores by length. The counts of all ranges add up to those of all pairs.
    pub by_length: Vec<LengthScore>,
    /// The pairs by the exact resemblance of their texts. `None` means that the request did not ask for them.
    pub by_resemblance: Option<ByResemblance>,
    /// The pairs by grade, in order of the grades' first rows. `None` means that the request did not ask for them.
    pub by_grade: Option<Vec<GradeRow>>,
}

/// Evaluates a profile on labelled documents.
///
/// ```
/// use nearprint_documents::{DocumentColumns, Repeats};
/// use nearprint_pipeline::Resources;
/// use nearprint_storage::{Progress, Storage};
/// use nearprint_measure::{EvaluateRequest, evaluate, plot};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = nearprint_storage::TempFolder::try_new(&std::env::temp_dir())?;
/// # let [documents, truth] = ["pages.jsonl", "truth.tsv"].map(|name| temp.path().join(name).display().to_string());
/// std::fs::write(&documents, r#"
/// {"id": "a", "text": "Near-duplicate pages differ in a date, a counter or an advertisement, no more."}
/// {"id": "b", "text": "NEAR-DUPLICATE pages differ in a date, a counter or an advertisement, no more."}
/// {"id": "c", "text": "The committee met on Tuesday to plan a bridge across the northern river."}
/// "#.trim())?;
/// std::fs::write(&truth, "id_a\tid_b\tlabel\na\tb\tpos\na\tc\tneg\n")?;
/// let request = EvaluateRequest {
///     documents: documents.into(),
///     columns: DocumentColumns::default(),
///     repeats: Repeats::default(),
///     truth,
///     ignore: None,
///     profile: nearprint_profile::by_name("default")?,
///     analyzer_resources: nearprint_tokenize::Resources::default(),
///     max_distance: None,
///     by_resemblance: true,
///     by_grade: false,
/// };
/// let evaluation = evaluate(&Storage::default(), &request, &Resources::default(), &Progress::default()).await?;
/// assert_eq!((evaluation.own.score.precision, evaluation.own.score.recall), (1.0, Some(1.0)));
/// let by_resemblance = evaluation.by_resemblance.as_ref().map(|counted| &counted.rows).unwrap();
/// assert_eq!((by_resemblance[7].from, by_resemblance[7].n_pairs, by_resemblance[7].n_found), (1.0, 1, 1));
/// assert!(plot::svg(&evaluation)?.starts_with("<svg"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The input is bad, or a label names a document that does not exist.
pub async fn evaluate(
    storage: &Storage,
    request: &EvaluateRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<Evaluation> {
    let plan = Plan::new(&request.profile, request.max_distance)?;
    let ignored: HashSet<String> = match &request.ignore {
        Some(file) => truth::lines(storage, file).await?.into_iter().map(|(_, id)| id).collect(),
        None => HashSet::new(),
    };
    let documents =
        Documents::open(storage, &request.documents, request.columns.clone(), &InputPolicy::default()).await?;
    let EvaluateRequest { documents: path, columns, repeats, profile, analyzer_resources, .. } = request;
    let fingerprint = FingerprintRequest::of(path, columns, profile, analyzer_resources).with_repeats(repeats);
    let done = fingerprint_batch(&fingerprint, documents, resources, progress).await?;
    let sets = match request.by_resemblance {
        true => {
            let mut documents = Documents::open(storage, path, columns.clone(), &InputPolicy::default()).await?;
            documents.leave_out(done.left_out());
            Some(resemblance::read(&documents, &ignored).await?)
        }
        false => None,
    };
    let Fingerprinted { batch, counts, .. } = done;
    let truth = truth::read(storage, &request.truth, &ignored, &batch, request.by_grade).await?;
    blocking("evaluate", move || plan.evaluation(&batch, &truth, &ignored, counts, sets)).await
}

/// The distance limits for which scores are computed.
#[derive(Debug)]
struct Plan {
    bits: u32,
    /// The profile's largest sketch distance, without a judge.
    max_sketch_distance: Option<u16>,
    own: Verifier,
    /// The limits of the join, which are wide enough for every row of the tables.
    candidates: Verifier,
    distances: Vec<Verifier>,
    sketches: Vec<Verifier>,
    judge: Option<ProfileJudge>,
}

/// The step between the sketch distances that are listed.
const SKETCH_STEP: usize = 8;
/// The largest sketch distance that is listed in steps. Dissimilar texts lie at about this distance.
const MAX_SKETCH: u16 = 128;

/// The first length of each range.
const LENGTHS: [u32; 6] = [0, 100, 300, 1000, 3000, 10_000];

impl Plan {
    fn new(profile: &ProfileConfig, listed: Option<u32>) -> Result<Self> {
        let of_sketches = profile.join.verifier(profile.bits)?;
        let own = profile.verifier_with_texts()?;
        let judge = profile.judge().map(|judge| ProfileJudge { judge, verifier: own });
        let sketches = if profile.sketch.is_some() { sketch_limits(of_sketches) } else { Vec::new() };
        let listed = listed.unwrap_or(0).max(own.max_distance.into());
        let widest =
            JoinConfig { max_distance: listed, max_sketch_distance: None, earlier: None }.verifier(profile.bits)?;
        let has_sketches = profile.sketch.is_some();
        Ok(Self {
            bits: profile.bits,
            max_sketch_distance: of_sketches.max_sketch_distance,
            own,
            candidates: Verifier { max_sketch_distance: has_sketches.then_some(u16::MAX), ..widest },
            distances: (0..=widest.max_distance).map(|max_distance| Verifier { max_distance, ..own }).collect(),
            sketches,
            judge,
        })
    }

    /// Returns the profile's distance, if there are rows above it that lack what its judge would find.
    fn judged_distance(&self) -> Option<u8> {
        let listed = self.distances.last()?.max_distance;
        self.judge.as_ref().map(|judge| judge.verifier.max_distance).filter(|&own| own < listed)
    }

    fn evaluation(
        &self,
        batch: &QueryBatch,
        truth: &Truth,
        ignored: &HashSet<String>,
        documents: FingerprintCounts,
        sets: Option<SetsById>,
    ) -> Result<Evaluation> {
        let left_out: Vec<bool> = batch.rows().map(|row| ignored.contains(&*batch.id(row))).collect();
        let rows: Vec<Verifier> = self.distances.iter().chain(&self.sketches).copied().collect();
        let looked_at = (rows.as_slice(), self.judge.as_ref());
        let (pairs, judge) = pairs::find(batch, truth, &left_out, self.candidates, self.bits, looked_at)?;
        let own = pairs.score(&self.own);
        let n_left_out = left_out.iter().filter(|left_out| **left_out).count();
        let n_ignored_unknown = (ignored.len() - n_left_out) as u64;
        Ok(Evaluation {
            own: DistanceScore { max_distance: self.own.max_distance.into(), score: own },
            judge,
            max_sketch_distance: self.max_sketch_distance,
            documents,
            n_ignored: ignored.len() as u64,
            n_ignored_unknown,
            warnings: warnings(&own, n_ignored_unknown, self.judged_distance()),
            by_max_distance: self.distances.par_iter().map(|row| at_distance(row, pairs.score(row))).collect(),
            by_max_sketch_distance: self.sketches.par_iter().map(|row| at_sketch(row, pairs.score(row))).collect(),
            by_length: self.by_length(&pairs),
            by_grade: truth.grades.as_ref().map(|grades| by_grade(grades, &pairs.found(&self.own))),
            by_resemblance: sets.map(|sets| self.by_resemblance(batch, sets, &pairs)),
        })
    }

    fn by_resemblance(&self, batch: &QueryBatch, mut sets: SetsById, pairs: &Pairs) -> ByResemblance {
        // A document that is left out has no set, and is in no pair.
        let sets: Vec<ShingleSet> = batch.rows().map(|row| sets.remove(&*batch.id(row)).unwrap_or_default()).collect();
        ByResemblance::of(&sets, &pairs.found(&self.own))
    }

    fn by_length(&self, pairs: &Pairs) -> Vec<LengthScore> {
        let own = pairs.scores(&self.own, &LENGTHS);
        let by_distance: Vec<Vec<Score>> = self.distances.par_iter().map(|row| pairs.scores(row, &LENGTHS)).collect();
        let bucket = |(i, own): (usize, Score)| LengthScore {
            min_length: LENGTHS[i],
            max_length: LENGTHS.get(i + 1).map(|next| next - 1),
            own,
            by_max_distance: self.distances.iter().zip(&by_distance).map(|(row, s)| at_distance(row, s[i])).collect(),
        };
        own.into_iter().enumerate().map(bucket).collect()
    }
}

#[allow(clippy::cast_precision_loss, reason = "a share of counts")]
fn by_grade(grades: &[Grade], found: &HashSet<(u32, u32)>) -> Vec<GradeRow> {
    let row = |(grade, pairs): &Grade| {
        let (n_pairs, n_found) = (pairs.len() as u64, pairs.iter().filter(|pair| found.contains(pair)).count() as u64);
        GradeRow { grade: grade.clone(), n_pairs, n_found, share: n_found as f64 / n_pairs as f64 }
    };
    grades.iter().map(row).collect()
}

fn warnings(own: &Score, n_ignored_unknown: u64, unread: Option<u8>) -> Vec<Words> {
    let mut warnings = Vec::new();
    if let Some(max_distance) = unread {
        warnings.push(words![
            format!("the judge reads pairs up to the profile's distance {max_distance}, so rows above it lack what it would find: score another distance with "),
            key("set"),
            " join.max_distance=N"
        ]);
    }
    if own.n_positive == 0 {
        warnings.push("no pair of the truth is positive: recall and F1 have no value".into());
    }
    if n_ignored_unknown > 0 {
        warnings.push(words!["ids of ", key("ignore"), format!(" that no document has: {n_ignored_unknown}")]);
    }
    warnings
}

/// Returns the sketch limits in ascending order, including the profile's own. The last one verifies no sketches.
fn sketch_limits(own: Verifier) -> Vec<Verifier> {
    let steps = (0..=MAX_SKETCH).step_by(SKETCH_STEP).chain(own.max_sketch_distance);
    let steps: BTreeSet<u16> = steps.collect();
    steps
        .into_iter()
        .map(Some)
        .chain([None])
        .map(|max_sketch_distance| Verifier { max_sketch_distance, ..own })
        .collect()
}

fn at_distance(limits: &Verifier, score: Score) -> DistanceScore {
    DistanceScore { max_distance: limits.max_distance.into(), score }
}

fn at_sketch(limits: &Verifier, score: Score) -> SketchScore {
    SketchScore { max_sketch_distance: limits.max_sketch_distance, score }
}
