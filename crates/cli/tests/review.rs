//! `nearprint review`: pairs that people look at, and what their answers say.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{self, Night, Ran, Run, command, edited, expect, nearprint_in, text, write_documents};

const DT: &str = "2026-11-20";

/// A night of families of near copies, and of texts that are alone. Each family has a file. Of the documents that are dropped,
/// a few are 4 to 7 bits away from the one that stays, the others fewer.
fn night() -> Night {
    let night = Night::new("");
    for family in 0..12 {
        let base = text(family, 200);
        let mut rows = vec![(format!("f{family}-0"), base.clone())];
        rows.extend((1..4).map(|copy| (format!("f{family}-{copy}"), edited(&base, copy))));
        write_file(&night, &format!("f{family}"), &rows);
    }
    let alone: Vec<_> = (100..120).map(|seed| (format!("s{seed}"), text(seed, 200))).collect();
    write_file(&night, "alone", &alone);
    night.run(DT, &[]).expect_success();
    night
}

fn write_file(night: &Night, name: &str, rows: &[(String, String)]) {
    let rows: Vec<_> = rows.iter().map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    write_documents(&night.path().join(format!("documents/dt={DT}/{name}.parquet")), &rows);
}

const REVIEW: [&str; 7] = ["review", "--config", "job.toml", "--answers", "answers.jsonl", "--dt", DT];

fn answers(night: &Night) -> Vec<Value> {
    let content = fs::read_to_string(night.path().join("answers.jsonl")).unwrap();
    content.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Types these keys at a terminal, a line each. Standard output and error are one; the summary is in a file.
fn typed(night: &Night, keys: &str, more: &[&str]) -> (Ran, Value) {
    let args = [&REVIEW[..], more, &["--summary-file", "seen.json"]].concat().join(" ");
    let line = format!("stty cols 120; {} {args}", support::NEARPRINT);
    let typed = format!("printf '{}' | script -qec '{line}' /dev/null", keys.replace(' ', "\\n"));
    let shown = Run::new(Path::new("sh"), night.path(), &["-c", &typed]).run().unwrap().expect_success();
    let summary = fs::read_to_string(night.path().join("seen.json")).unwrap();
    (shown, serde_json::from_str(&summary).unwrap())
}

#[test]
fn answers_are_kept_as_they_are_given_and_a_night_goes_on_where_somebody_stopped() {
    let night = night();
    let (shown, done) = typed(&night, "s x n k q ", &["--sample", "9"]);
    assert!(shown.stdout.contains("the first was dropped for the second"), "{}", shown.stdout);
    assert!(shown.stdout.contains(" | "), "{}", shown.stdout);
    assert_eq!(
        (done["n_drawn"].as_u64(), done["n_answered"].as_u64(), done["n_open"].as_u64()),
        (Some(9), Some(3), Some(6))
    );
    let given: Vec<Value> = answers(&night).iter().take(4).map(|pair| pair["answer"].clone()).collect();
    assert_eq!(given, [json!("same"), json!("different"), json!("skipped"), Value::Null]);
    // Back, to the answer before.
    let (_, second) = typed(&night, "s b n s q ", &[]);
    assert_eq!((second["n_drawn"].as_u64(), second["n_open"].as_u64()), (Some(0), Some(4)));
    let given: Vec<Value> = answers(&night).iter().map(|pair| pair["answer"].clone()).collect();
    assert_eq!(given[3..5], [json!("different"), json!("same")]);
    let shown = nearprint_in(night.path(), &REVIEW[..5]).expect_success().stdout;
    for part in ["answers.jsonl: 0 answers now, 4 open", "night ", "month ", "2026-11 "] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_program_without_a_terminal_is_asked_nothing_whatever_its_standard_input_has() {
    let night = night();
    let args = [&REVIEW[..], &["--sample", "9", "--json"]].concat();
    let piped = command(night.path(), &args).wrapped(&["sh", "-c", "yes s | exec \"$@\"", "sh"]);
    let done = piped.run().unwrap().expect_success();
    assert!(!done.stderr.contains("same (s)"), "{}", done.stderr);
    let done = done.json();
    assert_eq!((done["n_drawn"].as_u64(), done["n_answered"].as_u64()), (Some(9), Some(0)), "{done}");
    assert!(answers(&night).iter().all(|pair| pair["answer"].is_null()));
}

#[test]
fn answers_that_a_program_writes_give_the_precision_of_the_night() {
    let night = night();
    nearprint_in(night.path(), &[&REVIEW[..], &["--sample", "30"]].concat()).expect_success();
    let mut pairs = answers(&night);
    let n_drops = pairs.iter().filter(|pair| pair["is_drop"] == true).count();
    assert!(n_drops >= 20, "{n_drops} of {}", pairs.len());
    for pair in &mut pairs {
        let family = |id: &Value| id.as_str().unwrap().split('-').next().unwrap().to_owned();
        let same = family(&pair["doc_id"]) == family(&pair["other_id"]);
        pair["answer"] = json!(if same { "same" } else { "different" });
    }
    let lines: Vec<String> = pairs.iter().map(Value::to_string).collect();
    fs::write(night.path().join("answers.jsonl"), lines.join("\n")).unwrap();
    let done = nearprint_in(night.path(), &[&REVIEW[..], &["--json"]].concat()).expect_success().json();
    let of = &done["nights"][0];
    assert_eq!((of["precision"].as_f64(), of["n_different"].as_u64()), (Some(1.0), Some(0)), "{done}");
    let low = of["precision_ci"][0].as_f64().unwrap();
    assert!((0.8..1.0).contains(&low), "{low}");
    assert_eq!(done["months"][0]["dt"], "2026-11");
    // A night that was replaced is drawn again, and its earlier answers count no more.
    fs::write(night.path().join("answers.jsonl"), lines.join("\n")).unwrap();
    night.run(DT, &["--replace", "--max-cluster", "7", "--pairs", "all"]).expect_success();
    let again =
        nearprint_in(night.path(), &[&REVIEW[..], &["--sample", "5", "--json"]].concat()).expect_success().json();
    assert_eq!((again["n_drawn"].as_u64(), again["nights"].as_array().map(Vec::len)), (Some(5), Some(0)), "{again}");
    assert!(again["warnings"][0].as_str().is_some_and(|said| said.contains("about former generations")), "{again}");
    // Once the former generation is published again, its answers count, wherever they stand.
    night.run(DT, &["--replace"]).expect_success();
    for args in [&REVIEW[..], &REVIEW[..5]] {
        let former = nearprint_in(night.path(), &[args, &["--json"]].concat()).expect_success().json();
        assert_eq!(
            (former["n_drawn"].as_u64(), former["nights"][0]["precision"].as_f64()),
            (Some(0), Some(1.0)),
            "{former}"
        );
    }
}

/// Writes an answer into each line of the table.
fn answer_all(night: &Night, pairs: &mut [Value]) {
    for pair in &mut *pairs {
        pair["answer"] = json!("same");
    }
    let lines: Vec<String> = pairs.iter().map(Value::to_string).collect();
    fs::write(night.path().join("answers.jsonl"), lines.join("\n")).unwrap();
}

#[test]
fn fewer_pairs_than_a_night_has_kinds_are_not_drawn() {
    let night = night();
    let few = nearprint_in(night.path(), &[&REVIEW[..], &["--sample", "1"]].concat());
    expect(&few, 64, &["--sample 1: 2026-11-20 has 2 kinds of pairs: give at least 2"]);
    assert!(!night.path().join("answers.jsonl").exists());
    let done = nearprint_in(night.path(), &[&REVIEW[..], &["--sample", "2", "--json"]].concat()).expect_success();
    assert_eq!(done.json()["n_drawn"], 2);
}

#[test]
fn there_is_no_figure_where_no_pair_of_a_kind_was_shown() {
    let night = night();
    // The texts of the far pairs are gone.
    let decisions = night.decisions(DT);
    let is_far = |decided: &[String]| decided[2].parse().is_ok_and(|distance: u32| distance >= 4);
    let far = decisions.iter().filter(|(_, decided)| is_far(decided)).map(|(id, _)| id.split('-').next().unwrap());
    for family in far.collect::<BTreeSet<&str>>() {
        fs::remove_file(night.path().join(format!("documents/dt={DT}/{family}.parquet"))).unwrap();
    }
    let drawn = nearprint_in(night.path(), &[&REVIEW[..], &["--json"]].concat()).expect_success().json();
    assert!(drawn["n_without_texts"].as_u64() >= Some(2) && drawn["n_drawn"].as_u64() >= Some(2), "{drawn}");
    answer_all(&night, &mut answers(&night));
    let done = nearprint_in(night.path(), &[&REVIEW[..], &["--json"]].concat()).expect_success().json();
    let of = &done["nights"][0];
    assert_eq!([&of["precision"], &of["recall"]], [&Value::Null, &Value::Null], "{of}");
    let far = &of["strata"][1];
    assert_eq!((&far["name"], &far["n_stratum"]), (&json!("dropped, 4 to 7 bits"), &json!(2)), "{of}");
    assert_eq!(far["same"], Value::Null);
}

#[test]
fn a_pair_that_stands_twice_counts_once_and_two_answers_about_it_are_refused() {
    let night = night();
    let table = night.path().join("answers.jsonl");
    nearprint_in(night.path(), &[&REVIEW[..], &["--sample", "6"]].concat()).expect_success();
    answer_all(&night, &mut answers(&night));
    let figures = || nearprint_in(night.path(), &[&REVIEW[..5], &["--json"]].concat());
    let once = figures().expect_success().json();
    let lines = fs::read_to_string(&table).unwrap();
    let last = answers(&night).pop().unwrap();
    let with_last = |answer: Value| {
        let mut last = last.clone();
        last["answer"] = answer;
        fs::write(&table, format!("{lines}\n{last}\n")).unwrap();
    };
    for answer in [json!("same"), Value::Null] {
        with_last(answer);
        let twice = figures().expect_success().json();
        assert_eq!([&twice["nights"], &twice["n_open"]], [&once["nights"], &once["n_open"]], "{twice}");
        assert!(
            twice["warnings"][0].as_str().is_some_and(|said| said.contains("row: 1; each pair counts once")),
            "{twice}"
        );
    }
    with_last(json!("different"));
    expect(&figures(), 65, &["answers.jsonl: row 7: this pair has another answer in row 6: keep one of the two"]);
    // Of two documents that both stay, none is the first.
    let mut kept = last.clone();
    kept["is_drop"] = json!(false);
    let mut swapped = kept.clone();
    (swapped["doc_id"], swapped["other_id"]) = (kept["other_id"].clone(), kept["doc_id"].clone());
    swapped["answer"] = json!("different");
    fs::write(&table, format!("{kept}\n{swapped}\n")).unwrap();
    expect(&figures(), 65, &["answers.jsonl: row 2: this pair has another answer in row 1"]);
}

#[test]
fn a_table_that_was_saved_with_a_byte_order_mark_and_line_ends_of_windows_is_read() {
    let night = night();
    let table = night.path().join("answers.jsonl");
    nearprint_in(night.path(), &[&REVIEW[..], &["--sample", "6"]].concat()).expect_success();
    answer_all(&night, &mut answers(&night));
    let figures = || nearprint_in(night.path(), &[&REVIEW[..], &["--json"]].concat()).expect_success().json();
    let plain = figures();
    let lines = fs::read_to_string(&table).unwrap();
    fs::write(&table, format!("\u{feff}{}\r\n", lines.trim_end().replace('\n', "\r\n"))).unwrap();
    let saved = figures();
    assert_eq!([&saved["nights"], &saved["n_open"]], [&plain["nights"], &plain["n_open"]], "{saved}");
    assert_eq!(saved["n_drawn"], 0);
}

#[test]
fn a_night_that_was_drawn_is_not_drawn_again_and_review_says_so() {
    let night = night();
    let review = |more: &[&str]| nearprint_in(night.path(), &[&REVIEW[..], more].concat()).expect_success();
    assert_eq!(review(&["--sample", "6", "--json"]).json()["warnings"], json!([]));
    let drawn = answers(&night);
    assert_eq!(review(&["--json"]).json()["warnings"], json!([]));
    let said = "pairs of 2026-11-20 were drawn before: --sample and --seed change nothing; for another draw, give another file as --answers";
    for more in [["--sample", "9"], ["--seed", "3"]] {
        let again = review(&[&more[..], &["--json"]].concat()).json();
        assert_eq!((&again["n_drawn"], &again["warnings"]), (&json!(0), &json!([said])), "{again}");
        let shown = review(&more).stdout;
        assert!(shown.contains(&format!("Warning: {said}\n")), "{shown}");
    }
    assert_eq!(answers(&night), drawn);
}

#[test]
fn a_table_that_is_not_there_is_missing_unless_a_night_is_drawn() {
    let night = Night::new("");
    let missing = ["review", "--config", "job.toml", "--answers", "anwsers.jsonl"];
    expect(&nearprint_in(night.path(), &missing), 66, &["no reviewed pairs at anwsers.jsonl", "--dt"]);
    assert!(!night.path().join("anwsers.jsonl").exists());
}

#[test]
fn a_file_that_has_no_answers_stays_as_it_is() {
    let night = night();
    fs::write(night.path().join("answers.jsonl"), "{\"id\": 1}\n").unwrap();
    expect(&nearprint_in(night.path(), &REVIEW), 73, &["no table of reviewed pairs of nearprint"]);
    assert_eq!(fs::read_to_string(night.path().join("answers.jsonl")).unwrap(), "{\"id\": 1}\n");
    let within = ["review", "--config", "job.toml", "--dt", DT, "--answers", "store/answers.jsonl"];
    expect(&nearprint_in(night.path(), &within), 64, &["store"]);
    let missing = ["review", "--config", "job.toml", "--dt", "2026-11-21", "--answers", "new.jsonl"];
    expect(&nearprint_in(night.path(), &missing), 66, &["2026-11-21"]);
    assert!(!night.path().join("new.jsonl").exists());
}
