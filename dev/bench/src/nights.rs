//! Generates the documents of many nights. The texts are random, so their fingerprints are spread evenly.

use std::fmt::Write;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::Result;
use crate::data::Rng;

/// The nights to write.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of nights, from 2026-01-01 on.
    #[arg(long, default_value_t = 365)]
    nights: u64,
    /// Binary logarithm of the number of documents of a night.
    #[arg(long, default_value_t = 16)]
    log_documents: u32,
    /// Number of words of a document.
    #[arg(long, default_value_t = 24)]
    words: u64,
    /// Number of different words.
    #[arg(long, default_value_t = 1_000_000)]
    vocabulary: u64,
    /// Percentage of documents that repeat an earlier text of the night except for one word.
    #[arg(long, default_value_t = 0)]
    repeats: u64,
    /// Folder for `dt=YYYY-MM-DD/part-0.parquet`.
    #[arg(long)]
    output: PathBuf,
}

/// The number of documents that are made and written at once.
const BATCH_ROWS: u64 = 1 << 14;

impl Args {
    /// Writes the nights, and prints their dates, one per line.
    pub fn run(&self) -> Result<()> {
        for night in 0..self.nights {
            let date = date(night);
            let folder = self.output.join(format!("dt={date}"));
            std::fs::create_dir_all(&folder)?;
            self.write(night, &date, File::create(folder.join("part-0.parquet"))?)?;
            println!("{date}");
        }
        Ok(())
    }

    fn write(&self, night: u64, date: &str, file: File) -> Result<()> {
        let mut open = None;
        let n = 1u64 << self.log_documents;
        for start in (0..n).step_by(usize::try_from(BATCH_ROWS)?) {
            let rows = start..n.min(start + BATCH_ROWS);
            let ids = StringArray::from_iter_values(rows.clone().map(|i| format!("{date}/{i:08}")));
            let texts = StringArray::from_iter_values(rows.map(|i| self.text(night, i)));
            let columns = [("id", Arc::new(ids) as ArrayRef), ("text", Arc::new(texts))];
            let batch = RecordBatch::try_from_iter(columns)?;
            let writer = match &mut open {
                Some(writer) => writer,
                None => open.insert(ArrowWriter::try_new(file.try_clone()?, batch.schema(), Some(self.properties()))?),
            };
            writer.write(&batch)?;
        }
        open.map_or(Ok(()), |writer| writer.close().map(|_| ()))?;
        Ok(())
    }

    /// Returns the properties for compressed row groups of about 64 MiB of text.
    fn properties(&self) -> WriterProperties {
        let rows = (8 << 20) / self.words.max(1);
        WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(usize::try_from(rows.max(1)).ok())
            .build()
    }

    /// Returns the text of a document. Besides the options, the text depends only on the night and the number of the
    /// document.
    fn text(&self, night: u64, i: u64) -> String {
        let words_of = |i: u64| Rng((night << 40) ^ i.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let mut chance = Rng(!words_of(i).0);
        let repeats = i > 0 && chance.next() % 100 < self.repeats;
        let changed = chance.next() % self.words.max(1);
        let mut words = words_of(if repeats { chance.next() % i } else { i });
        (0..self.words).fold(String::new(), |mut text, at| {
            let word = words.next();
            let word = if repeats && at == changed { chance.next() } else { word };
            let _ = write!(text, "w{:x} ", word % self.vocabulary.max(1));
            text
        })
    }
}

/// Returns the date that is `days` days after 2026-01-01.
fn date(mut days: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 2026;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}
