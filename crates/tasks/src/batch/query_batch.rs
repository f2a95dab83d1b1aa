//! The query batch in memory: tonight's documents, in id order, after fingerprinting.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{Array, LargeStringArray};
use arrow::datatypes::SchemaRef;
use nearprint_documents::BadRow;
use nearprint_fault::Fault;
use nearprint_fingerprint::Sketch;
use nearprint_join::{Column, RowSet, partition_point};
use nearprint_parquet::schema::with_all_sketches;
use nearprint_storage::row_number;
use serde::{Deserialize, Serialize};

use super::decimal_order::DecimalOrder;
use super::words::NightWords;

/// The reason why a document has no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The text is NULL.
    NullText,
    /// Nothing is left of the text after normalisation.
    Empty,
    /// The text has fewer distinct features than the floor.
    TooShort,
}

impl SkipReason {
    /// All reasons, in order.
    pub const ALL: [Self; 3] = [Self::NullText, Self::Empty, Self::TooShort];

    /// Returns the name of the reason in datasets and summaries.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NullText => "null_text",
            Self::Empty => "empty",
            Self::TooShort => "too_short",
        }
    }

    /// Returns the reason with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }
}

/// The query batch. Its rows are documents in order of their ids.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
/// use nearprint_tasks::{CollectPolicy, Collecting};
///
/// // Rows arrive in any order, each with its file and its number there.
/// let ids: ArrayRef = Arc::new(StringArray::from(vec!["b.html", "a.html"]));
/// let fingerprints: ArrayRef = Arc::new(UInt64Array::from(vec![7, 6]));
/// let (files, rows) = (UInt32Array::from(vec![0, 0]), UInt64Array::from(vec![1, 2]));
/// let (files, rows): (ArrayRef, ArrayRef) = (Arc::new(files), Arc::new(rows));
/// let arrived = [("doc_id", ids), ("fingerprint", fingerprints), ("file", files), ("row", rows)];
/// let mut collecting = Collecting::new(&[], None, usize::MAX);
/// collecting.push(&RecordBatch::try_from_iter(arrived)?)?;
/// let batch = collecting.finish(&CollectPolicy::default(), |_| "pages.parquet".to_owned())?;
/// assert_eq!((batch.len(), batch.row_of("b.html")), (2, Some(1)));
/// assert_eq!((batch.id(0), batch.fingerprints.get(0)), ("a.html".into(), Some(&6)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct QueryBatch {
    /// The number of documents.
    pub n_rows: u32,
    pub(crate) ids: Ids,
    /// The fingerprints, or the high halves of 128-bit ones. Some documents have none.
    pub fingerprints: Column<u64>,
    /// The low halves of 128-bit fingerprints.
    pub low_halves: Column<u64>,
    /// The sketches. Documents without a fingerprint have none. No document has one if the profile makes no sketches.
    pub sketches: Arc<Column<Sketch>>,
    /// The numbers of distinct features that the sketches see. Documents without a sketch, and those of fingerprints
    /// datasets, have none.
    pub n_features: Arc<Column<u32>>,
    /// The hashes of the normalised texts. Documents without text have none, and neither have documents in datasets of
    /// others.
    pub text_hashes: Column<[u8; 16]>,
    /// The reason why a row has no fingerprint.
    pub skipped: Column<SkipReason>,
    /// The number of characters of each normalised text. `None` stands for 0, and for every row of a fingerprints
    /// dataset.
    pub lengths: Column<u32>,
    /// The sources of the documents. `None` means that there is no column of sources.
    pub sources: Option<Sources>,
    /// The rows by the configured keep order, then by id. `None` means the order of the ids.
    pub keep_order: Option<Vec<u32>>,
    /// The documents whose texts have words that a judge may read. Texts of earlier nights, and those that are too short, have
    /// none.
    pub have_words: Column<()>,
    /// These words, if they came with the documents.
    pub words: Option<NightWords>,
    /// The documents whose record is a revisit: they have the text of another record.
    pub revisits: RowSet,
    /// The rows of the input that are not documents, by file and row. The rule for repeated ids left some of them out.
    pub bad_rows: Vec<BadRow>,
}

/// The sources of documents, such as sites or feeds.
#[derive(Debug, Default)]
pub struct Sources {
    /// The position of each document's source among the names. `None` means NULL.
    pub of_rows: Column<u32>,
    /// The names of the sources.
    pub names: Vec<String>,
}

impl Sources {
    /// Returns the bytes that the sources hold.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let names = self.names.iter().map(|name| name.capacity() + size_of::<String>());
        self.of_rows.memory_bytes() + names.sum::<usize>()
    }
}

/// The ids of documents.
#[derive(Debug)]
pub(crate) enum Ids {
    Named(LargeStringArray),
    /// Row numbers stand in for ids. They equal no id of another document.
    Numbered(DecimalOrder),
}

/// Columns of a fingerprinted document beside those of the fingerprints dataset. All except file and row may be left
/// out. So may `doc_id`: if no batch has it, row numbers stand in for ids.
pub(crate) const LOW_HALF: &str = "low_half";
pub(crate) const SKIPPED: &str = "skipped";
pub(crate) const FILE: &str = "file";
pub(crate) const ROW: &str = "row";
pub(crate) const KEEP_PREFIX: &str = "keep.";
/// How new a row is among those with its id.
pub(crate) const NEWEST_BY: &str = "newest_by";
/// The id of the document whose text a row has, if it is a revisit record.
pub(crate) const REVISIT_OF: &str = "revisit_of";
/// How new the record is at least, and at most, that a revisit refers to.
pub(crate) const REVISIT_NEWEST_BY: [&str; 2] = ["revisit_newest_from", "revisit_newest_to"];

impl QueryBatch {
    /// Returns the number of documents.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "nothing asks")]
    pub fn len(&self) -> usize {
        self.n_rows as usize
    }

    /// Returns `columns`, in which `sketch` and `n_features` are nullable, for the documents with a fingerprint: not
    /// nullable if each of them has a sketch.
    #[must_use]
    pub fn fingerprint_columns(&self, columns: &SchemaRef) -> SchemaRef {
        if self.sketches.n_values() == self.fingerprints.n_values() {
            return with_all_sketches(columns);
        }
        Arc::clone(columns)
    }

    /// Drops the columns that only decisions and the store need.
    pub fn forget_all_but_ids_and_sketches(&mut self) {
        (self.fingerprints, self.text_hashes) = (Column::default(), Column::default());
        (self.low_halves, self.n_features) = (Column::default(), Arc::default());
        (self.skipped, self.lengths) = (Column::default(), Column::default());
    }

    /// Returns whether row numbers stand in for ids. They then equal no id of another document.
    pub fn is_numbered(&self) -> bool {
        matches!(self.ids, Ids::Numbered(_))
    }

    /// Returns the id of a row.
    ///
    /// # Panics
    /// May panic if there is no such row.
    #[must_use]
    pub fn id(&self, row: u32) -> Cow<'_, str> {
        match &self.ids {
            Ids::Named(ids) => Cow::Borrowed(ids.value(row as usize)),
            Ids::Numbered(order) => Cow::Owned(order.number_at(row).to_string()),
        }
    }

    /// Returns the row of an id. `None` means that no row has it.
    #[must_use]
    pub fn row_of(&self, id: &str) -> Option<u32> {
        let row = self.first_row_not_before(id);
        self.has_id(row, id).then_some(row)
    }

    /// Returns whether there is a row `row` and it has this id.
    pub fn has_id(&self, row: u32, id: &str) -> bool {
        row < self.rows().end && self.id(row) == id
    }

    /// Returns the first row whose id is not smaller than `id`, or the number of rows if all ids are smaller.
    #[must_use]
    pub fn first_row_not_before(&self, id: &str) -> u32 {
        partition_point(self.rows(), |row| *self.id(row) < *id)
    }

    /// Returns the rows by the configured keep order, then by id.
    pub fn keep_order(&self) -> impl Iterator<Item = u32> {
        self.rows().map(|rank| self.keep_order.as_ref().map_or(rank, |order| order[rank as usize]))
    }

    /// Moves rows to the front of the keep order, which otherwise stays the same.
    pub fn put_first(&mut self, chosen: impl Fn(u32) -> bool) {
        if self.rows().any(&chosen) {
            let mut order: Vec<u32> = self.keep_order.take().unwrap_or_else(|| self.rows().collect());
            order.sort_by_key(|&row| !chosen(row));
            self.keep_order = Some(order);
        }
    }

    /// Moves revisits to the end of the keep order, except those that stay in their place.
    pub fn put_revisits_last(&mut self, stays: impl Fn(u32) -> bool) {
        let revisits = std::mem::take(&mut self.revisits);
        if revisits.n_below(u64::from(self.n_rows)) > 0 {
            self.put_first(|row| !revisits.contains(row) || stays(row));
        }
        self.revisits = revisits;
    }

    /// Returns the batch without some rows. The others move up.
    #[must_use]
    pub fn without(self, rows: &RowSet) -> Self {
        let left: Vec<u32> = self.rows().filter(|row| !rows.contains(*row)).collect();
        let mut new_rows = vec![u32::MAX; self.len()];
        for (new, &old) in (0..).zip(&left) {
            new_rows[old as usize] = new;
        }
        let ids = LargeStringArray::from_iter_values(left.iter().map(|&row| self.id(row)));
        let taken = |row: u32| Some(new_rows[row as usize]).filter(|&row| row != u32::MAX);
        let mut revisits = RowSet::default();
        for row in self.rows().filter(|&row| self.revisits.contains(row)).filter_map(taken) {
            revisits.insert(row);
        }
        let keep_order = self.keep_order.map(|order| order.into_iter().filter_map(taken).collect());
        let of_sources = |sources: Sources| Sources { of_rows: sources.of_rows.take(&left), ..sources };
        Self {
            n_rows: row_number(left.len()),
            ids: Ids::Named(ids),
            fingerprints: self.fingerprints.take(&left),
            low_halves: self.low_halves.take(&left),
            sketches: Arc::new(Arc::unwrap_or_clone(self.sketches).take(&left)),
            n_features: Arc::new(Arc::unwrap_or_clone(self.n_features).take(&left)),
            text_hashes: self.text_hashes.take(&left),
            skipped: self.skipped.take(&left),
            lengths: self.lengths.take(&left),
            sources: self.sources.map(of_sources),
            keep_order,
            have_words: self.have_words.take(&left),
            words: self.words.map(|words| words.take(&left)),
            revisits,
            bad_rows: self.bad_rows,
        }
    }

    /// Returns the rows in order of their ids.
    pub fn rows(&self) -> std::ops::Range<u32> {
        0..self.n_rows
    }

    /// Returns the bytes that the batch holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let ids = match &self.ids {
            Ids::Named(ids) => ids.get_array_memory_size(),
            Ids::Numbered(_) => 0,
        };
        ids + self.fingerprints.memory_bytes()
            + self.low_halves.memory_bytes()
            + self.sketches.memory_bytes()
            + self.n_features.memory_bytes()
            + self.text_hashes.memory_bytes()
            + self.skipped.memory_bytes()
            + self.lengths.memory_bytes()
            + self.sources.as_ref().map_or(0, Sources::memory_bytes)
            + self.have_words.memory_bytes()
            + self.words.as_ref().map_or(0, NightWords::memory_bytes)
            + self.keep_order.as_ref().map_or(0, |order| order.capacity() * 4)
            + self.revisits.memory_bytes()
    }
}

pub(crate) fn defect(reason: impl Display) -> Fault {
    Fault::internal("collect documents", reason)
}
