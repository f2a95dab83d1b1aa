//! What a format of document files has to give: a new one is a file with a [`DocumentReader`], and a line in
//! [`FORMATS`](super::formats::FORMATS).

use std::ops::Range;

use arrow::datatypes::DataType;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use nearprint_storage::InputFile;

use super::batch::{DocumentBatch, DocumentColumns, ReadContext};
use crate::error::Result;

/// A format of document files.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// As messages name it.
    pub name: &'static str,
    /// Endings of file names, without the point and in lower case.
    pub endings: &'static [&'static str],
    /// Looks at a file's columns. Nothing of its rows is read yet.
    pub open: fn(InputFile, DocumentColumns, ReadContext) -> Opened,
}

/// A file that is being opened.
pub type Opened = BoxFuture<'static, Result<Box<dyn DocumentReader>>>;

/// A file of documents whose columns were looked at.
pub trait DocumentReader: std::fmt::Debug + Send + Sync {
    /// The file.
    fn file(&self) -> &InputFile;

    /// The type of each column that it is known of, by name: of the id, where it is one that can differ, and of the keep order.
    fn column_types(&self) -> &[(String, DataType)];

    /// Its rows, no more than it has bytes; none where only reading tells.
    fn n_rows(&self) -> Option<u64>;

    /// Parts that can be read by themselves, each of about `max_rows` at most: row groups; one part where it has none.
    fn row_group_ranges(&self, max_rows: u64) -> Vec<Range<usize>>;

    /// The row group of a row, counted from 1; none where it has none.
    fn row_group_of(&self, row: u64) -> Option<u32>;

    /// Bytes of memory that [`release`](Self::release) would give up.
    fn held_bytes(&self) -> usize;

    /// Gives up what can be read again.
    fn release(&mut self);

    /// The rows of some row groups, in file order.
    fn read(
        &self,
        row_groups: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
        context: &ReadContext,
    ) -> BoxStream<'static, Result<DocumentBatch>>;
}
