//! `explain`, recomputed from the definitions.

use std::collections::{BTreeMap, BTreeSet};

use nearprint_fingerprint::FeatureHash;
use serde_json::Value;

use crate::support::{self, nearprint_in, text, write_documents};

const DOCUMENTS: [(&str, &str); 5] = [
    ("fox", "The quick brown fox jumps over the lazy dog near the old river bank, the fox said."),
    ("cat", "The quick brown cat jumps over the lazy dog near the new river bank, the cat said."),
    ("short", "Three short words"),
    ("same", "three  short WORDS"),
    (
        "evil\u{1b}[31m",
        "An evil \u{1b}]0;title\u{7} text \u{9b}31m with \u{202e}controls that wants to drive the terminal",
    ),
];

fn documents() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut rows: Vec<(Option<&str>, Option<&str>)> =
        DOCUMENTS.iter().map(|(id, text)| (Some(*id), Some(*text))).collect();
    rows.push((Some("null"), None));
    rows.push((Some("empty"), Some(" \n ")));
    write_documents(&dir.path().join("docs.parquet"), &rows);
    dir
}

fn explain(dir: &tempfile::TempDir, args: &[&str]) -> support::Ran {
    let command = ["explain", "--documents", "docs.parquet"];
    nearprint_in(dir.path(), &command.into_iter().chain(args.iter().copied()).collect::<Vec<_>>())
}

fn hex(text: &Value) -> u64 {
    u64::from_str_radix(text.as_str().unwrap(), 16).unwrap()
}

/// Feature to weights in both texts.
fn weights(pair: &Value) -> BTreeMap<String, [f64; 2]> {
    let kinds = ["shared", "only_a", "only_b"].map(|kind| pair["features"][kind].as_array().unwrap());
    let weight = |f: &Value| [f["weight_a"].as_f64().unwrap(), f["weight_b"].as_f64().unwrap()];
    kinds.into_iter().flatten().map(|f| (f["feature"].as_str().unwrap().to_owned(), weight(f))).collect()
}

#[test]
fn weights_by_idf_of_two_texts_have_one_unit() {
    let dir = tempfile::tempdir().unwrap();
    let first = "长江大桥昨天通车，市民可以免费参观，交通部门提醒大家注意安全。";
    let rows = [(Some("a"), Some(first)), (Some("b"), Some(&*format!("{first}{}", "交通".repeat(9))))];
    write_documents(&dir.path().join("docs.parquet"), &rows);
    let found = explain(&dir, &["a", "b", "--profile", "cppjieba", "--json"]).expect_success().json();
    let weights = weights(&found["pair"]);
    let [a, b] = weights["长江大桥"];
    assert_eq!(a, b);
    assert!(a > 1.0 && a < 100.0, "{a}");
}

#[test]
fn documents_of_a_job_are_those_of_all_its_nights_and_the_newest_text_counts() {
    for documents in ["documents", "documents/dt={dt}/part-0.parquet"] {
        let night = support::Night::new("");
        let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
        let job = job.replace("documents = \"documents\"", &format!("documents = \"{documents}\""));
        std::fs::write(night.path().join("job.toml"), job).unwrap();
        night.documents("2026-11-19", &[("a", &text(1, 40)), ("b", &text(2, 40))]);
        night.documents("2026-11-20", &[("a", &text(3, 40))]);
        let args = ["explain", "a", "b", "--config", "job.toml", "--json"];
        let found = nearprint_in(night.path(), &args).expect_success().json();
        let files: Vec<&str> = found["texts"].as_array().unwrap().iter().map(|t| t["file"].as_str().unwrap()).collect();
        assert_eq!(files, ["documents/dt=2026-11-20/part-0.parquet", "documents/dt=2026-11-19/part-0.parquet"]);
    }
    let nowhere = nearprint_in(std::path::Path::new("/"), &["explain", "a", "b"]);
    support::expect(&nowhere, 64, &["give --documents PATH, or --config"]);
}

#[test]
fn features_votes_and_bits_are_those_of_the_definition() {
    let dir = documents();
    let done = explain(&dir, &["fox", "cat", "--profile", "paper", "--json"]).expect_success().json();
    let pair = &done["pair"];
    let weights = weights(pair);
    assert_eq!(weights["the"], [4.0, 4.0]);
    assert_eq!(weights["fox"], [2.0, 0.0]);
    assert_eq!(weights["cat"], [0.0, 2.0]);
    let hash = |feature: &str| FeatureHash::default().hash::<u64>(feature.as_bytes());
    let vote = |bit: u32, side: usize| -> f64 {
        weights.iter().map(|(f, w)| if (hash(f) >> bit) & 1 == 1 { w[side] } else { -w[side] }).sum()
    };
    let fingerprint = |side: usize| (0..64).filter(|&bit| vote(bit, side) > 0.0).fold(0u64, |f, bit| f | (1 << bit));
    let [a, b] = [0, 1].map(fingerprint);
    assert_eq!([hex(&done["texts"][0]["fingerprint"]), hex(&done["texts"][1]["fingerprint"])], [a, b]);
    let bits: BTreeSet<u32> = (0..64).filter(|bit| ((a ^ b) >> bit) & 1 == 1).collect();
    assert!(!bits.is_empty());
    let told = pair["differing_bits"].as_array().unwrap();
    assert_eq!(told.iter().map(|t| u32::try_from(t["bit"].as_u64().unwrap()).unwrap()).collect::<BTreeSet<_>>(), bits);
    assert_eq!(pair["distance"], bits.len());
    let percent = 100.0 * (1.0 - f64::from((a ^ b).count_ones()) / 64.0);
    assert!((pair["similarity_percent"].as_f64().unwrap() - percent).abs() < 1e-9);
    for told in told {
        let bit = u32::try_from(told["bit"].as_u64().unwrap()).unwrap();
        assert!((told["vote_a"].as_f64().unwrap() - vote(bit, 0)).abs() < 1e-9, "bit {bit}");
        assert!((told["vote_b"].as_f64().unwrap() - vote(bit, 1)).abs() < 1e-9, "bit {bit}");
        // What decides takes the votes apart: one side of fox, old, cat, new.
        let toward_a = if (a >> bit) & 1 == 1 { 1.0 } else { -1.0 };
        let part =
            |f: &str| toward_a * if (hash(f) >> bit) & 1 == 1 { 1.0 } else { -1.0 } * (weights[f][0] - weights[f][1]);
        let expected: BTreeSet<&str> = weights.keys().map(String::as_str).filter(|f| part(f) > 0.0).collect();
        let deciders: Vec<&str> =
            told["features"].as_array().unwrap().iter().map(|f| f["feature"].as_str().unwrap()).collect();
        assert_eq!(deciders.iter().copied().collect::<BTreeSet<_>>(), expected, "bit {bit}");
        assert!(deciders.is_sorted_by(|x, y| part(x) >= part(y)), "bit {bit}: {deciders:?}");
    }
}

#[test]
fn the_verdict_is_the_joins_and_says_why() {
    let dir = documents();
    let near = explain(
        &dir,
        &["fox", "cat", "--json", "--set", "join.max_distance=63", "--set", "join.max_sketch_distance=255"],
    );
    assert_eq!(near.expect_success().json()["pair"]["is_pair"], true);
    let far = explain(&dir, &["fox", "cat", "--set", "join.max_distance=0"]).expect_success();
    assert!(far.stdout.contains("Not a pair: distance "), "{}", far.stdout);
    assert!(far.stdout.contains(" is above the profile's 0; sketch distance "), "{}", far.stdout);
    assert!(far.stdout.contains("brown [-fox-]{+cat+} jumps"), "{}", far.stdout);
    // A rule that holds in one of the two cases is no verdict for the other.
    let within =
        ["join.max_distance=63", "join.max_sketch_distance=255", "join.earlier.max_distance=0", "join.earlier.words=0"];
    let set = within.iter().flat_map(|set| ["--set", set]);
    let words: Vec<&str> = ["fox", "cat"].into_iter().chain(set).collect();
    let said = explain(&dir, &words).expect_success().stdout;
    assert!(said.contains("\nA pair within a night, not across nights: "), "{said}");
    // What finds documents of earlier nights goes with the profile's own distance.
    for (set, says) in [("join.max_distance=12", true), ("join.max_distance=11", false), ("join.earlier.words=1", true)]
    {
        let done = explain(&dir, &["fox", "cat", "--set", set]).expect_success().stdout;
        assert_eq!(done.contains("of different nights, they are "), says, "{set}: {done}");
    }
}

#[test]
fn texts_without_a_fingerprint_are_said_to_be_so_with_the_reason() {
    let dir = documents();
    let done = explain(&dir, &["short", "same"]).expect_success().stdout;
    assert!(
        done.contains(
            "no fingerprint (too short): it has 3 distinct features; the floor is 10 for Chinese, 10 for other text without spaces between words, 8 for other"
        ),
        "{done}"
    );
    assert!(done.contains("\nA pair: ") && done.contains("the normalised texts are equal"), "{done}");
    let done = explain(&dir, &["null", "empty", "--json"]).expect_success().json();
    assert_eq!([&done["texts"][0]["status"], &done["texts"][1]["status"]], ["null_text", "empty"]);
    assert_eq!(done["pair"]["is_pair"], false);
}

#[test]
fn more_than_two_texts_give_matrices() {
    let dir = documents();
    let done = explain(&dir, &["fox", "cat", "short", "--json"]).expect_success().json();
    let (fox, cat) = (hex(&done["texts"][0]["fingerprint"]), hex(&done["texts"][1]["fingerprint"]));
    let distance = (fox ^ cat).count_ones();
    assert_eq!(done["distances"], serde_json::json!([[0, distance, null], [distance, 0, null], [null, null, null]]));
    assert_eq!(done["sketch_distances"].as_array().unwrap().len(), 3);
    assert_eq!(done["pair"], Value::Null);
    assert!(explain(&dir, &["fox", "cat", "short"]).stdout.contains("Distances of the sketches"));
}

#[test]
fn no_control_character_of_a_document_reaches_the_terminal() {
    let dir = documents();
    let evil = DOCUMENTS[4].0;
    // The java profile keeps texts as they are.
    for more in [&[][..], &["--json"], &["--profile", "java"], &["--profile", "java", "--json"]] {
        let done = explain(&dir, &[&["fox", evil], more].concat()).expect_success();
        let control = done.stdout.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(control, None, "{:?}", done.stdout);
    }
}

#[test]
fn texts_may_be_given_instead_of_documents() {
    let dir = documents();
    std::fs::write(dir.path().join("b.txt"), DOCUMENTS[1].1).unwrap();
    let args = ["explain", "--text", DOCUMENTS[0].1, "--text-file", "b.txt", "--json"];
    let given = nearprint_in(dir.path(), &args).expect_success().json();
    let documents = explain(&dir, &["fox", "cat", "--json"]).json();
    assert_eq!(given["pair"], documents["pair"]);
    assert_eq!([&given["texts"][0]["id"], &given["texts"][1]["id"]], ["text 1", "b.txt"]);
}

/// Texts are told by their ids wherever they stand; nothing else of the documents is kept.
#[test]
fn ids_are_found_in_any_row_group_and_missing_ones_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let texts: Vec<(String, String)> = (0..2500).map(|i| (format!("d{i}"), text(i, 12))).collect();
    let rows: Vec<(Option<&str>, Option<&str>)> =
        texts.iter().map(|(id, t)| (Some(id.as_str()), Some(t.as_str()))).collect();
    write_documents(&dir.path().join("docs.parquet"), &rows);
    let done = explain(&dir, &["d2499", "d0", "--json"]).expect_success().json();
    assert_eq!([&done["texts"][0]["id"], &done["texts"][1]["id"]], ["d2499", "d0"]);
    let missing = explain(&dir, &["d1", "nobody"]);
    assert_eq!(missing.code, 66);
    assert!(missing.error().contains("no document 'nobody' in docs.parquet"), "{}", missing.stderr);
}

/// Some 140 KB without a full stop, two words changed.
#[test]
fn small_changes_of_long_texts_are_shown_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let long = text(1, 20_000);
    let mut words: Vec<&str> = long.split(' ').collect();
    (words[5_000], words[15_000]) = ("first", "second");
    std::fs::write(dir.path().join("a.txt"), &long).unwrap();
    std::fs::write(dir.path().join("b.txt"), words.join(" ")).unwrap();
    let args = ["explain", "--text-file", "a.txt", "--text-file", "b.txt", "--json"];
    let pair = nearprint_in(dir.path(), &args).expect_success().json()["pair"].clone();
    let added = |at: usize| pair["diff"][at].as_array().unwrap().iter().filter_map(|p| p["added"].as_str()).collect();
    let added: [Vec<&str>; 2] = [added(0), added(1)];
    assert_eq!((added, pair["diff"].as_array().unwrap().len()), ([vec!["first"], vec!["second"]], 2));
    assert_eq!(pair["diff_of_sentences"], false);

    std::fs::write(dir.path().join("a.txt"), "a ".repeat(120_000)).unwrap();
    std::fs::write(dir.path().join("b.txt"), "a ".repeat(120_000) + "b").unwrap();
    let said = nearprint_in(dir.path(), &args[..5]).expect_success().stdout;
    assert!(said.contains("Too long to compare word by word: whole sentences are shown"), "{said}");
}

#[test]
fn wrong_arguments_and_missing_files_have_their_exit_codes() {
    let dir = documents();
    for args in [
        &["explain"][..],
        &["explain", "fox", "cat"],
        &["explain", "--text", "one"],
        &["explain", "fox", "--documents", "docs.parquet"],
    ] {
        let done = nearprint_in(dir.path(), args);
        assert_eq!(done.code, 64, "{args:?}: {}", done.stderr);
    }
    let done = nearprint_in(dir.path(), &["explain", "fox", "cat", "--documents", "nothing.parquet"]);
    assert_eq!(done.code, 66, "{}", done.stderr);
    let done = nearprint_in(dir.path(), &["explain", "--text", "one", "--text-file", "nothing.txt"]);
    assert_eq!(done.code, 66, "{}", done.stderr);
}

/// A recrawled document is what its newest night has, as in a run.
#[test]
fn of_an_id_in_several_nights_the_newest_text_is_taken_and_its_file_named() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (text(1, 60), text(2, 60));
    let nights = [("dt=2026-11-19/z", &old), ("dt=2026-11-20/a", &new), ("dt=2026-11-21/a", &new)];
    for (name, text) in nights {
        // The last night has another document only.
        let id = if name.contains("21") { "y" } else { "x" };
        write_documents(&dir.path().join(format!("crawl/{name}.parquet")), &[(Some(id), Some(text.as_str()))]);
    }
    let args = ["explain", "x", "y", "--documents", "crawl"];
    let json = nearprint_in(dir.path(), &[&args[..], &["--json"]].concat()).expect_success().json();
    assert_eq!(
        (json["pair"]["is_pair"].as_bool(), json["pair"]["same_text"].as_bool()),
        (Some(true), Some(true)),
        "{json}"
    );
    assert_eq!(json["texts"][0]["file"], "crawl/dt=2026-11-20/a.parquet");
    let said = nearprint_in(dir.path(), &args).expect_success().stdout;
    assert!(said.starts_with("A  x  in crawl/dt=2026-11-20/a.parquet\n"), "{said}");
    // Without dates, the folder that comes last; within one, the first row stays what it is.
    for (name, text) in [("flat/1/a", &old), ("flat/2/a", &new), ("flat/2/b", &old)] {
        write_documents(&dir.path().join(format!("{name}.parquet")), &[(Some("x"), Some(text.as_str()))]);
    }
    let json =
        nearprint_in(dir.path(), &["explain", "x", "x", "--documents", "flat", "--json"]).expect_success().json();
    assert_eq!(json["texts"][0]["file"], "flat/2/a.parquet");
}
