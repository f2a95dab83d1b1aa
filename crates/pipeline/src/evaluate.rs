//! Precision and recall on labelled documents.

use std::collections::{BTreeMap, HashMap, HashSet};

use nearprint_join::{Kernel, MapScratch, Queries, QueryRows, TablePlan, Verifier, Workload};
use nearprint_tokenize::Resources as AnalyzerResources;
use serde::Serialize;

use crate::config::ProfileConfig;
use crate::documents::{DocumentColumns, Documents};
use crate::engine::Resources;
use crate::error::{PipelineError, Result};
use crate::fingerprint_stage::{FingerprintCounts, FingerprintRequest, fingerprint_documents};
use crate::progress::Progress;
use crate::query_batch::QueryBatch;
use crate::storage::Storage;
use crate::tasks::blocking;

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

/// Precision and recall by pair. A gray pair counts neither way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Score {
    /// Largest Hamming distance that makes a pair.
    pub max_distance: u32,
    /// Pairs found, gray ones left out.
    pub n_found: u64,
    /// Positive pairs found.
    pub n_true: u64,
    /// Gray pairs found.
    pub n_gray: u64,
    /// `n_true` / `n_found`; 1 where nothing is found.
    pub precision: f64,
    /// `n_true` / positive pairs; 1 where there is none.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
}

/// Summary of the `evaluate` command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// At the profile's own distances.
    #[serde(flatten)]
    pub own: Score,
    /// Sketches verified up to this distance, where they are.
    pub max_sketch_distance: Option<u16>,
    /// Positive pairs of the truth.
    pub n_positive: u64,
    /// Documents.
    #[serde(flatten)]
    pub documents: FingerprintCounts,
    /// Documents left out.
    pub n_ignored: u64,
    /// The same for each distance.
    pub by_max_distance: Vec<Score>,
}

/// The labels.
#[derive(Debug, Default)]
struct Truth {
    positive: HashSet<(String, String)>,
    gray: HashSet<(String, String)>,
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
    let verifier = request.profile.join.verifier(request.profile.bits)?;
    let listed = request.max_distance.unwrap_or(u32::from(verifier.max_distance)).max(u32::from(verifier.max_distance));
    let widest =
        crate::config::JoinConfig { max_distance: listed, ..request.profile.join }.verifier(request.profile.bits)?;
    let ignored = match &request.ignore {
        Some(file) => lines(storage, file).await?.into_iter().collect(),
        None => HashSet::new(),
    };
    let documents = Documents::open(storage, &request.documents, request.columns.clone()).await?;
    let fingerprint = FingerprintRequest {
        documents: request.documents.clone(),
        columns: request.columns.clone(),
        keep: Vec::new(),
        profile: request.profile.clone(),
        analyzer_resources: request.analyzer_resources.clone(),
        max_bad_rows: 0,
    };
    let done = fingerprint_documents(&fingerprint, documents, resources, progress).await?;
    let truth = read_truth(storage, &request.truth, &ignored, &done.batch).await?;
    let (n_positive, n_ignored, bits) = (truth.positive.len() as u64, ignored.len() as u64, request.profile.bits);
    let scores = blocking("evaluate", move || score(&done.batch, &truth, &ignored, widest, bits)).await?;
    let own = scores.iter().find(|s| s.max_distance == u32::from(verifier.max_distance)).copied();
    let own = own.ok_or(PipelineError::Internal { stage: "evaluate", reason: "no score".to_owned() })?;
    Ok(Evaluation {
        own,
        max_sketch_distance: verifier.max_sketch_distance,
        n_positive,
        documents: done.counts,
        n_ignored,
        by_max_distance: scores,
    })
}

async fn lines(storage: &Storage, url: &str) -> Result<Vec<String>> {
    let missing = || PipelineError::InputMissing { what: "file", url: url.to_owned(), remedy: "check the path" };
    let content = storage.folder(url)?.get().await?.ok_or_else(missing)?;
    let text = std::str::from_utf8(&content).map_err(|e| PipelineError::bad_file(url, e))?;
    Ok(text.lines().map(str::to_owned).filter(|l| !l.is_empty()).collect())
}

fn ordered(a: &str, b: &str) -> (String, String) {
    if a <= b { (a.to_owned(), b.to_owned()) } else { (b.to_owned(), a.to_owned()) }
}

async fn read_truth(storage: &Storage, url: &str, ignored: &HashSet<String>, batch: &QueryBatch) -> Result<Truth> {
    let lines = lines(storage, url).await?;
    let bad = |row: usize, reason: String| PipelineError::BadRow { file: url.to_owned(), row: row as u64 + 1, reason };
    let header: Vec<&str> = lines.first().map(|l| l.split('\t').collect()).unwrap_or_default();
    let column = |name: &str| {
        let present = header.iter().map(|h| (*h).to_owned()).collect();
        let missing = || PipelineError::MissingColumn {
            file: url.to_owned(),
            column: name.to_owned(),
            present,
            remedy: "write a tab-separated header",
        };
        header.iter().position(|h| *h == name).ok_or_else(missing)
    };
    let (a, b, label) = (column("id_a")?, column("id_b")?, column("label")?);
    let mut truth = Truth::default();
    for (row, line) in lines.iter().enumerate().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let field = |at: usize| {
            fields.get(at).copied().ok_or_else(|| bad(row, "too few columns: separate them by tabs".to_owned()))
        };
        let (a, b) = (field(a)?, field(b)?);
        if let Some(unknown) = [a, b].into_iter().find(|id| batch.row_of(id).is_none() && !ignored.contains(*id)) {
            return Err(bad(row, format!("no document '{}': label documents that are there", unknown.escape_debug())));
        }
        if ignored.contains(a) || ignored.contains(b) {
            continue;
        }
        match field(label)? {
            "pos" => drop(truth.positive.insert(ordered(a, b))),
            "gray" => drop(truth.gray.insert(ordered(a, b))),
            "neg" => {}
            other => {
                return Err(bad(row, format!("label '{}' is not pos, gray or neg", other.escape_debug())));
            }
        }
    }
    Ok(truth)
}

fn score(
    batch: &QueryBatch,
    truth: &Truth,
    ignored: &HashSet<String>,
    widest: Verifier,
    bits: u32,
) -> Result<Vec<Score>> {
    let left_out: Vec<bool> = batch.rows().map(|row| ignored.contains(batch.id(row))).collect();
    let fingerprints: Vec<Option<u64>> =
        batch.rows().map(|row| batch.fingerprints[row as usize].filter(|_| !left_out[row as usize])).collect();
    let rows = QueryRows::new(&fingerprints, &batch.sketches)?;
    let n = rows.values().len();
    let workload = Workload {
        n_queries: n,
        existing: Vec::new(),
        piece_rows: n,
        itself: true,
        memory_bytes: 1 << 30,
        threads: 1,
        pieces_under_way: 1,
    };
    let plan = TablePlan::choose(bits, u32::from(widest.max_distance), &workload);
    let queries = Queries::new(rows.values().to_vec(), plan, Kernel::best());
    let mut found = Counts::new(batch, truth);
    for value in 0..u32::try_from(n).unwrap_or(u32::MAX) {
        rows.all_pairs(value, value, 0, &widest, |p| found.add(p.a, p.b, p.distance));
    }
    queries.map_self(0..n, &mut MapScratch::default(), |pair| {
        rows.all_pairs(pair.query, pair.existing, pair.distance, &widest, |p| found.add(p.a, p.b, p.distance));
    });
    found.add_exact_short_texts(&left_out);
    Ok(found.scores(u32::from(widest.max_distance)))
}

/// (found, true, gray) by distance.
struct Counts<'a> {
    batch: &'a QueryBatch,
    truth: &'a Truth,
    by_distance: BTreeMap<u8, [u64; 3]>,
}

impl<'a> Counts<'a> {
    fn new(batch: &'a QueryBatch, truth: &'a Truth) -> Self {
        Self { batch, truth, by_distance: BTreeMap::new() }
    }

    fn add(&mut self, a: u32, b: u32, distance: u8) {
        let pair = ordered(self.batch.id(a), self.batch.id(b));
        let counts = self.by_distance.entry(distance).or_default();
        if self.truth.gray.contains(&pair) {
            counts[2] += 1;
        } else {
            counts[0] += 1;
            counts[1] += u64::from(self.truth.positive.contains(&pair));
        }
    }

    /// Below the feature floor, equal normalised texts are pairs.
    fn add_exact_short_texts(&mut self, left_out: &[bool]) {
        let mut same: HashMap<[u8; 16], Vec<u32>> = HashMap::new();
        for row in
            self.batch.rows().filter(|&row| !left_out[row as usize] && self.batch.fingerprints[row as usize].is_none())
        {
            if let Some(hash) = self.batch.text_hashes[row as usize] {
                let others = same.entry(hash).or_default();
                for &other in others.iter() {
                    self.add(other, row, 0);
                }
                others.push(row);
            }
        }
    }

    fn scores(&self, max_distance: u32) -> Vec<Score> {
        let n_positive = self.truth.positive.len() as u64;
        let mut sum = [0; 3];
        let mut scores = Vec::new();
        for distance in 0..=max_distance {
            let at = u8::try_from(distance).ok().and_then(|d| self.by_distance.get(&d)).copied().unwrap_or_default();
            sum = [sum[0] + at[0], sum[1] + at[1], sum[2] + at[2]];
            scores.push(Score::new(distance, sum, n_positive));
        }
        scores
    }
}

impl Score {
    #[allow(clippy::cast_precision_loss, reason = "a ratio of counts")]
    fn new(max_distance: u32, [n_found, n_true, n_gray]: [u64; 3], n_positive: u64) -> Self {
        let ratio = |part: u64, whole: u64| {
            if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
        };
        let (precision, recall) = (ratio(n_true, n_found), ratio(n_true, n_positive));
        let f1 = if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) };
        Self { max_distance, n_found, n_true, n_gray, precision, recall, f1 }
    }
}
