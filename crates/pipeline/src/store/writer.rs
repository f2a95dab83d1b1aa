//! Writing a run: sorted files in the spill folder, named by what is in them.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use xxhash_rust::xxh3::xxh3_64;

use super::commit::RunRecord;
use super::reader::{Recrawls, Shadow};
use crate::dataset::{DatasetWriter, FileRecord, StagedFile, create_folder};
use crate::decisions::Decisions;
use crate::digest::Sha256Hex;
use crate::error::{PipelineError, Result};
use crate::fingerprint_stage::{RowColumns, fingerprint_order};
use crate::query_batch::{QueryBatch, SkipReason};
use crate::schema::{CONFIG_DIGEST, EMPTY, IDS, RUN, SHADOWS, SHORT};
use crate::tasks::BATCH_ROWS;

/// A run that waits for its upload.
pub(crate) struct StagedRun {
    pub(crate) record: RunRecord,
    pub(crate) files: Vec<StagedFile>,
    /// The shadows that the run had when no night of a later date was there; none where it has no others now.
    pub(crate) shadows_of_earlier: Vec<StagedFile>,
}

/// Rows of a run: those with a fingerprint by (fingerprint, id), then the short texts by (text hash, id), then documents without
/// text by id.
pub(super) struct RunOrder {
    pub(super) fingerprinted: Vec<u32>,
    pub(super) short: Vec<u32>,
    pub(super) empty: Vec<u32>,
}

impl RunOrder {
    pub(super) fn of(batch: &QueryBatch) -> Self {
        let mut short: Vec<u32> =
            batch.rows().filter(|&row| batch.skipped.get(row) == Some(&SkipReason::TooShort)).collect();
        short.sort_by_key(|&row| (batch.text_hashes.get(row), row));
        let without_text =
            |row: &u32| matches!(batch.skipped.get(*row), Some(SkipReason::Empty | SkipReason::NullText));
        Self { fingerprinted: fingerprint_order(batch), short, empty: batch.rows().filter(without_text).collect() }
    }

    /// (row of the run, row of the batch)
    pub(super) fn rows(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(self.fingerprinted.iter().chain(&self.short).chain(&self.empty).copied())
    }
}

pub(crate) fn id_hash(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

pub(crate) fn write_run(
    batch: &QueryBatch,
    decisions: &Decisions,
    recrawls: &Recrawls,
    config_digest: &str,
    folder: &Path,
) -> Result<StagedRun> {
    create_folder(folder)?;
    let order = RunOrder::of(batch);
    let metadata = [(CONFIG_DIGEST, config_digest)];
    let writer = |name, schema| DatasetWriter::new(folder, name, schema, &metadata).in_one_file();
    let mut part = writer("fingerprints", &RUN);
    for rows in order.fingerprinted.chunks(BATCH_ROWS) {
        let columns = RowColumns { batch, rows };
        let canonical = canonical_ids(batch, decisions, rows)?;
        let arrays =
            vec![columns.fingerprints(), columns.ids(), columns.sketches()?, columns.text_hashes()?, canonical];
        part.write(RecordBatch::try_new(Arc::clone(&RUN), arrays).map_err(internal)?)?;
    }
    let mut short = writer("short", &SHORT);
    for rows in order.short.chunks(BATCH_ROWS) {
        let columns = RowColumns { batch, rows };
        let arrays = vec![columns.text_hashes()?, columns.ids(), canonical_ids(batch, decisions, rows)?];
        short.write(RecordBatch::try_new(Arc::clone(&SHORT), arrays).map_err(internal)?)?;
    }
    let mut empty = writer("empty", &EMPTY);
    for rows in order.empty.chunks(BATCH_ROWS) {
        let ids = RowColumns { batch, rows }.ids();
        empty.write(RecordBatch::try_new(Arc::clone(&EMPTY), vec![ids]).map_err(internal)?)?;
    }
    let mut files = part.finish()?;
    files.extend(short.finish()?);
    files.extend(empty.finish()?);
    files.extend(write_ids(batch, &order, writer("ids", &IDS))?);
    files.extend(write_shadows(recrawls.shadows.iter(), writer("shadows", &SHADOWS))?);
    let mut shadows_of_earlier = Vec::new();
    if recrawls.shadows.iter().any(|shadow| !shadow.by.is_empty()) {
        let (folder, of_earlier) = (folder.join("of-earlier"), recrawls.shadows.iter().filter(|s| s.by.is_empty()));
        create_folder(&folder)?;
        let writer = DatasetWriter::new(&folder, "shadows", &SHADOWS, &metadata).in_one_file();
        shadows_of_earlier = write_shadows(of_earlier, writer)?;
    }
    Ok(staged(files, shadows_of_earlier, &order))
}

fn staged(files: Vec<StagedFile>, shadows_of_earlier: Vec<StagedFile>, order: &RunOrder) -> StagedRun {
    let records: Vec<FileRecord> = files.iter().map(|f| f.record.clone()).collect();
    let record = RunRecord {
        digest: run_digest(&records),
        n_fingerprints: order.fingerprinted.len() as u64,
        n_short: order.short.len() as u64,
        files: records,
    };
    StagedRun { record, files, shadows_of_earlier }
}

/// A run is named by what is in it.
pub(super) fn run_digest(files: &[FileRecord]) -> String {
    let lines: String = files.iter().map(|f| format!("{} {}\n", f.name, f.sha256)).collect();
    Sha256Hex::of(lines.as_bytes()).0[..32].to_owned()
}

fn canonical_ids(batch: &QueryBatch, decisions: &Decisions, rows: &[u32]) -> Result<ArrayRef> {
    let ids: Result<StringArray> = rows.iter().map(|&row| decisions.canonical_id(batch, row)).collect();
    Ok(Arc::new(ids?))
}

fn write_ids(batch: &QueryBatch, order: &RunOrder, mut writer: DatasetWriter) -> Result<Vec<StagedFile>> {
    let mut ids: Vec<(u64, u32)> = order.rows().map(|(run_row, row)| (id_hash(&batch.id(row)), run_row)).collect();
    ids.sort_unstable();
    for rows in ids.chunks(BATCH_ROWS) {
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|r| r.0))),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.1))),
        ];
        writer.write(RecordBatch::try_new(Arc::clone(&IDS), arrays).map_err(internal)?)?;
    }
    writer.finish()
}

fn write_shadows<'a>(shadows: impl Iterator<Item = &'a Shadow>, mut writer: DatasetWriter) -> Result<Vec<StagedFile>> {
    let shadows: Vec<&Shadow> = shadows.collect();
    for rows in shadows.chunks(BATCH_ROWS) {
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|s| &*s.run))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|s| &*s.by))),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|s| s.row))),
        ];
        writer.write(RecordBatch::try_new(Arc::clone(&SHADOWS), arrays).map_err(internal)?)?;
    }
    writer.finish()
}

fn internal(error: arrow::error::ArrowError) -> PipelineError {
    PipelineError::Internal { stage: "store", reason: error.to_string() }
}
