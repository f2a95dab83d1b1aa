//! The page index of a file: the positions of the pages of each column, and the bounds of their values.

use std::ops::Range;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};

use crate::guard::thrift::{check_column_index, page_locations};
use crate::schema::{SKETCH, SKETCH_BYTES};

/// The largest page index that is read.
const MAX_INDEX_BYTES: u64 = 256 << 20;

/// Returns whether a column chunk has sketches in nearprint's own form, with a page index.
pub fn has_plain_sketches(chunk: &ColumnChunkMetaData) -> bool {
    let column = chunk.column_descr();
    chunk.column_path().string() == SKETCH
        && chunk.column_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY
        && column.type_length() == SKETCH_BYTES
        && (column.max_def_level(), column.max_rep_level()) == (0, 0)
        && chunk.compression() == Compression::UNCOMPRESSED
        && chunk.dictionary_page_offset().is_none()
        // RLE is listed for levels, but required columns have no levels.
        && chunk.encodings().all(|encoding| matches!(encoding, Encoding::PLAIN | Encoding::RLE))
        && chunk.offset_index_offset().is_some()
}

/// The places of a file's page index.
pub struct IndexPlaces {
    /// The range around all column indexes, if there are any.
    pub of_columns: Option<Range<u64>>,
    /// The range of the offset index of each column chunk; `None` for a chunk whose pages are left out.
    of_pages: Vec<Option<Range<u64>>>,
}

impl IndexPlaces {
    /// Returns `None` if the index is not complete, is empty, is too large, or lies outside the file.
    pub fn of(footer: &ParquetMetaData, size: u64) -> Option<Self> {
        let mut places = Self { of_columns: None, of_pages: Vec::new() };
        for chunk in footer.row_groups().iter().flat_map(|group| group.columns()) {
            let (of_pages, of_column) = index_ranges(chunk)?;
            if std::iter::once(&of_pages).chain(&of_column).any(|range| range.end > size) {
                return None;
            }
            if let Some(range) = of_column {
                let known = places.of_columns.unwrap_or(range.clone());
                places.of_columns = Some(known.start.min(range.start)..known.end.max(range.end));
            }
            places.of_pages.push((!has_plain_sketches(chunk)).then_some(of_pages));
        }
        let read = places.of_columns.iter().chain(places.of_pages.iter().flatten());
        let bytes = read.fold(0u64, |bytes, range| bytes.saturating_add(range.end - range.start));
        (1..=MAX_INDEX_BYTES).contains(&bytes).then_some(places)
    }

    /// Joins the ranges of offset indexes that are next to each other.
    pub fn runs(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = self.of_pages.iter().flatten().cloned().collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut runs: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match runs.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => runs.push(range),
            }
        }
        runs
    }

    /// Reads the offset indexes from bytes of the file, given with their positions in ascending order. Returns `None` if
    /// one of them is damaged.
    pub fn offset_index(
        &self,
        footer: &ParquetMetaData,
        bytes: &[(u64, Bytes)],
    ) -> Option<Vec<Vec<OffsetIndexMetaData>>> {
        let mut places = self.of_pages.iter();
        let mut of_chunk = || {
            let page_locations = match places.next()? {
                None => Vec::new(),
                Some(range) => {
                    let before = bytes.partition_point(|(start, _)| *start <= range.start).checked_sub(1)?;
                    page_locations(&within(bytes[before].0, &bytes[before].1, range)?).ok()?
                }
            };
            Some(OffsetIndexMetaData { page_locations, unencoded_byte_array_data_bytes: None })
        };
        let groups = footer.row_groups().iter();
        groups.map(|group| group.columns().iter().map(|_| of_chunk()).collect()).collect()
    }
}

/// Returns the ranges of a column's offset index and column index, neither of which ends before it starts. Returns `None` if there is no offset index, or if a
/// claimed range is not valid.
pub fn index_ranges(chunk: &ColumnChunkMetaData) -> Option<(Range<u64>, Option<Range<u64>>)> {
    let place = |offset: i64, length: i32| {
        let offset = u64::try_from(offset).ok()?;
        Some(offset..offset.checked_add(u64::try_from(length).ok()?)?)
    };
    let column_index = match (chunk.column_index_offset(), chunk.column_index_length()) {
        (None, None) => None,
        (offset, length) => Some(place(offset?, length?)?),
    };
    Some((place(chunk.offset_index_offset()?, chunk.offset_index_length()?)?, column_index))
}

/// Checks that the column indexes hold as much as they claim. `known` are the bytes of the file from `start` on.
pub fn are_sound_column_indexes(footer: &ParquetMetaData, start: u64, known: &Bytes) -> bool {
    footer.row_groups().iter().flat_map(|group| group.columns()).all(|chunk| {
        index_ranges(chunk).is_some_and(|(_, column_index)| {
            let bytes = column_index.map(|range| within(start, known, &range));
            bytes.is_none_or(|bytes| bytes.is_some_and(|bytes| check_column_index(&bytes).is_ok()))
        })
    })
}

/// Checks the pages that the index places in each column chunk: they must follow each other to the chunk's end, and
/// their rows must ascend.
pub fn pages_follow_each_other(footer: &ParquetMetaData, size: u64) -> bool {
    let Some(offset_index) = footer.offset_index() else { return true };
    footer.row_groups().iter().enumerate().all(|(i, group)| {
        group.columns().iter().enumerate().all(|(j, chunk)| {
            let Some(located) = offset_index.get(i).and_then(|row_group| row_group.get(j)) else { return false };
            if has_plain_sketches(chunk) && located.page_locations().is_empty() {
                return true;
            }
            let n_pages = located.page_locations().len();
            let column_index = footer.column_index().and_then(|index| index.get(i)?.get(j));
            let as_many = match column_index {
                None | Some(ColumnIndexMetaData::NONE) => true,
                Some(index) => index.num_pages() == n_pages as u64,
            };
            as_many && pages_of_chunk(chunk, group.num_rows(), located.page_locations(), size).is_some()
        })
    })
}

/// Returns `None` if pages do not follow each other to the end of their chunk, or if their rows do not ascend.
pub fn pages_of_chunk(chunk: &ColumnChunkMetaData, rows: i64, located: &[PageLocation], size: u64) -> Option<()> {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let end = start.checked_add(chunk.compressed_size())?;
    let (first, last) = match located {
        [] => return (rows == 0).then_some(()),
        [first, .., last] => (first, last),
        [only] => (only, only),
    };
    let end_of = |page: &PageLocation| page.offset.checked_add(i64::from(page.compressed_page_size));
    let sizes = located.iter().all(|page| page.offset >= 0 && page.compressed_page_size > 0);
    let follow = located
        .windows(2)
        .all(|pair| end_of(&pair[0]) == Some(pair[1].offset) && pair[0].first_row_index < pair[1].first_row_index);
    let rows_fit = first.first_row_index == 0 && last.first_row_index < rows;
    let in_chunk = start <= first.offset && end_of(last) == Some(end) && u64::try_from(end).ok()? <= size;
    (sizes && follow && rows_fit && in_chunk).then_some(())
}

/// Returns the bytes of a range of the file, if it is within `bytes`, which begin at `start`.
pub fn within(start: u64, bytes: &Bytes, range: &Range<u64>) -> Option<Bytes> {
    let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
    let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
    (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
}
