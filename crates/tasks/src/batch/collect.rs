//! Collects fingerprinted documents as the query batch: decides which rows are documents, and puts them in the keep
//! order.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, LargeStringArray, RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, cast, concat, filter, lexsort_to_indices, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use nearprint_documents::{BadReason, BadRow, DuplicateIds, KeepKey, LENGTH, MAX_REPEATED_IDS};
use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::Sketch;
use nearprint_join::Column;
use nearprint_parquet::schema::{DOC_ID, FINGERPRINT, N_FEATURES, SKETCH, TEXT_HASH};
use nearprint_parquet::{Columns, fixed, value};
use nearprint_storage::{in_memory, row_number};

use super::arrivals::{ArrivedIds, Places};
use super::query_batch::{
    FILE, KEEP_PREFIX, LOW_HALF, NEWEST_BY, REVISIT_NEWEST_BY, REVISIT_OF, ROW, SKIPPED, SkipReason, defect,
};
use super::words::{WORDS, WordPlace, WordSpill};
use crate::file_reading::FileReading;

/// The column of a fingerprinted document that says why its row is not a document, as a [`BadReason::code`]. If the
/// column is missing, all rows are documents except those whose id is NULL.
pub(crate) const BAD: &str = "bad";

/// The rules for the rows that are left out.
#[derive(Debug)]
pub struct CollectPolicy {
    /// The rule for rows of one id. `None` means that of an id that only WARC files have, the newest row stays, and that any
    /// other repeat is an error.
    pub on_duplicate_id: Option<DuplicateIds>,
    /// Whether the rule is a setting, which may be another one.
    pub is_setting: bool,
    /// The largest share of the rows with an id that the rule may leave out.
    pub max_repeated_ids: f64,
    /// The readings of files that are treated as if they had no rows.
    pub left_out: BTreeSet<FileReading>,
}

impl Default for CollectPolicy {
    fn default() -> Self {
        Self {
            on_duplicate_id: Some(DuplicateIds::Fail),
            is_setting: false,
            max_repeated_ids: MAX_REPEATED_IDS,
            left_out: BTreeSet::new(),
        }
    }
}

/// A query batch while its documents arrive, in any order. Its columns grow, and [`finish`](Self::finish) puts them in
/// order one by one.
pub struct Collecting<'a> {
    pub(super) keys: &'a [KeepKey],
    /// The number of bytes that the batch may take.
    max_bytes: usize,
    pub(super) ids: ArrivedIds,
    pub(super) places: Places,
    pub(super) fingerprints: Column<u64>,
    pub(super) low_halves: Column<u64>,
    pub(super) sketches: Column<Sketch>,
    pub(super) n_features: Column<u32>,
    pub(super) text_hashes: Column<[u8; 16]>,
    pub(super) skipped: Column<SkipReason>,
    pub(super) lengths: Column<u32>,
    /// The name of the column of sources.
    pub(super) source: Option<&'a str>,
    pub(super) sources: Column<u32>,
    /// The position of each source name in the order of arrival.
    pub(super) source_names: HashMap<String, u32>,
    /// How new each document is, as far as it is known.
    pub(super) newest_by: Column<i64>,
    pub(super) keep: Vec<KeepColumn>,
    keep_bytes: usize,
    pub(super) bad_rows: Vec<BadRow>,
    /// Which texts have words that a judge may read.
    pub(super) have_words: Column<()>,
    /// The places of these words in `spill`.
    pub(super) words: Column<WordPlace>,
    /// The file of the words, if they come with the documents.
    pub(super) spill: Option<WordSpill>,
    /// The revisits among the arrivals, each with the record whose text it has. They have no text here.
    pub(super) revisits: Vec<(u32, Target)>,
    revisit_bytes: usize,
}

/// The record whose text a revisit has.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The id of its document.
    pub(super) id: String,
    /// How new it is. `None` means that the revisit does not say it.
    pub(super) newest_by: Option<RangeInclusive<i64>>,
}

/// The values of a keep key, in order of arrival.
pub(super) type KeepColumn = Vec<ArrayRef>;

impl<'a> Collecting<'a> {
    /// Returns an empty batch that fails before it takes more than `max_bytes`. If there is a `source`, it is among the
    /// columns of the keep order.
    pub fn new(keys: &'a [KeepKey], source: Option<&'a str>, max_bytes: usize) -> Self {
        Self {
            keys,
            max_bytes,
            ids: ArrivedIds::default(),
            places: Places::default(),
            fingerprints: Column::default(),
            low_halves: Column::default(),
            sketches: Column::default(),
            n_features: Column::default(),
            text_hashes: Column::default(),
            skipped: Column::default(),
            lengths: Column::default(),
            source,
            sources: Column::default(),
            source_names: HashMap::new(),
            newest_by: Column::default(),
            keep: keys.iter().filter(|key| key.column != LENGTH).map(|_| Vec::new()).collect(),
            keep_bytes: 0,
            bad_rows: Vec::new(),
            have_words: Column::default(),
            words: Column::default(),
            spill: None,
            revisits: Vec::new(),
            revisit_bytes: 0,
        }
    }

    /// Keeps the words of texts, as fingerprint tasks return them, in a file.
    #[must_use]
    pub fn with_words(self, spill: WordSpill) -> Self {
        Self { spill: Some(spill), ..self }
    }

    /// Adds fingerprinted documents.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the batch would take more memory than it may. An
    /// error also occurs if there are too many rows, or if a column is missing or has another type.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = Columns { batch, file: "fingerprinted documents" };
        let (files, rows) = (columns.primitive::<UInt32Type>(FILE)?, columns.primitive::<UInt64Type>(ROW)?);
        // A dataset of fingerprints has fewer columns than a fingerprint task gives. A column that is missing is NULL in each
        // row, except that without ids the numbers of rows stand in for them.
        let ids = columns.optional(DOC_ID, Columns::strings)?;
        let fingerprints = columns.primitive::<UInt64Type>(FINGERPRINT)?;
        let low_halves = columns.optional(LOW_HALF, Columns::primitive::<UInt64Type>)?;
        let (sketches, text_hashes) = (columns.bytes::<32>(SKETCH)?, columns.bytes::<16>(TEXT_HASH)?);
        let n_features = columns.optional(N_FEATURES, Columns::primitive::<UInt32Type>)?;
        let skipped = columns.optional(SKIPPED, Columns::strings)?;
        let lengths = columns.optional(LENGTH, Columns::primitive::<UInt64Type>)?;
        let newest = columns.optional(NEWEST_BY, Columns::primitive::<Int64Type>)?;
        let revisit_of = columns.optional(REVISIT_OF, Columns::strings)?;
        let bounds = |name| columns.optional(name, Columns::primitive::<Int64Type>);
        let [from, to] = REVISIT_NEWEST_BY.map(bounds);
        let revisit_newest_by = [from?, to?];
        let bad = columns.optional(BAD, Columns::primitive::<UInt8Type>)?;
        let id_of = |at: usize| ids.and_then(|ids| value(ids, at));
        let reason_of = |at: usize| {
            let known = bad.and_then(|codes| BadReason::of_code(codes.value(at)));
            known.or_else(|| (ids.is_some() && id_of(at).is_none()).then_some(BadReason::NullId))
        };
        let words = batch.column_by_name(WORDS).and_then(|words| words.as_binary_opt::<i64>());
        let sources = self.source.map(|source| strings_of(&columns, &format!("{KEEP_PREFIX}{source}"))).transpose()?;
        self.keep_values(&columns, &(0..batch.num_rows()).map(|at| Some(reason_of(at).is_none())).collect())?;
        self.refuse_too_large(batch.num_rows())?;
        let places = words.zip(self.spill.as_mut()).map(|(words, spill)| spill.push(words)).transpose()?;
        // Each column takes one value of each document and none of other rows: a document is its position in all of them.
        for at in 0..batch.num_rows() {
            if let Some(reason) = reason_of(at) {
                let (file, row, id) = (files.value(at), rows.value(at), id_of(at).map(str::to_owned));
                self.bad_rows.push(BadRow { file, row, reason, id });
                continue;
            }
            self.places.push(self.fingerprints.n_rows(), files.value(at), rows.value(at));
            if let Some(id) = id_of(at) {
                self.ids.push(id);
            }
            self.fingerprints.push(value(fingerprints, at));
            self.low_halves.push(low_halves.and_then(|low| value(low, at)));
            self.sketches.push(fixed::<32>(sketches, at).map(Sketch));
            self.n_features.push(n_features.and_then(|n| value(n, at)));
            self.newest_by.push(newest.and_then(|newest| value(newest, at)));
            self.text_hashes.push(fixed(text_hashes, at));
            self.have_words.push(words.filter(|words| words.is_valid(at)).map(|_| ()));
            self.words.push(places.as_ref().and_then(|places| places[at]));
            let revisit_of = revisit_of.and_then(|of| value(of, at));
            if let Some(of) = revisit_of {
                let [from, to] = revisit_newest_by.each_ref();
                let bound = |of: &Option<&Int64Array>| of.and_then(|of| value(of, at));
                let newest_by = bound(from).zip(bound(to)).map(|(from, to)| from..=to);
                self.revisits.push((self.skipped.n_rows(), Target { id: of.to_owned(), newest_by }));
                self.revisit_bytes += of.len() + size_of::<(u32, Target)>();
            }
            // Why a revisit has no fingerprint, the record tells whose text it has.
            let reason = skipped.filter(|skipped| skipped.is_valid(at) && revisit_of.is_none());
            self.skipped.push(reason.map(|skipped| skip_reason(skipped.value(at))).transpose()?);
            if let Some(sources) = &sources {
                let code = value(sources, at).map(|source| self.source_code(source));
                self.sources.push(code);
            }
            // The keep order reads a length that is missing as 0.
            let length = lengths.map_or(0, |lengths| lengths.value(at));
            self.lengths.push((length > 0).then(|| row_number(in_memory(length))));
        }
        let n = self.fingerprints.n_rows();
        debug_assert!(
            [self.low_halves.n_rows(), self.sketches.n_rows(), self.n_features.n_rows()] == [n; 3]
                && [self.text_hashes.n_rows(), self.skipped.n_rows(), self.lengths.n_rows()] == [n; 3]
                && [self.newest_by.n_rows(), self.have_words.n_rows(), self.words.n_rows()] == [n; 3],
            "each document has its place in every column"
        );
        Ok(())
    }

    /// Returns the number of rows so far.
    pub fn n_rows(&self) -> u32 {
        self.fingerprints.n_rows()
    }

    /// Returns the rows so far that are not documents.
    pub fn bad_rows(&self) -> &[BadRow] {
        &self.bad_rows
    }

    fn source_code(&mut self, name: &str) -> u32 {
        if let Some(&code) = self.source_names.get(name) {
            return code;
        }
        let code = row_number(self.source_names.len());
        self.source_names.insert(name.to_owned(), code);
        self.keep_bytes += 2 * (name.len() + size_of::<(String, u32)>());
        code
    }

    fn keep_values(&mut self, columns: &Columns<'_>, documents: &BooleanArray) -> Result<()> {
        let keys = self.keys.iter().filter(|key| key.column != LENGTH);
        for (key, arrived) in keys.zip(&mut self.keep) {
            let values = columns.get(&format!("{KEEP_PREFIX}{}", key.column))?;
            let values = filter(values, documents).map_err(defect)?;
            self.keep_bytes += values.get_array_memory_size();
            arrived.push(values);
        }
        Ok(())
    }

    /// Checks that there is memory for further rows until the batch is in order.
    pub(super) fn refuse_too_large(&self, n_rows: usize) -> Result<()> {
        let n = self.fingerprints.n_rows() as usize + n_rows;
        // Rows have 32-bit numbers, and no row has the largest one.
        if n >= u32::MAX as usize {
            return Err(nearprint_join::JoinError::TooManyRows { rows: n }.into());
        }
        let bytes = self.memory_bytes() + self.ordering_bytes(n);
        if bytes > self.max_bytes {
            let reason = format!(
                "the query batch and its tables take {bytes} bytes for {n} documents, more than the {} that are left",
                self.max_bytes
            );
            return Err(Fault::resources(reason));
        }
        Ok(())
    }

    /// Returns the bytes that it takes, at the peak, to put `n` rows in order. Ids are sorted by keys of their own.
    /// Then the order is held, and one column at a time is held twice. The columns of the keep order are copied twice.
    fn ordering_bytes(&self, n: usize) -> usize {
        let columns = [self.ids.memory_bytes(), self.sketches.memory_bytes(), self.text_hashes.memory_bytes()];
        let largest = columns.into_iter().fold(self.fingerprints.memory_bytes(), usize::max);
        let sorting = if self.ids.is_empty() { 0 } else { n * size_of::<(u64, u32)>() };
        // Where there are revisits, the order is made anew, and there is one of the texts.
        let n_orders = if self.revisits.is_empty() { 1 } else { 3 };
        sorting.max(n_orders * n * 4 + largest) + 2 * self.keep_bytes
    }

    fn memory_bytes(&self) -> usize {
        self.ids.memory_bytes()
            + self.fingerprints.memory_bytes()
            + self.low_halves.memory_bytes()
            + self.sketches.memory_bytes()
            + self.n_features.memory_bytes()
            + self.text_hashes.memory_bytes()
            + self.skipped.memory_bytes()
            + self.lengths.memory_bytes()
            + self.sources.memory_bytes()
            + self.newest_by.memory_bytes()
            + self.have_words.memory_bytes()
            + self.words.memory_bytes()
            + self.keep_bytes
            + self.revisit_bytes
    }

    /// Checks that each document has one value of each column: only their positions tell whose ids and sources they
    /// are.
    pub(super) fn refuse_misplaced(&self, numbered: bool) -> Result<()> {
        let n = self.fingerprints.n_rows() as usize;
        let (n_ids, n_sources) = (self.ids.ends.len(), self.sources.n_rows() as usize);
        if (numbered || n_ids == n) && (self.source.is_none() || n_sources == n) {
            return Ok(());
        }
        Err(defect(format!("{n} documents with {n_ids} ids and {n_sources} sources")))
    }

    /// Returns the record whose text an arrival has, if it is a revisit.
    pub(super) fn revisit_of(&self, at: u32) -> Option<&Target> {
        debug_assert!(self.revisits.is_sorted_by(|a, b| a.0 < b.0), "arrivals are numbered as they come");
        let found = self.revisits.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        self.revisits.get(found).map(|(_, of)| of)
    }
}

/// Returns a column of the keep order as text. Numbers of JSONL are floats, even whole ones.
fn strings_of(columns: &Columns<'_>, name: &str) -> Result<LargeStringArray> {
    if let Some(numbers) = columns.get(name)?.as_primitive_opt::<Float64Type>() {
        return Ok(numbers.iter().map(|number| number.map(|n| n.to_string())).collect());
    }
    let text = cast(columns.get(name)?, &DataType::LargeUtf8).map_err(defect)?;
    Ok(text.as_string::<i64>().clone())
}

/// Orders rows by the keys, then by id. `None` means the order of the ids.
pub(super) fn keep_order(
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
            let arrays = kept.next().ok_or_else(|| defect(format!("no values of the keep key {}", key.column)))?;
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            take(&concat(&arrays).map_err(defect)?, &documents, None).map_err(defect)?
        };
        columns.push(key.sorting(values));
    }
    // The last key makes every order total, so that ties never depend on the input's order.
    let n = row_number(order.len());
    columns.push(SortColumn { values: Arc::new(UInt32Array::from_iter_values(0..n)), options: None });
    Ok(Some(lexsort_to_indices(&columns, None).map_err(defect)?.values().to_vec()))
}

fn skip_reason(name: &str) -> Result<SkipReason> {
    SkipReason::of_name(name).ok_or_else(|| defect(format!("no reason '{name}' to skip a document")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
    use nearprint_fault::{ErrorKind, Result};

    use super::{CollectPolicy, Collecting};
    use crate::batch::{FILE, ROW, SKIPPED};
    use nearprint_parquet::schema::{DOC_ID, FINGERPRINT, SKETCH};

    /// Returns a batch of two documents with a fingerprint, and other columns.
    fn batch(more: &[(&str, ArrayRef)]) -> RecordBatch {
        let columns: [(&str, ArrayRef); 3] = [
            (FINGERPRINT, Arc::new(UInt64Array::from(vec![Some(5), Some(7)]))),
            (FILE, Arc::new(UInt32Array::from(vec![0, 0]))),
            (ROW, Arc::new(UInt64Array::from(vec![1, 2]))),
        ];
        RecordBatch::try_from_iter(columns.into_iter().chain(more.iter().cloned())).unwrap()
    }

    fn collected(batches: &[RecordBatch]) -> Result<usize> {
        let mut collecting = Collecting::new(&[], None, usize::MAX);
        batches.iter().try_for_each(|batch| collecting.push(batch))?;
        Ok(collecting.finish(&CollectPolicy::default(), |file| file.to_string())?.len())
    }

    #[test]
    fn documents_whose_ids_would_be_those_of_others_are_a_defect() {
        let ids: (&str, ArrayRef) = (DOC_ID, Arc::new(StringArray::from(vec!["a", "b"])));
        assert_eq!(collected(&[batch(std::slice::from_ref(&ids))]).unwrap(), 2);
        assert_eq!(collected(&[batch(&[]), batch(&[])]).unwrap(), 4);
        let mixed = collected(&[batch(&[]), batch(&[ids])]).unwrap_err();
        assert_eq!((mixed.kind(), mixed.to_string().contains("4 documents with 2 ids")), (ErrorKind::Bug, true));
    }

    #[test]
    fn a_reason_that_nobody_knows_is_a_defect_and_no_document_with_a_fingerprint() {
        let skipped: ArrayRef = Arc::new(StringArray::from(vec![Some("too_short"), Some("unheard of")]));
        let unknown = collected(&[batch(&[(SKIPPED, skipped)])]).unwrap_err();
        assert_eq!((unknown.kind(), unknown.to_string().contains("'unheard of'")), (ErrorKind::Bug, true));
    }

    #[test]
    fn sketches_of_another_width_are_refused_and_not_taken_for_none() {
        let sketches = FixedSizeBinaryArray::try_from_iter([[1u8; 16], [2; 16]].into_iter()).unwrap();
        let narrow = collected(&[batch(&[(SKETCH, Arc::new(sketches) as ArrayRef)])]).unwrap_err();
        assert_eq!((narrow.kind(), narrow.to_string().contains("'sketch'")), (ErrorKind::BadData, true));
    }
}
