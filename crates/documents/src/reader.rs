//! The interface of a format of document files. A new format needs files with a [`DocumentReader`] and a filter, and a
//! line in [`FORMATS`](super::formats::FORMATS).

use std::ops::Range;

use arrow::datatypes::DataType;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use nearprint_fault::Result;
use nearprint_storage::InputFile;

use super::batch::{DocumentBatch, DocumentColumns, ReadContext};
use super::filter::{FileFilter, FilterTarget, Filtered};
use crate::quarantine::BadReason;

/// A format of document files.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The name of the format in messages.
    pub name: &'static str,
    /// The endings of file names, in lower case and without the dot.
    pub endings: &'static [&'static str],
    /// Opens a file and checks its columns. Its documents are not read yet.
    pub open: fn(InputFile, DocumentColumns, ReadContext) -> Opened,
    /// Copies the rows of a file that a filter lets through.
    pub filter: fn(InputFile, FileFilter, FilterTarget) -> Filtered,
    /// The rows of a file.
    pub rows: Rows,
}

/// The rows of a file of some format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Rows are counted.
    Counted,
    /// Rows are numbered by the byte at which they begin.
    AtBytes,
    /// A file is one document.
    One,
}

/// The fault of a row, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// The finding.
    pub what: String,
    /// The advice to the user.
    pub remedy: String,
}

/// The future of a file that is being opened.
pub type Opened = BoxFuture<'static, Result<Box<dyn DocumentReader>>>;

/// A document file whose columns were checked.
pub trait DocumentReader: std::fmt::Debug + Send + Sync {
    /// Returns the file.
    fn file(&self) -> &InputFile;

    /// Returns the known types of columns by name: that of the id, if the format can have several, and those of the
    /// keep order.
    fn column_types(&self) -> &[(String, DataType)];

    /// Returns the number of rows, which is at most the number of the file's bytes; `None` if only reading the file can
    /// tell.
    fn n_rows(&self) -> Option<u64>;

    /// Cuts the file into ranges that can be read independently, each of about `max_rows` rows at most. They are ranges
    /// of row groups; a format without row groups has one range.
    fn row_group_ranges(&self, _max_rows: u64) -> Vec<Range<usize>> {
        std::iter::once(0..1).collect()
    }

    /// Cuts the file into ranges that can be read independently, but must be checked afterwards: [`SpanRead`] tells
    /// whether the rows of all of them are those of the file. Most formats need no such check.
    ///
    /// [`SpanRead`]: super::batch::SpanRead
    fn ranges_to_join(&self, max_rows: u64) -> Vec<Range<usize>> {
        self.row_group_ranges(max_rows)
    }

    /// Returns the row group, counted from 0, of a row, counted from 1; `None` if the format has no row groups.
    fn row_group_of(&self, _row: u64) -> Option<u32> {
        None
    }

    /// Returns what is wrong with a row, counted from 1, that is no document for this reason; `None` if the reason says
    /// all. The row is read again.
    fn explain(
        &self,
        _row: u64,
        _reason: BadReason,
        _columns: &DocumentColumns,
        _context: &ReadContext,
    ) -> BoxFuture<'static, Option<RowFault>> {
        std::future::ready(None).boxed()
    }

    /// Returns the bytes of memory that [`release`](Self::release) would free.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Frees everything that can be read again.
    fn release(&mut self) {}

    /// Returns the rows of some row groups, in file order.
    fn read(
        &self,
        row_groups: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
        context: &ReadContext,
    ) -> BoxStream<'static, Result<DocumentBatch>>;
}

/// Warns of zeros with which a file ends: where they are no padding, a crash has left them in place of documents.
pub fn warn_of_zeros(url: &str, n_zeros: u64) {
    if n_zeros > 0 {
        tracing::warn!(
            file = url,
            n_zeros,
            "passed over at its end: padding, or what a crash left in place of documents"
        );
    }
}
