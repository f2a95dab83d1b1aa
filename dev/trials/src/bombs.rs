//! B17 to B22: files that are small on disk and huge in memory, and very many files.

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::craft::{self, Column, Page, ZSTD};
use nearprint_harness::Result;
use nearprint_harness::folder::{Folder, Outcome, parquet_of, within};
use nearprint_harness::measured::{self, Checks, Options, mib};
use nearprint_harness::random::text;
use nearprint_harness::row::Row;
use nearprint_harness::runner::Ran;

/// Memory above that of a small file which a bomb may take.
const MORE_MEMORY: u64 = 256 << 20;
/// `--memory-limit` of the trials that are to end with 0.
const CAP: u64 = 1 << 30;
const CAP_FLAG: [&str; 2] = ["--memory-limit", "1GiB"];

type Trial = fn(&Options, &mut Checks, u64) -> Result<()>;

const TRIALS: [(&str, &str, &str, Trial); 6] = [
    (
        "B17",
        "one text of 1 GiB, 33 KB as zstd",
        "65 naming the file, within a small file's memory and 256 MiB",
        one_long_text,
    ),
    ("B18", "20,000 texts of 1 MB, once in a dictionary", "0 within 1 GiB and 256 MiB, or 65", dictionary),
    (
        "B19",
        "page headers claiming 2 GiB",
        "65 naming the file, within a small file's memory and 256 MiB",
        false_claims,
    ),
    ("B20", "one row group of 5 GB", "0 within 1 GiB and 256 MiB", one_row_group),
    (
        "B21",
        "50M rows as a run length",
        "ids NULL: 65; texts NULL: 0 under 4 GiB, and 0 or 74 under 1 GiB; within the limit and 256 MiB",
        run_length,
    ),
    ("B22", "100,000 tiny files", "0 within 1 GiB", many_files),
];

pub fn run(options: &Options) -> Result<Vec<Row>> {
    let wanted: Vec<_> = TRIALS.iter().filter(|t| options.wants(t.0)).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let baseline = baseline(options)?;
    let row = |(id, trial, required, run): &&(&str, &str, &str, Trial)| {
        measured::row(id, trial, required, |checks| run(options, checks, baseline))
    };
    Ok(wanted.iter().map(row).collect())
}

/// Memory of a night of one document.
fn baseline(options: &Options) -> Result<u64> {
    let folder = Folder::new(options, "")?;
    folder.good()?;
    Ok(folder.run(&[])?.peak_rss)
}

fn night(options: &Options, seconds: u64, flags: &[&str], content: &[u8]) -> Result<(Folder, Ran)> {
    let mut folder = Folder::new(options, "")?;
    folder.limit_seconds = seconds;
    folder.put("bomb.parquet", content)?;
    let done = folder.run(flags)?;
    Ok((folder, done))
}

fn figures(checks: &mut Checks, what: &str, done: &Ran) {
    checks.note(format!("{what}: exit {}, {:.1} s, {} MiB", done.code, done.seconds, mib(done.peak_rss)));
}

fn documents(done: &Ran, n: u64) -> Outcome {
    let found = &done.summary()["n_documents"];
    if found.as_u64() == Some(n) { Ok(()) } else { Err(format!("n_documents is {found}, expected {n}")) }
}

fn one_long_text(options: &Options, checks: &mut Checks, baseline: u64) -> Result<()> {
    let n = options.scaled(1 << 30).max(128 << 20);
    let of_one_text = |n| -> Result<Vec<u8>> {
        let page = Page::data(craft::PLAIN, 1, i64::try_from(n)? + 4, craft::zstd_of_one_long_string(b'a', n)?);
        craft::file(1, &[Column::counting("id", 1)?, Column::strings("text", ZSTD, vec![page])])
    };
    let content = of_one_text(n)?;
    checks.note(format!("{} bytes", content.len()));
    let (folder, done) = night(options, 60, &[], &content)?;
    figures(checks, "no flags", &done);
    let refused = folder.refused(&done, &[65], &["bomb.parquet"]);
    checks.count("no flags", refused.and(within(&done, baseline + MORE_MEMORY)));
    // Not all files of a night may be bad.
    folder.put("short.parquet", &of_one_text(40)?)?;
    let done = folder.run(&["--max-bad-rows", "1", "--max-bad-files", "1"])?;
    figures(checks, "one bad row or file allowed", &done);
    let passed = folder.published_soundly(&done, &["--max-bad-rows", "1", "--max-bad-files", "1"]).map(drop);
    checks.count("one bad row or file allowed", passed.and(within(&done, baseline + MORE_MEMORY)));
    Ok(())
}

fn dictionary(options: &Options, checks: &mut Checks, baseline: u64) -> Result<()> {
    let n = options.scaled(20_000);
    let value: Vec<u8> = text(1, 40).bytes().chain([b' ']).cycle().take(1_000_000).collect();
    let content = craft::file(n, &[Column::counting("id", n)?, Column::repeated("text", &value, n)?])?;
    checks.note(format!("{n} rows, {} bytes", content.len()));
    let (folder, done) = night(options, 900, &CAP_FLAG, &content)?;
    figures(checks, "--memory-limit 1GiB", &done);
    let outcome = if done.code == 0 { documents(&done, n) } else { folder.refused(&done, &[65], &["bomb.parquet"]) };
    checks.count("--memory-limit 1GiB", outcome.and(within(&done, baseline.max(CAP) + MORE_MEMORY)));
    Ok(())
}

fn false_claims(options: &Options, checks: &mut Checks, baseline: u64) -> Result<()> {
    const HUGE: i64 = i32::MAX as i64;
    let value = text(1, 40);
    let plain = craft::plain_string(value.as_bytes())?;
    let page =
        |uncompressed: i64| -> Result<Page> { Ok(Page::data(craft::PLAIN, 1, uncompressed, craft::zstd_of(&plain)?)) };
    let honest = i64::try_from(plain.len())?;
    let long = { u32::MAX.to_le_bytes().into_iter().chain(value.bytes()).collect::<Vec<u8>>() };
    let dictionary = Column::repeated("text", value.as_bytes(), 1)?.pages;
    let with_dictionary = |change: fn(&mut Page)| {
        let mut pages = dictionary.clone();
        change(&mut pages[0]);
        pages
    };
    let cases: Vec<(&str, Vec<Page>)> = vec![
        ("uncompressed bytes", vec![page(HUGE)?]),
        ("uncompressed bytes below 0", vec![page(-1)?]),
        ("compressed bytes", vec![Page { claimed_compressed_bytes: Some(HUGE), ..page(honest)? }]),
        ("compressed bytes below 0", vec![Page { claimed_compressed_bytes: Some(-1), ..page(honest)? }]),
        ("both", vec![Page { claimed_compressed_bytes: Some(HUGE), ..page(HUGE)? }]),
        ("values below 0", vec![Page { n_values: -1, ..page(honest)? }]),
        ("a string of 4 GiB", vec![Page::data(craft::PLAIN, 1, honest, craft::zstd_of(&long)?)]),
        ("a dictionary's uncompressed bytes", with_dictionary(|p| p.uncompressed_bytes = HUGE)),
        ("a dictionary's values", with_dictionary(|p| p.n_values = HUGE)),
        ("a dictionary's values below 0", with_dictionary(|p| p.n_values = -1)),
    ];
    let mut most = 0;
    for (what, pages) in cases {
        let content = craft::file(1, &[Column::counting("id", 1)?, Column::strings("text", ZSTD, pages)])?;
        let (folder, done) = night(options, 60, &[], &content)?;
        most = most.max(done.peak_rss);
        // A dictionary that claims more values than it has is read as far as it goes.
        let outcome = if done.code == 0 && what == "a dictionary's values" {
            documents(&done, 1)
        } else {
            folder.refused(&done, &[65], &["bomb.parquet"])
        };
        checks.count(what, outcome.and(within(&done, baseline + MORE_MEMORY)));
    }
    let rows = craft::file(
        i64::MAX.unsigned_abs(),
        &[Column::counting("id", 1)?, Column::repeated("text", value.as_bytes(), 1)?],
    )?;
    let (folder, done) = night(options, 60, &[], &rows)?;
    checks.count(
        "rows of the file",
        folder.refused(&done, &[65], &["bomb.parquet"]).and(within(&done, baseline + MORE_MEMORY)),
    );
    checks.note(format!("peak {} MiB, a small file {} MiB", mib(most.max(done.peak_rss)), mib(baseline)));
    Ok(())
}

/// Compressible documents of about `bytes` together in one row group.
fn one_group(path: &std::path::Path, bytes: u64) -> Result<u64> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(None)
        .set_dictionary_enabled(false)
        .build();
    let mut writer = None;
    let mut rng = fastrand::Rng::with_seed(1);
    let (mut n, mut written) = (0, 0);
    while written < bytes {
        let (mut ids, mut texts) = (StringBuilder::new(), StringBuilder::new());
        for _ in 0..512 {
            let sentence = text(rng.u64(..), 100);
            let document = [sentence.as_str(); 30].join(". ");
            written += document.len() as u64;
            ids.append_value(format!("doc-{n:010}"));
            texts.append_value(document);
            n += 1;
        }
        let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids.finish())), ("text", Arc::new(texts.finish()))];
        let batch = RecordBatch::try_from_iter(columns)?;
        if writer.is_none() {
            let file = BufWriter::new(File::create(path)?);
            writer = Some(ArrowWriter::try_new(file, batch.schema(), Some(properties.clone()))?);
        }
        if let Some(writer) = &mut writer {
            writer.write(&batch)?;
        }
    }
    writer.ok_or("nothing to write")?.close()?;
    Ok(n)
}

fn one_row_group(options: &Options, checks: &mut Checks, baseline: u64) -> Result<()> {
    let mut folder = Folder::new(options, "")?;
    folder.limit_seconds = 900;
    let bytes = options.scaled(5_000_000_000);
    let path = folder.place("group.parquet");
    let n = one_group(&path, bytes)?;
    checks.note(format!(
        "{n} rows, {} MB, {} MB on disk",
        bytes / 1_000_000,
        std::fs::metadata(&path)?.len() / 1_000_000
    ));
    let done = folder.run(&CAP_FLAG)?;
    figures(checks, "--memory-limit 1GiB", &done);
    let sound = folder.published_soundly(&done, &CAP_FLAG).map(drop);
    checks.count(
        "--memory-limit 1GiB",
        sound.and(documents(&done, n)).and(within(&done, baseline.max(CAP) + MORE_MEMORY)),
    );
    Ok(())
}

fn run_length(options: &Options, checks: &mut Checks, baseline: u64) -> Result<()> {
    let n = options.scaled(50_000_000);
    let limit = baseline.max(CAP) + MORE_MEMORY;
    let text_of_all = text(1, 40);
    let no_ids =
        craft::file(n, &[Column::nulls("id", true, n)?, Column::repeated("text", text_of_all.as_bytes(), n)?])?;
    let (folder, done) = night(options, 300, &CAP_FLAG, &no_ids)?;
    figures(checks, &format!("{n} NULL ids, {} bytes", no_ids.len()), &done);
    checks.count("ids NULL", folder.refused(&done, &[65], &["bomb.parquet"]).and(within(&done, limit)));
    let no_texts = craft::file(n, &[Column::counting("id", n)?, Column::nulls("text", true, n)?])?;
    let (folder, done) = night(options, 600, &CAP_FLAG, &no_texts)?;
    figures(checks, &format!("{n} NULL texts, {} bytes", no_texts.len()), &done);
    let outcome = if done.code == 0 { documents(&done, n) } else { folder.refused(&done, &[74], &["memory-limit"]) };
    checks.count("texts NULL", outcome.and(within(&done, limit)));
    let four = ["--memory-limit", "4GiB"];
    let (folder, done) = night(options, 1200, &four, &no_texts)?;
    figures(checks, &format!("{n} NULL texts, {} bytes, 4 GiB", no_texts.len()), &done);
    let sound = folder.published_soundly(&done, &four).map(drop);
    checks.count("texts NULL, 4 GiB", sound.and(documents(&done, n)).and(within(&done, 4 * CAP + MORE_MEMORY)));
    Ok(())
}

fn many_files(options: &Options, checks: &mut Checks, _baseline: u64) -> Result<()> {
    let n = options.scaled(100_000);
    for kind in ["jsonl", "parquet"] {
        let mut folder = Folder::new(options, "")?;
        folder.limit_seconds = 900;
        for i in 0..n {
            let (id, body) = (format!("doc-{i:06}"), text(i, 20));
            let content = match kind {
                "jsonl" => format!("{{\"id\":\"{id}\",\"text\":\"{body}\"}}\n").into_bytes(),
                _ => parquet_of(&[(Some(&id), Some(&body))])?,
            };
            std::fs::write(folder.place(&format!("part-{i:06}.{kind}")), content)?;
        }
        let done = folder.run(&[])?;
        figures(checks, kind, &done);
        let sound = folder.published_soundly(&done, &[]).map(drop);
        checks.count(kind, sound.and(documents(&done, n)).and(within(&done, CAP)));
    }
    Ok(())
}
