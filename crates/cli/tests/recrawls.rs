//! What a document is to the nights before: `recrawl`, `first_seen` and `last_changed`, in decisions, run files and counts.

use std::collections::{BTreeMap, BTreeSet};

use nearprint_harness::folder::rows;
use nearprint_harness::random::Random;
use serde_json::Value;

use crate::support::{Night, nearprint_in, text, write_documents};

/// A state of a page: which text it has, if it has one, since when, and when the id was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    text: Option<u64>,
    recrawl: &'static str,
    first_seen: String,
    last_changed: String,
}

type Pages = BTreeMap<String, Option<u64>>;

/// A store as the definitions have it: the states that each night published.
#[derive(Debug, Default, Clone)]
struct Naive(BTreeMap<String, BTreeMap<String, State>>);

impl Naive {
    fn publish(&mut self, dt: &str, pages: &Pages) {
        let published = pages.iter().map(|(id, text)| {
            let earlier: Vec<&State> = self
                .0
                .iter()
                .filter(|(night, _)| night.as_str() < dt)
                .filter_map(|(_, states)| states.get(id))
                .collect();
            let first_seen = earlier.iter().map(|state| state.first_seen.as_str()).min().unwrap_or(dt).to_owned();
            let (recrawl, last_changed) = match earlier.last() {
                None => ("new", dt),
                Some(newest) if newest.text == *text => ("same", newest.last_changed.as_str()),
                Some(_) => ("changed", dt),
            };
            (id.clone(), State { text: *text, recrawl, first_seen, last_changed: last_changed.to_owned() })
        });
        let published = published.collect();
        self.0.insert(dt.to_owned(), published);
    }

    /// What all nights would say if each had been run in order of date, and none had been forgotten.
    fn in_order(&self) -> Self {
        let mut anew = Self::default();
        for (dt, states) in &self.0 {
            anew.publish(dt, &states.iter().map(|(id, state)| (id.clone(), state.text)).collect());
        }
        anew
    }

    fn counts(&self, dt: &str) -> [Option<u64>; 4] {
        let n = |recrawl| self.0[dt].values().filter(|state| state.recrawl == recrawl).count() as u64;
        [n("new"), n("same"), n("changed"), n("same") + n("changed")].map(Some)
    }
}

fn counts(summary: &Value) -> [Option<u64>; 4] {
    ["n_new", "n_same", "n_changed", "n_same_id"].map(|key| summary[key].as_u64())
}

type Dates = BTreeMap<String, [String; 3]>;

/// (`recrawl`, `first_seen`, `last_changed`) by id, as the decisions of a night have them.
fn decided(night: &Night, dt: &str) -> Dates {
    night
        .published(dt, "decisions")
        .into_iter()
        .map(|row| (row[0].clone(), [9, 10, 11].map(|i| row[i].clone())))
        .collect()
}

fn expected(naive: &Naive, dt: &str) -> Dates {
    let state = |state: &State| [state.recrawl.to_owned(), state.first_seen.clone(), state.last_changed.clone()];
    naive.0[dt].iter().map(|(id, of)| (id.clone(), state(of))).collect()
}

/// (`first_seen`, `last_changed`) by id, as the run files of a night have them.
fn stored(night: &Night, dt: &str) -> BTreeMap<String, [String; 2]> {
    let info = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
    let of_night = info["nights"].as_array().unwrap().iter().find(|of| of["dt"] == dt).unwrap();
    let run = night.path().join("store/runs").join(of_night["run"].as_str().unwrap());
    let documents = ["fingerprints", "short", "empty"].iter().flat_map(|name| rows(&run.join(name)).unwrap());
    let documents = documents.map(|row| row.into_iter().collect::<BTreeMap<String, String>>());
    documents
        .map(|mut row| ["doc_id", "first_seen", "last_changed"].map(|name| row.remove(name).unwrap()))
        .map(|[id, first_seen, last_changed]| (id, [first_seen, last_changed]))
        .collect()
}

fn agree(night: &Night, naive: &Naive, dt: &str, context: &str) {
    let expected = expected(naive, dt);
    assert_eq!(decided(night, dt), expected, "{context}: decisions of {dt}");
    let dates = expected.into_iter().map(|(id, [_, first_seen, last_changed])| (id, [first_seen, last_changed]));
    assert_eq!(stored(night, dt), dates.collect(), "{context}: run files of {dt}");
}

/// Writes pages. Of one text there are several spellings, which normalisation makes one.
fn write(night: &Night, dt: &str, pages: &Pages, random: &mut Random) {
    let texts: Vec<(String, Option<String>)> = pages
        .iter()
        .map(|(id, page)| {
            let spelled = page.map(|seed| if seed % 5 == 0 { format!("Short {seed}") } else { text(seed, 40) });
            let spelled = match (spelled, random.below(3)) {
                (Some(text), 0) => Some(text.replace(' ', " \n ").to_uppercase()),
                (Some(text), _) => Some(text),
                (None, 0) => Some(" \t".to_owned()),
                (None, _) => None,
            };
            (id.clone(), spelled)
        })
        .collect();
    let rows: Vec<(Option<&str>, Option<&str>)> =
        texts.iter().map(|(id, text)| (Some(id.as_str()), text.as_deref())).collect();
    write_documents(&night.path().join(format!("documents/dt={dt}/part-0.parquet")), &rows);
}

/// Pages of a night: of some ids the text that they had last, another one, one of another id, or none.
fn crawled(now: &mut Pages, random: &mut Random) -> Pages {
    let mut pages = Pages::new();
    for id in (0..9).map(|n| format!("p{n}")) {
        let known = now.get(&id).copied();
        match random.below(8) {
            0..=2 => continue,
            3 => drop(now.insert(id.clone(), Some(random.below(200)))),
            4 => drop(now.insert(id.clone(), None)),
            5 => drop(now.insert(id.clone(), Some(7))),
            _ => drop(now.insert(id.clone(), known.unwrap_or_else(|| Some(random.below(200))))),
        }
        pages.insert(id.clone(), now[&id]);
    }
    pages.entry("always".to_owned()).or_insert(Some(1));
    pages
}

/// A history of one store, beside what the definitions say.
struct History {
    night: Night,
    naive: Naive,
    pages: BTreeMap<String, Pages>,
    /// The last text of each page.
    now: Pages,
    forgotten_before: String,
    has_forgotten: bool,
    random: Random,
    context: String,
    n_published: BTreeMap<&'static str, u64>,
}

impl History {
    fn new(seed: u64) -> Self {
        Self {
            night: Night::new(""),
            naive: Naive::default(),
            pages: BTreeMap::new(),
            now: Pages::new(),
            forgotten_before: String::new(),
            has_forgotten: false,
            random: Random::new(seed),
            context: format!("seed {seed}"),
            n_published: BTreeMap::new(),
        }
    }

    fn store(&self, args: &[&str]) -> Value {
        let args = [&["store", args[0], "store"], &args[1..], &["--json"]].concat();
        nearprint_in(self.night.path(), &args).expect_success().json()
    }

    /// A published night, if there is one.
    fn some_night(&mut self) -> Option<String> {
        let nights: Vec<&String> = self.naive.0.keys().collect();
        let at = self.random.below(nights.len().max(1) as u64) as usize;
        nights.get(at).map(|dt| (*dt).clone())
    }

    fn publish(&mut self, dt: &str, more: &[&str]) {
        let pages = crawled(&mut self.now, &mut self.random);
        write(&self.night, dt, &pages, &mut self.random);
        self.pages.insert(dt.to_owned(), pages);
        let done = self.night.run(dt, &[&["--no-breakers"], more].concat()).expect_success().json();
        assert_eq!(done["status"], "published", "{}: {done}", self.context);
        self.made(dt);
        assert_eq!(counts(&done), self.naive.counts(dt), "{}: {done}", self.context);
    }

    /// A night was made from the state that the store has.
    fn made(&mut self, dt: &str) {
        self.naive.publish(dt, &self.pages[dt].clone());
        agree(&self.night, &self.naive, dt, &self.context);
        for state in self.naive.0[dt].values() {
            *self.n_published.entry(state.recrawl).or_default() += 1;
        }
    }

    fn step(&mut self) {
        let newest = self.naive.0.keys().next_back().cloned().unwrap_or_default();
        match self.random.below(14) {
            0..=4 => {
                // The next date, or one that leaves room for a late night.
                let day = newest.get(8..).map_or(1, |day| day.parse::<u64>().unwrap() + 1 + self.random.below(2));
                if day <= 28 {
                    self.publish(&format!("2026-10-{day:02}"), &[]);
                }
            }
            5..=7 => {
                let free = (1..28).map(|day| format!("2026-10-{day:02}"));
                let free =
                    free.filter(|dt| *dt < newest && *dt > self.forgotten_before && !self.naive.0.contains_key(dt));
                let free: Vec<String> = free.collect();
                let at = self.random.below(free.len().max(1) as u64) as usize;
                if let Some(dt) = free.get(at) {
                    self.publish(dt, &["--late"]);
                }
            }
            8 | 9 => {
                if let Some(dt) = self.some_night() {
                    self.publish(&dt, &["--replace"]);
                }
            }
            10 => {
                if let Some(dt) = self.some_night().filter(|_| self.naive.0.len() > 1) {
                    self.store(&["drop-night", "--dt", &dt]);
                    self.naive.0.remove(&dt);
                }
            }
            11 => {
                if let Some(dt) = self.some_night() {
                    self.store(&["forget", "--before", &dt]);
                    self.has_forgotten |= self.naive.0.keys().any(|night| *night < dt);
                    self.naive.0.retain(|night, _| *night >= dt);
                    self.forgotten_before = dt.max(std::mem::take(&mut self.forgotten_before));
                }
            }
            12 if !self.naive.0.is_empty() => self.forget_an_id(),
            13 if !self.naive.0.is_empty() => drop(self.store(&["compact"])),
            _ => {}
        }
    }

    /// One id is forgotten in all nights. What is left of them says what it said.
    fn forget_an_id(&mut self) {
        let id = format!("p{}", self.random.below(9));
        std::fs::write(self.night.path().join("ids"), format!("{id}\n")).unwrap();
        self.store(&["forget", "--ids", "ids"]);
        for (dt, states) in &mut self.naive.0 {
            states.remove(&id);
            agree_with(&self.night, states, dt, &self.context);
        }
        // A night that is made again has the page again: its documents are still there.
    }

    /// All stale nights are made anew, in order of date.
    fn refresh(&mut self) {
        let args = ["run", "--config", "job.toml", "--stale", "--no-breakers", "--json"];
        let done = nearprint_in(self.night.path(), &args).expect_success().json();
        for of in done["nights"].as_array().into_iter().flatten() {
            let dt = of["dt"].as_str().unwrap().to_owned();
            self.naive.publish(&dt, &self.pages[&dt].clone());
        }
        for dt in self.naive.0.keys() {
            agree(&self.night, &self.naive, dt, &self.context);
        }
    }
}

fn agree_with(night: &Night, states: &BTreeMap<String, State>, dt: &str, context: &str) {
    agree(night, &Naive(BTreeMap::from([(dt.to_owned(), states.clone())])), dt, context);
}

/// `NEARPRINT_HISTORIES` is the number of histories, if it is set.
#[test]
fn random_histories_say_what_the_definitions_say() {
    let wanted = std::env::var("NEARPRINT_HISTORIES").ok().map(|n| n.parse::<u64>().unwrap());
    let mut n_published = BTreeMap::<&str, u64>::new();
    for seed in 0..wanted.unwrap_or(5) {
        let mut history = History::new(seed);
        for _ in 0..14 {
            history.step();
        }
        history.refresh();
        history.n_published.iter().for_each(|(recrawl, n)| *n_published.entry(recrawl).or_default() += n);
    }
    let said: BTreeSet<&&str> = n_published.keys().collect();
    assert!(said.len() == 3 && n_published.values().all(|&n| n > 20), "{n_published:?}");
}

#[test]
fn after_late_and_replaced_nights_the_nights_that_are_made_anew_say_what_they_would_have_said_in_order() {
    for seed in 100..104 {
        let mut history = History::new(seed);
        for (dt, late) in [("2026-10-05", false), ("2026-10-09", false), ("2026-10-07", true), ("2026-10-03", true)] {
            history.publish(dt, if late { &["--late"] } else { &[] });
        }
        history.publish("2026-10-05", &["--replace"]);
        history.refresh();
        assert_eq!(history.naive.0, history.naive.in_order().0, "seed {seed}");
    }
}
