//! `tune`: the sheet it draws, and what it makes of labels that are known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use nearprint_fingerprint::hamming_distance;
use serde_json::Value;

use crate::support::{NEARPRINT, Ran, Run, nearprint_in, rows, text, write_documents};

/// Thirty texts with five variants each, an exact copy of the first, and ids and texts that a spreadsheet would take for formulas.
fn documents() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut documents: Vec<(String, String)> = Vec::new();
    for seed in 0..30 {
        let base = text(seed, 60);
        documents.push((format!("=d{seed}-0"), format!("=SUM(A1) <b>{base}</b>")));
        for variant in 1..5 {
            documents.push((format!("d{seed}-{variant}"), format!("{base} {}", text(1000 * variant + seed, 3))));
        }
    }
    documents.push(("copy".to_owned(), documents[0].1.clone()));
    let rows: Vec<(Option<&str>, Option<&str>)> =
        documents.iter().map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    write_documents(&dir.path().join("docs.parquet"), &rows);
    dir
}

fn tune(dir: &Path, args: &[&str]) -> Ran {
    nearprint_in(dir, &[&["tune"], args].concat())
}

fn draw(dir: &Path, sheet: &str, more: &[&str]) -> Ran {
    tune(
        dir,
        &[&["--documents", "docs.parquet", "--sheet", sheet, "--per-distance", "4", "--max-distance", "10"], more]
            .concat(),
    )
}

fn read(path: &Path) -> Vec<BTreeMap<String, String>> {
    let content = std::fs::read_to_string(path).unwrap();
    let content = content.strip_prefix('\u{feff}').unwrap();
    csv::Reader::from_reader(content.as_bytes()).deserialize().map(|row| row.unwrap()).collect()
}

#[test]
fn the_sheet_holds_a_sample_of_every_distance_and_says_how_many_pairs_there_are() {
    let dir = documents();
    let done = draw(dir.path(), "sheet.csv", &["--json"]).expect_success().json();
    let sheet = read(&dir.path().join("sheet.csv"));
    nearprint_in(dir.path(), &["fingerprint", "--documents", "docs.parquet", "--output", "prints"]).expect_success();
    // doc_id, fingerprint: all but the copy, which is no text of its own (the smaller id stays).
    let prints = rows(&dir.path().join("prints/part-00000.parquet"));
    let prints: Vec<(&str, u64)> =
        prints.iter().filter(|r| r[0] != "copy").map(|r| (r[0].as_str(), r[1].parse().unwrap())).collect();
    assert_eq!(done["n_texts"], prints.len());
    let mut expected: BTreeMap<u32, u64> = BTreeMap::new();
    for (i, (_, a)) in prints.iter().enumerate() {
        for (_, b) in &prints[..i] {
            let distance = hamming_distance(*a, *b);
            *expected.entry(distance).or_default() += u64::from(distance <= 10);
        }
    }
    expected.retain(|_, n| *n > 0);
    let mut sampled: BTreeMap<u32, u64> = BTreeMap::new();
    for row in &sheet {
        let distance = row["distance"].parse().unwrap();
        assert_eq!(row["n_pairs"], expected[&distance].to_string());
        assert_eq!(row["label"], "");
        *sampled.entry(distance).or_default() += 1;
    }
    let four_at_most: BTreeMap<u32, u64> = expected.iter().map(|(d, n)| (*d, (*n).min(4))).collect();
    assert_eq!(sampled, four_at_most);
    assert!(expected.values().any(|n| *n > 4), "nothing was left out: {expected:?}");
    assert_eq!(done["n_pairs"], expected.values().sum::<u64>());
    // What comes first in the order of ids has no better chance than the rest.
    let row_id = |row: &BTreeMap<String, String>| row["id_a"].trim_start_matches('\'').to_owned();
    let mut ids: Vec<&str> = prints.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    let place = |id: &str| ids.binary_search(&id).unwrap();
    let (largest, n) = expected.iter().max_by_key(|(_, n)| **n).unwrap();
    let drawn = sheet.iter().filter(|row| row["distance"] == largest.to_string());
    let latest = drawn.map(|row| place(&row_id(row))).max().unwrap();
    assert!(latest > ids.len() / 4, "four of {n} pairs, all of the first {latest} of {} ids", ids.len());
}

#[test]
fn the_same_documents_give_the_same_sheet_in_whatever_order_they_come() {
    let dir = documents();
    draw(dir.path(), "a.csv", &["--html", "a.html"]).expect_success();
    let reversed: Vec<Vec<String>> = rows(&dir.path().join("docs.parquet")).into_iter().rev().collect();
    let reversed: Vec<(Option<&str>, Option<&str>)> =
        reversed.iter().map(|r| (Some(r[0].as_str()), Some(r[1].as_str()))).collect();
    write_documents(&dir.path().join("docs.parquet"), &reversed);
    draw(dir.path(), "b.csv", &["--html", "b.html", "--threads", "1"]).expect_success();
    for (a, b) in [("a.csv", "b.csv"), ("a.html", "b.html")] {
        assert_eq!(std::fs::read(dir.path().join(a)).unwrap(), std::fs::read(dir.path().join(b)).unwrap());
    }
}

#[test]
fn cells_are_no_formulas_and_the_page_takes_no_markup_from_documents() {
    let dir = documents();
    draw(dir.path(), "sheet.csv", &["--html", "page.html"]).expect_success();
    let sheet = read(&dir.path().join("sheet.csv"));
    let cells: BTreeSet<char> =
        sheet.iter().flat_map(BTreeMap::values).filter_map(|cell| cell.chars().next()).collect();
    assert!(cells.iter().all(|c| !['=', '+', '-', '@'].contains(c)), "{cells:?}");
    assert!(sheet.iter().any(|row| row["id_a"].starts_with("'=d") && row["text_a"].starts_with("'=SUM(A1) <b>")));
    let page = std::fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"));
    assert_eq!(page.matches("<section>").count(), sheet.len());
    assert!(page.contains("<mark>") && !page.contains("http:") && !page.contains("https:"));
}

#[test]
fn the_next_command_reads_the_sheet_with_the_profile_that_drew_it() {
    let dir = documents();
    let profile = ["--profile", "strict", "--set", "tokenize.features.weight=count"];
    let said = draw(dir.path(), "my sheet.csv", &profile).expect_success().stdout;
    let (_, next) = said.trim_end().rsplit_once("then: nearprint ").unwrap();
    assert_eq!(next, "tune --labels 'my sheet.csv' --profile strict --set tokenize.features.weight=count");
    let line = format!("{NEARPRINT} {next}");
    let read = Run::new(Path::new("sh"), dir.path(), &["-c", &line]).run().unwrap().expect_success().stdout;
    assert!(!read.contains("another profile"), "{read}");
}

#[test]
fn a_sheet_is_not_drawn_over_labels() {
    let dir = documents();
    draw(dir.path(), "sheet.csv", &[]).expect_success();
    let sheet = dir.path().join("sheet.csv");
    let labelled = std::fs::read_to_string(&sheet).unwrap() + "a day's work";
    std::fs::write(&sheet, &labelled).unwrap();
    let done = draw(dir.path(), "sheet.csv", &[]);
    assert_eq!(done.code, 73, "{}", done.stderr);
    assert_eq!(std::fs::read_to_string(&sheet).unwrap(), labelled);
    draw(dir.path(), "sheet.csv", &["--replace"]).expect_success();
}

/// (distance, pairs, labels), each pair of documents of its own; the sketch distance is ten times the distance.
fn labels(strata: &[(u32, u32, &[&str])]) -> String {
    let mut csv = "distance,sketch_distance,n_pairs,id_a,id_b,text_a,text_b,label,strata,profile\n".to_owned();
    let last = strata.iter().map(|(distance, ..)| *distance).max().unwrap();
    let n_pairs = |distance| strata.iter().find(|stratum| stratum.0 == distance).map_or(0, |stratum| stratum.1);
    let all: Vec<String> = (0..=last).map(|distance| format!("{distance}={}", n_pairs(distance))).collect();
    for (distance, n_pairs, labels) in strata {
        for (i, label) in labels.iter().enumerate() {
            let (sketch, all) = (10 * distance, all.join(" "));
            let _ =
                writeln!(csv, "{distance},{sketch},{n_pairs},a{distance}-{i},b{distance}-{i},x,y,{label},{all},of old");
        }
    }
    csv
}

fn estimate(csv: &str, more: &[&str]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("labels.csv"), csv).unwrap();
    tune(dir.path(), &[&["--labels", "labels.csv"], more].concat())
}

fn near(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|v| (v - expected).abs() < 1e-9)
}

const P: &str = "pos";
const N: &str = "neg";

/// Distance 0: 100 pairs, all of 4 labels pos. 3: 40 pairs, 3 of 4 pos. 7: 80 pairs, 1 of 4 pos, one gray, one row empty.
#[test]
fn each_label_stands_for_its_share_of_its_distance() {
    let csv = labels(&[(0, 100, &[P, P, P, P]), (3, 40, &[P, P, P, N]), (7, 80, &[P, N, N, "gray", ""])]);
    let done = estimate(&csv, &["--json", "--profile", "paper"]).expect_success().json();
    assert_eq!([&done["n_positive"], &done["n_negative"], &done["n_gray"], &done["n_unlabelled"]], [8, 3, 1, 1]);
    // Positive are 100 + 30 + 20; of distance 7's 80 pairs 20 are gray, and count neither way.
    let at = |k: usize| &done["by_max_distance"][k];
    assert!(near(&at(0)["precision"], 1.0) && near(&at(0)["recall"], 100.0 / 150.0), "{}", at(0));
    assert!(near(&at(3)["precision"], 130.0 / 140.0) && near(&at(3)["recall"], 130.0 / 150.0), "{}", at(3));
    assert!(near(&at(3)["f1"], 260.0 / 290.0), "{}", at(3));
    assert!(near(&at(7)["precision"], 150.0 / 200.0) && near(&at(7)["recall"], 1.0), "{}", at(7));
    assert_eq!([&at(0)["n_labels"], &at(3)["n_labels"], &at(7)["n_labels"]], [4, 8, 11]);
    assert_eq!(done["own"], *at(3));
    let best = &done["recommendation"];
    assert_eq!(best["max_distance"], 3);
    assert_eq!([&best["is_own"], &best["enough_labels"]], [true, false]);
    for row in done["by_max_distance"].as_array().unwrap() {
        for key in ["precision", "recall", "f1"] {
            let (ci, value) = (&row["ci"][key], row[key].as_f64().unwrap());
            assert!(ci[0].as_f64().unwrap() <= value && value <= ci[1].as_f64().unwrap(), "{key}: {row}");
        }
    }
    // Four labels of a hundred pairs leave room for others.
    assert!(at(0)["ci"]["precision"][0].as_f64().unwrap() < 0.9, "{}", at(0));
}

/// Labels of all pairs are a sample still, of documents like these.
#[test]
fn the_distance_with_the_highest_f1_is_recommended_with_its_interval() {
    let mut nearly = [P; 40];
    nearly[0] = N;
    let csv = labels(&[(0, 40, &[P; 40]), (5, 40, &nearly), (9, 40, &[N; 40])]);
    let done = estimate(&csv, &["--json", "--set", "join.max_distance=2"]).expect_success().json();
    let best = &done["recommendation"];
    assert_eq!(best["max_distance"], 5);
    assert_eq!([&best["is_own"], &best["enough_labels"]], [false, true], "{best}");
    assert!(near(&best["f1"], 158.0 / 159.0), "{best}");
    let ci = [0, 1].map(|end| best["ci"]["f1"][end].as_f64().unwrap());
    assert!(ci[0] > 0.9 && ci[0] < 158.0 / 159.0 && ci[1] >= 158.0 / 159.0, "{ci:?}");
    assert_eq!(best["better_than_own"], 1.0);
}

#[test]
fn sketch_distances_are_estimated_from_the_same_labels() {
    let csv = labels(&[(0, 12, &[P; 12]), (4, 12, &[N; 12]), (6, 12, &[P; 12])]);
    let done = estimate(&csv, &["--json", "--set", "join.max_sketch_distance=40"]).expect_success().json();
    // Distance 6 has sketches that differ in 60.
    assert!(near(&done["own"]["precision"], 0.5) && near(&done["own"]["recall"], 0.5), "{}", done["own"]);
    let rows = done["by_max_sketch_distance"].as_array().unwrap();
    let open = rows.iter().find(|row| row["max_sketch_distance"].is_null()).unwrap();
    assert!(near(&open["precision"], 2.0 / 3.0) && near(&open["recall"], 1.0), "{open}");
    // That sketches are not compared cannot be set: the largest on the sheet comes to the same.
    assert_eq!(done["recommendation"]["max_sketch_distance"], 60);
    let without = estimate(&csv, &["--json", "--profile", "paper"]).expect_success().json();
    assert_eq!(without["by_max_sketch_distance"], serde_json::json!([]));
    assert_eq!(without["recommendation"]["max_sketch_distance"], Value::Null);
}

#[test]
fn no_sketch_distance_that_leaves_the_judge_out_is_recommended() {
    let csv = labels(&[(0, 40, &[P; 40]), (4, 40, &[P; 40]), (9, 40, &[P; 40])]);
    let done = estimate(&csv, &["--json"]).expect_success().json();
    // Distance 9 has sketches that differ in 90.
    assert_eq!(done["recommendation"]["max_sketch_distance"], 40, "{done}");
    let said = "a larger max_sketch_distance counts for earlier nights alone, and from 80 on it leaves the judge out";
    assert!(done["warnings"].to_string().contains(said), "{done}");
    let without = estimate(&csv, &["--json", "--set", "judge.max_looks=0"]).expect_success().json();
    assert_eq!(without["recommendation"]["max_sketch_distance"], 90, "{without}");
    assert!(!without["warnings"].to_string().contains("judge"), "{without}");
}

#[test]
fn no_distance_beyond_the_sheets_largest_is_recommended() {
    let csv = labels(&[(0, 40, &[P; 40]), (3, 40, &[P; 40]), (5, 40, &[N; 40])]);
    let wide = ["--json", "--set", "join.max_distance=20", "--set", "join.max_sketch_distance=60"];
    let best = &estimate(&csv, &wide).expect_success().json()["recommendation"];
    assert_eq!(
        [&best["max_distance"], &best["is_own"], &best["enough_labels"]],
        [&Value::from(3), &Value::Bool(false), &Value::Bool(false)]
    );
    let csv = labels(&[(0, 40, &[P; 40]), (5, 40, &[P; 40])]);
    for (own, at, said) in [
        (
            20,
            5,
            "the profile's max_distance 20 is beyond the sheet's largest, 5: draw a wider one with --max-distance 20",
        ),
        (2, 5, "the best distance is the sheet's largest, 5: draw a wider one with --max-distance 9"),
    ] {
        let own = format!("join.max_distance={own}");
        let done = estimate(&csv, &["--set", &own, "--set", "join.max_sketch_distance=60"]).expect_success().stdout;
        assert!(done.contains(&format!("Highest F1: max_distance = {at},")), "{done}");
        assert!(done.contains(said), "{done}");
    }
}

#[test]
fn rows_that_are_gone_or_stand_twice_are_noticed() {
    let csv = labels(&[(0, 40, &[P; 12]), (3, 30, &[P; 12]), (5, 20, &["", ""])]);
    let lines: Vec<&str> = csv.lines().filter(|line| !line.starts_with("3,")).collect();
    let done = estimate(&lines.join("\n"), &["--json"]).expect_success().json();
    assert_eq!(
        [&done["unlabelled_distances"], &done["sheet_max_distance"]],
        [&serde_json::json!([3, 5]), &Value::from(5)]
    );
    let said = estimate(&lines.join("\n"), &[]).expect_success().stdout;
    assert!(said.contains("Warning: distance 3: all rows are gone: the estimates are without its 30 pairs"), "{said}");
    assert!(said.contains("Warning: distance 5: no row has a label: the estimates are without its 20 pairs"), "{said}");

    let (plain, lines) = (estimate(&csv, &["--json"]).json(), csv.lines().collect::<Vec<_>>());
    let twice = format!("{csv}{}\n{}\n", lines[1], lines[2].replace("a0-1,b0-1", "b0-1,a0-1").replace(P, ""));
    let done = estimate(&twice, &["--json"]).expect_success().json();
    assert_eq!([&done["n_repeated"], &done["n_rows"]], [2, 26]);
    assert_eq!(done["by_max_distance"], plain["by_max_distance"]);
    let other = format!("{csv}{}\n", lines[2].replace("a0-1,b0-1", "b0-1,a0-1").replace(P, N));
    let done = estimate(&other, &[]);
    assert_eq!(done.code, 65, "{}", done.stderr);
    assert!(done.error().contains("row 28: this pair has another label in row 3"), "{}", done.stderr);
}

#[test]
fn a_profile_other_than_the_sheets_is_noticed() {
    let dir = documents();
    draw(dir.path(), "sheet.csv", &[]).expect_success();
    let warnings = |more: &[&str]| {
        let done = tune(dir.path(), &[&["--labels", "sheet.csv", "--json"], more].concat()).expect_success().json();
        done["warnings"].to_string().contains("drawn with another profile")
    };
    assert!(!warnings(&["--set", "join.max_distance=3"]));
    assert!(warnings(&["--profile", "paper"]));
}

#[test]
fn documents_that_give_no_pairs_are_not_to_be_labelled() {
    let dir = tempfile::tempdir().unwrap();
    write_documents(
        &dir.path().join("docs.parquet"),
        &[(Some("1"), Some("short")), (Some("2"), Some(" ")), (Some("3"), None)],
    );
    let done = draw(dir.path(), "sheet.csv", &[]).expect_success().stdout;
    assert!(done.contains("3 documents: 0 fingerprinted, 1 too short, 1 empty, 1 NULL"), "{done}");
    assert!(done.contains("No pairs to label: no document has a fingerprint"), "{done}");
    assert!(!done.contains("--labels"), "{done}");
    let done = tune(dir.path(), &["--labels", "sheet.csv"]);
    assert_eq!(done.code, 65, "{}", done.stderr);
}

#[test]
fn too_few_labels_are_said_to_be_too_few() {
    let csv = labels(&[(0, 1000, &[P, P, "", ""]), (4, 500, &["", "", ""])]);
    let done = estimate(&csv, &[]).expect_success().stdout;
    assert!(done.contains("7 rows: 2 pos, 0 neg, 0 gray, 5 without a label"), "{done}");
    assert!(done.contains("Too few labels to go by:\n  2 labels are pos or neg: label at least 50\n  2 labels are pos: label at least 10"), "{done}");
    assert!(done.contains("distance 4: 0 of 500 pairs have a label"), "{done}");
    let none = estimate(&labels(&[(0, 1000, &["", ""])]), &[]).expect_success().stdout;
    assert!(none.contains("No recommendation: label some rows pos or neg first"), "{none}");
}

#[test]
fn sheets_come_back_as_spreadsheets_write_them() {
    let csv = labels(&[(0, 12, &[P; 12]), (4, 12, &[N; 12])]);
    let plain = estimate(&csv, &["--json"]).expect_success().json();
    let german = format!("\u{feff}{}", csv.replace(',', ";").replace('\n', "\r\n").replace("pos", " POS "));
    let capital = csv.replacen("label", "Label", 1).replacen("n_pairs", "N_Pairs", 1) + ",,,,,,,,,\n\n,,,,,,,,,\n";
    let mut lines: Vec<&str> = csv.lines().collect();
    lines[1..].reverse();
    let after_blanks = format!("\r\n\n{}", german.trim_start_matches('\u{feff}'));
    for other in [german, after_blanks, capital, lines.join("\n")] {
        let other = estimate(&other, &["--json"]).expect_success().json();
        assert_eq!(plain["by_max_distance"], other["by_max_distance"]);
    }
}

#[test]
fn ids_that_differ_by_blanks_or_apostrophes_stay_apart_in_a_sheet() {
    let dir = tempfile::tempdir().unwrap();
    let base = text(1, 80);
    let ids = ["a", " a", "a ", "=x", "'=x", "''=x", "'x"];
    let texts: Vec<String> = (0..).zip(ids).map(|(n, _)| format!("{base} {}", text(1000 + n, 2))).collect();
    let documents: Vec<_> = ids.iter().zip(&texts).map(|(id, text)| (Some(*id), Some(text.as_str()))).collect();
    write_documents(&dir.path().join("docs.parquet"), &documents);
    let drawn =
        ["--documents", "docs.parquet", "--sheet", "sheet.csv", "--per-distance", "100", "--max-distance", "20"];
    tune(dir.path(), &drawn).expect_success();
    let sheet = dir.path().join("sheet.csv");
    let n_rows = read(&sheet).len();
    assert!(n_rows > 10, "{n_rows}");
    let labelled = std::fs::read_to_string(&sheet).unwrap().replace(",,0=", ",pos,0=");
    std::fs::write(&sheet, labelled).unwrap();
    let done = tune(dir.path(), &["--labels", "sheet.csv", "--json"]).expect_success().json();
    assert_eq!([&done["n_rows"], &done["n_positive"], &done["n_repeated"]], [n_rows, n_rows, 0]);
}

#[test]
fn rows_are_counted_as_spreadsheets_do() {
    let csv = labels(&[(0, 9, &[P, P, P])]).replace("x,y", "\"x\nx\",y");
    let bad = csv.replacen("a0-2,", "'a0-2,", 1).replace("b0-2,\"x\nx\",y,pos", "b0-2,x,y,maybe");
    let blank = bad.replacen("profile\n", "profile\n\n", 1);
    for (csv, row) in [(&bad, 4), (&bad.replace('\n', "\r\n"), 4), (&blank, 5), (&blank.replace('\n', "\r\n"), 5)] {
        let done = estimate(csv, &[]);
        assert!(done.error().contains(&format!("row {row}: label 'maybe'")), "{}", done.stderr);
    }
}

#[test]
fn wrong_arguments_missing_files_and_bad_labels_have_their_exit_codes() {
    let dir = documents();
    for args in [
        &[][..],
        &["--documents", "docs.parquet"],
        &["--sheet", "a.csv"],
        &["--documents", "docs.parquet", "--sheet", "docs.parquet"],
        &["--documents", "docs.parquet", "--sheet", "a.csv", "--per-distance", "0"],
        &["--documents", "docs.parquet", "--sheet", "a.csv", "--labels", "b.csv"],
    ] {
        let done = tune(dir.path(), args);
        assert_eq!(done.code, 64, "{args:?}: {}", done.stderr);
    }
    assert_eq!(tune(dir.path(), &["--labels", "nothing.csv"]).code, 66);
    assert_eq!(tune(dir.path(), &["--documents", "nothing.parquet", "--sheet", "a.csv"]).code, 66);
    for (csv, said) in [
        (labels(&[(0, 9, &[P, "maybe"])]), "row 3: label 'maybe' is not pos, neg, gray or empty"),
        (labels(&[(0, 1, &[P, P])]), "row 3: more rows of this distance than n_pairs"),
        (labels(&[(0, 9, &[P]), (0, 8, &[P])]), "row 3: n_pairs differs"),
        (labels(&[(0, 9, &[P, P])]).replace(",0=9,", ",9,"), "row 2: strata '9' is not as tune wrote it"),
        (
            labels(&[(0, 9, &[P, P])]) + &labels(&[(0, 9, &[P])]).replace("of old", "of new"),
            "row 4: distance 'distance'",
        ),
        (labels(&[(0, 9, &[P, P])]).replacen("of old", "of new", 1), "row 3: strata or profile differ"),
        (labels(&[(0, 9, &[P])]).replacen("text_a", "label", 1), "row 1: two columns 'label': keep one of them"),
        (
            labels(&[(0, 9, &[P])]).replace("\n0,0,", "\n0,300,"),
            "sketch_distance '300' is not a whole number from 0 to 256",
        ),
        ("distance,label\n0,pos\n".to_owned(), "no column 'sketch_distance'"),
        (
            labels(&[(0, 9, &[P])]).replace("\n0,", "\nzero,"),
            "row 2: distance 'zero' is not a whole number from 0 to 63",
        ),
    ] {
        let done = estimate(&csv, &[]);
        assert_eq!(done.code, 65, "{}", done.stderr);
        assert!(done.error().contains(said), "{}", done.stderr);
    }
}
