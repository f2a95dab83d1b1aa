//! The sketches of some rows, read from the pages that hold them and from no others.
//!
//! Columns in the form that nearprint writes (required, PLAIN, uncompressed, small pages; see docs/store-format.md) are
//! read here. A page that holds several of the rows is read once. Pages that are nearly next to each other are read
//! together with what lies between them, so the rows of a crowded stretch cost one scan of it, and single rows cost a
//! page each. Any other column goes through Arrow, which gives the same sketches.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch};
//! use arrow::datatypes::{DataType, Field, Schema};
//! use nearprint_parquet::sketch_column::{self, ReadCounts};
//! use nearprint_parquet::{DatasetWriter, ParquetFile};
//! use nearprint_storage::Storage;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let temp = tempfile::tempdir()?;
//! let schema = Arc::new(Schema::new(vec![Field::new("sketch", DataType::FixedSizeBinary(32), false)]));
//! let sketches: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter((0..1000).map(|i| [(i % 251) as u8; 32]))?);
//! let mut writer = DatasetWriter::new(temp.path(), "", &schema, &[]);
//! writer.write(RecordBatch::try_new(Arc::clone(&schema), vec![sketches])?)?;
//! let path = writer.finish()?[0].path.display().to_string();
//!
//! let parquet = ParquetFile::open(Storage::default().folder(&path)?.file().await?).await?;
//! let counts = ReadCounts::default();
//! let sketches = sketch_column::fetch(&parquet, 0..1, &[3, 5, 999], &counts).await?;
//! assert_eq!(sketches, [Some([3; 32]), Some([5; 32]), Some([246; 32])]);
//! assert_eq!(counts.pages(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_storage::bad_file;
use parquet::file::page_index::offset_index::PageLocation;
use tokio::sync::OnceCell;

use crate::columns::{BATCH_ROWS, Columns, fixed};
use crate::guard::thrift::{PageKind, page_locations, page_sizes};
use crate::page_index::{has_plain_sketches, index_ranges, pages_of_chunk};
use crate::parquet_file::{ParquetFile, Read, selection};
use crate::schema::{SKETCH, SKETCH_BYTES};

/// The bytes of a sketch.
pub type SketchBytes = [u8; SKETCH_BYTES as usize];

/// The bytes between two pages that are read along with them rather than left out. A disk gives so many in about the
/// time of one more request. (From buckets, `InputFile` reads larger gaps along.)
const READ_THROUGH_BYTES: u64 = 16 << 10;

/// The bytes after which the pages of a request go to the next one, so that memory does not grow with the number of rows.
const REQUEST_BYTES: u64 = 1 << 20;

/// The pages of a request for all sketches, about 1 MiB of them, and the number of such requests at the same time.
const REQUEST_PAGES: usize = 1 << 8;
const REQUESTS_AT_ONCE: usize = 4;

/// The bytes that are held, at about the most, while all sketches are read.
pub const READ_ALL_BYTES: usize = (REQUESTS_AT_ONCE + 1) * REQUEST_PAGES * (5 << 10);

/// The number of row groups whose pages are read at the same time.
const ROW_GROUPS_AT_ONCE: usize = 4;

/// The largest page index of a column chunk that is read.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// The amount of data that was read for sketches.
#[derive(Debug, Default)]
pub struct ReadCounts {
    pages: AtomicU64,
    bytes: Arc<AtomicU64>,
}

impl ReadCounts {
    /// Returns the number of pages in which sketches were looked up. Pages that Arrow reads are not counted.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that were asked for: pages, what lies between them, and page indexes. From a bucket,
    /// more may have been read, since larger gaps are read along there.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The places of a file's pages of sketches, as far as they were looked up. Whoever fetches from one file again and again
/// keeps them: 32 bytes a page of 128 sketches.
#[derive(Debug)]
pub struct SketchPages {
    of_groups: Vec<OnceCell<Option<Vec<Page>>>>,
}

impl SketchPages {
    /// Returns the places of the pages of a file, none of which were looked up yet.
    #[must_use]
    pub fn of(file: &ParquetFile) -> Self {
        Self { of_groups: (0..file.n_row_groups()).map(|_| OnceCell::new()).collect() }
    }
}

/// Does the same as [`fetch`] for rows that count through the whole file, and looks up the places of pages once.
///
/// # Errors
/// Those of [`fetch`].
///
/// # Panics
/// Panics if the file has fewer rows, or if the pages are those of a file with fewer row groups.
pub async fn fetch_known(
    file: &ParquetFile,
    pages: &SketchPages,
    rows: &[u32],
    counts: &ReadCounts,
) -> Result<Vec<Option<SketchBytes>>> {
    fetch_from(file, Some(pages), 0..file.n_row_groups(), rows, counts).await
}

/// Returns the sketches of `rows`, which ascend and count across `row_groups`, in their order. `None` stands for NULL.
///
/// # Errors
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a page is damaged, or if the column gives fewer rows;
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the values have another length; an error if the bytes
/// cannot be read.
///
/// # Panics
/// Panics if the file has no such row groups, or fewer rows in them.
pub async fn fetch(
    file: &ParquetFile,
    row_groups: Range<usize>,
    rows: &[u32],
    counts: &ReadCounts,
) -> Result<Vec<Option<SketchBytes>>> {
    fetch_from(file, None, row_groups, rows, counts).await
}

async fn fetch_from(
    file: &ParquetFile,
    known: Option<&SketchPages>,
    row_groups: Range<usize>,
    rows: &[u32],
    counts: &ReadCounts,
) -> Result<Vec<Option<SketchBytes>>> {
    debug_assert!(rows.is_sorted(), "rows ascend, so that each row group takes its own from the front");
    let (mut rest, mut first) = (rows, 0u64);
    let mut fetches = Vec::new();
    for group in row_groups {
        let end = first + file.row_group_rows(group);
        let (now, later) = rest.split_at(rest.partition_point(|&row| u64::from(row) < end));
        if !now.is_empty() {
            // Less than the rows of a row group, which 32 bits count.
            #[allow(clippy::cast_possible_truncation, reason = "at most the smallest of the rows")]
            let first = first as u32;
            let rows: Vec<u32> = now.iter().map(|row| row - first).collect();
            fetches.push(async move { of_row_group(file, known, group, &rows, counts).await });
        }
        (rest, first) = (later, end);
    }
    let of_groups: Vec<Vec<Option<SketchBytes>>> =
        futures::stream::iter(fetches).buffered(ROW_GROUPS_AT_ONCE).try_collect().await?;
    let sketches = of_groups.concat();
    if sketches.len() == rows.len() {
        return Ok(sketches);
    }
    Err(bad_file(&file.file.url, format!("gave {} of {} sketches", sketches.len(), rows.len())))
}

/// Sketches of rows that follow each other.
#[derive(Debug, Clone, Copy)]
pub enum Sketches<'a> {
    /// Of a column in which no sketch is missing.
    All(&'a [SketchBytes]),
    /// `None` stands for NULL.
    Some(&'a [Option<SketchBytes>]),
}

/// Reads all sketches of some row groups, and calls `each` with them, some at a time and in the order of the rows.
///
/// # Errors
/// Those of [`fetch`].
///
/// # Panics
/// Panics if the file has no such row groups, or if the pages are those of a file with fewer.
pub async fn read_all(
    file: &ParquetFile,
    known: &SketchPages,
    row_groups: Range<usize>,
    counts: &ReadCounts,
    mut each: impl FnMut(Sketches<'_>),
) -> Result<()> {
    for group in row_groups {
        let columns = file.footer().row_group(group).columns();
        let pages = match columns.iter().position(has_plain_sketches) {
            Some(leaf) => known.of_groups[group].get_or_try_init(|| pages(file, group, leaf, counts)).await?.as_deref(),
            None => None,
        };
        let Some(pages) = pages else {
            let n_rows = file.row_group_rows(group);
            for start in (0..n_rows).step_by(BATCH_ROWS) {
                let rows = start..n_rows.min(start + BATCH_ROWS as u64);
                // A row group has fewer rows than 32 bits count, as `fetch` takes for granted.
                #[expect(clippy::cast_possible_truncation, reason = "rows of one row group")]
                let rows: Vec<u32> = rows.map(|row| row as u32).collect();
                each(Sketches::Some(&of_rows(file, group, &rows, counts).await?));
            }
            continue;
        };
        let mut readings = futures::stream::iter(requests(pages))
            .map(|pages| whole_pages(file, pages, counts))
            .buffered(REQUESTS_AT_ONCE);
        while let Some((of, pages, bytes)) = readings.try_next().await? {
            for page in &pages {
                each(Sketches::All(sketches_of_page(file, &of, page, &bytes)?));
            }
        }
    }
    Ok(())
}

/// Returns the pages of each request: some that lie one behind another.
fn requests(pages: &[Page]) -> Vec<Vec<Page>> {
    let stretches = pages.chunk_by(|a, b| a.bytes.end == b.bytes.start);
    stretches.flat_map(|pages| pages.chunks(REQUEST_PAGES)).map(<[Page]>::to_vec).collect()
}

/// Reads pages that lie one behind another. Returns also their places in the file.
async fn whole_pages(
    file: &ParquetFile,
    pages: Vec<Page>,
    counts: &ReadCounts,
) -> Result<(Range<u64>, Vec<Page>, Bytes)> {
    let ends = pages.first().zip(pages.last()).map(|(first, last)| first.bytes.start..last.bytes.end);
    let of = ends.ok_or_else(|| Fault::internal("sketches", "a request without a page"))?;
    counts.bytes.fetch_add(of.end - of.start, Ordering::Relaxed);
    counts.pages.fetch_add(pages.len() as u64, Ordering::Relaxed);
    let bytes = read(file, std::slice::from_ref(&of)).await?.swap_remove(0);
    Ok((of, pages, bytes))
}

/// Reads sketches through Arrow, as many as there are rows.
async fn of_rows(
    file: &ParquetFile,
    row_group: usize,
    rows: &[u32],
    counts: &ReadCounts,
) -> Result<Vec<Option<SketchBytes>>> {
    let sketches = by_arrow(file, row_group, rows, counts).await?;
    if sketches.len() == rows.len() {
        return Ok(sketches);
    }
    Err(bad_file(&file.file.url, format!("gave {} of {} sketches", sketches.len(), rows.len())))
}

async fn of_row_group(
    file: &ParquetFile,
    known: Option<&SketchPages>,
    row_group: usize,
    rows: &[u32],
    counts: &ReadCounts,
) -> Result<Vec<Option<SketchBytes>>> {
    let columns = file.footer().row_group(row_group).columns();
    let leaf = columns.iter().position(has_plain_sketches);
    let Some(leaf) = leaf else { return by_arrow(file, row_group, rows, counts).await };
    let once = OnceCell::new();
    let pages_of = known.map_or(&once, |known| &known.of_groups[row_group]);
    match pages_of.get_or_try_init(|| pages(file, row_group, leaf, counts)).await? {
        None => by_arrow(file, row_group, rows, counts).await,
        Some(pages) => of_pages(file, pages, rows, counts).await,
    }
}

/// A page of sketches.
#[derive(Debug, Clone)]
struct Page {
    bytes: Range<u64>,
    rows: Range<u64>,
}

/// Reads the positions of the pages of a chunk. Returns `None` if its index is not sound.
async fn pages(file: &ParquetFile, row_group: usize, leaf: usize, counts: &ReadCounts) -> Result<Option<Vec<Page>>> {
    let chunk = file.footer().row_group(row_group).column(leaf);
    file.chunk_range(row_group, leaf)?;
    let range = index_ranges(chunk).map(|(of_pages, _)| of_pages);
    let Some(range) = range.filter(|r| r.end <= file.file.size && r.end - r.start <= MAX_INDEX_BYTES) else {
        return Ok(None);
    };
    counts.bytes.fetch_add(range.end - range.start, Ordering::Relaxed);
    let n_rows = file.row_group_rows(row_group);
    let located = page_locations(&read(file, &[range]).await?[0]).ok();
    let is_sound = |located: &Vec<PageLocation>| {
        let rows = i64::try_from(n_rows).ok();
        rows.and_then(|rows| pages_of_chunk(chunk, rows, located, file.file.size)).is_some()
    };
    let Some(located) = located.filter(is_sound) else { return Ok(None) };
    // None of these numbers is negative, as was just checked.
    let page = |(i, at): (usize, &PageLocation)| {
        let end = located.get(i + 1).map_or(n_rows, |next| next.first_row_index.unsigned_abs());
        let start = at.offset.unsigned_abs();
        Page {
            bytes: start..start + u64::from(at.compressed_page_size.unsigned_abs()),
            rows: at.first_row_index.unsigned_abs()..end,
        }
    };
    Ok(Some(located.iter().enumerate().map(page).collect()))
}

/// Bytes of the file that are read together, and the pages in them that are looked at.
struct PageStretch<'a> {
    bytes: Range<u64>,
    pages: Vec<(&'a Page, &'a [u32])>,
}

async fn of_pages(
    file: &ParquetFile,
    pages: &[Page],
    rows: &[u32],
    counts: &ReadCounts,
) -> Result<Vec<Option<SketchBytes>>> {
    let stretches = stretches(pages, rows);
    let mut sketches = Vec::with_capacity(rows.len());
    let mut rest = stretches.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |stretch: &&PageStretch<'_>| {
            bytes += stretch.bytes.end - stretch.bytes.start;
            bytes <= REQUEST_BYTES
        };
        let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
        let ranges: Vec<Range<u64>> = now.iter().map(|stretch| stretch.bytes.clone()).collect();
        counts.bytes.fetch_add(ranges.iter().map(|r| r.end - r.start).sum(), Ordering::Relaxed);
        for (stretch, bytes) in now.iter().zip(read(file, &ranges).await?) {
            counts.pages.fetch_add(stretch.pages.len() as u64, Ordering::Relaxed);
            for (page, rows) in &stretch.pages {
                let values = sketches_of_page(file, &stretch.bytes, page, &bytes)?;
                // The rows are in the page, whose values were counted.
                let in_page = |row: &u32| values.get(usize::try_from(u64::from(*row) - page.rows.start).ok()?).copied();
                sketches.extend(rows.iter().map(in_page));
            }
        }
        rest = later;
    }
    Ok(sketches)
}

/// Returns what is read for `rows`, which ascend, page by page.
fn stretches<'a>(pages: &'a [Page], mut rows: &'a [u32]) -> Vec<PageStretch<'a>> {
    let mut stretches: Vec<PageStretch<'a>> = Vec::new();
    let mut rest = pages;
    while let Some(&row) = rows.first() {
        rest = &rest[rest.partition_point(|page| page.rows.end <= u64::from(row))..];
        let Some(page) = rest.first() else { break };
        let (now, later) = rows.split_at(rows.partition_point(|&row| u64::from(row) < page.rows.end));
        rows = later;
        let near = |last: &&mut PageStretch<'_>| {
            page.bytes.start - last.bytes.end <= READ_THROUGH_BYTES
                && page.bytes.end - last.bytes.start <= REQUEST_BYTES
        };
        match stretches.last_mut().filter(near) {
            Some(last) => {
                last.bytes.end = page.bytes.end;
                last.pages.push((page, now));
            }
            None => stretches.push(PageStretch { bytes: page.bytes.clone(), pages: vec![(page, now)] }),
        }
    }
    stretches
}

/// Returns the sketches of a page, of which `bytes` were read from the places `of` of the file.
fn sketches_of_page<'b>(
    file: &ParquetFile,
    of: &Range<u64>,
    page: &Page,
    bytes: &'b Bytes,
) -> Result<&'b [SketchBytes]> {
    let values = within(of, page, bytes).and_then(|page_bytes| values_of(page_bytes, page));
    values.map_err(|reason| {
        let reason = format!("the page of sketches at byte {}: {reason}", page.bytes.start);
        bad_file(&file.file.url, reason)
    })
}

fn within<'b>(of: &Range<u64>, page: &Page, bytes: &'b Bytes) -> std::result::Result<&'b [u8], String> {
    let at = |place: u64| usize::try_from(place - of.start).ok();
    let page = at(page.bytes.start).zip(at(page.bytes.end)).and_then(|(from, to)| bytes.get(from..to));
    page.ok_or_else(|| "it was not read whole".to_owned())
}

/// Returns the sketches of a page, whose header must agree with the index and whose bytes with their checksum.
fn values_of<'b>(bytes: &'b [u8], page: &Page) -> std::result::Result<&'b [SketchBytes], String> {
    /// The number of the encoding PLAIN in the format.
    const PLAIN: u64 = 0;
    let header = page_sizes(bytes).map_err(|_| "its header is damaged")?;
    let packed = &bytes[header.header_bytes..];
    let n_values = page.rows.end - page.rows.start;
    let is_one = matches!(header.kind, PageKind::Data | PageKind::DataV2)
        && header.whole_bytes() == bytes.len() as u64
        && (header.unpacked, header.level_bytes) == (header.packed, 0)
        && (header.encoding, header.n_values) == (PLAIN, n_values);
    if !is_one {
        return Err("its header says something else than its page index".to_owned());
    }
    if header.crc.is_some_and(|crc| crc != crc32fast::hash(packed)) {
        return Err("its checksum does not fit".to_owned());
    }
    let (sketches, rest) = packed.as_chunks();
    if sketches.len() as u64 == n_values && rest.is_empty() {
        return Ok(sketches);
    }
    Err(format!("it has {} bytes for {n_values} sketches", packed.len()))
}

async fn read(file: &ParquetFile, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    file.file.read_ranges(ranges).await
}

async fn by_arrow(
    file: &ParquetFile,
    row_group: usize,
    rows: &[u32],
    counts: &ReadCounts,
) -> Result<Vec<Option<SketchBytes>>> {
    let read = Read {
        row_groups: vec![row_group],
        columns: &[SKETCH],
        rows: Some(selection(rows, file.row_group_rows(row_group))),
        batch_rows: BATCH_ROWS,
        bytes_read: Some(Arc::clone(&counts.bytes)),
    };
    let mut batches = file.stream(read)?;
    let mut sketches = Vec::with_capacity(rows.len());
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &file.file.url };
        let values = columns.bytes::<{ SKETCH_BYTES as usize }>(SKETCH)?;
        sketches.extend((0..batch.num_rows()).map(|i| fixed(values, i)));
    }
    Ok(sketches)
}
