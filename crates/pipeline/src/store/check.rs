//! `store check`: every file of every night against what the newest commit says of it.

use arrow::array::Array;
use arrow::datatypes::UInt64Type;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use serde::Serialize;

use super::Store;
use crate::columns::{Columns, fixed};
use crate::dataset::FileRecord;
use crate::digest::HashingWriter;
use crate::error::{PipelineError, Result};
use crate::parquet_file::ParquetFile;
use crate::progress::Progress;
use crate::schema::{CONFIG_DIGEST, DOC_ID, FINGERPRINT, TEXT_HASH};
use crate::storage::InputFile;

/// What `store check` found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreReport {
    /// The store.
    pub store: String,
    /// Files read.
    pub n_files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Rows whose order was checked.
    pub n_rows: u64,
    /// Everything that is wrong; empty in a sound store.
    pub problems: Vec<StoreProblem>,
}

/// A file that is not what the store's commit says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreProblem {
    /// The file.
    pub file: String,
    /// What is wrong.
    pub problem: String,
}

impl Store {
    /// Reads every file: size, SHA-256, rows, order and config digest.
    pub(crate) async fn check(&self, progress: &Progress) -> Result<StoreReport> {
        let n_files = self.nights().iter().map(|n| n.run.files.len() as u64).sum();
        progress.start("check", "files", n_files);
        let mut report =
            StoreReport { store: self.folder().url().to_owned(), n_files, bytes: 0, n_rows: 0, problems: Vec::new() };
        for night in self.nights() {
            for recorded in &night.run.files {
                let place = self.run_folder(&night.run.digest).join(&recorded.name);
                let url = place.url().to_owned();
                match self.check_file(place.file().await, recorded, &mut report).await {
                    Ok(()) => {}
                    Err(error @ PipelineError::Store { .. })
                        if error.kind() != crate::error::ErrorKind::InputMissing =>
                    {
                        return Err(error);
                    }
                    Err(error) => report.problems.push(StoreProblem { file: url, problem: reason(&error) }),
                }
                progress.advance(1);
            }
        }
        Ok(report)
    }

    async fn check_file(&self, file: Result<InputFile>, recorded: &FileRecord, report: &mut StoreReport) -> Result<()> {
        let file = file?;
        report.bytes += file.size;
        let (bytes, sha256) = hash(&file).await?;
        if (bytes, &sha256) != (recorded.bytes, &recorded.sha256) {
            let reason =
                format!("{bytes} bytes with SHA-256 {sha256}, recorded are {} and {}", recorded.bytes, recorded.sha256);
            return Err(PipelineError::bad_file(file.url, reason));
        }
        let parquet = ParquetFile::open(file).await?;
        if parquet.n_rows() != recorded.rows {
            let reason = format!("{} rows, recorded are {}", parquet.n_rows(), recorded.rows);
            return Err(PipelineError::bad_file(&parquet.file.url, reason));
        }
        self.check_digest(&parquet)?;
        check_order(&parquet).await?;
        report.n_rows += recorded.rows;
        Ok(())
    }

    fn check_digest(&self, parquet: &ParquetFile) -> Result<()> {
        let stored = parquet.key_value(CONFIG_DIGEST);
        let expected = self.commit.as_ref().map(|c| c.config_digest.as_str());
        if stored.as_deref() == expected {
            return Ok(());
        }
        Err(PipelineError::bad_file(&parquet.file.url, "made with another configuration than the store's"))
    }
}

/// What is wrong, without the file's name that stands beside it.
fn reason(error: &PipelineError) -> String {
    match error {
        PipelineError::BadFile { reason, .. } | PipelineError::Damaged { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

async fn hash(file: &InputFile) -> Result<(u64, String)> {
    use std::io::Write;
    let fail = |source| PipelineError::Store { action: "read", url: file.url.clone(), source };
    let mut stream = file.store.get(&file.path).await.map_err(fail)?.into_stream();
    let mut hasher = HashingWriter::new(std::io::sink());
    while let Some(piece) = stream.try_next().await.map_err(fail)? {
        let piece: Bytes = piece;
        hasher.write_all(&piece).map_err(PipelineError::io(&file.url))?;
    }
    let (_, bytes, sha256) = hasher.finish();
    Ok((bytes, sha256.0))
}

/// Sorted by (`fingerprint`, `doc_id`), (`text_hash`, `doc_id`) or `id_hash`, whichever the file has.
async fn check_order(parquet: &ParquetFile) -> Result<()> {
    let mut batches = parquet.stream(parquet.whole(&[FINGERPRINT, TEXT_HASH, "id_hash", DOC_ID]))?;
    let mut previous: Option<(u128, String)> = None;
    let mut row = 0u64;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        for i in 0..batch.num_rows() {
            row += 1;
            let key = (leading_key(&columns, i)?, id(&columns, i)?);
            if previous.as_ref().is_some_and(|p| *p > key) {
                return Err(PipelineError::bad_file(&parquet.file.url, format!("row {row} is out of order")));
            }
            previous = Some(key);
        }
    }
    Ok(())
}

fn leading_key(columns: &Columns<'_>, row: usize) -> Result<u128> {
    for name in [FINGERPRINT, "id_hash"] {
        if columns.batch.column_by_name(name).is_some() {
            return Ok(u128::from(columns.primitive::<UInt64Type>(name)?.value(row)));
        }
    }
    Ok(fixed(columns.bytes(TEXT_HASH)?, row).map_or(0, u128::from_be_bytes))
}

fn id(columns: &Columns<'_>, row: usize) -> Result<String> {
    match columns.batch.column_by_name(DOC_ID) {
        Some(_) => {
            columns.strings(DOC_ID).map(|ids| if ids.is_valid(row) { ids.value(row).to_owned() } else { String::new() })
        }
        None => Ok(String::new()),
    }
}
