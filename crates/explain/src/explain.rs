//! Shows why a profile takes two texts for near-duplicates, or does not.

use std::collections::BTreeSet;

use nearprint_documents::{DocumentColumns, DocumentPlace, Documents, InputPolicy, Repeats};
use nearprint_fault::{ErrorKind, Fault, Result, key, words};
use nearprint_fingerprint::{Alike, Judge, JudgeConfig, Sketch, TextWords};
use nearprint_join::{Key, Nearness};
use nearprint_profile::{EarlierConfig, Outcome, ProfileConfig, TextFingerprinter};
use nearprint_storage::Storage;
use nearprint_tokenize::Resources as AnalyzerResources;
use schemars::JsonSchema;
use serde::Serialize;

use crate::diff::{self, DiffPiece};
use crate::features::{self, DifferingBit, FeatureTable};
use crate::text::{ExplainedText, Named, Taken, distance, sketch_distance};

/// The texts to compare, and the profile.
#[derive(Debug, Clone)]
pub struct ExplainRequest {
    /// Two or more texts.
    pub texts: ExplainTexts,
    /// The profile.
    pub profile: ProfileConfig,
    /// The contents of the user dictionary and the stop words.
    pub analyzer_resources: AnalyzerResources,
}

/// The source of the texts.
#[derive(Debug, Clone)]
pub enum ExplainTexts {
    /// The texts are those of documents with given ids.
    Documents {
        /// The place of the documents.
        documents: DocumentPlace,
        /// The columns of the documents.
        columns: Box<DocumentColumns>,
        /// The rule for rows with one id.
        repeats: Repeats,
        /// The ids of the documents.
        ids: Vec<String>,
    },
    /// The texts are given directly, each with its name.
    Given(Vec<(String, String)>),
}

/// Summary of the `explain` command.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// The number of bits of a fingerprint.
    pub bits: u32,
    /// The profile's largest Hamming distance.
    pub max_distance: u32,
    /// The profile's largest sketch distance. `None` means that sketches are not verified.
    pub max_sketch_distance: Option<u16>,
    /// The texts.
    pub texts: Vec<ExplainedText>,
    /// The Hamming distance of every two texts, or `None` if one of them has no fingerprint.
    pub distances: Vec<Vec<Option<u32>>>,
    /// The sketch distance of every two texts. The list is empty if the profile makes no sketches.
    pub sketch_distances: Vec<Vec<Option<u32>>>,
    /// The comparison of the two texts. `None` means that there are more than two.
    pub pair: Option<ExplainedPair>,
}

/// The comparison of two texts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExplainedPair {
    /// True if the profile takes the texts for a pair when one night has both.
    pub is_pair: bool,
    /// True if it does when they are of different nights.
    pub is_pair_across_nights: bool,
    /// The reasons why it does, or does not.
    pub reasons: Vec<String>,
    /// True if the normalised texts are equal.
    pub same_text: bool,
    /// The Hamming distance.
    pub distance: Option<u32>,
    /// The similarity in percent: 100 · (1 - distance / bits).
    pub similarity_percent: Option<f64>,
    /// The distance of the sketches.
    pub sketch_distance: Option<u32>,
    /// What the judge measures of the texts. `None` means that the profile has no judge, or that a text has no fingerprint.
    pub judge: Option<ExplainedJudge>,
    /// The features of both texts, in descending order of weight.
    pub features: FeatureTable,
    /// The bits that differ.
    pub differing_bits: Vec<DifferingBit>,
    /// The differences between the normalised texts, with some text around them.
    pub diff: Vec<Vec<DiffPiece>>,
    /// True if the texts were too long to compare word by word. The diff is then by whole sentences.
    pub diff_of_sentences: bool,
}

/// What the judge measures of two texts, whether or not the sketches leave the two to it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExplainedJudge {
    /// True if the sketches leave the two texts to the judge.
    pub decides: bool,
    /// Twice the number of words that both texts have in one order, divided by the number of words of both. `None` means that
    /// the texts are too long for it.
    pub edit_similarity: Option<f64>,
    /// The share of the runs of three words, of the text that has fewer, that the other text has.
    pub contained: f64,
    /// The share of the shorter text that is the beginning of both, word by word.
    pub opening: f64,
    /// The share of each text's features that the other one lacks.
    pub lost_shares: [f64; 2],
    /// Why the texts are alike. `None` means that they are not.
    pub alike: Option<Alike>,
}

/// The characters of shared text on either side of a difference.
const CONTEXT_CHARS: usize = 40;

/// Explains why texts are near-duplicates to a profile, or are not.
///
/// ```
/// use nearprint_storage::Storage;
/// use nearprint_explain::{ExplainRequest, ExplainTexts, explain};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let old = "Near-duplicate pages differ in a date, a counter or an advertisement, and in no more.";
/// let new = old.replace("date", "year");
/// let request = ExplainRequest {
///     texts: ExplainTexts::Given(vec![("old".to_owned(), old.to_owned()), ("new".to_owned(), new)]),
///     profile: nearprint_profile::by_name("default")?,
///     analyzer_resources: nearprint_tokenize::Resources::default(),
/// };
/// let pair = explain(&Storage::default(), &request).await?.pair.ok_or("two texts are a pair")?;
/// assert_eq!((pair.same_text, pair.features.shared.len()), (false, 13));
/// assert_eq!((pair.features.only_a[0].feature.as_str(), pair.features.only_b[0].feature.as_str()), ("date", "year"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The input is bad, no document has one of the ids, or there are fewer than two texts.
pub async fn explain(storage: &Storage, request: &ExplainRequest) -> Result<Explanation> {
    let fingerprinter = TextFingerprinter::try_new(request.profile.clone(), &request.analyzer_resources)?;
    let texts = texts(storage, &request.texts, &fingerprinter).await?;
    if texts.len() < 2 {
        return Err(Fault::usage("give two texts or more to compare"));
    }
    let texts: Vec<Taken> = texts.into_iter().map(|text| Taken::of(text, &fingerprinter)).collect();
    explanation(&request.profile, &texts)
}

async fn texts(storage: &Storage, wanted: &ExplainTexts, fingerprinter: &TextFingerprinter) -> Result<Vec<Named>> {
    let (place, columns, repeats, ids) = match wanted {
        ExplainTexts::Given(texts) => {
            let named =
                |(name, text): &(String, String)| Named { id: name.clone(), file: None, text: Some(text.clone()) };
            return Ok(texts.iter().map(named).collect());
        }
        ExplainTexts::Documents { documents, columns, repeats, ids } => (documents, columns, repeats, ids),
    };
    let documents = Documents::open(storage, place, columns.as_ref().clone(), &InputPolicy::default()).await?;
    let wanted = ids.iter().map(String::as_str).collect::<BTreeSet<_>>();
    let length_of = |text: &str| fingerprinter.fingerprint(text).length;
    let found = documents.newest_texts_of(wanted, repeats, &length_of).await?;
    let text = |id: &String| match found.get(id) {
        Some(found) => Ok(Named { id: id.clone(), file: Some(found.file.clone()), text: found.text.clone() }),
        None => Err(no_such_document(id, place.name())),
    };
    ids.iter().map(text).collect()
}

fn no_such_document(id: &str, documents: &str) -> Fault {
    let reason = format!("no document '{}' in {documents}", id.escape_debug());
    Fault::new(ErrorKind::InputMissing, reason).remedy(words!["check the id, and ", key("id_column")])
}

fn explanation(profile: &ProfileConfig, texts: &[Taken]) -> Result<Explanation> {
    let matrix = |of: fn(&Taken, &Taken) -> Option<u32>| -> Vec<Vec<Option<u32>>> {
        texts.iter().map(|a| texts.iter().map(|b| of(a, b)).collect()).collect()
    };
    let verifier = profile.join.verifier(profile.bits)?;
    Ok(Explanation {
        bits: profile.bits,
        max_distance: verifier.max_distance.into(),
        max_sketch_distance: verifier.max_sketch_distance,
        texts: texts.iter().map(|t| t.explained(profile)).collect(),
        distances: matrix(distance),
        sketch_distances: if profile.sketch.is_some() { matrix(sketch_distance) } else { Vec::new() },
        pair: match texts {
            [a, b] => Some(pair(profile, a, b)?),
            _ => None,
        },
    })
}

fn pair(profile: &ProfileConfig, a: &Taken, b: &Taken) -> Result<ExplainedPair> {
    let features = features::union(a.features(), b.features(), profile);
    let distance = distance(a, b);
    let Verdict { is_pair, is_pair_across_nights, reasons, judge } = verdict(profile, a, b)?;
    let bits = a.fingerprint().zip(b.fingerprint());
    let diff = diff::diff(a.normalized(), b.normalized());
    Ok(ExplainedPair {
        is_pair,
        is_pair_across_nights,
        reasons,
        same_text: a.normalized() == b.normalized(),
        distance,
        similarity_percent: distance.map(|d| 100.0 * (1.0 - f64::from(d) / f64::from(profile.bits))),
        sketch_distance: sketch_distance(a, b),
        judge,
        features: features::table(&features),
        differing_bits: bits.map_or(Vec::new(), |(a, b)| features::differing_bits(&features, a, b)),
        diff: diff::segments(&diff.pieces, CONTEXT_CHARS),
        diff_of_sentences: diff.of_sentences,
    })
}

/// Whether two texts are a pair, the reasons, and what the judge says.
struct Verdict {
    is_pair: bool,
    is_pair_across_nights: bool,
    reasons: Vec<String>,
    judge: Option<ExplainedJudge>,
}

fn verdict(profile: &ProfileConfig, a: &Taken, b: &Taken) -> Result<Verdict> {
    let verifier = profile.join.verifier(profile.bits)?;
    let Some(distance) = distance(a, b) else {
        let (same, reasons) = verdict_without_fingerprints(a, b);
        return Ok(Verdict { is_pair: same, is_pair_across_nights: same, reasons, judge: None });
    };
    let judge = profile.judge();
    let with_texts = profile.verifier_with_texts()?;
    let nearness = u8::try_from(distance).map_or(Nearness::Far, |d| with_texts.nearness(d, a.sketch(), b.sketch()));
    let decides = matches!(nearness, Nearness::Undecided(_));
    let judged = judge.zip(a.words.as_ref().zip(b.words.as_ref()));
    let judged = judged.map(|(judge, (a, b))| (judge.config, judged_by(judge, a, b, decides)));
    let said = |name: &str, d: u32, limit: u32| {
        let side = if d <= limit { "within" } else { "above" };
        format!("{name} {d} is {side} the profile's {limit}")
    };
    let mut reasons = vec![said("distance", distance, verifier.max_distance.into())];
    if let (Some(d), Some(limit)) = (sketch_distance(a, b), verifier.max_sketch_distance) {
        reasons.push(said("sketch distance", d, limit.into()));
    }
    if let Some(earlier) = profile.join.earlier {
        reasons.push(of_different_nights(profile, earlier, distance, (a.sketch(), b.sketch()))?);
    }
    let of_earlier = profile.join.verifier_of_earlier(profile.bits)?;
    let across = u8::try_from(distance).map_or(Nearness::Far, |d| of_earlier.nearness(d, a.sketch(), b.sketch()));
    let is_pair = match (nearness, &judged) {
        (Nearness::Near(_), _) => true,
        (Nearness::Undecided(_), Some((config, judge))) => {
            reasons.extend(judged_reasons(config, judge));
            judge.alike.is_some()
        }
        (Nearness::Undecided(_) | Nearness::Far, _) => false,
    };
    let is_pair_across_nights = matches!(across, Nearness::Near(_));
    Ok(Verdict { is_pair, is_pair_across_nights, reasons, judge: judged.map(|(_, judge)| judge) })
}

/// Says whether the two texts would be compared as documents of different nights, and by what.
fn of_different_nights(
    profile: &ProfileConfig,
    earlier: EarlierConfig,
    distance: u32,
    (a, b): (Option<&Sketch>, Option<&Sketch>),
) -> Result<String> {
    let verifier = profile.join.verifier_of_earlier(profile.bits)?;
    let key = u8::try_from(distance).ok().and_then(|distance| verifier.first_key(distance, a, b));
    let of_words = |word: u8| Some((a?.word(word) ^ b?.word(word)).count_ones());
    let found = match key {
        Some(Key::Fingerprint) => format!("by their distance, within {}", earlier.max_distance),
        Some(Key::Word(word)) => {
            let bits = of_words(word).unwrap_or(earlier.max_word_distance);
            format!("by word {word} of their sketches, where {bits} bits differ, within {}", earlier.max_word_distance)
        }
        None => {
            let bits: Vec<String> = (0..verifier.words.n).filter_map(of_words).map(|bits| bits.to_string()).collect();
            let words = match bits.as_slice() {
                [] => String::new(),
                bits => format!(", and the first words of their sketches differ in {} bits", bits.join(" and ")),
            };
            return Ok(format!(
                "of different nights, they are not compared: the distance is above {}{words}",
                earlier.max_distance
            ));
        }
    };
    Ok(format!("of different nights, they are compared {found}"))
}

fn judged_by(judge: Judge, a: &TextWords, b: &TextWords, decides: bool) -> ExplainedJudge {
    let measures = judge.measures(a, b);
    ExplainedJudge {
        decides,
        edit_similarity: measures.edit_similarity(),
        contained: measures.contained(),
        opening: measures.opening(),
        lost_shares: measures.lost_shares(),
        alike: measures.alike(&judge.config),
    }
}

/// Returns what the judge says to two texts that sketches leave to it.
fn judged_reasons(config: &JudgeConfig, judge: &ExplainedJudge) -> Vec<String> {
    let said = |name: &str, share: f64, limit: f64| {
        let side = if share >= limit { "at least" } else { "below" };
        format!("{name} {share:.3} is {side} the judge's {limit}")
    };
    let edited = match judge.edit_similarity {
        Some(similarity) => said("edit similarity", similarity, config.min_edit_similarity),
        None => "the texts are too long for an edit similarity".to_owned(),
    };
    let JudgeConfig { min_sketch_distance: near, max_sketch_distance: far, .. } = config;
    let within = format!("above {near} and within {far} bits the judge reads texts of one night");
    let others = [
        said("contained share", judge.contained, config.min_contained),
        said("common beginning", judge.opening, config.min_opening),
    ];
    [within, edited].into_iter().chain(others).collect()
}

/// Returns the verdict on two texts of which at least one has no fingerprint. Texts that are too short are compared as
/// a whole.
fn verdict_without_fingerprints(a: &Taken, b: &Taken) -> (bool, Vec<String>) {
    let hash = |t: &Taken| match t.outcome() {
        Some(Outcome::TooShort { text_hash }) => Some(*text_hash),
        _ => None,
    };
    let missing = [a, b].into_iter().filter(|t| t.fingerprint().is_none());
    let mut reasons: Vec<String> = missing.map(|t| format!("'{}' has no fingerprint", t.id)).collect();
    let same = hash(a).is_some() && hash(a) == hash(b);
    let compared = if same {
        "the normalised texts are equal"
    } else {
        "texts without one are pairs only where they are too short and equal"
    };
    reasons.push(compared.to_owned());
    (same, reasons)
}
