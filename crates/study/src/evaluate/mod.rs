//! Precision and recall on labelled documents.

pub(crate) mod pairs;
pub mod score;
pub(crate) mod truth;

use std::collections::{BTreeSet, HashSet};

use nearprint_join::Verifier;
use nearprint_tokenize::Resources as AnalyzerResources;
use rayon::prelude::*;
use serde::Serialize;

use crate::error::Result;
use nearprint_dataset::InputPolicy;
use nearprint_dataset::{DocumentColumns, Documents};
use nearprint_pipeline::Resources;
use nearprint_pipeline::{FingerprintCounts, FingerprintRequest, fingerprint_batch};
use nearprint_profile::{JoinConfig, ProfileConfig};
use nearprint_storage::Progress;
use nearprint_storage::Storage;
use nearprint_storage::blocking;
use nearprint_tasks::QueryBatch;
use pairs::Pairs;
pub use score::{Intervals, Score};
pub use truth::Label;
use truth::Truth;

/// What to evaluate.
#[derive(Debug, Clone)]
pub struct EvaluateRequest {
    /// Documents.
    pub documents: String,
    /// Columns.
    pub columns: DocumentColumns,
    /// Labelled pairs: tab-separated `id_a`, `id_b`, `label` (`pos`, `gray`, `neg`), with a header.
    pub truth: String,
    /// Ids that are left out, one a line.
    pub ignore: Option<String>,
    /// Text to pair.
    pub profile: ProfileConfig,
    /// Contents of the user's dictionary and stop words.
    pub analyzer_resources: AnalyzerResources,
    /// The largest distance that is listed; the profile's where none is said.
    pub max_distance: Option<u32>,
}

/// The score at a largest Hamming distance, and the profile's own sketch distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DistanceScore {
    /// Largest Hamming distance that makes a pair.
    pub max_distance: u32,
    /// The score.
    #[serde(flatten)]
    pub score: Score,
}

/// The score at a largest sketch distance, and the profile's own Hamming distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SketchScore {
    /// Largest distance of sketches that makes a pair; none where sketches are not verified.
    pub max_sketch_distance: Option<u16>,
    /// The score.
    #[serde(flatten)]
    pub score: Score,
}

/// The score of pairs of a length, that of the shorter text in normalised characters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LengthScore {
    /// The least length.
    pub min_length: u32,
    /// The largest; none for the last bucket.
    pub max_length: Option<u32>,
    /// At the profile's own distances.
    #[serde(flatten)]
    pub own: Score,
    /// The same for each distance.
    pub by_max_distance: Vec<DistanceScore>,
}

/// Summary of the `evaluate` command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// At the profile's own distances.
    #[serde(flatten)]
    pub own: DistanceScore,
    /// Sketches verified up to this distance, where they are.
    pub max_sketch_distance: Option<u16>,
    /// Documents.
    #[serde(flatten)]
    pub documents: FingerprintCounts,
    /// Ids left out, of documents or not.
    pub n_ignored: u64,
    /// Those of them that no document has.
    pub n_ignored_unknown: u64,
    /// What to know before the scores are believed.
    pub warnings: Vec<String>,
    /// The same for each distance.
    pub by_max_distance: Vec<DistanceScore>,
    /// The same for each sketch distance; empty where the profile makes no sketches.
    pub by_max_sketch_distance: Vec<SketchScore>,
    /// The same by length. The buckets' counts add up to the whole.
    pub by_length: Vec<LengthScore>,
}

/// Evaluates a profile.
///
/// # Errors
/// Bad input; labels of documents that are not there.
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
    let EvaluateRequest { documents: path, columns, profile, analyzer_resources, .. } = request;
    let fingerprint = FingerprintRequest::of(path, columns, profile, analyzer_resources);
    let (batch, counts) = fingerprint_batch(&fingerprint, documents, resources, progress).await?;
    let truth = truth::read(storage, &request.truth, &ignored, &batch).await?;
    blocking("evaluate", move || plan.evaluation(&batch, &truth, &ignored, counts)).await
}

/// The rows of the tables.
#[derive(Debug)]
struct Plan {
    bits: u32,
    own: Verifier,
    /// What the join looks for, so that no row misses a pair.
    candidates: Verifier,
    distances: Vec<Verifier>,
    sketches: Vec<Verifier>,
}

/// Sketch distances that are listed: every `SKETCH_STEP` up to `MAX_SKETCH`, where unlike texts lie.
const SKETCH_STEP: usize = 8;
const MAX_SKETCH: u16 = 128;

/// First length of each bucket.
const LENGTHS: [u32; 6] = [0, 100, 300, 1000, 3000, 10_000];

impl Plan {
    fn new(profile: &ProfileConfig, listed: Option<u32>) -> Result<Self> {
        let own = profile.join.verifier(profile.bits)?;
        let listed = listed.unwrap_or(0).max(own.max_distance.into());
        let widest = JoinConfig { max_distance: listed, max_sketch_distance: None }.verifier(profile.bits)?;
        let has_sketches = profile.sketch.is_some();
        Ok(Self {
            bits: profile.bits,
            own,
            candidates: Verifier { max_sketch_distance: has_sketches.then_some(u16::MAX), ..widest },
            distances: (0..=widest.max_distance).map(|max_distance| Verifier { max_distance, ..own }).collect(),
            sketches: if has_sketches { sketch_limits(own) } else { Vec::new() },
        })
    }

    fn evaluation(
        &self,
        batch: &QueryBatch,
        truth: &Truth,
        ignored: &HashSet<String>,
        documents: FingerprintCounts,
    ) -> Result<Evaluation> {
        let left_out: Vec<bool> = batch.rows().map(|row| ignored.contains(&*batch.id(row))).collect();
        let rows: Vec<Verifier> = self.distances.iter().chain(&self.sketches).copied().collect();
        let pairs = pairs::find(batch, truth, &left_out, self.candidates, self.bits, &rows)?;
        let own = pairs.score(&self.own);
        let n_left_out = left_out.iter().filter(|left_out| **left_out).count();
        let n_ignored_unknown = (ignored.len() - n_left_out) as u64;
        Ok(Evaluation {
            own: DistanceScore { max_distance: self.own.max_distance.into(), score: own },
            max_sketch_distance: self.own.max_sketch_distance,
            documents,
            n_ignored: ignored.len() as u64,
            n_ignored_unknown,
            warnings: warnings(&own, n_ignored_unknown),
            by_max_distance: self.distances.par_iter().map(|row| at_distance(row, pairs.score(row))).collect(),
            by_max_sketch_distance: self.sketches.par_iter().map(|row| at_sketch(row, pairs.score(row))).collect(),
            by_length: self.by_length(&pairs),
        })
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

fn warnings(own: &Score, n_ignored_unknown: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    if own.n_positive == 0 {
        warnings.push("no pair of the truth is positive: recall and F1 have no value".to_owned());
    }
    if n_ignored_unknown > 0 {
        warnings.push(format!("ids of --ignore that no document has: {n_ignored_unknown}"));
    }
    warnings
}

/// From 0 up, the own one included; last the one that verifies no sketches.
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
