//! Single files that commands write: sheets, plots, idf tables.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use support::{Ran, nearprint_in, text, write_documents};

const FILES: [&str; 3] = ["sheet.csv", "scores.svg", "idf.tsv"];

/// Writes `file` as its ending asks.
fn write(dir: &Path, file: &str, more: &[&str]) -> Ran {
    let args = match file.rsplit_once('.').unwrap().1 {
        "csv" => vec!["tune", "--documents", "docs.parquet", "--sheet", file],
        "svg" => vec!["evaluate", "--documents", "docs.parquet", "--truth", "pairs.tsv", "--plot", file],
        _ => vec!["idf", "build", "--documents", "docs.parquet", "--output", file],
    };
    nearprint_in(dir, &[&args, more].concat())
}

fn documents() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let same = text(1, 40);
    write_documents(&dir.path().join("docs.parquet"), &["a", "b"].map(|id| (Some(id), Some(same.as_str()))));
    fs::write(dir.path().join("pairs.tsv"), "id_a\tid_b\tlabel\na\tb\tpos\n").unwrap();
    dir
}

#[test]
fn what_exists_is_replaced_only_when_asked_and_a_link_is_replaced_itself() {
    let dir = documents();
    fs::write(dir.path().join("target"), "the target").unwrap();
    for file in FILES {
        let path = dir.path().join(file);
        symlink("target", &path).unwrap();
        let done = write(dir.path(), file, &[]);
        assert_eq!(done.code, 73, "{}", done.stderr);
        assert!(done.error().contains(&format!("{file}: the file exists: name another")), "{}", done.stderr);
        write(dir.path(), file, &["--replace"]).expect_success();
        assert!(fs::symlink_metadata(&path).unwrap().is_file(), "{file} is a link still");
        assert_eq!(fs::read_to_string(dir.path().join("target")).unwrap(), "the target");
    }
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3 + FILES.len(), "{left:?}");
}

#[test]
fn what_is_no_regular_file_is_never_replaced() {
    let dir = documents();
    fs::create_dir(dir.path().join("folder")).unwrap();
    for file in FILES {
        fs::create_dir(dir.path().join(file)).unwrap();
        symlink("folder", dir.path().join(format!("link-{file}"))).unwrap();
        for name in [file.to_owned(), format!("link-{file}")] {
            let done = write(dir.path(), &name, &["--replace"]);
            assert_eq!(done.code, 73, "{}", done.stderr);
            assert!(done.error().contains("this is no regular file"), "{}", done.stderr);
        }
    }
}

/// Before the work: the documents are not even looked for.
#[test]
fn places_that_cannot_be_written_to_are_refused_before_the_work() {
    let dir = documents();
    fs::remove_file(dir.path().join("docs.parquet")).unwrap();
    fs::create_dir(dir.path().join("closed")).unwrap();
    fs::set_permissions(dir.path().join("closed"), PermissionsExt::from_mode(0o555)).unwrap();
    // To root nothing is closed.
    let closed = fs::write(dir.path().join("closed/probe"), "").is_err();
    for file in FILES {
        let done = write(dir.path(), &format!("nowhere/{file}"), &[]);
        assert_eq!(done.code, 74, "{}", done.stderr);
        assert!(done.error().contains("nowhere: no such folder: create it"), "{}", done.stderr);
        let done = write(dir.path(), &format!("closed/{file}"), &[]);
        assert_eq!(done.code, if closed { 77 } else { 66 }, "{}", done.stderr);
    }
}

#[test]
fn inputs_that_may_not_be_read_are_77() {
    let dir = documents();
    for file in ["text.txt", "job.toml"] {
        fs::write(dir.path().join(file), "").unwrap();
        fs::set_permissions(dir.path().join(file), PermissionsExt::from_mode(0o000)).unwrap();
    }
    if fs::File::open(dir.path().join("text.txt")).is_ok() {
        return;
    }
    let explain = ["explain", "--text", "one", "--text-file", "text.txt"];
    assert_eq!(nearprint_in(dir.path(), &explain).code, 77);
    assert_eq!(
        nearprint_in(dir.path(), &["explain", "--text", "one", "--text", "two", "--config", "job.toml"]).code,
        77
    );
}
