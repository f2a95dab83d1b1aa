//! Bad input: one line that names what is wrong and what to do, the documented exit code, and nothing published.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Float64Array, Int64Array, ListArray, StringArray, UInt64Array};
use arrow::datatypes::Int32Type;
use parquet::data_type::{ByteArray, ByteArrayType, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use crate::support::{
    self, Night, Ran, Signal, command, nearprint_in, raw_strings, strings, text, with_peak_mib, write_documents,
    write_fingerprints, write_parquet,
};

/// Texts that are all the same go through a dictionary.
fn zstd_documents(path: &std::path::Path, rows: &[(Option<&str>, Option<&str>)]) {
    let ids: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<StringArray>());
    let texts: ArrayRef = match rows {
        [(_, first), .., (_, last)] if first == last => {
            let keys = arrow::array::Int32Array::from(vec![0; rows.len()]);
            Arc::new(arrow::array::DictionaryArray::new(keys, Arc::new(StringArray::from(vec![*first]))))
        }
        _ => Arc::new(rows.iter().map(|row| row.1).collect::<StringArray>()),
    };
    let batch = arrow::array::RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(parquet::basic::Compression::ZSTD(parquet::basic::ZstdLevel::default()))
        .set_dictionary_page_size_limit(64 << 20)
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Name and values of each.
type Columns<'a> = Vec<(&'a str, ArrayRef)>;

const DT: &str = "2026-11-20";

/// A night with one good document, a bad file beside it, and what the run then says.
fn run_with(job: &str, name: &str, make: impl Fn(&std::path::Path)) -> (Night, Ran) {
    let night = Night::new(job);
    night.documents(DT, &[("good", &text(1, 40))]);
    make(&night.path().join(format!("documents/dt={DT}/{name}")));
    let done = night.run(DT, &[]);
    (night, done)
}

fn expect(done: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(done.code, code, "{}", done.stderr);
    for part in parts {
        assert!(done.error().contains(part), "{part:?} is not in: {}", done.stderr);
    }
    let last = done.stderr.lines().rfind(|line| !line.starts_with("hint: ")).unwrap_or_default();
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

#[test]
fn files_that_are_not_parquet_or_are_cut_short_are_named() {
    let whole = tempfile::tempdir().unwrap();
    write_documents(&whole.path().join("x.parquet"), &[(Some("a"), Some(&text(1, 40)))]);
    let whole = std::fs::read(whole.path().join("x.parquet")).unwrap();
    let cut = &whole[..whole.len() - 4];
    for (what, content, said) in [
        ("empty", Vec::new(), ""),
        ("four bytes", b"PAR1".to_vec(), ""),
        ("text", b"hello, not Parquet".to_vec(), ""),
        ("truncated", whole[..whole.len() - 9].to_vec(), ""),
        ("encrypted", [cut, b"PARE"].concat(), "its footer is encrypted"),
        ("packed", [b"\x1f\x8b", cut].concat(), "it is packed by gzip: unpack it"),
    ] {
        let (night, done) = run_with("", "bad.parquet", |path| std::fs::write(path, &content).unwrap());
        expect(&done, 65, &["bad.parquet", "not a readable Parquet file", said]);
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
    let cases: [(Columns<'_>, Vec<&str>); 7] = [
        (vec![("id", ids()), ("text", texts()), ("text", texts())], vec!["several columns have the name 'text'"]),
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
    expect(&done, 65, &["1 row repeats a document id", "'good' in", "more.parquet row 2", "part-0.parquet row 1"]);
    expect_nothing_published(&night);

    let null_id = |path: &std::path::Path| write_documents(path, &[(Some("x"), Some(&a)), (None, Some(&b))]);
    let (night, done) = run_with("", "more.parquet", null_id);
    expect(&done, 65, &["1 row cannot be used, 0 allowed (1 null_id)", "more.parquet row 2: null_id", "max_bad_rows"]);
    expect_nothing_published(&night);

    let (night, done) = run_with("max_bad_rows = 1\n", "more.parquet", null_id);
    assert_eq!(done.expect_success().json()["n_bad_rows"], 1);
    let quarantine = night.published(DT, "quarantine");
    assert_eq!(quarantine.len(), 1);
    assert_eq!(quarantine[0][1..], ["0", "2", "null_id", ""]);
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
        ("{\"id\":\"a\",\"text\":\"x\"}\n\nnot json\n", ["row 3", "not_json"]),
        ("{\"id\":\"a\",\"text\":\"x\"}\n[1]\n", ["row 2", "not_json"]),
        ("{\"id\":\"a\",\"text\":\"x\"}\n{\"id\":\"b\",\"text\":5}\n", ["row 2", "wrong_type"]),
        ("{\"id\":\"a\",\"body\":\"x\"}\n", ["no column 'text' in the first line", "it has body, id"]),
        ("\n{\"id\":\"a\",\"body\":\"x\"}\n", ["no column 'text' in line 2, its first object", "it has body, id"]),
    ] {
        let (_night, done) = run_with("", "bad.jsonl", |path| std::fs::write(path, content).unwrap());
        expect(&done, 65, &["bad.jsonl", parts[0], parts[1]]);
    }
    let (_night, done) = run_with("", "bad.jsonl.gz", |path| std::fs::write(path, b"\x1f\x8b\x08cut").unwrap());
    expect(&done, 65, &["bad.jsonl.gz", "cannot be read past line 0"]);
}

const GOOD: &str = "{\"id\":\"a\",\"text\":\"x\"}\n";

#[test]
fn an_error_about_a_line_says_what_was_found_how_the_line_begins_and_what_mends_it() {
    let long = format!("{{\"id\":\"b\",\"text\":\"{}\"}}", "x".repeat(1_000_010));
    let endless = format!("{{\"id\":\"b\",\"text\":\"{}\"}}", "x".repeat(4_048_600));
    let lines: [(&[u8], [&str; 4]); 11] = [
        (
            b"{\"id\":\"1\",\"text\":5}",
            ["wrong_type", "column 'text' is a number", "{\"id\":\"1\",\"text\":5}", "name another"],
        ),
        (
            b"{\"id\":[1],\"text\":\"x\"}",
            ["wrong_type", "column 'id' is a list", "begins with {\"id\":[1]", "a whole number"],
        ),
        (
            b"{\"id\":\"1\",\"text\":\"x\",\"n\":{}}",
            ["wrong_type", "column 'n' is an object", "\"n\":{}}", "change keep"],
        ),
        (
            b"{\"id\":\"1\",\"text\":\"x\",\"n\":\"s\"}",
            ["wrong_type", "column 'n' is a string", "\"n\":\"s\"}", "one type"],
        ),
        (
            b"[{\"id\":\"1\"}]",
            [
                "not_json",
                "it is a JSON array",
                "[{\"id\":\"1\"}]",
                "jq -c 'if type == \"array\" then .[] else . end' <",
            ],
        ),
        (b"{\"id\":\"1\",\"te", ["not_json", "does not end with the line", "{\"id\":\"1\",\"te", "on one line"]),
        (b"id,text", ["not_json", "no JSON from character 1 on", "id,text", "mend the line"]),
        (b"{\"text\":\"x\"}", ["null_id", "it has no column 'id'", "{\"text\":\"x\"}", "set id_column"]),
        (b"{\"id\":\"\xe9\"}", ["invalid_utf8", "byte 8 of the line is not UTF-8", "begins with", "iconv"]),
        (
            long.as_bytes(),
            [
                "too_large",
                "column 'text' has 1000010 bytes, 10 over max_doc_bytes",
                "xxx…",
                "set max_doc_bytes to 1000010",
            ],
        ),
        (
            endless.as_bytes(),
            [
                "too_large",
                "the line has 4048620 bytes, 44 over its limit of 4048576",
                "max_doc_bytes",
                "set max_doc_bytes to 1000015",
            ],
        ),
    ];
    for (line, said) in lines {
        let first = GOOD.replace("}\n", ",\"n\":1}\n");
        let content = [first.as_bytes(), line, b"\n", first.replace("\"a\"", "\"c\"").as_bytes()].concat();
        let night = Night::new("max_doc_bytes = \"1MB\"\nkeep = [\"n\"]\n");
        let folder = night.path().join(format!("documents/dt={DT}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("bad.jsonl"), content).unwrap();
        let done = night.run(DT, &[]);
        expect(&done, 65, &[&["bad.jsonl row 2: "][..], &said].concat());
    }
}

#[test]
fn a_file_that_is_json_but_not_one_object_a_line_is_refused_with_the_command_that_makes_it_so() {
    let object = "{\"id\": \"a\", \"text\": \"x\"}";
    let wide: Vec<u8> = object.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wider: Vec<u8> = object.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let reversed: Vec<u8> = object.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
    for (content, said) in [
        (format!("[{object}]\n").into_bytes(), ["it is a JSON array", "jq -c '.[]' < "]),
        (format!("[\n  {object},\n  {object}\n]\n").into_bytes(), ["it is a JSON array", "jq -c '.[]' < "]),
        ("{\n  \"id\": \"a\",\n  \"text\": \"x\"\n}\n".into(), ["its objects go over several lines", "jq -c '.' < "]),
        (wide.clone(), ["it looks like UTF-16", "iconv -f UTF-16LE -t UTF-8 < "]),
        ([&b"\xff\xfe"[..], &wide].concat(), ["it looks like UTF-16", "iconv -f UTF-16 -t UTF-8 < "]),
        (wider.clone(), ["it looks like UTF-32", "iconv -f UTF-32LE -t UTF-8 < "]),
        (reversed.clone(), ["it looks like UTF-32", "iconv -f UTF-32BE -t UTF-8 < "]),
        ([&b"\xff\xfe\0\0"[..], &wider].concat(), ["it looks like UTF-32", "iconv -f UTF-32 -t UTF-8 < "]),
        ([&b"\0\0\xfe\xff"[..], &reversed].concat(), ["it looks like UTF-32", "iconv -f UTF-32 -t UTF-8 < "]),
    ] {
        for name in ["p.json", "p.jsonl"] {
            let (_night, done) = run_with("", name, |path| std::fs::write(path, &content).unwrap());
            expect(&done, 65, &[&format!("{name}: {}", said[0]), said[1], "p.new.jsonl"]);
            assert!(!done.stderr.contains("max-bad-rows"), "{}", done.stderr);
        }
        let packed = zstd::encode_all(&content[..], 1).unwrap();
        let (_night, done) = run_with("", "p.json.zst", |path| std::fs::write(path, &packed).unwrap());
        expect(&done, 65, &[said[0], "zstd -dc ", said[1].trim_end_matches(" < ")]);
    }
    // Lines that are no objects among others are bad rows, wherever they are.
    for first in ["[1, 2]", "{\"id\": \"cut", "[1, 2"] {
        let content = format!("{first}\n{object}\n");
        let (night, done) = run_with("max_bad_rows = 1\n", "p.jsonl", |path| std::fs::write(path, &content).unwrap());
        let first_is_array = first == "[1, 2";
        assert_eq!(done.code, if first_is_array { 65 } else { 0 }, "{first}: {}", done.stderr);
        drop(night);
    }
}

#[test]
fn files_of_json_lines_are_read_whatever_their_ending_and_packing() {
    let night = Night::new("");
    let folder = night.path().join(format!("documents/dt={DT}"));
    std::fs::create_dir_all(&folder).unwrap();
    let line = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"{}\"}}\n", text(id.len() as u64, 30)).into_bytes();
    let zstd = |bytes: Vec<u8>| zstd::encode_all(&bytes[..], 1).unwrap();
    // A frame of zstd that readers pass over, as pzstd writes them.
    let skippable = |kind: u8| [&[0x50 + kind, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"\n{}\n["].concat();
    let framed = [skippable(0), zstd(line("dddd")), skippable(15), zstd(line("eeeee")), skippable(14)].concat();
    for (name, content) in [
        ("a.json", line("a")),
        ("b.JSON.zst", zstd(line("bb"))),
        ("c.ndjson", line("ccc")),
        ("d.jsonl.zst", framed),
        ("_stats.json", b"{".to_vec()),
    ] {
        std::fs::write(folder.join(name), content).unwrap();
    }
    night.run(DT, &[]).expect_success();
    assert_eq!(night.decisions(DT).keys().collect::<Vec<_>>(), ["a", "bb", "ccc", "dddd", "eeeee"]);
}

#[test]
fn a_place_of_other_files_names_them_and_is_late_only_while_they_are_being_written() {
    let run = |names: &[&str]| {
        let night = Night::new("");
        let folder = night.path().join(format!("documents/dt={DT}"));
        std::fs::create_dir_all(&folder).unwrap();
        names.iter().for_each(|name| std::fs::write(folder.join(name), "x").unwrap());
        night.run(DT, &["--late-exit-code", "75"])
    };
    expect(&run(&["p.txt", "q.log", "_SUCCESS"]), 65, &["no file there ends in .parquet", "there are: p.txt, q.log"]);
    expect(&run(&["1.a", "2.a", "3.a", "4.a", "5.a", "6.a", "7.a"]), 65, &["1.a, 2.a, 3.a, 4.a, 5.a and 2 more"]);
    expect(&run(&["x.warc.gz.part", "crawl.log"]), 75, &["still being written", "x.warc.gz.part"]);
    let late = run(&["crawl-stats.csv", "x.warc.gz.open"]);
    expect(&late, 75, &["still being written: x.warc.gz.open"]);
    assert!(!late.stderr.contains("crawl-stats.csv"), "{}", late.stderr);
    expect(&run(&[]), 75, &["no documents at"]);
}

#[test]
fn files_that_are_still_being_written_are_counted_and_named_beside_those_that_are_read() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40))]);
    for name in ["b.warc.gz.open", "c.warc.open", "d.warc.gz.part", "e.wacz.tmp", "crawl.log"] {
        std::fs::write(night.path().join(format!("documents/dt={DT}/{name}")), "x").unwrap();
    }
    let done = night.run(DT, &[]).expect_success();
    let counts = ["n_ignored_files", "n_unfinished_files"].map(|key| done.json()[key].as_u64());
    assert_eq!(counts, [Some(5), Some(4)]);
    let named = |name: &str, said: &str| done.stderr.lines().any(|line| line.contains(name) && line.contains(said));
    assert!(named("b.warc.gz.open", "still being written, by its name: passed over"), "{}", done.stderr);
    assert!(named("e.wacz.tmp", "still being written") && named("crawl.log", "not a file of documents"));
    for (format, said) in [
        ("text", ["4 files still being written by the name, not read", "1 file of other kinds"]),
        ("md", ["4 files are still being written, by the name: passed over.", "1 file of other kinds"]),
    ] {
        let args = ["report", "--config", "job.toml", "--dt", DT, "--format", format];
        let report = nearprint_in(night.path(), &args).expect_success().stdout;
        assert!(said.iter().all(|said| report.contains(said)), "{report}");
    }
}

#[test]
fn rows_that_are_no_documents_are_quarantined_with_reason_and_id() {
    let mut lines: Vec<u8> = Vec::new();
    let long = "x".repeat(5_000_000);
    for line in [
        "{\"id\":\"fine\",\"text\":\"some words that are fine\",\"n\":1,\"other\":[[1,{}]]}".as_bytes(),
        b"{\"id\":null,\"text\":\"x\",\"n\":1}",
        b"{\"id\":\"latin\",\"text\":\"caf\xe9\",\"n\":1}",
        b"{\"id\":\"half\",\"text\":\"\\ud800 alone\",\"n\":1}",
        b"{\"id\":\"cut\",\"text\":\"x",
        b"{\"id\":\"typed\",\"text\":[1,2],\"n\":1}",
        b"{\"id\":\"order\",\"text\":\"x\",\"n\":\"many\"}",
        format!("{{\"id\":\"big\",\"text\":\"{}\",\"n\":1}}", &long[..1_000_001]).as_bytes(),
        format!("{{\"id\":\"endless\",\"text\":\"{long}\",\"n\":1}}").as_bytes(),
        b"{\"id\":18446744073709551615,\"text\":\"a large id\",\"n\":2.5}",
    ] {
        lines.extend_from_slice(line);
        lines.push(b'\n');
    }
    let job = "max_bad_rows = 8\nmax_doc_bytes = \"1MB\"\n";
    let night = Night::new(&format!("{job}keep = [\"existing\", \"n desc\", \"length\", \"id\"]\n"));
    let path = night.path().join(format!("documents/dt={DT}/x.jsonl"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, &lines).unwrap();
    let summary = night.run(DT, &[]).expect_success().json();
    let by_reason =
        serde_json::json!({"invalid_utf8": 2, "not_json": 1, "null_id": 1, "too_large": 2, "wrong_type": 2});
    assert_eq!((&summary["bad_rows_by_reason"], summary["n_bad_rows"].as_u64()), (&by_reason, Some(8)));
    let quarantined: Vec<Vec<String>> =
        night.published(DT, "quarantine").into_iter().map(|row| row[1..].to_vec()).collect();
    let expected = [
        ["", "2", "null_id", ""],
        ["", "3", "invalid_utf8", ""],
        ["", "4", "invalid_utf8", ""],
        ["", "5", "not_json", ""],
        ["", "6", "wrong_type", "typed"],
        ["", "7", "wrong_type", "order"],
        ["", "8", "too_large", "big"],
        ["", "9", "too_large", ""],
    ];
    assert_eq!(quarantined, expected);
    assert_eq!(night.decisions(DT).keys().collect::<Vec<_>>(), ["18446744073709551615", "fine"]);
    let strict = night.run(DT, &["--replace", "--strict"]);
    let counts = "8 rows cannot be used, 0 allowed (2 invalid_utf8, 1 not_json, 1 null_id, 2 too_large, 2 wrong_type)";
    expect(&strict, 65, &[counts, "x.jsonl row 2: null_id"]);
    let failed = strict.json();
    assert_eq!(failed["bad_rows_by_reason"], by_reason, "a night that fails says no less: {failed}");
    let examples = failed["examples"].as_array().unwrap();
    let last = examples.last().and_then(|example| example.as_str()).unwrap();
    assert!(examples.len() == 8 && last.ends_with("x.jsonl row 9: too_large"), "{failed}");
    expect(&night.run(DT, &["--replace", "--max-bad-rows", "7"]), 65, &["8 rows cannot be used, 7 allowed"]);
}

#[test]
fn lines_without_a_value_of_the_keep_order_stand_beside_whole_numbers_in_parquet() {
    let night = Night::new("keep = [\"rank\"]\n");
    let same = text(12, 40);
    let ranks: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), Some(i64::MAX - 1)]));
    let columns = [("id", strings(&[Some("a"), Some("b")])), ("text", strings(&[Some(&*same); 2])), ("rank", ranks)];
    write_parquet(&night.path().join(format!("documents/dt={DT}/x.parquet")), &columns);
    let lines = format!("{{\"id\":\"0\",\"text\":\"{same}\",\"rank\":null}}\n{{\"id\":\"1\",\"text\":\"{same}\"}}\n");
    std::fs::write(night.path().join(format!("documents/dt={DT}/y.jsonl")), lines).unwrap();
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!((summary["n_documents"].as_u64(), summary["n_keep"].as_u64()), (Some(4), Some(1)));
    let kept: Vec<_> = night.decisions(DT).into_iter().filter(|(_, row)| row[0] == "keep").map(|(id, _)| id).collect();
    assert_eq!(kept, ["b"]);
}

#[test]
fn a_value_of_the_keep_order_that_does_not_fit_makes_its_row_no_document_and_leaves_the_file() {
    let night = Night::new("keep = [\"rank\"]\n");
    let texts = [text(1, 40), text(2, 40), text(3, 40)];
    let ranks: ArrayRef = Arc::new(UInt64Array::from(vec![Some(1), Some(u64::MAX), None]));
    let texts: Vec<Option<&str>> = texts.iter().map(|text| Some(text.as_str())).collect();
    let columns = [("id", strings(&[Some("a"), Some("b"), Some("c")])), ("text", strings(&texts)), ("rank", ranks)];
    write_parquet(&night.path().join(format!("documents/dt={DT}/x.parquet")), &columns);
    expect(&night.run(DT, &[]), 65, &["x.parquet row 2: wrong_type", "column 'rank'", "2^63 - 1"]);
    let summary = night.run(DT, &["--max-bad-rows", "1"]).expect_success().json();
    assert_eq!((&summary["n_documents"], &summary["n_bad_rows"]), (&2.into(), &1.into()));
}

#[test]
fn of_near_duplicates_one_whose_score_is_no_number_does_not_win() {
    let night = Night::new("keep = [\"score desc\"]\n");
    let same = text(12, 40);
    let scores: ArrayRef = Arc::new(Float64Array::from(vec![0.5, f64::NAN]));
    let columns = [("id", strings(&[Some("b"), Some("a")])), ("text", strings(&[Some(&*same); 2])), ("score", scores)];
    write_parquet(&night.path().join(format!("documents/dt={DT}/x.parquet")), &columns);
    night.run(DT, &["--no-breakers"]).expect_success();
    assert_eq!(night.decisions(DT)["b"][0], "keep");
}

#[test]
fn times_of_96_bits_after_2262_are_later_than_those_before() {
    let night = Night::new("keep = [\"seen desc\"]\n");
    let schema = "message spark { required binary id (UTF8); required binary text (UTF8); required int96 seen; }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let path = night.path().join(format!("documents/dt={DT}/x.parquet"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = SerializedFileWriter::new(std::fs::File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let same = text(12, 40);
    for values in [["b", "a"], [&same, &same]] {
        let values = values.map(|value| ByteArray::from(value.as_bytes().to_vec()));
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    // Julian days of 9999-12-31 and of 2026-11-20.
    let days = [5_373_484, 2_461_365].map(|day| Int96::from(vec![0, 0, day]));
    column.typed::<Int96Type>().write_batch(&days, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    night.run(DT, &["--no-breakers"]).expect_success();
    assert_eq!(night.decisions(DT)["b"][0], "keep");
}

#[test]
fn text_that_is_no_utf8_and_ids_and_texts_that_are_too_large_are_quarantined_in_parquet() {
    let night = Night::new("max_bad_rows = 4\nmax_doc_bytes = 1000\n");
    let path = night.path().join(format!("documents/dt={DT}/x.parquet"));
    let (fine, id) = (text(1, 40), "i".repeat(70_000));
    let texts: [&[u8]; 6] = [fine.as_bytes(), b"caf\xe9", fine.as_bytes(), fine.as_bytes(), b"", &[b'x'; 1001]];
    let ids: [&[u8]; 6] = [b"fine", b"latin", b"\xff", id.as_bytes(), b"empty", b"big"];
    let rows: Vec<(&[u8], &[u8])> = ids.into_iter().zip(texts).collect();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, raw_strings(&rows, WriterProperties::default()).unwrap()).unwrap();
    night.run(DT, &[]).expect_success();
    let rows: Vec<Vec<String>> = night.published(DT, "quarantine").into_iter().map(|row| row[1..].to_vec()).collect();
    let expected = [
        ["0", "2", "invalid_utf8", "latin"],
        ["0", "3", "invalid_utf8", ""],
        ["0", "4", "too_large", ""],
        ["0", "6", "too_large", "big"],
    ];
    assert_eq!(rows, expected);
    assert_eq!(night.decisions(DT).keys().collect::<Vec<_>>(), ["empty", "fine"]);
}

#[test]
fn repeated_ids_keep_the_first_by_path_and_row_where_that_is_asked_for() {
    let night = Night::new("");
    let texts: Vec<String> = (0..5).map(|i| text(i, 40)).collect();
    let row = |id, i: usize| (Some(id), Some(texts[i].as_str()));
    let file = |name: &str| night.path().join(format!("documents/dt={DT}/{name}.parquet"));
    write_documents(&file("b"), &[row("x", 0), row("y", 1)]);
    write_documents(&file("a"), &[row("z", 2), row("x", 3), row("x", 4), row("z", 0)]);
    expect(&night.run(DT, &[]), 65, &["3 rows repeat a document id", "a.parquet row 3; ", "keep_first"]);
    let summary = night.run(DT, &["--on-duplicate-id", "keep_first"]).expect_success().json();
    assert_eq!(
        ["n_documents", "n_repeated_ids", "n_bad_rows"].map(|n| summary[n].as_u64()),
        [Some(3), Some(3), Some(0)]
    );
    let rows = night.published(DT, "quarantine");
    let rows: Vec<(&str, &str, &str, &str)> =
        rows.iter().map(|r| (r[0].rsplit('/').next().unwrap(), r[2].as_str(), r[3].as_str(), r[4].as_str())).collect();
    let repeated = "repeated_id";
    assert_eq!(
        rows,
        [("a.parquet", "3", repeated, "x"), ("a.parquet", "4", repeated, "z"), ("b.parquet", "1", repeated, "x")]
    );
}

#[test]
fn files_that_cannot_be_read_are_passed_over_as_a_whole_up_to_the_limit() {
    let night = Night::new("");
    night.documents(DT, &[("good", &text(1, 40))]);
    let folder = night.path().join(format!("documents/dt={DT}"));
    std::fs::write(folder.join("text.parquet"), "no Parquet").unwrap();
    expect(&night.run(DT, &[]), 65, &["text.parquet: not a readable Parquet file", "or raise --max-bad-files"]);
    // Its second row group is damaged: the first one must not count either.
    let texts: Vec<String> = (0..2000).map(|i| text(100 + i, 20)).collect();
    let ids: Vec<String> = (0..2000).map(|i| format!("half-{i}")).collect();
    let rows: Vec<_> = ids.iter().zip(&texts).map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    write_documents(&folder.join("half.parquet"), &rows);
    let mut content = std::fs::read(folder.join("half.parquet")).unwrap();
    let at = content.len() * 6 / 10;
    content[at..at + 20_000].fill(0xff);
    std::fs::write(folder.join("half.parquet"), content).unwrap();
    expect(
        &night.run(DT, &["--max-bad-files", "1"]),
        65,
        &["more than 1 files cannot be read; first: ", "half.parquet"],
    );
    expect_nothing_published(&night);
    let summary = night.run(DT, &["--max-bad-files", "2"]).expect_success().json();
    assert_eq!((summary["n_bad_files"].as_u64(), summary["n_files"].as_u64()), (Some(2), Some(1)));
    assert_eq!(night.decisions(DT).keys().collect::<Vec<_>>(), ["good"]);
    let manifest = night.generation(DT).join("manifest.json");
    let manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
    let urls: Vec<&str> =
        manifest["bad_files"].as_array().unwrap().iter().map(|f| f["url"].as_str().unwrap()).collect();
    assert!(urls.len() == 2 && urls[0].ends_with("half.parquet") && urls[1].ends_with("text.parquet"), "{urls:?}");
    assert_eq!(manifest["inputs"].as_array().unwrap().len(), 3);
    // Another schema is no damage.
    write_parquet(&folder.join("drift.parquet"), &[("id", strings(&[Some("a")])), ("body", strings(&[Some("x")]))]);
    expect(&night.run(DT, &["--replace", "--max-bad-files", "9"]), 65, &["drift.parquet", "no column 'text'"]);
}

#[test]
fn a_night_of_which_no_file_can_be_read_is_not_published_whatever_the_limit() {
    let night = Night::new("max_bad_files = 10\n");
    let folder = night.path().join(format!("documents/dt={DT}"));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["a.parquet", "b.parquet"] {
        std::fs::write(folder.join(name), "no Parquet").unwrap();
    }
    expect(&night.run(DT, &[]), 65, &["none of the files can be read (2); first: ", "a.parquet"]);
    expect_nothing_published(&night);
    // The repaired input needs no `--replace`.
    night.documents(DT, &[("good", &text(1, 40))]);
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!((&summary["status"], &summary["n_bad_files"]), (&"published".into(), &2.into()), "{summary}");
}

#[test]
fn no_page_may_claim_more_than_can_be_held() {
    // Equal texts are no reason to stop here.
    let job = "max_bad_rows = 1\n[resources]\nthreads = 1\nmemory_limit = \"1GiB\"\n[breakers]\nmin_kept_share = 0\nmax_text_share = 1\n";
    let night = Night::new(job);
    let path = night.path().join(format!("documents/dt={DT}/x.parquet"));
    // 128 MiB of one letter in a page of some kilobytes.
    let bomb = "x".repeat(128 << 20);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    zstd_documents(&path, &[(Some("bomb"), Some(&bomb)), (Some("fine"), Some(&text(1, 40)))]);
    expect(&night.run(DT, &[]), 65, &["x.parquet", "row group 0", "more than 1000 times as many"]);
    // The same page, whose header claims 2 GiB (134,217,732 and 2,147,483,647 as Thrift writes them).
    let mut content = std::fs::read(&path).unwrap();
    let claim = [0x88, 0x80, 0x80, 0x80, 0x01];
    let at = content.windows(5).position(|bytes| bytes == claim).unwrap();
    content[at..at + 5].copy_from_slice(&[0xfe, 0xff, 0xff, 0xff, 0x0f]);
    std::fs::write(&path, content).unwrap();
    let (done, peak) = run_with_peak_mib(&night);
    expect(&done, 65, &["x.parquet", "row group 0", "unpacks to 2147483647"]);
    assert!(peak < 256, "{peak} MiB");
    // 5,000 texts of 1 MB, through a dictionary of one.
    let same = "many words ".repeat(100_000);
    let ids: Vec<String> = (0..5_000).map(|i| i.to_string()).collect();
    let rows: Vec<_> = ids.iter().map(|id| (Some(id.as_str()), Some(same.as_str()))).collect();
    zstd_documents(&path, &rows);
    assert!(std::fs::metadata(&path).unwrap().len() < 200_000);
    let (done, peak) = run_with_peak_mib(&night);
    assert_eq!(done.expect_success().json()["n_documents"].as_u64(), Some(5_000));
    assert!(peak < 256, "{peak} MiB");
}

#[test]
fn a_row_group_larger_than_memory_is_read_page_by_page() {
    let night = Night::new("[resources]\nthreads = 1\nmemory_limit = \"128MiB\"\n");
    let path = night.path().join(format!("documents/dt={DT}/x.parquet"));
    // Short texts first, so that the footer's mean misleads about those that follow.
    let mut rows: Vec<(String, String)> = (0..3000).map(|i| (format!("short-{i}"), text(i, 20))).collect();
    let seed: Vec<String> = (0..64).map(|i| text(10_000 + i, 2_000)).collect();
    rows.extend((0..160).map(|i| (format!("long-{i}"), seed.iter().cycle().skip(i).take(64).cloned().collect())));
    let borrowed: Vec<_> = rows.iter().map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    zstd_documents(&path, &borrowed);
    let (done, peak) = run_with_peak_mib(&night);
    assert_eq!(done.expect_success().json()["n_documents"].as_u64(), Some(3160));
    assert!(peak < 320, "{peak} MiB");
}

#[test]
fn a_line_without_end_is_passed_over_without_being_held() {
    let night = Night::new("max_bad_rows = 1\nmax_doc_bytes = \"1MiB\"\n");
    night.documents(DT, &[("good", &text(1, 40))]);
    let line = "x".repeat(300 << 20);
    let content = format!("{{\"id\":\"a\",\"text\":\"{line}\"}}\n{{\"id\":\"b\",\"text\":\"next\"}}\n");
    std::fs::write(night.path().join(format!("documents/dt={DT}/x.jsonl")), content).unwrap();
    let (done, peak) = run_with_peak_mib(&night);
    let summary = done.expect_success().json();
    assert_eq!((summary["n_documents"].as_u64(), &summary["bad_rows_by_reason"]["too_large"]), (Some(2), &1.into()));
    // Half of it are pages of the unoptimised program; the line alone has 300 MiB.
    assert!(peak < 128, "{peak} MiB");
}

/// Runs the night, and gives its largest memory in MiB.
fn run_with_peak_mib(night: &Night) -> (Ran, u64) {
    with_peak_mib(night.path(), &["run", "--config", "job.toml", "--dt", DT, "--json"])
}

#[test]
fn kinds_of_strings_and_ids_are_read_alike() {
    use arrow::array::{DictionaryArray, FixedSizeBinaryArray, LargeStringArray, StringViewArray};
    let texts: Vec<String> = (0..4).map(|i| text(i, 40)).collect();
    let kinds: [ArrayRef; 4] = [
        Arc::new(StringArray::from(vec![texts[0].as_str()])),
        Arc::new(LargeStringArray::from(vec![texts[1].as_str()])),
        Arc::new(StringViewArray::from(vec![texts[2].as_str()])),
        Arc::new([texts[3].as_str()].into_iter().collect::<DictionaryArray<Int32Type>>()),
    ];
    let night = Night::new("");
    for (i, kind) in kinds.into_iter().enumerate() {
        let columns = [("id", strings(&[Some(&format!("{i}"))])), ("text", kind)];
        write_parquet(&night.path().join(format!("documents/dt={DT}/{i}.parquet")), &columns);
    }
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!((summary["n_documents"].as_u64(), summary["n_fingerprinted"].as_u64()), (Some(4), Some(4)));

    let ids: [(ArrayRef, &str); 4] = [
        (Arc::new(Int64Array::from(vec![9_007_199_254_740_993])), "9007199254740993"),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), "18446744073709551615"),
        (
            Arc::new(FixedSizeBinaryArray::try_from_iter([(0..16u8).collect::<Vec<_>>()].into_iter()).unwrap()),
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
        ),
        (strings(&[Some("a\n\0\u{202e}b")]), "a\n\0\u{202e}b"),
    ];
    for (id, expected) in ids {
        let night = Night::new("");
        let columns = [("id", id), ("text", strings(&[Some(&texts[0])]))];
        write_parquet(&night.path().join(format!("documents/dt={DT}/x.parquet")), &columns);
        night.run(DT, &[]).expect_success();
        assert_eq!(night.decisions(DT).keys().collect::<Vec<_>>(), [expected]);
    }

    let night = Night::new("");
    let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![texts[0].as_bytes()]));
    let columns = [("id", strings(&[Some("a")])), ("text", bytes)];
    write_parquet(&night.path().join(format!("documents/dt={DT}/x.parquet")), &columns);
    expect(&night.run(DT, &[]), 65, &["column 'text' is Binary", "binary_as_utf8"]);
    night.run(DT, &["--binary-as-utf8"]).expect_success();
}

#[test]
fn a_folder_that_is_not_complete_or_empty_is_told_apart_from_one_that_may_be() {
    let night = Night::new("require_marker = \"_DONE\"\nallow_empty = true\n");
    night.documents(DT, &[("a", &text(1, 40))]);
    expect(&night.run(DT, &[]), 66, &["no marker at", "_DONE", "not complete yet"]);
    std::fs::write(night.path().join(format!("documents/dt={DT}/_DONE")), "").unwrap();
    let done = night.run(DT, &[]).expect_success().json();
    assert_eq!((done["n_documents"].as_u64(), done["n_files"].as_u64()), (Some(1), Some(1)));
    let night = Night::new("allow_empty = true\n");
    assert_eq!(night.run(DT, &[]).expect_success().json()["n_documents"], 0);
}

#[test]
fn hidden_files_are_passed_over_and_names_with_brackets_are_taken_as_they_are() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40))]);
    let folder = night.path().join(format!("documents/dt={DT}"));
    for name in
        ["_SUCCESS", ".part-0.parquet.crc", "_temporary/0/part-1.parquet", "sub/_started", "sub/.hidden/x.parquet"]
    {
        std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        std::fs::write(folder.join(name), "no Parquet").unwrap();
    }
    write_documents(&folder.join("sub/part-1.parquet"), &[(Some("b"), Some(&text(2, 40)))]);
    for odd in ["dt=2026-11-2", "dt=__HIVE_DEFAULT_PARTITION__"] {
        std::fs::create_dir(night.path().join("documents").join(odd)).unwrap();
    }
    let done = night.run(DT, &[]).expect_success();
    assert_eq!(done.json()["n_files"], 2);
    for odd in ["documents/dt=2026-11-2 is not a date", "documents/dt=__HIVE_DEFAULT_PARTITION__ is not a date"] {
        assert!(done.stderr.contains(odd), "{}", done.stderr);
    }
    let odd = night.path().join("odd[1]");
    write_documents(&odd.join(format!("dt={DT}/part-0.parquet")), &[(Some("c"), Some(&text(3, 40)))]);
    let done = night.run(DT, &["--replace", "--documents", "odd[1]"]).expect_success();
    assert_eq!(done.json()["n_documents"], 1);
}

#[test]
fn job_files_with_unknown_keys_or_values_are_refused_by_name() {
    for (job, parts) in [
        ("colour = \"red\"\n", vec!["job.toml", "line 5", "unknown key 'colour'"]),
        (
            "profile = \"fast\"\n",
            vec!["line 5", "profile: no such name", "default, strict, loose, han-bigrams, paper, java, hanlp-java"],
        ),
        ("[join]\nmax_distnace = 3\n", vec!["unknown key 'max_distnace' in [join]: did you mean 'max_distance'?"]),
        ("[join]\nmax_distance = 65\n", vec!["max_distance", "65 is not below"]),
        (
            "[join.earlier]\nmax_distance = 64\n",
            vec!["join.earlier.max_distance", "64 is not below the fingerprint's 64"],
        ),
        ("[join.earlier]\nwords = 5\n", vec!["join.earlier.words", "5 is more than the sketch's 4 words"]),
        (
            "[join.earlier]\nmax_word_distance = 64\n",
            vec!["join.earlier.max_word_distance", "64 is not below the word's"],
        ),
        (
            "profile = \"paper\"\n[join.earlier]\nmax_distance = 3\nwords = 1\nmax_word_distance = 3\n",
            vec!["join.earlier.words", "sketches are not compared"],
        ),
        ("[tokenize.features]\nweight = \"heavy\"\n", vec!["heavy"]),
        ("keep = [\"a sideways\"]\n", vec!["keep", "'a sideways'"]),
        ("keep = [\"length\", \"existing\"]\n", vec!["keep: 'existing'", "always first"]),
        ("keep = [\"existing desc\"]\n", vec!["keep: 'existing desc'"]),
        ("keep = [\"id desc\"]\n", vec!["keep: 'id desc'", "always last"]),
        ("max_lost_share = 1.5\n", vec!["max_lost_share: 1.5 is not a share"]),
        ("max_lost_share = -0.1\n", vec!["max_lost_share: -0.1 is not a share"]),
        ("max_lost_share = 0.2\nprofile = \"paper\"\n", vec!["max_lost_share: 0.2", "sketches"]),
        ("max_lost_share = 0.2\nclusters = \"component\"\n", vec!["max_lost_share: 0.2", "star rule"]),
        ("on_duplicate_id = \"keep_all\"\n", vec!["on_duplicate_id: no such name: did you mean"]),
        ("max_bad_files = \"many\"\n", vec!["max_bad_files"]),
        ("require_marker = \"a/b\"\n", vec!["require_marker", "'a/b'"]),
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
    for dt in ["tomorrow", "2026-02-30", "2026-1-1", "../../etc"] {
        expect(&night.run(dt, &[]), 64, &["--dt", "is not a date like 2026-11-20"]);
    }
    expect(
        &nearprint_in(night.path(), &["store", "forget", "store", "--before", "latest"]),
        64,
        &["--before 'latest' is not"],
    );
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
    expect(
        &done,
        78,
        &["store", "another configuration: its `profile` is default, this one's is paper: give the store's"],
    );
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
    std::fs::write(night.path().join("store/_commits/00000001.json"), "{}").unwrap();
    expect(&night.run("2026-11-21", &[]), 65, &["not a commit of a nearprint store"]);
}

#[test]
fn an_s3_server_that_does_not_answer_is_unavailable_after_the_retries() {
    let night = Night::new("[s3]\nendpoint = \"http://127.0.0.1:9\"\nretry_seconds = 1\n");
    let run = command(night.path(), &["run", "--config", "job.toml", "--dt", DT, "--store", "s3://bucket/store"]);
    let run = run.env("AWS_ACCESS_KEY_ID", "k").env("AWS_SECRET_ACCESS_KEY", "canary-of-a-secret");
    let done = run.run().unwrap();
    assert_eq!(done.code, 69, "{}", done.stderr);
    let said = done.stderr;
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
    let mut run = night.command(DT, &["--spill-dir", "spill"]).start().unwrap();
    while std::fs::read_dir(&spill).unwrap().next().is_none() {
        assert!(!run.ended().unwrap(), "ended before it could be stopped");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    run.signal(Signal::SIGTERM).unwrap();
    assert_eq!(run.wait().unwrap().code, 143);
    assert_eq!(std::fs::read_dir(&spill).unwrap().count(), 0);
    expect_nothing_published(&night);
}
