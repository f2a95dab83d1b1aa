//! `idf build`, and a profile that weighs by its table.

use std::path::Path;

use crate::support::{nearprint_in, write_documents};

fn documents(dir: &Path) {
    let rows = [("1", Some("common rare")), ("2", Some("common common once")), ("3", Some("Common rare")), ("4", None)];
    for (at, row) in rows.iter().enumerate() {
        write_documents(&dir.join(format!("docs/part-{at}.parquet")), &[(Some(row.0), row.1)]);
    }
}

const BUILD: [&str; 6] = ["idf", "build", "--documents", "docs", "--output", "idf.tsv"];

/// ln((1 + N) / (1 + df)) + 1 with N = 3: 1 for all three, 1 + ln(4 / 3) for two, 1 + ln(4 / 2) for one.
#[test]
fn the_table_counts_documents_and_not_words() {
    let dir = tempfile::tempdir().unwrap();
    documents(dir.path());
    let done = nearprint_in(dir.path(), &[&BUILD[..], &["--json"]].concat()).expect_success().json();
    assert_eq!([&done["n_documents"], &done["n_features"]], [3, 3]);
    let table = std::fs::read_to_string(dir.path().join("idf.tsv")).unwrap();
    assert_eq!(table, "common\t1.000000\nonce\t1.693147\nrare\t1.287682\n");

    let again = nearprint_in(dir.path(), &BUILD);
    assert_eq!(again.code, 73, "{}", again.stderr);
    nearprint_in(dir.path(), &[&BUILD[..], &["--replace", "--min-documents", "2"]].concat()).expect_success();
    let table = std::fs::read_to_string(dir.path().join("idf.tsv")).unwrap();
    assert_eq!(table, "common\t1.000000\nrare\t1.287682\n");
}

#[test]
fn a_row_that_is_no_document_is_named_and_not_left_out_of_the_counts() {
    let dir = tempfile::tempdir().unwrap();
    documents(dir.path());
    std::fs::write(dir.path().join("docs/part-9.jsonl"), "{\"id\":\"9\",\"text\":\"more\"}\nno JSON\n").unwrap();
    let done = nearprint_in(dir.path(), &BUILD);
    assert_eq!(done.code, 65, "{}", done.stderr);
    assert!(done.error().contains("part-9.jsonl row 2"), "{}", done.error());
    assert!(!dir.path().join("idf.tsv").exists());
}

#[test]
fn of_rows_with_one_id_the_document_counts_alone() {
    let dir = tempfile::tempdir().unwrap();
    let lines = ["a\",\"text\":\"old common", "a\",\"text\":\"common", "b\",\"text\":\"common"];
    let lines: String = lines.iter().map(|line| format!("{{\"id\":\"{line}\"}}\n")).collect();
    std::fs::write(dir.path().join("docs.jsonl"), lines).unwrap();
    std::fs::write(dir.path().join("job.toml"), "on_duplicate_id = \"keep_last\"\n").unwrap();
    let build = ["idf", "build", "--documents", "docs.jsonl", "--output", "idf.tsv"];
    let refused = nearprint_in(dir.path(), &build);
    assert_eq!(refused.code, 65, "{}", refused.stderr);
    assert!(refused.error().contains("repeats a document id"), "{}", refused.error());
    let done =
        nearprint_in(dir.path(), &[&build[..], &["--config", "job.toml", "--json"]].concat()).expect_success().json();
    assert_eq!([&done["n_documents"], &done["n_repeated_ids"], &done["n_features"]], [2, 1, 1]);
    assert_eq!(std::fs::read_to_string(dir.path().join("idf.tsv")).unwrap(), "common\t1.000000\n");
}

#[test]
fn a_job_weighs_by_the_table_it_names() {
    let dir = tempfile::tempdir().unwrap();
    documents(dir.path());
    nearprint_in(dir.path(), &BUILD).expect_success();
    let weight = "[tokenize.features]\nweight = { tf_idf = { top = \"all\" } }\n";
    std::fs::write(dir.path().join("job.toml"), format!("profile = \"paper\"\nidf = \"idf.tsv\"\n{weight}")).unwrap();
    let explain = ["explain", "--config", "job.toml", "--text", "common common once", "--text", "rare", "--json"];
    let done = nearprint_in(dir.path(), &explain).expect_success().json();
    assert_eq!(done["texts"][0]["n_features"], 2, "{done}");

    std::fs::write(dir.path().join("idf.tsv"), "common\t1.0\nrare one\n").unwrap();
    let bad = nearprint_in(dir.path(), &explain);
    assert_eq!(bad.code, 78, "{}", bad.stderr);
    assert!(bad.error().contains("idf.tsv: idf table, line 2: "), "{}", bad.stderr);

    std::fs::write(dir.path().join("idf.tsv"), b"common\t1.0\nr\xe4re\t1.0\n").unwrap();
    let bad = nearprint_in(dir.path(), &explain);
    assert_eq!(bad.code, 65, "{}", bad.stderr);
    assert!(bad.error().contains("idf: idf.tsv: ") && bad.error().ends_with("save it as UTF-8"), "{}", bad.stderr);

    std::fs::write(dir.path().join("job.toml"), "profile = \"paper\"\nidf = \"job.toml\"\n").unwrap();
    let bad = nearprint_in(dir.path(), &explain);
    assert!(bad.error().contains("needs `features.weight` to be tf_idf, it is count: "), "{}", bad.stderr);
}

#[test]
fn documents_without_words_and_missing_ones_make_no_table() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(nearprint_in(dir.path(), &BUILD).code, 66);
    documents(dir.path());
    let none = nearprint_in(dir.path(), &[&BUILD[..], &["--min-documents", "9"]].concat());
    assert_eq!(none.code, 78, "{}", none.stderr);
    assert!(none.error().contains("--min-documents: no token is in 9 documents or more"), "{}", none.stderr);
    write_documents(&dir.path().join("null.parquet"), &[(Some("1"), None)]);
    let none = nearprint_in(dir.path(), &[&BUILD[..3], &["null.parquet", "--output", "idf.tsv"]].concat());
    assert_eq!(none.code, 66, "{}", none.stderr);
    assert!(none.error().contains("no document with a text at null.parquet"), "{}", none.stderr);
    assert!(!dir.path().join("idf.tsv").exists());
}
