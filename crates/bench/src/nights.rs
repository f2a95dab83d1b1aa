//! Documents of many nights: short random texts, whose fingerprints are spread evenly.

use std::fmt::Write;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;

use crate::Result;
use crate::data::Rng;

/// Nights to write.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Nights, from 2026-01-01 on.
    #[arg(long, default_value_t = 365)]
    nights: u64,
    /// Binary logarithm of the documents of a night.
    #[arg(long, default_value_t = 16)]
    log_documents: u32,
    /// Folder for `dt=YYYY-MM-DD/part-0.parquet`.
    #[arg(long)]
    output: PathBuf,
}

impl Args {
    /// Writes the nights and prints their dates, one a line.
    pub fn run(&self) -> Result<()> {
        for night in 0..self.nights {
            let date = date(night);
            let folder = self.output.join(format!("dt={date}"));
            std::fs::create_dir_all(&folder)?;
            let mut rng = Rng(night);
            let n = 1u64 << self.log_documents;
            let ids = StringArray::from_iter_values((0..n).map(|i| format!("{date}/{i:08}")));
            let texts = StringArray::from_iter_values((0..n).map(|_| text(&mut rng)));
            let columns = [("id", Arc::new(ids) as ArrayRef), ("text", Arc::new(texts))];
            let batch = RecordBatch::try_from_iter(columns)?;
            let mut writer = ArrowWriter::try_new(File::create(folder.join("part-0.parquet"))?, batch.schema(), None)?;
            writer.write(&batch)?;
            writer.close()?;
            println!("{date}");
        }
        Ok(())
    }
}

/// 24 of a million words.
fn text(rng: &mut Rng) -> String {
    (0..24).fold(String::new(), |mut text, _| {
        let _ = write!(text, "w{:x} ", rng.next() % 1_000_000);
        text
    })
}

/// Days after 2026-01-01, for some centuries.
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
