//! Random histories of a corpus against its definition: recrawls, late, replaced, dropped and forgotten nights, compaction. After
//! each of them every dropped document has a representative that is kept, with the text for which it was dropped.
//!
//! `NEARPRINT_HISTORIES` is their number, and `NEARPRINT_FIRST_HISTORY` the seed of the first.

use std::collections::{BTreeMap, BTreeSet};

use nearprint_harness::random::Random;
use nearprint_profile as profile;
use nearprint_profile::{Outcome, TextFingerprinter};

use crate::changes::assert_changes_fold;
use crate::oracle::{
    Decided, Known, MAX_LOST_SHARE, all_pairs, assert_redecided, decide, known, lost, outcome_of, redecide, text_hash,
};
use crate::orphans::corpus;
use crate::support::{Night, nearprint_in, text};

/// A night as the definitions make it.
struct Made {
    texts: BTreeMap<String, String>,
    documents: BTreeMap<String, Known>,
    decided: BTreeMap<String, Decided>,
    /// The states that it decided again, by id, with the dates of their nights.
    again: BTreeMap<String, (String, Known)>,
    published_again: BTreeMap<String, (Decided, String, &'static str)>,
    /// The families of its own documents, and those of documents that it decided again.
    families: BTreeMap<String, String>,
    families_again: BTreeMap<String, String>,
}

struct History {
    night: Night,
    fingerprinter: TextFingerprinter,
    nights: BTreeMap<String, Made>,
    keep_nights: Option<usize>,
    n_orphaned: usize,
    n_restored: usize,
}

fn draw(random: &mut Random) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for _ in 0..2 + random.below(8) {
        let mut words: Vec<String> = text(random.below(3), 60).split(' ').map(str::to_owned).collect();
        for _ in 0..random.below(2) * random.below(2) {
            let at = usize::try_from(random.below(60)).unwrap();
            words[at] = format!("e{}", random.below(2));
        }
        for _ in 0..random.below(2) * random.below(2) * random.below(8) {
            words.push(format!("more{}", random.below(3)));
        }
        let made = match random.below(8) {
            0 => format!("short {}", random.below(2)),
            1 => " ".to_owned(),
            _ => words.join(" "),
        };
        texts.insert(format!("d{}", random.below(12)), made);
    }
    texts
}

impl History {
    fn dates(&self) -> Vec<&str> {
        self.nights.keys().map(String::as_str).collect()
    }

    /// The newest state of each id in the nights before a date, decided by the newest of these, with its date.
    fn view(&self, before: &str) -> BTreeMap<String, (String, Known)> {
        let mut view: BTreeMap<String, (String, Known)> = BTreeMap::new();
        for (dt, made) in self.nights.range(..before.to_owned()) {
            view.extend(made.documents.iter().map(|(id, known)| (id.clone(), (dt.clone(), known.clone()))));
        }
        for (_, made) in self.nights.range(..before.to_owned()) {
            for (id, (of_dt, known)) in &made.again {
                if let Some(state) = view.get_mut(id)
                    && state.0 == *of_dt
                {
                    state.1 = known.clone();
                }
            }
        }
        view
    }

    /// The families of the newest states of all ids in the nights before a date.
    fn families(&self, before: &str) -> BTreeMap<String, String> {
        let view = self.view(before);
        let mut families = BTreeMap::new();
        for (_, made) in self.nights.range(..before.to_owned()) {
            families.extend(made.families.clone());
        }
        for (_, made) in self.nights.range(..before.to_owned()) {
            for (id, family) in &made.families_again {
                if view.get(id).is_some_and(|(of_dt, _)| *of_dt == made.again[id].0) {
                    families.insert(id.clone(), family.clone());
                }
            }
        }
        families
    }

    /// Makes a night by the definitions, from the nights before it.
    fn make(&mut self, dt: &str, texts: &BTreeMap<String, String>) {
        let mut dates: BTreeSet<&str> = self.nights.keys().map(String::as_str).collect();
        dates.insert(dt);
        let leaving: BTreeSet<String> = match self.keep_nights {
            Some(n) => dates.iter().rev().skip(n).map(|dt| (*dt).to_owned()).collect(),
            None => BTreeSet::new(),
        };
        let of = |text: &String| self.fingerprinter.fingerprint(text);
        let outcome = |text: &String| outcome_of(&self.fingerprinter, text);
        let tonight: BTreeMap<String, Outcome> = texts.iter().map(|(id, t)| (id.clone(), outcome(t))).collect();
        let lengths: BTreeMap<&String, u64> = texts.iter().map(|(id, t)| (id, of(t).length)).collect();
        let (mut existing, mut forgotten, mut earlier) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (id, (of_dt, known)) in self.view(dt) {
            let of_id = if tonight.contains_key(&id) {
                &mut earlier
            } else if leaving.contains(&of_dt) {
                &mut forgotten
            } else {
                &mut existing
            };
            of_id.insert(id, known);
        }
        let pairs = all_pairs(&tonight, &existing, true);
        let rank = |id: &String| (!earlier.get(id).is_some_and(|k: &Known| k.kept), std::cmp::Reverse(lengths[id]));
        let decided = decide(&tonight, &existing, rank, &pairs);
        let published_again = redecide(&tonight, &decided, &existing, &forgotten);
        let now = |id: &str| tonight.get(id).or_else(|| existing.get(id).map(|known| &known.outcome));
        let of_night: BTreeMap<String, String> = self.view(dt).into_iter().map(|(id, (dt, _))| (id, dt)).collect();
        let again = published_again.iter().map(|(id, (decided, ..))| {
            (id.clone(), (of_night[id].clone(), known(&existing[id].outcome, decided, now)))
        });
        let again: BTreeMap<String, (String, Known)> = again.collect();
        let documents = tonight.iter().map(|(id, outcome)| (id.clone(), known(outcome, &decided[id], now))).collect();
        let before = self.families(dt);
        let has_text = |outcome: &Outcome| text_hash(outcome).is_some();
        let mut families: BTreeMap<String, String> = BTreeMap::new();
        for (id, outcome) in tonight.iter().filter(|(id, _)| decided[*id].0 == "keep") {
            let goes_on = |k: &Known| has_text(&k.outcome) && (k.kept || text_hash(&k.outcome) == text_hash(outcome));
            let family = if earlier.get(id).is_some_and(goes_on) { &before[id] } else { id };
            families.insert(id.clone(), family.clone());
        }
        for (id, (decision, canonical, ..)) in &decided {
            if *decision == "drop" {
                let family = families.get(canonical).unwrap_or_else(|| &before[canonical]).clone();
                families.insert(id.clone(), family);
            }
        }
        let family_again = |(id, (decided, ..)): (&String, &(Decided, String, &'static str))| {
            let representative = if decided.0 == "keep" { id } else { &decided.1 };
            let family = families.get(representative).unwrap_or_else(|| &before[representative]);
            (id.clone(), family.clone())
        };
        let families_again = published_again.iter().map(family_again).collect();
        self.n_orphaned += again.len();
        self.n_restored += again.values().filter(|(_, known)| known.kept).count();
        let made = Made { texts: texts.clone(), documents, decided, again, published_again, families, families_again };
        self.nights.retain(|dt, _| !leaving.contains(dt));
        self.nights.insert(dt.to_owned(), made);
    }

    /// Writes the documents of a night and runs it, in the store and by the definitions.
    fn run(&mut self, dt: &str, texts: &BTreeMap<String, String>, more: &[&str]) {
        let _ = std::fs::remove_dir_all(self.night.path().join(format!("documents/dt={dt}")));
        let rows: Vec<(&str, &str)> = texts.iter().map(|(id, t)| (id.as_str(), t.as_str())).collect();
        self.night.documents(dt, &rows);
        let done = self.night.run(dt, &[&["--no-breakers"], more].concat()).expect_success().json();
        self.make(dt, texts);
        let made = &self.nights[dt].again;
        let n_restored = made.values().filter(|(_, known)| known.kept).count() as u64;
        let counted = |name: &str| done[name].as_u64().unwrap_or(0);
        assert_eq!((counted("n_orphaned"), counted("n_restored")), (made.len() as u64, n_restored));
    }

    /// Makes all nights after a date anew, whose earlier nights have changed.
    fn run_stale(&mut self, after: &str) {
        let args = ["run", "--config", "job.toml", "--stale", "--no-breakers"];
        nearprint_in(self.night.path(), &args).expect_success();
        let later: Vec<String> = self.nights.keys().filter(|dt| dt.as_str() > after).cloned().collect();
        for dt in later {
            let texts = self.nights[&dt].texts.clone();
            self.make(&dt, &texts);
        }
    }

    /// Holds what is published to the definitions, and the corpus to its promise.
    fn assert_is_as_defined(&self, context: &str) {
        for (dt, made) in &self.nights {
            let context = format!("{context}, {dt}");
            for (id, got) in self.night.decisions(dt) {
                let (decision, canonical, distance, reason) = &made.decided[&id];
                assert_eq!(got[..4], [*decision, canonical, distance, *reason], "{context}, {id}");
            }
            assert_redecided(&self.night, dt, &made.published_again, &context);
            let family = |row: Vec<String>| (row[0].clone(), row.last().unwrap().clone());
            let families: BTreeMap<String, String> = self
                .night
                .published(dt, "decisions")
                .into_iter()
                .map(family)
                .filter(|(_, of)| !of.is_empty())
                .collect();
            assert_eq!(families, made.families, "{context}: families");
            let again: BTreeMap<String, String> =
                self.night.published(dt, "redecided").into_iter().map(family).collect();
            assert_eq!(again, made.families_again, "{context}: families of documents that were decided again");
        }
        assert_changes_fold(&self.night, &self.dates(), context);
        let corpus = self.view("9999-12-31");
        for (id, (dt, known)) in &corpus {
            if let Some((canonical, text)) = &known.dropped_for {
                let of = corpus.get(canonical).map(|(_, of)| (of.kept, text_hash(&of.outcome)));
                assert_eq!(of, Some((true, *text)), "{context}: {id} of {dt} is dropped for {canonical}");
            }
        }
    }
}

impl History {
    /// Holds the published corpus to its promise, without the definitions of nights: each dropped document would be dropped
    /// for the document that represents it, which is kept.
    fn assert_promise(&self, texts: &BTreeMap<String, BTreeMap<String, String>>, context: &str) {
        let listed = nearprint_in(self.night.path(), &["store", "info", "store", "--json"]).expect_success().json();
        let nights = listed["nights"].as_array().unwrap().iter().map(|night| night["dt"].as_str().unwrap().to_owned());
        let nights: Vec<String> = nights.collect();
        let nights: Vec<&str> = nights.iter().map(String::as_str).collect();
        assert_changes_fold(&self.night, &nights, context);
        let corpus = corpus(&self.night, &nights);
        let outcome = |id: &String| outcome_of(&self.fingerprinter, &texts[&corpus[id][0]][id]);
        for (id, [dt, decision, canonical, _]) in &corpus {
            if decision == "drop" {
                let context = format!("{context}: {id} of {dt} is dropped for {canonical}");
                assert_eq!(corpus.get(canonical).map(|state| state[1].as_str()), Some("keep"), "{context}");
                let kept = known(&outcome(canonical), &("keep", String::new(), String::new(), "unique"), |_| None);
                let (one, other) = ([(id.clone(), outcome(id))].into(), [(canonical.clone(), kept)].into());
                let decided = decide(&one, &other, Clone::clone, &all_pairs(&one, &other, false));
                let both = [(id.clone(), outcome(id)), (canonical.clone(), outcome(canonical))].into();
                let by_judge = || {
                    let is_pair = !all_pairs(&both, &BTreeMap::new(), true).is_empty();
                    is_pair && lost(&outcome(id), &outcome(canonical), true) <= MAX_LOST_SHARE
                };
                assert!(decided[id].0 == "drop" || by_judge(), "{context}");
            }
        }
    }
}

#[test]
fn no_text_is_lost_in_any_history() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let first = number("NEARPRINT_FIRST_HISTORY").unwrap_or(0);
    let (mut n_orphaned, mut n_restored, mut n_nights) = (0, 0, 0);
    for seed in first..first + number("NEARPRINT_HISTORIES").unwrap_or(12) {
        let mut random = Random::new(seed);
        let keep_nights = (seed % 3 == 0).then(|| 1 + usize::try_from(random.below(3)).unwrap());
        let keep = keep_nights.map_or(String::new(), |n| format!("keep_nights = {n}\n"));
        let fingerprinter =
            TextFingerprinter::try_new(profile::by_name("default").unwrap(), &Default::default()).unwrap();
        let night = Night::new(&format!("max_lost_share = {MAX_LOST_SHARE}\n{keep}"));
        let nights = BTreeMap::new();
        let mut history = History { night, fingerprinter, nights, keep_nights, n_orphaned: 0, n_restored: 0 };
        let (mut left_out, mut texts) = (None, BTreeMap::new());
        for day in 10..15 {
            let dt = format!("2026-11-{day}");
            let context = format!("seed {seed}, day {day}");
            if keep_nights.is_none() && left_out.is_none() && random.below(5) == 0 {
                left_out = Some(dt);
                continue;
            }
            let drawn = draw(&mut random);
            history.run(&dt, &drawn, &[]);
            texts.insert(dt.clone(), drawn);
            history.assert_is_as_defined(&context);
            n_nights += 1;
            match random.below(8) {
                // Of what the night forgot when it was made first, the definitions know more than the store.
                0 if keep_nights.is_some() => {
                    let again = draw(&mut random);
                    let rows: Vec<(&str, &str)> = again.iter().map(|(id, t)| (id.as_str(), t.as_str())).collect();
                    let _ = std::fs::remove_dir_all(history.night.path().join(format!("documents/dt={dt}")));
                    history.night.documents(&dt, &rows).run(&dt, &["--no-breakers", "--replace"]).expect_success();
                    texts.insert(dt, again);
                    history.assert_promise(&texts, &format!("{context}, made again"));
                    break;
                }
                0 => {
                    history.run(&dt, &draw(&mut random), &["--replace"]);
                    history.assert_is_as_defined(&format!("{context}, replaced"));
                }
                1 if keep_nights.is_none() && history.nights.len() > 1 => {
                    let dates: Vec<String> = history.nights.keys().cloned().collect();
                    let dropped = &dates[usize::try_from(random.below(dates.len() as u64)).unwrap()];
                    let args = ["store", "drop-night", "--config", "job.toml", "--dt", dropped];
                    nearprint_in(history.night.path(), &args).expect_success();
                    history.nights.remove(dropped);
                    assert_changes_fold(&history.night, &history.dates(), &format!("{context}, {dropped} stale"));
                    history.run_stale(dropped);
                    history.assert_is_as_defined(&format!("{context}, {dropped} dropped"));
                }
                2 => {
                    nearprint_in(history.night.path(), &["store", "compact", "store"]).expect_success();
                }
                3 => {
                    if let Some(late) = left_out.take_if(|late| late != "never") {
                        history.run(&late, &draw(&mut random), &["--late"]);
                        assert_changes_fold(&history.night, &history.dates(), &format!("{context}, {late} late"));
                        history.run_stale(&late);
                        history.assert_is_as_defined(&format!("{context}, {late} late"));
                        left_out = Some("never".to_owned());
                    }
                }
                _ => {}
            }
        }
        let checked = nearprint_in(history.night.path(), &["check", "--config", "job.toml", "--json"]);
        assert_eq!(checked.expect_success().json()["status"], "sound", "seed {seed}");
        n_orphaned += history.n_orphaned;
        n_restored += history.n_restored;
    }
    assert!(n_orphaned > 20 && n_restored > 5, "{n_orphaned} {n_restored}");
    println!("{n_nights} nights, {n_orphaned} documents decided again, {n_restored} restored");
}
