//! Rows of document files, as every reader gives them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, ArrayRef, BinaryViewArray, StringArray};
use serde::{Deserialize, Serialize};

use super::pages::ReadLimits;
use crate::quarantine::BadReason;

/// Rows of a batch: enough to keep every core in work, few enough that long texts stay bounded.
pub const BATCH_ROWS: usize = 1024;

/// Which columns hold what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentColumns {
    /// Strings or integers, unique.
    pub id: String,
    /// Strings.
    pub text: String,
    /// Columns of the keep order.
    pub keep: Vec<String>,
    /// Takes binary columns of Parquet files for text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary_as_utf8: bool,
}

impl Default for DocumentColumns {
    fn default() -> Self {
        Self { id: "id".to_owned(), text: "text".to_owned(), keep: Vec::new(), binary_as_utf8: false }
    }
}

/// Rows of a file of documents, in its order.
#[derive(Debug, Clone)]
pub struct DocumentBatch {
    /// Ids as text; null where a row has none, or none that can be used.
    pub ids: StringArray,
    /// Texts, not looked at yet: see [`text`](Self::text).
    pub texts: BinaryViewArray,
    /// One array for each keep-order column: Int64, Float64 or LargeUtf8.
    pub keep: Vec<ArrayRef>,
    /// Each row's number in the file, from 1; the line of a text file.
    pub rows: Vec<u64>,
    /// Why a row is no document, as far as that shows without its text.
    pub faults: Vec<Option<BadReason>>,
    /// Larger texts make their rows no documents.
    pub max_doc_bytes: u64,
}

impl DocumentBatch {
    /// No rows.
    pub fn empty() -> Self {
        Self {
            ids: StringArray::new_null(0),
            texts: BinaryViewArray::new_null(0),
            keep: Vec::new(),
            rows: Vec::new(),
            faults: Vec::new(),
            max_doc_bytes: 0,
        }
    }

    /// The text of a row, none where it is NULL.
    ///
    /// # Errors
    /// Why it can be none.
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

/// Whether pages without checksums were read; clones are one.
#[derive(Debug, Clone, Default)]
pub struct Unchecked(Arc<AtomicBool>);

impl Unchecked {
    /// Whether there were any, so far.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// There was one.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a reader may hold, and where it reports.
#[derive(Debug, Clone, Default)]
pub struct ReadContext {
    /// How much may be held.
    pub limits: ReadLimits,
    /// Larger texts make their rows no documents.
    pub max_doc_bytes: u64,
    /// Pages without checksums are reported here.
    pub unchecked: Unchecked,
}

impl ReadContext {
    /// Reads texts of at most `max_doc_bytes` bytes.
    pub fn new(max_doc_bytes: u64) -> Self {
        Self { max_doc_bytes, ..Self::default() }
    }

    /// The same, reporting elsewhere.
    pub fn reporting(&self, unchecked: &Unchecked) -> Self {
        Self { unchecked: unchecked.clone(), ..self.clone() }
    }

    /// A line may be longer than its text: escapes, and other columns.
    pub fn max_line_bytes(&self) -> u64 {
        self.max_doc_bytes.saturating_mul(3).saturating_add(1 << 20)
    }
}
