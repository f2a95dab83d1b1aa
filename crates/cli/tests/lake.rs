//! Documents in tables of Delta Lake whose rows are deleted inside of files, and in tables of Apache Iceberg.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use apache_avro::types::Value as Avro;
use apache_avro::{Schema, Writer};
use arrow::array::builder::{MapBuilder, StringBuilder};
use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::support::{Night, expect, nearprint_in, rows, text, write_documents, write_parquet};

const DT: &str = "2026-11-20";

fn ids(night: &Night) -> Vec<String> {
    night.decisions(DT).into_keys().collect()
}

/// A bitmap of numbers below 2^16 in the portable format of Roaring bitmaps, with 64 bits, after its magic number.
fn vector(numbers: &[u16]) -> Vec<u8> {
    let mut bytes = vec![0xD1, 0xD3, 0x39, 0x64];
    // One bitmap, of the numbers whose high 32 bits are 0: a cookie, one container of key 0, its size less one, its offset.
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(12_346_u32.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes.extend((numbers.len() as u16 - 1).to_le_bytes());
    bytes.extend(16_u32.to_le_bytes());
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}

/// A vector as it lies in a file: between its length and its checksum.
fn framed(vector: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(vector);
    [&(vector.len() as u32).to_be_bytes()[..], vector, &crc.sum().to_be_bytes()].concat()
}

fn z85(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let padded = [bytes, &[0; 3][..(4 - bytes.len() % 4) % 4]].concat();
    let mut text = String::new();
    for group in padded.chunks(4) {
        let number = u32::from_be_bytes(group.try_into().unwrap());
        text.extend((0..5).rev().map(|at| char::from(DIGITS[(number / 85_u32.pow(at) % 85) as usize])));
    }
    text
}

const UUID: [u8; 16] = [0xd2, 0xc6, 0x39, 0xaa, 0x88, 0x16, 0x43, 0x1a, 0xaa, 0xf6, 0xd3, 0xfe, 0x25, 0x12, 0xff, 0x61];

/// A Delta table in `documents`, partitioned by `dt`, of one file with the documents `a` to `e`.
struct Delta {
    night: Night,
    folder: PathBuf,
}

const PROTOCOL: &str = r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors","v2Checkpoint","typeWidening"],"writerFeatures":[]}}"#;
const METADATA: &str = r#"{"metaData":{"id":"1","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":["dt"],"configuration":{}}}"#;

impl Delta {
    fn new() -> Self {
        let night = Night::new("");
        let folder = night.path().join("documents");
        let texts: Vec<String> = (0..5).map(|seed| text(seed, 40)).collect();
        let rows: Vec<_> =
            ["a", "b", "c", "d", "e"].into_iter().map(Some).zip(texts.iter().map(|t| Some(t.as_str()))).collect();
        write_documents(&folder.join(format!("dt={DT}/x.parquet")), &rows);
        let table = Self { night, folder };
        table.commit(0, &[PROTOCOL.to_owned(), METADATA.to_owned(), table.add("x", &Value::Null)]);
        table
    }

    fn commit(&self, version: u64, lines: &[String]) {
        let log = self.folder.join("_delta_log");
        fs::create_dir_all(&log).unwrap();
        fs::write(log.join(format!("{version:020}.json")), lines.join("\n")).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("dt={DT}/{name}.parquet"))
    }

    fn add(&self, name: &str, vector: &Value) -> String {
        let size = fs::metadata(self.path(name)).unwrap().len();
        let add = json!({"path": format!("dt={DT}/{name}.parquet"), "partitionValues": {"dt": DT}, "size": size,
            "modificationTime": 0, "dataChange": true, "deletionVector": vector});
        json!({ "add": add }).to_string()
    }

    fn remove(&self, name: &str) -> String {
        json!({"remove": {"path": format!("dt={DT}/{name}.parquet"), "dataChange": true}}).to_string()
    }

    /// Deletes rows of the file by a vector in the log, as the commit of a version.
    fn delete(&self, version: u64, numbers: &[u16]) {
        let vector = inline(numbers);
        self.commit(version, &[self.remove("x"), self.add("x", &vector)]);
    }
}

fn inline(numbers: &[u16]) -> Value {
    let bytes = vector(numbers);
    json!({"storageType": "i", "pathOrInlineDv": z85(&bytes), "sizeInBytes": bytes.len(), "cardinality": numbers.len()})
}

#[test]
fn rows_that_a_deletion_vector_names_are_no_documents_and_no_survivors() {
    let table = Delta::new();
    // Behind the version of the file, and another vector.
    let (other, own) = (framed(&vector(&[0, 1, 2])), framed(&vector(&[1, 4])));
    let file = [&[1][..], &other, &own].concat();
    fs::write(table.folder.join("deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"), file).unwrap();
    let vector = json!({"storageType": "u", "pathOrInlineDv": z85(&UUID), "offset": 1 + other.len(),
        "sizeInBytes": own.len() - 8, "cardinality": 2});
    table.commit(1, &[table.remove("x"), table.add("x", &vector)]);
    let night = &table.night;
    let done = night.run(DT, &[]).expect_success().json();
    assert_eq!((done["n_documents"].as_u64(), ids(night)), (Some(3), vec!["a".to_owned(), "c".into(), "d".into()]));
    assert_eq!(night.run(DT, &[]).expect_success().json()["status"], "already_published");
    let manifest = fs::read(night.generation(DT).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert!(manifest["inputs"][0]["deleted_rows"].is_string(), "{manifest}");
    // The survivors are read from the file as the night read it, whatever the table says by then.
    table.delete(2, &[0]);
    for (more, name) in [(&[][..], "x.parquet"), (&["--as", "parquet"], "x.parquet"), (&["--flag"], "x.parquet")] {
        let output = format!("out{}", more.len() + usize::from(more.contains(&"--flag")) * 10);
        let filter =
            [&["filter", "--config", "job.toml", "--dt", DT, "--output", &output, "--json"][..], more].concat();
        let done = nearprint_in(night.path(), &filter).expect_success().json();
        assert_eq!((done["n_rows"].as_u64(), done["n_keep"].as_u64()), (Some(3), Some(3)), "{more:?}: {done}");
        let written = rows(&night.path().join(&output).join(format!("dt={DT}/{name}")));
        let kept: Vec<&str> = written.iter().map(|row| row[0].as_str()).collect();
        // A flag stands at each row of the file.
        let expected = if more.contains(&"--flag") { vec!["a", "b", "c", "d", "e"] } else { vec!["a", "c", "d"] };
        assert_eq!(kept, expected, "{more:?}");
    }
    // Another vector is another input.
    expect(&night.run(DT, &[]), 73, &["--replace"]);
    night.run(DT, &["--replace"]).expect_success();
    assert_eq!(ids(night), ["b", "c", "d", "e"]);
    night.run(DT, &["--replace", "--documents-version", "0"]).expect_success();
    assert_eq!(ids(night).len(), 5);
}

#[test]
fn a_deletion_vector_that_is_damaged_or_gone_or_names_rows_that_are_not_there_stops_the_night() {
    let bytes = vector(&[1]);
    let cases = [
        (
            json!({"storageType": "i", "pathOrInlineDv": z85(&bytes[8..]), "sizeInBytes": bytes.len() - 8, "cardinality": 1}),
            "first bytes",
        ),
        (
            json!({"storageType": "i", "pathOrInlineDv": z85(&bytes), "sizeInBytes": bytes.len(), "cardinality": 2}),
            "it has 1 rows, and the log says 2",
        ),
        (
            json!({"storageType": "u", "pathOrInlineDv": z85(&UUID), "sizeInBytes": 9, "cardinality": 2}),
            "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
        ),
        (
            json!({"storageType": "x", "pathOrInlineDv": "", "sizeInBytes": 9, "cardinality": 2}),
            "its storage type is 'x'",
        ),
        (inline(&[5]), "its table says that row 6 is deleted"),
    ];
    for (vector, said) in cases {
        let table = Delta::new();
        table.commit(1, &[table.remove("x"), table.add("x", &vector)]);
        let done = table.night.run(DT, &[]);
        assert_eq!(done.code, 65, "{}", done.stderr);
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
        assert!(!table.night.path().join("store").exists());
    }
}

#[test]
fn a_deletion_vector_of_a_clone_is_read_where_the_log_says_whatever_its_name_and_scheme() {
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = elsewhere.path().join("a b");
    let own = framed(&vector(&[1, 4]));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("v.bin"), &own).unwrap();
    let path = format!("file:{}/v.bin", folder.display()).replace(' ', "%20");
    let vector = json!({"storageType": "p", "pathOrInlineDv": path, "offset": 0, "sizeInBytes": own.len() - 8,
        "cardinality": 2});
    let table = Delta::new();
    table.commit(1, &[table.remove("x"), table.add("x", &vector)]);
    expect(&table.night.run(DT, &[]), 64, &["a b/v.bin, which lies outside of the table"]);
    let job = table.night.path().join("job.toml");
    let allowed = format!("{}clone_roots = [{:?}]\n", fs::read_to_string(&job).unwrap(), elsewhere.path());
    fs::write(&job, allowed).unwrap();
    table.night.run(DT, &[]).expect_success();
    assert_eq!(ids(&table.night), ["a", "c", "d"]);
}

/// The column `add` of a checkpoint with one file, which has a deletion vector.
fn add_column(add: &Value) -> ArrayRef {
    let text = |value: &Value| -> ArrayRef { Arc::new(StringArray::from(vec![value.as_str()])) };
    let long = |value: &Value| -> ArrayRef { Arc::new(Int64Array::from(vec![value.as_i64()])) };
    let vector = &add["deletionVector"];
    let vector = of_one(&[
        ("storageType", text(&vector["storageType"])),
        ("pathOrInlineDv", text(&vector["pathOrInlineDv"])),
        ("sizeInBytes", Arc::new(Int32Array::from(vec![vector["sizeInBytes"].as_i64().map(|n| n as i32)]))),
        ("cardinality", long(&vector["cardinality"])),
    ]);
    let mut partitions = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    partitions.keys().append_value("dt");
    partitions.values().append_value(DT);
    partitions.append(true).unwrap();
    of_one(&[
        ("path", text(&add["path"])),
        ("partitionValues", Arc::new(partitions.finish())),
        ("size", long(&add["size"])),
        ("deletionVector", vector),
    ])
}

fn of_one(columns: &[(&str, ArrayRef)]) -> ArrayRef {
    let fields: Fields =
        columns.iter().map(|(name, values)| Field::new(*name, values.data_type().clone(), true)).collect();
    Arc::new(StructArray::new(fields, columns.iter().map(|(_, values)| Arc::clone(values)).collect(), None))
}

#[test]
fn a_checkpoint_with_sidecars_stands_for_the_commits_before_it() {
    let table = Delta::new();
    let log = table.folder.join("_delta_log");
    let add: Value = serde_json::from_str(&table.add("x", &inline(&[0, 2]))).unwrap();
    let sidecar = log.join("_sidecars/3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet");
    write_parquet(&sidecar, &[("add", add_column(&add["add"]))]);
    let lines = [
        PROTOCOL.to_owned(),
        METADATA.to_owned(),
        r#"{"checkpointMetadata":{"version":3}}"#.to_owned(),
        r#"{"sidecar":{"path":"3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet","sizeInBytes":1,"modificationTime":0}}"#
            .to_owned(),
    ];
    let name = format!("{:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", 3);
    fs::write(log.join(name), lines.join("\n")).unwrap();
    fs::remove_file(log.join(format!("{:020}.json", 0))).unwrap();
    table.night.run(DT, &[]).expect_success();
    assert_eq!(ids(&table.night), ["b", "d", "e"]);
    // A sidecar by its whole path.
    let whole = format!("file://{}", sidecar.canonicalize().unwrap().display());
    let whole = lines.join("\n").replace("3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet", &whole);
    fs::write(log.join(format!("{:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", 3)), whole).unwrap();
    fs::remove_dir_all(table.night.path().join("store")).unwrap();
    fs::remove_dir_all(table.night.path().join("results")).unwrap();
    table.night.run(DT, &[]).expect_success();
    assert_eq!(ids(&table.night), ["b", "d", "e"]);
}

#[test]
fn a_night_may_be_what_a_table_got_since_a_version() {
    let table = Delta::new();
    table.delete(1, &[0]);
    write_documents(&table.path("y"), &[(Some("new"), Some(&text(9, 40)))]);
    table.commit(2, &[table.add("y", &Value::Null)]);
    let night = &table.night;
    night.run(DT, &["--documents-since", "1"]).expect_success();
    assert_eq!(ids(night), ["new"]);
    expect(&night.run(DT, &["--documents-since", "0", "--documents-version", "1", "--replace"]), 66, &["no documents"]);
    expect(&night.run(DT, &["--documents-since", "2", "--replace"]), 66, &["the table got no files there since 2"]);
    expect(
        &night.run(DT, &["--documents-since", "2", "--documents-version", "1"]),
        78,
        &["version 2 is later than version 1"],
    );
    expect(&night.run(DT, &["--documents-since", "9"]), 78, &["documents_since", "version 9 is later than version 2"]);
}

#[test]
fn survivors_of_files_whose_names_are_hidden_are_found_by_the_next_reader() {
    let table = Delta::new();
    write_documents(&table.path("_y"), &[(Some("new"), Some(&text(9, 40)))]);
    table.commit(1, &[table.add("_y", &Value::Null)]);
    let night = &table.night;
    assert_eq!(night.run(DT, &[]).expect_success().json()["n_documents"], 6);
    let filter = ["filter", "--config", "job.toml", "--dt", DT, "--output", "kept"];
    nearprint_in(night.path(), &filter).expect_success();
    assert!(night.path().join(format!("kept/dt={DT}/x_y.parquet")).exists());
    let again = ["fingerprint", "--documents", "kept", "--output", "again", "--json"];
    assert_eq!(nearprint_in(night.path(), &again).expect_success().json()["n_documents"], 6);
}

/// An Iceberg table in `documents`.
struct Iceberg {
    night: Night,
    folder: PathBuf,
}

const LIST: &str = r#"{"type": "record", "name": "manifest_file", "fields": [
    {"name": "manifest_path", "type": "string"}, {"name": "partition_spec_id", "type": "int"},
    {"name": "sequence_number", "type": "long"}, {"name": "added_snapshot_id", "type": "long"}]}"#;
const MANIFEST: &str = r#"{"type": "record", "name": "manifest_entry", "fields": [
    {"name": "status", "type": "int"}, {"name": "sequence_number", "type": ["null", "long"]},
    {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": [
        {"name": "content", "type": "int"}, {"name": "file_path", "type": "string"}, {"name": "file_format", "type": "string"},
        {"name": "partition", "type": {"type": "record", "name": "r102", "fields": [
            {"name": "dt", "type": ["null", {"type": "int", "logicalType": "date"}]}]}},
        {"name": "file_size_in_bytes", "type": "long"}, {"name": "referenced_data_file", "type": ["null", "string"]},
        {"name": "content_offset", "type": ["null", "long"]}, {"name": "content_size_in_bytes", "type": ["null", "long"]}]}}]}"#;

/// The type of the value by which the files of [`MANIFEST`] are partitioned.
const DAY: &str = r#"{"type": "int", "logicalType": "date"}"#;

/// The kinds of files of a manifest.
const DATA: i32 = 0;
const POSITIONS: i32 = 1;
const VALUES: i32 = 2;

/// An entry of a manifest.
struct Entry<'a> {
    status: i32,
    content: i32,
    path: &'a str,
    day: &'a str,
    vector: Option<(&'a str, i64, i64)>,
}

impl<'a> Entry<'a> {
    fn data(path: &'a str, day: &'a str) -> Self {
        Self { status: 1, content: DATA, path, day, vector: None }
    }
}

impl Iceberg {
    fn new() -> Self {
        let night = Night::new("");
        let folder = night.path().join("documents");
        fs::create_dir_all(folder.join("metadata")).unwrap();
        Self { night, folder }
    }

    /// Writes documents, and returns the path of their file as the table has it.
    fn documents(&self, name: &str, ids: &[&str]) -> String {
        let texts: Vec<String> = ids.iter().map(|id| text(id.bytes().map(u64::from).sum(), 40)).collect();
        let rows: Vec<_> = ids.iter().map(|id| Some(*id)).zip(texts.iter().map(|text| Some(text.as_str()))).collect();
        write_documents(&self.folder.join("data").join(name), &rows);
        place(&format!("data/{name}"))
    }

    /// Writes a file of columns that bear the numbers that the table has given them.
    fn numbered(&self, name: &str, columns: Vec<(Field, ArrayRef)>) -> String {
        let (fields, values): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let schema = Arc::new(arrow::datatypes::Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), values).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
        writer.write(&batch).unwrap();
        fs::create_dir_all(self.folder.join("data")).unwrap();
        fs::write(self.folder.join("data").join(name), writer.into_inner().unwrap()).unwrap();
        place(&format!("data/{name}"))
    }

    fn avro(&self, name: &str, schema: &str, records: Vec<Avro>) -> String {
        let schema = Schema::parse_str(schema).unwrap();
        let mut writer = Writer::new(&schema, Vec::new());
        for record in records {
            writer.append(record).unwrap();
        }
        fs::write(self.folder.join("metadata").join(name), writer.into_inner().unwrap()).unwrap();
        place(&format!("metadata/{name}"))
    }

    fn manifest(&self, name: &str, entries: &[Entry<'_>]) -> String {
        // No day is NULL.
        let day = |entry: &Entry<'_>| nearprint_storage::day_of_date(entry.day).map(Avro::Date);
        let entries: Vec<_> = entries.iter().map(|entry| (entry, day(entry))).collect();
        self.manifest_by(name, DAY, &entries)
    }

    /// Writes a manifest of files that are partitioned by values of this type.
    fn manifest_by(&self, name: &str, kind: &str, entries: &[(&Entry<'_>, Option<Avro>)]) -> String {
        let optional = |value: Option<Avro>| match value {
            Some(value) => Avro::Union(1, Box::new(value)),
            None => Avro::Union(0, Box::new(Avro::Null)),
        };
        let record = |(entry, value): &(&Entry<'_>, Option<Avro>)| {
            let relative = entry.path.trim_start_matches("s3a://lake/pages/").trim_start_matches("file://");
            let size = fs::metadata(self.folder.join(relative)).map_or(1, |there| there.len());
            let format = if entry.vector.is_some() { "PUFFIN" } else { "PARQUET" };
            let vector = entry.vector;
            let file = vec![
                ("content", Avro::Int(entry.content)),
                ("file_path", Avro::String(entry.path.to_owned())),
                ("file_format", Avro::String(format.to_owned())),
                ("partition", Avro::Record(vec![("dt".to_owned(), optional(value.clone()))])),
                ("file_size_in_bytes", Avro::Long(size as i64)),
                ("referenced_data_file", optional(vector.map(|(of, ..)| Avro::String(of.to_owned())))),
                ("content_offset", optional(vector.map(|(_, offset, _)| Avro::Long(offset)))),
                ("content_size_in_bytes", optional(vector.map(|(.., size)| Avro::Long(size)))),
            ];
            let file = file.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            Avro::Record(vec![
                ("status".to_owned(), Avro::Int(entry.status)),
                ("sequence_number".to_owned(), optional(None)),
                ("data_file".to_owned(), Avro::Record(file)),
            ])
        };
        self.avro(name, &MANIFEST.replace(DAY, kind), entries.iter().map(record).collect())
    }

    /// Writes a list of manifests with the numbers of their changes, and returns its path.
    fn list(&self, name: &str, manifests: &[(&str, i64)]) -> String {
        let manifests: Vec<_> = manifests.iter().map(|(path, sequence)| (*path, *sequence, 0)).collect();
        self.list_of(name, &manifests)
    }

    /// Writes a list of manifests with the numbers of their changes and of the ways in which their files are partitioned.
    fn list_of(&self, name: &str, manifests: &[(&str, i64, i32)]) -> String {
        let record = |(path, sequence, spec): &(&str, i64, i32)| {
            Avro::Record(vec![
                ("manifest_path".to_owned(), Avro::String((*path).to_owned())),
                ("partition_spec_id".to_owned(), Avro::Int(*spec)),
                ("sequence_number".to_owned(), Avro::Long(*sequence)),
                ("added_snapshot_id".to_owned(), Avro::Long(*sequence)),
            ])
        };
        self.avro(name, LIST, manifests.iter().map(record).collect())
    }

    /// Writes a file of metadata whose snapshots are these lists, numbered from 1; the last one is current.
    fn metadata(&self, name: &str, lists: &[&str], more: &Value) {
        let snapshots: Vec<Value> = (1..)
            .zip(lists)
            .map(|(id, list): (i64, _)| json!({"snapshot-id": id, "sequence-number": id, "manifest-list": list}))
            .collect();
        let mut table = json!({"format-version": 2, "location": "s3a://lake/pages", "current-schema-id": 0,
            "schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "id"}, {"id": 2, "name": "text"}]}],
            "partition-specs": [{"spec-id": 0, "fields": [{"name": "dt", "transform": "identity", "source-id": 3, "field-id": 1000}]}],
            "current-snapshot-id": lists.len(), "snapshots": snapshots});
        more.as_object().into_iter().flatten().for_each(|(key, value)| table[key] = value.clone());
        fs::write(self.folder.join("metadata").join(name), table.to_string()).unwrap();
    }

    /// Writes a file that deletes rows of others by their numbers.
    fn positions(&self, name: &str, rows: &[(&str, i64)]) -> String {
        let files: ArrayRef = Arc::new(rows.iter().map(|(file, _)| Some(*file)).collect::<StringArray>());
        let numbers: ArrayRef = Arc::new(rows.iter().map(|(_, row)| Some(*row)).collect::<Int64Array>());
        write_parquet(&self.folder.join("data").join(name), &[("file_path", files), ("pos", numbers)]);
        place(&format!("data/{name}"))
    }
}

/// The table was written elsewhere: what lies below its old place lies below the new one.
fn place(path: &str) -> String {
    format!("s3a://lake/pages/{path}")
}

/// Two days, and another snapshot that adds a file and deletes rows of the first by their numbers and by a vector.
fn iceberg() -> Iceberg {
    let table = Iceberg::new();
    let own = table.documents("a.parquet", &["a", "b", "c", "d"]);
    let other = table.documents("z.parquet", &["z"]);
    let gone = place("data/gone.parquet");
    let first = table.manifest(
        "m1.avro",
        &[Entry::data(&own, DT), Entry::data(&other, "2026-11-19"), Entry { status: 2, ..Entry::data(&gone, DT) }],
    );
    let list = table.list("snap-1.avro", &[(&first, 1)]);
    table.metadata("00001-x.metadata.json", &[&list], &json!({}));
    let new = table.documents("e.parquet", &["e", "f"]);
    let second = table.manifest("m2.avro", &[Entry::data(&new, DT)]);
    // Row 0 of the new file is deleted too, by a change before the file was added.
    let deletes = table.positions("d.parquet", &[(&own, 0), (&own, 3), (&new, 0)]);
    let third = table.manifest("m3.avro", &[Entry { content: POSITIONS, ..Entry::data(&deletes, DT) }]);
    let both = table.list("snap-2.avro", &[(&first, 1), (&third, 2), (&second, 3)]);
    table.metadata("00002-y.metadata.json", &[&list, &both], &json!({}));
    table
}

#[test]
fn an_iceberg_table_gives_a_night_the_rows_of_its_newest_snapshot_or_of_the_one_that_is_named() {
    let table = iceberg();
    let night = &table.night;
    night.run(DT, &[]).expect_success();
    assert_eq!(ids(night), ["b", "c", "e", "f"]);
    night.run(DT, &["--documents-version", "1", "--replace"]).expect_success();
    assert_eq!(ids(night), ["a", "b", "c", "d"]);
    night.run(DT, &["--documents-since", "1", "--replace"]).expect_success();
    assert_eq!(ids(night), ["e", "f"]);
    let whole = ["fingerprint", "--documents", "documents", "--output", "out", "--json"];
    assert_eq!(nearprint_in(night.path(), &whole).expect_success().json()["n_documents"], 5);
    let older = ["fingerprint", "--documents", "documents/metadata/00001-x.metadata.json", "--output", "old", "--json"];
    assert_eq!(nearprint_in(night.path(), &older).expect_success().json()["n_documents"], 5);
    expect(&night.run(DT, &["--documents-version", "7"]), 78, &["no snapshot 7: it has 1, 2"]);
    expect(&night.run("2026-11-21", &[]), 66, &["2026-11-21"]);
    let other = ["fingerprint", "--documents", "documents/lang=de", "--output", "new"];
    expect(&nearprint_in(night.path(), &other), 78, &["without the partition field 'lang' (dt)"]);
    // Survivors come from the files as the night read them.
    let filter = ["filter", "--config", "job.toml", "--dt", DT, "--output", "kept", "--json"];
    assert_eq!(nearprint_in(night.path(), &filter).expect_success().json()["n_keep"], 2);
}

/// A table of the files of some partitions, whose values are texts.
fn by_texts(files: &[(&str, Option<&str>)]) -> Iceberg {
    let table = Iceberg::new();
    let paths: Vec<String> = files.iter().map(|(id, _)| table.documents(&format!("{id}.parquet"), &[id])).collect();
    let entries: Vec<_> = paths.iter().map(|path| Entry::data(path, "")).collect();
    let values = files.iter().map(|(_, value)| value.map(|value| Avro::String(value.to_owned())));
    let entries: Vec<_> = entries.iter().zip(values).collect();
    let manifest = table.manifest_by("m.avro", r#""string""#, &entries);
    let list = table.list("snap.avro", &[(&manifest, 1)]);
    table.metadata("00000-x.metadata.json", &[&list], &json!({}));
    table
}

#[test]
fn a_night_that_a_table_does_not_have_is_late_and_one_that_it_has_in_another_form_is_a_fault_even_if_it_may_be_empty() {
    let may_be_empty = |night: &Night| {
        let job = night.path().join("job.toml");
        fs::write(&job, fs::read_to_string(&job).unwrap() + "\nallow_empty = true\n").unwrap();
    };
    for (there, form) in [("20261120", "dt={dt:%Y%m%d}"), ("2026-11-20 00:00:00", "dt={dt} 00:00:00")] {
        let table = by_texts(&[("a", Some(there))]);
        let written = form.trim_start_matches("dt=");
        let said = format!(
            "no partition dt=2026-11-20, but dt={there}: name that, or in a place of nights write dt as {written};"
        );
        expect(&table.night.run(DT, &["--late-exit-code", "75"]), 78, &[&said]);
        may_be_empty(&table.night);
        expect(&table.night.run(DT, &[]), 78, &[&said]);
        table.night.run(DT, &["--documents", &format!("documents/{form}")]).expect_success();
        assert_eq!(ids(&table.night), ["a"]);
    }
    let table = by_texts(&[("a", Some("2026-11-18")), ("b", Some("2026-11-19")), ("n", None)]);
    for place in ["documents", "documents/metadata/00000-x.metadata.json"].map(|place| ["--documents", place]) {
        expect(
            &table.night.run(DT, &place),
            66,
            &["the last partitions there: dt=2026-11-19, dt=2026-11-18: run it again when"],
        );
        expect(
            &table.night.run(DT, &[&place[..], &["--late-exit-code", "75"]].concat()),
            75,
            &["last partitions there"],
        );
    }
    may_be_empty(&table.night);
    for place in ["documents", "documents/metadata/00000-x.metadata.json"] {
        let done = table.night.run(DT, &["--documents", place, "--replace"]).expect_success().json();
        assert_eq!(done["n_documents"], 0);
    }
    // Numbers are in the order of the place, and compared as such.
    let table = Delta::new();
    table.commit(1, &[METADATA.replace(r#"["dt"]"#, r#"["year","month","day"]"#)]);
    let add = |month: &str, day: &str| {
        let mut add: Value = serde_json::from_str(&table.add("x", &Value::Null)).unwrap();
        add["add"]["partitionValues"] = json!({"year": "2026", "month": month, "day": day});
        add["add"]["path"] = json!(format!("x{month}-{day}.parquet"));
        add.to_string()
    };
    table.commit(2, &[add("1", "31"), add("11", "9"), add("9", "30")]);
    let place = ["--documents", "documents/year={yyyy}/month={dt:%-m}/day={dt:%-d}"];
    let last =
        "the last partitions there: year=2026/month=11/day=9, year=2026/month=9/day=30, year=2026/month=1/day=31:";
    expect(&table.night.run(DT, &place), 66, &["documents/year=2026/month=11/day=20", last]);
    let place = ["--documents", "documents/year={yyyy}/month={mm}/day={dd}"];
    let other = "but year=2026/month=11/day=9: name that, or in a place of nights write day as {dt:%-m} or {dt:%-d};";
    expect(&table.night.run("2026-11-09", &place), 78, &["no partition year=2026/month=11/day=09", other]);

    let table = by_texts(&[("a", Some("2026-11-18")), ("n", None)]);
    let of_null = ["fingerprint", "--documents", "documents/dt=null", "--output", "out", "--json"];
    assert_eq!(nearprint_in(table.night.path(), &of_null).expect_success().json()["n_documents"], 1);

    let table = Delta::new();
    let add = |path: &str, value: Option<&str>| {
        let mut add: Value = serde_json::from_str(&table.add("x", &Value::Null)).unwrap();
        add["add"]["partitionValues"] = json!({ "dt": value });
        add["add"]["path"] = json!(path);
        add.to_string()
    };
    for (version, there) in [(1, "20261120"), (2, "2026-11-20 00:00:00")] {
        table.commit(version, &[table.remove("x"), add(&format!("x{version}.parquet"), Some(there))]);
        for more in [&[][..], &["--documents", "documents/dt={dt}", "--documents-since", "0"]] {
            expect(&table.night.run(DT, more), 78, &["no partition dt=2026-11-20, but dt=", there]);
        }
    }
    let gone = |path: &str| json!({"remove": {"path": path, "dataChange": true}}).to_string();
    table.commit(3, &[gone("x1.parquet"), gone("x2.parquet"), add(&format!("dt={DT}/x.parquet"), None)]);
    let of_null =
        ["fingerprint", "--documents", "documents/dt=__HIVE_DEFAULT_PARTITION__", "--output", "out", "--json"];
    assert_eq!(nearprint_in(table.night.path(), &of_null).expect_success().json()["n_documents"], 5);
    expect(&table.night.run(DT, &[]), 66, &["the table has no files: run it again"]);
}

#[test]
fn files_and_deletes_that_name_one_path_in_two_forms_are_about_one_file() {
    let table = Iceberg::new();
    table.documents("a.parquet", &["a", "b", "c"]);
    let path = table.folder.canonicalize().unwrap().join("data/a.parquet").display().to_string();
    let data = table.manifest("m1.avro", &[Entry::data(&format!("file://{path}"), DT)]);
    let deletes = table.positions("d.parquet", &[(&format!("file:{path}"), 0), (&path, 2)]);
    let deletes = table.manifest("m2.avro", &[Entry { content: POSITIONS, ..Entry::data(&deletes, DT) }]);
    let list = table.list("snap.avro", &[(&data, 1), (&deletes, 2)]);
    // Catalogs may write the number without zeros before it.
    table.metadata("3-80a083e8-7026-4e79-81be-64bd76c43a11.metadata.json", &[&list], &json!({}));
    table.night.run(DT, &[]).expect_success();
    assert_eq!(ids(&table.night), ["b"]);

    let table = Delta::new();
    let path = table.path("x").canonicalize().unwrap().display().to_string();
    let named = |line: String, scheme: &str| line.replace(&format!("dt={DT}/x.parquet"), &format!("{scheme}{path}"));
    table.commit(1, &[table.remove("x"), named(table.add("x", &Value::Null), "file:")]);
    table.commit(2, &[named(table.remove("x"), "file://")]);
    expect(&table.night.run(DT, &[]), 66, &["the table has no files"]);
}

#[test]
fn a_log_with_a_gap_names_the_versions_that_are_whole_and_what_is_missing() {
    let table = Delta::new();
    (1..4).for_each(|version| table.delete(version, &[0]));
    let log = table.folder.join("_delta_log");
    fs::remove_file(log.join(format!("{:020}.json", 2))).unwrap();
    expect(
        &table.night.run(DT, &[]),
        65,
        &["no version 2 any more, which version 3 needs; versions 0 to 1 are complete: name one with"],
    );
    fs::remove_file(log.join(format!("{:020}.json", 0))).unwrap();
    fs::write(log.join(format!("{:020}.checkpoint.0000000001.0000000002.parquet", 2)), "x").unwrap();
    expect(&table.night.run(DT, &[]), 65, &["needs, and the checkpoint of version 2 lacks a part: restore the log"]);
}

#[test]
fn a_vector_of_an_iceberg_table_deletes_rows_and_its_newest_metadata_are_those_that_the_hint_names() {
    let table = Iceberg::new();
    let own = table.documents("a.parquet", &["a", "b", "c"]);
    let vector = framed(&vector(&[1]));
    fs::write(table.folder.join("data/v.puffin"), [b"PFA1", &vector[..]].concat()).unwrap();
    let puffin = place("data/v.puffin");
    let data = table.manifest("m1.avro", &[Entry::data(&own, DT)]);
    let of = Some((own.as_str(), 4, vector.len() as i64));
    let deletes = table.manifest("m2.avro", &[Entry { content: POSITIONS, vector: of, ..Entry::data(&puffin, DT) }]);
    let list = table.list("snap.avro", &[(&data, 1), (&deletes, 2)]);
    table.metadata("v1.metadata.json", &[&list], &json!({"format-version": 3}));
    table.night.run(DT, &[]).expect_success();
    assert_eq!(ids(&table.night), ["a", "c"]);
    let without = table.list("snap-2.avro", &[(&data, 1)]);
    table.metadata("v2.metadata.json", &[&without], &json!({}));
    // The table has moved to a catalog that does not write the hint, or the numbers are of an earlier table.
    table.metadata("00009-x.metadata.json", &[&list], &json!({}));
    // The hint is written after the metadata: what follows it counts.
    for hint in ["1\n", "2"] {
        fs::write(table.folder.join("metadata/version-hint.text"), hint).unwrap();
        table.night.run(DT, &["--replace"]).expect_success();
        assert_eq!(ids(&table.night), ["a", "b", "c"]);
    }
    fs::write(table.folder.join("metadata/version-hint.text"), "3").unwrap();
    expect(&table.night.run(DT, &[]), 65, &["version-hint.text names version 3, which is not there"]);
}

#[test]
fn iceberg_tables_that_need_more_of_a_reader_are_refused_by_what_they_need() {
    let renamed = json!({"current-schema-id": 1, "schemas": [
        {"schema-id": 0, "fields": [{"id": 1, "name": "id"}, {"id": 2, "name": "body"}]},
        {"schema-id": 1, "fields": [{"id": 1, "name": "id"}, {"id": 2, "name": "text"}]}]});
    let bucket = json!({"partition-specs": [{"spec-id": 0, "fields": [{"name": "dt", "transform": "bucket[4]"}]}]});
    let void = json!({"partition-specs": [{"spec-id": 0, "fields": [{"name": "dt", "transform": "void"}]}]});
    let cases: [(Value, i32, &str, i32, &str); 6] = [
        (renamed, DATA, "b.parquet", 65, "renamed the column 'text'"),
        (json!({"format-version": 4}), DATA, "b.parquet", 65, "3 is the newest known"),
        (bucket, DATA, "b.parquet", 65, "does not say of"),
        (void, DATA, "b.parquet", 65, "does not say of"),
        (json!({}), VALUES, "values.parquet", 65, "rewrite_data_files"),
        (json!({}), DATA, "gone.parquet", 65, "which is gone"),
    ];
    for (more, content, name, code, said) in cases {
        let table = Iceberg::new();
        let own = table.documents("a.parquet", &["a", "b"]);
        let named = place(&format!("data/{name}"));
        let data = table.manifest("m1.avro", &[Entry::data(&own, DT)]);
        let more_files = table.manifest("m2.avro", &[Entry { content, ..Entry::data(&named, DT) }]);
        let list = table.list("snap.avro", &[(&data, 1), (&more_files, 2)]);
        table.metadata("00000-x.metadata.json", &[&list], &more);
        expect(&table.night.run(DT, &[]), code, &[said]);
        assert!(!table.night.path().join("store").exists(), "{said}");
    }
    // Only a catalog knows which of two is the newest.
    let table = iceberg();
    let metadata = table.folder.join("metadata");
    fs::copy(metadata.join("00001-x.metadata.json"), metadata.join("00002-z.metadata.json")).unwrap();
    expect(&table.night.run(DT, &[]), 65, &["00002-y.metadata.json and 00002-z.metadata.json", "catalog"]);
    damage(&metadata.join("m1.avro"));
    fs::remove_file(metadata.join("00002-z.metadata.json")).unwrap();
    expect(&table.night.run(DT, &[]), 65, &["m1.avro", "no manifest of an Iceberg table"]);
}

#[test]
fn a_list_of_manifests_on_which_its_reader_fails_is_a_damaged_file() {
    let table = iceberg();
    let list = table.folder.join("metadata/snap-2.avro");
    let bytes = fs::read(&list).unwrap();
    let at = bytes.windows(13).position(|name| name == b"manifest_file").unwrap();
    // No schema may have this name.
    fs::write(&list, [&bytes[..at], b"man#fest_file", &bytes[at + 13..]].concat()).unwrap();
    expect(&table.night.run(DT, &[]), 65, &["snap-2.avro", "the reader failed on it"]);
}

fn damage(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

#[test]
fn the_metadata_that_a_catalog_names_are_those_of_a_night_and_what_does_not_concern_it_does_not_stop_it() {
    let table = iceberg();
    let night = &table.night;
    let metadata = "documents/metadata/00001-x.metadata.json";
    night.run(DT, &["--documents", metadata]).expect_success();
    assert_eq!(ids(night), ["a", "b", "c", "d"]);
    night.run(DT, &["--documents", "documents/metadata/00002-y.metadata.json", "--replace"]).expect_success();
    assert_eq!(ids(night), ["b", "c", "e", "f"]);
    let later = ["--documents-version", "1", "--documents-since", "2", "--replace"];
    expect(&night.run(DT, &later), 78, &["snapshot 2 is later than snapshot 1"]);

    // Deletes by value of another partition, or from before the rows were written, and files without a night.
    let table = Iceberg::new();
    let [own, other, free] = ["a", "z", "n"].map(|id| table.documents(&format!("{id}.parquet"), &[id]));
    let values = place("data/values.parquet");
    let data = table.manifest("m1.avro", &[Entry::data(&own, DT)]);
    let before = table.manifest("m2.avro", &[Entry::data(&other, "2026-11-19"), Entry::data(&free, "")]);
    let deletes = table.manifest(
        "m3.avro",
        &[
            Entry { content: VALUES, ..Entry::data(&values, "2026-11-19") },
            Entry { content: VALUES, ..Entry::data(&values, DT) },
        ],
    );
    let list = table.list("snap.avro", &[(&before, 1), (&deletes, 2), (&data, 2)]);
    table.metadata("00000-x.metadata.json", &[&list], &json!({}));
    table.night.run(DT, &[]).expect_success();
    assert_eq!(ids(&table.night), ["a"]);
    expect(&table.night.run("2026-11-19", &["--late"]), 65, &["rewrite_data_files"]);
    // A file twice in a snapshot.
    let twice = table.list("snap-2.avro", &[(&data, 1), (&data, 2)]);
    table.metadata("00001-x.metadata.json", &[&twice], &json!({}));
    expect(&table.night.run(DT, &["--replace"]), 65, &["it names s3a://lake/pages/data/a.parquet twice"]);
}

#[test]
fn deletes_by_value_are_refused_unless_they_are_of_another_partition_for_certain() {
    const INT: &str = r#""int""#;
    const LONG: &str = r#""long""#;
    let ten = || (INT, Some(Avro::Int(10)));
    let cases = [
        // A column of `int` may become one of `long`.
        ("truncate[10]", ten(), (LONG, Some(Avro::Long(10))), 0, 65),
        ("truncate[10]", ten(), (LONG, Some(Avro::Long(20))), 0, 0),
        ("truncate[10]", ten(), (LONG, None), 0, 0),
        ("identity", (r#""float""#, Some(Avro::Float(0.5))), (r#""double""#, Some(Avro::Double(1.5))), 0, 65),
        // The table has given up the only field: such deletes are of all partitions.
        ("identity", ten(), (INT, None), 1, 65),
        // Partitioned in another way.
        ("identity", ten(), ten(), 2, 0),
    ];
    for (transform, (kind, value), (kind_of_deletes, value_of_deletes), spec, code) in cases {
        let table = Iceberg::new();
        let (own, values) = (table.documents("a.parquet", &["a"]), place("data/values.parquet"));
        let data = table.manifest_by("m1.avro", kind, &[(&Entry::data(&own, ""), value)]);
        let deletes = Entry { content: VALUES, ..Entry::data(&values, "") };
        let deletes = table.manifest_by("m2.avro", kind_of_deletes, &[(&deletes, value_of_deletes)]);
        let list = table.list_of("snap.avro", &[(&data, 1, 0), (&deletes, 2, spec)]);
        let by = |id: i32, transform: &str| json!({"spec-id": id, "fields": [{"name": "n", "transform": transform}]});
        let specs = json!({"partition-specs": [by(0, transform), by(1, "void"), by(2, transform)]});
        table.metadata("00000-x.metadata.json", &[&list], &specs);
        let done = nearprint_in(table.night.path(), &["fingerprint", "--documents", "documents", "--output", "out"]);
        assert_eq!(done.code, code, "{transform} {kind_of_deletes} {spec}: {}", done.stderr);
        assert_eq!(done.stderr.contains("rewrite_data_files"), code == 65, "{transform}: {}", done.stderr);
    }
}

#[test]
fn files_of_an_iceberg_table_lie_below_it_unless_the_job_allows_other_places() {
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret.parquet");
    write_documents(&secret, &[(Some("secret"), Some(&text(1, 40)))]);
    let paths = [
        (format!("file://{}", secret.display()), "lies outside of the table"),
        (secret.display().to_string(), "lies outside of the table"),
        ("s3://payroll/secret.parquet".to_owned(), "lies outside of the table"),
        (place(&format!("data/../../..{}", secret.display())), "illegal character sequence"),
    ];
    for (path, said) in &paths {
        let table = Iceberg::new();
        let own = table.documents("a.parquet", &["a"]);
        let data = table.manifest("m1.avro", &[Entry::data(&own, DT), Entry::data(path, DT)]);
        let list = table.list("snap.avro", &[(&data, 1)]);
        table.metadata("00000-x.metadata.json", &[&list], &json!({}));
        expect(&table.night.run(DT, &[]), 64, &[said]);
    }
}

/// A column of strings, with its number.
fn column(name: &str, id: i32, value: &str) -> (Field, ArrayRef) {
    let values: ArrayRef = Arc::new(StringArray::from(vec![value]));
    (with_id(Field::new(name, values.data_type().clone(), true), id), values)
}

/// A column with one other within it.
fn outer(name: &str, id: i32, (field, values): (Field, ArrayRef)) -> (Field, ArrayRef) {
    let values: ArrayRef = Arc::new(StructArray::new(Fields::from(vec![field]), vec![values], None));
    (with_id(Field::new(name, values.data_type().clone(), true), id), values)
}

fn with_id(field: Field, id: i32) -> Field {
    field.with_metadata(HashMap::from([("PARQUET:field_id".to_owned(), id.to_string())]))
}

#[test]
fn a_column_is_that_of_its_number_also_if_the_schemas_of_before_are_gone() {
    let own = text(1, 40);
    let id = || column("id", 1, "a");
    let doc = |id: i32| outer("doc", 4, column("text", id, &own));
    let nested = r#"{"id": 4, "name": "doc", "type": {"type": "struct", "fields": [{"id": 5, "name": "text", "type": "string"}]}}"#;
    let nested: Value = serde_json::from_str(nested).unwrap();
    let plain = json!({"id": 2, "name": "text", "type": "string"});
    let dashed = json!({"id": 2, "name": "doc-text", "type": "string"});
    let cases = [
        (vec![id(), column("text", 2, &own)], &plain, "text", 0, ""),
        // Dropped and added again, or swapped with another column.
        (vec![id(), column("text", 3, &own)], &plain, "text", 65, "dropped or renamed the column 'text'"),
        (vec![id(), column("text", 3, &own), column("summary", 2, "s")], &plain, "text", 65, "the column 'text'"),
        (vec![id(), column("body", 2, &own)], &plain, "text", 65, "dropped or renamed the column 'text'"),
        // Of a file with numbers, a column without one is none of the table's.
        (
            vec![id(), (Field::new("text", DataType::Utf8, true), column("", 0, &own).1)],
            &plain,
            "text",
            65,
            "the column 'text'",
        ),
        // Dropped, and not added again.
        (vec![id(), column("text", 3, &own)], &dashed, "text", 65, "dropped or renamed the column 'text'"),
        // Names that Parquet cannot have are written in another way.
        (vec![id(), column("doc_x2Dtext", 2, &own)], &dashed, "doc_x2Dtext", 0, ""),
        (vec![id(), column("doc_x2Dtext", 2, &own)], &dashed, "doc-text", 65, "under another name in this file"),
        // The column was added later.
        (vec![id()], &plain, "text", 65, "no column 'text'"),
        (vec![id(), doc(5)], &nested, "doc.text", 0, ""),
        (vec![id(), doc(6)], &nested, "doc.text", 65, "the column 'doc.text'"),
        (vec![id(), outer("doc", 6, column("text", 5, &own))], &nested, "doc.text", 65, "the column 'doc.text'"),
        (vec![id(), outer("page", 4, column("text", 5, &own))], &nested, "doc.text", 65, "the column 'doc.text'"),
    ];
    for (columns, field, name, code, said) in cases {
        let table = Iceberg::new();
        let has: Vec<String> = columns.iter().map(|(field, _)| format!("{field:?}")).collect();
        let file = table.numbered("a.parquet", columns);
        let data = table.manifest("m1.avro", &[Entry::data(&file, DT)]);
        let list = table.list("snap.avro", &[(&data, 1)]);
        let fields = json!([{"id": 1, "name": "id", "type": "string"}, field]);
        table.metadata("00001-x.metadata.json", &[&list], &json!({"schemas": [{"schema-id": 0, "fields": fields}]}));
        let read = ["fingerprint", "--documents", "documents", "--text-column", name, "--output", "out"];
        let done = nearprint_in(table.night.path(), &read);
        assert_eq!(done.code, code, "{has:?}: {}", done.stderr);
        assert!(code == 0 || done.error().contains(said), "{has:?}: {}", done.stderr);
    }
}

#[test]
fn files_of_an_iceberg_table_are_not_read_as_they_are_by_a_glob_or_a_folder_wherever_it_begins() {
    let table = iceberg();
    let path = table.night.path();
    for folder in ["pages/en", "pages/en/dt=2026-11-20"] {
        fs::create_dir_all(table.folder.join(folder)).unwrap();
        fs::copy(table.folder.join("data/a.parquet"), table.folder.join(folder).join("a.parquet")).unwrap();
    }
    for documents in [
        "documents/data/*.parquet",
        "documents/d*/*.parquet",
        "doc*/data/*.parquet",
        "docu*/*/a.parquet",
        "documents/pages",
        "documents/pages/*/a.parquet",
        "documents/pages/en/a.parquet",
        "documents/pages/en/dt=2026-11-20",
    ] {
        let done = nearprint_in(path, &["fingerprint", "--documents", documents, "--output", "out"]);
        expect(&done, 65, &["documents is an Iceberg table"]);
    }
    let night = table.night.run(DT, &["--documents", "documents/pages/en"]);
    expect(&night, 65, &["documents is an Iceberg table"]);
    // A folder of this name has no table for that alone.
    fs::create_dir_all(path.join("plain/metadata")).unwrap();
    fs::create_dir_all(path.join("plain/data")).unwrap();
    fs::write(path.join("plain/metadata/x.json"), "").unwrap();
    fs::copy(table.folder.join("data/a.parquet"), path.join("plain/data/a.parquet")).unwrap();
    for name in ["0001.metadata.json", "2026-11-20.metadata.json", "v2.pages.metadata.json"] {
        fs::write(path.join("plain/metadata").join(name), "").unwrap();
    }
    // A glob matches no file of the table beside, and tables have no JSONL files.
    fs::create_dir_all(path.join("plain/b/metadata")).unwrap();
    fs::write(path.join("plain/b/metadata/v1.metadata.json"), "").unwrap();
    fs::create_dir_all(path.join("plain/b/data")).unwrap();
    fs::copy(table.folder.join("data/a.parquet"), path.join("plain/b/data/a.parquet")).unwrap();
    fs::create_dir_all(table.folder.join("lines")).unwrap();
    fs::write(table.folder.join("lines/x.jsonl"), "{\"id\": \"a\", \"text\": \"some words\"}\n").unwrap();
    for documents in
        ["plain/d*/*.parquet", "plain/data", "plain/*/*.parquet", "documents/lines", "documents/l*/*.jsonl"]
    {
        let read = ["fingerprint", "--documents", documents, "--output", "out", "--replace"];
        nearprint_in(path, &read).expect_success();
    }
}

#[test]
fn a_table_within_the_folder_of_another_one_is_read_by_its_own_log() {
    let table = Delta::new();
    table.delete(1, &[0]);
    fs::create_dir(table.night.path().join("metadata")).unwrap();
    fs::write(table.night.path().join("metadata/v1.metadata.json"), "").unwrap();
    table.night.run(DT, &[]).expect_success();
    assert_eq!(ids(&table.night), ["b", "c", "d", "e"]);
    let whole = ["fingerprint", "--documents", "documents", "--output", "out", "--json"];
    assert_eq!(nearprint_in(table.night.path(), &whole).expect_success().json()["n_documents"], 4);
}

#[test]
fn a_file_of_deletes_or_of_a_checkpoint_that_is_gone_is_a_fault_of_the_table_and_no_night_to_wait_for() {
    const GONE: &str = "names it, and it is gone";
    for (name, vector) in [("d.parquet", None), ("v.puffin", Some((4, 40)))] {
        let table = Iceberg::new();
        let own = table.documents("a.parquet", &["a", "b"]);
        let deletes = place(&format!("data/{name}"));
        let data = table.manifest("m1.avro", &[Entry::data(&own, DT)]);
        let vector = vector.map(|(offset, size)| (own.as_str(), offset, size));
        let deleted = Entry { content: POSITIONS, vector, ..Entry::data(&deletes, DT) };
        let deleted = table.manifest("m2.avro", &[deleted]);
        let list = table.list("snap.avro", &[(&data, 1), (&deleted, 2)]);
        table.metadata("00000-x.metadata.json", &[&list], &json!({"format-version": 3}));
        expect(&table.night.run(DT, &[]), 65, &[name, GONE]);
    }
    let table = Delta::new();
    let lines =
        [PROTOCOL.to_owned(), METADATA.to_owned(), r#"{"sidecar":{"path":"a.parquet","sizeInBytes":1}}"#.to_owned()];
    let name = format!("{:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", 0);
    fs::write(table.folder.join("_delta_log").join(name), lines.join("\n")).unwrap();
    expect(&table.night.run(DT, &[]), 65, &["_sidecars/a.parquet", GONE]);
}

#[test]
fn a_night_of_what_a_table_got_is_refused_if_maintenance_wrote_its_rows_of_before_anew() {
    let table = Delta::new();
    let write = |version: u64, name: &str, removed: &[&str]| {
        write_documents(&table.path(name), &[(Some(name), Some(&text(version, 40)))]);
        let add = table.add(name, &Value::Null);
        let add = if removed.is_empty() { add } else { add.replace("\"dataChange\":true", "\"dataChange\":false") };
        let removed: Vec<String> = removed.iter().map(|name| table.remove(name)).collect();
        table.commit(version, &[removed, vec![add]].concat());
    };
    write(1, "y", &[]);
    write(2, "z", &["x", "y"]);
    write(3, "w", &[]);
    let night = &table.night;
    let said = [
        "documents_since",
        "version 2 wrote rows that the table may have had before",
        "z.parquet",
        " to 2 for",
        " to 1 for",
    ];
    expect(&night.run(DT, &["--documents-since", "0"]), 78, &said);
    let refused = night.run(DT, &["--documents-since", "1"]);
    expect(&refused, 78, &["version 2 wrote rows", " to 2 for"]);
    assert!(!refused.stderr.contains("added earlier"), "{}", refused.stderr);
    night.run(DT, &["--documents-since", "0", "--documents-version", "1"]).expect_success();
    assert_eq!(ids(night), ["y"]);
    night.run(DT, &["--documents-since", "2", "--replace"]).expect_success();
    assert_eq!(ids(night), ["w"]);
    // All rows that were written anew are new.
    write(4, "u", &[]);
    write(5, "v", &["w", "u"]);
    night.run(DT, &["--documents-since", "2", "--replace"]).expect_success();
    assert_eq!(ids(night), ["v"]);
    expect(&night.run(DT, &["--documents-since", "1", "--replace"]), 78, &["version 2 wrote rows"]);
    // A file with rows of before is written into another one.
    write(6, "t", &["v", "z"]);
    expect(&night.run(DT, &["--documents-since", "0", "--replace"]), 78, &["version 6 wrote rows", "t.parquet"]);

    let table = Iceberg::new();
    let manifests: Vec<String> = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
        .map(|(id, number)| {
            let own = table.documents(&format!("{id}.parquet"), &[id]);
            table.manifest(&format!("m{number}.avro"), &[Entry::data(&own, DT)])
        })
        .to_vec();
    let lists: [&[i64]; 4] = [&[1], &[1, 2], &[3], &[3, 4]];
    let snapshots: Vec<Value> = (1_i64..)
        .zip(lists)
        .map(|(id, of)| {
            let of: Vec<_> = of.iter().map(|&number| (manifests[number as usize - 1].as_str(), number)).collect();
            let operation = if id == 3 { "replace" } else { "append" };
            json!({"snapshot-id": id, "parent-snapshot-id": id - 1, "sequence-number": id,
                "manifest-list": table.list(&format!("snap-{id}.avro"), &of), "summary": {"operation": operation}})
        })
        .collect();
    let more = json!({"snapshots": snapshots, "current-snapshot-id": 4});
    table.metadata("00001-x.metadata.json", &[], &more);
    let night = &table.night;
    let said = [
        "documents_since",
        "snapshot 3 wrote rows that the table may have had before",
        "c.parquet",
        " to 3 for",
        " to 2 for",
    ];
    expect(&night.run(DT, &["--documents-since", "1"]), 78, &said);
    night.run(DT, &["--documents-since", "1", "--documents-version", "2"]).expect_success();
    assert_eq!(ids(night), ["b"]);
    night.run(DT, &["--documents-since", "3", "--replace"]).expect_success();
    assert_eq!(ids(night), ["d"]);
}

#[test]
fn an_iceberg_table_may_be_partitioned_by_uuids_which_are_values_of_16_bytes() {
    // The writer makes texts of uuids, so the schema gets their name afterwards, in the place of one as long.
    const KIND: &str = r#"{"type": "fixed", "size": 16, "name": "uuid_fixed", "doc": "............"}"#;
    let table = Iceberg::new();
    let own = table.documents("a.parquet", &["a", "b"]);
    let other = table.documents("c.parquet", &["c"]);
    let uuid = |byte: u8| Some(Avro::Fixed(16, vec![byte; 16]));
    let entries = [(&Entry::data(&own, ""), uuid(0xFF)), (&Entry::data(&other, ""), None)];
    let manifest = table.manifest_by("m1.avro", KIND, &entries);
    let path = table.folder.join("metadata/m1.avro");
    let mut bytes = fs::read(&path).unwrap();
    let [doc, logical] = [br#""doc":"............""#, br#""logicalType":"uuid""#];
    let at = bytes.windows(doc.len()).position(|window| window == doc).unwrap();
    bytes[at..at + logical.len()].copy_from_slice(logical);
    fs::write(&path, bytes).unwrap();
    let list = table.list("snap.avro", &[(&manifest, 1)]);
    table.metadata("00001-x.metadata.json", &[&list], &json!({}));
    let whole = ["fingerprint", "--documents", "documents", "--output", "out", "--json"];
    assert_eq!(nearprint_in(table.night.path(), &whole).expect_success().json()["n_documents"], 3);
    expect(&table.night.run(DT, &[]), 65, &["does not say of"]);
}

#[test]
fn a_table_may_name_its_files_from_a_dot_on_and_lie_in_a_folder_with_brackets() {
    let table = Delta::new();
    let add = table.add("x", &Value::Null).replace("\"dt=", "\"./dt=");
    table.commit(0, &[PROTOCOL.to_owned(), METADATA.to_owned(), add]);
    let night = &table.night;
    night.run(DT, &[]).expect_success();
    assert_eq!(ids(night).len(), 5);
    fs::rename(&table.folder, night.path().join("t[x]")).unwrap();
    for (documents, code) in
        [("t[x]", 0), ("t[x]/dt=2026-11-20", 0), ("t[x]/dt=*", 65), ("t[x]/dt=[12]026-11-20", 65), ("t[[]x]/dt=*", 65)]
    {
        let read = ["fingerprint", "--documents", documents, "--output", "out", "--replace"];
        let done = nearprint_in(night.path(), &read);
        assert_eq!(done.code, code, "{documents}: {}", done.stderr);
    }
}
