//! Checksums of the pages of a Parquet file. The format has a field for them, which the writer of the `parquet` crate
//! leaves out.
//!
//! After a file is written, it is copied page by page, and each header gets the checksum of the bytes after it. Values
//! are not changed.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::ChunkReader;
use parquet::file::writer::SerializedFileWriter;

use crate::guard::thrift::{PageSizes, page_sizes};

/// Copies `from` to `sink`, adds the checksums, and returns `sink`. `properties` must be those with which `from` was
/// written.
///
/// # Errors
/// `from` cannot be read, or `sink` cannot be written.
pub fn copy_with_checksums<W: Write + Send>(from: &File, sink: W, properties: WriterProperties) -> Result<W> {
    let footer =
        ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional).parse_and_finish(from)?;
    let schema = footer.file_metadata().schema_descr().root_schema_ptr();
    // The writer may have no keys of its own.
    let known = properties.key_value_metadata().cloned().unwrap_or_default();
    let mut writer = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
    for row_group in 0..footer.num_row_groups() {
        let mut group = writer.next_row_group()?;
        for column in 0..footer.row_group(row_group).num_columns() {
            let (bytes, close) = chunk_with_checksums(from, &footer, row_group, column)?;
            group.append_column(&bytes, close)?;
        }
        group.close()?;
    }
    // This adds the Arrow schema, which is not among the properties.
    for pair in footer.file_metadata().key_value_metadata().into_iter().flatten() {
        if !known.iter().any(|k| k.key == pair.key) {
            writer.append_key_value_metadata(pair.clone());
        }
    }
    writer.into_inner()
}

/// Returns a copy of a column chunk with checksums. All positions are relative to the beginning of the copy.
fn chunk_with_checksums(
    from: &File,
    footer: &ParquetMetaData,
    row_group: usize,
    column: usize,
) -> Result<(Bytes, ColumnCloseResult)> {
    let chunk = footer.row_group(row_group).column(column);
    let (start, length) = chunk.byte_range();
    let old = from.get_bytes(start, usize::try_from(length)?)?;
    let copy = CheckedCopy::of(&old)?;
    let place = |at: i64| copy.place(u64::try_from(at)?.wrapping_sub(start));
    debug_assert!(copy.bytes.len() >= old.len(), "a page with a checksum is no shorter than without");
    debug_assert!(copy.pages.is_sorted_by_key(|page| page.0), "pages keep their order, in which they are looked up");
    let added = i64::try_from(copy.bytes.len() - old.len())?;
    let metadata = chunk
        .clone()
        .into_builder()
        .set_total_compressed_size(chunk.compressed_size() + added)
        .set_total_uncompressed_size(chunk.uncompressed_size() + added)
        .set_data_page_offset(place(chunk.data_page_offset())?.0)
        .set_dictionary_page_offset(chunk.dictionary_page_offset().map(|at| place(at).map(|(at, _)| at)).transpose()?)
        .build()?;
    let mut offset_index: Option<OffsetIndexMetaData> =
        footer.offset_index().and_then(|index| index.get(row_group)?.get(column)).cloned();
    for location in offset_index.iter_mut().flat_map(|index| &mut index.page_locations) {
        (location.offset, location.compressed_page_size) = place(location.offset)?;
    }
    let close = close_result(footer, row_group, column, metadata, offset_index);
    Ok((copy.bytes.into(), close))
}

fn close_result(
    footer: &ParquetMetaData,
    row_group: usize,
    column: usize,
    metadata: ColumnChunkMetaData,
    offset_index: Option<OffsetIndexMetaData>,
) -> ColumnCloseResult {
    ColumnCloseResult {
        bytes_written: metadata.compressed_size().unsigned_abs(),
        rows_written: footer.row_group(row_group).num_rows().unsigned_abs(),
        metadata,
        bloom_filter: None,
        column_index: footer.column_index().and_then(|index| index.get(row_group)?.get(column)).cloned(),
        offset_index,
    }
}

/// A copy of a chunk's bytes, with checksums.
struct CheckedCopy {
    bytes: Vec<u8>,
    /// For each page, in order: its old position, its new position, and its new length.
    pages: Vec<(u64, i64, i32)>,
}

impl CheckedCopy {
    fn of(old: &[u8]) -> Result<Self> {
        let mut copy = Self { bytes: Vec::with_capacity(old.len() + old.len() / 64), pages: Vec::new() };
        let mut rest = old;
        while !rest.is_empty() {
            let sizes = page_sizes(rest).map_err(|_| damaged())?;
            let (header, behind) = rest.split_at(sizes.header_bytes);
            let (page, behind) = behind.split_at_checked(usize::try_from(sizes.packed)?).ok_or_else(damaged)?;
            let (was, is) = ((old.len() - rest.len()) as u64, copy.bytes.len());
            copy.header(header, &sizes, crc32fast::hash(page));
            copy.bytes.extend_from_slice(page);
            copy.pages.push((was, i64::try_from(is)?, i32::try_from(copy.bytes.len() - is)?));
            rest = behind;
        }
        Ok(copy)
    }

    /// Appends a header with a checksum, which is field 4 and stands after field 3. The number of a field is coded
    /// relative to the one before it, so the field after the checksum gets a smaller number.
    fn header(&mut self, header: &[u8], sizes: &PageSizes, crc: u32) {
        const CRC_FIELD: u8 = 0x15;
        const ONE_FIELD: u8 = 0x10;
        let (before, after) = header.split_at(sizes.before_crc);
        self.bytes.extend_from_slice(before);
        self.bytes.push(CRC_FIELD);
        let signed = crc.cast_signed();
        let mut zigzag = (signed.cast_unsigned() << 1) ^ (signed >> 31).cast_unsigned();
        while zigzag >= 0x80 {
            self.bytes.push(zigzag.to_le_bytes()[0] | 0x80);
            zigzag >>= 7;
        }
        self.bytes.push(zigzag.to_le_bytes()[0]);
        if let [next, rest @ ..] = after {
            self.bytes.push(if *next > ONE_FIELD { next - ONE_FIELD } else { *next });
            self.bytes.extend_from_slice(rest);
        }
    }

    fn place(&self, was: u64) -> Result<(i64, i32)> {
        let found = self.pages.binary_search_by_key(&was, |(at, ..)| *at);
        found.map(|i| (self.pages[i].1, self.pages[i].2)).map_err(|_| damaged())
    }
}

fn damaged() -> ParquetError {
    ParquetError::General("a page that was just written cannot be read".to_owned())
}
