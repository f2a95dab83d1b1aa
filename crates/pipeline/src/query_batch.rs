//! The query batch in memory: tonight's documents, in id order, after fingerprinting.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, LargeStringArray, LargeStringBuilder, RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, concat, filter, lexsort_to_indices, take};
use arrow::datatypes::{UInt32Type, UInt64Type};
use nearprint_fingerprint::Sketch;
use nearprint_join::Column;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::columns::{Columns, fixed};
use crate::decimal_order::DecimalOrder;
use crate::error::{PipelineError, Result};
use crate::schema::{DOC_ID, FINGERPRINT, SKETCH, TEXT_HASH};

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

/// Rows are documents in order of their ids.
#[derive(Debug)]
pub struct QueryBatch {
    n_rows: u32,
    ids: Ids,
    /// None where a document has none.
    pub fingerprints: Column<u64>,
    /// None where the profile makes none, too.
    pub sketches: Arc<Column<Sketch>>,
    /// None for documents without text, and in datasets of other people.
    pub text_hashes: Column<[u8; 16]>,
    /// Why a row has no fingerprint.
    pub skipped: Column<SkipReason>,
    /// Characters of each normalised text; none for 0, and in fingerprints datasets.
    pub lengths: Column<u32>,
    /// Rows by the configured keep order, then id; none where that is the order of the ids.
    keep_order: Option<Vec<u32>>,
    /// Rows of the input that are no documents.
    pub bad_rows: Vec<BadRow>,
}

/// The ids of documents.
#[derive(Debug)]
enum Ids {
    Named(LargeStringArray),
    /// Row numbers stand in for ids, which then equal no id of other documents.
    Numbered(DecimalOrder),
}

/// A row that is no document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadRow {
    /// Position of the file among the night's files.
    pub file: u32,
    /// Row from 1, or line.
    pub row: u64,
    /// What is wrong with it.
    pub reason: String,
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

/// Columns of a fingerprinted document beside those of the fingerprints dataset. All but file and row may be left out, `doc_id` too:
/// where no batch has it, row numbers stand in for ids.
pub(crate) const SKIPPED: &str = "skipped";
pub(crate) const FILE: &str = "file";
pub(crate) const ROW: &str = "row";
pub(crate) const KEEP_PREFIX: &str = "keep.";

/// Prefix of the reason of a row that is no document.
pub(crate) const NULL_ID: &str = "null id";

impl QueryBatch {
    /// Documents.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "nothing asks")]
    pub fn len(&self) -> usize {
        self.n_rows as usize
    }

    /// Drops what only decisions and the store need.
    pub(crate) fn forget_all_but_ids_and_sketches(&mut self) {
        (self.fingerprints, self.text_hashes) = (Column::default(), Column::default());
        (self.skipped, self.lengths) = (Column::default(), Column::default());
    }

    /// Whether row numbers stand in for ids, which then equal no id of other documents.
    pub(crate) fn is_numbered(&self) -> bool {
        matches!(self.ids, Ids::Numbered(_))
    }

    /// The id of a row.
    #[must_use]
    pub fn id(&self, row: u32) -> Cow<'_, str> {
        match &self.ids {
            Ids::Named(ids) => Cow::Borrowed(ids.value(row as usize)),
            Ids::Numbered(order) => Cow::Owned(order.number_at(row).to_string()),
        }
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
            if *self.id(middle) < *id {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Rows by the configured keep order, then id.
    pub fn keep_order(&self) -> impl Iterator<Item = u32> {
        self.rows().map(|rank| self.keep_order.as_ref().map_or(rank, |order| order[rank as usize]))
    }

    /// Moves rows to the front of the keep order, which otherwise stays.
    pub(crate) fn put_first(&mut self, chosen: impl Fn(u32) -> bool) {
        if self.rows().any(&chosen) {
            let mut order: Vec<u32> = self.keep_order.take().unwrap_or_else(|| self.rows().collect());
            order.sort_by_key(|&row| !chosen(row));
            self.keep_order = Some(order);
        }
    }

    /// Rows in order of their ids.
    pub fn rows(&self) -> std::ops::Range<u32> {
        0..self.n_rows
    }

    /// Bytes held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let ids = match &self.ids {
            Ids::Named(ids) => ids.get_array_memory_size(),
            Ids::Numbered(_) => 0,
        };
        ids + self.fingerprints.memory_bytes()
            + self.sketches.memory_bytes()
            + self.text_hashes.memory_bytes()
            + self.skipped.memory_bytes()
            + self.lengths.memory_bytes()
            + self.keep_order.as_ref().map_or(0, |order| order.capacity() * 4)
    }
}

/// Leaves of each id the first document by file and row, and gives the others, each after the one that stays.
fn without_repeats(order: &mut Vec<u32>, ids: &ArrivedIds, places: &Places) -> Vec<(u32, u32)> {
    let mut repeats = Vec::new();
    for same in order.chunk_by_mut(|&a, &b| ids.get(a) == ids.get(b)).filter(|same| same.len() > 1) {
        same.sort_unstable_by_key(|&document| places.get(document));
        repeats.extend(same[1..].iter().map(|&other| (same[0], other)));
    }
    if !repeats.is_empty() {
        order.dedup_by(|b, a| ids.get(*a) == ids.get(*b));
    }
    repeats
}

fn refuse_repeats(
    repeats: &[(u32, u32)],
    ids: &ArrivedIds,
    places: &Places,
    name_of: impl Fn(u32) -> String,
) -> Result<()> {
    let Some(&(first, other)) = repeats.first() else {
        return Ok(());
    };
    let mut named = [first, other].map(|document| {
        let (file, row) = places.get(document);
        format!("{} row {row}", name_of(file))
    });
    named.sort();
    let id = String::from_utf8_lossy(ids.get(first));
    let example = format!("'{}' in {} and {}", id.escape_debug(), named[0], named[1]);
    Err(PipelineError::RepeatedIds { n: repeats.len() as u64, example })
}

fn internal(error: arrow::error::ArrowError) -> PipelineError {
    PipelineError::Internal { stage: "collect documents", reason: error.to_string() }
}

/// The batch while its documents arrive, in any order: columns that grow, and are put in order one by one at the end.
pub(crate) struct Collecting<'a> {
    keys: &'a [KeepKey],
    /// Bytes that it may take.
    max_bytes: usize,
    ids: ArrivedIds,
    places: Places,
    fingerprints: Column<u64>,
    sketches: Column<Sketch>,
    text_hashes: Column<[u8; 16]>,
    skipped: Column<SkipReason>,
    lengths: Column<u32>,
    keep: Vec<KeepColumn>,
    keep_bytes: usize,
    bad_rows: Vec<BadRow>,
}

/// The values of a keep key, as they came.
type KeepColumn = Vec<ArrayRef>;

impl<'a> Collecting<'a> {
    /// An empty batch that fails before it takes more than `max_bytes`.
    pub(crate) fn new(keys: &'a [KeepKey], max_bytes: usize) -> Self {
        Self {
            keys,
            max_bytes,
            ids: ArrivedIds::default(),
            places: Places::default(),
            fingerprints: Column::default(),
            sketches: Column::default(),
            text_hashes: Column::default(),
            skipped: Column::default(),
            lengths: Column::default(),
            keep: keys.iter().filter(|key| key.column != LENGTH).map(|_| Vec::new()).collect(),
            keep_bytes: 0,
            bad_rows: Vec::new(),
        }
    }

    /// Adds fingerprinted documents.
    ///
    /// # Errors
    /// [`PipelineError::Resources`] where the batch would take more than it may.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = Columns { batch, file: "fingerprinted documents" };
        let (files, rows) = (columns.primitive::<UInt32Type>(FILE)?, columns.primitive::<UInt64Type>(ROW)?);
        let ids = batch.column_by_name(DOC_ID).map(|_| columns.strings(DOC_ID)).transpose()?;
        let fingerprints = columns.primitive::<UInt64Type>(FINGERPRINT)?;
        let (sketches, text_hashes) = (columns.bytes(SKETCH)?, columns.bytes(TEXT_HASH)?);
        let skipped = batch.column_by_name(SKIPPED).map(|_| columns.strings(SKIPPED)).transpose()?;
        let lengths = batch.column_by_name(LENGTH).map(|_| columns.primitive::<UInt64Type>(LENGTH)).transpose()?;
        let is_document = |at: &usize| ids.is_none_or(|ids| ids.is_valid(*at));
        self.keep_values(&columns, &(0..batch.num_rows()).map(|at| Some(is_document(&at))).collect())?;
        self.refuse_too_large(batch.num_rows())?;
        for at in 0..batch.num_rows() {
            if !is_document(&at) {
                let (file, row) = (files.value(at), rows.value(at));
                self.bad_rows.push(BadRow { file, row, reason: NULL_ID.to_owned() });
                continue;
            }
            self.places.push(self.fingerprints.n_rows(), files.value(at), rows.value(at));
            if let Some(ids) = ids {
                self.ids.push(ids.value(at));
            }
            self.fingerprints.push(fingerprints.is_valid(at).then(|| fingerprints.value(at)));
            self.sketches.push(fixed::<32>(sketches, at).map(Sketch));
            self.text_hashes.push(fixed(text_hashes, at));
            let reason = skipped.filter(|skipped| skipped.is_valid(at)).map(|skipped| skipped.value(at));
            self.skipped.push(reason.and_then(SkipReason::of_name));
            let length = lengths.map_or(0, |lengths| lengths.value(at));
            self.lengths.push((length > 0).then(|| u32::try_from(length).unwrap_or(u32::MAX)));
        }
        Ok(())
    }

    fn keep_values(&mut self, columns: &Columns<'_>, documents: &BooleanArray) -> Result<()> {
        let keys = self.keys.iter().filter(|key| key.column != LENGTH);
        for (key, arrived) in keys.zip(&mut self.keep) {
            let values = columns.get(&format!("{KEEP_PREFIX}{}", key.column))?;
            let values = filter(values, documents).map_err(internal)?;
            self.keep_bytes += values.get_array_memory_size();
            arrived.push(values);
        }
        Ok(())
    }

    /// Makes sure that there is memory for further rows until the batch is in order.
    fn refuse_too_large(&self, n_rows: usize) -> Result<()> {
        let n = self.fingerprints.n_rows() as usize + n_rows;
        // Rows have 32-bit numbers, and the largest is no row's.
        if n >= u32::MAX as usize {
            return Err(nearprint_join::JoinError::TooManyRows { rows: n }.into());
        }
        let bytes = self.memory_bytes() + self.ordering_bytes(n);
        if bytes > self.max_bytes {
            let reason = format!(
                "the query batch and its tables take {bytes} bytes for {n} documents, more than {} are left",
                self.max_bytes
            );
            return Err(PipelineError::Resources { reason });
        }
        Ok(())
    }

    /// Bytes that putting `n` rows in order takes at its height: what ids are sorted by, and then the order with one column twice; the
    /// columns of the keep order are copied twice.
    fn ordering_bytes(&self, n: usize) -> usize {
        let columns = [self.ids.memory_bytes(), self.sketches.memory_bytes(), self.text_hashes.memory_bytes()];
        let largest = columns.into_iter().fold(self.fingerprints.memory_bytes(), usize::max);
        let sorting = if self.ids.is_empty() { 0 } else { n * size_of::<(u64, u32)>() };
        sorting.max(n * 4 + largest) + 2 * self.keep_bytes
    }

    fn memory_bytes(&self) -> usize {
        self.ids.memory_bytes()
            + self.fingerprints.memory_bytes()
            + self.sketches.memory_bytes()
            + self.text_hashes.memory_bytes()
            + self.skipped.memory_bytes()
            + self.lengths.memory_bytes()
            + self.keep_bytes
    }

    /// The batch, in order.
    ///
    /// # Errors
    /// Repeated ids.
    pub(crate) fn finish(mut self, name_of: impl Fn(u32) -> String) -> Result<QueryBatch> {
        let n = self.fingerprints.n_rows();
        let numbered = self.ids.is_empty() && n > 0;
        let mut order = if numbered { DecimalOrder::new(n).numbers().collect() } else { self.ids.order() };
        let ids = if numbered {
            Ids::Numbered(DecimalOrder::new(n))
        } else {
            let repeats = without_repeats(&mut order, &self.ids, &self.places);
            refuse_repeats(&repeats, &self.ids, &self.places, name_of)?;
            Ids::Named(self.ids.take(&order))
        };
        drop(self.places);
        self.bad_rows.sort_unstable();
        let lengths = self.lengths.take(&order);
        Ok(QueryBatch {
            n_rows: n,
            ids,
            keep_order: keep_order(self.keys, self.keep, &lengths, &order)?,
            fingerprints: self.fingerprints.take(&order),
            sketches: Arc::new(self.sketches.take(&order)),
            text_hashes: self.text_hashes.take(&order),
            skipped: self.skipped.take(&order),
            lengths,
            bad_rows: self.bad_rows,
        })
    }
}

/// Rows by the keys, then by id; none where there is no key.
fn keep_order(
    keys: &[KeepKey],
    kept: Vec<KeepColumn>,
    lengths: &Column<u32>,
    order: &[u32],
) -> Result<Option<Vec<u32>>> {
    if keys.is_empty() || order.is_empty() {
        return Ok(None);
    }
    let documents = UInt32Array::from(order.to_vec());
    let mut kept = kept.into_iter();
    let mut columns = Vec::new();
    for key in keys {
        let values: ArrayRef = if key.column == LENGTH {
            Arc::new(UInt32Array::from_iter_values(lengths.iter().map(|length| length.copied().unwrap_or(0))))
        } else {
            let arrays = kept.next().unwrap_or_default();
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            take(&concat(&arrays).map_err(internal)?, &documents, None).map_err(internal)?
        };
        columns
            .push(SortColumn { values, options: Some(SortOptions { descending: key.descending, nulls_first: false }) });
    }
    // The last key makes every order total, so that ties never depend on the input's order.
    let n = u32::try_from(order.len()).unwrap_or(u32::MAX);
    columns.push(SortColumn { values: Arc::new(UInt32Array::from_iter_values(0..n)), options: None });
    Ok(Some(lexsort_to_indices(&columns, None).map_err(internal)?.values().to_vec()))
}

/// Ids in the order of their arrival, one behind the other.
#[derive(Debug, Default)]
struct ArrivedIds {
    bytes: Vec<u8>,
    ends: Vec<i64>,
}

impl ArrivedIds {
    fn push(&mut self, id: &str) {
        self.bytes.extend_from_slice(id.as_bytes());
        self.ends.push(i64::try_from(self.bytes.len()).unwrap_or(i64::MAX));
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "lengths of what is in memory")]
    fn get(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// Arrivals by id: by the eight bytes behind what all ids start with, and where these agree by the whole id.
    fn order(&self) -> Vec<u32> {
        let n = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let shared = (1..n).fold(if n == 0 { 0 } else { self.get(0).len() }, |shared, at| {
            let both = self.get(0)[..shared].iter().zip(self.get(at));
            both.take_while(|(a, b)| a == b).count()
        });
        let key = |at: u32| {
            let rest = &self.get(at)[shared..];
            rest.iter().take(8).chain(&[0; 8]).take(8).fold(0u64, |key, &byte| key << 8 | u64::from(byte))
        };
        let mut order: Vec<(u64, u32)> = (0..n).map(|at| (key(at), at)).collect();
        order.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.get(a.1).cmp(self.get(b.1))));
        order.into_iter().map(|(_, at)| at).collect()
    }

    fn take(&self, order: &[u32]) -> LargeStringArray {
        let mut taken = LargeStringBuilder::with_capacity(order.len(), self.bytes.len());
        order.iter().for_each(|&at| taken.append_value(String::from_utf8_lossy(self.get(at))));
        taken.finish()
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * 8
    }
}

/// Where documents stand, as runs of rows that follow each other.
#[derive(Debug, Default)]
struct Places {
    /// (the first document, its file, its row)
    runs: Vec<(u32, u32, u64)>,
}

impl Places {
    fn push(&mut self, document: u32, file: u32, row: u64) {
        let goes_on =
            |&(first, in_file, from): &(u32, u32, u64)| in_file == file && from + u64::from(document - first) == row;
        if !self.runs.last().is_some_and(goes_on) {
            self.runs.push((document, file, row));
        }
    }

    /// File and row of a document.
    fn get(&self, document: u32) -> (u32, u64) {
        let run = self.runs.partition_point(|&(first, ..)| first <= document).saturating_sub(1);
        let (first, file, row) = self.runs.get(run).copied().unwrap_or_default();
        (file, row + u64::from(document - first))
    }
}
