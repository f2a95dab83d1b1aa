//! The query batch in memory: tonight's documents, in id order, after fingerprinting.

mod collect;

use arrow::array::{Array, ArrayRef, Int64Array, LargeStringArray, RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, take};
use arrow::datatypes::UInt64Type;
use nearprint_fingerprint::Sketch;
use serde::{Deserialize, Serialize};

use crate::columns::{Columns, fixed};
use crate::error::{PipelineError, Result};
use crate::quarantine::BadRow;
use crate::schema::{FINGERPRINT, SKETCH, TEXT_HASH};
pub(crate) use collect::{BAD, CollectPolicy};

/// Why a document has no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The text is NULL.
    NullText,
    /// Nothing is left of the text after normalisation.
    Empty,
    /// Fewer distinct features than the floor.
    TooShort,
}

impl SkipReason {
    /// All, in order.
    pub const ALL: [Self; 3] = [Self::NullText, Self::Empty, Self::TooShort];

    /// As datasets and summaries name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NullText => "null_text",
            Self::Empty => "empty",
            Self::TooShort => "too_short",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }
}

/// Rows are documents in order of their ids; every array has one value a row.
#[derive(Debug)]
pub struct QueryBatch {
    ids: LargeStringArray,
    /// Whether row numbers stand in for ids, which then equal no id of other documents.
    pub(crate) numbered: bool,
    /// None where a document has none.
    pub fingerprints: Vec<Option<u64>>,
    /// Empty where the profile makes none.
    pub sketches: Vec<Option<Sketch>>,
    /// None for documents without text, and in datasets of other people.
    pub text_hashes: Vec<Option<[u8; 16]>>,
    /// Why a row has no fingerprint.
    pub skipped: Vec<Option<SkipReason>>,
    /// Characters of each normalised text; empty in fingerprints datasets.
    pub lengths: Vec<u32>,
    /// Rows by the configured keep order, then id.
    pub keep_order: Vec<u32>,
    /// Rows of the input that are no documents.
    pub bad_rows: Vec<BadRow>,
}

/// One key of the keep order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepKey {
    /// A documents' column, or `length`: characters of the normalised text.
    pub column: String,
    /// Larger values first.
    pub descending: bool,
}

/// The built-in keep key.
pub const LENGTH: &str = "length";

impl KeepKey {
    /// From `column asc` or `column desc`; ascending where neither is said.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [column] | [column, "asc"] => Ok(Self { column: column.to_owned(), descending: false }),
            [column, "desc"] => Ok(Self { column: column.to_owned(), descending: true }),
            _ => Err(PipelineError::Config {
                key: "keep".to_owned(),
                reason: format!("'{text}' is not 'column asc' or 'column desc'"),
            }),
        }
    }
}

/// Columns of a fingerprinted document beside those of the fingerprints dataset.
pub(crate) const SKIPPED: &str = "skipped";
pub(crate) const FILE: &str = "file";
pub(crate) const ROW: &str = "row";
pub(crate) const KEEP_PREFIX: &str = "keep.";

impl QueryBatch {
    pub(crate) fn empty() -> Self {
        Self {
            ids: LargeStringArray::from(Vec::<&str>::new()),
            numbered: false,
            fingerprints: Vec::new(),
            sketches: Vec::new(),
            text_hashes: Vec::new(),
            skipped: Vec::new(),
            lengths: Vec::new(),
            keep_order: Vec::new(),
            bad_rows: Vec::new(),
        }
    }

    fn fill(&mut self, columns: &Columns<'_>, documents: &UInt32Array, keys: &[KeepKey]) -> Result<()> {
        let fingerprints = columns.primitive::<UInt64Type>(FINGERPRINT)?;
        let (sketches, text_hashes) = (columns.bytes(SKETCH)?, columns.bytes(TEXT_HASH)?);
        let skipped = columns.strings(SKIPPED)?;
        let lengths = columns.primitive::<UInt64Type>(LENGTH)?;
        for &at in documents.values() {
            let at = at as usize;
            self.fingerprints.push(fingerprints.is_valid(at).then(|| fingerprints.value(at)));
            self.sketches.push(fixed::<32>(sketches, at).map(Sketch));
            self.text_hashes.push(fixed(text_hashes, at));
            self.skipped.push(skipped.is_valid(at).then(|| SkipReason::of_name(skipped.value(at))).flatten());
            self.lengths.push(u32::try_from(lengths.value(at)).unwrap_or(u32::MAX));
        }
        if self.sketches.iter().all(Option::is_none) {
            self.sketches = Vec::new();
        }
        self.keep_order = keep_order(columns.batch, documents, keys)?;
        Ok(())
    }

    /// Documents.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "nothing asks")]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The id of a row.
    #[must_use]
    pub fn id(&self, row: u32) -> &str {
        self.ids.value(row as usize)
    }

    /// The row of an id.
    #[must_use]
    pub fn row_of(&self, id: &str) -> Option<u32> {
        let row = self.first_row_not_before(id);
        self.has_id(row, id).then_some(row)
    }

    /// Whether there is a row `row`, with this id.
    pub(crate) fn has_id(&self, row: u32, id: &str) -> bool {
        row < self.rows().end && self.id(row) == id
    }

    /// The first row whose id is not smaller than `id`; the number of rows where all are.
    #[must_use]
    pub fn first_row_not_before(&self, id: &str) -> u32 {
        let (mut low, mut high) = (0, self.rows().end);
        while low < high {
            let middle = u32::midpoint(low, high);
            if self.id(middle) < id {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Moves rows to the front of the keep order, which otherwise stays.
    pub(crate) fn put_first(&mut self, chosen: impl Fn(u32) -> bool) {
        self.keep_order.sort_by_key(|&row| !chosen(row));
    }

    /// Rows in order of their ids.
    #[allow(clippy::cast_possible_truncation, reason = "rows are 32-bit numbers")]
    pub fn rows(&self) -> std::ops::Range<u32> {
        0..self.len() as u32
    }

    /// Bytes held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.ids.get_array_memory_size()
            + self.fingerprints.capacity() * size_of::<Option<u64>>()
            + self.sketches.capacity() * size_of::<Option<Sketch>>()
            + self.text_hashes.capacity() * size_of::<Option<[u8; 16]>>()
            + self.skipped.capacity()
            + self.lengths.capacity() * 4
            + self.keep_order.capacity() * 4
    }
}

fn keep_order(all: &RecordBatch, documents: &UInt32Array, keys: &[KeepKey]) -> Result<Vec<u32>> {
    let n =
        u32::try_from(documents.len()).map_err(|_| nearprint_join::JoinError::TooManyRows { rows: documents.len() })?;
    if keys.is_empty() {
        return Ok((0..n).collect());
    }
    let mut columns = Vec::new();
    for key in keys {
        let name = if key.column == LENGTH { LENGTH.to_owned() } else { format!("{KEEP_PREFIX}{}", key.column) };
        let values =
            all.column_by_name(&name).ok_or_else(|| PipelineError::Internal { stage: "keep order", reason: name })?;
        let values = take(values, documents, None).map_err(internal)?;
        columns
            .push(SortColumn { values, options: Some(SortOptions { descending: key.descending, nulls_first: false }) });
    }
    // The last key makes every order total, so that ties never depend on the input's order.
    let by_id: ArrayRef = std::sync::Arc::new(Int64Array::from_iter_values((0..n).map(i64::from)));
    columns.push(SortColumn { values: by_id, options: None });
    Ok(lexsort_to_indices(&columns, None).map_err(internal)?.values().to_vec())
}

fn internal(error: arrow::error::ArrowError) -> PipelineError {
    PipelineError::Internal { stage: "collect documents", reason: error.to_string() }
}
