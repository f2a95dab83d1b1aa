//! `nearprint filter`: the surviving documents of published nights.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::builder::{Int32Builder, ListBuilder, StringBuilder};
use arrow::array::{ArrayRef, AsArray, Int64Array, LargeStringArray, RecordBatch, StringArray, StructArray};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{DataType, Field, Int64Type};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, FixedLenByteArray, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use crate::support::{self, Night, Ran, expect, nearprint_in, raw_strings, rows, snapshot, text, write_documents};

const DT: &str = "2026-11-20";

fn filter(night: &Night, more: &[&str]) -> Ran {
    let args = ["filter", "--config", "job.toml", "--dt", DT, "--output", "out", "--json"];
    support::command(night.path(), &args).args(more).run().unwrap()
}

fn counts(done: &Ran) -> [u64; 5] {
    let json = done.json();
    ["n_rows", "n_keep", "n_drop", "n_skip", "n_quarantine"].map(|name| json[name].as_u64().unwrap())
}

fn in_night(night: &Night, name: &str) -> PathBuf {
    let path = night.path().join(format!("documents/dt={DT}/{name}"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

fn out(night: &Night, name: &str) -> PathBuf {
    night.path().join(format!("out/dt={DT}/{name}"))
}

/// Documents of every kind of column, `n` of them from `first` on. Every third one has the text of the one before, and
/// every tenth one has none.
fn columns(first: i64, n: i64) -> RecordBatch {
    let all = || first..first + n;
    let texts = all().map(|i| (i % 10 != 9).then(|| text(u64::try_from(i - i64::from(i % 3 == 2)).unwrap(), 60)));
    let texts: ArrayRef = Arc::new(texts.collect::<LargeStringArray>());
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(all()));
    let mut lists = ListBuilder::new(Int32Builder::new());
    for i in all() {
        (0..i % 4).for_each(|k| lists.values().append_option((k != 1).then_some(i32::try_from(i).unwrap())));
        lists.append(i % 5 != 0);
    }
    let mut names = ListBuilder::new(StringBuilder::new());
    for i in all() {
        (0..i % 3).for_each(|k| names.values().append_value(format!("{i}-{k}")));
        names.append(true);
    }
    let names: ArrayRef = Arc::new(names.finish());
    let language: ArrayRef = Arc::new(all().map(|i| (i % 7 != 0).then_some("de")).collect::<StringArray>());
    let inner = [
        (Arc::new(Field::new("language", DataType::Utf8, true)), language),
        (Arc::new(Field::new("names", names.data_type().clone(), true)), names),
    ];
    let nested: ArrayRef = Arc::new(StructArray::from(inner.to_vec()));
    let lists: ArrayRef = Arc::new(lists.finish());
    RecordBatch::try_from_iter_with_nullable([
        ("numbers", lists, true),
        ("text", texts, true),
        ("meta", nested, true),
        ("id", ids, false),
    ])
    .unwrap()
}

fn write(path: &Path, batch: &RecordBatch, compression: Compression, group: usize) {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(group))
        .set_key_value_metadata(Some(vec![parquet::file::metadata::KeyValue::new(
            "crawler".to_owned(),
            "x".to_owned(),
        )]));
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = Arc::clone(reader.schema());
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

fn footer(path: &Path) -> parquet::file::metadata::ParquetMetaData {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap().metadata().clone()
}

#[test]
fn parquet_files_keep_their_columns_order_codec_and_metadata_and_lose_rows_alone() {
    let night = Night::new("");
    let zstd = Compression::ZSTD(ZstdLevel::default());
    write(&in_night(&night, "a.parquet"), &columns(0, 250), zstd, 100);
    write(&in_night(&night, "sub/b.parquet"), &columns(250, 40), Compression::SNAPPY, 1000);
    write(&in_night(&night, "empty.parquet"), &columns(0, 0), Compression::UNCOMPRESSED, 1000);
    night.run(DT, &[]).expect_success();
    let decisions = night.decisions(DT);
    let done = filter(&night, &[]).expect_success();
    let [n_rows, n_keep, n_drop, n_skip, n_quarantine] = counts(&done);
    assert_eq!((n_rows, n_keep + n_drop + n_skip, n_quarantine), (290, 290, 0));
    assert!(n_drop > 50 && n_skip == 29, "{n_drop} {n_skip}");
    for name in ["a.parquet", "sub/b.parquet", "empty.parquet"] {
        let (from, to) = (in_night(&night, name), out(&night, name));
        let before = read(&from);
        let ids = before.column_by_name("id").unwrap().as_any().downcast_ref::<Int64Array>().unwrap();
        let kept = ids.iter().map(|id| Some(decisions[&id.unwrap().to_string()][0] == "keep")).collect();
        assert_eq!(read(&to), filter_record_batch(&before, &kept).unwrap(), "{name}");
        let (before, after) = (footer(&from), footer(&to));
        assert_eq!(before.file_metadata().schema(), after.file_metadata().schema());
        assert_eq!(before.file_metadata().key_value_metadata(), after.file_metadata().key_value_metadata());
        assert_eq!(before.num_row_groups(), after.num_row_groups());
        for (a, b) in before.row_groups().iter().zip(after.row_groups()) {
            let codecs = |group: &parquet::file::metadata::RowGroupMetaData| -> Vec<_> {
                group.columns().iter().map(|c| (c.compression(), c.dictionary_page_offset().is_some())).collect()
            };
            assert_eq!(codecs(a), codecs(b));
        }
    }
    assert!(out(&night, "_SUCCESS").exists());
    let first = snapshot(&night.path().join("out"));
    filter(&night, &["--replace", "--threads", "1"]).expect_success();
    assert_eq!(snapshot(&night.path().join("out")), first);
    // What was written is itself a crawl.
    let again = nearprint_in(
        night.path(),
        &["fingerprint", "--documents", &format!("out/dt={DT}"), "--output", "fp", "--json"],
    );
    assert_eq!(again.expect_success().json()["n_documents"].as_u64(), Some(n_keep));
}

#[test]
fn a_page_without_values_ends_no_column() {
    let night = Night::new("");
    // Each of its 20 texts is that of two documents (scripts/make_empty_page_fixture.py).
    fs::copy(support::root().join("crates/cli/tests/data/empty_page.parquet"), in_night(&night, "a.parquet")).unwrap();
    night.run(DT, &[]).expect_success();
    let decisions = night.decisions(DT);
    assert_eq!(counts(&filter(&night, &[]).expect_success()), [40, 20, 20, 0, 0]);
    let kept = (0..40_i64).map(|row| (format!("d{row:02}"), row)).filter(|(id, _)| decisions[id][0] == "keep");
    let expected: Vec<(String, Vec<i64>)> = kept.map(|(id, row)| (id, vec![row; 5])).collect();
    let copy = read(&out(&night, "a.parquet"));
    let (ids, lists) = (copy.column(0).as_string::<i32>(), copy.column(2).as_list::<i32>());
    let written: Vec<(String, Vec<i64>)> = (0..copy.num_rows())
        .map(|row| (ids.value(row).to_owned(), lists.value(row).as_primitive::<Int64Type>().values().to_vec()))
        .collect();
    assert_eq!(written, expected);
}

#[test]
fn a_text_that_the_run_took_is_no_less_a_document_for_the_filter_by_the_limit_of_the_job() {
    let night = Night::new("max_doc_bytes = 1000\n");
    night.documents(DT, &[("long", &text(1, 400)), ("short", &text(2, 40))]);
    expect(&night.run(DT, &[]), 65, &["too_large"]);
    night.run(DT, &["--max-doc-bytes", "1MiB"]).expect_success();
    assert_eq!(counts(&filter(&night, &[]).expect_success()), [2, 2, 0, 0, 0]);
    // Nor for a stale night that is made again.
    night.documents("2026-11-18", &[("early", &text(3, 40))]).run("2026-11-18", &["--late"]).expect_success();
    nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]).expect_success();
    assert_eq!(night.decisions(DT).into_keys().collect::<Vec<_>>(), ["long", "short"]);
    assert_eq!(night.run(DT, &["--max-doc-bytes", "1MiB"]).expect_success().json()["status"], "already_published");
    fs::remove_dir_all(night.path().join("out")).unwrap();
    assert_eq!(counts(&filter(&night, &["--as", "jsonl"]).expect_success()), [2, 2, 0, 0, 0]);
}

#[test]
fn columns_that_arrow_cannot_write_and_texts_that_are_not_utf_8_are_copied_as_they_are() {
    let night = Night::new("max_bad_rows = 1\n");
    let schema = "message spark { required binary id (UTF8); optional binary text (UTF8); optional int96 seen; \
                  required fixed_len_byte_array(5) price (DECIMAL(11, 2)); optional binary raw (UTF8); }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let path = in_night(&night, "a.parquet");
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let strings = |values: &[&[u8]]| values.iter().map(|v| ByteArray::from(v.to_vec())).collect::<Vec<_>>();
    let (same, other) = (text(1, 40), text(2, 40));
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&strings(&[b"a", b"b", b"c", b"d"]), None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let texts = strings(&[same.as_bytes(), same.as_bytes(), b"\xff\xfe", other.as_bytes()]);
    column.typed::<ByteArrayType>().write_batch(&texts, Some(&[1, 1, 1, 1]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let stamp = |n: u32| Int96::from(vec![n, n + 1, n + 2]);
    column.typed::<Int96Type>().write_batch(&[stamp(10), stamp(20), stamp(40)], Some(&[1, 1, 0, 1]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let prices: Vec<FixedLenByteArray> = (0..4u8).map(|n| FixedLenByteArray::from(vec![n; 5])).collect();
    column.typed::<parquet::data_type::FixedLenByteArrayType>().write_batch(&prices, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let raw = strings(&[b"\xff", b"x", b"y", b"\xc3("]);
    column.typed::<ByteArrayType>().write_batch(&raw, Some(&[1, 1, 1, 1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();

    night.run(DT, &[]).expect_success();
    assert_eq!(counts(&filter(&night, &[]).expect_success()), [4, 2, 1, 0, 1]);
    let copy = SerializedFileReader::new(File::open(out(&night, "a.parquet")).unwrap()).unwrap();
    assert_eq!(copy.metadata().file_metadata().num_rows(), 2);
    let values = |leaf: usize| -> Vec<Vec<u8>> {
        let group = copy.get_row_group(0).unwrap();
        let parquet::column::reader::ColumnReader::ByteArrayColumnReader(mut column) =
            group.get_column_reader(leaf).unwrap()
        else {
            panic!("a column of bytes")
        };
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        column.read_records(10, Some(&mut levels), None, &mut values).unwrap();
        values.iter().map(|value| value.data().to_vec()).collect()
    };
    assert_eq!(values(4), [b"\xff".to_vec(), b"\xc3(".to_vec()]);
    let parquet::column::reader::ColumnReader::Int96ColumnReader(mut column) =
        copy.get_row_group(0).unwrap().get_column_reader(2).unwrap()
    else {
        panic!("a column of timestamps")
    };
    let (mut stamps, mut levels) = (Vec::new(), Vec::new());
    column.read_records(10, Some(&mut levels), None, &mut stamps).unwrap();
    assert_eq!((stamps, levels), (vec![stamp(10), stamp(40)], vec![1, 1]));
    assert_eq!(copy.metadata().file_metadata().schema(), footer(&path).file_metadata().schema());
}

fn packed(name: &str, content: &[u8]) -> Vec<u8> {
    match name.rsplit('.').next() {
        Some("gz") => {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(content).unwrap();
            gz.finish().unwrap()
        }
        Some("zst") => zstd::encode_all(content, 1).unwrap(),
        _ => content.to_vec(),
    }
}

fn unpacked(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let plain = match path.extension().unwrap().to_str().unwrap() {
        "gz" => {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).unwrap();
            plain
        }
        "zst" => zstd::decode_all(bytes.as_slice()).unwrap(),
        _ => bytes,
    };
    String::from_utf8(plain).unwrap()
}

#[test]
fn json_lines_are_copied_byte_for_byte_and_packed_as_they_came() {
    let (same, other) = (text(1, 40), text(2, 40));
    for name in ["a.jsonl", "a.jsonl.gz", "a.ndjson.zst"] {
        let night = Night::new("max_bad_rows = 9\non_duplicate_id = \"keep_first\"\n");
        let kept =
            format!("{{\"id\":  7,\"text\": \"{other}\", \"x\": {{\"y\": [1.50, null]}}, \"h\": \"\\u00e9\"}}\r");
        let lines = [
            format!("\u{feff}{{\"id\": \"a\", \"text\": \"{same}\"}}"),
            String::new(),
            format!("{{\"text\": \"{same}\", \"id\": \"b\"}}"),
            "no object".to_owned(),
            kept.clone(),
            "{\"id\": \"n\", \"text\": null}".to_owned(),
            format!("{{\"id\": \"a\", \"text\": \"{other} again\"}}"),
            format!("{{\"text\": \"{other}\"}}"),
            format!("{{\"id\": \"last\", \"text\": \"{}\"}}", text(3, 40)),
        ];
        fs::write(in_night(&night, name), packed(name, lines.join("\n").as_bytes())).unwrap();
        night.run(DT, &[]).expect_success();
        assert_eq!(counts(&filter(&night, &[]).expect_success()), [8, 3, 1, 1, 3]);
        assert_eq!(unpacked(&out(&night, name)), format!("{}\n{kept}\n{}\n", lines[0], lines[8]));
        filter(&night, &["--flag", "--replace"]).expect_success();
        let flags = r#"{"id": "a", "keep": true}
{"id": "b", "keep": false}
{"id": null, "keep": false}
{"id": 7, "keep": true}
{"id": "n", "keep": false}
{"id": "a", "keep": false}
{"id": null, "keep": false}
{"id": "last", "keep": true}
"#;
        assert_eq!(unpacked(&out(&night, name)), flags);
    }
}

#[test]
fn flags_stand_row_by_row_beside_the_ids() {
    let night = Night::new("max_bad_rows = 1\n");
    let same = text(1, 40);
    let rows_of: [(&[u8], &[u8]); 4] =
        [(b"a", same.as_bytes()), (b"b", same.as_bytes()), (b"c", b"\xff"), (b"d", b" ")];
    let bytes = raw_strings(&rows_of, WriterProperties::default()).unwrap();
    fs::write(in_night(&night, "a.parquet"), bytes).unwrap();
    let published = night.run(DT, &[]).expect_success().json();
    let done = filter(&night, &["--flag"]).expect_success();
    assert_eq!(counts(&done), [4, 1, 1, 1, 1]);
    assert_eq!(done.json()["nights"][0]["generation"], published["generation"]);
    let flags = rows(&out(&night, "a.parquet"));
    assert_eq!(
        flags,
        [["a", "true"], ["b", "false"], ["c", "false"], ["d", "false"]].map(|row| row.map(str::to_owned).to_vec())
    );
}

#[test]
fn a_range_has_a_folder_for_each_published_night_and_one_sum() {
    let night = Night::new("");
    night.documents("2026-11-18", &[("a", &text(1, 40)), ("b", &text(1, 40))]);
    night.documents(DT, &[("c", &text(1, 40)), ("d", &text(2, 40)), ("e", &text(3, 40))]);
    for dt in ["2026-11-18", DT] {
        night.run(dt, &["--no-breakers"]).expect_success();
    }
    let range = ["filter", "--config", "job.toml", "--dt", "2026-11-01", "--to", "2026-11-30", "--out", "out"];
    let done = nearprint_in(night.path(), &range).expect_success();
    assert!(done.stdout.contains("out: 5 rows = 3 kept + 2 dropped + 0 skipped + 0 in quarantine"), "{}", done.stdout);
    assert_eq!(rows(&night.path().join("out/dt=2026-11-18/part-0.parquet")).len(), 1);
    assert_eq!(rows(&out(&night, "part-0.parquet")).len(), 2);
    let said = |args: &[&str], code: i32, said: &[&str]| {
        let done = nearprint_in(night.path(), &[&["filter", "--config", "job.toml", "--output", "new"], args].concat());
        expect(&done, code, said);
        assert!(!night.path().join("new").exists());
    };
    said(&["--dt", "2026-11-19"], 66, &["no published night 2026-11-19 in store", "run the night first"]);
    said(&["--dt", "2026-11-21", "--to", "2026-11-30"], 66, &["2026-11-21 to 2026-11-30"]);
    said(&["--dt", DT, "--to", "2026-11-01"], 64, &["--to 2026-11-01 is before --dt 2026-11-20"]);
    said(&["--dt", "tomorrow"], 64, &["'tomorrow' is not a date"]);
}

#[test]
fn an_output_that_exists_or_lies_among_the_input_is_refused() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40))]);
    night.run(DT, &[]).expect_success();
    let to = |output: &str, more: &[&str]| {
        let args = ["filter", "--config", "job.toml", "--dt", DT, "--output", output];
        nearprint_in(night.path(), &[&args, more].concat())
    };
    for output in ["documents", "documents/dt=2026-11-20", "store/x", "results", "results/new", "."] {
        expect(&to(output, &[]), 64, &["--output", "lie in one another"]);
    }
    to("out", &[]).expect_success();
    let before = snapshot(night.path());
    expect(&to("out", &[]), 73, &["out/dt=2026-11-20: the output exists", "--replace"]);
    fs::write(out(&night, "mine.txt"), "x").unwrap();
    expect(&to("out", &["--replace"]), 73, &["it has mine.txt"]);
    fs::remove_file(out(&night, "mine.txt")).unwrap();
    to("out", &["--replace"]).expect_success();
    assert_eq!(snapshot(night.path()), before);
    // A corpus would have a document twice, and be marked as finished.
    let corpus = ["filter", "--config", "job.toml", "--corpus", "--output", "corpus"];
    nearprint_in(night.path(), &corpus).expect_success();
    for more in [&[][..], &["--replace"]] {
        expect(&to("corpus", more), 73, &["it has _SUCCESS, as the output of a corpus has: name another folder"]);
    }
    fs::write(night.path().join("file"), "x").unwrap();
    expect(&to("file", &[]), 73, &["a file stands where a folder is to be"]);
    fs::write(
        night.path().join("roots.toml"),
        fs::read_to_string(night.path().join("job.toml")).unwrap()
            + "roots = [\"documents\", \"store\", \"results\"]\n",
    )
    .unwrap();
    let outside = ["filter", "--config", "roots.toml", "--dt", DT, "--output", "elsewhere"];
    expect(&nearprint_in(night.path(), &outside), 64, &["output elsewhere lies outside of"]);
}

#[test]
fn input_that_changed_since_the_run_is_refused_before_anything_is_written() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40)), ("b", &text(2, 40))]);
    night.run(DT, &[]).expect_success();
    let file = in_night(&night, "part-0.parquet");
    let bytes = fs::read(&file).unwrap();
    write_documents(&file, &[(Some("a"), Some("x"))]);
    expect(
        &filter(&night, &[]),
        65,
        &["part-0.parquet: it has changed since the night was published", "run --replace"],
    );
    fs::remove_file(&file).unwrap();
    expect(&filter(&night, &[]), 66, &["no input file at", "part-0.parquet", "restore it"]);
    assert!(!out(&night, "part-0.parquet").exists());
    // The same bytes under another time are another version.
    fs::write(&file, bytes).unwrap();
    expect(&filter(&night, &[]), 65, &["it has changed"]);
}

#[test]
fn rows_that_do_not_add_up_are_an_error_and_have_no_success_file() {
    let night = Night::new("");
    let same = text(1, 40);
    let ids = support::strings(&[Some("a"), Some("b")]);
    let others = support::strings(&[Some("c"), Some("d")]);
    let texts = support::strings(&[Some(&same), Some(&same)]);
    support::write_parquet(&in_night(&night, "a.parquet"), &[("id", ids), ("other", others), ("text", texts)]);
    night.run(DT, &[]).expect_success();
    let job = night.path().join("job.toml");
    fs::write(&job, fs::read_to_string(&job).unwrap() + "id_column = \"other\"\n").unwrap();
    let said = ["of 2 rows 2 are kept", "the night kept 1, dropped 1", "id_column"];
    expect(&filter(&night, &[]), 65, &said);
    assert!(!out(&night, "_SUCCESS").exists());
    fs::write(&job, fs::read_to_string(&job).unwrap().replace("other", "none")).unwrap();
    expect(&filter(&night, &["--replace"]), 65, &["no column 'none'"]);
    // Decisions that are gone are damage of the results.
    for file in night.table_files(DT, "decisions") {
        fs::remove_file(file).unwrap();
    }
    expect(&filter(&night, &["--replace"]), 65, &["/part-00000-", "it is gone"]);
}

#[test]
fn files_that_the_run_passed_over_are_left_out_and_counted() {
    let night = Night::new("max_bad_files = 1\n");
    night.documents(DT, &[("a", &text(1, 40))]);
    fs::write(in_night(&night, "b.parquet"), "PAR1").unwrap();
    night.run(DT, &[]).expect_success();
    let done = filter(&night, &[]).expect_success();
    assert_eq!((done.json()["n_files"].as_u64(), done.json()["n_bad_files"].as_u64()), (Some(1), Some(1)));
    assert!(!out(&night, "b.parquet").exists());
}
