//! Draws the sheet. The user's documents are joined with each other, and some pairs of each distance are sampled.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use nearprint_documents::{DocumentColumns, DocumentPlace, Documents, FileRows, InputPolicy, Repeats};
use nearprint_explain::excerpts;
use nearprint_fault::{Fault, Result};
use nearprint_join::{Column, HammingJoin, QueryRows, RowPair, Verifier};
use nearprint_pipeline::{FingerprintCounts, FingerprintRequest, Fingerprinted, Resources, fingerprint_batch};
use nearprint_profile::{JoinConfig, ProfileConfig};
use nearprint_storage::{IfExists, OutputFile, Progress, Storage, blocking};
use nearprint_tasks::QueryBatch;
use nearprint_tokenize::Resources as AnalyzerResources;
use schemars::JsonSchema;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{html, sheet};

/// The documents to draw pairs from, and the files to write.
#[derive(Debug, Clone)]
pub struct SheetRequest {
    /// The place of the documents.
    pub documents: DocumentPlace,
    /// The columns of the documents.
    pub columns: DocumentColumns,
    /// The rule for rows with one id.
    pub repeats: Repeats,
    /// The profile.
    pub profile: ProfileConfig,
    /// The contents of the user dictionary and the stop words.
    pub analyzer_resources: AnalyzerResources,
    /// The path of the sheet, which is a CSV file.
    pub sheet: String,
    /// The path of a page for reading the same pairs. `None` means no page.
    pub html: Option<String>,
    /// Says whether the sheet and the page may replace files that exist.
    pub if_exists: IfExists,
    /// The most pairs of one distance.
    pub per_distance: usize,
    /// The largest distance.
    pub max_distance: u32,
}

/// Summary of drawing a sheet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SheetSummary {
    /// The sheet.
    pub sheet: String,
    /// The page.
    pub html: Option<String>,
    /// The counts of the documents.
    #[serde(flatten)]
    pub documents: FingerprintCounts,
    /// The number of distinct normalised texts that have a fingerprint. Only these are joined, without their copies.
    pub n_texts: u64,
    /// The number of pairs of these texts up to the largest distance.
    pub n_pairs: u64,
    /// The number of pairs on the sheet.
    pub n_sampled: u64,
    /// The pairs by distance. Distances without pairs are left out.
    pub strata: Vec<Stratum>,
}

/// The pairs of one distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stratum {
    /// The distance.
    pub distance: u8,
    /// The number of pairs, sampled or not.
    pub n_pairs: u64,
    /// The number of pairs on the sheet.
    pub n_sampled: u64,
}

/// The characters of an excerpt on the sheet.
const EXCERPT_CHARS: usize = 600;
/// The characters of an excerpt before the first difference.
const CONTEXT_CHARS: usize = 120;

/// Draws a sheet. The same documents and profile give the same sheet.
///
/// ```
/// use nearprint_documents::{DocumentColumns, Repeats};
/// use nearprint_pipeline::Resources;
/// use nearprint_storage::{IfExists, Progress, Storage};
/// use nearprint_measure::{SheetRequest, draw_sheet};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = nearprint_storage::TempFolder::try_new(&std::env::temp_dir())?;
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents/dt=2026-11-19").to_owned();
/// # let sheet = temp.path().join("sheet.csv").display().to_string();
/// let request = SheetRequest {
///     documents: documents.into(),
///     columns: DocumentColumns::default(),
///     repeats: Repeats::default(),
///     profile: nearprint_profile::by_name("default")?,
///     analyzer_resources: nearprint_tokenize::Resources::default(),
///     sheet,
///     html: None,
///     if_exists: IfExists::Refuse,
///     per_distance: 3,
///     max_distance: 12,
/// };
/// let drawn = draw_sheet(&Storage::default(), &request, &Resources::default(), &Progress::default()).await?;
/// assert!(drawn.n_sampled > 0 && drawn.strata.iter().all(|stratum| stratum.n_sampled <= 3));
/// assert!(std::fs::read_to_string(&request.sheet)?.lines().count() > 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The input is bad, or the sheet or page exists and may not be replaced.
pub async fn draw_sheet(
    storage: &Storage,
    request: &SheetRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<SheetSummary> {
    // An existing sheet may contain a day's labels, so it is not overwritten by accident.
    let sheet = OutputFile::try_new(storage, &request.sheet, request.if_exists).await?;
    let page = match &request.html {
        Some(page) => Some(OutputFile::try_new(storage, page, request.if_exists).await?),
        None => None,
    };
    let limits = JoinConfig { max_distance: request.max_distance, max_sketch_distance: None, earlier: None };
    let verifier = limits.verifier(request.profile.bits)?;
    let max_sketch_distance = request.profile.sketch.is_some().then_some(u16::MAX);
    let verifier = Verifier { max_sketch_distance, ..verifier };
    let documents =
        Documents::open(storage, &request.documents, request.columns.clone(), &InputPolicy::default()).await?;
    let SheetRequest { documents: path, columns, repeats, profile, analyzer_resources, .. } = request;
    let fingerprint = FingerprintRequest::of(path, columns, profile, analyzer_resources).with_repeats(repeats);
    let done = fingerprint_batch(&fingerprint, documents, resources, progress).await?;
    let left_out = done.left_out();
    let Fingerprinted { batch, counts, .. } = done;
    let (bits, per_distance) = (request.profile.bits, request.per_distance);
    let (n_texts, sample, ids) = blocking("sample", move || {
        let (n_texts, sample) = sample(&batch, verifier, bits, per_distance)?;
        let ids = sample.ids(&batch);
        Ok::<_, Fault>((n_texts, sample, ids))
    })
    .await?;
    let pairs = sheet_pairs(storage, request, &sample, &ids, left_out).await?;
    let about = sheet::About {
        strata: (0..=request.max_distance).map(|d| sample.n_pairs(d)).collect(),
        profile: request.profile.digest(&request.analyzer_resources, &request.columns.web.html_text)?,
    };
    sheet.write(sheet::write(&pairs, &about)?).await?;
    if let Some(page) = &page {
        page.write(html::page(&pairs).into_bytes()).await?;
    }
    Ok(SheetSummary {
        sheet: request.sheet.clone(),
        html: request.html.clone(),
        documents: counts,
        n_texts,
        n_pairs: sample.strata.values().map(|s| s.n_pairs).sum(),
        n_sampled: pairs.len() as u64,
        strata: sample.strata(),
    })
}

/// The sampled pairs of each distance.
#[derive(Debug, Default)]
struct Sample {
    strata: BTreeMap<u8, Drawn>,
}

#[derive(Debug, Default)]
struct Drawn {
    n_pairs: u64,
    /// The pairs with the smallest hashes, each as its hash, row a, row b and sketch distance.
    kept: BTreeSet<(u64, u32, u32, Option<u16>)>,
}

const SEED: u64 = 1;

/// Joins the distinct texts with each other, and keeps the pairs with the smallest seeded hashes of each distance.
fn sample(batch: &QueryBatch, verifier: Verifier, bits: u32, per_distance: usize) -> Result<(u64, Sample)> {
    let mut seen = HashSet::new();
    let mut first_of_its_text = |row: u32| batch.text_hashes.get(row).is_none_or(|hash| seen.insert(hash));
    let fingerprints: Column<u64> =
        batch.rows().map(|row| batch.fingerprints.get(row).copied().filter(|_| first_of_its_text(row))).collect();
    let mut sample = Sample::default();
    let rows = QueryRows::group(&fingerprints, Arc::clone(&batch.sketches))?;
    let join = HammingJoin::new(verifier.max_distance.into());
    join.rows_within(rows, &verifier, bits, |pair| sample.offer(batch, pair, per_distance))?;
    Ok((fingerprints.n_values(), sample))
}

impl Sample {
    fn offer(&mut self, batch: &QueryBatch, pair: RowPair, per_distance: usize) {
        let drawn = self.strata.entry(pair.distance).or_default();
        drawn.n_pairs += 1;
        let names = [batch.id(pair.a).as_bytes(), batch.id(pair.b).as_bytes()].join(&0);
        drawn.kept.insert((xxh3_64_with_seed(&names, SEED), pair.a, pair.b, pair.sketch_distance));
        if drawn.kept.len() > per_distance {
            drawn.kept.pop_last();
        }
    }

    fn n_pairs(&self, distance: u32) -> u64 {
        let drawn = u8::try_from(distance).ok().and_then(|distance| self.strata.get(&distance));
        drawn.map_or(0, |drawn| drawn.n_pairs)
    }

    fn strata(&self) -> Vec<Stratum> {
        let stratum = |(&distance, drawn): (&u8, &Drawn)| Stratum {
            distance,
            n_pairs: drawn.n_pairs,
            n_sampled: drawn.kept.len() as u64,
        };
        self.strata.iter().map(stratum).collect()
    }

    fn ids(&self, batch: &QueryBatch) -> BTreeMap<u32, String> {
        let rows = self.strata.values().flat_map(|drawn| &drawn.kept).flat_map(|&(_, a, b, _)| [a, b]);
        rows.map(|row| (row, batch.id(row).into_owned())).collect()
    }
}

/// Returns the sampled pairs with excerpts of their texts, in the order of their distances and then of their hashes.
async fn sheet_pairs(
    storage: &Storage,
    request: &SheetRequest,
    sample: &Sample,
    ids: &BTreeMap<u32, String>,
    left_out: FileRows,
) -> Result<Vec<sheet::SheetPair>> {
    let mut documents =
        Documents::open(storage, &request.documents, request.columns.clone(), &InputPolicy::default()).await?;
    documents.leave_out(left_out);
    let texts = documents.texts_of(ids.values().map(String::as_str).collect()).await?;
    let text = |id: &String| {
        let changed = || Fault::try_again(format!("the text of '{}' is gone", id.escape_debug()));
        texts.get(id).and_then(Option::as_deref).ok_or_else(changed)
    };
    let mut pairs = Vec::new();
    for (&distance, drawn) in &sample.strata {
        for (_, a, b, sketch_distance) in &drawn.kept {
            let (id_a, id_b) = (&ids[a], &ids[b]);
            let (text_a, text_b) = excerpts(text(id_a)?, text(id_b)?, EXCERPT_CHARS, CONTEXT_CHARS);
            pairs.push(sheet::SheetPair {
                distance,
                sketch_distance: *sketch_distance,
                n_pairs: drawn.n_pairs,
                id_a: id_a.clone(),
                id_b: id_b.clone(),
                text_a,
                text_b,
            });
        }
    }
    Ok(pairs)
}
