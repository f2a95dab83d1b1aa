//! Filtering a document file: which of its rows survive, and the counts of those that do not.

use std::fs::File;
use std::sync::Arc;

use futures::future::BoxFuture;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::ReadLimits;
use schemars::JsonSchema;
use serde::Serialize;

use super::batch::{DocumentColumns, ReadContext};

/// The decision about a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The document is kept.
    Keep,
    /// Another document represents it.
    Drop,
    /// It has no text.
    Skip,
    /// A row of another night stands for it: a later night has it again, or its record is a revisit.
    Replaced,
    /// Who is asked for what is new has it already, with the same text.
    Unchanged,
    /// The night has forgotten it.
    Forgotten,
}

/// The decisions about the documents of a night.
pub trait Fates: std::fmt::Debug + Send + Sync {
    /// Returns what was decided about the document of this id.
    fn of(&self, id: &str) -> Fate;
}

/// The form of the file that is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FilterOutput {
    /// The rows of the documents that are kept, as they are.
    #[default]
    Survivors,
    /// One row for each row of the file, with its id and whether it is kept.
    Flags,
}

/// The filter for one file.
#[derive(Debug, Clone)]
pub struct FileFilter {
    /// The columns of the run. Only that of the ids is read.
    pub columns: DocumentColumns,
    /// The form of the file that is written.
    pub output: FilterOutput,
    /// The decisions.
    pub fates: Arc<dyn Fates>,
    /// The rows of the file that are no documents, ascending; counted from 1, in a text file by lines.
    pub quarantined: Vec<u64>,
    /// The limits of the reader's memory.
    pub limits: ReadLimits,
    /// The size in bytes above which a text made its row no document.
    pub max_doc_bytes: u64,
}

/// The file that a filter writes to.
#[derive(Debug)]
pub struct FilterTarget {
    /// The file, which is empty.
    pub file: File,
    /// The path or URL that messages name.
    pub name: String,
}

/// The future of a file that is being filtered.
pub type Filtered = BoxFuture<'static, Result<RowCounts>>;

/// The numbers of a file's rows by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RowCounts {
    /// The number of rows.
    pub n_rows: u64,
    /// The number of rows whose documents are kept.
    pub n_keep: u64,
    /// The number of rows whose documents are dropped.
    pub n_drop: u64,
    /// The number of rows whose documents have no text.
    pub n_skip: u64,
    /// The number of rows whose documents a later night has again: `--corpus` and `--new` take their states there.
    pub n_replaced: u64,
    /// The number of rows whose documents the corpus had before, with the same text: `--new` leaves them out.
    pub n_unchanged: u64,
    /// The number of rows whose documents were forgotten since the run.
    pub n_forgotten: u64,
    /// The number of rows that are no documents.
    pub n_quarantine: u64,
}

impl RowCounts {
    /// Returns the number of rows of a fate.
    pub fn of(&mut self, fate: Fate) -> &mut u64 {
        match fate {
            Fate::Keep => &mut self.n_keep,
            Fate::Drop => &mut self.n_drop,
            Fate::Skip => &mut self.n_skip,
            Fate::Replaced => &mut self.n_replaced,
            Fate::Unchanged => &mut self.n_unchanged,
            Fate::Forgotten => &mut self.n_forgotten,
        }
    }

    /// Returns whether the rows of all fates together are all rows.
    fn is_whole(&self) -> bool {
        let Self { n_rows, n_keep, n_drop, n_skip, n_replaced, n_unchanged, n_forgotten, n_quarantine } = *self;
        n_keep + n_drop + n_skip + n_replaced + n_unchanged + n_forgotten + n_quarantine == n_rows
    }
}
impl std::ops::AddAssign for RowCounts {
    fn add_assign(&mut self, more: Self) {
        self.n_rows += more.n_rows;
        self.n_keep += more.n_keep;
        self.n_drop += more.n_drop;
        self.n_skip += more.n_skip;
        self.n_replaced += more.n_replaced;
        self.n_unchanged += more.n_unchanged;
        self.n_forgotten += more.n_forgotten;
        self.n_quarantine += more.n_quarantine;
    }
}

impl FileFilter {
    /// Returns the context in which the file is read.
    pub(super) fn context(&self) -> ReadContext {
        ReadContext { limits: self.limits.clone(), ..ReadContext::new(self.max_doc_bytes) }
    }
}

/// Judges the rows of a file one after another, and counts them.
#[derive(Debug)]
pub struct Judge {
    filter: FileFilter,
    counts: RowCounts,
    /// The number of rows that are no documents and were passed.
    n_passed: usize,
}

impl Judge {
    pub fn new(filter: FileFilter) -> Self {
        Self { filter, counts: RowCounts::default(), n_passed: 0 }
    }

    /// Returns the filter.
    pub fn filter(&self) -> &FileFilter {
        &self.filter
    }

    /// Returns whether the next row is kept. `id` gives its id, unless it is no document.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the row is a document and has no id.
    pub fn keeps<I: AsRef<str>>(&mut self, url: &str, row: u64, id: impl FnOnce() -> Option<I>) -> Result<bool> {
        if self.passes(row) {
            return Ok(false);
        }
        self.counts.n_rows += 1;
        let id = id().ok_or_else(|| {
            let reason =
                "it is no document now, but the night has no such row in quarantine: use the id_column of the run"
                    .to_owned();
            Fault::bad_data(url.to_owned(), reason).row(row)
        })?;
        let fate = self.filter.fates.of(id.as_ref());
        *self.counts.of(fate) += 1;
        debug_assert!(self.counts.is_whole(), "each row has one fate");
        Ok(fate == Fate::Keep)
    }

    /// Counts the rows before a row that are no documents and that the reader does not give.
    pub fn pass_unseen(&mut self, row: u64) {
        while let Some(&unseen) = self.filter.quarantined.get(self.n_passed).filter(|&&unseen| unseen < row) {
            self.passes(unseen);
        }
    }

    /// Counts a row if it is the next one that is no document, and returns whether it is.
    pub fn passes(&mut self, row: u64) -> bool {
        let is_next = self.filter.quarantined.get(self.n_passed) == Some(&row);
        self.n_passed += usize::from(is_next);
        self.counts.n_rows += u64::from(is_next);
        self.counts.n_quarantine += u64::from(is_next);
        is_next
    }

    /// Returns the counts, after the last row that the reader gave. The rows after it are no documents.
    pub fn finish_unseen(mut self) -> RowCounts {
        self.pass_unseen(u64::MAX);
        self.counts
    }

    /// Returns whether a revisit record is kept, which is no row: of documents that are kept, and of those that the night does
    /// not have. Its text is that of another record.
    pub fn keeps_revisit(&mut self, row: u64, id: &str) -> bool {
        !self.passes(row) && self.filter.fates.of(id) == Fate::Keep
    }

    /// Returns the counts, after the last row.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the file ended before a row that is no document.
    pub fn finish(self, url: &str) -> Result<RowCounts> {
        match self.filter.quarantined.get(self.n_passed) {
            None => Ok(self.counts),
            Some(&row) => {
                let reason = "the night has it in quarantine, but the file has no such row".to_owned();
                Err(Fault::bad_data(url.to_owned(), reason).row(row))
            }
        }
    }
}
