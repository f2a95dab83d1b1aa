//! Single files that commands write: sheets, plots, idf tables.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use nearprint_harness::folder::places;

use crate::support::{Night, Ran, as_nobody, expect, nearprint_in, not_checked, snapshot, text, write_documents};

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
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    if as_nobody(dir.path(), &["--version"]).code != 0 {
        return not_checked("cannot run as another user");
    }
    let explain = ["explain", "--text", "one"];
    for more in [&["--text-file", "text.txt"][..], &["--text", "two", "--config", "job.toml"]] {
        assert_eq!(as_nobody(dir.path(), &[&explain, more].concat()).code, 77, "{more:?}");
    }
}

/// A published night, with a reference store beside it.
fn published() -> Night {
    let night = Night::new("references = [\"reference\"]\n");
    fs::write(night.path().join("pairs.tsv"), "id_a\tid_b\tlabel\na\tb\tpos\n").unwrap();
    night.documents("2026-11-19", &[("a", &text(1, 40)), ("b", &text(1, 40))]);
    fs::write(
        night.path().join("other.toml"),
        places("").replace("store\"", "reference\"").replace("results", "of-reference"),
    )
    .unwrap();
    nearprint_in(night.path(), &["run", "--config", "other.toml", "--dt", "2026-11-19"]).expect_success();
    night.run("2026-11-19", &[]).expect_success();
    night
}

const RUN: &[&str] = &["run", "--config", "job.toml", "--dt", "2026-11-19"];

/// The flags that name a file beside the results.
const BESIDE: [(&[&str], &str, &str); 7] = [
    (&["store", "info", "--config", "job.toml"], "--summary-file", "json"),
    (RUN, "--metrics-file", "prom"),
    (RUN, "--report", "html"),
    (&["report", "--config", "job.toml", "--dt", "2026-11-19"], "--html", "html"),
    (&["tune", "--config", "job.toml", "--documents", "documents", "--replace"], "--sheet", "csv"),
    (
        &["evaluate", "--config", "job.toml", "--documents", "documents", "--truth", "pairs.tsv", "--replace"],
        "--plot",
        "svg",
    ),
    (&["idf", "build", "--config", "job.toml", "--documents", "documents", "--replace"], "--output", "tsv"),
];

#[test]
fn no_file_beside_the_results_lies_in_documents_store_output_or_a_reference() {
    let night = published();
    let before = snapshot(night.path());
    for (command, flag, ending) in BESIDE {
        symlink("store/_commits", night.path().join("linked")).unwrap();
        for (folder, key) in [
            ("documents/dt=2026-11-19", "documents"),
            ("documents/_delta_log", "documents"),
            ("store/_commits", "store"),
            ("results/decisions/_delta_log", "output"),
            ("./store/../results/_nearprint", "output"),
            ("reference/runs", "references"),
            ("linked", "store"),
        ] {
            let file = format!("{folder}/00000009.{ending}");
            let done = nearprint_in(night.path(), &[command, &[flag, &file]].concat());
            expect(&done, 64, &[&format!("{flag} {file}: it lies in {key} = "), "name a file outside of"]);
        }
        fs::remove_file(night.path().join("linked")).unwrap();
        // Whoever's results they are.
        let done = nearprint_in(night.path(), &[command, &[flag, &format!("of-reference/x.{ending}")]].concat());
        expect(&done, 64, &[flag, "of-reference, which is a store or the results of one"]);
    }
    let commit = "store/_commits/00000001.json";
    symlink(commit, night.path().join("link.json")).unwrap();
    for file in [commit, "link.json"] {
        for command in [&["store", "info", "store"][..], &["store", "info", "--no-such"]] {
            let done = nearprint_in(night.path(), &[command, &["--summary-file", file]].concat());
            assert_eq!(done.code, 64, "{}", done.stderr);
            assert!(done.stderr.contains("--summary-file"), "{}", done.stderr);
        }
    }
    fs::remove_file(night.path().join("link.json")).unwrap();
    for (command, part) in [
        (
            &["config", "init", "documents/job.toml", "--documents", "documents"][..],
            "documents/job.toml: it lies in documents",
        ),
        (&["man", "results"], "results, which is a store or the results of one"),
    ] {
        expect(&nearprint_in(night.path(), command), 64, &[part]);
    }
    assert_eq!(snapshot(night.path()), before);
}

#[test]
fn a_file_beside_the_results_replaces_only_an_earlier_one_of_its_kind_or_an_empty_one() {
    let night = published();
    for (command, flag, ending) in BESIDE {
        let file = format!("file.{ending}");
        let path = night.path().join(&file);
        let command = [command, &[flag, &file]].concat();
        let others =
            ["{\"id\": \"a\", \"text\": \"one\"}\n", "id,text\na,one\n", "<!DOCTYPE html><p>mine</p>", "<svg></svg>\n"];
        for others in others {
            fs::write(&path, others).unwrap();
            let done = nearprint_in(night.path(), &command);
            expect(
                &done,
                73,
                &[&format!("{flag} {file}: what is there is no "), "name another file, or remove this one"],
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), others);
        }
        fs::write(&path, "").unwrap();
        for _ in 0..2 {
            nearprint_in(night.path(), &command).expect_success();
            assert!(fs::metadata(&path).unwrap().len() > 0, "{file}");
        }
        fs::remove_file(path).unwrap();
    }
    nearprint_in(night.path(), &["man", "pages"]).expect_success();
    nearprint_in(night.path(), &["man", "pages"]).expect_success();
    fs::write(night.path().join("pages/nearprint-run.1"), "mine\n").unwrap();
    expect(&nearprint_in(night.path(), &["man", "pages"]), 73, &["pages/nearprint-run.1", "no manual page"]);
}

#[test]
fn a_sheet_that_a_spreadsheet_saved_is_recognised_and_pages_are_told_apart() {
    let night = published();
    let draw = ["tune", "--documents", "documents", "--sheet", "sheet.csv", "--html", "pairs.html"];
    nearprint_in(night.path(), &draw).expect_success();
    let sheet = fs::read_to_string(night.path().join("sheet.csv")).unwrap();
    let header = sheet.lines().next().unwrap().trim_start_matches('\u{feff}').replace(',', "\";\"");
    fs::write(night.path().join("sheet.csv"), format!("\"notes\";\"{header}\"\n")).unwrap();
    nearprint_in(night.path(), &[&draw[..], &["--replace"]].concat()).expect_success();
    let report = ["report", "--config", "job.toml", "--dt", "2026-11-19", "--html", "pairs.html"];
    expect(&nearprint_in(night.path(), &report), 73, &["--html pairs.html", "no page about a night"]);
}

#[test]
fn a_dash_names_no_folder_and_no_file() {
    let night = published();
    let before = snapshot(night.path());
    for command in [
        &["filter", "--config", "job.toml", "--dt", "2026-11-19", "--output", "-"][..],
        &["run", "--config", "job.toml", "--dt", "2026-11-20", "--output", "-"],
        &["idf", "build", "--documents", "documents", "--output", "-"],
        &["config", "init", "-"],
    ] {
        let done = nearprint_in(night.path(), command);
        assert_eq!(done.code, 64, "{}", done.stderr);
        assert!(done.stderr.contains("./-"), "{}", done.stderr);
    }
    assert_eq!(snapshot(night.path()), before);
    fs::write(night.path().join("dash.toml"), "output = \"-\"\n").unwrap();
    let done = nearprint_in(night.path(), &["run", "--config", "dash.toml", "--dt", "2026-11-19"]);
    expect(&done, 78, &["output: '-' is neither"]);
}
