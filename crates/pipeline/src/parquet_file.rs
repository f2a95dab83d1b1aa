//! Parquet files on any store: footers, ranged and projected reads.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection};
use parquet::arrow::async_reader::{AsyncFileReader, MetadataFetch, ParquetRecordBatchStreamBuilder};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::statistics::Statistics;

use crate::error::{PipelineError, Result};
use crate::storage::InputFile;
use crate::tasks::BATCH_ROWS;
use crate::thrift::{check_footer, has_encrypted_column};

/// A Parquet file whose footer was read.
#[derive(Debug, Clone)]
pub struct ParquetFile {
    /// The file.
    pub file: InputFile,
    metadata: ArrowReaderMetadata,
}

/// What to read of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Read<'a> {
    /// Row groups, ascending.
    pub row_groups: Vec<usize>,
    /// Columns by name; those that the file lacks are left out.
    pub columns: &'a [&'a str],
    /// Rows of the row groups laid end to end; all where none.
    pub rows: Option<RowSelection>,
    /// Rows of a batch.
    pub batch_rows: usize,
}

impl ParquetFile {
    /// Reads the footer and the page index.
    ///
    /// # Errors
    /// [`PipelineError::BadFile`] where it is no Parquet file.
    pub async fn open(file: InputFile) -> Result<Self> {
        Self::open_with(file, PageIndexPolicy::Optional).await
    }

    /// Reads the footer only: one request where it is small.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) async fn open_without_page_index(file: InputFile) -> Result<Self> {
        Self::open_with(file, PageIndexPolicy::Skip).await
    }

    async fn open_with(file: InputFile, page_index: PageIndexPolicy) -> Result<Self> {
        let mut reader = ObjectReader { file: file.clone() };
        // Types as the Parquet schema has them: an Arrow schema that a writer embedded would make its dictionaries, views
        // and large strings column types of their own.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_page_index_policy(page_index);
        let metadata = ArrowReaderMetadata::load_async(&mut reader, options).await;
        let metadata = metadata.map_err(|e| not_parquet(&file, e))?;
        Ok(Self { file, metadata })
    }

    /// The columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// The number of row groups.
    #[must_use]
    pub fn n_row_groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// What the footer says, page index included.
    pub(crate) fn footer(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// A value of the file's metadata.
    pub(crate) fn key_value(&self, key: &str) -> Option<String> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.clone()
    }

    /// Rows of all row groups.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        (0..self.n_row_groups()).map(|g| self.row_group_rows(g)).sum()
    }

    /// Rows of a row group.
    #[must_use]
    pub fn row_group_rows(&self, row_group: usize) -> u64 {
        u64::try_from(self.metadata.metadata().row_group(row_group).num_rows()).unwrap_or(0)
    }

    /// Those of `row_groups` that stand next to each other, together at most `max_rows` rows; a larger one stands alone.
    pub(crate) fn row_group_ranges(&self, row_groups: Range<usize>, max_rows: u64) -> Vec<Range<usize>> {
        joined_row_groups(row_groups.map(|group| (group, self.row_group_rows(group))), max_rows)
    }

    /// Rows of the row groups before one.
    pub(crate) fn rows_before(&self, row_group: usize) -> u64 {
        (0..row_group).map(|g| self.row_group_rows(g)).sum()
    }

    /// Whether there is a column of this name.
    pub(crate) fn has_column(&self, column: &str) -> bool {
        self.schema().field_with_name(column).is_ok()
    }

    /// A column of a row group, as the footer describes it.
    pub(crate) fn column_chunk(&self, row_group: usize, column: &str) -> Option<&ColumnChunkMetaData> {
        let columns = self.metadata.metadata().row_group(row_group).columns();
        columns.iter().find(|chunk| chunk.column_path().string() == column)
    }

    /// Bytes of the file.
    pub(crate) async fn read_range(&self, range: Range<u64>) -> ParquetResult<Bytes> {
        ObjectReader { file: self.file.clone() }.get_bytes(range).await
    }

    /// The smallest and the largest value of a column of unsigned integers, as far as the footer knows them.
    pub(crate) fn bounds(&self, column: &str) -> Option<(u64, u64)> {
        let chunks = (0..self.n_row_groups()).map(|group| match self.column_chunk(group, column)?.statistics()? {
            Statistics::Int64(known) => Some((known.min_opt()?.cast_unsigned(), known.max_opt()?.cast_unsigned())),
            _ => None,
        });
        chunks.reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)))).flatten()
    }

    /// The type of a column.
    ///
    /// # Errors
    /// [`PipelineError::MissingColumn`] with `remedy`.
    pub(crate) fn data_type(&self, column: &str, remedy: &'static str) -> Result<&DataType> {
        let schema = self.schema();
        schema.field_with_name(column).map(|f| f.data_type()).map_err(|_| PipelineError::MissingColumn {
            file: self.file.url.clone(),
            column: column.to_owned(),
            present: schema.fields().iter().map(|f| f.name().clone()).collect(),
            remedy,
        })
    }

    /// All rows of some columns.
    pub(crate) fn whole<'a>(&self, columns: &'a [&'a str]) -> Read<'a> {
        Read { row_groups: (0..self.n_row_groups()).collect(), columns, rows: None, batch_rows: BATCH_ROWS }
    }

    /// The batches of `read`, in order.
    pub(crate) fn stream(&self, read: Read<'_>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let reader = ObjectReader { file: self.file.clone() };
        let schema = self.metadata.parquet_schema();
        let wanted = |name: &str| read.columns.contains(&name);
        let leaves = (0..schema.num_columns()).filter(|&i| wanted(schema.get_column_root(i).name()));
        let mask = ProjectionMask::leaves(schema, leaves);
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, self.metadata.clone())
            .with_projection(mask)
            .with_row_groups(read.row_groups)
            .with_batch_size(read.batch_rows);
        if let Some(rows) = read.rows {
            builder = builder.with_row_selection(rows);
        }
        let url = self.file.url.clone();
        let stream = builder.build().map_err(|e| PipelineError::of_parquet(&url, e))?;
        Ok(stream.map_err(move |e| PipelineError::of_parquet(&url, e)).boxed())
    }
}

/// Neighbouring row groups, given with their rows, together at most `max_rows`; a larger one stands alone.
pub(crate) fn joined_row_groups(row_groups: impl Iterator<Item = (usize, u64)>, max_rows: u64) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut rows = 0;
    for (group, more) in row_groups {
        match ranges.last_mut() {
            Some(last) if rows + more <= max_rows => {
                last.end = group + 1;
                rows += more;
            }
            _ => {
                ranges.push(group..group + 1);
                rows = more;
            }
        }
    }
    ranges
}

/// Rows, ascending, of `n_rows`.
pub(crate) fn selection(rows: &[u32], n_rows: u64) -> RowSelection {
    let ranges = rows.iter().map(|&row| row as usize..row as usize + 1);
    RowSelection::from_consecutive_ranges(ranges, usize::try_from(n_rows).unwrap_or(usize::MAX))
}

fn not_parquet(file: &InputFile, error: ParquetError) -> PipelineError {
    match PipelineError::of_parquet(&file.url, error) {
        PipelineError::BadFile { file, reason } => {
            PipelineError::BadFile { file, reason: format!("not a readable Parquet file ({reason})") }
        }
        other => other,
    }
}

#[derive(Debug, Clone)]
struct ObjectReader {
    file: InputFile,
}

fn external(error: PipelineError) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl AsyncFileReader for ObjectReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move { self.file.read_range(range).await.map_err(external) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move { self.file.read_ranges(&ranges).await.map_err(external) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let size = self.file.size;
        async move {
            let reader =
                ParquetMetaDataReader::new().with_arrow_reader_options(options).with_prefetch_hint(Some(TAIL_BYTES));
            let known = CheckedFooter::read(self, size).await?;
            Ok(Arc::new(reader.load_and_finish(known, size).await?))
        }
        .boxed()
    }
}

/// Bytes of a file's end that are read first: most footers.
const TAIL_BYTES: usize = 64 << 10;

/// Footers are unpacked to several times their size.
const MAX_FOOTER_BYTES: u64 = 256 << 20;

/// The end of a file, with a footer that holds as much as it says: its reader reserves memory for what it says.
struct CheckedFooter<'a> {
    reader: &'a mut ObjectReader,
    start: u64,
    tail: Bytes,
}

impl<'a> CheckedFooter<'a> {
    async fn read(reader: &'a mut ObjectReader, size: u64) -> ParquetResult<Self> {
        let mut start = size.saturating_sub(TAIL_BYTES as u64);
        let mut tail = if size == 0 { Bytes::new() } else { reader.get_bytes(start..size).await? };
        let Some((footer, end)) = tail.split_last_chunk::<8>().filter(|(_, end)| end.ends_with(b"PAR1")) else {
            return Ok(Self { reader, start, tail });
        };
        let length = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
        let refused = |reason: &str| ParquetError::General(format!("its footer of {length} bytes {reason}"));
        if length > MAX_FOOTER_BYTES {
            return Err(refused("is larger than any that is read"));
        }
        if length > footer.len() as u64 {
            start = size.checked_sub(length + 8).ok_or_else(|| refused("is larger than the file"))?;
            tail = reader.get_bytes(start..size).await?;
        }
        let footer = (tail.len() as u64).checked_sub(length + 8).and_then(|from| usize::try_from(from).ok());
        let footer = footer.and_then(|from| tail.get(from..tail.len() - 8)).unwrap_or_default();
        check_footer(footer).map_err(|_| refused("is damaged"))?;
        if has_encrypted_column(footer).unwrap_or(false) {
            return Err(refused("has encrypted columns"));
        }
        Ok(Self { reader, start, tail })
    }
}

impl MetadataFetch for CheckedFooter<'_> {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        let place = |at: u64| usize::try_from(at.checked_sub(self.start)?).ok();
        let known = place(range.start).zip(place(range.end)).filter(|&(from, to)| from <= to && to <= self.tail.len());
        match known {
            Some((from, to)) => futures::future::ready(Ok(self.tail.slice(from..to))).boxed(),
            None => self.reader.get_bytes(range),
        }
    }
}
