//! Two sorted datasets, row by row.

use std::cmp::Ordering;
use std::collections::VecDeque;

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use nearprint_fault::Result;
use nearprint_parquet::{Columns, ParquetFile};
use nearprint_storage::{InputFile, bad_file};

/// The rows of a batch, which are sorted by their keys.
pub trait SortedRows: Sized {
    /// The columns that are read.
    const COLUMNS: &'static [&'static str];

    /// Takes the columns of a batch.
    fn of(columns: Columns<'_>) -> Result<Self>;

    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Returns the key of a row: one or two ids.
    fn key(&self, row: usize) -> (&str, &str);
}

/// A position in the rows of some files. The memory holds one batch.
pub struct Cursor<R> {
    files: VecDeque<InputFile>,
    batches: Option<(String, BoxStream<'static, Result<RecordBatch>>)>,
    rows: Option<R>,
    at: usize,
    /// The key of the last row of the batch before.
    last: Option<(String, String)>,
}

impl<R: SortedRows> Cursor<R> {
    /// Stands at the first row.
    pub async fn open(files: Vec<InputFile>) -> Result<Self> {
        let mut cursor = Self { files: files.into(), batches: None, rows: None, at: 0, last: None };
        cursor.next_batch().await?;
        Ok(cursor)
    }

    /// Returns the batch and the row at which the cursor stands, or `None` after the last row.
    pub fn get(&self) -> Option<(&R, usize)> {
        self.rows.as_ref().map(|rows| (rows, self.at))
    }

    /// Goes to the next row.
    pub async fn advance(&mut self) -> Result<()> {
        self.at += 1;
        match &self.rows {
            Some(rows) if self.at >= rows.len() => self.next_batch().await,
            _ => Ok(()),
        }
    }

    async fn next_batch(&mut self) -> Result<()> {
        if let Some(last) = self.rows.take().filter(|rows| rows.len() > 0) {
            let (a, b) = last.key(last.len() - 1);
            self.last = Some((a.to_owned(), b.to_owned()));
        }
        self.at = 0;
        loop {
            if let Some((url, batches)) = &mut self.batches {
                while let Some(batch) = batches.try_next().await? {
                    let rows = R::of(Columns { batch: &batch, file: url })?;
                    if rows.len() > 0 {
                        refuse_disorder(url, &rows, self.last.as_ref())?;
                        self.rows = Some(rows);
                        return Ok(());
                    }
                }
            }
            let Some(file) = self.files.pop_front() else { return Ok(()) };
            let parquet = ParquetFile::open(file).await?;
            self.batches = Some((parquet.file.url.clone(), parquet.stream(parquet.whole(R::COLUMNS))?));
        }
    }
}

/// Refuses rows that are not in strictly ascending order, because a difference of such rows would be a wrong one.
fn refuse_disorder<R: SortedRows>(url: &str, rows: &R, last: Option<&(String, String)>) -> Result<()> {
    let before_first = last.is_none_or(|(a, b)| (a.as_str(), b.as_str()) < rows.key(0));
    if before_first && (1..rows.len()).all(|row| rows.key(row - 1) < rows.key(row)) {
        return Ok(());
    }
    Err(bad_file(url, "its rows are not sorted by their ids"))
}

/// Returns which of two cursors stands at the smaller key, or `None` if both are at the end.
pub fn order<R: SortedRows>(a: &Cursor<R>, b: &Cursor<R>) -> Option<Ordering> {
    match (a.get(), b.get()) {
        (None, None) => None,
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (Some((a, i)), Some((b, j))) => Some(a.key(i).cmp(&b.key(j))),
    }
}
