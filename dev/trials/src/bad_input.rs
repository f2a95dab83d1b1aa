//! B1 to B30, less the thousands of damaged files (`mutants`) and the bombs (`bombs`): documents that no crawl should have.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, DictionaryArray, Int64Array, LargeStringArray, ListArray, StringArray, StringViewArray,
    StructArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use serde_json::Value;

use crate::craft::{self, Column, Page};
use crate::{bombs, mutants, web_pages};
use nearprint_harness::folder::{DT, Folder, Outcome, Record, expect, parquet_of, parquet_with, raw_strings, strings};
use nearprint_harness::measured::{Checks, Options, Trial, shortened};
use nearprint_harness::random::text;
use nearprint_harness::row::Row;
use nearprint_harness::runner::Ran;
use nearprint_harness::{Result, measured};

const TRIALS: [Trial; 26] = [
    ("B1", "files that are not Parquet", "65 naming the file", not_parquet),
    ("B6", "no rows, no row groups, no files", "0 and counted; no files: 66, 0 with allow_empty", no_rows),
    ("B6-marker", "require_marker with and without its file", "66 or 75 naming it; 0 with it", marker),
    ("B7", "a column is missing", "65 naming file, column and the columns there", missing_column),
    ("B8", "columns of other types", "65 naming file, column and type; binary read with --binary-as-utf8", wrong_type),
    ("B9", "the type of a column changes in file 7 of 10", "65 naming file 7 and both types", drift),
    ("B10", "extra and reordered columns", "0, same decisions", reordered),
    ("B11", "all kinds of string columns", "0, same decisions", kinds_of_strings),
    (
        "B12",
        "invalid UTF-8 in a string column",
        "65 naming file and row; quarantined within --max-bad-rows; --strict 65",
        invalid_utf8,
    ),
    (
        "B12-jsonl",
        "JSONL lines that cannot be used",
        "65 naming file and line; quarantined within --max-bad-rows; --strict 65",
        bad_lines,
    ),
    ("B13", "texts that are NULL, empty, blank", "0, counted, no pair", no_text),
    ("B14", "ids that are NULL", "65; quarantined within --max-bad-rows", null_id),
    (
        "B15",
        "repeated ids in a file and across files",
        "65 with both places; keep_first: 0 and quarantined, within --max-repeated-ids",
        repeated_id,
    ),
    ("B16", "large integers, UUIDs, 10 KB, newline, NUL, right-to-left marks as ids", "0, exact round trip", odd_ids),
    (
        "B17-limit",
        "a text over max_doc_bytes",
        "65 naming file and row; quarantined within --max-bad-rows; larger limit: 0",
        too_large,
    ),
    ("B23", "codecs, page versions", "0, same decisions", codecs),
    (
        "B23-unknown",
        "unsupported codec, unknown codec, encryption",
        "65 naming file and codec or encryption",
        unreadable,
    ),
    ("B23-skip", "bad files within --max-bad-files", "0, listed in the manifest; --strict 65", bad_files),
    (
        "B24",
        "odd partitions beside and below the night",
        "no such night: 64, 65 or 66 naming it; others: 0",
        partitions,
    ),
    ("B25", "hidden files and other dates beside documents", "0, neither read nor listed as input", hidden),
    ("B26", "short, repeated, emoji, composed and decomposed texts", "0, decided as documented", odd_texts),
    ("B27", "all identical, all different, all empty", "0, counts as documented", alike),
    ("B28", "unknown keys, values out of range in the job file", "78 naming the key", bad_keys),
    ("B28-flags", "unknown flags, values out of range", "64 naming the flag", bad_flags),
    ("B28-set", "overrides out of range", "64 or 78 naming the key", bad_overrides),
    (
        "B30",
        "a packed WARC file within a damaged record of another one",
        "0 within --max-bad-rows: the pages of the outer file alone, and one bad row",
        web_pages::nested_warc,
    ),
];

/// The trials that need a release build: seconds are counted.
const TIMED: [Trial; 1] =
    [("B29", "broken HTML of 2 MB", "0, and at most 0.5 s of processor time a MB", web_pages::broken_html)];

pub fn run(options: &Options) -> Result<Vec<Row>> {
    let mut rows = run_quick(options);
    rows.extend(measured::rows(options, &TIMED));
    rows.extend(mutants::run(options)?);
    rows.extend(bombs::run(options)?);
    Ok(rows)
}

/// The rows that take seconds together: what a test of each change runs.
pub fn run_quick(options: &Options) -> Vec<Row> {
    measured::rows(options, &TRIALS)
}

/// A night with one good document and what `put` adds, and what a run says of it.
fn night(options: &Options, job: &str, more: &[&str], put: impl Fn(&Folder) -> Result<()>) -> Result<(Folder, Ran)> {
    let folder = Folder::new(options, job)?;
    folder.good()?;
    put(&folder)?;
    let done = folder.run(more)?;
    Ok((folder, done))
}

/// The good document and a file are refused, and the message has all `parts`.
fn refuse(
    options: &Options,
    checks: &mut Checks,
    what: &str,
    name: &str,
    content: &[u8],
    parts: &[&str],
) -> Result<()> {
    let (folder, done) = night(options, "", &[], |f| f.put(name, content))?;
    checks.count(what, folder.refused(&done, &[65], &[&[name], parts].concat()));
    Ok(())
}

/// A night that is published, and in it what `look` finds right.
fn accept(
    checks: &mut Checks,
    what: &str,
    (folder, done): &(Folder, Ran),
    more: &[&str],
    look: impl Fn(&Folder, &Value) -> Result<Outcome>,
) -> Result<()> {
    let outcome = match folder.published_soundly(done, more) {
        Ok(summary) => look(folder, &summary).unwrap_or_else(|e| Err(e.to_string())),
        Err(why) => Err(why),
    };
    checks.count(what, outcome);
    Ok(())
}

/// That a count of the summary is as it should be.
fn counted(summary: &Value, key: &str, n: u64) -> Outcome {
    expect(summary[key].as_u64() == Some(n), || format!("{key} is {}, expected {n}", summary[key]))
}

/// Quarantined rows with exactly these values in the columns that are given.
fn quarantined(folder: &Folder, expected: &[&[(&str, &str)]]) -> Result<Outcome> {
    let found = folder.dataset("quarantine")?;
    let is =
        |row: &Record, wanted: &[(&str, &str)]| wanted.iter().all(|(k, v)| row.get(*k).is_some_and(|got| got == v));
    let all = expected.iter().all(|wanted| found.iter().any(|row| is(row, wanted)));
    Ok(expect(all && found.len() == expected.len(), || format!("quarantine is {found:?}, expected {expected:?}")))
}

/// Refused without flags and under `--strict`, quarantined within the limit.
fn bad_row(
    options: &Options,
    checks: &mut Checks,
    what: &str,
    name: &str,
    content: &[u8],
    reason: &str,
    at: &[(&str, &str)],
) -> Result<()> {
    let row = at.iter().find(|(k, _)| *k == "row").map_or("", |(_, v)| v);
    let parts = [name, &format!("row {row}")];
    let (folder, done) = night(options, "", &[], |f| f.put(name, content))?;
    checks.count(&format!("{what}, no flags"), folder.refused(&done, &[65], &parts));
    let (folder, done) = night(options, "max_bad_rows = 5\n", &["--strict"], |f| f.put(name, content))?;
    checks.count(&format!("{what}, --strict"), folder.refused(&done, &[65], &[name]));
    let flags = ["--max-bad-rows", "1"];
    let quarantine = night(options, "", &flags, |f| f.put(name, content))?;
    accept(checks, &format!("{what}, --max-bad-rows 1"), &quarantine, &flags, |folder, summary| {
        if let Err(why) = counted(summary, "n_bad_rows", 1) {
            return Ok(Err(why));
        }
        let place = folder.dataset("quarantine")?;
        let file = place.first().and_then(|r| r.get("file")).is_some_and(|f| f.ends_with(name));
        if !file {
            return Ok(Err(format!("the file is not in quarantine: {place:?}")));
        }
        quarantined(folder, &[&[at, &[("reason", reason)]].concat()])
    })
}

fn not_parquet(options: &Options, checks: &mut Checks) -> Result<()> {
    let whole = parquet_of(&[(Some("a"), Some(&text(2, 40)))])?;
    let mut long_footer = whole.clone();
    let end = long_footer.len();
    long_footer[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let cases: [(&str, &[u8]); 9] = [
        ("0 bytes", b""),
        ("4 bytes", b"PAR1"),
        ("8 bytes", b"PAR1PAR1"),
        ("an empty footer", b"PAR1\0\0\0\0PAR1"),
        ("text", b"hello, this is text\n"),
        ("zeros", &[0; 4096]),
        ("JSON lines", b"{\"id\":\"a\",\"text\":\"b\"}\n"),
        ("without its end", &whole[..whole.len() - 9]),
        ("a footer of 4 GiB", &long_footer),
    ];
    for (what, content) in cases {
        refuse(options, checks, what, "bad.parquet", content, &["Parquet"])?;
    }
    Ok(())
}

fn no_rows(options: &Options, checks: &mut Checks) -> Result<()> {
    let none = parquet_of(&[])?;
    let empty_group = craft::file(0, &[Column::nulls("id", true, 0)?, Column::nulls("text", true, 0)?])?;
    for (what, content) in [("no row groups", none.clone()), ("a row group of no rows", empty_group)] {
        let case = night(options, "", &[], |f| f.put("none.parquet", &content))?;
        accept(checks, what, &case, &[], |_, summary| {
            Ok(counted(summary, "n_documents", 1).and_then(|()| counted(summary, "n_files", 2)))
        })?;
    }
    let only = Folder::new(options, "")?;
    only.put("none.parquet", &none)?;
    let done = only.run(&[])?;
    accept(checks, "only a file of no rows", &(only, done), &[], |_, summary| Ok(counted(summary, "n_documents", 0)))?;
    let nothing = Folder::new(options, "")?;
    let done = nothing.run(&[])?;
    checks.count("no file", nothing.refused(&done, &[66], &[DT]));
    let allowed = Folder::new(options, "allow_empty = true\n")?;
    let done = allowed.run(&[])?;
    accept(checks, "no file, allow_empty", &(allowed, done), &[], |_, summary| Ok(counted(summary, "n_documents", 0)))
}

fn marker(options: &Options, checks: &mut Checks) -> Result<()> {
    let job = "require_marker = \"_SUCCESS\"\n";
    let (folder, done) = night(options, job, &[], |_| Ok(()))?;
    checks.count("without", folder.refused(&done, &[66, 75], &["_SUCCESS"]));
    let with = night(options, job, &[], |f| f.put("_SUCCESS", b""))?;
    accept(checks, "with", &with, &[], |_, summary| Ok(counted(summary, "n_documents", 1)))
}

fn missing_column(options: &Options, checks: &mut Checks) -> Result<()> {
    let (ids, texts) = (strings(&[Some("a")]), strings(&[Some("b")]));
    for (columns, parts) in [
        (vec![("id", Arc::clone(&ids)), ("body", Arc::clone(&texts))], ["'text'", "id, body"]),
        (vec![("url", ids), ("text", Arc::clone(&texts))], ["'id'", "url, text"]),
        (vec![("ID", Arc::clone(&texts)), ("text", texts)], ["'id'", "ID, text"]),
    ] {
        let content = parquet_with(&columns, WriterProperties::default())?;
        refuse(options, checks, parts[0], "bad.parquet", &content, &parts)?;
    }
    refuse(options, checks, "JSONL", "bad.jsonl", b"{\"id\":\"a\",\"body\":\"b\"}\n", &["'text'", "body, id"])
}

fn wrong_type(options: &Options, checks: &mut Checks) -> Result<()> {
    let long = text(7, 40);
    let texts = || strings(&[Some(&long)]);
    let ids = || strings(&[Some("a")]);
    let number = || -> ArrayRef { Arc::new(Int64Array::from(vec![7])) };
    let list = || -> ArrayRef { Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])])) };
    let inner: ArrayRef = strings(&[Some("x")]);
    let structure: ArrayRef =
        Arc::new(StructArray::from(vec![(Arc::new(Field::new("x", DataType::Utf8, true)), inner)]));
    let binary = || -> ArrayRef { Arc::new(BinaryArray::from_vec(vec![long.as_bytes()])) };
    let booleans: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![true]));
    let floats: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![0.5]));
    let cases: [(&str, [ArrayRef; 2], &str); 8] = [
        ("text is an integer", [ids(), number()], "'text'"),
        ("text is a list", [ids(), list()], "'text'"),
        ("text is a struct", [ids(), structure], "'text'"),
        ("text is binary", [ids(), binary()], "'text'"),
        ("text is boolean", [ids(), booleans], "'text'"),
        ("id is a list", [list(), texts()], "'id'"),
        ("id is a float", [floats, texts()], "'id'"),
        ("id is binary", [binary(), texts()], "'id'"),
    ];
    for (what, [id, body], column) in cases {
        let content = parquet_with(&[("id", id), ("text", body)], WriterProperties::default())?;
        refuse(options, checks, what, "bad.parquet", &content, &[column, "is "])?;
    }
    let as_text = parquet_with(&[("id", ids()), ("text", binary())], WriterProperties::default())?;
    let flags = ["--binary-as-utf8"];
    let case = night(options, "", &flags, |f| f.put("binary.parquet", &as_text))?;
    accept(checks, "--binary-as-utf8", &case, &flags, |folder, _| {
        Ok(expect(folder.decisions()?.contains_key("a"), || "its document is not decided".to_owned()))
    })?;
    let case = night(options, "binary_as_utf8 = true\n", &[], |f| f.put("binary.parquet", &as_text))?;
    accept(checks, "binary_as_utf8 = true", &case, &[], |folder, _| {
        Ok(expect(folder.decisions()?.contains_key("a"), || "its document is not decided".to_owned()))
    })
}

fn drift(options: &Options, checks: &mut Checks) -> Result<()> {
    let put = |folder: &Folder| -> Result<()> {
        for i in 0..10_u64 {
            let ids = strings(&[Some(&format!("d{i}"))]);
            let body: ArrayRef =
                if i == 7 { Arc::new(Int64Array::from(vec![7])) } else { strings(&[Some(&text(i + 10, 40))]) };
            let content = parquet_with(&[("id", ids), ("text", body)], WriterProperties::default())?;
            folder.put(&format!("part-{i}.parquet"), &content)?;
        }
        Ok(())
    };
    let folder = Folder::new(options, "")?;
    put(&folder)?;
    let done = folder.run(&[])?;
    checks.count("text", folder.refused(&done, &[65], &["part-7.parquet", "'text'", "integer", "string"]));
    let folder = Folder::new(options, "keep = [\"score desc\"]\n")?;
    for (name, score) in
        [("a.parquet", Arc::new(Int64Array::from(vec![1])) as ArrayRef), ("b.parquet", strings(&[Some("high")]))]
    {
        let columns = [("id", strings(&[Some(name)])), ("text", strings(&[Some(&text(1, 40))])), ("score", score)];
        folder.put(name, &parquet_with(&columns, WriterProperties::default())?)?;
    }
    let done = folder.run(&[])?;
    checks.count("a column of the keep order", folder.refused(&done, &[65], &["'score'", "a.parquet", "b.parquet"]));
    Ok(())
}

/// Ids and texts of some documents, two of them near-duplicates.
fn sample() -> (Vec<String>, Vec<String>) {
    let mut texts: Vec<String> = (0..6).map(|i| text(100 + i, 60)).collect();
    texts.push(texts[0].clone());
    let ids = (0..texts.len()).map(|i| format!("doc{i}")).collect();
    (ids, texts)
}

fn some(values: &[String]) -> Vec<Option<&str>> {
    values.iter().map(|v| Some(v.as_str())).collect()
}

/// Publishes one file and compares its decisions with those of the plainest form.
fn same_decisions(options: &Options, checks: &mut Checks, forms: Vec<(String, Vec<u8>)>) -> Result<()> {
    let (ids, texts) = sample();
    let plain = Folder::new(options, "")?;
    let rows: Vec<_> = some(&ids).into_iter().zip(some(&texts)).collect();
    plain.put("part.parquet", &parquet_of(&rows)?)?;
    plain.run(&[])?;
    let expected = plain.dataset("decisions").unwrap_or_default();
    for (what, content) in forms {
        let folder = Folder::new(options, "")?;
        folder.put("part.parquet", &content)?;
        let done = folder.run(&[])?;
        accept(checks, &what, &(folder, done), &[], |folder, _| {
            let found = folder.dataset("decisions")?;
            Ok(expect(found.len() == 7 && found == expected, || format!("decisions {found:?}, expected {expected:?}")))
        })?;
    }
    Ok(())
}

fn reordered(options: &Options, checks: &mut Checks) -> Result<()> {
    let (ids, texts) = sample();
    let (ids, texts) = (strings(&some(&ids)), strings(&some(&texts)));
    let extra: ArrayRef = Arc::new(Int64Array::from_iter_values(0..7));
    let nested: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>((0..7).map(|i| Some(vec![Some(i)]))));
    let forms = [
        ("text first", vec![("text", Arc::clone(&texts)), ("id", Arc::clone(&ids))]),
        (
            "more columns",
            vec![("n", extra), ("text", Arc::clone(&texts)), ("tags", nested), ("id", ids), ("text2", texts)],
        ),
    ];
    let forms = forms
        .into_iter()
        .map(|(what, columns)| Ok((what.to_owned(), parquet_with(&columns, WriterProperties::default())?)));
    same_decisions(options, checks, forms.collect::<Result<_>>()?)
}

fn kinds_of_strings(options: &Options, checks: &mut Checks) -> Result<()> {
    let (ids, texts) = sample();
    type Kind = (&'static str, fn(&[String]) -> ArrayRef);
    let kinds: [Kind; 4] = [
        ("Utf8", |v| Arc::new(v.iter().map(Some).collect::<StringArray>())),
        ("LargeUtf8", |v| Arc::new(v.iter().map(Some).collect::<LargeStringArray>())),
        ("Utf8View", |v| Arc::new(v.iter().map(Some).collect::<StringViewArray>())),
        ("dictionary", |v| Arc::new(v.iter().map(String::as_str).collect::<DictionaryArray<Int32Type>>())),
    ];
    let mut forms = Vec::new();
    for (id_kind, id) in kinds {
        for (text_kind, body) in kinds {
            let content = parquet_with(&[("id", id(&ids)), ("text", body(&texts))], WriterProperties::default())?;
            forms.push((format!("{id_kind} and {text_kind}"), content));
        }
    }
    same_decisions(options, checks, forms)
}

fn invalid_utf8(options: &Options, checks: &mut Checks) -> Result<()> {
    let long = text(3, 40);
    let broken = [long.as_bytes(), b" \xff\xfe ", long.as_bytes()].concat();
    let cut = [long.as_bytes(), &"\u{4e2d}".as_bytes()[..2]].concat();
    let writer = WriterProperties::builder;
    let forms = [
        ("plain", writer().set_dictionary_enabled(false).build()),
        ("dictionary", WriterProperties::default()),
        (
            "delta lengths",
            writer().set_dictionary_enabled(false).set_encoding(Encoding::DELTA_LENGTH_BYTE_ARRAY).build(),
        ),
        (
            "delta, version 2",
            writer()
                .set_dictionary_enabled(false)
                .set_encoding(Encoding::DELTA_BYTE_ARRAY)
                .set_writer_version(WriterVersion::PARQUET_2_0)
                .build(),
        ),
    ];
    for (form, properties) in forms {
        for (what, bad) in [("broken", &broken), ("cut off", &cut)] {
            let other = text(4, 40);
            let rows: [(&[u8], &[u8]); 3] = [(b"a", other.as_bytes()), (b"b", bad), (b"c", b"short")];
            let content = raw_strings(&rows, properties.clone())?;
            let at = [("row", "2"), ("id", "b"), ("row_group", "0")];
            bad_row(options, checks, &format!("text {what}, {form}"), "bad.parquet", &content, "invalid_utf8", &at)?;
        }
        let rows: [(&[u8], &[u8]); 2] = [(b"a", b"fine"), (b"b\xff", b"fine too")];
        let content = raw_strings(&rows, properties)?;
        bad_row(options, checks, &format!("id, {form}"), "bad.parquet", &content, "invalid_utf8", &[("row", "2")])?;
    }
    // Each half of a character at the end of one value and the start of the next: the column as a whole is valid.
    let halves: [(&[u8], &[u8]); 2] = [(b"a", b"ab\xe4\xb8"), (b"b", b"\xadcd")];
    let content = raw_strings(&halves, WriterProperties::builder().set_dictionary_enabled(false).build())?;
    let (folder, done) = night(options, "", &[], |f| f.put("bad.parquet", &content))?;
    checks.count("halves of a character in two rows", folder.refused(&done, &[65], &["bad.parquet", "row 1"]));
    Ok(())
}

fn bad_lines(options: &Options, checks: &mut Checks) -> Result<()> {
    let good = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"{}\"}}\n", text(5, 40));
    let cases: [(&str, &[u8], &str); 8] = [
        ("not JSON", b"{\"id\": \"b\", \"text\"\n", "not_json"),
        ("a list", b"[1, 2]\n", "not_json"),
        ("text is a number", b"{\"id\":\"b\",\"text\":5}\n", "wrong_type"),
        ("text is an object", b"{\"id\":\"b\",\"text\":{}}\n", "wrong_type"),
        ("id is a list", b"{\"id\":[1],\"text\":\"t\"}\n", "wrong_type"),
        ("id is null", b"{\"id\":null,\"text\":\"t\"}\n", "null_id"),
        ("no id", b"{\"text\":\"t\"}\n", "null_id"),
        ("not UTF-8", b"{\"id\":\"b\",\"text\":\"\xff\xfe\"}\n", "invalid_utf8"),
    ];
    for (what, line, reason) in cases {
        let content = [good("a").as_bytes(), line, good("c").as_bytes()].concat();
        bad_row(options, checks, what, "bad.jsonl", &content, reason, &[("row", "2")])?;
    }
    Ok(())
}

fn no_text(options: &Options, checks: &mut Checks) -> Result<()> {
    let rows = [(Some("n"), None), (Some("e"), Some("")), (Some("b"), Some(" \t\u{a0}\n")), (Some("b2"), Some("   "))];
    let case = night(options, "", &[], |f| f.put("more.parquet", &parquet_of(&rows)?))?;
    accept(checks, "Parquet", &case, &[], |folder, summary| {
        let counts = counted(summary, "n_null_text", 1).and_then(|()| counted(summary, "n_empty", 3));
        let pairs = folder.dataset("pairs")?.len();
        Ok(counts.and_then(|()| expect(pairs == 0, || format!("{pairs} pairs"))))
    })?;
    let lines = b"{\"id\":\"n\",\"text\":null}\n{\"id\":\"e\",\"text\":\"\"}\n{\"id\":\"m\"}\n\n{\"id\":\"b\",\"text\":\" \"}\n";
    let case = night(options, "", &[], |f| f.put("more.jsonl", lines))?;
    accept(checks, "JSONL", &case, &[], |_, summary| {
        Ok(counted(summary, "n_null_text", 2).and_then(|()| counted(summary, "n_empty", 2)))
    })
}

fn null_id(options: &Options, checks: &mut Checks) -> Result<()> {
    let (a, b) = (text(2, 40), text(3, 40));
    let content = parquet_of(&[(Some("x"), Some(&a)), (None, Some(&b))])?;
    bad_row(options, checks, "string", "bad.parquet", &content, "null_id", &[("row", "2"), ("row_group", "0")])?;
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None]));
    let columns = [("id", ids), ("text", strings(&[Some(&a), Some(&b)]))];
    let content = parquet_with(&columns, WriterProperties::builder().set_max_row_group_row_count(Some(1)).build())?;
    let folder = Folder::new(options, "")?;
    folder.put("bad.parquet", &content)?;
    let done = folder.run(&["--max-bad-rows", "1"])?;
    accept(checks, "integer, second row group", &(folder, done), &["--max-bad-rows", "1"], |folder, _| {
        quarantined(folder, &[&[("reason", "null_id"), ("row_group", "1"), ("row", "2"), ("id", "")]])
    })
}

fn repeated_id(options: &Options, checks: &mut Checks) -> Result<()> {
    let texts: Vec<String> = (2..6).map(|i| text(i, 40)).collect();
    let within = parquet_of(&[(Some("x"), Some(&texts[0])), (Some("x"), Some(&texts[1]))])?;
    refuse(options, checks, "in a file", "bad.parquet", &within, &["'x'", "row 1", "row 2"])?;
    let across = parquet_of(&[(Some("y"), Some(&texts[0])), (Some("good"), Some(&texts[1]))])?;
    refuse(options, checks, "across files", "bad.parquet", &across, &["'good'", "row 2", "part-0.parquet"])?;
    for (what, job, flags) in [
        ("keep_first in the job file", "on_duplicate_id = \"keep_first\"\n", &[][..]),
        ("--on-duplicate-id keep_first", "", &["--on-duplicate-id", "keep_first"][..]),
    ] {
        // In the order of files "bad" is before "part-0": its row is first, and that of part-0 is set aside.
        let case = night(options, job, flags, |f| f.put("bad.parquet", &across))?;
        accept(checks, what, &case, flags, |folder, summary| {
            let counts = counted(summary, "n_documents", 2);
            Ok(counts.and(quarantined(folder, &[&[("reason", "repeated_id"), ("id", "good"), ("row", "1")]])?))
        })?;
        let again = night(options, job, flags, |f| f.put("bad.parquet", &within))?;
        accept(checks, &format!("{what}, in a file"), &again, flags, |folder, _| {
            quarantined(folder, &[&[("reason", "repeated_id"), ("id", "x"), ("row", "2")]])
        })?;
    }
    let (folder, done) =
        night(options, "on_duplicate_id = \"fail\"\n", &["--strict"], |f| f.put("bad.parquet", &across))?;
    checks.count("fail", folder.refused(&done, &[65], &["'good'"]));
    Ok(())
}

fn odd_ids(options: &Options, checks: &mut Checks) -> Result<()> {
    let same = text(9, 40);
    let long = "k".repeat(10_240);
    let odd = [
        "6f9619ff-8b86-d011-b42d-00c04fc964ff",
        &long,
        "a\nb",
        "a\r\nb",
        "nul\0nul",
        "\u{202e}rtl\u{202c}",
        "\u{1b}[31mred",
        "'quoted'",
        "\"double\"",
        "a,b;c\td",
        "../../etc/passwd",
        " ",
        "",
        "\u{feff}bom",
        "e\u{301}",
        "\u{e9}",
        "😀",
    ];
    let rows: Vec<_> = odd.iter().map(|id| (Some(*id), Some(same.as_str()))).collect();
    let folder = Folder::new(options, "")?;
    folder.put("odd.parquet", &parquet_of(&rows)?)?;
    let done = folder.run(&[])?;
    accept(checks, "strings", &(folder, done), &[], |folder, _| {
        let found = folder.decisions()?;
        let missing: Vec<_> = odd.iter().filter(|id| !found.contains_key(**id)).map(|id| shortened(id, 30)).collect();
        Ok(expect(missing.is_empty() && found.len() == odd.len(), || format!("not found again: {missing:?}")))
    })?;
    let signed: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN, -1, 0, (1 << 53) + 1, i64::MAX]));
    let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![0, 1, 2, (1 << 53) + 1, u64::MAX]));
    let wanted = [
        (signed, vec![i64::MIN.to_string(), "-1".to_owned(), "9007199254740993".to_owned(), i64::MAX.to_string()]),
        (unsigned, vec!["0".to_owned(), "9007199254740993".to_owned(), u64::MAX.to_string()]),
    ];
    for (ids, wanted) in wanted {
        let what = ids.data_type().to_string();
        let texts: Vec<String> = (0..5).map(|i| text(i, 40)).collect();
        let folder = Folder::new(options, "")?;
        folder.put(
            "n.parquet",
            &parquet_with(&[("id", ids), ("text", strings(&some(&texts)))], WriterProperties::default())?,
        )?;
        let done = folder.run(&[])?;
        accept(checks, &what, &(folder, done), &[], |folder, _| {
            let found = folder.decisions()?;
            Ok(expect(wanted.iter().all(|id| found.contains_key(id)), || format!("{:?}", found.keys())))
        })?;
    }
    let lines = "{\"id\":9007199254740993,\"text\":\"one\"}\n{\"id\":18446744073709551615,\"text\":\"two\"}\n\
                 {\"id\":\"a\\u0000\\n\\u202e\",\"text\":\"three\"}\n";
    let case = night(options, "", &[], |f| f.put("n.jsonl", lines.as_bytes()))?;
    accept(checks, "JSONL", &case, &[], |folder, _| {
        let found = folder.decisions()?;
        let wanted = ["9007199254740993", "18446744073709551615", "a\0\n\u{202e}"];
        Ok(expect(wanted.iter().all(|id| found.contains_key(*id)), || format!("{:?}", found.keys())))
    })
}

fn too_large(options: &Options, checks: &mut Checks) -> Result<()> {
    let (small, large) = (text(1, 60), text(2, 4000));
    let content = parquet_of(&[(Some("a"), Some(&small)), (Some("b"), Some(&large))])?;
    let lines = format!("{{\"id\":\"a\",\"text\":\"{small}\"}}\n{{\"id\":\"b\",\"text\":\"{large}\"}}\n");
    for (name, content) in [("large.parquet", content), ("large.jsonl", lines.into_bytes())] {
        let limit = ["--max-doc-bytes", "10KiB"];
        let (folder, done) = night(options, "", &limit, |f| f.put(name, &content))?;
        checks.count(&format!("{name}, flag"), folder.refused(&done, &[65], &[name, "row 2"]));
        let (folder, done) = night(options, "max_doc_bytes = \"10KiB\"\n", &[], |f| f.put(name, &content))?;
        checks.count(&format!("{name}, key"), folder.refused(&done, &[65], &[name, "row 2"]));
        let flags = ["--max-doc-bytes", "10KiB", "--max-bad-rows", "1"];
        let case = night(options, "", &flags, |f| f.put(name, &content))?;
        accept(checks, &format!("{name}, quarantined"), &case, &flags, |folder, summary| {
            let counts = counted(summary, "n_documents", 2);
            Ok(counts.and(quarantined(folder, &[&[("reason", "too_large"), ("row", "2"), ("id", "b")]])?))
        })?;
        let flags = ["--max-doc-bytes", "10MiB"];
        let case = night(options, "", &flags, |f| f.put(name, &content))?;
        accept(checks, &format!("{name}, larger limit"), &case, &flags, |_, summary| {
            Ok(counted(summary, "n_documents", 3))
        })?;
    }
    Ok(())
}

fn codecs(options: &Options, checks: &mut Checks) -> Result<()> {
    let (ids, texts) = sample();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    let mut forms = Vec::new();
    for codec in codecs {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = WriterProperties::builder().set_compression(codec).set_writer_version(version).build();
            let columns = [("id", strings(&some(&ids))), ("text", strings(&some(&texts)))];
            forms.push((format!("{codec} {version:?}"), parquet_with(&columns, properties)?));
        }
    }
    same_decisions(options, checks, forms)
}

/// Two columns of one row, whose text has the given codec; an encrypted page is noise.
fn with_codec(codec: i64, encrypted: bool) -> Result<Vec<u8>> {
    let mut plain = craft::plain_string(text(1, 40).as_bytes())?;
    if encrypted {
        fastrand::Rng::with_seed(1).fill(&mut plain);
    }
    let page = Page::data(craft::PLAIN, 1, plain.len().try_into()?, plain);
    let column = Column { encrypted, ..Column::strings("text", codec, vec![page]) };
    craft::file(1, &[Column::repeated("id", b"crafted", 1)?, column])
}

fn unreadable(options: &Options, checks: &mut Checks) -> Result<()> {
    let only = |checks: &mut Checks, what: &str, content: &[u8], parts: &[&str]| -> Result<()> {
        let folder = Folder::new(options, "")?;
        folder.put("bad.parquet", content)?;
        let done = folder.run(&[])?;
        let outcome = folder.refused(&done, &[65], &["bad.parquet"]).and_then(|()| {
            let error = done.error().to_lowercase();
            expect(parts.iter().any(|p| error.contains(p)), || format!("none of {parts:?} is named: {}", done.said()))
        });
        checks.count(what, outcome);
        Ok(())
    };
    // The crafted file itself is right, else its refusal would prove nothing.
    let sound = Folder::new(options, "")?;
    sound.put("sound.parquet", &with_codec(craft::UNCOMPRESSED, false)?)?;
    let done = sound.run(&[])?;
    accept(checks, "the crafted file, uncompressed", &(sound, done), &[], |_, s| Ok(counted(s, "n_documents", 1)))?;
    only(checks, "codec LZO", &with_codec(craft::LZO, false)?, &["lzo"])?;
    only(checks, "codec 99", &with_codec(99, false)?, &["codec", "compression"])?;
    only(checks, "an encrypted column", &with_codec(craft::UNCOMPRESSED, true)?, &["encrypt"])?;
    let mut footer = parquet_of(&[(Some("a"), Some("b"))])?;
    let end = footer.len();
    footer[..4].copy_from_slice(b"PARE");
    footer[end - 4..].copy_from_slice(b"PARE");
    only(checks, "an encrypted footer", &footer, &["encrypt"])
}

fn bad_files(options: &Options, checks: &mut Checks) -> Result<()> {
    let truncated = {
        let mut content = parquet_of(&[(Some("a"), Some(&text(2, 40)))])?;
        content.truncate(content.len() - 5);
        content
    };
    let put = |f: &Folder| {
        f.put("bad1.parquet", &truncated)?;
        f.put("bad2.parquet", &with_codec(craft::LZO, false)?)
    };
    for (what, job, flags) in [("flag", "", &["--max-bad-files", "2"][..]), ("key", "max_bad_files = 2\n", &[][..])] {
        let case = night(options, job, flags, put)?;
        accept(checks, what, &case, flags, |folder, summary| {
            let manifest = folder.manifest()?.to_string();
            let listed = ["bad1.parquet", "bad2.parquet"].iter().all(|f| manifest.contains(f));
            let decided = folder.decisions()?.keys().eq(["good"]);
            Ok(counted(summary, "n_bad_files", 2)
                .and(expect(listed, || format!("not in the manifest: {manifest}")))
                .and(expect(decided, || "other documents are decided".to_owned())))
        })?;
    }
    let (folder, done) = night(options, "", &["--max-bad-files", "1"], put)?;
    checks.count("one too many", folder.refused(&done, &[65], &["bad"]));
    let (folder, done) = night(options, "max_bad_files = 2\n", &["--strict"], put)?;
    checks.count("--strict", folder.refused(&done, &[65], &["bad"]));
    // Damage that shows itself only when pages are read.
    let mut late = parquet_of(&[(Some("a"), Some(&text(2, 400)))])?;
    for byte in &mut late[20..60] {
        *byte = 0xff;
    }
    let flags = ["--max-bad-files", "1"];
    let case = night(options, "", &flags, |f| f.put("late.parquet", &late))?;
    accept(checks, "damaged pages", &case, &flags, |folder, summary| {
        Ok(counted(summary, "n_bad_files", 1)
            .and(expect(folder.decisions()?.keys().eq(["good"]), || "other documents are decided".to_owned())))
    })
}

fn partitions(options: &Options, checks: &mut Checks) -> Result<()> {
    let other = parquet_of(&[(Some("other"), Some(&text(2, 40)))])?;
    let beside = |folder: &Folder| -> Result<()> {
        folder.good()?;
        for name in ["dt=2026-11-2", "dt=__HIVE_DEFAULT_PARTITION__", "dt=2026-11-200", "2026-11-20", "dt=2026-11-20x"]
        {
            let place = folder.path().join("documents").join(name);
            std::fs::create_dir_all(&place)?;
            std::fs::write(place.join("part-0.parquet"), &other)?;
        }
        Ok(())
    };
    let folder = Folder::new(options, "")?;
    beside(&folder)?;
    let done = folder.run(&[])?;
    accept(checks, "beside the night", &(folder, done), &[], |folder, summary| {
        Ok(counted(summary, "n_documents", 1)
            .and(expect(folder.decisions()?.keys().eq(["good"]), || "others".to_owned())))
    })?;
    for dt in ["2026-11-2", "__HIVE_DEFAULT_PARTITION__", "2026-13-01", "2026-02-30", "20261120", "../2026-11-20"] {
        let folder = Folder::new(options, "")?;
        beside(&folder)?;
        let args = ["run", "--config", "job.toml", "--spill-dir", "spill", "--json", "--dt", dt];
        let done = folder.command(&args).run()?;
        checks.count(&format!("--dt '{dt}'"), folder.refused(&done, &[64, 65, 66], &[dt]));
    }
    let folder = Folder::new(options, "")?;
    folder.good()?;
    folder.put("hour=03/part-0.parquet", &other)?;
    let done = folder.run(&[])?;
    if done.code == 0 {
        checks.note("two depths: both are read");
        accept(checks, "two depths", &(folder, done), &[], |_, summary| Ok(counted(summary, "n_documents", 2)))
    } else {
        checks.note("two depths: refused");
        checks.count("two depths", folder.refused(&done, &[65, 66], &["hour=03"]));
        Ok(())
    }
}

fn hidden(options: &Options, checks: &mut Checks) -> Result<()> {
    let other = parquet_of(&[(Some("hidden"), Some(&text(2, 40)))])?;
    let names = [
        "_temporary/0/part-9.parquet",
        ".part-0.parquet.crc",
        "_SUCCESS",
        ".hidden.parquet",
        "_hidden.parquet",
        ".spark-staging/part-1.parquet",
        "_checkpoint/1.jsonl",
        "_metadata",
        "_common_metadata",
    ];
    for (what, documents) in [("a folder", "documents"), ("a glob", "documents/dt={dt}/**/*")] {
        let folder = Folder::new(options, "")?;
        std::fs::write(
            folder.path().join("job.toml"),
            format!("documents = \"{documents}\"\nstore = \"store\"\noutput = \"results\"\ncreate_store = true\n"),
        )?;
        folder.good()?;
        names.iter().try_for_each(|name| folder.put(name, &other))?;
        let day_before = folder.path().join("documents/dt=2026-11-19");
        std::fs::create_dir_all(&day_before)?;
        std::fs::write(day_before.join("part-0.parquet"), &other)?;
        let done = folder.run(&[])?;
        accept(checks, what, &(folder, done), &[], |folder, _| {
            let inputs = folder.manifest()?["inputs"].clone();
            let only =
                inputs.as_array().is_some_and(|all| all.len() == 1) && inputs.to_string().contains("part-0.parquet");
            let decided = folder.decisions()?.keys().eq(["good"]);
            Ok(expect(only && decided, || format!("inputs {inputs}")))
        })?;
    }
    Ok(())
}

fn odd_texts(options: &Options, checks: &mut Checks) -> Result<()> {
    let composed = "caf\u{e9} na\u{ef}ve r\u{e9}sum\u{e9} d\u{e9}j\u{e0} vu \u{e0} la carte cr\u{e8}me br\u{fb}l\u{e9}e fa\u{e7}ade";
    let decomposed = "cafe\u{301} nai\u{308}ve re\u{301}sume\u{301} de\u{301}ja\u{300} vu a\u{300} la carte cre\u{300}me bru\u{302}le\u{301}e fac\u{327}ade";
    let mixed = "mixed \u{4e2d}\u{6587} scripts \u{440}\u{443}\u{441}\u{441}\u{43a}\u{438}\u{439} \u{639}\u{631}\u{628}\u{64a} \u{5e2}\u{5d1}\u{5e8}\u{5d9}\u{5ea} \u{ed5c}\u{ad6d}\u{c5b4} \u{65e5}\u{672c}\u{8a9e} text with words enough";
    let emoji = "\u{1f600}".repeat(500);
    let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}".repeat(100);
    let one = "a".repeat(100_000);
    let spaced = "a ".repeat(50_000);
    let combining = format!("e{}", "\u{301}".repeat(20_000));
    let rows = [
        ("nfc", composed),
        ("nfd", decomposed),
        ("mixed", mixed),
        ("mixed2", mixed),
        ("emoji", &emoji),
        ("family", &family),
        ("one", &one),
        ("spaced", &spaced),
        ("combining", &combining),
        ("short", "hi"),
        ("short2", "hi"),
        ("nul", "a\0b"),
        ("bidi", "\u{202e}\u{202d}"),
    ];
    let parquet: Vec<_> = rows.iter().map(|(id, text)| (Some(*id), Some(*text))).collect();
    let case = night(options, "", &[], |f| f.put("odd.parquet", &parquet_of(&parquet)?))?;
    accept(checks, "Parquet", &case, &[], |folder, summary| {
        let decisions = folder.dataset("decisions")?;
        let of = |id: &str, column: &str| {
            decisions.iter().find(|r| r["doc_id"] == id).map(|r| r[column].clone()).unwrap_or_default()
        };
        let twins = [("nfd", "nfc"), ("mixed2", "mixed"), ("short2", "short")];
        let wrong: Vec<_> = twins
            .iter()
            .filter(|(copy, first)| of(copy, "canonical_id") != *first || of(copy, "reason") != "exact")
            .map(|t| t.0)
            .collect();
        let short = ["one", "spaced", "short", "emoji", "nul"]
            .iter()
            .all(|id| of(id, "reason") == "too_short" || of(id, "reason") == "empty");
        Ok(counted(summary, "n_documents", 14)
            .and(expect(wrong.is_empty(), || format!("no copy of its twin: {wrong:?} in {decisions:?}")))
            .and(expect(short, || format!("not too short: {decisions:?}"))))
    })
}

fn alike(options: &Options, checks: &mut Checks) -> Result<()> {
    const N: u64 = 2000;
    type Case = (&'static str, fn(u64) -> String, [(&'static str, u64); 3]);
    let cases: [Case; 3] = [
        ("identical", |_| text(1, 60), [("n_keep", 1), ("n_drop", N - 1), ("n_pairs", N - 1)]),
        ("different", |i| text(i, 60), [("n_keep", N), ("n_drop", 0), ("n_pairs", 0)]),
        ("empty", |_| String::new(), [("n_empty", N), ("n_keep", 0), ("n_pairs", 0)]),
    ];
    for (what, make, counts) in cases {
        let mut lines = String::new();
        for i in 0..N {
            writeln!(lines, "{{\"id\":\"d{i:05}\",\"text\":\"{}\"}}", make(i))?;
        }
        let folder = Folder::new(options, "")?;
        folder.put("all.jsonl", lines.as_bytes())?;
        let done = folder.run(&[])?;
        accept(checks, what, &(folder, done), &[], |_, summary| {
            Ok(counts.iter().try_for_each(|(key, n)| counted(summary, key, *n)))
        })?;
    }
    Ok(())
}

fn bad_keys(options: &Options, checks: &mut Checks) -> Result<()> {
    let cases = [
        ("max_bad_row = 3", "max_bad_row"),
        ("max_bad_rows = -1", "max_bad_rows"),
        ("max_bad_rows = \"many\"", "max_bad_rows"),
        ("max_doc_bytes = \"12 parsecs\"", "max_doc_bytes"),
        ("on_duplicate_id = \"maybe\"", "on_duplicate_id"),
        ("pairs = \"some\"", "pairs"),
        ("profile = \"no-such\"", "profile: no such name"),
        ("keep = [\"length sideways\"]", "sideways"),
        ("[join]\nmax_distance = 65", "max_distance"),
        ("[join]\nmax_distance = -1", "max_distance"),
        ("[join]\nthreshold = 3", "threshold"),
        ("[resources]\nmemory = 3", "memory"),
        ("[resources]\nthreads = 0", "threads"),
        ("[s3]\nkey = \"x\"", "key"),
        ("[tokenize.tokenizer]\nkind = \"magic\"", "tokenize.tokenizer.kind: no such name"),
        ("bits = 48", "bits"),
        ("this is not TOML", "job.toml"),
    ];
    for (line, key) in cases {
        let (folder, done) = night(options, &format!("{line}\n"), &[], |_| Ok(()))?;
        checks.count(&line.replace('\n', " "), folder.refused(&done, &[78], &[key]));
    }
    Ok(())
}

fn bad_flags(options: &Options, checks: &mut Checks) -> Result<()> {
    let cases: [(&[&str], &str); 8] = [
        (&["--max-bad-row", "3"], "--max-bad-row"),
        (&["--max-bad-rows=-1"], "--max-bad-rows"),
        (&["--max-doc-bytes", "big"], "--max-doc-bytes"),
        (&["--on-duplicate-id", "maybe"], "--on-duplicate-id"),
        (&["--threads", "0"], "--threads"),
        (&["--memory-limit", "0"], "--memory-limit"),
        (&["--pairs", "some"], "--pairs"),
        (&["--kernel", "quantum"], "--kernel"),
    ];
    for (flags, key) in cases {
        let (folder, done) = night(options, "", flags, |_| Ok(()))?;
        checks.count(&flags.join(" "), folder.refused(&done, &[64], &[key]));
    }
    let folder = Folder::new(options, "")?;
    let plan = ["plan", "--existing-rows", "1000", "--query-rows", "1000", "--max-distance", "65", "--json"];
    let done = folder.command(&plan).run()?;
    checks.count("plan --max-distance 65", folder.refused(&done, &[64], &["--max-distance"]));
    Ok(())
}

fn bad_overrides(options: &Options, checks: &mut Checks) -> Result<()> {
    let folder = Folder::new(options, "")?;
    folder.good()?;
    for (set, key) in [
        ("join.max_distance=65", "max_distance"),
        ("join.nothing=1", "nothing"),
        ("tokenize.features.shingle=0", "shingle"),
        ("tokenize.features.weight=heavy", "weight"),
        ("nonsense", "nonsense"),
        ("bits=33", "bits"),
    ] {
        let args = [
            "fingerprint",
            "--documents",
            "documents",
            "--output",
            "out",
            "--spill-dir",
            "spill",
            "--json",
            "--set",
            set,
        ];
        let done = folder.command(&args).run()?;
        checks.count(set, folder.refused(&done, &[64, 78], &[key]));
    }
    Ok(())
}
