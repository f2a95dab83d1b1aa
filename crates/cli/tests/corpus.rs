//! `nearprint filter --corpus` and `--new`: the documents of all nights, each once, and what a night changes in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use nearprint_harness::folder;
use nearprint_harness::random::Random;
use serde_json::{Value, json};

use crate::history::of_the_last_release;
use crate::support::{Night, Ran, command, expect, nearprint_in, snapshot, text, write_documents};

const DAYS: [&str; 4] = ["2026-11-19", "2026-11-20", "2026-11-21", "2026-11-22"];

fn filter(night: &Night, args: &[&str]) -> Ran {
    command(night.path(), &["filter", "--config", "job.toml", "--json"]).args(args).run().unwrap()
}

/// Rows of the files of documents below a folder: night, id and text. Names that begin with `_` are no documents.
fn written(output: &Path) -> BTreeSet<(String, String, String)> {
    let mut rows = BTreeSet::new();
    for night in fs::read_dir(output).unwrap().map(|entry| entry.unwrap().path()) {
        let Some(dt) = night.file_name().unwrap().to_str().unwrap().strip_prefix("dt=").map(str::to_owned) else {
            continue;
        };
        for file in fs::read_dir(&night).unwrap().map(|entry| entry.unwrap().path()) {
            for (id, text) in documents(&file) {
                assert!(rows.insert((dt.clone(), id.clone(), text)), "{id} of {dt} is written once");
            }
        }
    }
    rows
}

/// Ids and texts of a file, by its format.
fn documents(file: &Path) -> Vec<(String, String)> {
    match file.extension().and_then(|e| e.to_str()) {
        Some("parquet") => {
            folder::rows(file).unwrap().into_iter().map(|row| (row[0].1.clone(), row[1].1.clone())).collect()
        }
        Some("jsonl") => {
            let lines = fs::read_to_string(file).unwrap();
            let rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
            rows.map(|row| (text(&row, "id"), text(&row, "text"))).collect()
        }
        _ => Vec::new(),
    }
}

/// The ids that `--new` says to take away.
fn removed(output: &Path) -> BTreeSet<String> {
    let rows = folder::rows(&output.join("_removed")).unwrap();
    let ids: BTreeSet<String> = rows.iter().map(|row| row[0].1.clone()).collect();
    assert_eq!(ids.len(), rows.len(), "each id once");
    ids
}

/// A document of a night: its id and its text, if it has one.
type Page = (String, Option<String>);

/// Writes the documents of a night, as Parquet or JSONL.
fn crawl(night: &Night, dt: &str, pages: &[Page], as_jsonl: bool) {
    let folder = night.path().join(format!("documents/dt={dt}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let halves = pages.split_at(pages.len() / 2);
    for (name, pages) in [("a", halves.0), ("b", halves.1)] {
        if as_jsonl {
            let lines: String =
                pages.iter().map(|(id, text)| json!({ "id": id, "text": text }).to_string() + "\n").collect();
            fs::write(folder.join(format!("{name}.jsonl")), lines).unwrap();
        } else {
            let rows: Vec<_> = pages.iter().map(|(id, text)| (Some(id.as_str()), text.as_deref())).collect();
            write_documents(&folder.join(format!("{name}.parquet")), &rows);
        }
    }
}

fn pages(rows: &[(&str, &str)]) -> Vec<Page> {
    rows.iter().map(|(id, text)| ((*id).to_owned(), Some((*text).to_owned()))).collect()
}

/// What the tables say: by the definition, without any merge.
struct Tables {
    /// Decisions by id, by night.
    decisions: BTreeMap<String, BTreeMap<String, String>>,
    /// (night that decided, id, night of the state, decision).
    redecided: Vec<[String; 4]>,
}

impl Tables {
    fn read(night: &Night) -> Self {
        let info = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
        let nights = info["nights"].as_array().unwrap().iter().map(|night| night["dt"].as_str().unwrap().to_owned());
        let mut tables = Self { decisions: BTreeMap::new(), redecided: Vec::new() };
        for dt in nights {
            let rows = night.published(&dt, "decisions").into_iter().map(|row| (row[0].clone(), row[1].clone()));
            tables.decisions.insert(dt.clone(), rows.collect());
            let rows = night.published(&dt, "redecided").into_iter();
            tables.redecided.extend(rows.map(|row| [dt.clone(), row[0].clone(), row[1].clone(), row[2].clone()]));
        }
        tables
    }

    /// The kept documents of the corpus up to a night: the night of the newest state of each id.
    fn corpus(&self, last: &str) -> BTreeMap<String, String> {
        let mut newest: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
        for (dt, rows) in self.decisions.iter().filter(|(dt, _)| dt.as_str() <= last) {
            newest.extend(rows.iter().map(|(id, decision)| (id.as_str(), (dt.as_str(), decision.as_str()))));
        }
        for [dt, id, of, decision] in &self.redecided {
            let state = newest.get_mut(id.as_str()).filter(|state| state.0 == of && dt.as_str() <= last);
            if let Some(state) = state {
                state.1 = decision;
            }
        }
        let kept = newest.into_iter().filter(|(_, (_, decision))| *decision == "keep");
        kept.map(|(id, (dt, _))| (id.to_owned(), dt.to_owned())).collect()
    }
}

/// Compares `--corpus` up to each night with the tables, and then applies `--new` of each night in order.
fn agree(night: &Night, context: &str) {
    let tables = Tables::read(night);
    let nights: Vec<String> = tables.decisions.keys().cloned().collect();
    let originals = written(&night.path().join("documents"));
    let text_of =
        |id: &str, dt: &str| originals.iter().find(|row| row.0 == dt && row.1 == id).map(|row| row.2.clone()).unwrap();
    let outputs = tempfile::tempdir().unwrap();
    let place = |name: &str| outputs.path().join(name);
    // The appended corpus: normalised texts by id.
    let mut held: BTreeMap<String, String> = BTreeMap::new();
    for (at, dt) in nights.iter().enumerate() {
        let expected = tables.corpus(dt);
        let new = place(&format!("new-{dt}"));
        let done = filter(night, &["--new", "--dt", dt, "--output", new.to_str().unwrap()]).expect_success().json();
        let previous = at.checked_sub(1).map(|before| nights[before].as_str());
        assert_eq!(done["previous"].as_str(), previous, "{context}, {dt}");
        // Of a state that the store has forgotten, nobody knows whether it was kept.
        let has_forgotten = !done["forgotten_before"].is_null();
        for id in removed(&new) {
            let was_held = held.remove(&id).is_some();
            assert!(was_held || has_forgotten, "{context}, {dt}: {id} is taken away, and was not there");
        }
        let added = written(&new);
        assert_eq!(done["n_keep"].as_u64(), Some(added.len() as u64), "{context}, {dt}");
        for (of, id, text) in added {
            assert_eq!(expected.get(&id), Some(&of), "{context}, {dt}: {id} is of its newest night");
            assert!(
                held.insert(id.clone(), text.to_lowercase()).is_none(),
                "{context}, {dt}: {id} is added, and was there"
            );
        }
        let corpus = expected.iter().map(|(id, of)| (id.clone(), text_of(id, of).to_lowercase()));
        assert_eq!(held, corpus.collect(), "{context}, {dt}");
    }
    let last = nights.last().unwrap();
    for (name, dt) in [("all", last), ("first", &nights[0])] {
        let (output, mut args) = (place(name), vec!["--corpus", "--output"]);
        args.push(output.to_str().unwrap());
        if name != "all" {
            args.extend(["--dt", dt.as_str()]);
        }
        let done = filter(night, &args).expect_success().json();
        let expected: BTreeSet<_> =
            tables.corpus(dt).into_iter().map(|(id, of)| (of.clone(), id.clone(), text_of(&id, &of))).collect();
        assert_eq!(done["n_keep"].as_u64(), Some(expected.len() as u64), "{context}");
        assert_eq!(written(&output), expected, "{context}, {name}");
        assert!(output.join("_SUCCESS").exists());
    }
}

/// A crawl of some pages. Of each, the text is the one before, spelled in another way, that of another page, or none.
fn next_crawl(texts: &mut BTreeMap<String, Option<u64>>, random: &mut Random) -> Vec<Page> {
    let mut pages = Vec::new();
    for id in (0..10).map(|n| format!("p{n}")) {
        let before = texts.get(&id).copied();
        let seed = match (random.below(8), before) {
            (0..=1, _) => continue,
            (2..=4, Some(same)) => same,
            (5, _) => None,
            _ => Some(random.below(7)),
        };
        texts.insert(id.clone(), seed);
        let spelled = seed.map(|seed| if seed == 0 { "Too short".to_owned() } else { text(seed, 40) });
        pages.push((id, spelled.map(|text| if random.below(2) == 0 { text } else { text.to_uppercase() })));
    }
    pages
}

#[test]
fn the_corpus_is_the_newest_kept_state_of_each_document_and_what_nights_change_in_turn_gives_it() {
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let night = Night::new("allow_empty = true\n");
        let (mut texts, mut n_crawls) = (BTreeMap::new(), 0);
        let mut run = |night: &Night, dt: &str, more: &[&str], random: &mut Random| {
            n_crawls += 1;
            crawl(night, dt, &next_crawl(&mut texts, random), n_crawls % 2 == 0);
            night.run(dt, &[&["--no-breakers"], more].concat()).expect_success();
        };
        for dt in ["2026-11-18", "2026-11-20", "2026-11-21", "2026-11-23"] {
            run(&night, dt, &[], &mut random);
        }
        agree(&night, &format!("{seed}, nights in order"));
        run(&night, "2026-11-19", &["--late"], &mut random);
        run(&night, "2026-11-21", &["--replace"], &mut random);
        agree(&night, &format!("{seed}, a late and a replaced night"));
        nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", "2026-11-20"]).expect_success();
        fs::write(night.path().join("ids"), "p3\np5\n").unwrap();
        nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids"]).expect_success();
        if seed % 2 == 0 {
            nearprint_in(night.path(), &["store", "forget", "store", "--before", "2026-11-19"]).expect_success();
        }
        agree(&night, &format!("{seed}, nights and documents that are gone"));
        nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]).expect_success();
        run(&night, "2026-11-24", &[], &mut random);
        agree(&night, &format!("{seed}, stale nights run again"));
    }
}

/// Three nights with the same pages, of which a and b are near.
fn same_nights() -> Night {
    let night = Night::new("");
    for dt in &DAYS[..3] {
        crawl(&night, dt, &pages(&[("a", &text(1, 40)), ("b", &text(1, 40)), ("c", &text(2, 40))]), true);
        night.run(dt, &[]).expect_success();
    }
    night
}

#[test]
fn several_nights_say_how_many_rows_they_repeat_and_the_corpus_repeats_none() {
    let night = same_nights();
    let args = ["--dt", DAYS[0], "--to", DAYS[2], "--output", "all"];
    let done = filter(&night, &args).expect_success().json();
    assert_eq!((&done["n_keep"], &done["n_repeated"]), (&json!(6), &json!(4)));
    let said = nearprint_in(night.path(), &[&["filter", "-c", "job.toml", "--replace"], &args[..]].concat()).stdout;
    assert!(said.contains("hint: 4 rows") && said.contains("--corpus") && said.contains("--new"), "{said}");
    let one = filter(&night, &["--dt", DAYS[0], "--output", "one"]).expect_success().json();
    assert_eq!(one["n_repeated"], json!(0));
    let corpus = filter(&night, &["--corpus", "--output", "corpus"]).expect_success().json();
    assert_eq!((&corpus["n_keep"], &corpus["n_drop"], &corpus["n_repeated"]), (&json!(2), &json!(1), &json!(0)));
    let kept: Vec<_> = written(&night.path().join("corpus")).into_iter().map(|(dt, id, _)| (dt, id)).collect();
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|(dt, _)| dt == DAYS[2]), "{kept:?}");
    let new = filter(&night, &["--new", "--dt", DAYS[2], "--output", "new"]).expect_success().json();
    assert_eq!((&new["n_keep"], &new["n_unchanged"], &new["n_removed"]), (&json!(0), &json!(2), &json!(0)));
}

#[test]
fn input_that_the_corpus_needs_and_lacks_is_named_before_anything_is_written() {
    let night = same_nights();
    // A night of which nothing is left needs no input.
    fs::remove_dir_all(night.path().join(format!("documents/dt={}", DAYS[0]))).unwrap();
    filter(&night, &["--corpus", "--output", "corpus"]).expect_success();
    crawl(&night, DAYS[3], &pages(&[("d", &text(3, 40)), ("e", &text(4, 40))]), false);
    night.run(DAYS[3], &["--no-breakers"]).expect_success();
    let file = |dt: &str, name: &str| night.path().join(format!("documents/dt={dt}/{name}"));
    fs::remove_dir_all(night.path().join(format!("documents/dt={}", DAYS[2]))).unwrap();
    fs::remove_file(file(DAYS[3], "a.parquet")).unwrap();
    fs::write(file(DAYS[3], "b.parquet"), "PAR1").unwrap();
    let done = filter(&night, &["--corpus", "--output", "again"]);
    let all = "3 input files are gone: all 2 of 2026-11-21, ";
    expect(&done, 66, &[all, "dt=2026-11-22/a.parquet", "1 input files have changed", "dt=2026-11-22/b.parquet"]);
    assert!(!night.path().join("again").exists(), "nothing is written");
    crawl(&night, DAYS[2], &[], true);
    fs::write(file(DAYS[3], "a.parquet"), "PAR1").unwrap();
    expect(&filter(&night, &["--corpus", "--output", "again"]), 65, &["4 input files have changed"]);
    assert!(!night.path().join("again").exists(), "nothing is written");
}

#[test]
fn a_corpus_that_is_written_again_has_nothing_of_the_former_one() {
    let night = Night::new("");
    crawl(&night, DAYS[0], &pages(&[("a", &text(1, 40)), ("b", &text(2, 40))]), true);
    night.run(DAYS[0], &[]).expect_success();
    let corpus = |more: &[&str]| filter(&night, &[&["--corpus", "--output", "out"], more].concat());
    corpus(&[]).expect_success();
    expect(&corpus(&[]), 73, &["out: the output exists", "--replace"]);
    crawl(&night, DAYS[1], &pages(&[("b", &text(2, 40)), ("a", &text(3, 40))]), true);
    night.run(DAYS[1], &[]).expect_success();
    fs::write(night.path().join("out/mine.txt"), "x").unwrap();
    expect(&corpus(&["--replace"]), 73, &["out: it has mine.txt, which is no file of the nights"]);
    fs::remove_file(night.path().join("out/mine.txt")).unwrap();
    corpus(&["--replace"]).expect_success();
    filter(&night, &["--corpus", "--output", "fresh"]).expect_success();
    assert_eq!(snapshot(&night.path().join("out")), snapshot(&night.path().join("fresh")));
    // A night that the store dropped is of no corpus, so its files are nobody's.
    nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", DAYS[1]]).expect_success();
    expect(&corpus(&["--replace"]), 73, &["it has dt=2026-11-20/"]);
    // What a night changes is of one night: another one has files of its own.
    filter(&night, &["--new", "--dt", DAYS[0], "--output", "new"]).expect_success();
    expect(&filter(&night, &["--new", "--dt", DAYS[0], "--output", "new"]), 73, &["new: the output exists"]);
    filter(&night, &["--new", "--dt", DAYS[0], "--output", "new", "--replace"]).expect_success();
}

#[test]
fn flags_of_the_corpus_stand_row_by_row_for_every_night() {
    let night = Night::new("");
    crawl(&night, DAYS[0], &pages(&[("a", &text(1, 40)), ("b", &text(2, 40))]), true);
    night.run(DAYS[0], &[]).expect_success();
    crawl(&night, DAYS[1], &pages(&[("a", &text(1, 40)), ("b", &text(3, 40))]), true);
    night.run(DAYS[1], &[]).expect_success();
    filter(&night, &["--corpus", "--flag", "--output", "flags"]).expect_success();
    let flags =
        |dt: &str, name: &str| fs::read_to_string(night.path().join(format!("flags/dt={dt}/{name}.jsonl"))).unwrap();
    assert_eq!(
        [flags(DAYS[0], "a"), flags(DAYS[0], "b")],
        ["a", "b"].map(|id| format!("{{\"id\": \"{id}\", \"keep\": false}}\n"))
    );
    assert_eq!(
        [flags(DAYS[1], "a"), flags(DAYS[1], "b")],
        ["a", "b"].map(|id| format!("{{\"id\": \"{id}\", \"keep\": true}}\n"))
    );
    filter(&night, &["--new", "--dt", DAYS[1], "--flag", "--output", "new"]).expect_success();
    let of_new =
        |name: &str| fs::read_to_string(night.path().join(format!("new/dt={}/{name}.jsonl", DAYS[1]))).unwrap();
    assert_eq!([of_new("a"), of_new("b")], ["{\"id\": \"a\", \"keep\": false}\n", "{\"id\": \"b\", \"keep\": true}\n"]);
}

#[test]
fn nights_of_the_last_release_are_in_the_corpus_and_cannot_say_what_they_changed() {
    let night = of_the_last_release();
    let done = filter(&night, &["--corpus", "--output", "corpus"]).expect_success().json();
    let expected = Tables::read(&night).corpus("2026-11-19");
    let kept: BTreeMap<_, _> = written(&night.path().join("corpus")).into_iter().map(|(dt, id, _)| (id, dt)).collect();
    assert_eq!(kept, expected);
    assert_eq!(done["n_keep"].as_u64(), Some(expected.len() as u64));
    let refused = filter(&night, &["--new", "--dt", "2026-11-19", "--output", "new"]);
    expect(&refused, 65, &["column 'recrawl'", "release 0.2.0", "run --replace"]);
    assert!(!night.path().join("new").exists());
}

#[test]
fn nights_that_are_not_published_and_arguments_that_do_not_go_together_are_refused() {
    let night = same_nights();
    let refused = |args: &[&str], code: i32, parts: &[&str]| expect(&filter(&night, args), code, parts);
    refused(&["--new", "--dt", DAYS[3], "--output", "x"], 66, &["no published night 2026-11-22 in"]);
    refused(&["--corpus", "--dt", "2026-11-01", "--output", "x"], 66, &["no published night up to 2026-11-01 in"]);
    refused(&["--corpus", "--dt", "soon", "--output", "x"], 64, &["'soon' is not a date"]);
    refused(&["--corpus", "--new", "--dt", DAYS[0], "--output", "x"], 64, &[]);
    refused(&["--corpus", "--dt", DAYS[0], "--to", DAYS[1], "--output", "x"], 64, &[]);
    refused(&["--new", "--output", "x"], 64, &["--dt"]);
    refused(&["--dt", DAYS[0], "--allow-gone", "--output", "x"], 64, &["--new"]);
    refused(&["--output", "x"], 64, &["--dt"]);
    assert!(!night.path().join("x").exists());
}

#[test]
fn little_memory_suffices_for_many_nights() {
    let night = Night::new("");
    let ids: Vec<String> = (0..3000).map(|n| format!("https://example.org/a/rather/long/path/of/a/page/{n}")).collect();
    for day in 1..=6 {
        let rows: Vec<Page> =
            ids.iter().enumerate().map(|(n, id)| (id.clone(), Some(text(n as u64 / 2, 30)))).collect();
        crawl(&night, &format!("2026-11-0{day}"), &rows, false);
        night.run(&format!("2026-11-0{day}"), &["--no-breakers"]).expect_success();
    }
    let done = filter(&night, &["--corpus", "--output", "corpus", "--memory-limit", "256MiB"]).expect_success().json();
    assert_eq!((&done["n_keep"], &done["n_replaced"]), (&json!(1500), &json!(0)));
    assert_eq!(written(&night.path().join("corpus")).len(), 1500);
}

/// The paths below a folder.
fn paths(folder: &Path) -> Vec<PathBuf> {
    snapshot(folder).into_keys().collect()
}

#[test]
fn the_corpus_of_web_pages_has_their_newest_records_and_files() {
    let night = Night::new("");
    let html =
        |text: &str| format!("<html><head><title>t</title></head><body><main><p>{text}</p></main></body></html>");
    let record = |url: &str, text: &str| {
        let page = html(text);
        let http =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}", page.len());
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{url}>\r\nWARC-Target-URI: {url}\r\n\
             WARC-Date: 2026-11-20T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
            http.len()
        )
    };
    let put = |dt: &str, name: &str, content: &str| {
        let path = night.path().join(format!("documents/dt={dt}/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    let (old, new, stays) = (text(1, 80), text(2, 80), text(3, 80));
    let [a, b] = ["https://a.org/1", "https://a.org/2"];
    put(DAYS[0], "a.warc", &(record(a, &old) + &record(b, &stays)));
    put(DAYS[0], "site/x.html", &html(&text(4, 80)));
    put(DAYS[0], "site/y.html", &html(&text(5, 80)));
    night.run(DAYS[0], &[]).expect_success();
    put(DAYS[1], "a.warc", &record(a, &new));
    put(DAYS[1], "site/x.html", &html(&text(6, 80)));
    night.run(DAYS[1], &[]).expect_success();
    filter(&night, &["--corpus", "--output", "corpus"]).expect_success();
    let read = |name: &str| fs::read_to_string(night.path().join(name)).unwrap();
    assert_eq!(read("corpus/dt=2026-11-19/a.warc"), record(b, &stays));
    assert_eq!(read("corpus/dt=2026-11-20/a.warc"), record(a, &new));
    let below = |dt: &str| paths(&night.path().join(format!("corpus/dt={dt}")));
    assert_eq!(below(DAYS[0]), ["_SUCCESS", "a.warc", "site/y.html"].map(PathBuf::from));
    assert_eq!(below(DAYS[1]), ["_SUCCESS", "a.warc", "site/x.html"].map(PathBuf::from));
    filter(&night, &["--new", "--dt", DAYS[1], "--output", "new"]).expect_success();
    assert_eq!(removed(&night.path().join("new")).len(), 2);
    assert_eq!(read("new/dt=2026-11-20/a.warc"), record(a, &new));
}

/// Two nights: a stands for its mirror m, and then says something else, so that the second night restores m.
fn with_restored() -> Night {
    let night = Night::new("");
    crawl(&night, DAYS[0], &pages(&[("a", &text(1, 40)), ("m", &text(1, 40)), ("x", &text(2, 40))]), false);
    night.run(DAYS[0], &[]).expect_success();
    crawl(&night, DAYS[1], &pages(&[("a", &text(3, 40)), ("y", &text(4, 40))]), true);
    night.run(DAYS[1], &[]).expect_success();
    night
}

#[test]
fn a_restored_document_is_in_the_corpus_and_among_what_the_night_changes() {
    let night = with_restored();
    agree(&night, "a restored document");
    let row = |dt: &str, id: &str, seed| (dt.to_owned(), id.to_owned(), text(seed, 40));
    let all = [row(DAYS[0], "m", 1), row(DAYS[0], "x", 2), row(DAYS[1], "a", 3), row(DAYS[1], "y", 4)];
    filter(&night, &["--corpus", "--output", "corpus"]).expect_success();
    assert_eq!(written(&night.path().join("corpus")), all.clone().into());
    filter(&night, &["--corpus", "--dt", DAYS[0], "--output", "before"]).expect_success();
    assert_eq!(written(&night.path().join("before")), [row(DAYS[0], "a", 1), row(DAYS[0], "x", 2)].into());
    let new = ["--new", "--dt", DAYS[1], "--output", "new"];
    let done = filter(&night, &new).expect_success().json();
    assert_eq!((&done["n_keep"], &done["n_removed"], &done["n_gone"]), (&json!(3), &json!(1), &json!(0)));
    assert_eq!(written(&night.path().join("new")), [&all[..1], &all[2..]].concat().into_iter().collect());
    assert_eq!(removed(&night.path().join("new")), ["a".to_owned()].into());
    // A crawl that is gone has the only text.
    fs::remove_dir_all(night.path().join(format!("documents/dt={}", DAYS[0]))).unwrap();
    let again = |more: &[&str]| filter(&night, &[&new[..], &["--replace"], more].concat());
    expect(&again(&[]), 66, &["2 input files are gone: all 2 of 2026-11-19"]);
    let done = again(&["--allow-gone"]).expect_success().json();
    assert_eq!((&done["n_keep"], &done["n_gone"]), (&json!(2), &json!(1)));
    assert_eq!(written(&night.path().join("new")), all[2..].iter().cloned().collect());
    let gone = folder::rows(&night.path().join("new/_gone")).unwrap();
    let gone: Vec<&str> = gone.iter().flatten().map(|(_, value)| value.as_str()).collect();
    assert_eq!(gone, [DAYS[0], "m"]);
    assert!(!night.path().join(format!("new/dt={}", DAYS[0])).exists(), "nothing of the former output is left");
    // The input of the night itself may not be gone.
    fs::remove_file(night.path().join(format!("documents/dt={}/a.jsonl", DAYS[1]))).unwrap();
    expect(&again(&["--allow-gone"]), 66, &["no input file at", "a.jsonl"]);
}

#[test]
fn a_page_that_is_crawled_again_and_now_dropped_or_empty_is_taken_away_though_its_earlier_night_is_forgotten() {
    let night = Night::new("keep_nights = 2\n");
    let [a, b, c] = [text(1, 60), text(2, 60), text(3, 60)];
    let nights = [vec![("p", &*a), ("s", &c)], vec![("q", &*b)], vec![("p", &*b), ("s", ""), ("new", &a)]];
    let mut held = BTreeSet::new();
    for (dt, documents) in DAYS.iter().zip(&nights) {
        night.documents(dt, documents).run(dt, &["--no-breakers"]).expect_success();
        let output = night.path().join(format!("new-{dt}"));
        filter(&night, &["--new", "--dt", dt, "--output", output.to_str().unwrap()]).expect_success();
        let gone = removed(&output);
        held.retain(|id| !gone.contains(id));
        held.extend(written(&output).into_iter().map(|(_, id, _)| id));
    }
    assert_eq!(held, BTreeSet::from(["new".to_owned(), "q".to_owned()]));
    filter(&night, &["--corpus", "--output", "corpus"]).expect_success();
    let corpus: BTreeSet<String> = written(&night.path().join("corpus")).into_iter().map(|(_, id, _)| id).collect();
    assert_eq!(corpus, held);
}
