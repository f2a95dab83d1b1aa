//! Rows of document files, in the form that every reader produces.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Int64Array, StringArray};
use arrow::compute::filter;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use nearprint_parquet::ReadLimits;
use nearprint_storage::{DeletedRows, InputFile};
use nearprint_warc::Seam;
use serde::{Deserialize, Serialize};

use super::passed::Passed;
use super::web_pages::{Revisits, WebPages};
use crate::quarantine::BadReason;

/// Rows of a batch. There are enough of them to keep every core busy, and few enough to bound the memory of long texts.
pub const BATCH_ROWS: usize = 1024;

/// The columns that hold ids, texts and the keep order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentColumns {
    /// The column of ids: strings or integers, all different.
    pub id: String,
    /// The column of texts, which are strings.
    pub text: String,
    /// The columns of the keep order.
    pub keep: Vec<String>,
    /// The column that tells the newest of rows with one id, if that is asked for: a time or a number. Records of WARC
    /// files have a time without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_by: Option<String>,
    /// Binary columns of Parquet files are read as text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary_as_utf8: bool,
    /// The way in which web pages are read.
    #[serde(default, skip_serializing_if = "WebPages::is_default")]
    pub web: WebPages,
}

impl Default for DocumentColumns {
    fn default() -> Self {
        Self {
            id: "id".to_owned(),
            text: "text".to_owned(),
            keep: Vec::new(),
            newest_by: None,
            binary_as_utf8: false,
            web: WebPages::default(),
        }
    }
}

impl DocumentColumns {
    /// Returns the columns beside ids and texts, in the order of their types: those of the keep order, then `newest_by`.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &String> {
        self.keep.iter().chain(&self.newest_by)
    }
}

/// The records whose texts the rows of a batch have that are revisit records.
#[derive(Debug, Clone)]
pub struct RevisitColumns {
    /// The id of the record's document. It is NULL for rows that are no revisits.
    pub of: StringArray,
    /// How new the record is at least, and at most, in the terms of `newest_by`: it is of one second. NULL if the revisit does
    /// not say it.
    pub newest_by: [Int64Array; 2],
}

/// Some rows of a document file, in file order.
#[derive(Debug, Clone)]
pub struct DocumentBatch {
    /// The ids as text. An id is NULL if the row has none, or none that can be used.
    pub ids: StringArray,
    /// The texts, not checked yet: see [`text`](Self::text).
    pub texts: BinaryViewArray,
    /// One array for each column of the keep order: Int64, Float64 or LargeUtf8.
    pub keep: Vec<ArrayRef>,
    /// How new each row is, as a number that only compares: a newer row has a larger one. NULL is older than all.
    pub newest_by: Int64Array,
    /// Each row's number in the file, counted from 1. For a text file it is the line; for a WARC file it is the place of
    /// the record in the file's bytes, and ascends.
    pub rows: Vec<u64>,
    /// The reason for which a row is no document, as far as it shows without looking at the text.
    pub faults: Vec<Option<BadReason>>,
    /// The records that revisits refer to; `None` if no row is a revisit.
    pub revisits: Option<RevisitColumns>,
    /// The size in bytes above which a text makes its row no document.
    pub max_doc_bytes: u64,
}

impl DocumentBatch {
    /// Creates a batch without rows.
    pub fn empty() -> Self {
        Self {
            ids: StringArray::new_null(0),
            texts: BinaryViewArray::new_null(0),
            keep: Vec::new(),
            newest_by: Int64Array::new_null(0),
            rows: Vec::new(),
            faults: Vec::new(),
            revisits: None,
            max_doc_bytes: 0,
        }
    }

    /// Gives those of its rows a fault whose numbers are among `left_out`, which ascend.
    pub(crate) fn leave_out(&mut self, left_out: &[u64]) {
        debug_assert!(left_out.is_sorted(), "numbers of rows ascend");
        for (row, fault) in self.rows.iter().zip(&mut self.faults) {
            if left_out.binary_search(row).is_ok() {
                fault.get_or_insert(BadReason::RepeatedId);
            }
        }
    }

    /// Returns the rows that are not deleted.
    ///
    /// # Errors
    /// The columns have not all as many rows.
    pub(crate) fn without(self, deleted: &DeletedRows) -> Result<Self, ArrowError> {
        debug_assert!(self.revisits.is_none(), "only Parquet files are files of tables");
        let counts: Vec<bool> = self.rows.iter().map(|&row| !deleted.contains(row - 1)).collect();
        if counts.iter().all(|&counts| counts) {
            return Ok(self);
        }
        let mask = BooleanArray::from(counts.clone());
        let counting = |values: &dyn Array| filter(values, &mask);
        Ok(Self {
            ids: counting(&self.ids)?.as_string::<i32>().clone(),
            texts: counting(&self.texts)?.as_binary_view().clone(),
            keep: self.keep.iter().map(|values| counting(values)).collect::<Result<_, _>>()?,
            newest_by: counting(&self.newest_by)?.as_primitive::<Int64Type>().clone(),
            rows: of_counting(self.rows, &counts),
            faults: of_counting(self.faults, &counts),
            revisits: None,
            max_doc_bytes: self.max_doc_bytes,
        })
    }

    /// Returns the text of a row, or `None` if it is NULL.
    ///
    /// # Errors
    /// The reason for which the row is no document.
    ///
    /// # Panics
    /// Panics if `row` is out of bounds.
    pub fn text(&self, row: usize) -> Result<Option<&str>, BadReason> {
        if let Some(reason) = self.faults[row] {
            return Err(reason);
        }
        if self.texts.is_null(row) {
            return Ok(None);
        }
        let bytes = self.texts.value(row);
        if bytes.len() as u64 > self.max_doc_bytes {
            return Err(BadReason::TooLarge);
        }
        std::str::from_utf8(bytes).map(Some).map_err(|_| BadReason::InvalidUtf8)
    }
}

/// Returns the values of the rows that count.
fn of_counting<T>(values: Vec<T>, counts: &[bool]) -> Vec<T> {
    values.into_iter().zip(counts).filter_map(|(value, &counts)| counts.then_some(value)).collect()
}

/// A flag that pages without checksums were read. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Unchecked(Arc<AtomicBool>);

impl Unchecked {
    /// Returns whether such a page was read so far.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that such a page was read.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Counts the bytes that were read of a file whose rows are unknown. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct ReadBytes(Arc<AtomicU64>);

impl ReadBytes {
    /// Returns the number of bytes that were read so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the bytes of a file, which are counted when they are read.
    pub fn stream(&self, file: &InputFile) -> BoxStream<'static, nearprint_fault::Result<Bytes>> {
        self.stream_past(file, 0..file.size, file.size)
    }

    /// Returns the bytes of a file from the start of a range up to `last`, which are counted when they are read.
    pub fn stream_past(
        &self,
        file: &InputFile,
        range: Range<u64>,
        last: u64,
    ) -> BoxStream<'static, nearprint_fault::Result<Bytes>> {
        let count = Arc::clone(&self.0);
        let counted = move |piece: &nearprint_fault::Result<Bytes>| {
            let bytes = piece.as_ref().map_or(0, Bytes::len);
            count.fetch_add(bytes as u64, Ordering::Relaxed);
        };
        file.stream_past(range, last).inspect(counted).boxed()
    }
}

/// A span of a file that was read, and how it joins those beside it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SpanRead(Arc<OnceLock<(Range<u64>, Option<Seam>)>>);

impl SpanRead {
    /// Returns the span and its seam, once it was read to its end; `None` for ranges that need not be joined.
    #[must_use]
    pub fn get(&self) -> Option<(Range<u64>, Option<Seam>)> {
        self.0.get().cloned()
    }

    /// Notes that the span was read to its end.
    pub fn set(&self, span: Range<u64>, seam: Option<Seam>) {
        self.0.get_or_init(|| (span, seam));
    }
}

/// The limits of a reader, and what it reports to.
#[derive(Debug, Clone, Default)]
pub struct ReadContext {
    /// The limits of the reader's memory.
    pub limits: ReadLimits,
    /// The size in bytes above which a text makes its row no document.
    pub max_doc_bytes: u64,
    /// What becomes of revisit records.
    pub revisits: Revisits,
    /// The flag that is set when a page without a checksum is read.
    pub unchecked: Unchecked,
    /// Counts the records that are no documents and are passed over.
    pub passed: Passed,
    /// Counts the bytes that are read, if the file's rows are unknown.
    pub read_bytes: ReadBytes,
    /// The span that is read, if it must join others.
    pub span: SpanRead,
}

impl ReadContext {
    /// Creates a context for texts of at most `max_doc_bytes` bytes.
    pub fn new(max_doc_bytes: u64) -> Self {
        Self { max_doc_bytes, ..Self::default() }
    }

    /// Returns the same context with a flag and counts of its own.
    pub fn reporting_anew(&self) -> Self {
        Self { limits: self.limits.clone(), revisits: self.revisits, ..Self::new(self.max_doc_bytes) }
    }

    /// Returns the largest size of a line. It is larger than that of a text, because a line also has escapes and other
    /// columns.
    pub fn max_line_bytes(&self) -> u64 {
        self.max_doc_bytes.saturating_mul(3).saturating_add(1 << 20)
    }
}
