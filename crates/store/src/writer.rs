//! Writing a run: sorted files in the spill folder. A run is named by its content.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::SchemaRef;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::{CONFIG_DIGEST, EMPTY, IDS, SHADOWS, SHORT};
use nearprint_parquet::{BATCH_ROWS, DatasetWriter, FileRecord, StagedFile, create_folder};
use nearprint_storage::Sha256Hex;
use xxhash_rust::xxh3::xxh3_64;

use crate::commit::RunRecord;
use crate::shadows::Shadow;

/// A run that waits to be uploaded.
pub struct StagedRun {
    /// The record that the commit will hold.
    pub record: RunRecord,
    /// The files of the run.
    pub files: Vec<StagedFile>,
    /// The file of shadows as it would be if no night of a later date existed. Empty if the run's own file of shadows
    /// is like that.
    pub shadows_of_earlier: Vec<StagedFile>,
}

/// Returns the hash by which an id is found in a run: XXH3 with 64 bits.
pub fn id_hash(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// Writes the files of a run below a folder.
pub struct RunWriter<'a> {
    folder: &'a Path,
    metadata: [(&'static str, &'a str); 1],
    fingerprints: DatasetWriter,
    short: DatasetWriter,
    empty: DatasetWriter,
    n_fingerprints: u64,
    n_short: u64,
}

impl<'a> RunWriter<'a> {
    /// Creates a writer. The folder may exist. `config_digest` is the digest of the configuration that made the
    /// fingerprints. `columns` are those of documents with a fingerprint: [`RUN`](nearprint_parquet::schema::RUN), or
    /// what [`with_all_sketches`](nearprint_parquet::schema::with_all_sketches) makes of it.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn try_new(folder: &'a Path, config_digest: &'a str, columns: &SchemaRef) -> Result<Self> {
        create_folder(folder)?;
        let metadata = [(CONFIG_DIGEST, config_digest)];
        let writer = |name, schema| DatasetWriter::new(folder, name, schema, &metadata).in_one_file();
        Ok(Self {
            fingerprints: writer("fingerprints", columns),
            short: writer("short", &SHORT),
            empty: writer("empty", &EMPTY),
            folder,
            metadata,
            n_fingerprints: 0,
            n_short: 0,
        })
    }

    /// Writes documents with a fingerprint: the next rows, by (`fingerprint`, `doc_id`).
    ///
    /// # Errors
    /// An error of the disk.
    pub fn fingerprints(&mut self, rows: RecordBatch) -> Result<()> {
        self.n_fingerprints += rows.num_rows() as u64;
        self.fingerprints.write(rows)
    }

    /// Writes documents below the feature floor: the next rows of [`SHORT`], in its order.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn short(&mut self, rows: RecordBatch) -> Result<()> {
        self.n_short += rows.num_rows() as u64;
        self.short.write(rows)
    }

    /// Writes documents without text: the next rows of [`EMPTY`], in its order.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn empty(&mut self, rows: RecordBatch) -> Result<()> {
        self.empty.write(rows)
    }

    /// Writes the ids and shadows, and returns the run. `ids` are pairs of ([`id_hash`], row of the run), in the order
    /// of [`IDS`]; `shadows` must be sorted. The rows of a run are numbered from 0 through its fingerprints, then its
    /// short texts, then its documents without text.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn finish(self, ids: impl Iterator<Item = (u64, u32)>, shadows: &[Shadow]) -> Result<StagedRun> {
        let Self { folder, metadata, fingerprints, short, empty, n_fingerprints, n_short } = self;
        debug_assert!(shadows.is_sorted(), "shadows have one order, so that equal runs have equal bytes");
        let writer = |folder, name, schema| DatasetWriter::new(folder, name, schema, &metadata).in_one_file();
        let mut files = fingerprints.finish()?;
        files.extend(short.finish()?);
        files.extend(empty.finish()?);
        files.extend(write_ids(ids, writer(folder, "ids", &IDS))?);
        files.extend(write_shadows(shadows.iter(), writer(folder, "shadows", &SHADOWS))?);
        let mut shadows_of_earlier = Vec::new();
        if shadows.iter().any(|shadow| !shadow.by.is_empty()) {
            let (folder, of_earlier) = (folder.join("of-earlier"), shadows.iter().filter(|s| s.by.is_empty()));
            create_folder(&folder)?;
            shadows_of_earlier = write_shadows(of_earlier, writer(&folder, "shadows", &SHADOWS))?;
        }
        let records: Vec<FileRecord> = files.iter().map(|f| f.record.clone()).collect();
        let record = RunRecord { digest: run_digest(&records), n_fingerprints, n_short, files: records };
        Ok(StagedRun { record, files, shadows_of_earlier })
    }
}

/// Returns the name of a run, which is a digest of its content.
pub(crate) fn run_digest(files: &[FileRecord]) -> String {
    debug_assert!(
        files.iter().all(|f| f.sha256.len() == 64 && !f.name.is_empty()),
        "a digest of files rests on their names and SHA-256"
    );
    let lines: String = files.iter().map(|f| format!("{} {}\n", f.name, f.sha256)).collect();
    Sha256Hex::of(lines.as_bytes()).0[..32].to_owned()
}

fn write_ids(ids: impl Iterator<Item = (u64, u32)>, mut writer: DatasetWriter) -> Result<Vec<StagedFile>> {
    let ids: Vec<(u64, u32)> = ids.collect();
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

fn internal(error: arrow::error::ArrowError) -> Fault {
    Fault::internal("store", error)
}
