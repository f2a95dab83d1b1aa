//! The `fingerprint` column of a row group, decoded from its pages: what every existing fingerprint costs.
//!
//! Columns as nearprint writes them (required, DELTA_BINARY_PACKED; see docs/store-format.md) are decoded here, straight into
//! the memory that is mapped; any other goes through Arrow, which gives the same values at several times the cost.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, UInt64Array};
use arrow::datatypes::UInt64Type;
use bytes::{Buf, Bytes};
use futures::TryStreamExt;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::columns::Columns;
use crate::error::{PipelineError, Result};
use crate::fingerprints::check_fingerprints;
use crate::kernel::unpack_deltas;
use crate::page_guard::PageGuard;
use crate::parquet_file::{ParquetFile, Read, count};
use crate::schema::FINGERPRINT;
use crate::tasks::BATCH_ROWS;

/// A row group's fingerprints, read but not decoded.
#[derive(Debug)]
pub(crate) enum FetchedColumn {
    /// Bytes of the column chunk.
    Chunk { chunk: Box<ColumnChunkMetaData>, n_rows: u64, bytes: Bytes },
    /// Values, as Arrow gave them.
    Values(Vec<u64>),
}

/// Reads the column of a row group. `bits` are those a fingerprint may have.
pub(crate) async fn fetch(file: &ParquetFile, row_group: usize, bits: u32) -> Result<FetchedColumn> {
    let Some(leaf) = packed_leaf(file, row_group, bits) else {
        return by_arrow(file, row_group, bits).await;
    };
    let range = file.chunk_range(row_group, leaf)?;
    let bytes = file.read_range(range.clone()).await.map_err(|e| PipelineError::of_parquet(&file.file.url, e))?;
    // So that no more is made room for than the pages say they have.
    PageGuard::new(file, &[row_group], &[leaf], BATCH_ROWS)?.check(range.start, &bytes)?;
    let chunk = Box::new(file.footer().row_group(row_group).column(leaf).clone());
    Ok(FetchedColumn::Chunk { chunk, n_rows: file.row_group_rows(row_group), bytes })
}

/// Whether fetching row groups only reads them; other files are decoded by Arrow on the way.
pub(crate) fn is_packed(file: &ParquetFile, mut row_groups: Range<usize>, bits: u32) -> bool {
    row_groups.all(|row_group| packed_leaf(file, row_group, bits).is_some())
}

/// The column, where it is one that is decoded here.
fn packed_leaf(file: &ParquetFile, row_group: usize, bits: u32) -> Option<usize> {
    let columns = file.footer().row_group(row_group).columns();
    let leaf = columns.iter().position(|chunk| chunk.column_path().string() == FINGERPRINT)?;
    let chunk = &columns[leaf];
    let required = chunk.column_descr().max_def_level() == 0 && chunk.column_descr().max_rep_level() == 0;
    // RLE is listed for levels, of which required columns have none.
    let packed = chunk.encodings().all(|e| matches!(e, Encoding::DELTA_BINARY_PACKED | Encoding::RLE))
        && chunk.encodings().any(|e| e == Encoding::DELTA_BINARY_PACKED);
    (required && packed && bits == u64::BITS).then_some(leaf)
}

async fn by_arrow(file: &ParquetFile, row_group: usize, bits: u32) -> Result<FetchedColumn> {
    let url = &file.file.url;
    let first_row = file.rows_before(row_group);
    let read = Read { row_groups: vec![row_group], columns: &[FINGERPRINT], rows: None, batch_rows: BATCH_ROWS };
    let mut batches = file.stream(read)?;
    let mut values = Vec::new();
    while let Some(batch) = batches.try_next().await? {
        let fingerprints: &UInt64Array = Columns { batch: &batch, file: url }.primitive::<UInt64Type>(FINGERPRINT)?;
        check_fingerprints(url, first_row + values.len() as u64 + 1, bits, fingerprints)?;
        debug_assert_eq!(fingerprints.null_count(), 0);
        values.extend_from_slice(fingerprints.values());
    }
    Ok(FetchedColumn::Values(values))
}

impl FetchedColumn {
    /// Rows of the row group.
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            Self::Values(known) => known.len(),
            Self::Chunk { n_rows, .. } => count(*n_rows),
        }
    }

    /// Writes the values, in row order, to `values`, which has [`n_rows`](Self::n_rows) places.
    ///
    /// # Errors
    /// [`PipelineError::BadFile`] naming `url` where pages do not hold what the footer says.
    pub(crate) fn decode(&self, url: &str, values: &mut [u64]) -> Result<()> {
        match self {
            Self::Values(known) => values.copy_from_slice(known),
            Self::Chunk { chunk, bytes, .. } => {
                decode_chunk(chunk, bytes, values).map_err(|e| PipelineError::of_parquet(url, e))?;
            }
        }
        Ok(())
    }
}

fn decode_chunk(chunk: &ColumnChunkMetaData, bytes: &Bytes, values: &mut [u64]) -> ParquetResult<()> {
    let reader = ChunkBytes { offset: chunk.byte_range().0, bytes: bytes.clone() };
    let mut pages = SerializedPageReader::new(Arc::new(reader), chunk, values.len(), None)?;
    let mut rest = values;
    while let Some(page) = pages.get_next_page()? {
        let now = rest
            .split_off_mut(..page.num_values() as usize)
            .ok_or_else(|| damaged("pages hold more fingerprints than their row group has rows"))?;
        match &page {
            Page::DataPage { buf, encoding: Encoding::DELTA_BINARY_PACKED, .. }
            | Page::DataPageV2 {
                buf,
                encoding: Encoding::DELTA_BINARY_PACKED,
                num_nulls: 0,
                def_levels_byte_len: 0,
                rep_levels_byte_len: 0,
                ..
            } => decode_deltas(buf, now)?,
            other => return Err(damaged(&format!("a page is encoded as {}", other.encoding()))),
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(damaged("pages hold fewer fingerprints than their row group has rows")) }
}

/// Writers' blocks have some hundreds.
const MAX_BLOCK_VALUES: usize = 1 << 20;

/// A page of DELTA_BINARY_PACKED values (Parquet format, Encodings, "Delta Encoding").
pub(crate) fn decode_deltas(page: &[u8], values: &mut [u64]) -> ParquetResult<()> {
    let mut bytes = page;
    let block_values = length(&mut bytes)?;
    let n_miniblocks = length(&mut bytes)?;
    let n_values = length(&mut bytes)?;
    let mut last = zigzag(&mut bytes)?;
    let whole = n_miniblocks > 0
        && block_values <= MAX_BLOCK_VALUES
        && block_values.is_multiple_of(128)
        && block_values.is_multiple_of(n_miniblocks);
    let miniblock_values = if whole { block_values / n_miniblocks } else { 0 };
    if miniblock_values == 0 || !miniblock_values.is_multiple_of(32) || n_values != values.len() {
        return Err(damaged("the header of a page is not one of DELTA_BINARY_PACKED"));
    }
    let Some((first, mut rest)) = values.split_first_mut() else {
        return Ok(());
    };
    *first = last;
    while !rest.is_empty() {
        let min_delta = zigzag(&mut bytes)?;
        let widths = take(&mut bytes, n_miniblocks)?;
        for &width in widths {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at_mut(miniblock_values.min(rest.len()));
            // Writers may leave out what pads the last miniblock.
            if width > 64 || bytes.len() < (now.len() * usize::from(width)).div_ceil(8) {
                return Err(damaged("a page ends too early"));
            }
            // The bytes behind the miniblock are given too: whole vectors are loaded from them.
            last = unpack_deltas(bytes, u32::from(width), min_delta, last, now);
            rest = later;
            bytes = &bytes[(miniblock_values / 8 * usize::from(width)).min(bytes.len())..];
        }
    }
    Ok(())
}

fn damaged(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> ParquetResult<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(n).ok_or_else(|| damaged("a page ends too early"))?;
    *bytes = rest;
    Ok(taken)
}

/// An unsigned LEB128 number.
fn varint(bytes: &mut &[u8]) -> ParquetResult<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(damaged("a number in a page has no end"))
}

fn length(bytes: &mut &[u8]) -> ParquetResult<usize> {
    usize::try_from(varint(bytes)?).map_err(|_| damaged("a length in a page is too large"))
}

/// A signed number, zigzag-encoded, modulo 2^64.
fn zigzag(bytes: &mut &[u8]) -> ParquetResult<u64> {
    let value = varint(bytes)?;
    Ok((value >> 1) ^ (value & 1).wrapping_neg())
}

/// A column chunk as if the whole file were there.
struct ChunkBytes {
    offset: u64,
    bytes: Bytes,
}

impl ChunkBytes {
    fn from(&self, start: u64) -> ParquetResult<Bytes> {
        let at = start.checked_sub(self.offset).and_then(|at| usize::try_from(at).ok());
        at.filter(|&at| at <= self.bytes.len())
            .map(|at| self.bytes.slice(at..))
            .ok_or_else(|| damaged("a page lies outside its column chunk"))
    }
}

impl Length for ChunkBytes {
    fn len(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl ChunkReader for ChunkBytes {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.from(start)?;
        if bytes.len() < length {
            return Err(damaged("a page lies outside its column chunk"));
        }
        Ok(bytes.slice(..length))
    }
}
