//! A table of an index: fingerprints in another order of bits, sorted, of which queries read single pages.
//!
//! The bounds of the pages stay in memory. So finding the pages of a range of fingerprints takes no reading, and each page
//! that may have some of them is read once. They are what the last fingerprint of each block is to Manku, Jain, Das Sarma
//! (WWW 2007, section 4).

use std::ops::{Range, RangeInclusive};

use nearprint_fault::{Fault, Result};
use nearprint_storage::{InputFile, bad_file};
use parquet::basic::{Compression, Encoding};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use crate::delta::decode_deltas;
use crate::guard::thrift::{PageKind, page_sizes};
use crate::kernel::DeltaKernel;
use crate::page_index::pages_of_chunk;
use crate::parquet_file::{ParquetFile, count};
use crate::schema::{PERMUTED, PLACE};

/// The bytes between two pages of a local file that are read along with them, and of an object in a bucket. A longer gap
/// takes about as long as another read.
const GAP_BYTES: u64 = 4 << 10;
const REMOTE_GAP_BYTES: u64 = 128 << 10;

/// The most values of a page. A page that claims more is refused before memory is taken for it.
const MAX_PAGE_ROWS: u64 = 1 << 20;

/// A table of an index whose pages are known.
#[derive(Debug)]
pub struct SortedCopy {
    file: InputFile,
    kernel: DeltaKernel,
    permuted: Vec<Page>,
    /// The smallest value of each page of `permuted`.
    least: Vec<u64>,
    places: Vec<Page>,
    n_rows: u64,
}

/// A page of a column.
#[derive(Debug, Clone)]
struct Page {
    start: u64,
    bytes: u32,
    /// The first row of the page, counted through all row groups.
    first_row: u64,
    n_rows: u32,
}

/// The pages and bytes that were read of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PagesRead {
    /// The pages that were decoded.
    pub pages: u64,
    /// The bytes, with those between pages.
    pub bytes: u64,
}

impl SortedCopy {
    /// Takes the places of all pages from the page index of a file. The kernel decodes them.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the file is not a table of an index, or if its
    /// page index is not sound.
    pub fn of(parquet: &ParquetFile, kernel: DeltaKernel) -> Result<Self> {
        let (mut permuted, mut least, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for group in 0..parquet.n_row_groups() {
            let before = parquet.rows_before(group);
            least.extend(bounds(parquet, group)?);
            permuted.extend(pages(parquet, group, PERMUTED, before)?);
            places.extend(pages(parquet, group, PLACE, before)?);
        }
        if least.len() != permuted.len() || !least.is_sorted() {
            return Err(refused(parquet, "its pages of fingerprints are not in order"));
        }
        Ok(Self { file: parquet.file.clone(), kernel, permuted, least, places, n_rows: parquet.n_rows() })
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Returns the number of pages of fingerprints.
    #[must_use]
    pub fn n_pages(&self) -> usize {
        self.permuted.len()
    }

    /// Returns the row of a page's first fingerprint.
    ///
    /// # Panics
    /// Panics if there is no such page.
    #[must_use]
    pub fn first_row(&self, page: usize) -> u64 {
        self.permuted[page].first_row
    }

    /// Returns the bytes that the places of the pages take in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        (self.permuted.len() + self.places.len()) * size_of::<Page>() + self.least.len() * size_of::<u64>()
    }

    /// Returns the pages, ascending, that may have fingerprints of some ranges, which ascend.
    #[must_use]
    pub fn pages_in(&self, ranges: &[RangeInclusive<u64>]) -> Vec<usize> {
        debug_assert!(
            ranges.is_sorted_by_key(|range| *range.start()),
            "ranges ascend, so that one pass finds their pages"
        );
        let mut pages: Vec<usize> = Vec::with_capacity(2 * ranges.len());
        let mut from = 0;
        for range in ranges {
            // Equal fingerprints may begin in the page before the one that begins with them.
            from += self.least[from..].partition_point(|least| least < range.start());
            let to = from + self.least[from..].partition_point(|least| least <= range.end());
            let first = from.saturating_sub(1).max(pages.last().map_or(0, |last| last + 1));
            pages.extend(first..to);
        }
        debug_assert!(pages.is_sorted_by(|a, b| a < b), "a page is read once, however many ranges lie in it");
        pages
    }

    /// Returns the fingerprints of some pages, which ascend.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a page is damaged; an error if the bytes cannot
    /// be read.
    ///
    /// # Panics
    /// Panics if there is no such page.
    pub async fn permuted(&self, pages: &[usize], read: &mut PagesRead) -> Result<Vec<Vec<u64>>> {
        let wanted: Vec<&Page> = pages.iter().map(|&page| &self.permuted[page]).collect();
        self.values(&wanted, read).await
    }

    /// Returns the places of some rows, which ascend.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a page is damaged; an error if the bytes cannot
    /// be read.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub async fn places(&self, rows: &[u64], read: &mut PagesRead) -> Result<Vec<u64>> {
        debug_assert!(rows.is_sorted(), "rows ascend, so that one pass over the pages finds their places");
        let page_of = |row: u64| self.places.partition_point(|page| page.first_row <= row) - 1;
        let mut pages: Vec<usize> = rows.iter().map(|&row| page_of(row)).collect();
        pages.dedup();
        let wanted: Vec<&Page> = pages.iter().map(|&page| &self.places[page]).collect();
        let values = self.values(&wanted, read).await?;
        let mut at = 0;
        let place = |&row: &u64| {
            while row >= wanted[at].first_row + u64::from(wanted[at].n_rows) {
                at += 1;
            }
            values[at][count(row - wanted[at].first_row)]
        };
        Ok(rows.iter().map(place).collect())
    }

    async fn values(&self, pages: &[&Page], read: &mut PagesRead) -> Result<Vec<Vec<u64>>> {
        let gap = if self.file.is_remote() { REMOTE_GAP_BYTES } else { GAP_BYTES };
        let mut stretches: Vec<Range<u64>> = Vec::new();
        for page in pages {
            let end = page.start + u64::from(page.bytes);
            match stretches.last_mut().filter(|last| page.start <= last.end.saturating_add(gap)) {
                Some(last) => last.end = end,
                None => stretches.push(page.start..end),
            }
        }
        read.pages += pages.len() as u64;
        read.bytes += stretches.iter().map(|stretch| stretch.end - stretch.start).sum::<u64>();
        let bytes = self.file.read_each(&stretches).await?;
        let mut at = 0;
        let values = pages.iter().map(|page| {
            while page.start >= stretches[at].end {
                at += 1;
            }
            let start = count(page.start - stretches[at].start);
            let of_page = bytes[at].get(start..start + page.bytes as usize);
            let decoded =
                of_page.ok_or_else(|| "it was not read whole".to_owned()).and_then(|b| decode(b, page, self.kernel));
            decoded.map_err(|reason| bad_file(&self.file.url, format!("the page at byte {}: {reason}", page.start)))
        });
        values.collect()
    }
}

/// Returns the values of a page, whose header must agree with the index and whose bytes with their checksum.
fn decode(bytes: &[u8], page: &Page, kernel: DeltaKernel) -> std::result::Result<Vec<u64>, String> {
    /// The number of the encoding DELTA_BINARY_PACKED in the format.
    const DELTA_BINARY_PACKED: u64 = 5;
    let header = page_sizes(bytes).map_err(|_| "its header is damaged")?;
    let packed = &bytes[header.header_bytes..];
    let is_one = matches!(header.kind, PageKind::Data | PageKind::DataV2)
        && header.whole_bytes() == bytes.len() as u64
        && (header.unpacked, header.level_bytes) == (header.packed, 0)
        && (header.encoding, header.n_values) == (DELTA_BINARY_PACKED, u64::from(page.n_rows));
    if !is_one {
        return Err("its header says something else than its page index".to_owned());
    }
    if header.crc.is_some_and(|crc| crc != crc32fast::hash(packed)) {
        return Err("its checksum does not fit".to_owned());
    }
    let mut values = vec![0; page.n_rows as usize];
    decode_deltas(packed, &mut values, kernel).map_err(|e| e.to_string())?;
    Ok(values)
}

fn refused(parquet: &ParquetFile, reason: &str) -> Fault {
    bad_file(&parquet.file.url, reason)
}

/// Returns the pages of a column of a row group. `before` is the number of rows in the row groups before it.
fn pages(parquet: &ParquetFile, group: usize, column: &str, before: u64) -> Result<Vec<Page>> {
    let n_rows = parquet.row_group_rows(group);
    let columns = parquet.footer().row_group(group).columns();
    let leaf = columns.iter().position(|chunk| chunk.column_path().string() == column);
    let Some((leaf, chunk)) = leaf.map(|leaf| (leaf, &columns[leaf])) else {
        return Err(refused(parquet, &format!("it has no column `{column}`")));
    };
    let is_packed = chunk.column_descr().max_def_level() == 0
        && chunk.compression() == Compression::UNCOMPRESSED
        && chunk.dictionary_page_offset().is_none()
        // RLE is listed for levels, but required columns have no levels.
        && chunk.encodings().all(|e| matches!(e, Encoding::DELTA_BINARY_PACKED | Encoding::RLE));
    let located = parquet.page_locations(group, leaf).unwrap_or(&[]);
    let rows = i64::try_from(n_rows).ok();
    let is_sound = rows.and_then(|rows| pages_of_chunk(chunk, rows, located, parquet.file.size)).is_some();
    if !is_packed || !is_sound {
        return Err(refused(parquet, &format!("its column `{column}` is not one of an index")));
    }
    let page = |(i, at): (usize, &PageLocation)| {
        // None of these numbers is negative, as was just checked.
        let first = at.first_row_index.unsigned_abs();
        let end = located.get(i + 1).map_or(n_rows, |next| next.first_row_index.unsigned_abs());
        let n_rows = u32::try_from(end - first).ok().filter(|&rows| u64::from(rows) <= MAX_PAGE_ROWS);
        let n_rows = n_rows.ok_or_else(|| refused(parquet, "a page has too many rows"))?;
        let (start, bytes) = (at.offset.unsigned_abs(), at.compressed_page_size.unsigned_abs());
        Ok(Page { start, bytes, first_row: before + first, n_rows })
    };
    located.iter().enumerate().map(page).collect()
}

/// Returns the smallest fingerprint of each page of a row group.
fn bounds(parquet: &ParquetFile, group: usize) -> Result<Vec<u64>> {
    let columns = parquet.footer().row_group(group).columns();
    let leaf = columns.iter().position(|chunk| chunk.column_path().string() == PERMUTED);
    let index = leaf.and_then(|leaf| parquet.footer().column_index()?.get(group)?.get(leaf));
    let Some(ColumnIndexMetaData::INT64(index)) = index else {
        return Err(refused(parquet, "its pages of fingerprints have no bounds"));
    };
    let least = (0..count(index.num_pages())).map(|page| index.min_value(page).map(|min| min.cast_unsigned()));
    let least: Option<Vec<u64>> = least.collect();
    least.ok_or_else(|| refused(parquet, "a page of fingerprints has no bounds"))
}
