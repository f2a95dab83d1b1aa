//! Bad input: one line that names what is wrong and what to do, the documented exit code, and nothing published.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod support;

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int64Array, ListArray, StringArray, UInt64Array};
use arrow::datatypes::Int32Type;
use support::{Night, Output, nearprint_in, text, write_documents, write_fingerprints, write_parquet};

/// Name and values of each.
type Columns<'a> = Vec<(&'a str, ArrayRef)>;

const DT: &str = "2026-11-20";

/// A night with one good document, a bad file beside it, and what the run then says.
fn run_with(job: &str, name: &str, make: impl Fn(&std::path::Path)) -> (Night, Output) {
    let night = Night::new(job);
    night.documents(DT, &[("good", &text(1, 40))]);
    make(&night.path().join(format!("documents/dt={DT}/{name}")));
    let done = night.run(DT, &[]);
    (night, done)
}

fn expect(done: &Output, code: i32, parts: &[&str]) {
    assert_eq!(done.code, code, "{}", done.stderr);
    for part in parts {
        assert!(done.error().contains(part), "{part:?} is not in: {}", done.stderr);
    }
    let last = done.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("nearprint: error: "), "more than one line: {}", done.stderr);
    if done.stdout.contains('{') {
        assert_eq!(done.json()["exit_code"], code);
        assert_eq!(done.json()["status"], "failed");
    }
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
}

fn expect_nothing_published(night: &Night) {
    assert!(!night.path().join("results").exists() && !night.path().join("store").exists());
}

fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(values.iter().copied().collect::<StringArray>())
}

#[test]
fn files_that_are_not_parquet_or_are_cut_short_are_named() {
    let whole = tempfile::tempdir().unwrap();
    write_documents(&whole.path().join("x.parquet"), &[(Some("a"), Some(&text(1, 40)))]);
    let whole = std::fs::read(whole.path().join("x.parquet")).unwrap();
    for (what, content) in [
        ("empty", Vec::new()),
        ("four bytes", b"PAR1".to_vec()),
        ("text", b"hello, not Parquet".to_vec()),
        ("truncated", whole[..whole.len() - 9].to_vec()),
    ] {
        let (night, done) = run_with("", "bad.parquet", |path| std::fs::write(path, &content).unwrap());
        expect(&done, 65, &["bad.parquet", "not a readable Parquet file"]);
        expect_nothing_published(&night);
        println!("{what}: {}", done.error());
    }
}

#[test]
fn missing_columns_wrong_types_and_drift_are_named_with_the_file_and_column() {
    let ids = || strings(&[Some("a")]);
    let long = text(1, 40);
    let texts = || strings(&[Some(&long)]);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"x"]));
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]));
    let cases: [(Columns<'_>, Vec<&str>); 6] = [
        (vec![("id", ids()), ("body", texts())], vec!["no column 'text'", "it has id, body", "text_column"]),
        (vec![("url", ids()), ("text", texts())], vec!["no column 'id'", "id_column"]),
        (vec![("id", ids()), ("text", Arc::clone(&numbers))], vec!["column 'text' is integer", "expected string"]),
        (vec![("id", ids()), ("text", bytes)], vec!["column 'text' is Binary"]),
        (vec![("id", list), ("text", texts())], vec!["column 'id' is List", "expected string or integer"]),
        (vec![("id", numbers), ("text", texts())], vec!["column 'id' is string in", "integer in"]),
    ];
    for (columns, mut parts) in cases {
        let (night, done) = run_with("", "bad.parquet", |path| write_parquet(path, &columns));
        parts.push(if parts[0].contains("is string in") { "part-0.parquet" } else { "bad.parquet" });
        expect(&done, 65, &parts);
        expect_nothing_published(&night);
    }
}

#[test]
fn repeated_ids_are_refused_with_both_places_and_null_ids_unless_they_are_allowed() {
    let (a, b) = (text(2, 40), text(3, 40));
    let (night, done) =
        run_with("", "more.parquet", |path| write_documents(path, &[(Some("x"), Some(&a)), (Some("good"), Some(&b))]));
    expect(&done, 65, &["1 document ids are repeated", "'good' in", "more.parquet row 2", "part-0.parquet row 1"]);
    expect_nothing_published(&night);

    let null_id = |path: &std::path::Path| write_documents(path, &[(Some("x"), Some(&a)), (None, Some(&b))]);
    let (night, done) = run_with("", "more.parquet", null_id);
    expect(&done, 65, &["1 rows cannot be used, 0 allowed", "more.parquet row 2: null id", "max_bad_rows"]);
    expect_nothing_published(&night);

    let (night, done) = run_with("max_bad_rows = 1\n", "more.parquet", null_id);
    assert_eq!(done.expect_success().json()["n_bad_rows"], 1);
    let quarantine = night.published(DT, "quarantine");
    assert_eq!(quarantine.len(), 1);
    assert_eq!(quarantine[0][1..], ["2", "null id"]);
}

#[test]
fn null_empty_and_blank_texts_are_skipped_counted_and_listed() {
    let rows = [(Some("n"), None), (Some("e"), Some("")), (Some("b"), Some(" \t\u{200b}\n"))];
    let (night, done) = run_with("", "more.parquet", |path| write_documents(path, &rows));
    let summary = done.expect_success().json();
    assert_eq!(
        (summary["n_null_text"].as_u64(), summary["n_empty"].as_u64(), summary["n_skip"].as_u64()),
        (Some(1), Some(2), Some(3))
    );
    assert_eq!(night.published(DT, "skipped"), [["b", "empty"], ["e", "empty"], ["n", "null_text"]]);
}

#[test]
fn a_file_without_rows_is_fine_and_a_night_without_files_is_not() {
    let (_night, done) = run_with("", "none.parquet", |path| write_documents(path, &[]));
    assert_eq!(done.expect_success().json()["n_documents"], 1);
    let night = Night::new("");
    let done = night.run(DT, &[]);
    expect(&done, 66, &["no documents at documents/dt=2026-11-20"]);
    write_documents(&night.path().join(format!("documents/dt={DT}/none.parquet")), &[]);
    let empty = night.run(DT, &[]).expect_success().json();
    assert_eq!((empty["n_documents"].as_u64(), empty["n_pairs"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn bad_lines_of_jsonl_are_named_by_their_number() {
    for (content, parts) in [
        ("{\"id\":\"a\",\"text\":\"x\"}\n\nnot json\n", ["row 3", "not JSON"]),
        ("{\"id\":\"a\",\"text\":\"x\"}\n[1]\n", ["row 2", "not a JSON object"]),
        ("{\"id\":\"a\",\"text\":\"x\"}\n{\"id\":\"b\",\"text\":5}\n", ["row 2", "column 'text' is not a string"]),
        ("{\"id\":\"a\",\"body\":\"x\"}\n", ["no column 'text'", "it has body, id"]),
    ] {
        let (_night, done) = run_with("", "bad.jsonl", |path| std::fs::write(path, content).unwrap());
        expect(&done, 65, &["bad.jsonl", parts[0], parts[1]]);
    }
    let (_night, done) = run_with("", "bad.jsonl.gz", |path| std::fs::write(path, b"\x1f\x8b\x08cut").unwrap());
    expect(&done, 65, &["bad.jsonl.gz", "cannot be read past line 0"]);
}

#[test]
fn job_files_with_unknown_keys_or_values_are_refused_by_name() {
    for (job, parts) in [
        ("colour = \"red\"\n", vec!["job.toml", "line 4", "unknown field `colour`"]),
        ("profile = \"fast\"\n", vec!["no profile 'fast'", "default, paper, java, hanlp-java"]),
        ("[join]\nmax_distnace = 3\n", vec!["unknown field `max_distnace`"]),
        ("[join]\nmax_distance = 65\n", vec!["max_distance", "65 is not below"]),
        ("[tokenize.features]\nweight = \"heavy\"\n", vec!["heavy"]),
        ("keep = [\"a sideways\"]\n", vec!["keep", "'a sideways'"]),
        ("[resources]\nmemory_limit = \"much\"\n", vec!["'much' is not a size"]),
        ("bits = 128\n", vec!["bits", "32 or 64"]),
        ("profile = \"paper\"\n[join]\nmax_sketch_distance = 56\n", vec!["max_sketch_distance", "[sketch]"]),
    ] {
        let night = Night::new(job);
        night.documents(DT, &[("a", &text(1, 40))]);
        expect(&night.run(DT, &[]), 78, &parts);
        expect_nothing_published(&night);
    }
}

#[test]
fn arguments_that_mean_nothing_are_usage_errors() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40))]);
    for dt in ["yesterday", "2026-02-30", "2026-1-1", "../../etc"] {
        expect(&night.run(dt, &[]), 64, &["--dt", "is not a date like 2026-11-20"]);
    }
    let cases: [&[&str]; 5] = [
        &["run", "--dt", DT, "--json"],
        &["jion", "--json"],
        &["join", "--queries", "x", "--self", "--output", "o", "--max-distance", "64", "--json"],
        &["join", "--queries", "x", "--output", "o", "--max-distance", "3", "--json"],
        &["run", "--config", "job.toml", "--dt", DT, "--memory-limit", "lots", "--json"],
    ];
    for args in cases {
        let done = nearprint_in(night.path(), args);
        assert_eq!((done.code, done.json()["exit_code"].as_i64()), (64, Some(64)), "{}", done.stderr);
    }
    expect(&nearprint_in(night.path(), &["run", "--config", "none.toml", "--dt", DT, "--json"]), 66, &["none.toml"]);
    expect(&nearprint_in(night.path(), &["store", "info", "nowhere", "--json"]), 66, &["no store at nowhere"]);
}

#[test]
fn a_store_of_another_configuration_is_refused() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40))]).documents("2026-11-21", &[("b", &text(1, 40))]);
    night.run(DT, &[]).expect_success();
    let before = support::snapshot(night.path());
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("other.toml"), job + "profile = \"paper\"\n").unwrap();
    let done = nearprint_in(night.path(), &["run", "--config", "other.toml", "--dt", "2026-11-21", "--json"]);
    expect(&done, 78, &["store", "another configuration"]);
    let mut after = support::snapshot(night.path());
    after.remove(std::path::Path::new("other.toml"));
    assert_eq!(after, before);
}

#[test]
fn a_published_night_with_other_content_needs_replace() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40))]).run(DT, &[]).expect_success();
    night.documents(DT, &[("b", &text(2, 40)), ("c", &text(2, 40))]);
    expect(&night.run(DT, &[]), 73, &["is published from other inputs", "--replace"]);
    assert_eq!(night.decisions(DT).keys().collect::<Vec<_>>(), ["a"]);
    night.run(DT, &["--replace"]).expect_success();
    assert_eq!(night.decisions(DT).keys().collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn outputs_that_exist_are_refused_and_replace_touches_nothing_but_its_own_parts() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<(String, u64)> = (0..9).map(|i| (format!("{i}"), i % 2)).collect();
    write_fingerprints(&dir.path().join("queries/part-00000.parquet"), &rows);
    let join = |more: &[&str]| {
        let args = ["join", "--queries", "queries", "--self", "--max-distance", "1", "--output", ".", "--json"];
        nearprint_in(dir.path(), &[&args[..], more].concat())
    };
    join(&[]).expect_success();
    expect(&join(&[]), 73, &["the output exists", "--replace"]);
    std::fs::write(dir.path().join("pairs/part-00007.parquet"), "left over by a longer run").unwrap();
    std::fs::write(dir.path().join("pairs/notes.parquet"), "somebody's").unwrap();
    join(&["--replace"]).expect_success();
    let left: Vec<_> = support::snapshot(dir.path()).into_keys().map(|p| p.display().to_string()).collect();
    assert_eq!(left, ["_SUCCESS", "pairs/notes.parquet", "pairs/part-00000.parquet", "queries/part-00000.parquet"]);
}

#[test]
fn fingerprints_datasets_with_other_columns_or_other_settings_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ids = strings(&[Some("a"), Some("b")]);
    let numbers: ArrayRef = Arc::new(UInt64Array::from(vec![Some(1 << 40), None]));
    let signed: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    write_parquet(
        &dir.path().join("null.parquet"),
        &[("doc_id", Arc::clone(&ids)), ("fingerprint", Arc::clone(&numbers))],
    );
    write_parquet(&dir.path().join("signed.parquet"), &[("doc_id", Arc::clone(&ids)), ("fingerprint", signed)]);
    write_parquet(&dir.path().join("nothing.parquet"), &[("doc_id", ids)]);
    write_fingerprints(&dir.path().join("wide.parquet"), &[("a".to_owned(), 1 << 40)]);
    let join = |queries: &str, more: &[&str]| {
        let args = ["join", "--queries", queries, "--self", "--max-distance", "1", "--output", "o", "--json"];
        nearprint_in(dir.path(), &[&args[..], more].concat())
    };
    expect(&join("null.parquet", &[]), 65, &["null.parquet: row 2", "fingerprint is NULL"]);
    expect(&join("signed.parquet", &[]), 65, &["column 'fingerprint' is Int64, expected UInt64"]);
    expect(&join("nothing.parquet", &[]), 65, &["no column 'fingerprint'"]);
    expect(&join("wide.parquet", &["--bits", "32"]), 65, &["more than 32 bits"]);
    expect(&join("wide.parquet", &["--max-sketch-distance", "9"]), 65, &["no column 'sketch'"]);
    expect(&join("gone.parquet", &[]), 66, &["no fingerprints at gone.parquet"]);

    write_documents(&dir.path().join("docs.parquet"), &[(Some("a"), Some(&text(1, 40)))]);
    for profile in ["default", "paper"] {
        let args = ["fingerprint", "--documents", "docs.parquet", "--profile", profile, "--output", profile, "--json"];
        nearprint_in(dir.path(), &args).expect_success();
    }
    expect(&join("paper", &["--existing", "default"]), 78, &["made with another configuration"]);
}

#[test]
fn damaged_stores_are_found_by_check_and_refused_by_runs() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40)), ("b", &text(2, 40))]).documents("2026-11-21", &[("c", &text(3, 40))]);
    night.run(DT, &[]).expect_success();
    let runs = support::snapshot(&night.path().join("store/runs"));
    let (name, content) = runs.iter().find(|(name, _)| name.ends_with("fingerprints/part-00000.parquet")).unwrap();
    let file = night.path().join("store/runs").join(name);
    for at in [10, content.len() / 2, content.len() - 20] {
        let mut flipped = content.clone();
        flipped[at] ^= 4;
        std::fs::write(&file, flipped).unwrap();
        let check = nearprint_in(night.path(), &["store", "check", "store", "--json"]);
        assert_eq!((check.code, check.json()["problems"].as_array().unwrap().len()), (65, 1), "{}", check.stdout);
    }
    std::fs::remove_file(&file).unwrap();
    expect(&night.run("2026-11-21", &[]), 65, &["the file is gone", "the store is damaged", "--replace"]);
    night.run(DT, &["--replace"]).expect_success();
    assert_eq!(std::fs::read(&file).unwrap(), *content);
    std::fs::remove_file(night.path().join("store/_commits/00000002.json")).unwrap();
    std::fs::write(night.path().join("store/_commits/00000001.json"), "{}").unwrap();
    expect(&night.run("2026-11-21", &[]), 65, &["not a commit of a nearprint store"]);
}

#[test]
fn an_s3_server_that_does_not_answer_is_unavailable_after_the_retries() {
    let night = Night::new("[s3]\nendpoint = \"http://127.0.0.1:9\"\nretry_seconds = 1\n");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nearprint"));
    command.env("AWS_ACCESS_KEY_ID", "k").env("AWS_SECRET_ACCESS_KEY", "canary-of-a-secret").current_dir(night.path());
    let done =
        command.args(["run", "--config", "job.toml", "--dt", DT, "--store", "s3://bucket/store"]).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(69), "{said}");
    assert!(said.contains("s3://bucket/store") && !said.contains("canary"), "{said}");
}

#[test]
fn a_memory_limit_below_the_queries_is_an_error_that_names_the_flag() {
    let night = Night::new("");
    let ids: Vec<String> = (0..500).map(|i| i.to_string()).collect();
    let same = text(1, 40);
    let rows: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), same.as_str())).collect();
    night.documents(DT, &rows);
    expect(
        &night.run(DT, &["--memory-limit", "10KiB"]),
        74,
        &["the query batch and its tables take", "--memory-limit"],
    );
    expect_nothing_published(&night);
}

#[test]
fn sigterm_ends_a_run_with_143_and_leaves_no_temporary_file() {
    let night = Night::new("");
    let texts: Vec<String> = (0..4000).map(|i| text(i, 400)).collect();
    let ids: Vec<String> = (0..4000).map(|i| i.to_string()).collect();
    let rows: Vec<(&str, &str)> = ids.iter().zip(&texts).map(|(i, t)| (i.as_str(), t.as_str())).collect();
    night.documents(DT, &rows);
    let spill = night.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nearprint"));
    command.args(["run", "--config", "job.toml", "--dt", DT, "--spill-dir", "spill"]).current_dir(night.path());
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    while std::fs::read_dir(&spill).unwrap().next().is_none() {
        assert!(child.try_wait().unwrap().is_none(), "ended before it could be stopped");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(std::fs::read_dir(&spill).unwrap().count(), 0);
    expect_nothing_published(&night);
}
