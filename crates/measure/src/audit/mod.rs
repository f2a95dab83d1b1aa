//! Measures what a published night lost: it reads the texts of sampled dropped documents, and of those that stay in
//! their place, and compares them exactly.

mod losses;

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::Float64Type;
use futures::TryStreamExt;
use nearprint_fault::Result;
use nearprint_night::{NightSource, NightTexts, Text, Texts};
use nearprint_parquet::schema::{DROP, LOST_SHARE, REFERENCE};
use nearprint_parquet::{Columns, ParquetFile, value};
use nearprint_pipeline::{Resources, STUB, is_near_duplicate};
use nearprint_profile::{Configuration, ProfileConfig, TextFingerprinter};
use nearprint_storage::{InputFile, Progress, Storage, blocking};
use nearprint_tokenize::Resources as AnalyzerResources;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

pub use losses::{EstimateError, LARGE_LOSS, Losses, LostShares, MeasuredDrop, wilson};

use crate::random::Random;
use crate::resemblance::{ShingleSet, Shingler};
use nearprint_explain::excerpts;

/// The night to audit.
#[derive(Debug, Clone)]
pub struct AuditRequest {
    /// The night.
    pub night: NightSource,
    /// The profile of the store.
    pub profile: ProfileConfig,
    /// The contents of the user dictionary and the stop words.
    pub analyzer_resources: AnalyzerResources,
    /// The number of dropped documents to draw. If the night dropped no more, all of them are audited.
    pub n_sample: usize,
    /// The seed of the draw.
    pub seed: u64,
    /// The number of documents to show.
    pub n_examples: usize,
}

/// The losses of a night.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Audit {
    /// The night.
    pub dt: String,
    /// The generation whose decisions were audited.
    pub generation: String,
    /// The seed of the draw.
    pub seed: u64,
    /// The number of documents that the night dropped.
    pub n_drops: u64,
    /// The number of these that were drawn, all with the same probability.
    pub n_sampled: u64,
    /// The drawn documents whose texts could not be compared, by the reason. Each counts once: a keeper
    /// that cannot be read before its own text, and that before its keeper's.
    pub unmeasured: Unmeasured,
    /// The losses of the measured documents. Exact copies are among them, and lose nothing.
    pub all: Losses,
    /// The losses of the near-duplicates among them.
    pub near: Losses,
    /// The error of the lost shares that the night published, for the near-duplicates.
    pub estimate: EstimateError,
    /// The measured documents that lose most of their word 3-grams.
    pub worst: Vec<AuditedDrop>,
}

impl Audit {
    /// Returns whether documents were drawn and none of them could be measured.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.n_sampled > 0 && self.all.n == 0
    }
}

/// Drawn documents that were not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unmeasured {
    /// The document's text was not found.
    pub n_not_found: u64,
    /// The document's text was not found in the files that are as the run read them, and others have changed since.
    pub n_changed: u64,
    /// The keeper's text was not found.
    pub n_keeper_not_found: u64,
    /// The keeper's text was not found in the files that are as the run of its night read them, and others have changed
    /// since, or a night was replaced or dropped.
    pub n_keeper_changed: u64,
    /// The keeper is a document of a reference store, whose texts are not read.
    pub n_keeper_in_reference: u64,
    /// The keeper was forgotten.
    pub n_keeper_forgotten: u64,
}

impl Unmeasured {
    /// Returns the number of documents.
    #[must_use]
    pub fn total(&self) -> u64 {
        let of_keepers = self.n_keeper_not_found + self.n_keeper_changed;
        self.n_not_found + self.n_changed + of_keepers + self.n_keeper_in_reference + self.n_keeper_forgotten
    }
}

/// A dropped document that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AuditedDrop {
    /// The dropped document.
    pub doc_id: String,
    /// The document that stays in its place: its keeper.
    pub canonical_id: String,
    /// The night of the keeper.
    pub canonical_dt: String,
    /// `exact`, `near` or `contained`.
    pub reason: String,
    /// The lost share that the night published, an estimate. `None` means that it has none.
    pub estimated_lost_share: Option<f64>,
    /// The share of the document's distinct features of the sketch that the keeper lacks.
    pub lost_share: Option<f64>,
    /// The share of the document's distinct word 3-grams that the keeper lacks.
    pub lost_words: f64,
    /// The characters of the document's normalised text.
    pub length: u64,
    /// The characters of the keeper's normalised text.
    pub canonical_length: u64,
    /// Excerpts of the two texts around their first difference, or from their beginning.
    pub excerpts: (String, String),
    /// The number of other drawn documents with these two texts. They are not listed themselves.
    pub n_same_texts: u64,
}

/// The characters of an excerpt.
const EXCERPT_CHARS: usize = 90;
/// The characters of an excerpt before the first difference.
const CONTEXT_CHARS: usize = 30;

/// Draws dropped documents of a published night, reads their texts and those of their keepers again, and measures what
/// was lost. The texts come from the files that the manifests of the nights name, and only from those that have not
/// changed since.
///
/// The memory holds the drawn texts and their keepers', and not those of the night. It reads the decisions of the night,
/// and of earlier nights from the newest to the oldest until all keepers are found, and all documents of the nights
/// that have drawn texts.
///
/// # Errors
/// The night is not published, the profile is not that of the store, or a file that has not changed cannot be read.
pub async fn audit(
    storage: &Storage,
    request: &AuditRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<Audit> {
    let AuditRequest { night, profile, analyzer_resources, .. } = request;
    let fingerprinter = TextFingerprinter::try_new(profile.clone(), analyzer_resources)?;
    let (nights, own) = night.open(storage).await?;
    nights.refuse_other(&Configuration::new(profile, analyzer_resources, &night.texts.columns.web.html_text))?;
    let generation = own.generation.clone();
    progress.start("draw", "files", own.decisions.len() as u64);
    let (n_drops, drops) = draw(&own.decisions, request, progress).await?;
    let reader = NightTexts::new(storage, &night.texts, resources);
    let keepers = drops.iter().filter_map(|drop| drop.keeper.own()).collect();
    let wanted = drops.iter().map(|drop| drop.doc_id.as_str()).collect();
    let texts = reader.find(&nights, own, wanted, keepers, progress).await?;
    let (pairs, unmeasured) = pairs(&drops, texts);
    let (n_sampled, n_examples) = (drops.len() as u64, request.n_examples);
    let measured = blocking("audit", move || measure(&fingerprinter, pairs, n_examples)).await?;
    let all: Vec<MeasuredDrop> = measured.drops.iter().map(|(_, drop)| *drop).collect();
    let near = measured.drops.iter().filter(|(is_near, _)| *is_near).map(|(_, drop)| *drop);
    let near: Vec<MeasuredDrop> = near.collect();
    Ok(Audit {
        dt: night.dt.clone(),
        generation,
        seed: request.seed,
        n_drops,
        n_sampled,
        unmeasured,
        all: Losses::of(&all),
        near: Losses::of(&near),
        estimate: EstimateError::of(&near),
        worst: measured.worst,
    })
}

/// The document that stays in the place of a dropped one.
#[derive(Debug, Clone)]
enum Keeper {
    /// A document of this night or an earlier one.
    Own(String),
    InReference,
    Forgotten,
}

impl Keeper {
    /// Returns the id of a document whose text may be read.
    fn own(&self) -> Option<&str> {
        match self {
            Self::Own(id) => Some(id),
            Self::InReference | Self::Forgotten => None,
        }
    }
}

/// A dropped document as its night published it.
#[derive(Debug, Clone)]
struct Dropped {
    doc_id: String,
    keeper: Keeper,
    reason: String,
    lost_share: Option<f64>,
}

/// Draws dropped documents, all with the same probability (Vitter, "Random Sampling with a Reservoir", 1985, algorithm
/// R). Returns the number of all of them, and those that were drawn, by id. Decisions have one order, so the draw
/// depends on the seed and the decisions alone.
async fn draw(decisions: &[InputFile], request: &AuditRequest, progress: &Progress) -> Result<(u64, Vec<Dropped>)> {
    let mut random = Random::new(request.seed);
    let (mut n_drops, mut drawn) = (0, Vec::new());
    for file in decisions {
        let parquet = ParquetFile::open(file.clone()).await?;
        let wanted = ["doc_id", "decision", "canonical_id", "reason", LOST_SHARE, REFERENCE];
        let mut batches = parquet.stream(parquet.whole(&wanted))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (ids, decisions) = (columns.strings("doc_id")?, columns.strings("decision")?);
            let (canonical, reasons) = (columns.strings("canonical_id")?, columns.strings("reason")?);
            let (lost, references) = (columns.primitive::<Float64Type>(LOST_SHARE)?, columns.strings(REFERENCE)?);
            let keeper = |row| match () {
                () if references.is_valid(row) => Keeper::InReference,
                () if canonical.is_null(row) => Keeper::Forgotten,
                () => Keeper::Own(canonical.value(row).to_owned()),
            };
            // What a stub said is no text of its page.
            let is_dropped = |row: &usize| decisions.value(*row) == DROP && reasons.value(*row) != STUB;
            for row in (0..batch.num_rows()).filter(is_dropped) {
                n_drops += 1;
                let place = if drawn.len() < request.n_sample { drawn.len() } else { random.below(n_drops) };
                if place >= request.n_sample {
                    continue;
                }
                let drop = Dropped {
                    doc_id: ids.value(row).to_owned(),
                    keeper: keeper(row),
                    reason: reasons.value(row).to_owned(),
                    lost_share: value(lost, row),
                };
                match drawn.get_mut(place) {
                    Some(other) => *other = drop,
                    None => drawn.push(drop),
                }
            }
        }
        progress.advance(1);
    }
    drawn.sort_by(|a: &Dropped, b| a.doc_id.cmp(&b.doc_id));
    Ok((n_drops as u64, drawn))
}

/// A dropped document and its keeper, with their texts.
struct Pair {
    drop: Dropped,
    text: Arc<str>,
    keeper_id: String,
    keeper_dt: String,
    keeper: Arc<str>,
}

/// Joins the drawn documents with the texts, and counts those of which a text is missing.
fn pairs(drops: &[Dropped], texts: Texts) -> (Vec<Pair>, Unmeasured) {
    let (mut pairs, mut unmeasured) = (Vec::new(), Unmeasured::default());
    let unknown = if texts.nights_are_gone { Text::Changed } else { Text::NotFound };
    for drop in drops {
        let text_of = |id: &str| texts.by_id.get(id).unwrap_or(&unknown);
        let keeper_id = match &drop.keeper {
            Keeper::Own(id) => id,
            Keeper::InReference => {
                unmeasured.n_keeper_in_reference += 1;
                continue;
            }
            Keeper::Forgotten => {
                unmeasured.n_keeper_forgotten += 1;
                continue;
            }
        };
        match (text_of(&drop.doc_id), text_of(keeper_id)) {
            (Text::Found { text, .. }, Text::Found { dt, text: keeper }) => pairs.push(Pair {
                drop: drop.clone(),
                text: Arc::clone(text),
                keeper_id: keeper_id.clone(),
                keeper_dt: dt.clone(),
                keeper: Arc::clone(keeper),
            }),
            (Text::NotFound, _) => unmeasured.n_not_found += 1,
            (Text::Changed, _) => unmeasured.n_changed += 1,
            (_, Text::NotFound) => unmeasured.n_keeper_not_found += 1,
            (_, Text::Changed) => unmeasured.n_keeper_changed += 1,
        }
    }
    (pairs, unmeasured)
}

/// The measured documents.
struct MeasuredDrops {
    /// For each: whether it is a near-duplicate, and what it lost.
    drops: Vec<(bool, MeasuredDrop)>,
    worst: Vec<AuditedDrop>,
}

fn measure(fingerprinter: &TextFingerprinter, pairs: Vec<Pair>, n_examples: usize) -> Result<MeasuredDrops> {
    let shingler = Shingler::try_new()?;
    let drops: Vec<MeasuredDrop> = pairs.par_iter().map(|pair| pair.measured(fingerprinter, &shingler)).collect();
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    // The pairs are in order of ids, and the sort is stable.
    order.sort_by(|&a, &b| drops[b].words.total_cmp(&drops[a].words));
    let mut worst: Vec<(usize, AuditedDrop)> = Vec::new();
    for at in order {
        let listed = worst.iter().position(|(other, _)| pairs[*other].has_texts_of(&pairs[at]));
        match listed {
            Some(same) => worst[same].1.n_same_texts += 1,
            None if worst.len() < n_examples => worst.push((at, pairs[at].audited(&drops[at]))),
            None => {}
        }
    }
    let worst = worst.into_iter().map(|(_, listed)| listed).collect();
    let is_near = pairs.iter().map(|pair| is_near_duplicate(&pair.drop.reason));
    Ok(MeasuredDrops { drops: is_near.zip(drops).collect(), worst })
}

impl Pair {
    fn has_texts_of(&self, other: &Self) -> bool {
        self.text == other.text && self.keeper == other.keeper
    }

    fn measured(&self, fingerprinter: &TextFingerprinter, shingler: &Shingler) -> MeasuredDrop {
        let features = |text: &str| fingerprinter.sketch_features(text).map(ShingleSet::new);
        let features = features(&self.text).zip(features(&self.keeper));
        MeasuredDrop {
            words: lost_share(&shingler.shingles(&self.text), &shingler.shingles(&self.keeper)),
            features: features.map(|(own, keepers)| lost_share(&own, &keepers)),
            estimated: self.drop.lost_share,
            length: fingerprinter.fingerprint(&self.text).length,
            keeper_length: fingerprinter.fingerprint(&self.keeper).length,
        }
    }

    fn audited(&self, measured: &MeasuredDrop) -> AuditedDrop {
        AuditedDrop {
            doc_id: self.drop.doc_id.clone(),
            canonical_id: self.keeper_id.clone(),
            canonical_dt: self.keeper_dt.clone(),
            reason: self.drop.reason.clone(),
            estimated_lost_share: measured.estimated,
            lost_share: measured.features,
            lost_words: measured.words,
            length: measured.length,
            canonical_length: measured.keeper_length,
            excerpts: excerpts(&self.text, &self.keeper, EXCERPT_CHARS, CONTEXT_CHARS),
            n_same_texts: 0,
        }
    }
}

/// Returns the share of a document's elements that its keeper lacks. A document without elements loses nothing.
#[allow(clippy::cast_precision_loss, reason = "a ratio of counts")]
fn lost_share(own: &ShingleSet, keepers: &ShingleSet) -> f64 {
    let n_lost = own.len() as u64 - own.resemblance(keepers).n_shared;
    if own.is_empty() { 0.0 } else { n_lost as f64 / own.len() as f64 }
}
