//! Parquet files on any store: reading footers, and ranges and columns of the content.

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result, Words};
use nearprint_storage::{InputFile, Unreadable, bad_file, caught, panicked};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection};
use parquet::arrow::async_reader::{AsyncFileReader, MetadataFetch, ParquetRecordBatchStreamBuilder};
use parquet::basic::Type as PhysicalType;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::statistics::Statistics;

use crate::columns::BATCH_ROWS;
use crate::error::{missing_column, of_parquet};
use crate::guard::page_claims::{MAX_RATIO, RATIO_FREE_BYTES};
use crate::guard::page_guard::{GuardedChunk, PageGuard};
use crate::guard::thrift::check_footer;
use crate::page_index::{IndexPlaces, are_sound_column_indexes, pages_follow_each_other, within};

/// A Parquet file whose footer was read.
///
/// ```
/// use futures::TryStreamExt;
/// use nearprint_parquet::{Columns, ParquetFile};
/// use nearprint_storage::Storage;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let url = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents/dt=2026-11-19/part-00000.parquet");
/// let parquet = ParquetFile::open(Storage::default().folder(url)?.file().await?).await?;
/// assert_eq!((parquet.n_rows(), parquet.has_column("lang")), (155, true));
/// let mut batches = parquet.stream(parquet.whole(&["lang"]))?;
/// let mut n_chinese = 0;
/// while let Some(batch) = batches.try_next().await? {
///     let languages = Columns { batch: &batch, file: &parquet.file.url }.strings("lang")?;
///     n_chinese += languages.iter().filter(|language| *language == Some("zh")).count();
/// }
/// assert_eq!(n_chinese, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct ParquetFile {
    /// The file.
    pub file: InputFile,
    metadata: ArrowReaderMetadata,
}

/// The rows and columns to read from a file.
#[derive(Debug, Clone, Default)]
pub struct Read<'a> {
    /// The row groups, ascending.
    pub row_groups: Vec<usize>,
    /// The names of the columns, or the paths of columns inside of others, such as `add.path`. Names that the file
    /// lacks are ignored.
    pub columns: &'a [&'a str],
    /// The rows to read, counted through all the row groups above. `None` stands for all rows.
    pub rows: Option<RowSelection>,
    /// The largest number of rows in a batch.
    pub batch_rows: usize,
    /// The number to which the bytes that are read are added.
    pub bytes_read: Option<Arc<AtomicU64>>,
}

impl ParquetFile {
    /// Reads the footer and the page index. A page index that is not sound is ignored. The pages of sketches in
    /// nearprint's own form are left out: there are many, and [`sketch_column`](crate::sketch_column) reads their index
    /// for the row groups that it looks at.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if this is not a readable Parquet file, or if a row
    /// group claims more rows than the file can have; an error if the bytes cannot be read.
    pub async fn open(file: InputFile) -> Result<Self> {
        let parquet = Self::open_with(file, PageIndexPolicy::Optional).await?;
        let most = RATIO_FREE_BYTES.max(parquet.file.size.saturating_mul(MAX_RATIO)) / 8;
        // The rows of a row group are counted in 32 bits.
        let fits = |rows: u64| rows <= most.min(u64::from(u32::MAX));
        match (0..parquet.n_row_groups()).find(|&group| !fits(parquet.row_group_rows(group))) {
            None => Ok(parquet),
            Some(group) => {
                let (rows, bytes) = (parquet.row_group_rows(group), parquet.file.size);
                let reason = format!("row group {group} claims {rows} rows, the file has {bytes} bytes");
                Err(bad_file(&parquet.file.url, reason))
            }
        }
    }

    /// Reads only the footer. One request suffices if the footer is small.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if this is not a readable Parquet file; an error if
    /// the bytes cannot be read.
    pub async fn open_without_page_index(file: InputFile) -> Result<Self> {
        Self::open_with(file, PageIndexPolicy::Skip).await
    }

    async fn open_with(file: InputFile, page_index: PageIndexPolicy) -> Result<Self> {
        let mut reader = ObjectReader { page_index, ..ObjectReader::of(&file) };
        let loading = ArrowReaderMetadata::load_async(&mut reader, reader_options());
        let metadata = AssertUnwindSafe(loading).catch_unwind().await;
        let metadata = metadata.map_err(|panic| panicked(&file.url, &*panic))?;
        let metadata = metadata.map_err(|e| not_parquet(&file, e))?;
        check_rows(metadata.metadata()).map_err(|reason| bad_file(&file.url, reason))?;
        Ok(Self { file, metadata })
    }

    /// Returns the schema of the columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Returns the number of row groups.
    #[must_use]
    pub fn n_row_groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// Returns the footer, which includes the page index if that was read.
    pub fn footer(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// Returns a value from the file's key-value metadata.
    pub fn key_value(&self, key: &str) -> Option<String> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.clone()
    }

    /// Returns the number of rows in all row groups.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        (0..self.n_row_groups()).map(|g| self.row_group_rows(g)).sum()
    }

    /// Returns the number of rows in a row group.
    ///
    /// # Panics
    /// Panics if the file has no such row group.
    #[must_use]
    pub fn row_group_rows(&self, row_group: usize) -> u64 {
        // It is not negative, because `check_rows` has accepted it.
        self.metadata.metadata().row_group(row_group).num_rows().unsigned_abs()
    }

    /// Joins neighbouring row groups into ranges that have at most `max_rows` rows each. A row group with more rows
    /// forms a range of its own.
    ///
    /// # Panics
    /// Panics if the file does not have all these row groups.
    pub fn row_group_ranges(&self, row_groups: Range<usize>, max_rows: u64) -> Vec<Range<usize>> {
        joined_row_groups(row_groups.map(|group| (group, self.row_group_rows(group))), max_rows)
    }

    /// Returns the number of rows in the row groups before `row_group`.
    ///
    /// # Panics
    /// Panics if the file does not have these row groups.
    pub fn rows_before(&self, row_group: usize) -> u64 {
        (0..row_group).map(|g| self.row_group_rows(g)).sum()
    }

    /// Returns whether the file has a column of this name.
    pub fn has_column(&self, column: &str) -> bool {
        self.schema().field_with_name(column).is_ok()
    }

    /// Returns the footer's entry for a column of a row group.
    ///
    /// # Panics
    /// Panics if the file has no such row group.
    pub fn column_chunk(&self, row_group: usize, column: &str) -> Option<&ColumnChunkMetaData> {
        let columns = self.metadata.metadata().row_group(row_group).columns();
        columns.iter().find(|chunk| chunk.column_path().string() == column)
    }

    /// Returns the range of the file in which a column of a row group lies.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the range is not inside the file, or if the
    /// column does not have one value for each row of the row group.
    ///
    /// # Panics
    /// Panics if the file has no such row group or column.
    pub fn chunk_range(&self, row_group: usize, leaf: usize) -> Result<Range<u64>> {
        let chunk = self.footer().row_group(row_group).column(leaf);
        let refused = |reason: &str| {
            let reason = format!("row group {row_group}, column '{}': {reason}", chunk.column_path().string());
            bad_file(&self.file.url, reason)
        };
        let flat = chunk.column_descr().max_rep_level() == 0;
        if flat && u64::try_from(chunk.num_values()).ok() != Some(self.row_group_rows(row_group)) {
            return Err(refused("the number of its values is not that of the rows of its row group"));
        }
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let range = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
        let range = range.and_then(|(start, length)| Some(start..start.checked_add(length)?));
        range.filter(|range| range.end <= self.file.size).ok_or_else(|| refused("it does not lie in the file"))
    }

    /// Returns the positions of the pages that hold a column's values, or `None` if the file has no index of them, or
    /// if it was left out.
    ///
    /// # Panics
    /// Panics if the file has an index, but no such row group or column.
    pub fn page_locations(&self, row_group: usize, leaf: usize) -> Option<&[PageLocation]> {
        let located = self.footer().offset_index().map(|index| index[row_group][leaf].page_locations().as_slice());
        located.filter(|pages| !pages.is_empty())
    }

    /// Returns the footer for a read. Without the positions of a column's pages, its chunks are read whole, and then
    /// all columns are, because a reader takes the positions of all or of none.
    fn metadata_for(&self, row_groups: &[usize], leaves: &[usize]) -> Result<ArrowReaderMetadata> {
        let is_left_out = |&(group, leaf): &(usize, usize)| {
            self.row_group_rows(group) > 0 && self.page_locations(group, leaf).is_none()
        };
        let mut chunks = row_groups.iter().flat_map(|&group| leaves.iter().map(move |&leaf| (group, leaf)));
        let footer = self.footer();
        if footer.offset_index().is_none() || !chunks.any(|chunk| is_left_out(&chunk)) {
            return Ok(self.metadata.clone());
        }
        let bare = ParquetMetaData::new(footer.file_metadata().clone(), footer.row_groups().to_vec());
        let bare = ArrowReaderMetadata::try_new(Arc::new(bare), reader_options());
        bare.map_err(|e| of_parquet(&self.file.url, e))
    }

    /// Creates a guard for some columns of some row groups. Batches that are read must have at most `batch_rows` rows.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a chunk is not inside the file, overlaps another,
    /// or does not have one value for each row.
    ///
    /// # Panics
    /// Panics if the file has no such row group or column.
    pub fn guard(&self, row_groups: &[usize], leaves: &[usize], batch_rows: usize) -> Result<PageGuard> {
        let each = row_groups.iter().flat_map(|&group| leaves.iter().map(move |&leaf| (group, leaf)));
        let chunks = each.map(|(row_group, leaf)| {
            let range = self.chunk_range(row_group, leaf)?;
            let chunk = GuardedChunk {
                end: range.end,
                row_group,
                rows: self.row_group_rows(row_group),
                metadata: self.footer().row_group(row_group).column(leaf).clone(),
                batch_rows: batch_rows as u64,
                located: self.page_locations(row_group, leaf).map(<[_]>::to_vec),
            };
            Ok((range.start, chunk))
        });
        PageGuard::new(&self.file.url, chunks.collect::<Result<Vec<_>>>()?)
    }

    /// Reads a range of the file's bytes.
    ///
    /// # Errors
    /// The range cannot be read.
    pub async fn read_range(&self, range: Range<u64>) -> ParquetResult<Bytes> {
        ObjectReader::of(&self.file).get_bytes(range).await
    }

    /// Returns the smallest and the largest value of a column of unsigned integers, or `None` if the footer does not
    /// know them for every row group.
    pub fn bounds(&self, column: &str) -> Option<(u64, u64)> {
        let chunks = (0..self.n_row_groups()).map(|group| match self.column_chunk(group, column)?.statistics()? {
            Statistics::Int64(known) => Some((known.min_opt()?.cast_unsigned(), known.max_opt()?.cast_unsigned())),
            _ => None,
        });
        chunks.reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)))).flatten()
    }

    /// Returns the type of a column.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData), with `remedy` in its message.
    pub fn data_type(&self, column: &str, remedy: impl Into<Words>) -> Result<&DataType> {
        let schema = self.schema();
        schema.field_with_name(column).map(|f| f.data_type()).map_err(|_| {
            missing_column(
                &self.file.url,
                column,
                None,
                schema.fields().iter().map(|f| f.name().clone()).collect(),
                remedy,
            )
        })
    }

    /// Returns a request for all rows of some columns.
    pub fn whole<'a>(&self, columns: &'a [&'a str]) -> Read<'a> {
        let row_groups = (0..self.n_row_groups()).collect();
        Read { row_groups, columns, rows: None, batch_rows: BATCH_ROWS, bytes_read: None }
    }

    /// Reads what `read` asks for, as a stream of batches in order. The stream ends with an error if it has not given
    /// as many rows as were asked for.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a chunk is refused by the [guard](Self::guard),
    /// or if the reader cannot be built.
    ///
    /// # Panics
    /// Panics if the file has no such row group.
    pub fn stream(&self, read: Read<'_>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let schema = self.metadata.parquet_schema();
        let is_wanted =
            |path: &str, name: &str| path.strip_prefix(name).is_some_and(|r| r.is_empty() || r.starts_with('.'));
        let wanted = |path: String| read.columns.iter().any(|name| is_wanted(&path, name));
        let leaves: Vec<usize> =
            (0..schema.num_columns()).filter(|&i| wanted(schema.column(i).path().string())).collect();
        let batch_rows = if self.has_dictionary(&read.row_groups, &leaves) {
            read.batch_rows.min(DICTIONARY_BATCH_ROWS)
        } else {
            read.batch_rows
        };
        let guard = Arc::new(self.guard(&read.row_groups, &leaves, batch_rows)?);
        let reader = ObjectReader { guard: Some(guard), bytes_read: read.bytes_read, ..ObjectReader::of(&self.file) };
        let metadata = self.metadata_for(&read.row_groups, &leaves)?;
        let all = read.row_groups.iter().map(|&group| self.row_group_rows(group)).sum();
        let n_rows = read.rows.as_ref().map_or(all, |rows| rows.row_count() as u64);
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, metadata)
            .with_projection(ProjectionMask::leaves(schema, leaves))
            .with_row_groups(read.row_groups)
            .with_batch_size(batch_rows);
        if let Some(rows) = read.rows {
            builder = builder.with_row_selection(rows);
        }
        let url = self.file.url.clone();
        let stream = caught(&url, || builder.build().map_err(|e| of_parquet(&url, e)))?;
        let batches = AssertUnwindSafe(stream).catch_unwind().map(move |batch| match batch {
            Ok(batch) => batch.map_err(|e| of_parquet(&url, e)),
            Err(panic) => Err(panicked(&url, &*panic)),
        });
        Ok(counted(batches.boxed(), self.file.url.clone(), n_rows))
    }

    /// Returns whether some of these columns are strings that may come from a dictionary.
    fn has_dictionary(&self, row_groups: &[usize], leaves: &[usize]) -> bool {
        row_groups.iter().any(|&group| {
            let mut chunks = leaves.iter().map(|&leaf| self.footer().row_group(group).column(leaf));
            chunks.any(|chunk| {
                chunk.column_type() == PhysicalType::BYTE_ARRAY && chunk.dictionary_page_offset().is_some()
            })
        })
    }
}

/// The types come from the Parquet schema. If a writer embedded an Arrow schema, it would turn dictionaries, views and
/// large strings into column types of their own.
fn reader_options() -> ArrowReaderOptions {
    ArrowReaderOptions::new().with_skip_arrow_metadata(true)
}

/// The largest number of rows in a batch whose strings come from a dictionary. Each row may have the longest of them.
/// In most files they have a few hundred bytes.
const DICTIONARY_BATCH_ROWS: usize = 1024;

/// Adds an error to the end of a stream of batches if they do not have `n_rows` rows together.
fn counted(
    batches: BoxStream<'static, Result<RecordBatch>>,
    url: String,
    n_rows: u64,
) -> BoxStream<'static, Result<RecordBatch>> {
    let counting = futures::stream::try_unfold((batches, url, 0), move |(mut batches, url, before)| async move {
        let Some(batch) = batches.try_next().await? else {
            if before == n_rows {
                return Ok(None);
            }
            return Err(bad_file(url, format!("gave {before} of {n_rows} rows")));
        };
        let rows = before + batch.num_rows() as u64;
        Ok(Some((batch, (batches, url, rows))))
    });
    counting.boxed()
}

/// A number of rows that no real file reaches.
const MAX_ROWS: u64 = 1 << 48;

/// Checks that no row group has fewer than 0 rows, and that together they have as many as the file.
fn check_rows(footer: &ParquetMetaData) -> std::result::Result<(), &'static str> {
    let mut of_groups = footer.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
    let rows = of_groups.try_fold(0u64, |rows, more| rows.checked_add(more?));
    let rows = rows
        .filter(|&rows| rows <= MAX_ROWS)
        .ok_or("its footer claims more rows than any file has, or fewer than 0")?;
    if u64::try_from(footer.file_metadata().num_rows()).ok() == Some(rows) {
        Ok(())
    } else {
        Err("its footer claims other numbers of rows for the file and for its row groups")
    }
}

/// Joins neighbouring row groups, given with their numbers of rows, into ranges of at most `max_rows` rows. A row group
/// with more rows forms a range of its own.
pub fn joined_row_groups(row_groups: impl Iterator<Item = (usize, u64)>, max_rows: u64) -> Vec<Range<usize>> {
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

/// Selects `rows`, which must be ascending, from `n_rows` rows.
///
/// # Panics
/// May panic if the rows are not ascending or not below `n_rows`.
pub fn selection(rows: &[u32], n_rows: u64) -> RowSelection {
    debug_assert!(rows.is_sorted_by(|a, b| a < b), "a selection goes forward: rows ascend, each once");
    debug_assert!(rows.last().is_none_or(|&row| u64::from(row) < n_rows), "rows lie in what they are selected from");
    let ranges = rows.iter().map(|&row| row as usize..row as usize + 1);
    RowSelection::from_consecutive_ranges(ranges, count(n_rows))
}

/// Converts a number of rows to `usize`, in which selections count rows.
#[allow(
    clippy::cast_possible_truncation,
    reason = "files have fewer than 2^48 rows, and words 64 bits: see the assertion"
)]
pub const fn count(rows: u64) -> usize {
    const { assert!(usize::BITS >= u64::BITS) };
    rows as usize
}

fn not_parquet(file: &InputFile, error: ParquetError) -> Fault {
    let fault = of_parquet(&file.url, error);
    if fault.matter() != Some(&Unreadable::Damaged) {
        return fault;
    }
    let reason = format!("not a readable Parquet file ({})", fault.reason_in_file());
    fault.reason(reason)
}

#[derive(Debug, Clone)]
struct ObjectReader {
    file: InputFile,
    page_index: PageIndexPolicy,
    /// Checks the bytes of column chunks that are read.
    guard: Option<Arc<PageGuard>>,
    /// Counts the bytes that are read.
    bytes_read: Option<Arc<AtomicU64>>,
}

impl ObjectReader {
    fn of(file: &InputFile) -> Self {
        Self { file: file.clone(), page_index: PageIndexPolicy::Skip, guard: None, bytes_read: None }
    }

    fn checked(&self, start: u64, bytes: Bytes) -> ParquetResult<Bytes> {
        if let Some(counter) = &self.bytes_read {
            counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check(start, &bytes)).map_err(external)?;
        Ok(bytes)
    }
}

fn external(error: impl Into<Fault>) -> ParquetError {
    ParquetError::External(Box::new(error.into()))
}

impl AsyncFileReader for ObjectReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let start = range.start;
            self.checked(start, self.file.read_range(range).await.map_err(external)?)
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            let read = self.file.read_ranges(&ranges).await.map_err(external)?;
            ranges.iter().zip(read).map(|(range, bytes)| self.checked(range.start, bytes)).collect()
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let (size, page_index) = (self.file.size, self.page_index);
        async move {
            let reader = ParquetMetaDataReader::new()
                .with_page_index_policy(PageIndexPolicy::Skip)
                .with_prefetch_hint(Some(TAIL_BYTES));
            let mut known = CheckedFooter::read(self, size).await?;
            let footer = reader.load_and_finish(&mut known, size).await?;
            let footer =
                if page_index == PageIndexPolicy::Skip { footer } else { known.with_page_index(footer).await? };
            Ok(Arc::new(footer))
        }
        .boxed()
    }
}

/// The first bytes of a file that is packed by gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes at the end of a file that are read first. Most footers fit in them.
const TAIL_BYTES: usize = 64 << 10;

/// The largest footer that is read. In memory, a footer takes several times its size.
const MAX_FOOTER_BYTES: u64 = 256 << 20;

/// The end of a file. Its footer was checked to hold as much as it claims, because the footer's reader reserves memory
/// for what it claims.
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
            let told = |reason: &str| Err(ParquetError::General(reason.to_owned()));
            if tail.ends_with(b"PARE") {
                return told("its footer is encrypted, and files that are encrypted are not read");
            }
            if size > 0 && reader.get_bytes(0..size.min(2)).await? == GZIP[..] {
                return told("it is packed by gzip: unpack it, and let its name end in .parquet");
            }
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
        let footer = footer.and_then(|from| tail.get(from..tail.len() - 8));
        let footer = footer.ok_or_else(|| refused("is larger than the file"))?;
        if check_footer(footer).map_err(|_| refused("is damaged"))?.has_encrypted_column {
            return Err(refused("has encrypted columns"));
        }
        Ok(Self { reader, start, tail })
    }

    /// Returns the footer with the page index. A page index that is not sound is left out, so that the file is read by
    /// its columns alone.
    async fn with_page_index(&mut self, footer: ParquetMetaData) -> ParquetResult<ParquetMetaData> {
        let size = self.reader.file.size;
        let Some(places) = IndexPlaces::of(&footer, size) else {
            return Ok(footer);
        };
        let of_columns = match places.of_columns.clone() {
            Some(around) => Some(KnownBytes { start: around.start, bytes: self.bytes(around).await? }),
            None => None,
        };
        let runs = places.runs();
        let mut of_pages = Vec::with_capacity(runs.len());
        if runs.iter().all(|run| within(self.start, &self.tail, run).is_some()) {
            of_pages.extend(runs.iter().filter_map(|run| within(self.start, &self.tail, run)));
        } else {
            of_pages = self.reader.get_byte_ranges(runs.clone()).await?;
        }
        let of_pages: Vec<(u64, Bytes)> = runs.iter().map(|run| run.start).zip(of_pages).collect();
        let Some(offset_index) = places.offset_index(&footer, &of_pages) else {
            return Ok(footer);
        };
        let footer = match of_columns {
            None => footer,
            Some(known) if !are_sound_column_indexes(&footer, known.start, &known.bytes) => return Ok(footer),
            Some(mut known) => {
                let mut reader = ParquetMetaDataReader::new_with_metadata(footer)
                    .with_column_index_policy(PageIndexPolicy::Optional)
                    .with_offset_index_policy(PageIndexPolicy::Skip);
                reader.load_page_index(&mut known).await?;
                reader.finish()?
            }
        };
        let footer = footer.into_builder().set_offset_index(Some(offset_index)).build();
        if pages_follow_each_other(&footer, size) {
            return Ok(footer);
        }
        Ok(footer.into_builder().set_column_index(None).set_offset_index(None).build())
    }
}

/// Bytes that were fetched before.
struct KnownBytes {
    start: u64,
    bytes: Bytes,
}

impl MetadataFetch for &mut KnownBytes {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        let found = within(self.start, &self.bytes, &range);
        let found = found.ok_or_else(|| ParquetError::EOF("its page index is not where its footer says".to_owned()));
        futures::future::ready(found).boxed()
    }
}

impl CheckedFooter<'_> {
    fn bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        match within(self.start, &self.tail, &range) {
            Some(known) => futures::future::ready(Ok(known)).boxed(),
            None => self.reader.get_bytes(range),
        }
    }
}

impl MetadataFetch for &mut CheckedFooter<'_> {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.bytes(range)
    }
}
