//! Profiles of published programs through the binary, against the values that the programs give.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support::{Night, nearprint_in, root, rows, snapshot, text};

/// The rows of a file of vectors.
fn vectors(name: &str) -> Vec<Value> {
    let path = root().join("crates/fingerprint/tests/data").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes `documents.jsonl` with ids in the order of the texts.
fn write_documents(folder: &Path, texts: &[String]) {
    let line = |(at, text): (usize, &String)| serde_json::json!({ "id": format!("{at:04}"), "text": text }).to_string();
    let lines: Vec<String> = texts.iter().enumerate().map(line).collect();
    std::fs::write(folder.join("documents.jsonl"), lines.join("\n")).unwrap();
}

/// The fingerprint column, by id, as the binary writes it under these arguments; and that it is sorted.
fn fingerprints(texts: &[String], args: &[&str]) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    write_documents(folder.path(), texts);
    let command = ["fingerprint", "--documents", "documents.jsonl", "--output", "out"];
    nearprint_in(folder.path(), &[&command, args].concat()).expect_success();
    let rows = rows(&folder.path().join("out/part-00000.parquet"));
    if args.contains(&"128") {
        assert!(rows.is_sorted_by_key(|row| (row[1].clone(), row[0].clone())));
    }
    rows.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect()
}

/// Compares decimal values with the 128-bit column, which is shown in hex.
fn check_wide(profile: &str, cases: &[(String, u128)]) {
    let texts: Vec<String> = cases.iter().map(|(text, _)| text.clone()).collect();
    let got = fingerprints(&texts, &["--profile", profile, "--bits", "128"]);
    for (at, (text, expected)) in cases.iter().enumerate() {
        let start: String = text.chars().take(30).collect();
        assert_eq!(got.get(&format!("{at:04}")), Some(&format!("{expected:032x}")), "{profile}: {start}");
    }
}

#[test]
fn fingerprints_of_128_bits_are_those_of_the_programs_that_have_them() {
    for (profile, name, column) in [
        ("python-simhash", "peers/pysimhash_1e0ng.jsonl", "value_f128"),
        ("gaoya", "peers/rust_simhash_gaoya.jsonl", "gaoya128_sip24_keys_5_6"),
    ] {
        let case = |row: &Value| {
            (row["text"].as_str().unwrap().to_owned(), row[column].as_str().unwrap().parse::<u128>().unwrap())
        };
        let cases: Vec<(String, u128)> = vectors(name).iter().map(case).collect();
        assert_eq!(cases.len(), 13);
        check_wide(profile, &cases);
    }
}

#[test]
fn fingerprints_of_128_bits_are_those_of_the_articles_program() {
    // Words that jieba cut without its HMM, nothing left out: end to end they are the text.
    let rows = vectors("fingerprints.jsonl").into_iter();
    let rows = rows.filter(|row| row["hmm"] == false && !row["case"].as_str().unwrap().contains("nopunct"));
    let case = |row: Value| {
        let text: String = row["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let value = row["fingerprints"]["plain/b128/nocap/ge0"].as_str().unwrap();
        (text, u128::from_str_radix(value.trim_start_matches("0x"), 16).unwrap())
    };
    let cases: Vec<(String, u128)> = rows.map(case).filter(|(text, _)| !text.trim().is_empty()).collect();
    assert!(!cases.is_empty());
    check_wide("java", &cases);
}

#[test]
fn the_other_widths_of_a_program_come_with_its_rule() {
    let vectors = vectors("peers/sing1ee_docs.jsonl");
    let texts: Vec<String> = vectors.iter().map(|row| row["text"].as_str().unwrap().to_owned()).collect();
    for (bits, column) in [("32", "simhash32_unsigned"), ("64", "simhash64_unsigned")] {
        let got = fingerprints(&texts, &["--profile", "sing1ee", "--bits", bits]);
        for (at, row) in vectors.iter().enumerate().filter(|(at, _)| texts[*at].encode_utf16().count() > 1) {
            assert_eq!(got[&format!("{at:04}")], row[column].as_str().unwrap(), "{bits} bits of {}", row["id"]);
        }
    }
}

#[test]
fn bits_that_a_profiles_program_does_not_have_are_refused_with_those_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    write_documents(folder.path(), &[text(1, 30)]);
    let command = ["fingerprint", "--documents", "documents.jsonl", "--output", "out"];
    for (profile, bits, has) in [
        ("seomoz", "128", "64 bits"),
        ("cppjieba", "128", "64 bits"),
        ("mllearning", "64", "32 bits"),
        ("gaoya", "32", "64 or 128 bits"),
        ("sing1ee", "128", "32 or 64 bits"),
    ] {
        let refused = nearprint_in(folder.path(), &[&command[..], &["--profile", profile, "--bits", bits]].concat());
        assert_eq!(refused.code, 64, "{profile} {bits}: {}", refused.stderr);
        let said = format!("--bits {bits}: profile '{profile}' has fingerprints of {has}: choose from these");
        assert!(refused.error().contains(&said), "{}", refused.stderr);
    }
    let unknown = nearprint_in(folder.path(), &[&command[..], &["--bits", "48"]].concat());
    assert_eq!(unknown.code, 64);
    assert!(unknown.stderr.contains("fingerprints have 32, 64 or 128 bits"), "{}", unknown.stderr);
    assert!(!folder.path().join("out").exists());
}

#[test]
fn joins_and_runs_refuse_fingerprints_of_128_bits() {
    let night = Night::new("bits = 128\n");
    night.documents("2026-11-20", &[("a", &text(1, 30)), ("b", &text(2, 30))]);
    let before = snapshot(night.path());
    let run = night.run("2026-11-20", &[]);
    assert_eq!(run.code, 78, "{}", run.stderr);
    assert!(run.error().contains("bits: stores and joins take fingerprints of 32 or 64 bits, not 128: set bits = 64"));
    assert_eq!(snapshot(night.path()), before);

    let documents = "documents/dt=2026-11-20";
    let fingerprint = ["fingerprint", "--config", "job.toml", "--documents", documents, "--output", "wide"];
    nearprint_in(night.path(), &fingerprint).expect_success();
    let join = ["join", "--queries", "wide", "--self", "--max-distance", "3", "--output", "pairs"];
    let join = nearprint_in(night.path(), &join);
    assert_eq!(join.code, 78, "{}", join.stderr);
    let said = "wide/part-00000.parquet: its fingerprints have 128 bits and joins take 32 or 64: \
                fingerprint the documents with --bits 64";
    assert!(join.error().contains(said), "{}", join.stderr);
    assert!(!night.path().join("pairs").exists());
}

/// The program gives each of them 0, which would make them one document: here they are compared by their text.
#[test]
fn texts_without_a_window_of_seomoz_are_kept_apart_in_a_run_and_skipped_in_a_dataset() {
    let night = Night::new("profile = \"seomoz\"\n");
    night.documents("2026-11-20", &[("a", "abc"), ("b", "x-y"), ("c", "abc"), ("d", "abcd")]);
    night.run("2026-11-20", &["--no-breakers"]).expect_success();
    let decisions = night.decisions("2026-11-20");
    let of = |id: &str| (decisions[id][0].as_str(), decisions[id][1].as_str(), decisions[id][3].as_str());
    assert_eq!(of("a"), ("keep", "", "too_short"));
    assert_eq!(of("b"), ("keep", "", "too_short"));
    assert_eq!(of("c"), ("drop", "a", "exact"));
    assert_eq!(of("d"), ("keep", "", "unique"));
    let documents = "documents/dt=2026-11-20";
    let fingerprint = ["fingerprint", "--profile", "seomoz", "--documents", documents, "--output", "out"];
    nearprint_in(night.path(), &fingerprint).expect_success();
    let ids: Vec<String> = rows(&night.path().join("out/part-00000.parquet")).iter().map(|r| r[0].clone()).collect();
    assert_eq!(ids, ["d"]);
    let skipped = rows(&night.path().join("out/_skipped/part-00000.parquet"));
    assert_eq!(skipped, ["a", "b", "c"].map(|id| vec![id.to_owned(), "too_short".to_owned()]));
}
