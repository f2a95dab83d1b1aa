//! B2 to B5: thousands of damaged files, each read by a run of its own and compared with what the undamaged one gives.

use std::path::Path;

use arrow::array::{ArrayRef, RecordBatch};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use nearprint_harness::Result;
use nearprint_harness::folder::{files_below, parquet_with};
use nearprint_harness::measured::{Checks, Options, mib, on_threads};
use nearprint_harness::row::Row;
use nearprint_harness::runner::Run;

/// Documents whose pages have checksums (scripts/make_page_crc_fixture.py).
const WITH_CRC: &[u8] = include_bytes!("../data/page_crc.parquet");

/// Memory above that of the undamaged file which a damaged one may take.
const MORE_MEMORY: u64 = 256 << 20;

/// The end of a damaged file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// 65, and the message names the file.
    Refused,
    /// 0, with the output of the undamaged file.
    Identical,
    /// 0, with other output.
    Other,
    Wrong(String),
}

/// A way to damage files, and what must come of it.
struct Damage {
    id: &'static str,
    trial: &'static str,
    required: &'static str,
    n: u64,
    allowed: &'static [End],
    content: Vec<u8>,
    damage: fn(&mut Vec<u8>, &mut fastrand::Rng),
}

pub fn run(options: &Options) -> Result<Vec<Row>> {
    let plain = without_crc()?;
    let damages = [
        Damage {
            id: "B2",
            trial: "truncated at random points",
            required: "65, naming the file",
            n: 100,
            allowed: &[End::Refused],
            content: plain.clone(),
            damage: truncate,
        },
        Damage {
            id: "B3",
            trial: "footer mutations",
            required: "65 naming the file, or 0; no panic, hang, or 256 MiB more",
            n: 3000,
            allowed: &[End::Refused, End::Identical, End::Other],
            content: plain.clone(),
            damage: |content, rng| mutate_footer(content, rng),
        },
        Damage {
            id: "B4",
            trial: "single bit flips, no page checksums",
            required: "65 naming the file, or 0; no panic, hang, or 256 MiB more",
            n: 3000,
            allowed: &[End::Refused, End::Identical, End::Other],
            content: plain,
            damage: |content, rng| flip_bit(content, rng),
        },
        Damage {
            id: "B5",
            trial: "single bit flips, page checksums",
            required: "65 naming the file, or 0 with the undamaged file's output",
            n: 3000,
            allowed: &[End::Refused, End::Identical],
            content: WITH_CRC.to_vec(),
            damage: |content, rng| flip_bit(content, rng),
        },
    ];
    damages.iter().filter(|d| options.wants(d.id)).map(|d| row(options, d)).collect()
}

fn row(options: &Options, damage: &Damage) -> Result<Row> {
    let scratch = options.scratch()?;
    let nearprint = options.nearprint()?;
    let mut checks = Checks::new(damage.id, damage.trial, damage.required);
    let whole = scratch.path().join("whole");
    let (end, expected, baseline) = read(&nearprint, &whole, &damage.content, None, u64::MAX)?;
    if end != End::Other || expected.is_empty() {
        checks.count("the undamaged file", Err(format!("{end:?}")));
        return Ok(checks.finish());
    }
    let n = options.scaled(damage.n);
    let ends = on_threads(options.jobs, usize::try_from(n)?, |i| {
        let mut content = damage.content.clone();
        let mut rng = fastrand::Rng::with_seed(options.seed.wrapping_mul(1_000_003) + i as u64);
        (damage.damage)(&mut content, &mut rng);
        let folder = scratch.path().join(i.to_string());
        let limit = baseline.saturating_add(MORE_MEMORY);
        let (end, _, rss) = read(&nearprint, &folder, &content, Some(&expected), limit)?;
        std::fs::remove_dir_all(folder)?;
        Ok((end, rss))
    })?;
    for (i, (end, _)) in ends.iter().enumerate() {
        let outcome = if damage.allowed.contains(end) { Ok(()) } else { Err(format!("{end:?}")) };
        checks.count(&format!("seed {} number {i}", options.seed), outcome);
    }
    let count = |wanted: &End| ends.iter().filter(|(end, _)| end == wanted).count();
    let most = ends.iter().map(|e| e.1).max().unwrap_or_default();
    checks.note(format!(
        "{} refused, {} identical, {} read with other output; peak {} MiB, undamaged {} MiB",
        count(&End::Refused),
        count(&End::Identical),
        count(&End::Other),
        mib(most),
        mib(baseline),
    ));
    Ok(checks.finish())
}

type Files = Vec<(String, Vec<u8>)>;

/// Returns the end of a run of one file, its output, and its memory.
fn read(
    nearprint: &Path,
    folder: &Path,
    content: &[u8],
    expected: Option<&Files>,
    most: u64,
) -> Result<(End, Files, u64)> {
    std::fs::create_dir(folder)?;
    std::fs::write(folder.join("damaged.parquet"), content)?;
    let args = [
        "fingerprint",
        "--documents",
        "damaged.parquet",
        "--output",
        "out",
        "--threads",
        "1",
        "--spill-dir",
        ".",
        "--json",
    ];
    let done = Run::new(nearprint, folder, &args).timeout(60).run()?;
    let files: Files = files_below(&folder.join("out"))
        .into_iter()
        .filter(|f| f.extension().is_some_and(|e| e == "parquet") && !f.to_string_lossy().contains("quarantine"))
        .map(|f| Ok((f.strip_prefix(folder)?.display().to_string(), std::fs::read(&f)?)))
        .collect::<Result<_>>()?;
    let end = if let Some(defect) = done.defect() {
        End::Wrong(defect)
    } else if done.peak_rss > most {
        End::Wrong(format!("{} MiB held; {}", mib(done.peak_rss), done.said()))
    } else if done.code == 65 && done.error().contains("damaged.parquet") && files.is_empty() {
        End::Refused
    } else if done.code == 0 && !files.is_empty() {
        if expected == Some(&files) { End::Identical } else { End::Other }
    } else {
        End::Wrong(done.said())
    };
    Ok((end, files, done.peak_rss))
}

/// The same rows, as the parquet crate writes them: without page checksums.
fn without_crc() -> Result<Vec<u8>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from_static(WITH_CRC))?.build()?;
    let batches = reader.collect::<std::result::Result<Vec<RecordBatch>, _>>()?;
    let schema = batches.first().ok_or("the fixture is empty")?.schema();
    let all = arrow::compute::concat_batches(&schema, &batches)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(60))
        .set_data_page_size_limit(4096)
        .set_statistics_enabled(EnabledStatistics::Page)
        .build();
    let columns: Vec<(&str, ArrayRef)> = ["id", "text"].into_iter().zip(all.columns().iter().cloned()).collect();
    parquet_with(&columns, properties)
}

fn truncate(content: &mut Vec<u8>, rng: &mut fastrand::Rng) {
    content.truncate(rng.usize(..content.len()));
}

fn flip_bit(content: &mut [u8], rng: &mut fastrand::Rng) {
    let at = rng.usize(..content.len());
    content[at] ^= 1 << rng.u8(..8);
}

/// One to four bytes of the footer, its length and the magic: a bit flipped, set to an extreme, or any other value.
fn mutate_footer(content: &mut [u8], rng: &mut fastrand::Rng) {
    let end = content.len();
    let length = content[end - 8..end - 4].iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
    let begin = end - 8 - length;
    for _ in 0..rng.usize(1..=4) {
        let at = rng.usize(begin..end);
        content[at] = match rng.u8(..3) {
            0 => content[at] ^ 1 << rng.u8(..8),
            1 => [0x00, 0x01, 0x7f, 0x80, 0xff][rng.usize(..5)],
            _ => rng.u8(..),
        };
    }
}
