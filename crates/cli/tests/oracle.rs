//! Random nights against the definitions, document by document: existing documents, pairs, the forest, decisions, clusters.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use nearprint_fingerprint::{Alike, Judge, Measures, Sketch, TextWords, hamming_distance};
use nearprint_join::{UnionFind, lost_share};
use nearprint_profile as profile;
use nearprint_profile::{Outcome, TextFingerprinter};

use crate::support::{Night, text};

/// The default profile's: of two documents of one night, and of sketches.
const MAX_DISTANCE: u32 = 12;
const MAX_SKETCH_DISTANCE: u32 = 36;
/// The default profile's for documents of earlier nights: of fingerprints, and of the words that are keys too.
const MAX_EARLIER_DISTANCE: u32 = 8;
const KEY_WORDS: [u8; 2] = [0, 1];
const MAX_WORD_DISTANCE: u32 = 8;
/// The job's: of random nights, this limit drops and keeps enough.
pub const MAX_LOST_SHARE: f64 = 0.1;

/// A document as a night leaves it.
#[derive(Clone)]
pub struct Known {
    pub outcome: Outcome,
    pub kept: bool,
    /// The document for which it is dropped, and the hash of the text that this had then.
    pub dropped_for: Option<(String, Option<[u8; 16]>)>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    distance: u32,
    a: String,
    b: String,
    sketch_distance: u32,
    new: bool,
    /// The judge found it.
    judged: bool,
}

/// Whether two documents are candidates: of one night, or of different ones.
fn is_candidate(distance: u32, a: &Sketch, b: &Sketch, of_one_night: bool) -> bool {
    let near_word = |word| hamming_distance(a.word(word), b.word(word)) <= MAX_WORD_DISTANCE;
    match of_one_night {
        true => distance <= MAX_DISTANCE,
        false => distance <= MAX_EARLIER_DISTANCE || KEY_WORDS.into_iter().any(near_word),
    }
}

fn verified(a: &Outcome, b: &Outcome, of_one_night: bool, max_sketch_distance: u32) -> Option<(u32, u32)> {
    let parts = |o: &Outcome| match o {
        Outcome::Fingerprinted { fingerprint, sketch, .. } => Some((*fingerprint, sketch.unwrap_or(Sketch([0; 32])))),
        _ => None,
    };
    let ((fa, sa), (fb, sb)) = (parts(a)?, parts(b)?);
    let (distance, sketch_distance) = (hamming_distance(fa, fb), sa.distance(&sb));
    let is_candidate = is_candidate(distance, &sa, &sb, of_one_night);
    (is_candidate && sketch_distance <= max_sketch_distance).then_some((distance, sketch_distance))
}

/// The words of the texts that were fingerprinted, by the hashes of the texts.
static WORDS: Mutex<BTreeMap<[u8; 16], TextWords>> = Mutex::new(BTreeMap::new());

/// Returns what a text becomes. Its words are remembered for the judge.
pub fn outcome_of(fingerprinter: &TextFingerprinter, text: &str) -> Outcome {
    let outcome = fingerprinter.fingerprint(text).outcome;
    if let Some((hash, words)) = text_hash(&outcome).zip(fingerprinter.words(text)) {
        WORDS.lock().unwrap().insert(hash, words);
    }
    outcome
}

fn judge() -> Judge {
    profile::by_name("default").unwrap().judge().unwrap()
}

/// What the judge measures of two texts.
fn measures(a: &Outcome, b: &Outcome) -> Measures {
    let words = WORDS.lock().unwrap();
    let of = |outcome| &words[&text_hash(outcome).unwrap()];
    judge().measures(of(a), of(b))
}

type Class = (u64, Sketch, u32);

fn class_of(outcome: &Outcome) -> Option<Class> {
    match outcome {
        Outcome::Fingerprinted { fingerprint, sketch, n_features, .. } => {
            Some((*fingerprint, (*sketch)?, (*n_features)?))
        }
        _ => None,
    }
}

/// The pairs of classes that the judge reads and takes for near-duplicates, with the smaller class first.
fn judged(tonight: &BTreeMap<String, Outcome>) -> Vec<(Class, Class)> {
    let mut classes: BTreeMap<Class, &Outcome> = BTreeMap::new();
    for outcome in tonight.values() {
        if let Some(class) = class_of(outcome) {
            classes.entry(class).or_insert(outcome);
        }
    }
    let judge = judge();
    let mut undecided: Vec<(u32, u32, Class, Class)> = Vec::new();
    for x in classes.keys() {
        for (y, _) in classes.range((std::ops::Bound::Excluded(*x), std::ops::Bound::Unbounded)) {
            let (distance, sketch_distance) = (hamming_distance(x.0, y.0), x.1.distance(&y.1));
            let config = judge.config;
            let is_between = (config.min_sketch_distance + 1..=config.max_sketch_distance).contains(&sketch_distance);
            if distance <= MAX_DISTANCE && is_between {
                undecided.push((sketch_distance, distance, *x, *y));
            }
        }
    }
    undecided.sort();
    let mut n_read: BTreeMap<Class, u32> = BTreeMap::new();
    let mut read = Vec::new();
    for (_, _, x, y) in undecided {
        let mut is_near = false;
        for class in [x, y] {
            let n = n_read.entry(class).or_default();
            *n += 1;
            is_near |= *n <= judge.config.max_looks;
        }
        if is_near && measures(classes[&x], classes[&y]).alike(&judge.config).is_some() {
            read.push((x, y));
        }
    }
    read
}

/// Whether the judge takes two documents for near-duplicates because one contains the other.
fn is_contained(a: &Outcome, b: &Outcome) -> bool {
    measures(a, b).alike(&judge().config) == Some(Alike::Contained)
}

pub fn text_hash(outcome: &Outcome) -> Option<[u8; 16]> {
    match outcome {
        Outcome::Empty => None,
        Outcome::TooShort { text_hash } | Outcome::Fingerprinted { text_hash, .. } => Some(*text_hash),
    }
}

/// Every pair of the night, in the forest's order, with those that the judge finds or without them.
pub fn all_pairs(
    tonight: &BTreeMap<String, Outcome>,
    existing: &BTreeMap<String, Known>,
    has_texts: bool,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let judged = if has_texts { judged(tonight) } else { Vec::new() };
    let is_judged = |a: &Outcome, b: &Outcome| {
        let both = class_of(a).zip(class_of(b));
        both.is_some_and(|(a, b)| judged.contains(&(a.min(b), a.max(b))))
    };
    for (a, outcome) in tonight {
        let new = tonight.range::<String, _>((std::ops::Bound::Excluded(a.clone()), std::ops::Bound::Unbounded));
        let others = new.map(|(b, o)| (b, o, true)).chain(existing.iter().map(|(b, k)| (b, &k.outcome, false)));
        for (b, other, new) in others {
            let limit = if new && has_texts { judge().config.min_sketch_distance } else { MAX_SKETCH_DISTANCE };
            if let Some((distance, sketch_distance)) = verified(outcome, other, new, limit) {
                pairs.push(Pair { distance, a: a.clone(), b: b.clone(), sketch_distance, new, judged: false });
            } else if new && is_judged(outcome, other) {
                let (x, y) = (class_of(outcome).unwrap(), class_of(other).unwrap());
                let (distance, sketch_distance) = (hamming_distance(x.0, y.0), x.1.distance(&y.1));
                pairs.push(Pair { distance, a: a.clone(), b: b.clone(), sketch_distance, new, judged: true });
            }
        }
    }
    pairs.sort_by(|x, y| (x.distance, &x.a, &x.b).cmp(&(y.distance, &y.a, &y.b)));
    pairs
}

/// Accepted pairs, and the smallest member and size of each document's cluster.
fn forest(
    tonight: &BTreeMap<String, Outcome>,
    existing: &BTreeMap<String, Known>,
    pairs: &[Pair],
) -> (Vec<Pair>, HashMap<String, (String, u64)>) {
    let mut sets = UnionFind::new(u32::try_from(tonight.len()).unwrap());
    let ids: HashMap<&String, u32> = tonight.keys().zip(0..).collect();
    let mut nodes: HashMap<u64, u32> = HashMap::new();
    let mut accepted = Vec::new();
    for pair in pairs {
        let b = if pair.new {
            ids[&pair.b]
        } else {
            let Outcome::Fingerprinted { fingerprint, .. } = existing[&pair.b].outcome else { panic!() };
            *nodes.entry(fingerprint).or_insert_with(|| sets.add())
        };
        if sets.union(ids[&pair.a], b) {
            accepted.push(pair.clone());
        }
    }
    let mut short: HashMap<[u8; 16], u32> = HashMap::new();
    for (id, outcome) in tonight {
        if let Outcome::TooShort { text_hash } = outcome {
            let first = *short.entry(*text_hash).or_insert(ids[id]);
            sets.union(first, ids[id]);
        }
    }
    let mut clusters: HashMap<u32, (String, u64)> = HashMap::new();
    for id in tonight.keys() {
        clusters.entry(sets.find(ids[id])).or_insert_with(|| (id.clone(), 0)).1 += 1;
    }
    let of = tonight.keys().map(|id| (id.clone(), clusters[&sets.find(ids[id])].clone())).collect();
    accepted.sort_by(|x, y| (&x.a, &x.b).cmp(&(&y.a, &y.b)));
    (accepted, of)
}

/// The lost share of a document for a keeper near it: exact if the judge found the pair.
pub fn lost(document: &Outcome, keeper: &Outcome, judged: bool) -> f64 {
    let parts = |o: &Outcome| match o {
        Outcome::Fingerprinted { sketch, n_features, .. } => (sketch.unwrap(), n_features.unwrap()),
        _ => panic!("no pair"),
    };
    let ((a, n), (b, keepers)) = (parts(document), parts(keeper));
    if judged {
        return measures(document, keeper).lost_shares()[0];
    }
    lost_share(n, keepers, u16::try_from(a.distance(&b)).unwrap())
}

/// decision, canonical, distance, reason
pub type Decided = (&'static str, String, String, &'static str);

/// `rank` is the place in the keep order before the id.
pub fn decide<K: Ord>(
    tonight: &BTreeMap<String, Outcome>,
    existing: &BTreeMap<String, Known>,
    rank: impl Fn(&String) -> K,
    pairs: &[Pair],
) -> BTreeMap<String, Decided> {
    let mut order: Vec<&String> = tonight.keys().collect();
    order.sort_by_key(|id| rank(id));
    let mut decided: BTreeMap<String, Decided> = BTreeMap::new();
    for (rank, id) in order.iter().enumerate() {
        let hash = text_hash(&tonight[*id]);
        // (distance, existing first, rank, id) of every document that is kept by now.
        let mut near: Vec<(u32, bool, usize, &String)> = Vec::new();
        if matches!(tonight[*id], Outcome::TooShort { .. }) {
            let same = |o: &Outcome| matches!(o, Outcome::TooShort { .. }) && text_hash(o) == hash;
            near.extend(existing.iter().filter(|(_, k)| k.kept && same(&k.outcome)).map(|(b, _)| (0, false, 0, b)));
            near.extend(
                order[..rank].iter().enumerate().filter(|(_, b)| same(&tonight[**b])).map(|(r, b)| (0, true, r, *b)),
            );
        }
        let mut is_near_existing = false;
        for pair in pairs {
            if pair.a == **id && !pair.new && existing[&pair.b].kept {
                is_near_existing = true;
                if lost(&tonight[*id], &existing[&pair.b].outcome, false) <= MAX_LOST_SHARE {
                    near.push((pair.distance, false, 0, &pair.b));
                }
            }
            let other = if pair.a == **id { &pair.b } else { &pair.a };
            if pair.new
                && (pair.a == **id || pair.b == **id)
                && let Some(at) = order[..rank].iter().position(|o| *o == other)
                && lost(&tonight[*id], &tonight[other], pair.judged) <= MAX_LOST_SHARE
                && !(pair.judged
                    && is_contained(&tonight[*id], &tonight[other])
                    && class_of(&tonight[*id]).unwrap().2 > class_of(&tonight[other]).unwrap().2)
            {
                near.push((pair.distance, true, at, order[at]));
            }
        }
        let is_judged = |a: &String, b: &String| {
            pairs.iter().any(|p| p.judged && ((&p.a, &p.b) == (a, b) || (&p.b, &p.a) == (a, b)))
        };
        near.retain(|(_, new, _, b)| !new || decided[*b].0 == "keep");
        let decision = match (near.iter().min(), &tonight[*id]) {
            (_, Outcome::Empty) => ("skip", String::new(), String::new(), "empty"),
            (Some((distance, new, _, b)), _) => {
                let canonical = if *new { &tonight[*b] } else { &existing[*b].outcome };
                let reason = match text_hash(canonical) == hash {
                    true => "exact",
                    false if is_judged(id, b) && is_contained(&tonight[*id], canonical) => "contained",
                    false => "near",
                };
                ("drop", (*b).clone(), distance.to_string(), reason)
            }
            (None, Outcome::TooShort { .. }) => ("keep", String::new(), String::new(), "too_short"),
            (None, _) => {
                let paired = pairs.iter().any(|p| p.a == **id || (p.new && p.b == **id));
                let reason = match (is_near_existing, paired) {
                    (true, _) => "fuller",
                    (false, true) => "canonical",
                    (false, false) => "unique",
                };
                ("keep", String::new(), String::new(), reason)
            }
        };
        decided.insert((*id).clone(), decision);
    }
    decided
}

/// A document as the decision leaves it, with what the document that represents it says.
pub fn known<'a>(outcome: &Outcome, decided: &Decided, text_of: impl Fn(&str) -> Option<&'a Outcome>) -> Known {
    let dropped_for = (decided.0 == "drop").then(|| (decided.1.clone(), text_of(&decided.1).and_then(text_hash)));
    Known { outcome: outcome.clone(), kept: decided.0 == "keep", dropped_for }
}

/// The documents of earlier nights whose representatives are gone tonight, decided again: with their former representatives
/// and what became of these. `forgotten` are states that the night's commit forgets.
pub fn redecide(
    tonight: &BTreeMap<String, Outcome>,
    decided: &BTreeMap<String, Decided>,
    existing: &BTreeMap<String, Known>,
    forgotten: &BTreeMap<String, Known>,
) -> BTreeMap<String, (Decided, String, &'static str)> {
    let gone = |known: &Known| -> Option<(String, &'static str)> {
        let (canonical, text) = known.dropped_for.clone()?;
        let cause = match (tonight.get(&canonical), existing.get(&canonical)) {
            (Some(now), _) if text_hash(now).is_none() => "empty",
            (Some(now), _) if text_hash(now) != text => "changed",
            (Some(_), _) if decided[&canonical].0 != "keep" => "dropped",
            (Some(_), _) => return None,
            (None, Some(known)) => {
                assert!(known.kept && text_hash(&known.outcome) == text, "lost before this night: {canonical}");
                return None;
            }
            (None, None) => {
                assert!(forgotten.get(&canonical).is_some_and(|known| known.kept), "unknown: {canonical}");
                "forgotten"
            }
        };
        Some((canonical, cause))
    };
    let orphans: BTreeMap<&String, (String, &'static str)> =
        existing.iter().filter_map(|(id, known)| Some((id, gone(known)?))).collect();
    let outcomes: BTreeMap<String, Outcome> =
        orphans.keys().map(|id| ((*id).clone(), existing[*id].outcome.clone())).collect();
    let mut others: BTreeMap<String, Known> = existing.clone();
    others.retain(|id, _| !orphans.contains_key(id));
    for (id, outcome) in tonight {
        others.insert(id.clone(), known(outcome, &decided[id], |_| None));
    }
    let n_features = |id: &String| match &outcomes[id] {
        Outcome::Fingerprinted { n_features, .. } => *n_features,
        _ => None,
    };
    let pairs = all_pairs(&outcomes, &others, false);
    let again = decide(&outcomes, &others, |id| (std::cmp::Reverse(n_features(id)), id.clone()), &pairs);
    let former = |id: &String| orphans[id].clone();
    again.into_iter().map(|(id, made)| (id.clone(), (made, former(&id).0, former(&id).1))).collect()
}

/// Holds what a night published about documents that were decided again to what the definition says.
pub fn assert_redecided(
    night: &Night,
    dt: &str,
    again: &BTreeMap<String, (Decided, String, &'static str)>,
    context: &str,
) {
    let rows = night.published(dt, "redecided").into_iter();
    let got: Vec<[String; 7]> = rows.map(|row| [0, 2, 3, 4, 5, 8, 9].map(|c: usize| row[c].clone())).collect();
    let expected = again.iter().map(|(id, ((decision, canonical, distance, reason), former, cause))| {
        let reason = if *decision == "keep" { "restored" } else { reason };
        [id.as_str(), decision, canonical, distance, reason, former, cause].map(str::to_owned)
    });
    assert_eq!(got, expected.collect::<Vec<_>>(), "{context}");
}

/// The rows of `superseded`, without their lost shares, in order.
fn superseded(
    tonight: &BTreeMap<String, Outcome>,
    existing: &BTreeMap<String, Known>,
    decided: &BTreeMap<String, Decided>,
    pairs: &[Pair],
) -> Vec<[String; 4]> {
    let is_contained = |p: &&Pair| {
        let fuller = !p.new && existing[&p.b].kept && decided[&p.a].3 == "fuller";
        fuller && lost(&existing[&p.b].outcome, &tonight[&p.a], false) <= MAX_LOST_SHARE
    };
    let row = |p: &Pair| [p.b.clone(), p.a.clone(), p.distance.to_string(), p.sketch_distance.to_string()];
    let mut rows: Vec<[String; 4]> = pairs.iter().filter(is_contained).map(row).collect();
    rows.sort();
    rows
}

/// Texts that recur, near-duplicates of them, short ones and empty ones; ids of a small pool, so that pages are crawled again.
fn documents(seed: u64, n: usize) -> BTreeMap<String, String> {
    let mut state = seed | 1;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut made = BTreeMap::new();
    for _ in 0..n {
        let id = format!("{:02}", below(60));
        let mut words: Vec<String> = text(below(5), 70).split(' ').map(str::to_owned).collect();
        for _ in 0..below(4) {
            let at = usize::try_from(below(70)).unwrap();
            words[at] = format!("e{}", below(3));
        }
        for _ in 0..below(3) * below(8) {
            words.push(format!("more{}", below(1000)));
        }
        let made_text = match below(10) {
            0 => format!("short {}", below(3)),
            1 => " ".to_owned(),
            _ => words.join(" "),
        };
        made.insert(id, made_text);
    }
    made
}

#[test]
fn nights_publish_what_the_definitions_say() {
    let fingerprinter = TextFingerprinter::try_new(profile::by_name("default").unwrap(), &Default::default()).unwrap();
    let join = fingerprinter.config().join;
    assert_eq!((join.max_distance, join.max_sketch_distance), (MAX_DISTANCE, Some(MAX_SKETCH_DISTANCE)));
    let earlier = join.earlier.unwrap();
    assert_eq!((earlier.max_distance, earlier.max_word_distance), (MAX_EARLIER_DISTANCE, MAX_WORD_DISTANCE));
    assert_eq!(earlier.words as usize, KEY_WORDS.len());
    let (mut n_pairs, mut n_dropped, mut n_recrawled, mut n_fuller, mut n_superseded) = (0, 0, 0, 0, 0);
    let (mut n_orphaned, mut n_judged, mut n_by_words) = (0, 0, 0);
    for seed in 0..6 {
        let night = Night::new(&format!("max_lost_share = {MAX_LOST_SHARE}\n"));
        let mut history: BTreeMap<String, Known> = BTreeMap::new();
        for day in 18..22 {
            let dt = format!("2026-11-{day}");
            let texts = documents(seed * 100 + day, 40);
            let rows: Vec<(&str, &str)> = texts.iter().map(|(id, t)| (id.as_str(), t.as_str())).collect();
            let summary = night.documents(&dt, &rows).run(&dt, &["--no-breakers"]).expect_success().json();
            let tonight: BTreeMap<String, Outcome> =
                texts.iter().map(|(id, t)| (id.clone(), outcome_of(&fingerprinter, t))).collect();
            let lengths: BTreeMap<&String, u64> =
                texts.iter().map(|(id, t)| (id, fingerprinter.fingerprint(t).length)).collect();
            let (again, existing): (BTreeMap<_, _>, BTreeMap<_, _>) =
                history.clone().into_iter().partition(|(id, _)| tonight.contains_key(id));
            let pairs = all_pairs(&tonight, &existing, true);
            let (accepted, clusters) = forest(&tonight, &existing, &pairs);
            let rank = |id: &String| (!again.get(id).is_some_and(|k| k.kept), std::cmp::Reverse(lengths[id]));
            let decided = decide(&tonight, &existing, rank, &pairs);

            let context = format!("seed {seed}, {dt}");
            let expected: Vec<[String; 7]> = accepted
                .iter()
                .map(|p| {
                    let scope = if p.new { "new_new" } else { "new_existing" };
                    let distances = [p.distance, p.sketch_distance].map(|distance| distance.to_string());
                    let [distance, sketch_distance] = distances;
                    let reason = match (p.judged, tonight.get(&p.b)) {
                        (true, Some(b)) if is_contained(&tonight[&p.a], b) => "contained",
                        (true, _) => "edited",
                        (false, _) => "near",
                    };
                    n_judged += usize::from(reason != "near");
                    let scope = scope.to_owned();
                    [p.a.clone(), p.b.clone(), distance, sketch_distance, scope, String::new(), reason.to_owned()]
                })
                .collect();
            assert_eq!(night.published(&dt, "pairs"), expected, "{context}");
            for (id, got) in night.decisions(&dt) {
                let (decision, canonical, distance, reason) = &decided[&id];
                let (cluster, size) = match *decision {
                    "skip" => (String::new(), String::new()),
                    _ => (clusters[&id].0.clone(), clusters[&id].1.to_string()),
                };
                let expected = [*decision, canonical, distance, *reason, &cluster, &size];
                assert_eq!(got, expected, "{context}, {id}");
            }
            let lost_shares = night.lost_shares(&dt);
            for (id, (decision, canonical, _, reason)) in &decided {
                let expected = match (*decision, *reason) {
                    ("drop", "exact") => Some(0.0),
                    ("drop", _) => {
                        let keeper = tonight.get(canonical).unwrap_or_else(|| &existing[canonical].outcome);
                        let is_pair = |p: &&Pair| [(&p.a, &p.b), (&p.b, &p.a)].contains(&(id, canonical));
                        let judged = tonight.contains_key(canonical) && pairs.iter().filter(is_pair).any(|p| p.judged);
                        Some(lost(&tonight[id], keeper, judged))
                    }
                    _ => None,
                };
                assert_eq!(lost_shares.get(id).copied(), expected, "{context}, {id}");
            }
            let expected = superseded(&tonight, &existing, &decided, &pairs);
            let got = night.published(&dt, "superseded");
            assert_eq!(got.iter().map(|row| row[..4].to_vec()).collect::<Vec<_>>(), expected, "{context}");
            for row in &got {
                let (earlier, new) = (&existing[&row[0]].outcome, &tonight[&row[1]]);
                let shares = [lost(earlier, new, false), lost(new, earlier, false)];
                assert_eq!([&row[4], &row[5]].map(|share| share.parse::<f64>().unwrap()), shares, "{context}");
            }
            assert_eq!(summary["n_superseded"].as_u64(), Some(got.len() as u64), "{context}");
            n_fuller += decided.values().filter(|d| d.3 == "fuller").count();
            n_superseded += got.len();
            assert_eq!(summary["n_same_id"].as_u64(), Some(again.len() as u64), "{context}");
            n_pairs += accepted.len();
            n_by_words += accepted.iter().filter(|pair| !pair.new && pair.distance > MAX_EARLIER_DISTANCE).count();
            n_dropped += decided.values().filter(|d| d.0 == "drop").count();
            n_recrawled += again.len();
            let again = redecide(&tonight, &decided, &existing, &BTreeMap::new());
            assert_redecided(&night, &dt, &again, &context);
            n_orphaned += again.len();
            let now = |id: &str| tonight.get(id).or_else(|| existing.get(id).map(|known| &known.outcome));
            for (id, (decided, ..)) in &again {
                history.insert(id.clone(), known(&existing[id].outcome, decided, now));
            }
            for (id, outcome) in &tonight {
                history.insert(id.clone(), known(outcome, &decided[id], now));
            }
        }
    }
    let enough = n_pairs > 300 && n_dropped > 250 && n_recrawled > 150 && n_fuller > 20 && n_superseded > 10;
    assert!(n_orphaned > 15 && n_judged > 15 && n_by_words > 5, "{n_orphaned} {n_judged} {n_by_words}");
    assert!(enough, "{n_pairs} {n_dropped} {n_recrawled} {n_fuller} {n_superseded}");
}
