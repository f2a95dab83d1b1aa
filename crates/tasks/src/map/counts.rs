//! Counts of map tasks. They leave the tasks as notes.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::Columns;
use nearprint_parquet::sketch_column::ReadCounts;
use nearprint_storage::Progress;
use schemars::JsonSchema;
use serde::Serialize;

/// The amount of data that a map task looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapCounts {
    /// The number of existing fingerprints that were read, or of distinct fingerprints of the batch itself.
    pub n_rows: u64,
    /// The number of pairs of different values within the distance, before sketches are compared.
    pub n_candidates: u64,
    /// The number of pairs of classes of new documents that sketches left to the judge.
    pub n_undecided: u64,
    /// The number of existing documents whose sketches were looked up.
    pub n_sketches: u64,
    /// The number of pages in which they were looked up, as far as the files have sketches in pages of nearprint's own.
    pub n_sketch_pages: u64,
    /// The bytes of existing fingerprints that were read.
    pub fingerprint_bytes: u64,
    /// The bytes that were read for sketches: pages, what lies between them, and page indexes.
    pub sketch_bytes: u64,
    /// The bytes that were read for ids and other columns of the documents of pairs.
    pub document_bytes: u64,
}

static COUNTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |(name, _)| Field::new(name, DataType::UInt64, false);
    Arc::new(Schema::new(MapCounts::default().named().map(field).to_vec()))
});

impl AddAssign for MapCounts {
    fn add_assign(&mut self, other: Self) {
        self.n_rows += other.n_rows;
        self.n_candidates += other.n_candidates;
        self.n_undecided += other.n_undecided;
        self.n_sketches += other.n_sketches;
        self.n_sketch_pages += other.n_sketch_pages;
        self.fingerprint_bytes += other.fingerprint_bytes;
        self.sketch_bytes += other.sketch_bytes;
        self.document_bytes += other.document_bytes;
    }
}

impl MapCounts {
    fn named(self) -> [(&'static str, u64); 8] {
        [
            ("n_rows", self.n_rows),
            ("n_candidates", self.n_candidates),
            ("n_undecided", self.n_undecided),
            ("n_sketches", self.n_sketches),
            ("n_sketch_pages", self.n_sketch_pages),
            ("fingerprint_bytes", self.fingerprint_bytes),
            ("sketch_bytes", self.sketch_bytes),
            ("document_bytes", self.document_bytes),
        ]
    }

    /// Builds the notes of a task.
    pub(super) fn notes(self) -> Result<RecordBatch> {
        let column = |(_, n)| Arc::new(UInt64Array::from(vec![n])) as ArrayRef;
        RecordBatch::try_new(Arc::clone(&COUNTS), self.named().map(column).to_vec())
            .map_err(|e| Fault::internal("map", e))
    }

    /// Reads the counts from the notes of a task. `None` means that these are other notes.
    ///
    /// # Errors
    /// A column of the notes cannot be read.
    pub fn of(notes: &RecordBatch) -> Result<Option<Self>> {
        if notes.schema() != *COUNTS {
            return Ok(None);
        }
        let columns = Columns { batch: notes, file: "counts of a map task" };
        let sum = |name| Ok::<u64, Fault>(columns.primitive::<UInt64Type>(name)?.values().iter().sum());
        Ok(Some(Self {
            n_rows: sum("n_rows")?,
            n_candidates: sum("n_candidates")?,
            n_undecided: sum("n_undecided")?,
            n_sketches: sum("n_sketches")?,
            n_sketch_pages: sum("n_sketch_pages")?,
            fingerprint_bytes: sum("fingerprint_bytes")?,
            sketch_bytes: sum("sketch_bytes")?,
            document_bytes: sum("document_bytes")?,
        }))
    }
}

/// The amount of data that the fetches of a task have read so far, for its counts.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) n_sketches: AtomicU64,
    pub(super) of_sketches: ReadCounts,
    pub(super) document_bytes: Arc<AtomicU64>,
}

impl Fetched {
    /// Adds what was read to the counts of a task.
    pub(super) fn add_to(&self, counts: &mut MapCounts) {
        counts.n_sketches += self.n_sketches.load(Ordering::Relaxed);
        counts.n_sketch_pages += self.of_sketches.pages();
        counts.sketch_bytes += self.of_sketches.bytes();
        counts.document_bytes += self.document_bytes.load(Ordering::Relaxed);
    }
}

/// Counts the rows of a task while they are mapped. Each row counts once, though ranges with too many pairs are mapped
/// again.
#[derive(Debug)]
pub(super) struct Seen {
    progress: Progress,
    n_rows: u64,
    n_seen: AtomicU64,
}

impl Seen {
    pub(super) fn new(progress: &Progress, n_rows: u64) -> Self {
        Self { progress: progress.clone(), n_rows, n_seen: AtomicU64::new(0) }
    }

    pub(super) fn add(&self, n: usize) {
        let before = self.n_seen.fetch_add(n as u64, Ordering::Relaxed);
        self.progress.advance((before + n as u64).min(self.n_rows) - before.min(self.n_rows));
    }

    /// Counts the rows that no range has counted, such as those that share a fingerprint.
    pub(super) fn all(&self) {
        let before = self.n_seen.swap(self.n_rows, Ordering::Relaxed);
        self.progress.advance(self.n_rows - before.min(self.n_rows));
    }
}
