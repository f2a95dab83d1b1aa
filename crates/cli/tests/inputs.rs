//! Input as users have it: lists of files, formats that are not read, columns of other names, and Delta tables.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::builder::{Int32Builder, Int64Builder, MapBuilder, StringBuilder};
use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::{Field, Fields};

use crate::support::{Night, command, data_files, expect, nearprint_in, strings, text, write_documents, write_parquet};

const DT: &str = "2026-11-20";

fn document(path: &Path, id: &str, seed: u64) {
    write_documents(path, &[(Some(id), Some(&text(seed, 40)))]);
}

/// A night with three files outside of the documents' folder.
fn three_files() -> Night {
    let night = Night::new("");
    for (seed, name) in (1..).zip(["a", "b", "c"]) {
        document(&night.path().join(format!("{name}/x.parquet")), name, seed);
    }
    night
}

#[test]
fn a_list_names_the_files_of_a_night_and_its_order_changes_no_byte() {
    let mut published = Vec::new();
    for list in ["a/x.parquet\nb\nc/*.parquet\n", "\n  c/x.parquet\r\n\nb/x.parquet\na/x.parquet\na/x.parquet"] {
        let night = three_files();
        fs::write(night.path().join("list.txt"), list).unwrap();
        let done = night.run(DT, &["--files-from", "list.txt"]).expect_success().json();
        assert_eq!((done["n_documents"].as_u64(), done["n_files"].as_u64()), (Some(3), Some(3)), "{done}");
        let again = night.run(DT, &["--files-from", "list.txt"]).expect_success().json();
        assert_eq!(again["status"], "already_published");
        published.push(data_files(night.path()));
    }
    assert_eq!(published[0], published[1]);
}

#[test]
fn a_file_whose_path_the_lines_of_a_list_write_in_several_ways_is_read_once() {
    let mut published = Vec::new();
    for is_reversed in [false, true] {
        let night = three_files();
        let folder = night.path().display();
        std::os::unix::fs::symlink("a/x.parquet", night.path().join("link.parquet")).unwrap();
        std::os::unix::fs::symlink("b", night.path().join("linked")).unwrap();
        std::os::unix::fs::symlink("nowhere", night.path().join("c/y.parquet")).unwrap();
        let (absolute, by_url) = (format!("{folder}/a/x.parquet"), format!("file://{folder}/a/x.parquet"));
        let mut lines = vec!["a/x.parquet", "./a/x.parquet", "a//x.parquet", "b/../a/*.parquet", "link.parquet"];
        lines.extend([absolute.as_str(), by_url.as_str(), "b", "./b", "linked", "c", "./c"]);
        if is_reversed {
            lines.reverse();
        }
        fs::write(night.path().join("list.txt"), lines.join("\n")).unwrap();
        let done = night.run(DT, &["--files-from", "list.txt", "--max-bad-files", "1"]).expect_success().json();
        let counts = ["n_documents", "n_files", "n_bad_files"].map(|name| done[name].as_u64());
        assert_eq!(counts, [Some(3), Some(3), Some(1)], "{done}");
        let manifest = fs::read_to_string(night.generation(DT).join("manifest.json")).unwrap();
        for path in ["\"a/x.parquet\"", "\"b/x.parquet\"", "\"c/x.parquet\"", "\"c/y.parquet\""] {
            assert!(manifest.contains(path), "{path}: {manifest}");
        }
        published.push(data_files(night.path()));
    }
    assert_eq!(published[0], published[1]);
}

#[test]
fn a_list_may_come_from_standard_input_and_to_any_command_that_reads_documents() {
    let night = three_files();
    fs::write(night.path().join("list.txt"), "a\nb/x.parquet\n").unwrap();
    fs::write(night.path().join("truth.tsv"), "id_a\tid_b\tlabel\na\tb\tneg\n").unwrap();
    let piped = ["sh", "-c", "exec \"$@\" < list.txt", "sh"];
    let commands: [&[&str]; 6] = [
        &["run", "--config", "job.toml", "--dt", DT],
        &["fingerprint", "--output", "out"],
        &["idf", "build", "--output", "idf.txt"],
        &["tune", "--sheet", "sheet.csv", "--max-distance", "63"],
        &["explain", "a", "b"],
        &["evaluate", "--truth", "truth.tsv"],
    ];
    for args in commands {
        command(night.path(), args).args(&["--files-from", "-"]).wrapped(&piped).run().unwrap().expect_success();
    }
    let both = ["fingerprint", "--documents", "a", "--files-from", "list.txt", "--output", "new", "--json"];
    expect(&nearprint_in(night.path(), &both), 64, &["--documents"]);
    expect(&nearprint_in(night.path(), &["fingerprint", "--output", "new", "--json"]), 64, &["--documents"]);
}

#[test]
fn a_line_that_names_nothing_is_named_with_its_list_and_number() {
    let night = three_files();
    fs::write(night.path().join("pages.csv"), "id,text\n").unwrap();
    fs::write(night.path().join("notes.txt"), "x").unwrap();
    fs::create_dir(night.path().join("empty")).unwrap();
    let cases: [(&str, i32, &[&str]); 8] = [
        ("a/x.parquet\n\ngone.parquet\n", 66, &["list.txt: line 3: no documents at gone.parquet"]),
        ("empty\n", 66, &["list.txt: line 1: no documents at empty"]),
        ("nothing*/x.parquet\n", 66, &["list.txt: line 1: no documents at nothing*"]),
        ("a/x.parquet\nnotes.txt\n", 65, &["list.txt: line 2: notes.txt: its name does not end in"]),
        ("pages.csv\n", 65, &["list.txt: line 1: pages.csv: it is CSV", "duckdb"]),
        ("\na\n~/x.parquet\n", 64, &["list.txt: line 3: '~' is not expanded"]),
        ("a\nhttps://example.org/x.parquet\n", 64, &["list.txt: line 2", "no support for https://"]),
        ("\n \n", 66, &["list.txt has no lines"]),
    ];
    for (list, code, said) in cases {
        fs::write(night.path().join("list.txt"), list).unwrap();
        expect(&night.run(DT, &["--files-from", "list.txt"]), code, said);
        assert!(!night.path().join("store").exists(), "{list}");
    }
    expect(&night.run(DT, &["--files-from", "no.txt"]), 66, &["--files-from no.txt"]);
    fs::write(night.path().join("list.txt"), b"a\n\xff\n").unwrap();
    expect(&night.run(DT, &["--files-from", "list.txt"]), 65, &["--files-from list.txt", "UTF-8"]);
    fs::write(night.path().join("list.txt"), "").unwrap();
    assert_eq!(night.run(DT, &["--files-from", "list.txt", "--empty-exit-code", "75"]).code, 75);
}

#[test]
fn formats_that_are_not_read_are_refused_with_a_command_that_converts_them() {
    let cases: [(&str, &[u8], &str); 14] = [
        ("pages.csv", b"id,text\n", "COPY (FROM read_csv("),
        ("pages.TSV.gz", b"\x1f\x8b", "it is CSV"),
        ("pages.arrow", b"ARROW1\0\0", "pyarrow.feather"),
        ("pages.feather", b"FEA1", "it is Arrow IPC (Feather)"),
        ("pages.avro", b"Obj\x01", "read_avro("),
        ("pages.orc", b"ORC", "pyarrow.orc"),
        // Texts in another packing, or under another name.
        ("pages.jsonl.bz2", b"BZh91AY", "bzcat "),
        ("pages.warc.xz", b"\xfd7zXZ\0", "xzcat "),
        ("pages.jl.gz", b"\x1f\x8b", "pages.jsonl.gz"),
        ("pages.tar.gz", b"\x1f\x8b", "tar -xf "),
        ("000000_0", b"PAR1....PAR1", "000000_0.parquet"),
        // By their first bytes, whatever their names say.
        ("pages.parquet", b"ARROW1\0\0----ARROW1", "it is Arrow IPC (Feather)"),
        ("pages.jsonl", b"Obj\x01\x02\x04", "it is Avro"),
        ("pages.ndjson", b"ORC\x01\x02\x04\n", "it is ORC"),
    ];
    for (name, bytes, said) in cases {
        let night = Night::new("");
        let folder = night.path().join(format!("documents/dt={DT}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
        expect(&night.run(DT, &[]), 65, &[name, "which is not read", said]);
        let one = format!("documents/dt={DT}/{name}");
        expect(&nearprint_in(night.path(), &["fingerprint", "--documents", &one, "--output", "o"]), 65, &[name, said]);
    }
    // Beside files that are read, they may hold texts that nobody would miss, so the night stops unless the job allows them.
    // Files of other kinds are passed over and listed.
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40))]);
    fs::write(night.path().join(format!("documents/dt={DT}/README.md")), "x").unwrap();
    fs::write(night.path().join(format!("documents/dt={DT}/index.csv")), "x").unwrap();
    expect(&night.run(DT, &[]), 65, &["index.csv would be passed over", "it is CSV", "--max-ignored-files of 1"]);
    let job = fs::read_to_string(night.path().join("job.toml")).unwrap();
    fs::write(night.path().join("job.toml"), format!("max_ignored_files = 1\n{job}")).unwrap();
    expect(&night.run(DT, &["--strict"]), 65, &["index.csv would be passed over"]);
    for (name, bytes) in [("q.jsonl.bz2", &b"BZh91AY"[..]), ("000000_0", b"PAR1....PAR1"), ("q.pq", b"PAR1....PAR1")] {
        let path = night.path().join(format!("documents/dt={DT}/{name}"));
        fs::write(&path, bytes).unwrap();
        expect(&night.run(DT, &[]), 65, &[" would be passed over", "--max-ignored-files of 2"]);
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(night.run(DT, &[]).expect_success().json()["n_ignored_files"], 2);
    // A file of another format under a name that is read is a bad file.
    fs::write(night.path().join(format!("documents/dt={DT}/z.parquet")), "Obj\x01").unwrap();
    expect(&night.run(DT, &["--replace"]), 65, &["z.parquet", "it is Avro"]);
    assert_eq!(night.run(DT, &["--replace", "--max-bad-files", "1"]).expect_success().json()["n_bad_files"], 1);
}

#[test]
fn a_missing_column_is_answered_with_the_only_ones_that_can_be_meant() {
    let values = || strings(&[Some("one"), Some("two")]);
    let night = Night::new("");
    let file = night.path().join(format!("documents/dt={DT}/a.parquet"));
    write_parquet(&file, &[("url", values()), ("title", values()), ("content", values())]);
    let both = "there is a column 'url' and a column 'content': set id_column = \"url\", text_column = \"content\"";
    expect(&night.run(DT, &[]), 65, &["no column 'id'", both]);
    let with_id = ["fingerprint", "--documents", "documents", "--id-column", "url", "--output", "o"];
    let one = "there is a column 'content': set text_column = \"content\"";
    expect(&nearprint_in(night.path(), &with_id), 65, &["no column 'text'", one]);
    write_parquet(&file, &[("url", values()), ("uuid", values()), ("content", values())]);
    expect(&night.run(DT, &[]), 65, &["no column 'id'", "set id_column or rename it"]);
    fs::remove_file(&file).unwrap();
    fs::write(file.with_file_name("a.jsonl"), "{\"doc_id\": 1, \"body\": \"x\"}\n").unwrap();
    let named = "there is a column 'doc_id' and a column 'body': set id_column = \"doc_id\", text_column = \"body\"";
    expect(&night.run(DT, &[]), 65, &["no column 'id'", named]);
}

/// A Delta table that is partitioned by `dt`.
struct Table {
    folder: PathBuf,
}

const PROTOCOL: &str = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
const METADATA: &str = r#"{"metaData":{"id":"1","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":["dt"],"configuration":{}}}"#;

impl Table {
    /// Writes a file with one document, and returns the action that adds it.
    fn file(&self, path: &str, logged: &str, id: &str, seed: u64) -> String {
        let file = self.folder.join(path);
        document(&file, id, seed);
        let (size, dt) = (fs::metadata(&file).unwrap().len(), &path[3..13]);
        format!(
            r#"{{"add":{{"path":"{logged}","partitionValues":{{"dt":"{dt}"}},"size":{size},"modificationTime":0,"dataChange":true}}}}"#
        )
    }

    fn commit(&self, version: u64, actions: &[&str]) {
        let log = self.folder.join("_delta_log");
        fs::create_dir_all(&log).unwrap();
        let info = r#"{"commitInfo":{"operation":"WRITE"}}"#;
        fs::write(log.join(format!("{version:020}.json")), format!("{info}\n{}\n", actions.join("\n"))).unwrap();
    }
}

fn remove(path: &str) -> String {
    format!(r#"{{"remove":{{"path":"{path}","dataChange":true,"deletionTimestamp":1}}}}"#)
}

/// Version 0 has documents a (in a file whose name needs escapes) and b of the night, and z of another; version 1 has a
/// and c.
fn table(night: &Night) -> Table {
    let table = Table { folder: night.path().join("documents") };
    let a = table.file(&format!("dt={DT}/a é%.parquet"), &format!("dt={DT}/a%20%C3%A9%25.parquet"), "a", 1);
    let b = table.file(&format!("dt={DT}/b.parquet"), &format!("dt={DT}/b.parquet"), "b", 2);
    let c = table.file(&format!("dt={DT}/c.parquet"), &format!("dt={DT}/c.parquet"), "c", 3);
    let z = table.file("dt=2026-11-19/z.parquet", "dt=2026-11-19/z.parquet", "z", 4);
    // Neither the log nor a night knows of this file.
    document(&table.folder.join(format!("dt={DT}/stray.parquet")), "stray", 9);
    table.commit(0, &[PROTOCOL, METADATA, &a, &b, &z]);
    table.commit(1, &[&c, &remove(&format!("dt={DT}/b.parquet"))]);
    table
}

fn ids(night: &Night) -> Vec<String> {
    night.decisions(DT).into_keys().collect()
}

#[test]
fn the_log_of_a_delta_table_names_the_files_of_a_night() {
    let night = Night::new("");
    table(&night);
    night.run(DT, &[]).expect_success();
    assert_eq!(ids(&night), ["a", "c"]);
    night.run(DT, &["--documents-version", "0", "--replace"]).expect_success();
    assert_eq!(ids(&night), ["a", "b"]);
    let again = night.run(DT, &["--documents", "documents/dt={dt}", "--documents-version", "0"]).expect_success();
    assert_eq!(again.json()["status"], "already_published");
    expect(&night.run(DT, &["--documents-version", "7"]), 78, &["documents_version", "the newest is 1"]);
    let whole = ["fingerprint", "--documents", "documents", "--output", "out", "--json"];
    assert_eq!(nearprint_in(night.path(), &whole).expect_success().json()["n_documents"], 3);
    expect(&night.run("2026-11-21", &[]), 66, &["2026-11-21"]);
    let other = ["fingerprint", "--documents", "documents/lang=de", "--output", "new"];
    expect(&nearprint_in(night.path(), &other), 78, &["without the partition column 'lang' (dt)"]);
    let plain = ["fingerprint", "--documents", "a", "--documents-version", "1", "--output", "new"];
    document(&night.path().join("a/x.parquet"), "a", 1);
    expect(&nearprint_in(night.path(), &plain), 78, &["a is no Delta or Iceberg table", "--documents-version"]);
    night.run(DT, &["--replace"]).expect_success();
    fs::write(night.path().join("dt.toml"), "id_column = \"dt\"\n").unwrap();
    let partition = ["fingerprint", "--config", "dt.toml", "--documents", "documents", "--output", "new"];
    expect(&nearprint_in(night.path(), &partition), 65, &["no column 'dt'", "partition column of the Delta table"]);
}

/// A checkpoint of these actions: files with their bytes, and the protocol and metadata in a row each.
fn checkpoint(path: &Path, files: &[(&str, i64)]) {
    let n = files.len() + 2;
    let at = |row: usize| files.get(row).copied();
    let strings = |of: &dyn Fn(usize) -> Option<String>| -> ArrayRef {
        let mut values = StringBuilder::new();
        (0..n).for_each(|row| values.append_option(of(row)));
        Arc::new(values.finish())
    };
    let paths = strings(&|row| at(row).map(|(path, _)| path.to_owned()));
    let stats = strings(&|row| at(row).map(|_| "{}".to_owned()));
    let mut sizes = Int64Builder::new();
    (0..n).for_each(|row| sizes.append_option(at(row).map(|(_, size)| size)));
    let mut partitions = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for row in 0..n {
        if let Some((path, _)) = at(row) {
            partitions.keys().append_value("dt");
            partitions.values().append_value(&path[3..13]);
        }
        partitions.append(at(row).is_some()).unwrap();
    }
    let partitions: ArrayRef = Arc::new(partitions.finish());
    let add = of_rows(
        &[("path", paths), ("partitionValues", partitions), ("size", Arc::new(sizes.finish())), ("stats", stats)],
        |row| row < n - 2,
        n,
    );
    let mut reader = Int32Builder::new();
    (0..n).for_each(|row| reader.append_option((row == n - 2).then_some(1)));
    let protocol = of_rows(&[("minReaderVersion", Arc::new(reader.finish()))], |row| row == n - 2, n);
    let mut columns = arrow::array::builder::ListBuilder::new(StringBuilder::new());
    for row in 0..n {
        if row == n - 1 {
            columns.values().append_value("dt");
        }
        columns.append(row == n - 1);
    }
    let metadata = of_rows(&[("partitionColumns", Arc::new(columns.finish()))], |row| row == n - 1, n);
    write_parquet(path, &[("add", add), ("protocol", protocol), ("metaData", metadata)]);
}

fn of_rows(columns: &[(&str, ArrayRef)], is_there: impl Fn(usize) -> bool, n: usize) -> ArrayRef {
    let fields: Fields =
        columns.iter().map(|(name, values)| Field::new(*name, values.data_type().clone(), true)).collect();
    let arrays = columns.iter().map(|(_, values)| Arc::clone(values)).collect();
    Arc::new(StructArray::new(fields, arrays, Some((0..n).map(is_there).collect())))
}

#[test]
fn a_checkpoint_stands_for_the_commits_before_it() {
    let night = Night::new("");
    let table = table(&night);
    let size = |path: &str| i64::try_from(fs::metadata(table.folder.join(path)).unwrap().len()).unwrap();
    let files = [format!("dt={DT}/a é%.parquet"), format!("dt={DT}/c.parquet"), "dt=2026-11-19/z.parquet".to_owned()];
    let logged = [format!("dt={DT}/a%20%C3%A9%25.parquet"), files[1].clone(), files[2].clone()];
    let adds: Vec<(&str, i64)> = logged.iter().map(String::as_str).zip(files.iter().map(|file| size(file))).collect();
    let log = table.folder.join("_delta_log");
    checkpoint(&log.join(format!("{:020}.checkpoint.parquet", 1)), &adds);
    let d = table.file(&format!("dt={DT}/d.parquet"), &format!("dt={DT}/d.parquet"), "d", 5);
    table.commit(2, &[&d, &remove(&format!("dt={DT}/c.parquet"))]);
    for version in [0, 1] {
        fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
    }
    night.run(DT, &[]).expect_success();
    assert_eq!(ids(&night), ["a", "d"]);
    night.run(DT, &["--documents-version", "1", "--replace"]).expect_success();
    assert_eq!(ids(&night), ["a", "c"]);
    expect(&night.run(DT, &["--documents-version", "0"]), 65, &["no version 0", "versions from 1 on are complete"]);
    // The same checkpoint in two files.
    let part = |n: u32| log.join(format!("{:020}.checkpoint.{n:010}.0000000002.parquet", 1));
    checkpoint(&part(1), &adds[..1]);
    fs::rename(log.join(format!("{:020}.checkpoint.parquet", 1)), part(2)).unwrap();
    night.run(DT, &["--documents-version", "1", "--replace"]).expect_success();
    assert_eq!(ids(&night), ["a", "c"]);
}

#[test]
fn delta_tables_that_need_more_of_a_reader_are_refused_by_what_they_need() {
    let feature = |features: &str| {
        format!(
            r#"{{"protocol":{{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[{features}],"writerFeatures":[]}}}}"#
        )
    };
    let mapped = r#"{"metaData":{"id":"1","format":{"provider":"parquet"},"schemaString":"{}","partitionColumns":["dt"],"configuration":{"delta.columnMapping.mode":"name"}}}"#;
    let add = |more: &str| {
        format!(
            r#"{{"add":{{"path":"dt={DT}/b.parquet","partitionValues":{{"dt":"{DT}"}},"size":1,"dataChange":true{more}}}}}"#
        )
    };
    let both = format!("{}\n{mapped}", feature("\"columnMapping\""));
    let cases: [(String, &[&str]); 6] = [
        (both, &["column mapping"]),
        (feature("\"deletionVectors\",\"catalogManaged\""), &["reader feature 'catalogManaged'"]),
        (r#"{"protocol":{"minReaderVersion":4,"minWriterVersion":9}}"#.to_owned(), &["reader version 4"]),
        (add(""), &["b.parquet", "says that it has 1 bytes"]),
        (add("").replace("b.parquet", "gone.parquet"), &["gone.parquet, which is gone"]),
        ("{\"add\":".to_owned(), &["00000000000000000002.json", "line 2 is no action"]),
    ];
    for (action, said) in cases {
        let night = Night::new("");
        table(&night).commit(2, &[&action]);
        expect(&night.run(DT, &[]), 65, said);
    }
    // A table that may have deletion vectors, and has none, is read.
    let night = Night::new("");
    table(&night).commit(2, &[&feature("\"deletionVectors\",\"timestampNtz\"")]);
    night.run(DT, &[]).expect_success();
    let night = Night::new("");
    let table = table(&night);
    table.commit(3, &[&table.file(&format!("dt={DT}/e.parquet"), &format!("dt={DT}/e.parquet"), "e", 6)]);
    expect(&night.run(DT, &[]), 65, &["no version 2", "version 3 needs"]);
}

/// A port at which an S3 server would be, whose connections count.
struct Port(TcpListener);

impl Port {
    fn new() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        port.set_nonblocking(true).unwrap();
        Self(port)
    }

    fn s3(&self) -> String {
        format!("[s3]\nendpoint = \"http://{}\"\nretry_seconds = 1\n", self.0.local_addr().unwrap())
    }

    fn was_asked(&self) -> bool {
        self.0.accept().is_ok()
    }
}

/// A night whose table has a file in it, and one at `path` as the log writes it. `job` are lines of the job file.
fn naming(path: &str, size: u64, job: &str) -> Night {
    let night = Night::new(job);
    let elsewhere = format!(
        r#"{{"add":{{"path":"{path}","partitionValues":{{"dt":"{DT}"}},"size":{size},"modificationTime":0,"dataChange":true}}}}"#
    );
    table(&night).commit(2, &[&elsewhere]);
    night
}

#[test]
fn the_log_of_a_delta_table_names_files_of_its_own_table_only_unless_the_job_allows_others() {
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret.parquet");
    document(&secret, "secret", 7);
    let (size, place) = (fs::metadata(&secret).unwrap().len(), elsewhere.path().display().to_string());
    let name = elsewhere.path().file_name().unwrap().to_str().unwrap();
    let port = Port::new();
    let paths = [
        "s3://payroll/secret.parquet".to_owned(),
        "s3://payroll/a/../secret.parquet".to_owned(),
        format!("{place}/secret.parquet"),
        format!("file://{place}/secret.parquet"),
        format!("../../{name}/secret.parquet"),
        format!("%2E%2E/..%2F{name}/secret.parquet"),
        format!("dt={DT}/../../../{name}/secret.parquet"),
        "s3a://payroll/secret.parquet".to_owned(),
        format!("file:{place}/secret.parquet"),
    ];
    let credentials = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let with = |night: &Night, args: &[&str]| {
        let run = credentials.iter().fold(command(night.path(), args), |run, (name, value)| run.env(name, value));
        run.run().unwrap()
    };
    let run = ["run", "--config", "job.toml", "--dt", DT];
    for path in &paths {
        let night = naming(path, size, &port.s3());
        let own = night.path().display().to_string();
        for roots in [&[][..], &["--root", &own], &["--root", "s3://crawl", "--root", &own]] {
            let done = with(&night, &[&run[..], roots].concat());
            assert_eq!(done.code, 64, "{path} {roots:?}: {}", done.stderr);
            assert!(!night.path().join("store").exists());
        }
        assert!(!port.was_asked(), "{path}");
    }
    let of_hadoop = naming(&paths[7], size, &port.s3());
    expect(&with(&of_hadoop, &run), 64, &["s3://payroll/secret.parquet, which lies outside of the table"]);
    // Whatever reads the table.
    let night = naming(&paths[0], size, &port.s3());
    fs::write(night.path().join("truth.tsv"), "id_a\tid_b\tlabel\n").unwrap();
    let commands: [&[&str]; 5] = [
        &["fingerprint", "--documents", "documents", "--output", "out"],
        &["idf", "build", "--documents", "documents", "--output", "idf.txt"],
        &["tune", "--documents", "documents", "--sheet", "sheet.csv"],
        &["explain", "a", "b", "--documents", "documents"],
        &["evaluate", "--documents", "documents", "--truth", "truth.tsv"],
    ];
    for command in commands {
        let said = ["documents: this table names s3://payroll/secret.parquet", "`clone_roots`"];
        expect(&with(&night, &[command, &["--config", "job.toml"]].concat()), 64, &said);
    }
    assert!(!port.was_asked());
    // The table itself by a whole path, and what the job allows.
    for (path, job) in [
        (2, format!("clone_roots = [{place:?}]\n")),
        (4, format!("clone_roots = [\"/nowhere\", {place:?}]\n")),
        (8, format!("clone_roots = [{place:?}]\n")),
        (3, format!("roots = [{place:?}, \"documents\", \"store\", \"results\"]\n")),
        (2, format!("roots = [\".\"]\nclone_roots = [{place:?}]\n")),
    ] {
        let night = naming(&paths[path], size, &job);
        night.run(DT, &[]).expect_success();
        assert_eq!(ids(&night), ["a", "c", "secret"], "{job}");
    }
    let night = Night::new("");
    let table = table(&night);
    let own = format!("{}/dt={DT}/d.parquet", table.folder.display());
    table.commit(2, &[&table.file(&format!("dt={DT}/d.parquet"), &own, "d", 6)]);
    night.run(DT, &[]).expect_success();
    assert_eq!(ids(&night), ["a", "c", "d"]);
}

#[test]
fn roots_hold_for_links_of_a_table_and_for_the_files_of_a_published_night() {
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret.parquet");
    document(&secret, "secret", 7);
    let size = fs::metadata(&secret).unwrap().len();
    let night = naming(&format!("dt={DT}/link.parquet"), size, "");
    std::os::unix::fs::symlink(&secret, night.path().join(format!("documents/dt={DT}/link.parquet"))).unwrap();
    let root = ["--root", "."];
    expect(&night.run(DT, &root), 64, &["input documents/", "link.parquet lies outside of --root"]);
    // The partition may be read, and the log that names its files may not.
    let partition = format!("documents/dt={DT}");
    let narrow = ["--root", partition.as_str(), "--root", "store", "--root", "results"];
    expect(&night.run(DT, &narrow), 64, &["input documents lies outside of --root"]);
    night.run(DT, &[]).expect_success();
    assert_eq!(ids(&night), ["a", "c", "secret"]);
    let job = fs::read_to_string(night.path().join("job.toml")).unwrap();
    fs::write(night.path().join("roots.toml"), job + "roots = [\".\"]\n").unwrap();
    let filter = ["filter", "--config", "roots.toml", "--dt", DT, "--output", "out"];
    expect(&nearprint_in(night.path(), &filter), 64, &["link.parquet lies outside of"]);
    assert!(!night.path().join("out").join(format!("dt={DT}")).exists());
}

#[test]
fn a_path_says_where_nights_have_their_date() {
    let layouts = [
        ("{dt}", "2026-03-05"),
        ("{yyyy}/{mm}/{dd}", "2026/03/05"),
        ("year={yyyy}/month={dt:%-m}/day={dt:%-d}", "year=2026/month=3/day=5"),
        ("dt={dt:%Y%m%d}", "dt=20260305"),
        ("{dt:%Y/%m}/pages-{dd}.parquet", "2026/03/pages-05.parquet"),
    ];
    for (layout, folder) in layouts {
        let night = Night::new("");
        let file = if folder.ends_with("parquet") { folder.to_owned() } else { format!("{folder}/x.parquet") };
        document(&night.path().join("crawl").join(file), "a", 1);
        let place = format!("crawl/{layout}");
        let done = night.run("2026-03-05", &["--documents", &place]).expect_success().json();
        assert_eq!(done["n_documents"], 1, "{layout}");
        let later = night.run("2026-03-06", &["--documents", &place]);
        expect(&later, 66, &["the newest nights there: 2026-03-05"]);
        let job = format!("documents = \"{place}\"\nstore = \"store\"\noutput = \"results\"\n");
        fs::write(night.path().join("nights.toml"), job).unwrap();
        let args = ["explain", "a", "a", "--config", "nights.toml", "--json"];
        assert_eq!(nearprint_in(night.path(), &args).expect_success().json()["pair"]["distance"], 0, "{layout}");
    }
}

#[test]
fn a_path_whose_nights_have_dates_in_another_form_is_refused_with_the_path_that_fits() {
    for (folder, fits) in [
        ("year=2026/month=03/day=05", "crawl/year={yyyy}/month={mm}/day={dd}"),
        ("2026/03/05", "crawl/{yyyy}/{mm}/{dd}"),
        ("dt=20260305", "crawl/dt={dt:%Y%m%d}"),
        ("ds=2026-03-05", "crawl/ds={dt}"),
    ] {
        let night = Night::new("");
        document(&night.path().join("crawl").join(folder).join("x.parquet"), "a", 1);
        let refused = night.run("2026-03-05", &["--documents", "crawl", "--late-exit-code", "75"]);
        let first = folder.split('/').next().unwrap();
        expect(&refused, 78, &["has no folder dt=2026-03-05", first, &format!("documents = \"{fits}\"")]);
        night.run("2026-03-05", &["--documents", fits]).expect_success();
    }
    // A night that may be empty is none of those.
    let night = Night::new("allow_empty = true\n");
    document(&night.path().join("crawl/dt=20260305/x.parquet"), "a", 1);
    expect(&night.run("2026-03-05", &["--documents", "crawl"]), 78, &["crawl/dt={dt:%Y%m%d}"]);
    for (place, folder, form) in [
        ("crawl/dt={dt}", "dt=20260305", "dt={dt:%Y%m%d}"),
        ("crawl/{dt}/*.parquet", "dt=2026-03-05", "dt={dt}"),
        ("crawl/{dt}", "2026/03/05", "{yyyy}/{mm}/{dd}"),
        ("crawl/{yyyy}/{mm}/{dd}", "2026-03-05", "{dt}"),
        ("crawl/{yyyy}/{mm}/{dd}", "year=2026/month=03/day=05", "year={yyyy}/month={mm}/day={dd}"),
        ("crawl", "2026/03/05", "{yyyy}/{mm}/{dd}"),
    ] {
        for job in ["", "allow_empty = true\n"] {
            let night = Night::new(job);
            document(&night.path().join("crawl").join(folder).join("x.parquet"), "a", 1);
            let refused = night.run("2026-03-05", &["--documents", place, "--late-exit-code", "75"]);
            expect(&refused, 78, &["has no folder", &format!("but {folder}"), form]);
        }
        // Another night with its date in that form is none of this one's.
        let night = Night::new("allow_empty = true\n");
        document(&night.path().join("crawl").join(folder).join("x.parquet"), "a", 1);
        if place != "crawl" {
            night.run("2026-03-06", &["--documents", place]).expect_success();
            // Nor is this one where another night has the form of the place: it is late, or empty.
            let former = place.replace("{dt}", "2026-03-04").replace("{yyyy}/{mm}/{dd}", "2026/03/04");
            let former = former.trim_end_matches("/*.parquet");
            document(&night.path().join(former).join("x.parquet"), "b", 2);
            night.run("2026-03-05", &["--documents", place, "--late"]).expect_success();
        }
    }
    // The folder of a day may be there before its file, and other data beside it.
    for (place, folder) in [
        ("crawl/{yyyy}/{mm}/{dd}/pages-{dt}.parquet", "2026/03/05"),
        ("crawl/dt={dt}/pages-{dt}.parquet", "dt=2026-03-05"),
        ("crawl/html={dt}", "text=2026-03-05"),
    ] {
        let night = Night::new("");
        document(&night.path().join("crawl").join(folder).join("others/x.parquet"), "a", 1);
        expect(&night.run("2026-03-05", &["--documents", place, "--late-exit-code", "75"]), 75, &[]);
    }
    let night = Night::new("");
    document(&night.path().join("crawl/pages/x.parquet"), "a", 1);
    expect(&night.run(DT, &["--documents", "crawl"]), 66, &["dt=2026-11-20 was looked for", "there is: pages"]);
    for (wrong, said) in [
        ("crawl/{date}", "'{date}' stands for nothing"),
        ("crawl/{yyyy}/{mm}", "has no day"),
        ("crawl/*/*.jsonl", "a glob of files"),
    ] {
        expect(&night.run(DT, &["--documents", wrong]), 64, &[said]);
    }
}

#[test]
fn a_path_that_fits_numbers_of_two_digits_alone_is_refused_on_the_first_day_of_a_month() {
    let (padded, unpadded) = ("crawl/month={yyyy}-{mm}/day={dd}", "crawl/month={yyyy}-{dt:%-m}/day={dt:%-d}");
    for (place, fits, folders) in [
        (padded, unpadded, ["month=2026-10/day=30", "month=2026-11/day=1"]),
        (unpadded, padded, ["month=2026-10/day=30", "month=2026-11/day=01"]),
        (padded, "crawl/month={yyyy}-{mm}/day={dt:%-d}", ["month=2026-10/day=30", "month=2026-03/day=4"]),
    ] {
        for job in ["", "allow_empty = true\n"] {
            let night = Night::new(job);
            for folder in folders {
                document(&night.path().join("crawl").join(folder).join("x.parquet"), folder, 1);
            }
            night.run("2026-10-30", &["--documents", place]).expect_success();
            let dt = if fits.contains("{mm}/day={dt") { "2026-03-04" } else { "2026-11-01" };
            let refused = night.run(dt, &["--documents", place, "--late", "--late-exit-code", "75"]);
            expect(&refused, 78, &["has no folder month=", folders[1], &format!("documents = \"{fits}\"")]);
            night.run(dt, &["--documents", fits, "--late"]).expect_success();
        }
    }
}

#[test]
fn a_column_may_lie_within_another_one() {
    let texts: Vec<String> = (0..3).map(|seed| text(seed, 40)).collect();
    let night = Night::new("id_column = \"meta.id\"\ntext_column = \"doc.body.text\"\nkeep = [\"meta.rank desc\"]\n");
    let folder = night.path().join(format!("documents/dt={DT}"));
    fs::create_dir_all(&folder).unwrap();
    let line = |id: &str, text: &str, rank: u32| {
        format!(
            "{{\"meta\": {{\"id\": \"{id}\", \"rank\": {rank}}}, \"doc\": {{\"body\": {{\"text\": \"{text}\", \"x\": [1]}}}}}}\n"
        )
    };
    let null = "{\"meta\": {\"id\": \"none\", \"rank\": 1}, \"doc\": null}\n";
    // Of a key that an object has twice, the last value counts.
    let twice = format!(
        "{{\"meta\": {{\"id\": \"twice\"}}, \"doc\": {{\"body\": {{\"text\": \"{}\"}}}}, \"doc\": {{\"lang\": \"en\"}}}}\n",
        texts[1]
    );
    let lines = line("a", &texts[0], 1) + &line("b", &texts[0], 2) + &line("c", &texts[1], 1) + null + &twice;
    fs::write(folder.join("x.jsonl"), lines).unwrap();
    let of = |name: &str, values: ArrayRef, valid: &[bool]| {
        let field = Field::new(name, values.data_type().clone(), true);
        let values = StructArray::new(Fields::from(vec![field]), vec![values], Some(valid.to_vec().into()));
        Arc::new(values) as ArrayRef
    };
    let body = of("text", strings(&[Some(&texts[2]), Some("never seen"), None]), &[true, true, true]);
    let doc = of("body", body, &[true, false, true]);
    let ranks: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![1, 2, 3]));
    let ids = strings(&[Some("p"), Some("q"), Some("r")]);
    let meta = Fields::from(vec![
        Field::new("id", ids.data_type().clone(), true),
        Field::new("rank", ranks.data_type().clone(), true),
    ]);
    let meta: ArrayRef = Arc::new(StructArray::new(meta, vec![ids, ranks], None));
    write_parquet(&folder.join("y.parquet"), &[("meta", meta), ("doc", doc)]);
    night.run(DT, &[]).expect_success();
    let decided: Vec<String> =
        night.decisions(DT).into_iter().map(|(id, decision)| format!("{id} {}", decision[0])).collect();
    assert_eq!(decided, ["a drop", "b keep", "c keep", "none skip", "p keep", "q skip", "r skip", "twice skip"]);
    let filter = ["filter", "--config", "job.toml", "--dt", DT, "--output", "out", "--json"];
    let done = nearprint_in(night.path(), &filter).expect_success().json();
    assert_eq!((done["n_rows"].as_u64(), done["n_keep"].as_u64()), (Some(8), Some(3)), "{done}");
    let flags = ["filter", "--config", "job.toml", "--dt", DT, "--output", "flags", "--flag"];
    expect(&nearprint_in(night.path(), &flags), 78, &["column 'meta.id' lies in another column", "without --flag"]);
    let wrong =
        ["fingerprint", "--documents", &format!("documents/dt={DT}"), "--text-column", "doc.text", "--output", "o"];
    fs::write(night.path().join("wrong.toml"), "id_column = \"meta.id\"\ntext_column = \"doc.text\"\n").unwrap();
    let wrong = [&["fingerprint", "--config", "wrong.toml"][..], &wrong[1..3], &wrong[5..]].concat();
    expect(&nearprint_in(night.path(), &wrong), 65, &["no column 'doc.text'", "'doc' has no value 'text' within it"]);
}

#[test]
fn a_dataset_of_hugging_face_is_read_where_it_was_downloaded_to() {
    let night = Night::new("");
    let refused = night.run(DT, &["--documents", "hf://datasets/org/pages@main/data"]);
    expect(&refused, 64, &["hf download org/pages --repo-type dataset --local-dir pages"]);
    // The cache of downloads has links to files whose names say nothing.
    let (blobs, data) = (night.path().join("hub/blobs"), night.path().join("hub/snapshots/0f1e/data"));
    fs::create_dir_all(&data).unwrap();
    document(&blobs.join("5f3a"), "a", 1);
    std::os::unix::fs::symlink("../../../blobs/5f3a", data.join("train-00000-of-00001.parquet")).unwrap();
    fs::write(data.parent().unwrap().join("README.md"), "# Pages").unwrap();
    fs::create_dir_all(night.path().join("hub/snapshots/0f1e/.cache/huggingface")).unwrap();
    fs::write(night.path().join("hub/snapshots/0f1e/.cache/huggingface/x.jsonl"), "{}").unwrap();
    fs::write(night.path().join("list.txt"), "hub/snapshots/0f1e\n").unwrap();
    let done = night.run(DT, &["--files-from", "list.txt"]).expect_success().json();
    assert_eq!((done["n_documents"].as_u64(), done["n_ignored_files"].as_u64()), (Some(1), Some(1)));
}
