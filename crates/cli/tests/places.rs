//! Other things that stand where documents, results and stores should, and places that lie in one another.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::support::{
    self, Night, Ran, as_nobody, command, nearprint_in, not_checked, snapshot, text, write_documents,
    write_fingerprints,
};

const DT: &str = "2026-11-20";

/// A night with one document.
fn night(job: &str) -> Night {
    let night = Night::new(job);
    night.documents(DT, &[("a", &text(1, 40))]);
    night
}

fn expect(done: &Ran, code: i32, said: &[&str]) {
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
        let manifest = fs::read_to_string(night.generation(DT).join("manifest.json"));
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
    write_documents(&night.path().join("odd[1]/part-00000.parquet"), &[(Some("a"), Some(&text(1, 40)))]);
    let before = snapshot(night.path());
    let below = format!("{folder}/sub");
    let jsonl = format!("{folder}/idf.jsonl");
    let commands: [&[&str]; 14] = [
        &["fingerprint", "--documents", "odd[1]", "--output", "odd[1]", "--replace"],
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
    refused(&["--documents", "documents/{dt}", "--output", "documents/2026-01-01/results"], "output");
    refused(&["--documents", "s3://bucket/a/", "--store", "s3://bucket/a/b"], "store");
    for output in ["store", "store/results", "."] {
        refused(&["--output", output, "--store", "store"], "output");
    }
    refused(&["--spill-dir", "documents/dt=2026-11-20"], "resources.spill_dir");
    refused(&["--spill-dir", "link/dt=2026-11-20/sub", "--documents", "documents/dt={dt}"], "resources.spill_dir");
    for (documents, output) in [
        ("documents", "documents-results"),
        ("documents/dt={dt}", "documents/results"),
        ("documents/dt={dt}", "documents"),
        ("documents/dt={dt}/*.parquet", "documents"),
        ("documents", "documents/_results"),
    ] {
        let store = format!("{output}-store");
        night("").run(DT, &["--documents", documents, "--output", output, "--store", &store]).expect_success();
    }
}

/// Marks of tables below a folder, and what they are marks of.
const TABLES: [(&str, &str); 3] = [
    ("_delta_log/0.json", "a Delta"),
    ("metadata/v1.metadata.json", "an Iceberg"),
    (".hoodie/hoodie.properties", "a Hudi"),
];

fn mark(folder: &Path, mark: &str) {
    let path = folder.join(mark);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

#[test]
fn a_night_that_is_a_table_or_lies_in_one_is_refused_by_name() {
    for (file, format) in TABLES {
        for at in ["documents", &format!("documents/dt={DT}"), &format!("documents/dt={DT}/sub")] {
            let night = night("");
            mark(&night.path().join(at), file);
            // A table is read where it is that of the night; these say nothing.
            let why = match format {
                _ if at.ends_with("sub") => "write the rows that count",
                "a Delta" => "its log has no version",
                "an Iceberg" => "it is no metadata of",
                _ => "write the rows that count",
            };
            expect(&night.run(DT, &[]), 65, &[at, &format!("{format} table"), why]);
            assert!(!night.path().join("store").exists());
        }
    }
    let night = night("");
    mark(&night.path().join("documents"), "_delta_log/0.json");
    for pattern in ["documents/dt={dt}/*.parquet", "documents/{dt}"] {
        expect(&night.run(DT, &["--documents", pattern]), 65, &["documents is a Delta table"]);
    }
    // A table beside the documents is none of theirs.
    night.documents(DT, &[("a", &text(1, 40))]);
    fs::rename(night.path().join("documents/_delta_log"), night.path().join("_delta_log")).unwrap();
    night.run(DT, &[]).expect_success();
}

#[test]
fn every_command_that_lists_refuses_tables() {
    let night = night("");
    let folder = format!("documents/dt={DT}");
    let file = format!("{folder}/part-0.parquet");
    write_fingerprints(&night.path().join("fp/a.parquet"), &[("a".to_owned(), 1)]);
    write_fingerprints(&night.path().join("queries.parquet"), &[("a".to_owned(), 1)]);
    fs::write(night.path().join("truth.tsv"), "id_a\tid_b\tlabel\n").unwrap();
    for table in ["documents", "fp"] {
        mark(&night.path().join(table), "_delta_log/0.json");
    }
    let commands: [&[&str]; 9] = [
        &["fingerprint", "--documents", &folder, "--output", "out"],
        &["fingerprint", "--documents", "documents/*/*.parquet", "--output", "out"],
        &["fingerprint", "--documents", &file, "--output", "out"],
        &["idf", "build", "--documents", &folder, "--output", "idf.txt"],
        &["tune", "--documents", &folder, "--sheet", "sheet.csv"],
        &["explain", "a", "b", "--documents", &folder],
        &["evaluate", "--documents", &folder, "--truth", "truth.tsv"],
        &["join", "--queries", "fp", "--self", "--max-distance", "3", "--output", "out"],
        &["join", "--queries", "queries.parquet", "--existing", "fp", "--max-distance", "3", "--output", "out"],
    ];
    for command in commands {
        expect(&nearprint_in(night.path(), command), 65, &["is a Delta table"]);
    }
}

/// A Delta table whose log names one file of the night and not the other.
fn table_of_one_file(night: &Night) {
    write_documents(
        &night.path().join(format!("documents/dt={DT}/removed.parquet")),
        &[(Some("removed"), Some(&text(2, 40)))],
    );
    let size = fs::metadata(night.path().join(format!("documents/dt={DT}/part-0.parquet"))).unwrap().len();
    let log = night.path().join("documents/_delta_log");
    fs::create_dir(&log).unwrap();
    let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
    let metadata = r#"{"metaData":{"id":"1","format":{"provider":"parquet"},"schemaString":"{}","partitionColumns":["dt"],"configuration":{}}}"#;
    let add = format!(
        r#"{{"add":{{"path":"dt={DT}/part-0.parquet","partitionValues":{{"dt":"{DT}"}},"size":{size},"dataChange":true}}}}"#
    );
    fs::write(log.join("00000000000000000000.json"), [protocol, metadata, &add].join("\n")).unwrap();
}

#[test]
fn a_partition_of_a_table_is_read_as_one_though_the_table_cannot_be_listed() {
    let night = night("[resources]\nspill_dir = \"open\"\n");
    table_of_one_file(&night);
    for (folder, mode) in [("open", 0o777), ("", 0o755), ("documents", 0o711)] {
        fs::create_dir_all(night.path().join(folder)).unwrap();
        fs::set_permissions(night.path().join(folder), PermissionsExt::from_mode(mode)).unwrap();
    }
    if as_nobody(night.path(), &["--version"]).code != 0 {
        return not_checked("cannot run as another user");
    }
    let run =
        ["run", "--config", "job.toml", "--dt", DT, "--json", "--store", "open/store", "--output", "open/results"];
    let done = as_nobody(night.path(), &run).expect_success();
    assert_eq!(done.json()["n_documents"], 1, "{}", done.stderr);
    assert!(!done.stderr.contains("forbidden"), "{}", done.stderr);
    // A folder of which this user cannot tell whether it is an Iceberg table.
    let (plain, metadata) = (format!("plain/dt={DT}"), night.path().join("plain/metadata"));
    fs::create_dir_all(&metadata).unwrap();
    fs::rename(night.path().join(format!("documents/dt={DT}")), night.path().join(&plain)).unwrap();
    fs::set_permissions(&metadata, PermissionsExt::from_mode(0o700)).unwrap();
    let fingerprint = ["fingerprint", "--documents", &plain, "--output", "open/fp", "--spill-dir", "open", "--json"];
    let done = as_nobody(night.path(), &fingerprint).expect_success();
    assert_eq!(done.json()["n_documents"], 2);
    let warning = "plain: cannot tell whether this is a table, because listing metadata/ there is forbidden";
    assert_eq!(done.stderr.matches(warning).count(), 1, "{}", done.stderr);
}

#[test]
fn a_store_or_output_that_cannot_be_written_is_found_before_the_work_and_nothing_is_left() {
    let night = night("[resources]\nspill_dir = \"open\"\n");
    for (folder, mode) in [("open", 0o777), ("closed", 0o755), ("", 0o755)] {
        let path = night.path().join(folder);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    if as_nobody(night.path(), &["--version"]).code != 0 {
        return not_checked("cannot run as another user");
    }
    let before = snapshot(night.path());
    let folder = format!("documents/dt={DT}");
    let run = ["run", "--config", "job.toml", "--dt", DT];
    let commands: [&[&str]; 4] = [
        &[&run[..], &["--store", "closed/store", "--output", "open/results"]].concat(),
        &[&run[..], &["--store", "open/store", "--output", "closed/deep/results"]].concat(),
        &["fingerprint", "--documents", &folder, "--output", "closed/fp", "--spill-dir", "open"],
        &["fingerprint", "--documents", &folder, "--output", "closed", "--replace", "--spill-dir", "open"],
    ];
    for command in commands {
        let done = as_nobody(night.path(), command);
        expect(&done, 77, &["closed: cannot write files here: permission denied"]);
        assert!(!done.stderr.contains("publish"), "{}", done.stderr);
        assert!(snapshot(night.path()) == before, "{command:?}");
    }
    fs::write(night.path().join("file"), "").unwrap();
    expect(&night.run(DT, &["--output", "file/results"]), 73, &["file: a file stands where a folder is to be"]);
    expect(&night.run(DT, &["--store", "file"]), 73, &["file: a file stands where a folder is to be"]);
    assert!(fs::read_dir(night.path().join("open")).unwrap().next().is_none());
}

#[test]
fn what_a_shell_would_have_expanded_is_refused_by_its_key_or_flag() {
    let refused = |place: &str, said: &str| {
        for key in ["documents", "store", "output"] {
            let night = night("");
            let job = fs::read_to_string(night.path().join("job.toml")).unwrap();
            let other =
                job.lines().map(|l| if l.starts_with(key) { format!("{key} = {place:?}") } else { l.to_owned() });
            fs::write(night.path().join("job.toml"), other.collect::<Vec<_>>().join("\n")).unwrap();
            expect(&night.run(DT, &[]), 78, &["job.toml: line ", &format!("column 1: {key}: "), said]);
            fs::write(night.path().join("job.toml"), job).unwrap();
            let flag = night.run(DT, &[&format!("--{key}"), place]);
            assert_eq!(flag.code, 64);
            let message = flag.json()["error"].as_str().unwrap().to_owned();
            assert!(message.contains(&format!("--{key}")) && message.contains(said), "{message}");
            assert_eq!(fs::read_dir(night.path()).unwrap().count(), 2);
        }
    };
    refused("", "an empty name is no place");
    refused("~/crawl", "'~' is not expanded");
    refused("$HOME/crawl", "'$HOME' is not expanded");
    refused("s3://bucket/${NAME}/x", "'${NAME}' is not expanded");
    refused("crawl/{date}/{hour}", "'{date}' stands for nothing");
    let night = night("");
    assert_eq!(night.run(DT, &["--output", "results/{dt}"]).code, 64);
    for args in
        [["fingerprint", "--documents", "documents/dt={dt}", "--output", "out"], ["plan", "--spill-dir", "~", "", ""]]
    {
        assert_eq!(nearprint_in(night.path(), &args).code, 64);
    }
    // Only what looks like one: names may have such characters.
    fs::rename(night.path().join("documents"), night.path().join("doc~$1")).unwrap();
    night.run(DT, &["--documents", "doc~$1"]).expect_success();
}

#[test]
fn a_file_for_a_folder_and_a_folder_for_a_file_are_permanent_mistakes() {
    let night = night("");
    let file = format!("documents/dt={DT}/part-0.parquet");
    expect(&night.run(DT, &["--documents", &file]), 78, &["documents: ", "is no folder", "{dt}"]);
    expect(&night.run(DT, &["--documents", &file, "--empty-exit-code", "99"]), 78, &["is no folder"]);
    let config = nearprint_in(night.path(), &["run", "--config", ".", "--dt", DT]);
    expect(&config, 66, &["job file .: ", "name a file"]);
    let below = format!("{file}/x");
    expect(
        &nearprint_in(night.path(), &["fingerprint", "--documents", &below, "--output", "out"]),
        66,
        &["no documents"],
    );
}

#[test]
fn a_late_crawl_is_told_from_a_wrong_root() {
    let night = night("");
    for dt in ["2026-11-17", "2026-11-18", "2026-11-19"] {
        night.documents(dt, &[("a", &text(1, 40))]);
    }
    fs::create_dir(night.path().join("documents/dt=soon")).unwrap();
    let late = night.run("2026-11-25", &["--empty-exit-code", "99"]);
    expect(&late, 99, &["no documents at documents/dt=2026-11-25", "2026-11-20, 2026-11-19, 2026-11-18:"]);
    assert!(!late.stderr.contains("2026-11-17"), "{}", late.stderr);
    let failed = late.json();
    assert_eq!((failed["command"].as_str(), failed["dt"].as_str()), (Some("run"), Some("2026-11-25")), "{failed}");
    fs::create_dir(night.path().join("documents/dt=2026-11-26")).unwrap();
    expect(&night.run("2026-11-26", &[]), 66, &["its folder is there, but has no files"]);
    // No mount, no night: also where nights may be empty.
    let job = fs::read_to_string(night.path().join("job.toml")).unwrap();
    fs::write(night.path().join("job.toml"), format!("allow_empty = true\n{job}")).unwrap();
    for documents in ["nowhere", "nowhere/{dt}.jsonl"] {
        let wrong = night.run(DT, &["--documents", documents, "--empty-exit-code", "99"]);
        expect(&wrong, 66, &["no documents at nowhere (/", "/nowhere): this place does not exist", "is mounted"]);
    }
    assert!(!night.path().join("store").exists());
    night.run("2026-11-25", &[]).expect_success();
}

#[test]
fn a_file_without_an_ending_that_cannot_be_read_may_hold_documents() {
    let night = night("[resources]\nspill_dir = \"open\"\n");
    for (folder, mode) in [("open", 0o777), ("", 0o755)] {
        fs::create_dir_all(night.path().join(folder)).unwrap();
        fs::set_permissions(night.path().join(folder), PermissionsExt::from_mode(mode)).unwrap();
    }
    let notes = night.path().join(format!("documents/dt={DT}/NOTES"));
    fs::write(&notes, "notes").unwrap();
    fs::set_permissions(&notes, PermissionsExt::from_mode(0o600)).unwrap();
    if as_nobody(night.path(), &["--version"]).code != 0 {
        return not_checked("cannot run as another user");
    }
    let run =
        ["run", "--config", "job.toml", "--dt", DT, "--json", "--store", "open/store", "--output", "open/results"];
    expect(&as_nobody(night.path(), &run), 77, &["NOTES", "Permission denied", "--max-ignored-files"]);
    as_nobody(night.path(), &[&run[..], &["--max-ignored-files", "1"]].concat()).expect_success();
}

#[test]
fn a_folder_that_cannot_be_read_is_a_bad_file_below_the_documents_and_77_above_them() {
    let night = night("[resources]\nspill_dir = \"open\"\n");
    let sub = format!("documents/dt={DT}/sub");
    for (folder, mode) in [("open", 0o777), (sub.as_str(), 0o700), ("", 0o755)] {
        fs::create_dir_all(night.path().join(folder)).unwrap();
        fs::set_permissions(night.path().join(folder), PermissionsExt::from_mode(mode)).unwrap();
    }
    let run =
        ["run", "--config", "job.toml", "--dt", DT, "--json", "--store", "open/store", "--output", "open/results"];
    if as_nobody(night.path(), &["--version"]).code != 0 {
        return not_checked("cannot run as another user");
    }
    expect(&as_nobody(night.path(), &run), 65, &["sub: it cannot be read: Permission denied"]);
    let passed = as_nobody(night.path(), &[&run[..], &["--max-bad-files", "1"]].concat()).expect_success().json();
    assert_eq!((passed["n_bad_files"].as_u64(), passed["n_documents"].as_u64()), (Some(1), Some(1)));
    fs::set_permissions(night.path().join("documents").join(format!("dt={DT}")), PermissionsExt::from_mode(0o700))
        .unwrap();
    expect(&as_nobody(night.path(), &[&run[..], &["--max-bad-files", "1"]].concat()), 77, &["Permission denied"]);
}

/// A folder with a job file in `conf` and its places beside it, and a night of two documents of which one is a copy.
fn job_in_conf() -> Night {
    let night = Night::new("");
    fs::create_dir(night.path().join("conf")).unwrap();
    fs::rename(night.path().join("job.toml"), night.path().join("conf/job.toml")).unwrap();
    fs::rename(night.path().join("documents"), night.path().join("conf/documents")).unwrap();
    let words = text(1, 40);
    let documents = night.path().join(format!("conf/documents/dt={DT}/a.parquet"));
    write_documents(&documents, &[(Some("a"), Some(words.as_str())), (Some("b"), Some(words.as_str()))]);
    night
}

#[test]
fn relative_paths_of_a_job_file_begin_at_its_folder_and_those_of_the_command_line_at_the_current_one() {
    let night = job_in_conf();
    let whole = night.path().join("conf/job.toml").display().to_string();
    // In its own folder, from the one above it, and by its whole path from elsewhere: the same night.
    let own = night.path().join("conf");
    let run = |folder: &Path, config: &str| nearprint_in(folder, &["run", "-c", config, "--dt", DT, "--json"]);
    assert_eq!(run(night.path(), "conf/job.toml").expect_success().json()["status"], "published");
    let published = snapshot(&own);
    for (folder, config) in [(own.as_path(), "job.toml"), (night.path(), "conf/job.toml"), (Path::new("/"), &whole)] {
        let again = run(folder, config).expect_success().json();
        assert_eq!((&again["status"], &again["output"]), (&"already_published".into(), &"results".into()));
    }
    assert_eq!(snapshot(&own), published);
    let in_own_folder = job_in_conf();
    run(&in_own_folder.path().join("conf"), "job.toml").expect_success();
    let files = |night: &Night| support::data_files(&night.path().join("conf"));
    assert_eq!(files(&night), files(&in_own_folder), "the place from which it is started changes no byte");
    // What the command line names lies in the current folder, also for commands that read the job's places.
    fs::write(night.path().join("list.txt"), format!("conf/documents/dt={DT}/a.parquet\n")).unwrap();
    for (words, made) in [
        (vec!["filter", "--dt", DT, "--output", "survivors"], "survivors"),
        (vec!["report", "--dt", DT, "--html", "page.html"], "page.html"),
        (vec!["fingerprint", "--files-from", "list.txt", "--output", "prints"], "prints"),
        (vec!["run", "--dt", DT, "--replace", "--report", "run.html", "--spill-dir", "conf"], "run.html"),
        (vec!["run", "--dt", DT, "--files-from", "list.txt", "--store", "st", "--output", "out"], "st"),
    ] {
        let done = command(night.path(), &words).args(&["--config", "conf/job.toml"]).run().unwrap();
        assert_eq!(done.code, 0, "{words:?}: {}{}", done.stdout, done.stderr);
        assert!(night.path().join(made).exists() && !own.join(made).exists(), "{words:?}");
    }
    for words in [
        vec!["check"],
        vec!["audit", "--dt", DT],
        vec!["explain", "a", "b"],
        vec!["query", "--text", "x y z"],
        vec!["store", "info"],
        vec!["store", "gc", "--dry-run"],
        vec!["diff", "conf/results", "out", "--dt", DT],
        vec!["config", "check", "conf/job.toml"],
    ] {
        let config: &[&str] = if words[0] == "config" { &[] } else { &["--config", "conf/job.toml"] };
        let done = command(night.path(), &words).args(config).run().unwrap();
        assert_eq!(done.code, 0, "{words:?}: {}{}", done.stdout, done.stderr);
    }
    let sound = nearprint_in(Path::new("/"), &["check", "--config", &whole, "--json"]).expect_success().json();
    assert_eq!(sound["status"], "sound");
}

#[test]
fn a_night_stays_in_a_table_whose_output_the_store_knows_by_a_path_that_now_leads_elsewhere() {
    let night = job_in_conf();
    let own = night.path().join("conf");
    let run = |folder: &Path, dt: &str| nearprint_in(folder, &["run", "-c", "job.toml", "--dt", dt, "--json"]);
    run(&own, DT).expect_success();
    let nights = || -> Vec<String> {
        let log = snapshot(&own.join("results/decisions/_delta_log"));
        let lines = log
            .values()
            .flat_map(|content| String::from_utf8_lossy(content).lines().map(str::to_owned).collect::<Vec<_>>());
        lines.filter(|line| line.contains("\"remove\"")).collect()
    };
    // The same places by their whole paths, in a job file of another folder.
    let elsewhere = night.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let whole = |name: &str| own.join(name).display().to_string();
    let job = format!(
        "documents = {:?}\nstore = {:?}\noutput = {:?}\n",
        whole("documents"),
        whole("store"),
        whole("results")
    );
    fs::write(elsewhere.join("job.toml"), job).unwrap();
    let next = own.join("documents/dt=2026-12-31");
    fs::create_dir_all(&next).unwrap();
    write_documents(&next.join("a.parquet"), &[(Some("z"), Some(text(9, 40).as_str()))]);
    let done = command(&elsewhere, &["run", "-c", "job.toml", "--dt", "2026-12-31", "--future"]).run().unwrap();
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.matches("nights stay in these tables").count() <= 2, "{}", done.stderr);
    assert!(done.stderr.contains("nights stay in these tables"), "{}", done.stderr);
    assert_eq!(nights(), [""; 0], "no file of the first night is removed");
}

#[test]
fn relative_paths_of_a_job_file_that_is_handed_over_open_begin_at_the_current_folder() {
    let night = job_in_conf();
    let own = night.path().join("conf");
    let handed_over = |words: &[&str]| {
        let mut command = Command::new(support::NEARPRINT);
        command.args(words).args(["--config", "/dev/stdin", "--json"]).current_dir(&own);
        let done = command.stdin(fs::File::open(own.join("job.toml")).unwrap()).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    handed_over(&["run", "--dt", DT]);
    // The word has the job file read twice.
    handed_over(&["report", "--dt", "latest"]);
    let again = nearprint_in(&own, &["run", "--config", "job.toml", "--dt", DT, "--json"]).expect_success().json();
    assert_eq!(again["status"], "already_published");
}

#[test]
fn a_place_that_lies_below_the_current_folder_alone_is_refused_with_what_became_of_it() {
    let night = job_in_conf();
    fs::rename(night.path().join("conf/documents"), night.path().join("documents")).unwrap();
    let run = ["run", "--config", "conf/job.toml", "--dt", DT, "--json"];
    let there = night.path().join("documents").display().to_string();
    let parts = [
        "conf/job.toml: line 1, column 1: documents: there is no documents in",
        &there,
        "up to release 0.2.0",
        "move the job file to",
    ];
    expect(&nearprint_in(night.path(), &run), 78, &parts);
    expect(&nearprint_in(night.path(), &["config", "check", "conf/job.toml"]), 78, &parts);
    assert!(!night.path().join("conf/store").exists());
    // A place of the command line is no such place, and neither is one that is nowhere: its whole path is named.
    command(night.path(), &run).args(&["--documents", "documents"]).run().unwrap().expect_success();
    let nowhere = nearprint_in(
        Path::new("/"),
        &["run", "-c", &night.path().join("conf/job.toml").display().to_string(), "--dt", DT],
    );
    let whole = night.path().join("conf/documents").display().to_string();
    expect(&nowhere, 66, &[&format!("no documents at documents ({whole}): this place does not exist")]);
    // Files that a night is made with, too.
    let job = fs::read_to_string(night.path().join("conf/job.toml")).unwrap();
    fs::write(night.path().join("conf/job.toml"), format!("{job}stop_words = \"words.txt\"\n")).unwrap();
    fs::write(night.path().join("words.txt"), "the\n").unwrap();
    expect(
        &nearprint_in(night.path(), &["query", "--config", "conf/job.toml", "--text", "x"]),
        78,
        &["stop_words: there is no words.txt in"],
    );
}

#[test]
fn a_job_file_that_is_written_in_another_folder_finds_what_the_command_line_named() {
    let night = Night::new("");
    fs::create_dir(night.path().join("conf")).unwrap();
    let init = ["config", "init", "conf/new.toml", "--documents", "documents"];
    nearprint_in(night.path(), &init).expect_success();
    let job: toml::Table = toml::from_str(&fs::read_to_string(night.path().join("conf/new.toml")).unwrap()).unwrap();
    assert_eq!(job["documents"].as_str(), Some(night.path().join("documents").to_str().unwrap()));
    assert_eq!((job["store"].as_str(), job["output"].as_str()), (Some("store"), Some("results")));
    nearprint_in(Path::new("/"), &["config", "check", &night.path().join("conf/new.toml").display().to_string()])
        .expect_success();
}
