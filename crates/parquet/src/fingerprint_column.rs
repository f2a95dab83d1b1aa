//! The `fingerprint` column of a row group, decoded from its pages. Every existing fingerprint goes through this code.
//!
//! Columns in the form that nearprint writes (required, DELTA_BINARY_PACKED; see docs/store-format.md) are decoded
//! here, directly into the memory that the map phase reads. Any other column goes through Arrow, which produces the
//! same values at several times the cost.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
//! use nearprint_parquet::{DatasetWriter, DeltaKernel, ParquetFile, fingerprint_column};
//! use nearprint_storage::Storage;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let temp = tempfile::tempdir()?;
//! let fingerprints: ArrayRef = Arc::new(UInt64Array::from(vec![3, 5, 8]));
//! let rows = RecordBatch::try_from_iter([("fingerprint", fingerprints)])?;
//! let mut writer = DatasetWriter::new(temp.path(), "", &rows.schema(), &[]);
//! writer.write(rows)?;
//! let path = writer.finish()?[0].path.display().to_string();
//!
//! let parquet = ParquetFile::open(Storage::default().folder(&path)?.file().await?).await?;
//! let column = fingerprint_column::fetch(&parquet, 0, 64).await?;
//! let mut values = vec![0; column.n_rows()];
//! column.decode(&path, &mut values, DeltaKernel::best())?;
//! assert_eq!(values, [3, 5, 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, UInt64Array};
use arrow::datatypes::UInt64Type;
use bytes::{Buf, Bytes};
use futures::TryStreamExt;
use nearprint_fault::{Fault, Result, Words, key, words};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::columns::{BATCH_ROWS, Columns};
use crate::delta::{damaged, decode_deltas};
use crate::error::of_parquet;
use crate::kernel::DeltaKernel;
use crate::parquet_file::{ParquetFile, Read, count};
use crate::schema::FINGERPRINT;

/// The fingerprints of a row group. They were read, but perhaps not decoded.
#[derive(Debug)]
pub enum FetchedColumn {
    /// The bytes of the column chunk, not decoded yet.
    Chunk {
        /// The chunk's entry in the footer.
        chunk: Box<ColumnChunkMetaData>,
        /// The number of rows in the row group.
        n_rows: u64,
        /// The bytes of the chunk.
        bytes: Bytes,
    },
    /// The values, decoded by Arrow.
    Values(Vec<u64>),
}

/// Reads the column of a row group. Its fingerprints may have up to `bits` bits.
///
/// # Errors
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the chunk is damaged or claims too much memory;
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if there is no such column;
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a fingerprint is NULL or has more bits; an
/// error if the bytes cannot be read.
///
/// # Panics
/// Panics if the file has no such row group.
pub async fn fetch(file: &ParquetFile, row_group: usize, bits: u32) -> Result<FetchedColumn> {
    let Some(leaf) = packed_leaf(file, row_group, bits) else {
        return by_arrow(file, row_group, bits).await;
    };
    let range = file.chunk_range(row_group, leaf)?;
    let bytes = file.read_range(range.clone()).await.map_err(|e| of_parquet(&file.file.url, e))?;
    // This check ensures that memory is not reserved for more values than the pages have.
    file.guard(&[row_group], &[leaf], BATCH_ROWS)?.check(range.start, &bytes)?;
    let chunk = Box::new(file.footer().row_group(row_group).column(leaf).clone());
    Ok(FetchedColumn::Chunk { chunk, n_rows: file.row_group_rows(row_group), bytes })
}

/// Returns the number of bytes that [`fetch`] reads and holds for these row groups. Returns `None` if Arrow decodes one of
/// them at the same time.
///
/// # Panics
/// Panics if the file does not have all these row groups.
pub fn packed_bytes(file: &ParquetFile, row_groups: Range<usize>, bits: u32) -> Option<u64> {
    let bytes_of = |row_group: usize| {
        let leaf = packed_leaf(file, row_group, bits)?;
        let range = file.chunk_range(row_group, leaf).ok()?;
        Some(range.end.saturating_sub(range.start))
    };
    row_groups.map(bytes_of).sum()
}

/// Returns the position of the column if it can be decoded here.
fn packed_leaf(file: &ParquetFile, row_group: usize, bits: u32) -> Option<usize> {
    let columns = file.footer().row_group(row_group).columns();
    let leaf = columns.iter().position(|chunk| chunk.column_path().string() == FINGERPRINT)?;
    let chunk = &columns[leaf];
    let required = chunk.column_descr().max_def_level() == 0 && chunk.column_descr().max_rep_level() == 0;
    // RLE is listed for levels, but required columns have no levels.
    let packed = chunk.encodings().all(|e| matches!(e, Encoding::DELTA_BINARY_PACKED | Encoding::RLE))
        && chunk.encodings().any(|e| e == Encoding::DELTA_BINARY_PACKED);
    (required && packed && bits == u64::BITS).then_some(leaf)
}

async fn by_arrow(file: &ParquetFile, row_group: usize, bits: u32) -> Result<FetchedColumn> {
    let url = &file.file.url;
    let first_row = file.rows_before(row_group);
    let read = Read { row_groups: vec![row_group], ..file.whole(&[FINGERPRINT]) };
    let mut batches = file.stream(read)?;
    let mut values = Vec::new();
    while let Some(batch) = batches.try_next().await? {
        let fingerprints: &UInt64Array = Columns { batch: &batch, file: url }.primitive::<UInt64Type>(FINGERPRINT)?;
        check_fingerprints(url, first_row + values.len() as u64 + 1, bits, fingerprints)?;
        debug_assert_eq!(
            fingerprints.null_count(),
            0,
            "a missing fingerprint was refused, since its value is arbitrary"
        );
        values.extend_from_slice(fingerprints.values());
    }
    Ok(FetchedColumn::Values(values))
}

impl FetchedColumn {
    /// Returns the number of rows in the row group.
    pub fn n_rows(&self) -> usize {
        match self {
            Self::Values(known) => known.len(),
            Self::Chunk { n_rows, .. } => count(*n_rows),
        }
    }

    /// Returns the number of bytes that were read, or that the values take if Arrow read them.
    pub fn n_bytes(&self) -> u64 {
        match self {
            Self::Values(known) => size_of_val(known.as_slice()) as u64,
            Self::Chunk { bytes, .. } => bytes.len() as u64,
        }
    }

    /// Writes the values to `values` in row order. The slice must have [`n_rows`](Self::n_rows) elements.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData), naming `url`, if the pages do not hold what the
    /// footer says.
    ///
    /// # Panics
    /// May panic if the slice has another length.
    pub fn decode(&self, url: &str, values: &mut [u64], kernel: DeltaKernel) -> Result<()> {
        debug_assert_eq!(values.len(), self.n_rows(), "there is a place for each row");
        match self {
            Self::Values(known) => values.copy_from_slice(known),
            Self::Chunk { chunk, bytes, .. } => {
                decode_chunk(chunk, bytes, values, kernel).map_err(|e| of_parquet(url, e))?;
            }
        }
        Ok(())
    }
}

fn decode_chunk(
    chunk: &ColumnChunkMetaData,
    bytes: &Bytes,
    values: &mut [u64],
    kernel: DeltaKernel,
) -> ParquetResult<()> {
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
            } => decode_deltas(buf, now, kernel)?,
            other => return Err(damaged(&format!("a page is encoded as {}", other.encoding()))),
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(damaged("pages hold fewer fingerprints than their row group has rows")) }
}

/// The bytes of a column chunk, addressed by their positions in the file.
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

/// Refuses NULL, and fingerprints of more than `bits` bits. `first_row` is the number of the first row, counted from 1.
///
/// # Errors
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) for the first such row.
///
/// # Panics
/// May panic if `bits` is more than 64.
pub fn check_fingerprints(url: &str, first_row: u64, bits: u32, fingerprints: &UInt64Array) -> Result<()> {
    let max = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let bad = (0..fingerprints.len()).find(|&i| fingerprints.is_null(i) || fingerprints.value(i) > max);
    bad.map_or(Ok(()), |i| {
        let reason = if fingerprints.is_null(i) {
            Words::from("fingerprint is NULL: leave such documents out")
        } else {
            words![format!("fingerprint {} has more than {bits} bits: set ", fingerprints.value(i)), key("bits"), " 64"]
        };
        Err(Fault::bad_data(url.to_owned(), reason).row(first_row + i as u64))
    })
}
