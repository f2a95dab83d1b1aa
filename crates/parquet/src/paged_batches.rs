//! The rows of a file from the first to the last, of which little is in memory at a time.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use nearprint_fault::{Fault, Result};
use nearprint_storage::{bad_file, caught};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use tokio::runtime::Handle;

use crate::error::{of_arrow, of_parquet};
use crate::pages::{GroupState, PagedRowGroup, ReadLimits};
use crate::parquet_file::ParquetFile;

/// The rows of a batch.
const ROWS: usize = 512;

/// Some columns of a file of nearprint's own, in small batches. Of each column, the pages of one batch and a few bytes
/// that were read ahead are in memory, however large the row groups are: hundreds of files can be read side by side, as
/// a merge reads them.
///
/// It waits for the bytes of the file, so it belongs on a thread that may block.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::Array;
/// use nearprint_parquet::{Columns, PagedBatches, ParquetFile};
/// use nearprint_storage::{Storage, blocking};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let url = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents/dt=2026-11-19/part-00000.parquet");
/// let file = Storage::default().folder(url)?.file().await?;
/// let parquet = Arc::new(ParquetFile::open_without_page_index(file).await?);
/// let n_rows = blocking("reading", move || {
///     let mut batches = PagedBatches::new(parquet, &["lang"], 64 << 10)?;
///     let mut n_rows = 0;
///     while let Some(batch) = batches.next_batch()? {
///         n_rows += Columns { batch: &batch, file: batches.url() }.strings("lang")?.len();
///     }
///     Ok::<_, nearprint_fault::Fault>(n_rows)
/// });
/// assert_eq!(n_rows.await?, 155);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct PagedBatches {
    parquet: Arc<ParquetFile>,
    leaves: Vec<usize>,
    levels: FieldLevels,
    limits: ReadLimits,
    read_ahead: u64,
    handle: Handle,
    /// The row group that is read next.
    row_group: usize,
    open: Option<OpenGroup>,
}

/// A row group that is being read.
struct OpenGroup {
    reader: ParquetRecordBatchReader,
    state: Arc<GroupState>,
    n_left: u64,
}

impl std::fmt::Debug for OpenGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenGroup").field("n_left", &self.n_left).finish_non_exhaustive()
    }
}

impl PagedBatches {
    /// Reads the columns of these names. Names that the file lacks are passed over. Of each column, about `read_ahead`
    /// bytes are fetched at once.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the schema cannot be read.
    ///
    /// # Panics
    /// Panics outside of a Tokio runtime.
    pub fn new(parquet: Arc<ParquetFile>, columns: &[&str], read_ahead: u64) -> Result<Self> {
        let schema = parquet.footer().file_metadata().schema_descr();
        let is_wanted = |&leaf: &usize| columns.contains(&schema.column(leaf).path().string().as_str());
        let leaves: Vec<usize> = (0..schema.num_columns()).filter(is_wanted).collect();
        let mask = ProjectionMask::leaves(schema, leaves.iter().copied());
        let levels = caught(&parquet.file.url, || {
            parquet_to_arrow_field_levels(schema, mask, None).map_err(|e| of_parquet(&parquet.file.url, e))
        })?;
        let (limits, handle) = (ReadLimits::default(), Handle::current());
        Ok(Self { parquet, leaves, levels, limits, read_ahead, handle, row_group: 0, open: None })
    }

    /// Returns the path or URL of the file.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.parquet.file.url
    }

    /// Returns the next rows, or `None` after the last one.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a page is damaged or a row group has not the rows
    /// that its footer says; an error if the bytes cannot be read.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let url = self.parquet.file.url.clone();
        caught(&url, || self.next_rows())
    }

    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let open = match &mut self.open {
                Some(open) => open,
                None if self.row_group == self.parquet.n_row_groups() => return Ok(None),
                None => {
                    let open = self.open_group(self.row_group)?;
                    self.row_group += 1;
                    self.open.insert(open)
                }
            };
            open.state.begin_batch();
            match open.reader.next() {
                Some(Ok(batch)) => {
                    let Some(n_left) = open.n_left.checked_sub(batch.num_rows() as u64) else {
                        return Err(self.wrong_rows());
                    };
                    open.n_left = n_left;
                    return Ok(Some(batch));
                }
                Some(Err(error)) => {
                    let failure = open.state.take_failure();
                    return Err(failure.unwrap_or_else(|| self.in_row_group(error)));
                }
                None if open.n_left == 0 => self.open = None,
                None => return Err(self.wrong_rows()),
            }
        }
    }

    fn open_group(&self, row_group: usize) -> Result<OpenGroup> {
        self.leaves.iter().try_for_each(|&leaf| self.parquet.chunk_range(row_group, leaf).map(drop))?;
        let state = GroupState::new(&self.limits, ROWS, self.handle.clone()).reading_ahead(self.read_ahead);
        let state = Arc::new(state);
        let known = (0, bytes::Bytes::new());
        let pages = PagedRowGroup { parquet: Arc::clone(&self.parquet), row_group, state: Arc::clone(&state), known };
        let reader = ParquetRecordBatchReader::try_new_with_row_groups(&self.levels, &pages, ROWS, None);
        let failed = |e| state.take_failure().unwrap_or_else(|| of_parquet(&self.parquet.file.url, e));
        let reader = reader.map_err(failed)?;
        Ok(OpenGroup { reader, state, n_left: self.parquet.row_group_rows(row_group) })
    }

    fn in_row_group(&self, error: ArrowError) -> Fault {
        of_arrow(&self.parquet.file.url, error).row_group(self.row_group.saturating_sub(1))
    }

    fn wrong_rows(&self) -> Fault {
        let group = self.row_group.saturating_sub(1);
        let rows = self.parquet.row_group_rows(group);
        bad_file(&self.parquet.file.url, format!("row group {group} has not the {rows} rows that its footer says"))
    }
}
