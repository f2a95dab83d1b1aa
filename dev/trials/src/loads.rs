//! L1 to L7 and F7: how long, how much memory, how much disk. Inputs are generated as streams, and go when the trial ends.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringBuilder, UInt64Builder};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use crate::serving::Serving;
use nearprint_harness::folder::{Folder, Outcome, expect, within};
use nearprint_harness::measured::{Checks, Options, Trial, mib};
use nearprint_harness::random::text;
use nearprint_harness::row::Row;
use nearprint_harness::runner::{Ran, Signal};
use nearprint_harness::{Result, measured};

const GIB: u64 = 1 << 30;
/// Rows written at a time.
const STEP: u64 = 8192;

const TRIALS: [Trial; 7] = [
    ("L1", "1M identical documents", "0, 999,999 pairs, under 60 s and 1 GiB", identical),
    (
        "L2",
        "1M documents of 1,000 templates, each with a word of its own",
        "0 with fewer than 1M pairs, or a clean stop",
        templates,
    ),
    (
        "L3",
        "all 43,745 fingerprints within distance 3 of one",
        "0 with all pairs counted, or a clean stop; under 5 min and 4 GiB",
        ball,
    ),
    ("L4", "10M documents of 1 KB, 1 % copies", "0 under 20 min and 4 GiB", many_documents),
    (
        "L5",
        "100M fingerprints",
        "0 under 4 GiB, spill at most 3 times their bytes: met by 1M, and with each other",
        many_fingerprints,
    ),
    (
        "L7",
        "60 streams of 4 lines that ask a server for 300,000 near copies, with ids of 210 bytes, 128 MiB of memory",
        "all copies counted in each answer, under 128 MiB",
        common_text,
    ),
    ("F7", "4 GiB of documents, 512 MiB of memory", "0 under 512 MiB", more_than_memory),
];

/// L6 is B22.
pub fn run(options: &Options) -> Vec<Row> {
    measured::rows(options, &TRIALS)
}

/// Seconds, memory, spill and counts.
fn figures(checks: &mut Checks, what: &str, done: &Ran) {
    let summary = done.summary();
    let spill = &summary["spill"];
    checks.note(format!(
        "{what}: exit {}, {:.1} s, {} MiB, spill {spill}, {} pairs",
        done.code,
        done.seconds,
        mib(done.peak_rss),
        summary["n_pairs"]
    ));
}

fn spilled_bytes(summary: &Value) -> u64 {
    summary["spill"]["spilled_bytes"].as_u64().unwrap_or(u64::MAX)
}

/// Columns of rows `from` to `to`.
type Columns<'a> = &'a mut dyn FnMut(u64, u64) -> Vec<(&'static str, ArrayRef)>;

/// Writes rows as they are made.
fn stream(path: &Path, n: u64, make: Columns<'_>) -> Result<u64> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(100_000))
        .set_dictionary_enabled(false)
        .build();
    let mut writer = None;
    let mut from = 0;
    while from < n {
        let to = (from + STEP).min(n);
        let batch = RecordBatch::try_from_iter(make(from, to))?;
        if writer.is_none() {
            writer = Some(ArrowWriter::try_new(
                BufWriter::new(File::create(path)?),
                batch.schema(),
                Some(properties.clone()),
            )?);
        }
        if let Some(writer) = &mut writer {
            writer.write(&batch)?;
        }
        from = to;
    }
    writer.ok_or("no rows")?.close()?;
    Ok(std::fs::metadata(path)?.len())
}

fn documents(path: &Path, n: u64, make: &mut dyn FnMut(u64) -> String) -> Result<u64> {
    stream(path, n, &mut |from, to| {
        let (mut ids, mut texts) = (StringBuilder::new(), StringBuilder::new());
        for i in from..to {
            ids.append_value(format!("doc-{i:09}"));
            texts.append_value(make(i));
        }
        vec![("id", Arc::new(ids.finish()) as ArrayRef), ("text", Arc::new(texts.finish()))]
    })
}

fn night(
    options: &Options,
    seconds: u64,
    n: u64,
    make: &mut dyn FnMut(u64) -> String,
    flags: &[&str],
) -> Result<(Folder, Ran, u64)> {
    let mut folder = Folder::new(options, "")?;
    folder.limit_seconds = seconds;
    let bytes = documents(&folder.place("part-0.parquet"), n, make)?;
    let done = folder.run(flags)?;
    Ok((folder, done, bytes))
}

/// Seconds allowed at the scale of the trial, with what a small run takes anyway.
#[allow(clippy::cast_precision_loss, reason = "a time limit")]
fn seconds_allowed(options: &Options, seconds: u32) -> f64 {
    (f64::from(seconds) * options.scale).max(10.0)
}

fn in_time(options: &Options, done: &Ran, seconds: u32) -> Outcome {
    within_seconds(done, seconds_allowed(options, seconds))
}

fn within_seconds(done: &Ran, allowed: f64) -> Outcome {
    expect(done.seconds <= allowed, || format!("{:.0} s, {allowed:.0} allowed", done.seconds))
}

/// Of a load that has one size, whatever the scale.
const BALL_SECONDS: f64 = 300.0;

fn pairs(done: &Ran) -> u64 {
    done.summary()["n_pairs"].as_u64().unwrap_or(u64::MAX)
}

/// Ends for lack of what it was given, and says so.
fn stopped_cleanly(folder: &Folder, done: &Ran) -> Outcome {
    let needle = if done.code == 65 { "--max-pairs" } else { "memory-limit" };
    folder.refused(done, &[65, 74], &[needle])
}

fn identical(options: &Options, checks: &mut Checks) -> Result<()> {
    let n = options.scaled(1_000_000);
    let same = text(1, 150);
    let (folder, done, _) = night(options, 600, n, &mut |_| same.clone(), &[])?;
    figures(checks, &format!("{n} documents"), &done);
    let outcome = folder
        .published_soundly(&done, &[])
        .map(drop)
        .and(expect(pairs(&done) == n - 1, || format!("{} pairs, expected {}", done.summary()["n_pairs"], n - 1)));
    checks.count("forest", outcome.and(in_time(options, &done, 60)).and(within(&done, GIB)));
    // All pairs are refused for their number, before they fill the disk: few documents, lest a failure of this trial does.
    let few = n.min(5000);
    let flags = ["--pairs", "all", "--max-pairs", "100000"];
    let (folder, done, _) = night(options, 600, few, &mut |_| same.clone(), &flags)?;
    figures(checks, &format!("{few} documents, --pairs all, 100,000 allowed"), &done);
    checks.count("all", folder.refused(&done, &[65], &["--max-pairs"]).and(within(&done, 256 << 20)));
    Ok(())
}

fn templates(options: &Options, checks: &mut Checks) -> Result<()> {
    let n = options.scaled(1_000_000);
    let base: Vec<String> = (0..1000).map(|i| text(i, 100)).collect();
    // Such a night is what the breakers are for.
    let flags = ["--memory-limit", "4GiB", "--no-breakers"];
    let mut make = |i: u64| format!("{} own{i:x}", base[usize::try_from(i % 1000).unwrap_or_default()]);
    let (folder, done, _) = night(options, 1200, n, &mut make, &flags)?;
    figures(checks, &format!("{n} documents"), &done);
    let outcome = if done.code == 0 {
        folder
            .published_soundly(&done, &["--memory-limit", "4GiB"])
            .map(drop)
            .and(expect(pairs(&done) < n, || done.stdout.clone()))
    } else {
        stopped_cleanly(&folder, &done)
    };
    checks.count("the night", outcome.and(within(&done, 4 * GIB + (256 << 20))));
    Ok(())
}

/// Joins a file of fingerprints with itself.
fn self_join(folder: &Folder, more: &[&str]) -> Result<Ran> {
    let args = ["join", "--queries", "queries.parquet", "--self", "--output", "out", "--spill-dir", "spill", "--json"];
    folder.command(&args).args(more).run()
}

fn ball(options: &Options, checks: &mut Checks) -> Result<()> {
    const CENTRE: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut ball = vec![CENTRE];
    for a in 0..64 {
        ball.push(CENTRE ^ 1 << a);
        for b in 0..a {
            ball.push(CENTRE ^ 1 << a ^ 1 << b);
            ball.extend((0..b).map(|c| CENTRE ^ 1 << a ^ 1 << b ^ 1 << c));
        }
    }
    let n = ball.len() as u64;
    let mut folder = Folder::new(options, "")?;
    folder.limit_seconds = 600;
    fingerprints(&folder.path().join("queries.parquet"), n, &mut |i| ball[usize::try_from(i).unwrap_or_default()])?;
    let all = ["--max-distance", "3", "--pairs", "all", "--memory-limit", "4GiB"];
    let done = self_join(&folder, &all)?;
    figures(checks, &format!("{n} fingerprints, --pairs all"), &done);
    // Pairs at distance 1, 2, 3 of points at distance at most 3 from the centre.
    let expected = ball_pairs();
    let outcome = if done.code == 0 {
        expect(pairs(&done) == expected, || format!("{} pairs, expected {expected}", done.summary()["n_pairs"]))
    } else {
        stopped_cleanly(&folder, &done)
    };
    checks
        .count("all pairs", outcome.and(within_seconds(&done, BALL_SECONDS)).and(within(&done, 4 * GIB + (256 << 20))));
    let forest = ["--max-distance", "3", "--replace", "--memory-limit", "4GiB"];
    let done = self_join(&folder, &forest)?;
    figures(checks, "a forest", &done);
    let right = expect(done.code == 0 && pairs(&done) == n - 1, || done.said());
    checks.count("forest", right.and(within_seconds(&done, BALL_SECONDS)).and(within(&done, 4 * GIB + (256 << 20))));
    Ok(())
}

/// Returns how many unordered pairs of 64-bit values of weight at most 3 differ in at most 3 bits: choose the bits that only the one has, only
/// the other has, and both have.
fn ball_pairs() -> u64 {
    let choose = |n: u64, k: u64| (0..k).fold(1, |c, i| c * (n - i) / (i + 1));
    let mut ordered = 0;
    for one in 0..=3 {
        for other in 0..=(3 - one) {
            let both = 3 - one.max(other);
            let differing = choose(64, one) * choose(64 - one, other);
            if one + other > 0 {
                ordered += differing * (0..=both).map(|b| choose(64 - one - other, b)).sum::<u64>();
            }
        }
    }
    ordered / 2
}

fn fingerprints(path: &Path, n: u64, make: &mut dyn FnMut(u64) -> u64) -> Result<u64> {
    stream(path, n, &mut |from, to| {
        let mut values = UInt64Builder::new();
        for i in from..to {
            values.append_value(make(i));
        }
        vec![("fingerprint", Arc::new(values.finish()) as ArrayRef)]
    })
}

/// About 1 KB each, of words that compress: 32 of 64 phrases in random order. One in a hundred is the copy of an earlier one.
fn phrases(rng: &mut fastrand::Rng, phrases: &[String]) -> String {
    let mut document = String::with_capacity(1100);
    for _ in 0..16 {
        document.push_str(&phrases[rng.usize(..phrases.len())]);
        document.push(' ');
        document.push_str(&format!("n{:x} ", rng.u16(..)));
    }
    document
}

fn many_documents(options: &Options, checks: &mut Checks) -> Result<()> {
    let n = options.scaled(10_000_000);
    let known: Vec<String> = (0..4096).map(|i| text(i, 8)).collect();
    let mut make = |i: u64| {
        let original = if i % 100 == 99 { i - 50 } else { i };
        phrases(&mut fastrand::Rng::with_seed(original), &known)
    };
    let flags = ["--memory-limit", "4GiB"];
    let (folder, done, bytes) = night(options, 2400, n, &mut make, &flags)?;
    figures(checks, &format!("{n} documents, {} MB of Parquet", bytes / 1_000_000), &done);
    let copies = expect(pairs(&done) >= n / 100, || format!("{} pairs, {} copies", done.summary()["n_pairs"], n / 100));
    let sound = folder.published_soundly(&done, &flags).map(drop);
    checks.count("the night", sound.and(copies).and(in_time(options, &done, 1200)).and(within(&done, 4 * GIB)));
    Ok(())
}

fn many_fingerprints(options: &Options, checks: &mut Checks) -> Result<()> {
    let n = options.scaled(100_000_000);
    let mut folder = Folder::new(options, "")?;
    folder.limit_seconds = 3600;
    let mut rng = fastrand::Rng::with_seed(options.seed);
    // Uniform and in order, as a store has them.
    let step = u64::MAX / n;
    fingerprints(&folder.path().join("queries.parquet"), n, &mut |i| i * step + rng.u64(..step))?;
    fingerprints(&folder.path().join("new.parquet"), n.div_ceil(100), &mut |_| rng.u64(..))?;
    let limits = ["--max-distance", "3", "--memory-limit", "4GiB"];
    let existing = ["join", "--queries", "new.parquet", "--existing", "queries.parquet", "--output", "out-existing"];
    let done = folder.command(&existing).args(&["--spill-dir", "spill", "--json"]).args(&limits).run()?;
    figures(checks, &format!("{n} fingerprints as existing ones"), &done);
    let little = |done: &Ran| {
        let spilled = spilled_bytes(&done.summary());
        expect(done.code != 0 || spilled <= 3 * 8 * n, || format!("{spilled} bytes spilled"))
    };
    let right = expect(done.code == 0 && pairs(&done) < n, || done.said());
    checks.count("as existing ones", right.and(little(&done)).and(within(&done, 4 * GIB)));
    let done = self_join(&folder, &limits)?;
    figures(checks, &format!("{n} fingerprints with each other"), &done);
    let right = expect(done.code == 0 && pairs(&done) < n, || done.said());
    checks.count("with each other", right.and(little(&done)).and(within(&done, 4 * GIB)));
    Ok(())
}

fn more_than_memory(options: &Options, checks: &mut Checks) -> Result<()> {
    // 4 GiB of texts, in documents long enough that their fingerprints fit.
    let n = options.scaled(40_000);
    let known: Vec<String> = (0..4096).map(|i| text(i, 8)).collect();
    let mut make = |i: u64| {
        let mut rng = fastrand::Rng::with_seed(i);
        (0..100).map(|_| phrases(&mut rng, &known)).collect::<String>()
    };
    let flags = ["--memory-limit", "256MiB", "--reduce-memory", "64MiB"];
    let (folder, done, bytes) = night(options, 1200, n, &mut make, &flags)?;
    figures(checks, &format!("{n} documents of 100 KB, {} MB of Parquet", bytes / 1_000_000), &done);
    let sound = folder.published_soundly(&done, &flags).map(drop);
    checks.count("the night", sound.and(within(&done, 512 << 20)));
    Ok(())
}

fn common_text(options: &Options, checks: &mut Checks) -> Result<()> {
    const LIMIT: u64 = 128 << 20;
    const N_STREAMS: usize = 60;
    const N_LINES: usize = 4;
    let n = options.scaled(300_000);
    let mut folder = Folder::new(options, "")?;
    folder.limit_seconds = 1200;
    let page = text(1, 300);
    stream(&folder.place("part-0.parquet"), n, &mut |from, to| {
        let (mut ids, mut texts) = (StringBuilder::new(), StringBuilder::new());
        for i in from..to {
            ids.append_value(format!("{i:0210}"));
            texts.append_value(format!("{page} {}", text(i % 1000, 1)));
        }
        vec![("id", Arc::new(ids.finish()) as ArrayRef), ("text", Arc::new(texts.finish()))]
    })?;
    let done = folder.run(&["--no-breakers"])?;
    checks.count("the night", folder.published_soundly(&done, &["--no-breakers"]).map(drop));
    let args = ["serve", "--config", "job.toml", "--json", "--listen", "127.0.0.1:0", "--memory-limit", "128MiB"];
    let serving = Serving::start(&folder.command(&args).timeout(1200))?;
    let answers = serving.streams(N_STREAMS, N_LINES, &json!({ "text": page }))?;
    let done = serving.stop(Signal::SIGTERM)?;
    let whole = |answer: &&Value| answer["n_matches"] == n && answer["matches"] == answers[0]["matches"];
    let n_whole = answers.iter().filter(whole).count();
    checks.note(format!("{n} copies: {n_whole} answers in {:.1} s, {} MiB", done.seconds, mib(done.peak_rss)));
    checks.count("the answers", expect(n_whole == N_STREAMS * N_LINES, || format!("{:.400}", answers[0].to_string())));
    checks.count("memory", within(&done, LIMIT));
    Ok(())
}
