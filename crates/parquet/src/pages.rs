//! The pages of one row group. They are fetched one after another and checked before they are unpacked.
//!
//! A reader takes as much memory as the file claims to need. Here, therefore, a page is not unpacked if it claims more
//! than the limit, or, being large, more than a thousand times its packed size. If the pages of a batch take more
//! memory than its share, the batch is read again with fewer rows. Checksums are compared here, so that bytes that were
//! damaged on the way are fetched again once.

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use nearprint_fault::{Fault, Words, key, words};
use nearprint_storage::{damaged_file, locked};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::of_parquet;
use crate::guard::page_claims::{LEAST_PAGE_BYTES, check_listed, check_sizes, check_unpacked};
use crate::guard::thrift::{Malformed, PageSizes, page_sizes};
use crate::parquet_file::{ParquetFile, count};

/// The memory that the readers of an execution may take.
#[derive(Debug, Clone)]
pub struct ReadLimits {
    /// Bytes of unpacked pages that one batch of one task may hold.
    pub batch_bytes: u64,
    /// Bytes that one unpacked page may have.
    pub page_bytes: u64,
    /// Held by the one task that may take more than its batch's share.
    large: Arc<Semaphore>,
}

/// The memory for texts if no limit is set.
const TEXT_BYTES: u64 = 1 << 30;
const MAX_BATCH_BYTES: u64 = 64 << 20;
const MIN_BATCH_BYTES: u64 = 1 << 20;

impl ReadLimits {
    /// Sets a quarter of the memory limit aside for texts. The batches of all threads share half of that. One large
    /// page at a time may take all of it, and in any case `LEAST_PAGE_BYTES`.
    pub fn new(memory_limit: Option<usize>, threads: usize) -> Self {
        let bytes = memory_limit.map_or(TEXT_BYTES, |limit| limit as u64 / 4);
        let batch_bytes = (bytes / 2 / threads.max(1) as u64).clamp(MIN_BATCH_BYTES, MAX_BATCH_BYTES);
        Self { batch_bytes, page_bytes: bytes.max(LEAST_PAGE_BYTES), large: Arc::new(Semaphore::new(1)) }
    }
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self::new(None, std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// Bytes of a column that are fetched at once, unless a reader wants fewer.
const READ_AHEAD: u64 = 8 << 20;

/// Bytes in which a page's header is looked for at first.
const HEADER_BYTES: u64 = 16 << 10;

/// Bytes in which a page's header is looked for at most.
const MAX_HEADER_BYTES: u64 = 8 << 20;

/// The state that the columns of one row group share.
#[derive(Debug)]
pub struct GroupState {
    limits: ReadLimits,
    /// Rows of a batch.
    batch_rows: usize,
    /// Bytes that were unpacked for the batch that is being read.
    unpacked: AtomicU64,
    /// Bytes of a column that are fetched at once.
    read_ahead: u64,
    /// If this is not 0, the batch did not fit, and this many rows may.
    pub fewer_rows: AtomicUsize,
    /// The first error. It is kept here because the readers in between would make it unrecognisable.
    failure: Mutex<Option<Fault>>,
    large: Mutex<Option<OwnedSemaphorePermit>>,
    /// Set if a page without a checksum was read.
    pub unchecked: AtomicBool,
    handle: Handle,
}

impl GroupState {
    /// Creates the state of a row group that is read in batches of so many rows. `handle` is that of the runtime in which
    /// the file is read.
    pub fn new(limits: &ReadLimits, batch_rows: usize, handle: Handle) -> Self {
        debug_assert!(batch_rows > 0, "batches without rows would never come to an end");
        Self {
            limits: limits.clone(),
            batch_rows,
            unpacked: AtomicU64::new(0),
            read_ahead: READ_AHEAD,
            fewer_rows: AtomicUsize::new(0),
            failure: Mutex::new(None),
            large: Mutex::new(None),
            unchecked: AtomicBool::new(false),
            handle,
        }
    }

    /// Makes each column fetch about so many bytes at once.
    #[must_use]
    pub fn reading_ahead(self, bytes: u64) -> Self {
        Self { read_ahead: bytes, ..self }
    }

    /// Begins a batch: it holds no pages yet.
    pub fn begin_batch(&self) {
        self.unpacked.store(0, Ordering::Relaxed);
    }

    /// Takes the first error, if there was one.
    pub fn take_failure(&self) -> Option<Fault> {
        locked(&self.failure).take()
    }

    fn fail(&self, error: Fault) -> ParquetError {
        let said = error.to_string();
        locked(&self.failure).get_or_insert(error);
        ParquetError::General(said)
    }

    fn ask_for_fewer_rows(&self, rows: usize) -> ParquetError {
        debug_assert!(rows < self.batch_rows, "each attempt asks for fewer rows, so that attempts end");
        self.fewer_rows.store(rows.max(1), Ordering::Relaxed);
        ParquetError::General("a batch with fewer rows is needed".to_owned())
    }

    /// Reserves memory for a page of the batch.
    fn reserve(&self, bytes: u64) -> ParquetResult<()> {
        let held = self.unpacked.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if held <= self.limits.batch_bytes {
            return Ok(());
        }
        if self.batch_rows > 1 {
            return Err(self.ask_for_fewer_rows(self.batch_rows / 8));
        }
        let mut large = locked(&self.large);
        if large.is_none() {
            let permit = self.handle.block_on(Arc::clone(&self.limits.large).acquire_owned());
            *large = Some(permit.map_err(|_| ParquetError::General("cancelled".to_owned()))?);
        }
        Ok(())
    }
}

/// A row group whose pages are read one after another.
#[derive(Debug)]
pub struct PagedRowGroup {
    /// The file.
    pub parquet: Arc<ParquetFile>,
    /// The position of the row group in the file.
    pub row_group: usize,
    /// The state that its columns share.
    pub state: Arc<GroupState>,
    /// Bytes of the file that were read before, and their position in it.
    pub known: (u64, Bytes),
}

impl PagedRowGroup {
    /// Reads the bytes of some columns with one request if they lie close together. Otherwise the result is empty.
    ///
    /// # Errors
    /// The bytes cannot be read.
    ///
    /// # Panics
    /// Panics if the footer gives a chunk a negative position or length.
    pub async fn small(parquet: &ParquetFile, row_group: usize, leaves: &[usize]) -> ParquetResult<(u64, Bytes)> {
        let chunks = leaves.iter().map(|&leaf| parquet.footer().row_group(row_group).column(leaf).byte_range());
        let start = chunks.clone().map(|(start, _)| start).min().unwrap_or(0);
        let end = chunks.map(|(start, length)| start.saturating_add(length)).max().unwrap_or(0).min(parquet.file.size);
        if start >= end || end - start > READ_AHEAD {
            return Ok((0, Bytes::new()));
        }
        Ok((start, parquet.read_range(start..end).await?))
    }
}

impl RowGroups for PagedRowGroup {
    fn num_rows(&self) -> usize {
        count(self.parquet.row_group_rows(self.row_group))
    }

    fn column_chunks(&self, leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let chunk = self.metadata().row_group(self.row_group).column(leaf);
        let (start, length) = chunk.byte_range();
        let end = start.checked_add(length).filter(|&end| end <= self.parquet.file.size).ok_or_else(|| {
            ParquetError::EOF(format!("a column of row group {} lies past the end of the file", self.row_group))
        })?;
        let source = ColumnBytes {
            parquet: Arc::clone(&self.parquet),
            row_group: self.row_group,
            end,
            compression: chunk.compression(),
            state: Arc::clone(&self.state),
            buffer: Mutex::new(self.known.clone()),
            page: Mutex::new(None),
        };
        let pages = SerializedPageReader::new(Arc::new(PageSource(Arc::new(source))), chunk, self.num_rows(), None)?;
        let pages = CheckedPages { pages, has_levels: has_levels(chunk), state: Arc::clone(&self.state) };
        Ok(Box::new(OneChunk(Some(Box::new(pages)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata().row_group(self.row_group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.parquet.footer()
    }
}

fn has_levels(chunk: &ColumnChunkMetaData) -> bool {
    chunk.column_descr().max_def_level() > 0
}

struct OneChunk(Option<Box<dyn PageReader>>);

impl Iterator for OneChunk {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}

/// The bytes of one column chunk, in the form that the page reader needs.
struct PageSource(Arc<ColumnBytes>);

/// The bytes of one column chunk.
struct ColumnBytes {
    parquet: Arc<ParquetFile>,
    row_group: usize,
    /// The end of the chunk in the file.
    end: u64,
    compression: Compression,
    state: Arc<GroupState>,
    /// Bytes that were read ahead, and their position in the file.
    buffer: Mutex<(u64, Bytes)>,
    /// The header that was read last, and the position of its page's bytes.
    page: Mutex<Option<(u64, PageSizes)>>,
}

impl ColumnBytes {
    /// Returns `length` bytes from `start` on. There are fewer only at the end of the chunk.
    fn bytes(&self, start: u64, length: u64) -> ParquetResult<Bytes> {
        let end = start.saturating_add(length).min(self.end);
        if start > end {
            return Err(ParquetError::EOF("a page lies past the end of its column chunk".to_owned()));
        }
        let mut buffer = locked(&self.buffer);
        if let Some(known) = slice(&buffer, start, end) {
            return Ok(known);
        }
        let ahead = start.saturating_add(self.state.read_ahead).min(self.end).max(end);
        *buffer = (start, self.fetch(start, ahead)?);
        slice(&buffer, start, end).ok_or_else(|| ParquetError::EOF("the file has become shorter".to_owned()))
    }

    fn fetch(&self, start: u64, end: u64) -> ParquetResult<Bytes> {
        let fetched = self.state.handle.block_on(self.parquet.read_range(start..end));
        fetched.map_err(|e| self.state.fail(of_parquet(&self.parquet.file.url, e)))
    }

    fn header(&self, start: u64) -> ParquetResult<Bytes> {
        let mut length = HEADER_BYTES;
        loop {
            let bytes = self.bytes(start, length)?;
            match page_sizes(&bytes) {
                Ok(sizes) => {
                    *locked(&self.page) = Some((start + sizes.header_bytes as u64, sizes));
                    return Ok(bytes.slice(..sizes.header_bytes));
                }
                // Old writers put the smallest and the largest value into the header in full.
                Err(Malformed::Short) if bytes.len() as u64 == length && length < MAX_HEADER_BYTES => length *= 8,
                Err(_) => return Err(self.refused("the header of a page is damaged")),
            }
        }
    }

    /// Returns the bytes of the page whose header was read last, if the page may be unpacked.
    fn page_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let page = locked(&self.page).filter(|(at, sizes)| *at == start && sizes.packed == length as u64);
        let (_, page) = page.ok_or_else(|| self.refused("a page is not where its header says"))?;
        let limit = self.state.limits.page_bytes;
        let limited_by = || words!["a quarter of ", key("memory_limit"), ", or 1 GiB"];
        check_sizes(&page, limit, limited_by).map_err(|reason| self.refused(reason))?;
        self.state.reserve(page.unpacked.max(page.packed))?;
        let bytes = self.bytes(start, page.packed)?;
        if bytes.len() != length {
            return Err(self.refused("a page ends past its column chunk"));
        }
        let bytes = self.checked(start, bytes, &page)?;
        check_unpacked(self.compression, &bytes, &page).map_err(|reason| self.refused(reason))?;
        Ok(bytes)
    }

    fn refused(&self, reason: impl Into<Words>) -> ParquetError {
        let reason = words![format!("row group {}: ", self.row_group), reason.into()];
        self.state.fail(damaged_file(&self.parquet.file.url, reason))
    }

    /// Compares bytes with their checksum, if there is one. If they differ, the bytes are fetched again, in case they
    /// were damaged on the way.
    fn checked(&self, start: u64, bytes: Bytes, page: &PageSizes) -> ParquetResult<Bytes> {
        let Some(crc) = page.crc else {
            self.state.unchecked.store(true, Ordering::Relaxed);
            return Ok(bytes);
        };
        if crc32fast::hash(&bytes) == crc {
            return Ok(bytes);
        }
        let again = self.fetch(start, start + page.packed)?;
        if crc32fast::hash(&again) == crc {
            tracing::warn!(file = self.parquet.file.url, "a page was damaged on its way here: fetched again");
            return Ok(again);
        }
        Err(self.refused(format!("the checksum of the page at byte {start} does not match its bytes")))
    }
}

fn slice((offset, bytes): &(u64, Bytes), start: u64, end: u64) -> Option<Bytes> {
    let from = usize::try_from(start.checked_sub(*offset)?).ok()?;
    let to = usize::try_from(end.checked_sub(*offset)?).ok()?;
    (to <= bytes.len()).then(|| bytes.slice(from..to))
}

impl Length for PageSource {
    fn len(&self) -> u64 {
        self.0.end
    }
}

impl ChunkReader for PageSource {
    type T = HeaderBytes;

    /// Returns a reader for a header. The page reader sometimes asks for one without reading from it.
    fn get_read(&self, start: u64) -> ParquetResult<HeaderBytes> {
        Ok(HeaderBytes { source: Arc::clone(&self.0), start, bytes: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.0.page_bytes(start, length)
    }
}

/// The header of a page. It is fetched when it is first read from.
struct HeaderBytes {
    source: Arc<ColumnBytes>,
    start: u64,
    bytes: Option<Bytes>,
}

impl Read for HeaderBytes {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.bytes.is_none() {
            self.bytes = Some(self.source.header(self.start).map_err(std::io::Error::other)?);
        }
        let Some(bytes) = &mut self.bytes else { return Ok(0) };
        let n = into.len().min(bytes.len());
        bytes.copy_to_slice(&mut into[..n]);
        Ok(n)
    }
}

/// Pages whose counts are checked before a decoder reserves memory for them.
struct CheckedPages {
    pages: SerializedPageReader<PageSource>,
    /// Levels stand before the values.
    has_levels: bool,
    state: Arc<GroupState>,
}

impl CheckedPages {
    fn check(&self, page: &Page) -> ParquetResult<()> {
        let bytes = page.buffer();
        match page {
            // A number takes four bytes or more, a string has its length before it, and a fixed-length array takes at
            // least one byte.
            Page::DictionaryPage { num_values, .. } if *num_values as usize > bytes.len() => {
                Err(wrong("a dictionary has fewer bytes than it says it has values"))
            }
            _ => match page.encoding() {
                Encoding::DELTA_BYTE_ARRAY => {
                    check_listed(page, self.has_levels).map_err(general)?;
                    self.check_shared_prefixes(bytes.len())
                }
                Encoding::DELTA_LENGTH_BYTE_ARRAY => check_listed(page, self.has_levels).map_err(general),
                _ => Ok(()),
            },
        }
    }

    /// Asks for fewer rows if values that share prefixes might not fit. Each value is written out in full, and may be
    /// as long as its page.
    fn check_shared_prefixes(&self, page_bytes: usize) -> ParquetResult<()> {
        let rows = self.state.batch_rows;
        if rows > 1 && (rows * page_bytes) as u64 > self.state.limits.batch_bytes {
            let fit = self.state.limits.batch_bytes / page_bytes.max(1) as u64;
            return Err(self.state.ask_for_fewer_rows(usize::try_from(fit).unwrap_or(rows).min(rows / 2)));
        }
        Ok(())
    }
}

fn wrong(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}

impl Iterator for CheckedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Data pages without values are passed over: the decoders take one for the end of the column.
impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        loop {
            match self.pages.get_next_page()? {
                Some(page) if page.is_data_page() && page.num_values() == 0 => {}
                Some(page) => return self.check(&page).map(|()| Some(page)),
                None => return Ok(None),
            }
        }
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        loop {
            match self.pages.peek_next_page()? {
                Some(page) if !page.is_dict && page.num_levels == Some(0) => self.pages.skip_next_page()?,
                next => return Ok(next),
            }
        }
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }
}

fn general(reason: Words) -> ParquetError {
    ParquetError::General(reason.to_string())
}
