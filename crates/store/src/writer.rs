//! Writing a run: sorted files in the spill folder. A run is named by its content.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::SchemaRef;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::{CONFIG_DIGEST, DEPENDENTS, EMPTY, IDS, REDECISIONS, SHADOWS, SHORT};
use nearprint_parquet::{BATCH_ROWS, DatasetWriter, FileRecord, StagedFile, create_folder};
use xxhash_rust::xxh3::xxh3_64;

use crate::commit::{RunRecord, run_digest};
use crate::redecided::{NewCanonical, Redecision};
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

impl StagedRun {
    /// Returns whether a published run has the same documents, decisions and order. Shadows are not compared.
    #[must_use]
    pub fn is_like(&self, published: &RunRecord) -> bool {
        let without_shadows = |files: &[FileRecord]| -> Vec<FileRecord> {
            files.iter().filter(|file| !file.name.starts_with("shadows/")).cloned().collect()
        };
        without_shadows(&published.files) == without_shadows(&self.record.files)
    }

    /// Adds what the run decided again, if anything, to the run below the folder in which it was written. `redecisions`
    /// must be sorted.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn redeciding(mut self, folder: &Path, config_digest: &str, redecisions: &[Redecision]) -> Result<Self> {
        debug_assert!(redecisions.is_sorted(), "redecisions have one order, so that equal runs have equal bytes");
        if redecisions.is_empty() {
            return Ok(self);
        }
        let metadata = [(CONFIG_DIGEST, config_digest)];
        let writer = DatasetWriter::new(folder, "redecided", &REDECISIONS, &metadata).in_one_file();
        self.files.extend(write_redecisions(redecisions, writer)?);
        let record = RunRecord::of(&self.files, self.record.n_fingerprints, self.record.n_short);
        Ok(Self { record, ..self })
    }
}

impl RunRecord {
    pub(crate) fn of(files: &[StagedFile], n_fingerprints: u64, n_short: u64) -> Self {
        let files: Vec<FileRecord> = files.iter().map(|file| file.record.clone()).collect();
        Self { digest: run_digest(&files), n_fingerprints, n_short, files }
    }
}

/// Returns the hash by which an id is found in a run: XXH3 with 64 bits.
pub fn id_hash(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// Returns the hash by which the dependents of a document are found: the upper half of the hash of its id.
#[must_use]
pub fn canonical_hash(id: &str) -> u32 {
    // A shift by 32 bits leaves 32 bits.
    (id_hash(id) >> 32) as u32
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

    /// Writes the ids, shadows and dependents, and returns the run. `ids` are pairs of ([`id_hash`], row of the run), in the
    /// order of [`IDS`]; `shadows` must be sorted. `dependents` are the rows that are dropped for documents of the own store,
    /// as pairs of ([`canonical_hash`] of that document's id, row of the run), sorted; `None` means that nobody knows
    /// them, as in runs of release 0.2.0. The rows of a run are numbered from 0 through its fingerprints, then its short
    /// texts, then its documents without text.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn finish(
        self,
        ids: impl Iterator<Item = (u64, u32)>,
        shadows: &[Shadow],
        dependents: Option<&[(u32, u32)]>,
    ) -> Result<StagedRun> {
        let Self { folder, metadata, fingerprints, short, empty, n_fingerprints, n_short } = self;
        debug_assert!(shadows.is_sorted(), "shadows have one order, so that equal runs have equal bytes");
        let writer = |folder, name, schema| DatasetWriter::new(folder, name, schema, &metadata).in_one_file();
        let mut files = fingerprints.finish()?;
        files.extend(short.finish()?);
        files.extend(empty.finish()?);
        files.extend(write_ids(ids, writer(folder, "ids", &IDS))?);
        files.extend(write_shadows(shadows.iter(), writer(folder, "shadows", &SHADOWS))?);
        if let Some(dependents) = dependents {
            debug_assert!(dependents.is_sorted(), "dependents have one order, so that equal runs have equal bytes");
            files.extend(write_dependents(dependents, writer(folder, "dependents", &DEPENDENTS))?);
        }
        let mut shadows_of_earlier = Vec::new();
        if shadows.iter().any(|shadow| !shadow.by.is_empty()) {
            let (folder, of_earlier) = (folder.join("of-earlier"), shadows.iter().filter(|s| s.by.is_empty()));
            create_folder(&folder)?;
            shadows_of_earlier = write_shadows(of_earlier, writer(&folder, "shadows", &SHADOWS))?;
        }
        let record = RunRecord::of(&files, n_fingerprints, n_short);
        Ok(StagedRun { record, files, shadows_of_earlier })
    }
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

fn write_dependents(dependents: &[(u32, u32)], mut writer: DatasetWriter) -> Result<Vec<StagedFile>> {
    for rows in dependents.chunks(BATCH_ROWS) {
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.0))),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.1))),
        ];
        writer.write(RecordBatch::try_new(Arc::clone(&DEPENDENTS), arrays).map_err(internal)?)?;
    }
    writer.finish()
}

fn write_redecisions(redecisions: &[Redecision], mut writer: DatasetWriter) -> Result<Vec<StagedFile>> {
    for rows in redecisions.chunks(BATCH_ROWS) {
        let canonical = || rows.iter().map(|r| r.decision.canonical.as_ref());
        let hash = |canonical: Option<&NewCanonical>| {
            canonical.filter(|canonical| canonical.is_own()).map(|canonical| canonical_hash(&canonical.id))
        };
        let reference = |canonical: Option<&NewCanonical>| canonical.and_then(|of| of.reference.clone());
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|r| &*r.run))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|r| &*r.by))),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.row))),
            Arc::new(canonical().map(|canonical| canonical.map(|canonical| &*canonical.id)).collect::<StringArray>()),
            Arc::new(canonical().map(hash).collect::<UInt32Array>()),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|r| &*r.decision.reason))),
            Arc::new(canonical().map(reference).collect::<StringArray>()),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|r| &*r.decision.id))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|r| &*r.decision.family))),
        ];
        writer.write(RecordBatch::try_new(Arc::clone(&REDECISIONS), arrays).map_err(internal)?)?;
    }
    writer.finish()
}

fn internal(error: arrow::error::ArrowError) -> Fault {
    Fault::internal("store", error)
}
