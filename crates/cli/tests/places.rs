//! What stands where documents, results and stores should, and places that lie in one another.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use support::{Night, Output, nearprint_in, snapshot, text, write_documents, write_fingerprints};

const DT: &str = "2026-11-20";

/// A night with one document.
fn night(job: &str) -> Night {
    let night = Night::new(job);
    night.documents(DT, &[("a", &text(1, 40))]);
    night
}

fn expect(done: &Output, code: i32, said: &[&str]) {
    assert_eq!(done.code, code, "{}{}", done.stdout, done.stderr);
    for part in said {
        assert!(done.error().contains(part), "'{part}' is not in {}", done.stderr);
    }
    assert!(!done.stderr.contains("Generic LocalFileSystem"), "{}", done.stderr);
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Something that is neither file nor folder, at a path; what a message says of it.
type NonFile = (fn(&Path), &'static str);

const NON_FILES: [NonFile; 5] = [
    (|path| symlink("nowhere.parquet", path).unwrap(), "link to nothing"),
    (mkfifo, "a FIFO"),
    (|path| drop(UnixListener::bind(path).unwrap()), "a socket"),
    (|path| symlink(".", path).unwrap(), "a link to a folder that it lies in"),
    (|path| symlink("/dev/null", path).unwrap(), "a device"),
];

#[test]
fn what_is_no_file_among_the_documents_is_a_bad_file_and_never_opened() {
    for (make, said) in NON_FILES {
        let night = night("");
        make(&night.path().join(format!("documents/dt={DT}/b.parquet")));
        expect(&night.run(DT, &[]), 65, &["b.parquet", said]);
        let passed = night.run(DT, &["--max-bad-files", "1"]).expect_success().json();
        assert_eq!((passed["n_bad_files"].as_u64(), passed["n_documents"].as_u64()), (Some(1), Some(1)));
        let manifest =
            fs::read_to_string(Path::new(&night.path().join(passed["output"].as_str().unwrap())).join("manifest.json"));
        let manifest: serde_json::Value = serde_json::from_str(&manifest.unwrap()).unwrap();
        assert!(manifest["bad_files"][0]["url"].as_str().unwrap().ends_with("b.parquet"), "{manifest}");
        assert_eq!(manifest["inputs"].as_array().unwrap().len(), 2);
        assert_eq!(night.run(DT, &["--max-bad-files", "1"]).expect_success().json()["status"], "already_published");
    }
}

#[test]
fn what_is_no_file_is_named_by_every_command_that_lists() {
    let night = night("");
    let folder = format!("documents/dt={DT}");
    let glob = format!("{folder}/*.parquet");
    fs::write(night.path().join("truth.tsv"), "id_a\tid_b\tlabel\n").unwrap();
    write_fingerprints(&night.path().join("fp/a.parquet"), &[("a".to_owned(), 1)]);
    for folder in [folder.as_str(), "fp"] {
        symlink("nowhere", night.path().join(folder).join("b.parquet")).unwrap();
        mkfifo(&night.path().join(folder).join("c.parquet"));
    }
    let fifo = format!("{folder}/c.parquet");
    let commands: [&[&str]; 9] = [
        &["fingerprint", "--documents", &folder, "--output", "out"],
        &["fingerprint", "--documents", &glob, "--output", "out"],
        &["fingerprint", "--documents", &fifo, "--output", "out"],
        &["idf", "build", "--documents", &folder, "--output", "idf.txt"],
        &["tune", "--documents", &folder, "--sheet", "sheet.csv"],
        &["explain", "a", "b", "--documents", &folder],
        &["evaluate", "--documents", &folder, "--truth", "truth.tsv"],
        &["join", "--queries", "fp", "--self", "--max-distance", "3", "--output", "out"],
        &["join", "--queries", "fp/a.parquet", "--existing", "fp", "--max-distance", "3", "--output", "out"],
    ];
    for command in commands {
        let done = nearprint_in(night.path(), command);
        expect(&done, 65, &[".parquet: it is a"]);
    }
    // A glob is about what it matches, and about what may hold something that it matches.
    let passed = ["fingerprint", "--documents", &format!("{folder}/part*.parquet"), "--output", "out"];
    nearprint_in(night.path(), &passed).expect_success();
    symlink("nowhere", night.path().join("documents/dt=2026-11-21")).unwrap();
    let across = ["fingerprint", "--documents", "documents/*/part*.parquet", "--output", "out2"];
    expect(&nearprint_in(night.path(), &across), 65, &["documents/dt=2026-11-21: it is a link to nothing"]);
}

#[test]
fn a_fifo_in_place_of_a_marker_or_of_labels_does_not_hang() {
    let night = night("require_marker = \"_DONE\"\n");
    mkfifo(&night.path().join(format!("documents/dt={DT}/_DONE")));
    expect(&night.run(DT, &[]), 65, &["_DONE: it is a FIFO"]);
    mkfifo(&night.path().join("truth.tsv"));
    let folder = format!("documents/dt={DT}");
    let done = nearprint_in(night.path(), &["evaluate", "--documents", &folder, "--truth", "truth.tsv"]);
    expect(&done, 65, &["truth.tsv: it is a FIFO"]);
}

#[test]
fn links_to_files_and_folders_are_read_as_what_they_lead_to() {
    let night = Night::new("");
    write_documents(&night.path().join("elsewhere/a.parquet"), &[(Some("a"), Some(&text(1, 40)))]);
    write_documents(&night.path().join("b.parquet"), &[(Some("b"), Some(&text(2, 40)))]);
    let folder = night.path().join(format!("documents/dt={DT}"));
    fs::create_dir(&folder).unwrap();
    symlink("../../elsewhere", folder.join("sub")).unwrap();
    symlink("../../b.parquet", folder.join("b.parquet")).unwrap();
    // Editors leave links to nothing behind under hidden names.
    symlink("user@host.1", folder.join(".#b.parquet")).unwrap();
    assert_eq!(night.run(DT, &[]).expect_success().json()["n_documents"], 2);
}

#[test]
fn no_command_writes_over_what_it_reads_or_among_it() {
    let night = night("");
    let folder = format!("documents/dt={DT}");
    let file = format!("{folder}/part-0.parquet");
    fs::rename(night.path().join(&file), night.path().join(&folder).join("part-00000.parquet")).unwrap();
    let file = format!("{folder}/part-00000.parquet");
    write_fingerprints(&night.path().join("fp/pairs/part-00000.parquet"), &[("a".to_owned(), 1)]);
    symlink(&folder, night.path().join("link")).unwrap();
    fs::write(night.path().join("truth.svg"), "id_a\tid_b\tlabel\n").unwrap();
    fs::write(night.path().join("words.csv"), "the\n").unwrap();
    fs::write(night.path().join("table.toml"), "stop_words = \"words.csv\"\n").unwrap();
    let before = snapshot(night.path());
    let below = format!("{folder}/sub");
    let jsonl = format!("{folder}/idf.jsonl");
    let commands: [&[&str]; 13] = [
        &["fingerprint", "--documents", &folder, "--output", &folder, "--replace"],
        &["fingerprint", "--documents", &folder, "--output", "documents/../link/.", "--replace"],
        &["fingerprint", "--documents", &file, "--output", &folder, "--replace"],
        &["fingerprint", "--documents", &folder, "--output", "documents", "--replace"],
        &["fingerprint", "--documents", &folder, "--output", &below],
        &["join", "--queries", "fp", "--self", "--max-distance", "3", "--output", "fp", "--replace"],
        &["join", "--queries", "fp/pairs", "--self", "--max-distance", "3", "--output", "fp", "--replace"],
        &["join", "--queries", "link", "--existing", "fp/../fp", "--max-distance", "3", "--output", "fp/sub"],
        &["idf", "build", "--documents", &file, "--output", &file, "--replace"],
        &["idf", "build", "--documents", &folder, "--output", &jsonl],
        &["idf", "build", "--documents", &folder, "--config", "table.toml", "--output", "table.toml", "--replace"],
        &["tune", "--documents", &folder, "--config", "table.toml", "--sheet", "words.csv", "--replace"],
        &["evaluate", "--documents", &folder, "--truth", "truth.svg", "--plot", "truth.svg", "--replace"],
    ];
    for command in commands {
        let done = nearprint_in(night.path(), command);
        assert_eq!(done.code, 64, "{command:?}: {}{}", done.stdout, done.stderr);
        assert!(snapshot(night.path()) == before, "{command:?}");
    }
    let glob = format!("{folder}/*.parquet");
    let beside = format!("{folder}/fp");
    nearprint_in(night.path(), &["fingerprint", "--documents", &glob, "--output", &beside]).expect_success();
    nearprint_in(night.path(), &["fingerprint", "--documents", &file, "--output", "link/fp2"]).expect_success();
}

#[test]
fn documents_results_and_store_of_a_run_lie_apart() {
    let refused = |more: &[&str], key: &str| {
        let night = night("");
        symlink("documents", night.path().join("link")).unwrap();
        let done = night.run(DT, more);
        expect(&done, 78, &[&format!("error: {key}: ")]);
        assert!(!night.path().join("store").exists() && !night.path().join("results").exists(), "{more:?}");
    };
    for output in ["documents", "./results/../documents/", "link", "documents/results"] {
        refused(&["--output", output], "output");
        refused(&["--store", output], "store");
    }
    refused(&["--documents", "documents/dt={dt}", "--output", "documents"], "output");
    refused(&["--documents", "documents/{dt}", "--output", "documents/2026-01-01/results"], "output");
    refused(&["--documents", "s3://bucket/a/", "--store", "s3://bucket/a/b"], "store");
    for output in ["store", "store/results", "."] {
        refused(&["--output", output, "--store", "store"], "output");
    }
    for (documents, output) in [
        ("documents", "documents-results"),
        ("documents/dt={dt}", "documents/results"),
        ("documents/dt={dt}/*.parquet", "documents"),
        ("documents", "documents/_results"),
    ] {
        let store = format!("{output}-store");
        night("").run(DT, &["--documents", documents, "--output", output, "--store", &store]).expect_success();
    }
}
