//! Draws the pairs of a night that people look at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{Float64Type, Int32Type};
use futures::TryStreamExt;
use nearprint_explain::excerpts;
use nearprint_fault::{Fault, Result, counted, key, words};
use nearprint_join::{Column, HammingJoin, QueryRows, Verifier};
use nearprint_night::{NightSource, NightTexts, Text};
use nearprint_parquet::schema::{CANONICAL_ID, DOC_ID, DROP, KEEP, LOST_SHARE, REFERENCE};
use nearprint_parquet::{Columns, ParquetFile, value};
use nearprint_pipeline::{FingerprintRequest, Resources, fingerprint_batch, is_near_duplicate};
use nearprint_profile::{Configuration, ProfileConfig};
use nearprint_storage::{InputFile, Progress, Storage, blocking};
use nearprint_tasks::QueryBatch;
use nearprint_tokenize::Resources as AnalyzerResources;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::answers::{Answers, ReviewStratum, ReviewedPair};

/// The night to review.
#[derive(Debug, Clone)]
pub struct ReviewRequest {
    /// The night.
    pub night: NightSource,
    /// The profile of the store.
    pub profile: ProfileConfig,
    /// The contents of the user dictionary and the stop words.
    pub analyzer_resources: AnalyzerResources,
    /// The number of pairs to draw.
    pub n_sample: usize,
    /// The seed of the draw.
    pub seed: u64,
}

/// The pairs that were drawn of a night.
#[derive(Debug)]
pub struct ReviewDraw {
    /// The generation of the night.
    pub generation: String,
    /// Pairs of this generation were drawn before, and none now.
    pub was_drawn: bool,
    /// The pairs, in random order.
    pub pairs: Vec<ReviewedPair>,
    /// The number of drawn pairs of which a text was not found.
    pub n_without_texts: u64,
}

/// The characters of an excerpt.
const EXCERPT_CHARS: usize = 600;
/// The characters of an excerpt before the first difference.
const CONTEXT_CHARS: usize = 120;

/// Draws near-duplicates that the night dropped, by the distance of their fingerprints, and pairs of documents that it kept
/// although their fingerprints are within the profile's distance, by that of their sketches: the pairs on both sides of the
/// limits. Each kind gets an equal number, as far as it has so many. The same night and seed give the same pairs. Nothing is
/// drawn of a generation that `answers` have.
///
/// The memory holds the fingerprints of the night, and the texts that are drawn.
///
/// # Errors
/// The night is not published, the profile is not that of the store, a file that has not changed cannot be read, or the
/// night has more kinds of pairs than are to be drawn: nothing is known of a kind without a pair.
pub async fn draw_review(
    storage: &Storage,
    request: &ReviewRequest,
    answers: &Answers,
    resources: &Resources,
    progress: &Progress,
) -> Result<ReviewDraw> {
    let ReviewRequest { night, profile, analyzer_resources, .. } = request;
    let columns = &night.texts.columns;
    let (nights, own) = night.open(storage).await?;
    nights.refuse_other(&Configuration::new(profile, analyzer_resources, &columns.web.html_text))?;
    let generation = own.generation.clone();
    if answers.has(&night.dt, &generation) {
        return Ok(ReviewDraw { generation, was_drawn: true, pairs: Vec::new(), n_without_texts: 0 });
    }
    progress.start("draw", "files", own.decisions.len() as u64);
    let mut drawn = Drawn { seed: request.seed, most: request.n_sample, kinds: BTreeMap::new() };
    let kept = drawn.add_drops(&own.decisions, progress).await?;
    let texts = NightTexts::new(storage, &night.texts, resources);
    let (documents, _) = texts.documents(&night.dt, &own).await?;
    // The documents are open, so no place is looked at.
    let mut fingerprint = FingerprintRequest::of(&night.store.as_str().into(), columns, profile, analyzer_resources);
    // The rows that the night left out, because another one has their id, are no documents here either.
    (fingerprint.input.max_bad_rows, fingerprint.input.max_bad_files) = (u64::MAX, u64::MAX);
    fingerprint.input.max_doc_bytes = own.max_doc_bytes().unwrap_or(night.texts.max_doc_bytes);
    let batch = fingerprint_batch(&fingerprint, documents, resources, progress).await?.batch;
    let (of, bits) = (profile.clone(), profile.bits);
    let drawn = blocking("draw", move || {
        drawn.add_kept(&batch, &kept, &of, bits)?;
        Ok::<_, Fault>(drawn)
    })
    .await?;
    let strata = drawn.strata();
    refuse_too_few(request, strata.len())?;
    let chosen = drawn.chosen();
    let of_night = |pair: &&Pair| !pair.kind.is_drop;
    let firsts = chosen.iter().map(|(_, pair)| pair.doc_id.as_str());
    let wanted = firsts.chain(chosen.iter().map(|(_, pair)| pair).filter(of_night).map(|pair| pair.other_id.as_str()));
    let wanted: BTreeSet<&str> = wanted.collect();
    let keepers = chosen.iter().map(|(_, pair)| pair.other_id.as_str()).filter(|id| !wanted.contains(id)).collect();
    let found = texts.find(&nights, own, wanted.clone(), keepers, progress).await?;
    let mut pairs = Vec::new();
    for (n_stratum, pair) in &chosen {
        let text_of = |id: &str| found.by_id.get(id);
        let (Some(Text::Found { text, .. }), Some(Text::Found { dt, text: other })) =
            (text_of(&pair.doc_id), text_of(&pair.other_id))
        else {
            continue;
        };
        let (text, other_text) = excerpts(text, other, EXCERPT_CHARS, CONTEXT_CHARS);
        pairs.push(ReviewedPair {
            dt: night.dt.clone(),
            generation: generation.clone(),
            stratum: pair.kind.name(),
            is_drop: pair.kind.is_drop,
            n_stratum: *n_stratum,
            strata: strata.clone(),
            doc_id: pair.doc_id.clone(),
            other_id: pair.other_id.clone(),
            other_dt: dt.clone(),
            distance: pair.distance,
            sketch_distance: pair.sketch_distance,
            lost_share: pair.lost_share,
            text,
            other_text,
            answer: None,
            more: BTreeMap::new(),
        });
    }
    let n_without_texts = (chosen.len() - pairs.len()) as u64;
    Ok(ReviewDraw { generation, was_drawn: false, pairs, n_without_texts })
}

/// Refuses a draw that leaves out a kind of pairs.
fn refuse_too_few(request: &ReviewRequest, n_kinds: usize) -> Result<()> {
    if request.n_sample >= n_kinds {
        return Ok(());
    }
    let has = format!(" {}: {} has {}", request.n_sample, request.night.dt, counted(n_kinds as u64, "kind"));
    Err(Fault::usage(words![key("sample"), has, format!(" of pairs: give at least {n_kinds}")]))
}

/// A kind of pairs: what was decided, and a range of distances, of fingerprints or of sketches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    is_drop: bool,
    first: u32,
    last: Option<u32>,
}

/// The distances of fingerprints at which kinds of dropped documents begin, and those of sketches, above the profile's
/// limit, at which kinds of kept pairs begin.
const DROPS_FROM: [u32; 4] = [0, 4, 8, 13];
const KEPT_FROM_LIMIT: [u32; 3] = [1, 13, 29];

impl Kind {
    /// Returns the kind of a distance among those that begin at these.
    fn of(is_drop: bool, distance: u32, begins: &[u32]) -> Self {
        let at = begins.partition_point(|&begin| begin <= distance).saturating_sub(1);
        Self { is_drop, first: begins[at], last: begins.get(at + 1).map(|next| next - 1) }
    }

    fn name(self) -> String {
        let (what, of) = if self.is_drop { ("dropped", "bits") } else { ("kept", "bits of the sketch") };
        match self.last {
            Some(last) => format!("{what}, {} to {last} {of}", self.first),
            None => format!("{what}, {} and more {of}", self.first),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Pair {
    kind: Kind,
    doc_id: String,
    other_id: String,
    distance: Option<u32>,
    sketch_distance: Option<u16>,
    lost_share: Option<f64>,
}

/// The pairs of each kind with the smallest hashes of their ids.
#[derive(Debug)]
struct Drawn {
    seed: u64,
    most: usize,
    kinds: BTreeMap<Kind, (u64, BTreeMap<u64, Pair>)>,
}

impl Drawn {
    fn offer(&mut self, pair: Pair) {
        let names = [pair.doc_id.as_bytes(), pair.other_id.as_bytes()].join(&0);
        let (n, kept) = self.kinds.entry(pair.kind).or_default();
        *n += 1;
        kept.insert(xxh3_64_with_seed(&names, self.seed), pair);
        if kept.len() > self.most {
            kept.pop_last();
        }
    }

    /// Offers the near-duplicates that the night dropped for documents of the store, and returns the ids of the documents
    /// that it kept.
    async fn add_drops(&mut self, decisions: &[InputFile], progress: &Progress) -> Result<BTreeSet<String>> {
        let mut kept_ids = BTreeSet::new();
        for file in decisions {
            let parquet = ParquetFile::open(file.clone()).await?;
            let wanted = [DOC_ID, "decision", CANONICAL_ID, "distance", "reason", LOST_SHARE, REFERENCE];
            let mut batches = parquet.stream(parquet.whole(&wanted))?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                let (ids, decisions) = (columns.strings(DOC_ID)?, columns.strings("decision")?);
                let (canonical, reasons) = (columns.strings(CANONICAL_ID)?, columns.strings("reason")?);
                let distances = columns.primitive::<Int32Type>("distance")?;
                let (lost, references) = (columns.primitive::<Float64Type>(LOST_SHARE)?, columns.strings(REFERENCE)?);
                for row in 0..batch.num_rows() {
                    if decisions.value(row) == KEEP {
                        kept_ids.insert(ids.value(row).to_owned());
                    }
                    // Texts of reference stores are not read, and forgotten documents have none.
                    let is_near = is_near_duplicate(reasons.value(row)) && decisions.value(row) == DROP;
                    if !is_near || references.is_valid(row) || canonical.is_null(row) || distances.is_null(row) {
                        continue;
                    }
                    let distance = distances.value(row).unsigned_abs();
                    self.offer(Pair {
                        kind: Kind::of(true, distance, &DROPS_FROM),
                        doc_id: ids.value(row).to_owned(),
                        other_id: canonical.value(row).to_owned(),
                        distance: Some(distance),
                        sketch_distance: None,
                        lost_share: value(lost, row),
                    });
                }
            }
            progress.advance(1);
        }
        Ok(kept_ids)
    }

    /// Offers pairs of kept documents whose fingerprints are within the profile's distance: each document with the one whose
    /// sketch is nearest. A family of kept documents then counts about as often as it has documents that could go, as
    /// dropped documents do, and not as often as it has pairs.
    fn add_kept(
        &mut self,
        batch: &QueryBatch,
        kept: &BTreeSet<String>,
        profile: &ProfileConfig,
        bits: u32,
    ) -> Result<()> {
        let limits = profile.join.verifier(bits)?;
        let limit = limits.max_sketch_distance.map_or(0, u32::from);
        let begins: Vec<u32> = [0].into_iter().chain(KEPT_FROM_LIMIT.map(|from| limit + from)).collect();
        let verifier = Verifier { max_sketch_distance: profile.sketch.is_some().then_some(u16::MAX), ..limits };
        let is_kept = |row: u32| kept.contains(&*batch.id(row));
        let fingerprints: Column<u64> =
            batch.rows().map(|row| batch.fingerprints.get(row).copied().filter(|_| is_kept(row))).collect();
        let rows = QueryRows::group(&fingerprints, Arc::clone(&batch.sketches))?;
        let join = HammingJoin::new(verifier.max_distance.into());
        let mut nearest: BTreeMap<u32, (u32, u32, u32)> = BTreeMap::new();
        join.rows_within(rows, &verifier, bits, |pair| {
            let distances = (pair.sketch_distance.map_or(0, u32::from), u32::from(pair.distance));
            for (row, other) in [(pair.a, pair.b), (pair.b, pair.a)] {
                let found = (distances.0, distances.1, other);
                nearest.entry(row).and_modify(|known| *known = found.min(*known)).or_insert(found);
            }
        })?;
        // Two documents that are nearest to each other are one pair.
        let pairs: BTreeSet<(u32, u32, u32, u32)> = nearest
            .into_iter()
            .map(|(row, (sketch, distance, other))| (row.min(other), row.max(other), sketch, distance))
            .collect();
        for (a, b, sketch, distance) in pairs {
            let [a, b] = [a, b].map(|row| batch.id(row).into_owned());
            let (doc_id, other_id) = if a < b { (a, b) } else { (b, a) };
            self.offer(Pair {
                kind: Kind::of(false, sketch, &begins),
                doc_id,
                other_id,
                distance: Some(distance),
                sketch_distance: profile.sketch.is_some().then(|| u16::try_from(sketch).ok()).flatten(),
                lost_share: None,
            });
        }
        Ok(())
    }

    fn strata(&self) -> Vec<ReviewStratum> {
        let kinds = self.kinds.iter();
        kinds.map(|(kind, (n, _))| ReviewStratum { name: kind.name(), is_drop: kind.is_drop, n_pairs: *n }).collect()
    }

    /// Returns pairs of all kinds, as many of each as there are and as fit, in the order of their hashes; each with the number
    /// of pairs of its kind.
    fn chosen(self) -> Vec<(u64, Pair)> {
        let mut left = self.most;
        let mut kinds: Vec<_> = self.kinds.into_values().collect();
        // A kind with few pairs leaves its share to those with more.
        kinds.sort_by_key(|(_, pairs)| pairs.len());
        let n_kinds = kinds.len();
        let mut chosen = BTreeMap::new();
        for (at, (n, pairs)) in kinds.into_iter().enumerate() {
            let share = left / (n_kinds - at);
            let taken = pairs.into_iter().take(share);
            let before = chosen.len();
            chosen.extend(taken.map(|(hash, pair)| ((hash, pair.kind), (n, pair))));
            left -= chosen.len() - before;
        }
        chosen.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{DROPS_FROM, Drawn, Kind, Pair};

    fn pair(is_drop: bool, distance: u32, id: usize) -> Pair {
        Pair {
            kind: Kind::of(is_drop, distance, &DROPS_FROM),
            doc_id: format!("a{id}"),
            other_id: format!("b{id}"),
            distance: Some(distance),
            sketch_distance: None,
            lost_share: None,
        }
    }

    #[test]
    fn each_kind_of_pairs_gets_an_equal_number_as_far_as_it_has_so_many() {
        let mut drawn = Drawn { seed: 1, most: 30, kinds: std::collections::BTreeMap::new() };
        (0..100).for_each(|id| drawn.offer(pair(true, 2, id)));
        (0..3).for_each(|id| drawn.offer(pair(true, 5, id)));
        (0..50).for_each(|id| drawn.offer(pair(false, 9, id)));
        let chosen = drawn.chosen();
        assert_eq!(chosen.len(), 30);
        let of = |wanted: u64| chosen.iter().filter(|(n, _)| *n == wanted).count();
        assert_eq!((of(3), of(50) + of(100)), (3, 27));
        assert!(of(50).abs_diff(of(100)) <= 1);
        assert_eq!(Kind::of(true, 5, &DROPS_FROM).name(), "dropped, 4 to 7 bits");
        assert_eq!(Kind::of(true, 64, &DROPS_FROM).name(), "dropped, 13 and more bits");
    }
}
