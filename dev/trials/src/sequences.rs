//! L9: random sequences of nights, forgetting and queries, and an oracle that knows nothing of nearprint's code: distances by
//! counting bits, decisions and clusters by the definitions, document by document. Fingerprints and sketches of the texts
//! come from `nearprint fingerprint`; that these are right is for other tests to say.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int32Type, Int64Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use nearprint_harness::folder::{files_below, parquet_of, places};
use nearprint_harness::night::write_file;
use nearprint_harness::random::{Random, text};
use nearprint_harness::row::{Row, Tally};
use nearprint_harness::runner::{Ran, Run};
use nearprint_harness::{Common, Result, delta, require};

/// The steps of a sequence, its first night apart.
const STEPS: u64 = 14;
/// The texts among which those are looked for whose fingerprints have decimal digits alone in hex.
const DRAWN: u64 = 8000;

/// The ids of documents. Some are lines of others.
const IDS: [&str; 20] = [
    "x",
    "x\ny",
    "y",
    "a",
    "a\r",
    "b\r\nc",
    "b",
    "c",
    "",
    "\n",
    " ",
    "1234567890123456",
    "0",
    "7",
    "\"quoted\"",
    "{\"id\": 1}",
    "d",
    "e\n\ne",
    "e",
    "f\u{2028}g",
];

/// The first ids: those that are lines of others, and these.
const LINES: usize = 8;

/// Runs a sequence for each seed.
pub fn run(common: &Common) -> Result<Vec<Row>> {
    let trial = "a random sequence of nights (new, late, replaced, stale), forgetting, indexing and queries";
    let required = "decisions, pairs, clusters and answers are those of the definitions; check: sound";
    let mut tally = Tally::new("L9", trial, "local", required);
    let special = special_texts(common)?;
    let mut done = Done::default();
    for seed in 0..common.seeds {
        let ran = Sequence::begin(common, seed, &special).and_then(|mut sequence| {
            let ended = sequence.run();
            done.add(&sequence.done);
            ended.map_err(|e| format!("seed {seed}: {e}").into())
        });
        tally.add(ran.map(|()| "no difference".to_owned()));
    }
    let mut row = tally.row();
    row.observed = format!("{}; {}", row.observed, done.in_words());
    Ok(vec![row])
}

/// The step that was done.
#[derive(Debug, Default)]
struct Done {
    nights: u64,
    queries: u64,
    forgettings_of_ids: u64,
    refused_lists: u64,
    forgettings_of_nights: u64,
    compared: u64,
}

impl Done {
    fn add(&mut self, more: &Self) {
        self.nights += more.nights;
        self.queries += more.queries;
        self.forgettings_of_ids += more.forgettings_of_ids;
        self.refused_lists += more.refused_lists;
        self.forgettings_of_nights += more.forgettings_of_nights;
        self.compared += more.compared;
    }

    fn in_words(&self) -> String {
        format!(
            "{} nights, {} queries, {} forgettings of ids, {} lists refused, {} forgettings of nights, {} published nights compared",
            self.nights,
            self.queries,
            self.forgettings_of_ids,
            self.refused_lists,
            self.forgettings_of_nights,
            self.compared
        )
    }
}

/// A text, and what a night makes of it.
#[derive(Debug, Clone)]
struct Known {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Empty,
    Short,
    Long { fingerprint: u64, sketch: [u8; 32] },
}

/// A document of a night, in the store.
#[derive(Debug, Clone, PartialEq)]
struct Stored {
    text: usize,
    /// The document that represents it.
    canonical: Option<String>,
}

/// A row of `decisions`.
#[derive(Debug, Clone, PartialEq)]
struct Decided {
    decision: &'static str,
    canonical: Option<String>,
    distance: Option<i32>,
    reason: &'static str,
    cluster: Option<(String, i64)>,
}

/// A row of `pairs`.
#[derive(Debug, Clone, PartialEq)]
struct Pair {
    distance: u32,
    a: String,
    b: String,
    sketch_distance: u32,
    is_new: bool,
}

/// A published night.
#[derive(Debug, Default)]
struct Night {
    /// The content of its file, forgotten documents too.
    input: BTreeMap<String, usize>,
    stored: BTreeMap<String, Stored>,
    decided: BTreeMap<String, Decided>,
    pairs: Vec<Pair>,
}

/// Ids that are in one set.
#[derive(Debug, Default)]
struct Sets(Vec<usize>);

impl Sets {
    fn add(&mut self) -> usize {
        self.0.push(self.0.len());
        self.0.len() - 1
    }

    fn find(&self, mut at: usize) -> usize {
        while self.0[at] != at {
            at = self.0[at];
        }
        at
    }

    /// Returns whether they were in different sets.
    fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a] = b;
        a != b
    }
}

/// The definitions.
#[derive(Debug)]
struct Oracle {
    texts: Vec<Known>,
    max_distance: u32,
    max_sketch_distance: u32,
    /// The keep order is by id, and not by length.
    by_id: bool,
    nights: BTreeMap<String, Night>,
}

fn hamming(a: &[u8; 32], b: &[u8; 32]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

impl Oracle {
    /// The distances of the fingerprints and sketches of two texts, if both have some.
    fn distances(&self, a: usize, b: usize) -> Option<(u32, u32)> {
        match (&self.texts[a].kind, &self.texts[b].kind) {
            (Kind::Long { fingerprint: a, sketch: sa }, Kind::Long { fingerprint: b, sketch: sb }) => {
                Some(((a ^ b).count_ones(), hamming(sa, sb)))
            }
            _ => None,
        }
    }

    fn near(&self, a: usize, b: usize) -> Option<(u32, u32)> {
        let is_near =
            |&(distance, sketch): &(u32, u32)| distance <= self.max_distance && sketch <= self.max_sketch_distance;
        self.distances(a, b).filter(is_near)
    }

    /// Returns whether a document of a night represents itself. One without text represents nothing.
    fn is_kept(&self, stored: &Stored) -> bool {
        stored.canonical.is_none() && self.texts[stored.text].kind != Kind::Empty
    }

    fn is_short(&self, text: usize) -> bool {
        self.texts[text].kind == Kind::Short
    }

    fn is_same(&self, a: usize, b: usize) -> bool {
        self.texts[a].text == self.texts[b].text
    }

    /// The newest state of each document in the nights before a date, or in all nights, with its night.
    fn live(&self, before: Option<&str>) -> BTreeMap<String, (String, Stored)> {
        let mut live = BTreeMap::new();
        for (dt, night) in self.nights.iter().filter(|(dt, _)| before.is_none_or(|before| dt.as_str() < before)) {
            live.extend(night.stored.iter().map(|(id, stored)| (id.clone(), (dt.clone(), stored.clone()))));
        }
        live
    }

    /// Every near pair of tonight's documents with each other and with earlier ones, in the order of the forest.
    fn all_pairs(&self, tonight: &BTreeMap<String, usize>, existing: &BTreeMap<String, Stored>) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (a, &text) in tonight {
            let new = tonight.iter().filter(|(b, _)| *b > a).map(|(b, &other)| (b, other, true));
            for (b, other, is_new) in new.chain(existing.iter().map(|(b, stored)| (b, stored.text, false))) {
                if let Some((distance, sketch_distance)) = self.near(text, other) {
                    pairs.push(Pair { distance, a: a.clone(), b: b.clone(), sketch_distance, is_new });
                }
            }
        }
        pairs.sort_by(|x, y| (x.distance, &x.a, &x.b).cmp(&(y.distance, &y.a, &y.b)));
        pairs
    }

    /// The pairs that a spanning forest takes, and the cluster of each document: its smallest id and its size.
    fn forest(
        &self,
        tonight: &BTreeMap<String, usize>,
        existing: &BTreeMap<String, Stored>,
        pairs: &[Pair],
    ) -> (Vec<Pair>, HashMap<String, (String, i64)>) {
        let mut sets = Sets::default();
        let places: HashMap<&String, usize> = tonight.keys().map(|id| (id, sets.add())).collect();
        // Earlier documents of one fingerprint are one place.
        let mut earlier: HashMap<u64, usize> = HashMap::new();
        let mut taken = Vec::new();
        for pair in pairs {
            let b = match (pair.is_new, existing.get(&pair.b).map(|stored| &self.texts[stored.text].kind)) {
                (false, Some(Kind::Long { fingerprint, .. })) => {
                    *earlier.entry(*fingerprint).or_insert_with(|| sets.add())
                }
                _ => places[&pair.b],
            };
            if sets.join(places[&pair.a], b) {
                taken.push(pair.clone());
            }
        }
        let mut short: HashMap<&str, usize> = HashMap::new();
        for (id, &text) in tonight.iter().filter(|(_, text)| self.is_short(**text)) {
            let first = *short.entry(self.texts[text].text.as_str()).or_insert(places[id]);
            sets.join(places[id], first);
        }
        let mut clusters: HashMap<usize, (String, i64)> = HashMap::new();
        for id in tonight.keys() {
            clusters.entry(sets.find(places[id])).or_insert_with(|| (id.clone(), 0)).1 += 1;
        }
        let of = tonight.keys().map(|id| (id.clone(), clusters[&sets.find(places[id])].clone())).collect();
        taken.sort_by(|x, y| (&x.a, &x.b).cmp(&(&y.a, &y.b)));
        (taken, of)
    }

    /// Publishes a night from its input.
    fn publish(&mut self, dt: &str, input: BTreeMap<String, usize>) {
        let (again, existing): (BTreeMap<_, _>, BTreeMap<_, _>) = self
            .live(Some(dt))
            .into_iter()
            .map(|(id, (_, stored))| (id, stored))
            .partition(|(id, _)| input.contains_key(id));
        let pairs = self.all_pairs(&input, &existing);
        let (taken, clusters) = self.forest(&input, &existing, &pairs);
        let mut order: Vec<&String> = input.keys().collect();
        let length = |id: &String| if self.by_id { 0 } else { self.texts[input[id]].text.chars().count() };
        order.sort_by_key(|id| {
            (!again.get(*id).is_some_and(|stored| self.is_kept(stored)), Reverse(length(id)), (*id).clone())
        });
        let mut night = Night { pairs: taken, ..Night::default() };
        for (rank, id) in order.iter().enumerate() {
            let decided = self.decide(id, &input, &existing, &pairs, &order[..rank], &night.decided);
            let cluster = (decided.decision != "skip").then(|| clusters[*id].clone());
            night.decided.insert((*id).clone(), Decided { cluster, ..decided });
        }
        let stored = |(id, decided): (&String, &Decided)| {
            (id.clone(), Stored { text: input[id], canonical: decided.canonical.clone() })
        };
        night.stored = night.decided.iter().map(stored).collect();
        night.input = input;
        self.nights.insert(dt.to_owned(), night);
    }

    /// Decides about a document: it is dropped for the nearest kept one, an earlier one before one of tonight's, and of these
    /// for the first in order; of earlier ones at the same distance for the one with the smallest id.
    fn decide(
        &self,
        id: &String,
        input: &BTreeMap<String, usize>,
        existing: &BTreeMap<String, Stored>,
        pairs: &[Pair],
        before: &[&String],
        decided: &BTreeMap<String, Decided>,
    ) -> Decided {
        let text = input[id];
        let decision = |decision, canonical: Option<&String>, distance, reason| Decided {
            decision,
            canonical: canonical.cloned(),
            distance,
            reason,
            cluster: None,
        };
        if self.texts[text].kind == Kind::Empty {
            return decision("skip", None, None, "empty");
        }
        let is_kept = |other: &String| decided.get(other).is_some_and(|decided| decided.decision == "keep");
        let rank = |other: &String| before.iter().position(|earlier| *earlier == other).filter(|_| is_kept(other));
        let mut keepers: Vec<(u32, bool, usize, &String)> = Vec::new();
        if self.is_short(text) {
            let is_copy = |other: usize| self.is_short(other) && self.is_same(text, other);
            let earlier = existing.iter().filter(|(_, stored)| self.is_kept(stored) && is_copy(stored.text));
            keepers.extend(earlier.map(|(other, _)| (0, false, 0, other)));
            let tonight = before.iter().filter(|other| is_copy(input[**other]));
            keepers.extend(tonight.filter_map(|other| Some((0, true, rank(other)?, *other))));
        }
        for pair in pairs {
            if !pair.is_new && pair.a == *id && self.is_kept(&existing[&pair.b]) {
                keepers.push((pair.distance, false, 0, &pair.b));
            }
            let other = if pair.a == *id { &pair.b } else { &pair.a };
            if pair.is_new
                && (pair.a == *id || pair.b == *id)
                && let Some(rank) = rank(other)
            {
                keepers.push((pair.distance, true, rank, other));
            }
        }
        match keepers.iter().min() {
            Some((distance, is_new, _, keeper)) => {
                let keepers_text = if *is_new { input[*keeper] } else { existing[*keeper].text };
                let reason = if self.is_same(text, keepers_text) { "exact" } else { "near" };
                decision("drop", Some(keeper), i32::try_from(*distance).ok(), reason)
            }
            None if self.is_short(text) => decision("keep", None, None, "too_short"),
            None => {
                let has_pair = pairs.iter().any(|pair| pair.a == *id || (pair.is_new && pair.b == *id));
                decision("keep", None, None, if has_pair { "canonical" } else { "unique" })
            }
        }
    }

    /// Forgets documents in all nights. Those that they represented represent themselves, and stay dropped in the results.
    fn forget(&mut self, ids: &BTreeSet<String>) {
        let is_gone = |id: &Option<String>| id.as_ref().is_some_and(|id| ids.contains(id));
        for night in self.nights.values_mut() {
            night.stored.retain(|id, _| !ids.contains(id));
            night
                .stored
                .values_mut()
                .filter(|stored| is_gone(&stored.canonical))
                .for_each(|stored| stored.canonical = None);
            night.decided.retain(|id, _| !ids.contains(id));
            night.pairs.retain(|pair| !ids.contains(&pair.a) && !ids.contains(&pair.b));
            let mut left: BTreeMap<String, (String, i64)> = BTreeMap::new();
            for (id, decided) in &night.decided {
                if let Some((cluster, _)) = &decided.cluster {
                    left.entry(cluster.clone()).or_insert_with(|| (id.clone(), 0)).1 += 1;
                }
            }
            for decided in night.decided.values_mut() {
                decided.cluster = decided.cluster.take().and_then(|(cluster, _)| left.get(&cluster).cloned());
                if is_gone(&decided.canonical) {
                    decided.canonical = None;
                }
            }
        }
    }

    /// The first id that a list of lines may mean, although it is none of its lines: such an id stands in the list as other
    /// lines, and the list has all of these that are not blank.
    fn ambiguous(&self, list: &str) -> Option<&String> {
        let lines = |text: &str| -> BTreeSet<String> {
            let ended = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
            ended.filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
        };
        let listed = lines(list);
        let is_meant = |id: &&String| {
            let of_id = lines(id);
            let is_line = !id.contains('\n') && !id.ends_with('\r');
            !is_line && !of_id.is_empty() && of_id.is_subset(&listed)
        };
        self.nights.values().flat_map(|night| night.stored.keys()).find(is_meant)
    }

    /// The documents near a text, or near a fingerprint alone, in the order of answers.
    fn answer(&self, asked: &AskedQuery) -> Vec<Value> {
        let mut found = Vec::new();
        for (id, (dt, stored)) in self.live(None) {
            let near = match asked {
                AskedQuery::Text(text) if self.is_short(*text) => {
                    (self.is_short(stored.text) && self.is_same(*text, stored.text)).then_some((0, None, true))
                }
                AskedQuery::Text(text) => {
                    let is_same = self.is_same(*text, stored.text);
                    self.near(*text, stored.text).map(|(distance, sketch)| (distance, Some(sketch), is_same))
                }
                AskedQuery::Fingerprint(asked) => match self.texts[stored.text].kind {
                    Kind::Long { fingerprint, .. } => {
                        let distance = (asked ^ fingerprint).count_ones();
                        (distance <= self.max_distance).then_some((distance, None, false))
                    }
                    _ => None,
                },
            };
            if let Some((distance, sketch, exact)) = near {
                found.push((distance, sketch, dt, id, stored.canonical, exact));
            }
        }
        found.sort();
        let matched = |(distance, sketch_distance, dt, id, canonical, exact): (
            u32,
            Option<u32>,
            String,
            String,
            Option<String>,
            bool,
        )| {
            let decision = if canonical.is_some() { "drop" } else { "keep" };
            json!({
                "id": id, "dt": dt, "distance": distance, "sketch_distance": sketch_distance, "decision": decision,
                "canonical_id": canonical, "exact": exact
            })
        };
        found.into_iter().map(matched).collect()
    }
}

/// A query.
enum AskedQuery {
    Text(usize),
    Fingerprint(u64),
}

/// A sequence on local disk.
struct Sequence<'a> {
    common: &'a Common,
    scratch: tempfile::TempDir,
    random: Random,
    oracle: Oracle,
    /// The first date that was not forgotten.
    first: u64,
    done: Done,
}

fn date(day: u64) -> String {
    format!("2026-{:02}-{:02}", 1 + day / 28, 1 + day % 28)
}

fn day_of(dt: &str) -> Result<u64> {
    let [month, day] = [&dt[5..7], &dt[8..10]].map(str::parse::<u64>);
    Ok((month? - 1) * 28 + day? - 1)
}

/// Texts whose fingerprints have decimal digits alone in hex, such as 1468000048661814.
fn special_texts(common: &Common) -> Result<Vec<Known>> {
    let scratch = common.scratch()?;
    let texts = (0..DRAWN).map(|i| text(1_000_000 + i, 40)).collect();
    let known = known(&common.nearprint, scratch.path(), texts)?;
    let is_decimal = |known: &Known| match known.kind {
        Kind::Long { fingerprint, .. } => format!("{fingerprint:016x}").bytes().all(|b| b.is_ascii_digit()),
        _ => false,
    };
    let special: Vec<Known> = known.into_iter().filter(is_decimal).collect();
    require!(!special.is_empty(), "none of {DRAWN} texts has a fingerprint of decimal digits alone");
    Ok(special)
}

/// Fingerprints texts.
fn known(nearprint: &Path, dir: &Path, texts: Vec<String>) -> Result<Vec<Known>> {
    let ids: Vec<String> = (0..texts.len()).map(|i| i.to_string()).collect();
    let rows: Vec<_> = ids.iter().zip(&texts).map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    write_file(&dir.join("pool/part-0.parquet"), &parquet_of(&rows)?)?;
    let args = ["fingerprint", "--documents", "pool", "--output", "fingerprints", "--json"];
    Run::new(nearprint, dir, &args).run()?.ends_with(&[0], &[])?;
    let mut known: Vec<Known> = texts.into_iter().map(|text| Known { text, kind: Kind::Empty }).collect();
    for path in files_below(&dir.join("fingerprints")) {
        if path.extension().is_none_or(|end| end != "parquet") {
            continue;
        }
        for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(&path)?)?.build()? {
            let batch = batch?;
            let ids = batch.column_by_name("doc_id").ok_or("no doc_id")?.as_string::<i32>();
            for (row, id) in ids.iter().enumerate() {
                let of = &mut known[id.ok_or("no id")?.parse::<usize>()?];
                if let Some(fingerprints) = batch.column_by_name("fingerprint") {
                    let sketches = batch.column_by_name("sketch").ok_or("no sketch")?.as_fixed_size_binary();
                    let fingerprint = fingerprints.as_primitive::<UInt64Type>().value(row);
                    of.kind = Kind::Long { fingerprint, sketch: sketches.value(row).try_into()? };
                } else if batch.column_by_name("reason").ok_or("no reason")?.as_string::<i32>().value(row)
                    == "too_short"
                {
                    of.kind = Kind::Short;
                }
            }
        }
    }
    Ok(known)
}

/// Texts that recur, near-duplicates of them, short ones and an empty one. Normalising leaves them as they are.
fn pool(random: &mut Random, seed: u64) -> Vec<String> {
    let mut texts = vec![" ".to_owned(), "short 0".to_owned(), "short 1".to_owned()];
    for _ in 0..36 {
        let mut words: Vec<String> = text(seed * 100 + random.below(4), 70).split(' ').map(str::to_owned).collect();
        for _ in 0..random.below(5) {
            let at = usize::try_from(random.below(70)).unwrap_or(0);
            words[at] = format!("e{}", random.below(3));
        }
        for _ in 0..random.below(3) * random.below(8) {
            words.push(format!("more{}", random.below(1000)));
        }
        texts.push(words.join(" "));
    }
    texts
}

impl<'a> Sequence<'a> {
    fn begin(common: &'a Common, seed: u64, special: &[Known]) -> Result<Self> {
        let scratch = common.scratch()?;
        let mut random = Random::new(seed);
        let mut texts = known(&common.nearprint, scratch.path(), pool(&mut random, seed))?;
        texts.extend_from_slice(special);
        let oracle = Oracle {
            texts,
            max_distance: u32::try_from(4 + random.below(11))?,
            max_sketch_distance: u32::try_from(30 + random.below(40))?,
            by_id: seed % 2 == 1,
            nights: BTreeMap::new(),
        };
        let keep = if oracle.by_id { "keep = [\"id\"]\n" } else { "" };
        let Oracle { max_distance, max_sketch_distance, .. } = oracle;
        let job = format!(
            "{}max_lost_share = 1\n{keep}[join]\nmax_distance = {max_distance}\nmax_sketch_distance = {max_sketch_distance}\n[judge]\nmax_looks = 0\n",
            places("")
        );
        std::fs::write(scratch.path().join("job.toml"), job)?;
        std::fs::create_dir_all(scratch.path().join("spill"))?;
        Ok(Self { common, scratch, random, oracle, first: 0, done: Done::default() })
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.random.below(n.max(1) as u64)).unwrap_or(0)
    }

    fn command(&self, words: &[&str]) -> Result<Ran> {
        Run::new(&self.common.nearprint, self.scratch.path(), words).args(&["--config", "job.toml", "--json"]).run()
    }

    fn expect(&self, words: &[&str]) -> Result<Value> {
        let ran = self.command(words)?;
        ran.ends_with(&[0], &[]).map_err(|e| format!("{}: {e}", words.join(" ")))?;
        Ok(ran.summary())
    }

    fn run(&mut self) -> Result<()> {
        self.new_night(0)?;
        for step in 0..STEPS {
            let what = self.random.below(16);
            let done = match what {
                0..=3 => self.next_night(),
                4 => self.late_night(),
                5 => self.replace(true),
                6 => self.replace(false),
                7 => self.rerun(),
                8 => self.make_stale_anew(),
                9..=12 => self.forget_ids(),
                13 => self.forget_nights(),
                14 => self.expect(&["store", "index"]).map(drop),
                _ => self.tidy(),
            };
            let all = done.and_then(|()| self.ask()).and_then(|()| self.compare());
            all.map_err(|e| format!("step {step} ({what}): {e}"))?;
        }
        self.make_stale_anew()?;
        self.compare()?;
        let found = self.expect(&["check"])?;
        require!(found["status"] == "sound", "check: {found}");
        Ok(())
    }

    fn days(&self) -> Result<Vec<u64>> {
        self.oracle.nights.keys().map(|dt| day_of(dt)).collect()
    }

    fn any_night(&mut self) -> Option<String> {
        let at = self.below(self.oracle.nights.len());
        self.oracle.nights.keys().nth(at).cloned()
    }

    /// Writes the documents of a night.
    fn documents(&mut self, dt: &str) -> Result<BTreeMap<String, usize>> {
        let mut input = BTreeMap::new();
        for _ in 0..3 + self.below(12) {
            let (id, text) = (self.below(IDS.len()), self.below(self.oracle.texts.len()));
            input.insert(IDS[id].to_owned(), text);
        }
        let text_of = |text: &usize| self.oracle.texts[*text].text.as_str();
        let rows: Vec<_> = input.iter().map(|(id, text)| (Some(id.as_str()), Some(text_of(text)))).collect();
        write_file(&self.scratch.path().join(format!("documents/dt={dt}/part-0.parquet")), &parquet_of(&rows)?)?;
        Ok(input)
    }

    fn publish(&mut self, dt: &str, more: &[&str]) -> Result<()> {
        let input = self.documents(dt)?;
        let words = [&["run", "--dt", dt, "--no-breakers", "--spill-dir", "spill"], more].concat();
        let done = self.expect(&words)?;
        require!(done["status"] == "published", "{dt}: {done}");
        self.oracle.publish(dt, input);
        self.done.nights += 1;
        Ok(())
    }

    fn new_night(&mut self, day: u64) -> Result<()> {
        self.publish(&date(day), &[])
    }

    fn next_night(&mut self) -> Result<()> {
        let newest = self.days()?.into_iter().max().unwrap_or(0);
        let gap = self.random.below(3);
        self.new_night(newest + 1 + gap)
    }

    /// A night between others, which makes the later ones stale.
    fn late_night(&mut self) -> Result<()> {
        let days = self.days()?;
        let newest = days.iter().copied().max().unwrap_or(0);
        let free: Vec<u64> = (self.first..newest).filter(|day| !days.contains(day)).collect();
        let at = self.below(free.len());
        let Some(&day) = free.get(at) else { return self.next_night() };
        self.publish(&date(day), &["--late"])?;
        self.later_are_stale(&date(day))
    }

    /// Makes a night again: from other documents, or from those that lie there, among which forgotten ones come back.
    fn replace(&mut self, with_others: bool) -> Result<()> {
        let Some(dt) = self.any_night() else { return Ok(()) };
        if with_others {
            self.publish(&dt, &["--replace"])?;
            return self.later_are_stale(&dt);
        }
        self.expect(&["run", "--dt", &dt, "--no-breakers", "--replace"])?;
        self.made_anew(&dt)
    }

    fn made_anew(&mut self, dt: &str) -> Result<()> {
        let night = self.oracle.nights.get(dt).ok_or_else(|| format!("{dt} is no night"))?;
        let input = night.input.clone();
        self.oracle.publish(dt, input);
        self.done.nights += 1;
        Ok(())
    }

    fn stale(&self) -> Result<Vec<String>> {
        let info = self.expect(&["store", "info"])?;
        let nights = info["nights"].as_array().ok_or("no nights")?.iter();
        Ok(nights
            .filter(|night| night["stale"] == true)
            .filter_map(|night| Some(night["dt"].as_str()?.to_owned()))
            .collect())
    }

    fn later_are_stale(&self, dt: &str) -> Result<()> {
        let stale = self.stale()?;
        for later in self.oracle.nights.keys().filter(|later| later.as_str() > dt) {
            require!(stale.contains(later), "{later} is not stale after {dt} was added or replaced: {stale:?}");
        }
        let found = self.expect(&["check"])?;
        require!(found["stale"] == json!(stale), "check names other stale nights than {stale:?}: {found}");
        Ok(())
    }

    /// Runs a night as it is: a stale one is refused, any other is published already.
    fn rerun(&mut self) -> Result<()> {
        let Some(dt) = self.any_night() else { return Ok(()) };
        let ran = self.command(&["run", "--dt", &dt, "--no-breakers"])?;
        if self.stale()?.contains(&dt) {
            return ran.ends_with(&[73], &["so it is stale"]);
        }
        ran.ends_with(&[0], &[])?;
        require!(ran.summary()["status"] == "already_published", "{dt}: {}", ran.stdout);
        Ok(())
    }

    fn make_stale_anew(&mut self) -> Result<()> {
        let before = self.stale()?;
        let done = self.expect(&["run", "--stale", "--no-breakers"])?;
        let nights = done["nights"].as_array().ok_or("no nights")?;
        let made: Vec<String> = nights.iter().filter_map(|night| Some(night["dt"].as_str()?.to_owned())).collect();
        require!(before.first() == made.first(), "stale were {before:?}, made anew {made:?}");
        for dt in &made {
            self.made_anew(dt)?;
        }
        let stale = self.stale()?;
        require!(stale.is_empty(), "stale still: {stale:?}");
        Ok(())
    }

    /// Forgets ids by a plain list or by JSON lines, which alone can name every id.
    fn forget_ids(&mut self) -> Result<()> {
        // Half of the lists are of the ids that are lines of others, and of these.
        let among = if self.random.below(2) == 0 { LINES } else { IDS.len() };
        let mut ids: BTreeSet<String> = (0..1 + self.below(5)).map(|_| IDS[self.below(among)].to_owned()).collect();
        ids.insert("nobody".to_owned());
        let is_plain = self.random.below(2) == 0;
        let stale = self.stale()?;
        let words = |name| ["store", "forget", "--ids", name];
        let ids = if is_plain {
            let ending = if self.random.below(4) == 0 { "\r\n" } else { "\n" };
            let list: String = ids.iter().flat_map(|id| [id, ending]).collect();
            std::fs::write(self.scratch.path().join("ids"), &list)?;
            if let Some(id) = self.oracle.ambiguous(&list) {
                let escaped = Value::from(id.as_str()).to_string();
                self.command(&words("ids"))?.ends_with(&[64], &[".jsonl"]).map_err(|e| format!("{escaped}: {e}"))?;
                self.done.refused_lists += 1;
                return Ok(());
            }
            let lines = list.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
            let lines: BTreeSet<String> = lines.filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
            self.expect(&words("ids"))?;
            lines
        } else {
            let line = |id: &String| format!("{}\n", json!({ "id": id }));
            std::fs::write(self.scratch.path().join("ids.jsonl"), ids.iter().map(line).collect::<String>())?;
            self.expect(&words("ids.jsonl"))?;
            ids
        };
        self.oracle.forget(&ids);
        self.done.forgettings_of_ids += 1;
        let now = self.stale()?;
        require!(now == stale, "{stale:?} were stale, {now:?} are since ids were forgotten");
        Ok(())
    }

    fn forget_nights(&mut self) -> Result<()> {
        let Some(dt) = self.any_night() else { return Ok(()) };
        let stale = self.stale()?;
        self.expect(&["store", "forget", "--before", &dt])?;
        self.oracle.nights.retain(|night, _| *night >= dt);
        self.first = self.first.max(day_of(&dt)?);
        self.done.forgettings_of_nights += 1;
        let (now, left): (Vec<String>, Vec<String>) =
            (self.stale()?, stale.into_iter().filter(|night| *night >= dt).collect());
        require!(now == left, "{left:?} were stale, {now:?} are since nights were forgotten");
        Ok(())
    }

    fn tidy(&mut self) -> Result<()> {
        self.expect(&["store", "compact", "--spill-dir", "spill"])?;
        self.expect(&["store", "gc", "--grace-hours", "0"]).map(drop)
    }

    /// Asks for texts and fingerprints, and compares each answer.
    fn ask(&mut self) -> Result<()> {
        let n_texts = self.oracle.texts.len();
        let n = if self.random.below(8) == 0 { 3 * n_texts } else { 1 + self.below(6) };
        let (mut lines, mut asked) = (String::new(), Vec::new());
        for _ in 0..n {
            let text = self.below(n_texts);
            let Known { text: words, kind } = &self.oracle.texts[text];
            let (line, query) = match (kind, self.random.below(5)) {
                (Kind::Long { fingerprint, sketch }, way @ 1..) => {
                    let sketch: String = sketch.iter().map(|byte| format!("{byte:02x}")).collect();
                    // As answers have it, which may be decimal digits alone; and other ways to write it.
                    let hex = format!("{fingerprint:016x}");
                    match way {
                        1 => (json!({ "fingerprint": hex, "sketch": sketch }), AskedQuery::Text(text)),
                        2 => (json!({ "fingerprint": hex }), AskedQuery::Fingerprint(*fingerprint)),
                        3 => (json!({ "fingerprint": fingerprint }), AskedQuery::Fingerprint(*fingerprint)),
                        _ => (json!({ "fingerprint": format!("0x{hex}") }), AskedQuery::Fingerprint(*fingerprint)),
                    }
                }
                _ => (json!({ "text": words }), AskedQuery::Text(text)),
            };
            let has_text = line.get("text").is_some();
            lines += &format!("{line}\n");
            asked.push((query, has_text, line));
        }
        std::fs::write(self.scratch.path().join("queries.jsonl"), lines)?;
        let ran = Run::new(&self.common.nearprint, self.scratch.path(), &["query", "--jsonl", "queries.jsonl"])
            .args(&["--config", "job.toml"])
            .run()?;
        ran.ends_with(&[0], &[]).map_err(|e| format!("query: {e}"))?;
        let answers: Vec<Value> = ran.stdout.lines().map(serde_json::from_str).collect::<serde_json::Result<_>>()?;
        require!(answers.len() == asked.len(), "{} answers to {} queries", answers.len(), asked.len());
        for (answer, (query, has_text, line)) in answers.iter().zip(&asked) {
            let mut expected = self.oracle.answer(query);
            if !has_text {
                // Without a text, nobody can say whether it is the same.
                expected.iter_mut().for_each(|found| found["exact"] = false.into());
            }
            require!(answer["matches"] == json!(expected), "asked {line}: expected {}, got {answer}", json!(expected));
            require!(answer["n_matches"] == expected.len(), "asked {line}: {answer}");
        }
        self.done.queries += asked.len() as u64;
        Ok(())
    }

    /// Compares the tables with the oracle: all nights, and no other.
    fn compare(&mut self) -> Result<()> {
        let output = self.scratch.path().join("results");
        for day in 0..=self.days()?.into_iter().max().unwrap_or(0) {
            let dt = date(day);
            let Some(night) = self.oracle.nights.get(&dt) else {
                let files = delta::night(&output, "decisions", &dt)?;
                require!(files.is_empty(), "{dt} is in the tables");
                continue;
            };
            let decided = decisions(&output, &dt)?;
            for (id, expected) in &night.decided {
                let got = decided.get(id).ok_or_else(|| format!("{dt}: no decision about {id:?}"))?;
                require!(got == expected, "{dt}: {id:?}: expected {expected:?}, got {got:?}");
            }
            require!(decided.len() == night.decided.len(), "{dt}: {decided:?}, expected {:?}", night.decided);
            let pairs = pairs(&output, &dt)?;
            require!(pairs == night.pairs, "{dt}: pairs {pairs:?}, expected {:?}", night.pairs);
            self.done.compared += 1;
        }
        Ok(())
    }
}

/// Returns the word of the dataset that is meant.
fn word(found: &str, known: &[&'static str]) -> Result<&'static str> {
    known.iter().copied().find(|word| *word == found).ok_or_else(|| format!("no such word: {found}").into())
}

/// Reads the decisions of a night; unlike other readers of the trials, it tells NULL from an empty text.
fn decisions(output: &Path, dt: &str) -> Result<BTreeMap<String, Decided>> {
    const DECISIONS: [&str; 3] = ["keep", "drop", "skip"];
    const REASONS: [&str; 7] = ["unique", "canonical", "fuller", "too_short", "exact", "near", "empty"];
    let mut decided = BTreeMap::new();
    for path in delta::night(output, "decisions", dt)? {
        for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(output.join(path))?)?.build()? {
            let batch = batch?;
            let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("no column {name}"));
            let text = |name: &str, row: usize| -> Result<Option<String>> {
                let values = column(name)?.as_string::<i32>();
                Ok(values.is_valid(row).then(|| values.value(row).to_owned()))
            };
            let distances = column("distance")?.as_primitive::<Int32Type>();
            let sizes = column("cluster_size")?.as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let reason = word(&text("reason", row)?.ok_or("no reason")?, &REASONS)?;
                let of = Decided {
                    decision: word(&text("decision", row)?.ok_or("no decision")?, &DECISIONS)?,
                    canonical: text("canonical_id", row)?,
                    distance: distances.is_valid(row).then(|| distances.value(row)),
                    reason,
                    cluster: text("cluster_id", row)?.map(|cluster| (cluster, sizes.value(row))),
                };
                decided.insert(text("doc_id", row)?.ok_or("no doc_id")?, of);
            }
        }
    }
    Ok(decided)
}

fn pairs(output: &Path, dt: &str) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for path in delta::night(output, "pairs", dt)? {
        for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(output.join(path))?)?.build()? {
            let batch = batch?;
            let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("no column {name}"));
            let [a, b, scope] =
                ["id_a", "id_b", "scope"].map(|name| column(name).map(|column| column.as_string::<i32>()));
            let (a, b, scope) = (a?, b?, scope?);
            let [distance, sketch] =
                ["distance", "sketch_distance"].map(|name| column(name).map(|c| c.as_primitive::<Int32Type>()));
            let (distance, sketch) = (distance?, sketch?);
            for row in 0..batch.num_rows() {
                pairs.push(Pair {
                    distance: u32::try_from(distance.value(row))?,
                    a: a.value(row).to_owned(),
                    b: b.value(row).to_owned(),
                    sketch_distance: u32::try_from(sketch.value(row))?,
                    is_new: scope.value(row) == "new_new",
                });
            }
        }
    }
    Ok(pairs)
}
