//! `nearprint query` and `nearprint store index`: the answers are those of a comparison with every live document, whatever
//! the store has been through, and with or without an index.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nearprint_profile::{Outcome, TextFingerprinter, by_name};
use serde_json::{Value, json};

use crate::history::of_the_last_release;
use crate::support::{self, Night, expect, nearprint_in, rows, snapshot, text};

fn date(day: u64) -> String {
    format!("2026-11-{day:02}")
}

/// Documents of a day: its own, near ones and recrawls of those of the day before, short ones and an empty one.
fn documents(night: &Night, day: u64, version: u64) {
    let own = |i: u64| text(day * 100 + i + 50 * version, 60);
    let edited = |seed: u64, n: usize| {
        let text = text(seed, 60);
        let words: Vec<&str> = text.split(' ').enumerate().map(|(i, w)| if i < n { "edited" } else { w }).collect();
        words.join(" ")
    };
    let mut all: Vec<(String, String)> = (0..20).map(|i| (format!("d{day}-{i}"), own(i))).collect();
    for i in 0..6 {
        all.push((format!("near-{day}-{i}"), edited((day - 1) * 100 + i, usize::try_from(i).unwrap())));
    }
    all.push((format!("d{}-7", day - 1), own(40)));
    all.push((format!("short-{day}"), "一二三".to_owned()));
    all.push((format!("empty-{day}"), " ".to_owned()));
    let all: Vec<(&str, &str)> = all.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(&date(day), &all);
}

fn run(night: &Night, day: u64, more: &[&str]) {
    night.run(&date(day), &[&["--no-breakers"], more].concat()).expect_success();
}

fn store(night: &Night, args: &[&str]) -> Value {
    let args = [&["store", args[0], "store"], &args[1..], &["--json"]].concat();
    nearprint_in(night.path(), &args).expect_success().json()
}

fn query(night: &Night, args: &[&str]) -> Value {
    let args = [&["query", "--config", "job.toml", "--json"], args].concat();
    nearprint_in(night.path(), &args).expect_success().json()
}

/// A document as the oracle knows it: its night, and its text.
type Live = BTreeMap<String, (String, String)>;

/// The latest version of each document of some nights.
fn live(night: &Night, days: &[u64], without: &[&str]) -> Live {
    let mut live = Live::new();
    for &day in days {
        for row in rows(&night.path().join(format!("documents/dt={}/part-0.parquet", date(day)))) {
            if !without.contains(&row[0].as_str()) {
                live.insert(row[0].clone(), (date(day), row[1].clone()));
            }
        }
    }
    live
}

/// A match: distance, sketch distance, night, id, and whether the texts are the same. This is also the order of answers.
type Found = (u64, Option<u64>, String, String, bool);

/// The largest distances of fingerprints and of sketches. Without the first, the keys of nights are those of the default profile.
type Limits = (Option<u32>, u32);

/// The flags of some limits.
fn flags((distance, sketch): Limits) -> Vec<String> {
    let distance = distance.map(|k| ["--max-distance".to_owned(), k.to_string()]);
    distance.into_iter().flatten().chain(["--max-sketch-distance".to_owned(), sketch.to_string()]).collect()
}

/// The answer that a comparison with every live document gives.
fn expected(live: &Live, text: &str, limits: Limits) -> Vec<Found> {
    let asked = outcome_of(text);
    let compare = |text: &str| match (&asked, outcome_of(text)) {
        (
            Outcome::Fingerprinted { fingerprint: a, sketch: Some(s), text_hash, .. },
            Outcome::Fingerprinted { fingerprint: b, sketch: Some(t), text_hash: other, .. },
        ) => {
            let (distance, sketch) = ((a ^ b).count_ones(), s.distance(&t));
            let word = |w: usize| [s, &t].map(|s| u64::from_le_bytes(s.0[8 * w..8 * w + 8].try_into().unwrap()));
            let is_word_near = |w: usize| (word(w)[0] ^ word(w)[1]).count_ones() <= 8;
            let is_candidate = match limits.0 {
                Some(k) => distance <= k,
                None => distance <= 8 || is_word_near(0) || is_word_near(1),
            };
            let is_near = is_candidate && sketch <= limits.1;
            is_near.then(|| (u64::from(distance), Some(u64::from(sketch)), *text_hash == other))
        }
        (Outcome::TooShort { text_hash: a }, Outcome::TooShort { text_hash: b }) => {
            (*a == b).then_some((0, None, true))
        }
        _ => None,
    };
    let found = live.iter().filter_map(|(id, (dt, text))| {
        let (distance, sketch, exact) = compare(text)?;
        Some((distance, sketch, dt.clone(), id.clone(), exact))
    });
    let mut found: Vec<Found> = found.collect();
    found.sort();
    found
}

fn found(answer: &Value) -> Vec<Found> {
    let matches = answer["matches"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let found: Vec<Found> = matches
        .map(|m| {
            let (distance, sketch) = (m["distance"].as_u64().unwrap(), m["sketch_distance"].as_u64());
            (distance, sketch, word(&m["dt"]), word(&m["id"]), m["exact"].as_bool().unwrap())
        })
        .collect();
    assert_eq!(answer["n_matches"].as_u64(), Some(found.len() as u64), "{answer}");
    found
}

thread_local! {
    /// Every answer is compared with every text, and so each is fingerprinted once.
    static OUTCOMES: (TextFingerprinter, RefCell<HashMap<String, Outcome>>) = {
        (TextFingerprinter::try_new(by_name("default").unwrap(), &Default::default()).unwrap(), RefCell::default())
    };
}

fn outcome_of(text: &str) -> Outcome {
    OUTCOMES.with(|(fingerprinter, known)| {
        if let Some(known) = known.borrow().get(text) {
            return known.clone();
        }
        let outcome = fingerprinter.fingerprint(text).outcome;
        known.borrow_mut().insert(text.to_owned(), outcome.clone());
        outcome
    })
}

/// Asks for every document of some days, live or not, in one stream, and compares all answers with the oracle.
fn expect_exact(night: &Night, live: &Live, days: &[u64], limits: Limits, when: &str) {
    let mut texts: Vec<String> = Vec::new();
    for &day in days {
        let path = night.path().join(format!("documents/dt={}/part-0.parquet", date(day)));
        texts.extend(rows(&path).into_iter().map(|row| row[1].clone()));
    }
    let mut lines = String::new();
    for (i, text) in texts.iter().enumerate() {
        writeln!(lines, "{}", serde_json::json!({ "id": i, "text": text })).unwrap();
    }
    std::fs::write(night.path().join("queries.jsonl"), lines).unwrap();
    let flags = flags(limits);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let args = [&["query", "--config", "job.toml", "--jsonl", "queries.jsonl"], &flags[..]].concat();
    let done = nearprint_in(night.path(), &args).expect_success();
    let answers: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), texts.len(), "{when}");
    let mut n_found = 0;
    for (i, (answer, text)) in answers.iter().zip(&texts).enumerate() {
        assert_eq!(answer["id"].as_u64(), Some(i as u64), "answers come in order");
        let expected = expected(live, text, limits);
        n_found += expected.len();
        assert_eq!(found(answer), expected, "{when}: {text}");
    }
    assert!(n_found > texts.len() / 2, "{when}: {n_found}");
    expect_exact_of_documents(night, live, limits, when);
}

/// Asks for every live document by its id, in one stream and the first ones alone, and compares all answers with the oracle.
fn expect_exact_of_documents(night: &Night, live: &Live, limits: Limits, when: &str) {
    let lines: Vec<String> = live.keys().map(|id| serde_json::json!({ "document_id": id }).to_string()).collect();
    std::fs::write(night.path().join("queries.jsonl"), lines.join("\n")).unwrap();
    let flags = flags(limits);
    let distances: Vec<&str> = flags.iter().map(String::as_str).collect();
    let args = [&["query", "--config", "job.toml", "--jsonl", "queries.jsonl"], &distances[..]].concat();
    let done = nearprint_in(night.path(), &args).expect_success();
    let answers: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), live.len(), "{when}");
    for (i, (answer, (id, (dt, text)))) in answers.iter().zip(live).enumerate() {
        let others = live.iter().filter(|(other, _)| *other != id).map(|(id, of)| (id.clone(), of.clone())).collect();
        let expected = expected(&others, text, limits);
        assert_eq!(found(answer), expected, "{when}: {id}");
        assert_eq!((&answer["document"]["id"], &answer["document"]["dt"]), (&id.as_str().into(), &dt.as_str().into()));
        if i < 3 {
            assert_eq!(found(&query(night, &[&["--id", id], &distances[..]].concat())), expected, "{when}: {id}");
        }
    }
}

const LIMITS: [Limits; 5] = [(None, 36), (None, 60), (Some(3), 60), (Some(12), 36), (Some(20), 200)];

#[test]
fn answers_are_exact_whatever_the_store_has_been_through() {
    let night = Night::new("");
    for day in 11..=17 {
        documents(&night, day, 0);
    }
    for day in 11..=13 {
        run(&night, day, &[]);
    }
    let mut days = vec![11, 12, 13];
    let all: Vec<u64> = (11..=17).collect();
    let expect_all = |days: &[u64], without: &[&str], when: &str| {
        for limits in LIMITS {
            expect_exact(&night, &live(&night, days, without), &all, limits, when);
        }
    };
    expect_all(&days, &[], "without an index");
    let indexed = store(&night, &["index"]);
    assert_eq!((indexed["status"].as_str(), indexed["n_tables"].as_u64()), (Some("indexed"), Some(12)), "{indexed}");
    assert_eq!(store(&night, &["index"])["status"], "already_indexed");
    expect_all(&days, &[], "with an index");
    for day in [14, 15] {
        run(&night, day, &[]);
        days.push(day);
    }
    expect_all(&days, &[], "with nights after the index");
    store(&night, &["compact"]);
    expect_all(&days, &[], "with a segment");
    assert_eq!(store(&night, &["info"])["indexes"][0]["n_live_runs"], 3, "a compaction keeps the index");

    // Another version of a night, one night less, and a late one.
    documents(&night, 12, 1);
    run(&night, 12, &["--replace"]);
    expect_all(&days, &[], "with a replaced night");
    store(&night, &["drop-night", "--dt", &date(13)]);
    days.retain(|&day| day != 13);
    expect_all(&days, &[], "with a dropped night");
    run(&night, 13, &["--late"]);
    days.push(13);
    days.sort_unstable();
    expect_all(&days, &[], "with a late night");

    store(&night, &["index"]);
    let info = store(&night, &["info"]);
    assert_eq!(info["indexes"].as_array().unwrap().len(), 1, "a new index stands in for the one before: {info}");
    assert_eq!(store(&night, &["check"])["status"], "sound");
    expect_all(&days, &[], "with a new index");
    let before = tables(&night).len();
    store(&night, &["gc", "--grace-hours", "0"]);
    assert_eq!((before > 12, tables(&night).len()), (true, 12), "gc deletes the tables of the index before");

    std::fs::write(night.path().join("ids"), "d15-3\nnear-14-0\nshort-11\n").unwrap();
    store(&night, &["forget", "--ids", "ids"]);
    assert!(store(&night, &["info"]).get("indexes").is_none(), "an index must not keep what was forgotten");
    expect_all(&days, &["d15-3", "near-14-0", "short-11"], "with forgotten documents");
    store(&night, &["index"]);
    store(&night, &["forget", "--before", &date(12)]);
    days.retain(|&day| day >= 12);
    expect_all(&days, &["d15-3", "near-14-0", "short-11"], "with a forgotten night");
    assert_eq!(store(&night, &["check"])["status"], "sound");
}

/// The files of all indexes.
fn tables(night: &Night) -> Vec<PathBuf> {
    let folder = night.path().join("store/indexes");
    if !folder.exists() { Vec::new() } else { snapshot(&folder).into_keys().map(|name| folder.join(name)).collect() }
}

/// A store of two nights with an index.
fn indexed() -> Night {
    let night = Night::new("");
    for day in 11..=12 {
        documents(&night, day, 0);
        run(&night, day, &[]);
    }
    store(&night, &["index"]);
    night
}

#[test]
fn an_index_has_the_same_bytes_whoever_writes_it_and_is_written_again_where_it_is_missing() {
    let night = indexed();
    let first: Vec<Vec<u8>> = tables(&night).iter().map(|path| std::fs::read(path).unwrap()).collect();
    for missing in [2, 6] {
        std::fs::remove_file(&tables(&night)[missing]).unwrap();
    }
    let answer = query(&night, &["--text", &text(1103, 60)]);
    assert_eq!((answer["n_indexed_rows"].as_u64(), answer["n_matches"].as_u64()), (Some(0), Some(2)), "{answer}");
    let again = store(&night, &["index", "--threads", "1"]);
    assert_eq!((again["status"].as_str(), again["n_tables_resumed"].as_u64()), (Some("already_indexed"), Some(10)));
    let second: Vec<Vec<u8>> = tables(&night).iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(first, second);
    assert!(query(&night, &["--text", &text(1103, 60)])["n_indexed_rows"].as_u64() > Some(0));
}

#[test]
fn an_index_of_the_last_release_answers_by_all_keys_and_a_new_one_takes_its_place() {
    let night = of_the_last_release();
    let ids: Vec<String> = night.decisions("2026-11-19").into_keys().collect();
    let asked = || -> Vec<Value> {
        let answer = |id: &String| query(&night, &["--id", id]);
        ids.iter().map(answer).collect()
    };
    let before = asked();
    assert_eq!(before[0]["n_indexed_rows"], 0, "its words are scanned: {}", before[0]);
    assert_eq!(store(&night, &["check"])["status"], "sound");
    assert_eq!(store(&night, &["index"])["status"], "indexed");
    let after = asked();
    assert!(after[0]["n_indexed_rows"].as_u64() > Some(0), "{}", after[0]);
    let matches = |answers: &[Value]| -> Vec<Vec<Found>> { answers.iter().map(found).collect() };
    assert_eq!(matches(&before), matches(&after));
    assert!(matches(&after).iter().any(|found| !found.is_empty()));
    assert_eq!(store(&night, &["check"])["status"], "sound");
}

#[test]
fn a_damaged_index_is_found_by_check_and_by_a_query_that_reads_it() {
    let night = indexed();
    for (table, name) in [(0, "table-0/part-00000.parquet"), (4, "word-0-table-0/part-00000.parquet")] {
        let table = &tables(&night)[table];
        let whole = std::fs::read(table).unwrap();
        let mut bytes = whole.clone();
        bytes[40] ^= 1;
        std::fs::write(table, &bytes).unwrap();
        let done = nearprint_in(night.path(), &["store", "check", "store", "--json"]);
        assert_eq!((done.code, done.json()["status"].as_str()), (65, Some("damaged")), "{}", done.stdout);
        let done = nearprint_in(night.path(), &["query", "--config", "job.toml", "--text", &text(1103, 60)]);
        expect(&done, 65, &["store/indexes/", name]);
        std::fs::write(table, &whole).unwrap();
    }
}

#[test]
fn a_table_of_an_index_that_says_something_else_than_the_others_is_the_one_that_is_named() {
    let night = indexed();
    for name in ["table-1/", "word-0-table-2/"] {
        let tables = tables(&night);
        let table = tables.iter().find(|path| path.to_str().unwrap().contains(&format!("/{name}"))).unwrap();
        let whole = std::fs::read(table).unwrap();
        let mut bytes = whole.clone();
        let key = b"nearprint.index_bits";
        let at = bytes.windows(key.len()).rposition(|window| window == key).unwrap() + key.len();
        let digit = at + bytes[at..].iter().position(u8::is_ascii_digit).unwrap();
        bytes[digit] ^= 1;
        std::fs::write(table, &bytes).unwrap();
        let done = nearprint_in(night.path(), &["query", "--config", "job.toml", "--text", &text(1103, 60)]);
        expect(
            &done,
            65,
            &[name, "another order of bits than the other tables", "delete this file, and run `nearprint store index`"],
        );
        std::fs::write(table, &whole).unwrap();
    }
}

#[test]
fn an_id_shows_its_document_and_one_that_the_store_lacks_is_refused() {
    let night = Night::new("");
    let page = text(1, 60);
    night.documents(&date(11), &[("a", &page), ("b", &page), ("alone", &text(2, 60)), ("none", "")]);
    run(&night, 11, &[]);
    let said = |id: &str| nearprint_in(night.path(), &["query", "--config", "job.toml", "--id", id]);
    let shown = said("b").expect_success().stdout;
    assert!(
        shown.starts_with("b  2026-11-11  drop, represented by a\nfingerprint ") && shown.contains(": 1 match in"),
        "{shown}"
    );
    assert!(shown.contains("  keep      a  same text\n") && !shown.contains("  b\n"), "{shown}");
    assert!(said("alone").expect_success().stdout.contains(": no match in "));
    assert!(said("none").expect_success().stdout.contains("none  2026-11-11  skip\nno text: no match in"));
    expect(&said("c"), 66, &["no night of the store has the document 'c'", "`nearprint explain ID --config FILE`"]);
    // Beside a text, other fields of a row are not looked at.
    let asked = [
        json!({ "document_id": "c" }),
        json!({ "document_id": 7 }),
        json!({ "document_id": "c", "text": page }),
        json!({ "document_id": 7, "text": page }),
    ];
    std::fs::write(night.path().join("lines"), asked.map(|line| format!("{line}\n")).concat()).unwrap();
    let lines = nearprint_in(night.path(), &["query", "--config", "job.toml", "--jsonl", "lines"]);
    expect(&lines, 65, &["2 lines could not be answered"]);
    let answers: Vec<Value> = lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(answers[0]["error"].as_str().unwrap().contains("'c'"), "{}", lines.stdout);
    assert!(answers[1]["error"].as_str().unwrap().contains("document_id"), "{}", lines.stdout);
    assert_eq!((&answers[2]["n_matches"], &answers[3]["n_matches"]), (&json!(2), &json!(2)), "{}", lines.stdout);
}

#[test]
fn one_query_shows_its_matches_their_nights_and_decisions() {
    let night = indexed();
    let answer = query(&night, &["--text", &text(1100, 60)]);
    let shown: Vec<(&str, &str)> = answer["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (m["id"].as_str().unwrap(), m["decision"].as_str().unwrap()))
        .collect();
    assert_eq!(shown, [("d11-0", "keep"), ("near-12-0", "drop")], "{answer}");
    assert_eq!(answer["matches"][1]["canonical_id"], "d11-0");
    let fingerprint = answer["fingerprint"].as_str().unwrap();
    for spelled in [format!("0x{fingerprint}"), u64::from_str_radix(fingerprint, 16).unwrap().to_string()] {
        let same = query(&night, &["--fingerprint", &spelled]);
        assert_eq!(
            (same["fingerprint"].as_str(), same["matches"][0]["id"].as_str()),
            (Some(fingerprint), Some("d11-0"))
        );
        assert_eq!(same["matches"][0]["sketch_distance"], Value::Null, "a fingerprint alone has no sketch");
    }
    let one = query(&night, &["--text", &text(1100, 60), "--max-matches", "1"]);
    assert_eq!((one["n_matches"].as_u64(), one["matches"].as_array().unwrap().len()), (Some(2), 1), "{one}");
    std::fs::write(night.path().join("page.txt"), text(1100, 60)).unwrap();
    let text_of = nearprint_in(night.path(), &["query", "--store", "store", "--file", "page.txt"]).expect_success();
    assert!(
        text_of.stdout.contains("2 matches") && text_of.stdout.contains("represented by d11-0"),
        "{}",
        text_of.stdout
    );
    let none = nearprint_in(night.path(), &["query", "--store", "store", "--text", &text(9999, 60)]).expect_success();
    assert!(none.stdout.contains("no match"), "{}", none.stdout);
}

#[test]
fn lines_that_are_no_queries_are_answered_in_their_place_and_counted() {
    let night = indexed();
    let good = serde_json::json!({ "id": "a", "text": text(1103, 60), "url": "ignored" });
    let lines = format!("{good}\n\nnot json\n{{\"id\": 7}}\n{{\"fingerprint\": 5, \"id\": \"z\"}}\n");
    std::fs::write(night.path().join("lines"), lines).unwrap();
    let done = nearprint_in(night.path(), &["query", "--store", "store", "--jsonl", "lines", "--json"]);
    assert_eq!(done.code, 65, "{}", done.stderr);
    let answers: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 5, "four answers and the summary: {}", done.stdout);
    assert_eq!((answers[0]["id"].as_str(), answers[0]["n_matches"].as_u64()), (Some("a"), Some(2)));
    assert_eq!((answers[1]["line"].as_u64(), answers[2]["line"].as_u64()), (Some(3), Some(4)), "{answers:?}");
    let said = answers[1]["error"].as_str().unwrap();
    assert!(said.ends_with(" at column 2") && !said.contains("line"), "the line is a key of its own: {said}");
    assert_eq!(answers[3]["fingerprint"], "0000000000000005");
    let summary = &answers[4];
    assert_eq!((summary["n_queries"].as_u64(), summary["n_bad_lines"].as_u64()), (Some(4), Some(2)), "{summary}");
}

#[test]
fn lines_of_queries_may_begin_with_a_byte_order_mark_as_documents_may() {
    let night = indexed();
    std::fs::write(night.path().join("lines"), "\u{feff}{\"fingerprint\": 5}\n{\"fingerprint\": 6}\n").unwrap();
    let ask = || nearprint_in(night.path(), &["query", "--store", "store", "--jsonl", "lines", "--json"]);
    assert_eq!(ask().expect_success().json()["n_queries"], 2);
    std::fs::write(night.path().join("lines"), "\u{feff}\n{\"fingerprint\": 6}\n").unwrap();
    assert_eq!(ask().expect_success().json()["n_queries"], 1, "a mark alone is a blank line");
}

#[test]
fn a_folder_in_the_place_of_a_file_of_queries_is_refused_as_in_that_of_a_text() {
    let night = indexed();
    for flag in ["--file", "--jsonl"] {
        let refused = nearprint_in(night.path(), &["query", "--store", "store", flag, "documents"]);
        expect(&refused, 66, &[flag, "documents", "name a file"]);
    }
}

#[test]
fn a_fingerprint_with_a_sign_is_refused() {
    let night = indexed();
    for signed in ["+123456789abcdef", "0x+5", "0x-5", "+5"] {
        let refused = nearprint_in(night.path(), &["query", "--store", "store", "--fingerprint", signed]);
        expect(&refused, 64, &[signed, "16 hex digits"]);
    }
}

#[test]
fn a_store_of_another_text_of_web_pages_says_so_and_answers_with_its_own() {
    let night = Night::new("html_text = \"all\"\n");
    let folder = night.path().join("documents").join(format!("dt={}", date(1)));
    std::fs::create_dir_all(&folder).unwrap();
    let page = format!("<html><body><nav>Menu</nav><main><p>{}</p></main></body></html>", text(1, 80));
    std::fs::write(folder.join("a.html"), page).unwrap();
    run(&night, 1, &[]);
    let ask = |more: &[&str]| {
        let of_store = ["query", "--store", "store", "--text", &*format!("Menu {}", text(1, 80)), "--json"];
        nearprint_in(night.path(), &[&of_store, more].concat())
    };
    expect(&ask(&[]), 78, &["another configuration: its --html-text is all, this one's is main: give"]);
    let found = ask(&["--html-text", "all"]).expect_success().json();
    assert_eq!((found["status"].as_str(), found["n_matches"].as_u64()), (Some("found"), Some(1)), "{found}");
}

#[test]
fn queries_that_cannot_be_answered_are_refused_with_a_remedy() {
    let night = indexed();
    let ask = |args: &[&str]| nearprint_in(night.path(), &[&["query", "--store", "store"], args].concat());
    expect(
        &ask(&["--text", "x", "--profile", "han-bigrams"]),
        78,
        &["another configuration: its --profile is default, this one's is han-bigrams"],
    );
    expect(&ask(&["--fingerprint", "12345678901234567890123"]), 64, &["16 hex digits"]);
    expect(&ask(&["--fingerprint", "xyz"]), 64, &["16 hex digits"]);
    expect(&ask(&["--fingerprint", "0x1", "--sketch", "12"]), 64, &["64 hex digits"]);
    expect(&ask(&["--file", "absent.txt"]), 66, &["absent.txt"]);
    assert_eq!(ask(&[]).code, 64);
    let sketch_of_a_text = ask(&["--text", "x", "--sketch", "12"]);
    assert_eq!(sketch_of_a_text.code, 64);
    assert!(sketch_of_a_text.stderr.contains("--sketch <HEX>"), "{}", sketch_of_a_text.stderr);
    expect(&nearprint_in(night.path(), &["query", "--text", "x"]), 64, &["give --config FILE or --store PATH"]);
    expect(&nearprint_in(night.path(), &["query", "--store", "absent", "--text", "x"]), 66, &["no store at absent"]);
    expect(&nearprint_in(night.path(), &["store", "index", "absent"]), 66, &["no store at absent"]);
}

/// Starts `query --jsonl -`, with its input and output in pipes.
fn answering_lines(night: &Night) -> std::process::Child {
    std::process::Command::new(support::NEARPRINT)
        .args(["query", "--store", "store", "--jsonl", "-"])
        .current_dir(night.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_program_that_writes_a_line_and_waits_gets_its_answer() {
    let night = indexed();
    let mut child = answering_lines(&night);
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let line = format!("{}\n", serde_json::json!({ "text": text(1103, 60) }));
    let (half, rest) = line.split_at(20);
    let mut left = line.as_str();
    for _ in 0..3 {
        input.write_all(format!("{left}{half}").as_bytes()).unwrap();
        input.flush().unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["n_matches"], 2);
        left = rest;
    }
    input.write_all(left.as_bytes()).unwrap();
    drop(input);
    assert_eq!(output.lines().count(), 1);
    assert!(child.wait().unwrap().success());
}

#[test]
fn long_lines_are_read_no_further_ahead_than_their_bytes_allow() {
    const MIB: usize = 1 << 20;
    let night = indexed();
    let mut child = answering_lines(&night);
    let (mut input, taken) = (child.stdin.take().unwrap(), Arc::new(AtomicUsize::new(0)));
    let n_taken = Arc::clone(&taken);
    let writer = std::thread::spawn(move || {
        // More answers than a pipe holds, which nobody reads: the command waits.
        input.write_all("no query\n".repeat(5000).as_bytes()).unwrap();
        let line = format!("{}\n", "x".repeat(8 * MIB));
        for piece in line.repeat(16).as_bytes().chunks(MIB) {
            if input.write_all(piece).is_err() {
                return;
            }
            n_taken.fetch_add(piece.len(), Ordering::Relaxed);
        }
    });
    let mut before = (0, Instant::now());
    while before.0 == 0 || before.1.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(50));
        let now = taken.load(Ordering::Relaxed);
        if now > before.0 {
            before = (now, Instant::now());
        }
        assert!(now < 64 * MIB, "{} MiB were read ahead", now / MIB);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
}

#[test]
fn a_damaged_page_of_a_store_names_the_repair_of_what_it_is_of() {
    let night = Night::new("");
    for day in [1, 2] {
        documents(&night, day, 0);
        run(&night, day, &[]);
    }
    store(&night, &["index"]);
    let cases =
        [("indexes", "run `nearprint store index`"), ("runs", "the store is damaged; restore the file, or publish")];
    for (folder, said) in cases {
        let below = night.path().join("store").join(folder);
        let before = snapshot(&below);
        for (name, mut bytes) in before.clone() {
            if name.extension().is_some_and(|ending| ending == "parquet") && bytes.len() > 200 {
                // Within the first page, whose checksum fails then.
                bytes[100] ^= 0xff;
                std::fs::write(below.join(&name), bytes).unwrap();
            }
        }
        let args = ["query", "--config", "job.toml", "--text", &text(201, 60)];
        expect(&nearprint_in(night.path(), &args), 65, &[folder, said]);
        for (name, bytes) in before {
            std::fs::write(below.join(name), bytes).unwrap();
        }
    }
}
