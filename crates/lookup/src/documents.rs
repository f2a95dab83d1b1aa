//! The documents behind near fingerprints: their sketches, and of those that match their ids and decisions.

use std::sync::Arc;

use arrow::datatypes::UInt64Type;
use futures::TryStreamExt;
use nearprint_fault::Result;
use nearprint_fingerprint::Sketch;
use nearprint_parquet::schema::{CANONICAL_ID, DOC_ID, FINGERPRINT, REFERENCE, SKETCH, TEXT_HASH};
use nearprint_parquet::sketch_column::SketchPages;
use nearprint_parquet::{BATCH_ROWS, Columns, ParquetFile, Read, fixed, selection, sketch_column, value};
use nearprint_storage::{bad_file, in_memory};

use crate::budget::Budget;
use crate::counts::Counts;
use crate::nights::TextHash;

/// A document, as a run file has it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub id: &'a str,
    pub text_hash: Option<TextHash>,
    pub canonical: Option<Canonical<'a>>,
}

/// The document that represents another one.
#[derive(Debug, Clone, Copy)]
pub struct Canonical<'a> {
    pub id: &'a str,
    /// The reference store that has it. `None` if it is the other one's own.
    pub reference: Option<&'a str>,
}

/// The columns that say it. Run files of release 0.2.0 have no references.
const COLUMNS: [&str; 4] = [DOC_ID, TEXT_HASH, CANONICAL_ID, REFERENCE];

/// The most bytes that a read of documents holds, unless one page has more.
const READ_BYTES: usize = 16 << 20;

/// Returns the sketches of `rows`, which ascend.
///
/// # Errors
/// The file is damaged or cannot be read.
pub async fn sketches(
    parquet: &ParquetFile,
    pages: &SketchPages,
    rows: &[u32],
    counts: &Counts,
) -> Result<Vec<Option<Sketch>>> {
    if !parquet.has_column(SKETCH) {
        return Ok(vec![None; rows.len()]);
    }
    let found = sketch_column::fetch_known(parquet, pages, rows, &counts.sketches).await?;
    Ok(found.into_iter().map(|sketch| sketch.map(Sketch)).collect())
}

/// Returns the fingerprints of `rows`, which ascend.
///
/// # Errors
/// The file is damaged or cannot be read.
pub async fn fingerprints(parquet: &ParquetFile, rows: &[u32], counts: &Counts) -> Result<Vec<u64>> {
    let mut found = Vec::with_capacity(rows.len());
    if rows.is_empty() {
        return Ok(found);
    }
    let mut batches = parquet.stream(read(parquet, &[FINGERPRINT], rows, counts))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        found.extend(columns.primitive::<UInt64Type>(FINGERPRINT)?.values());
    }
    if found.len() == rows.len() {
        return Ok(found);
    }
    Err(bad_file(&parquet.file.url, format!("gave {} of {} fingerprints", found.len(), rows.len())))
}

/// Reads the documents of `rows`, which ascend, by page index, and calls `each` with them in their order. As many are
/// read at a time as there is memory for.
///
/// # Errors
/// The file is damaged or cannot be read; an error of `each`.
pub async fn documents(
    parquet: &ParquetFile,
    rows: &[u32],
    (reads, counts): (&Budget, &Counts),
    mut each: impl FnMut(Document<'_>) -> Result<()>,
) -> Result<()> {
    let most = READ_BYTES.min(reads.bytes() / 4) as u64;
    let mut rest = rows;
    while !rest.is_empty() {
        let (n_rows, bytes) = fitting(parquet, rest, most);
        let (now, later) = rest.split_at(n_rows);
        let _taken = reads.take(bytes).await?;
        let mut n_given = 0;
        let mut batches = parquet.stream(read(parquet, &COLUMNS, now, counts))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (ids, hashes) = (columns.strings(DOC_ID)?, columns.bytes::<16>(TEXT_HASH)?);
            let canonical = columns.strings(CANONICAL_ID)?;
            let references = columns.optional(REFERENCE, Columns::strings)?;
            for i in 0..batch.num_rows() {
                let reference = references.and_then(|names| value(names, i));
                let canonical = value(canonical, i).map(|id| Canonical { id, reference });
                each(Document { id: ids.value(i), text_hash: fixed(hashes, i), canonical })?;
            }
            n_given += batch.num_rows();
        }
        if n_given != n_rows {
            let reason = format!("gave {n_given} of {n_rows} documents");
            return Err(bad_file(&parquet.file.url, reason));
        }
        rest = later;
    }
    Ok(())
}

fn read(parquet: &ParquetFile, columns: &'static [&'static str], rows: &[u32], counts: &Counts) -> Read<'static> {
    let (row_groups, rows) = in_row_groups(parquet, rows);
    let n_rows = row_groups.iter().map(|&group| parquet.row_group_rows(group)).sum();
    Read {
        row_groups,
        columns,
        rows: Some(selection(&rows, n_rows)),
        batch_rows: BATCH_ROWS,
        bytes_read: Some(Arc::clone(&counts.documents)),
    }
}

/// Returns the row groups that have some of `rows`, which ascend, and the rows as they count through these alone.
fn in_row_groups(parquet: &ParquetFile, rows: &[u32]) -> (Vec<usize>, Vec<u32>) {
    let (mut row_groups, mut within) = (Vec::new(), Vec::with_capacity(rows.len()));
    let (mut rest, mut before, mut passed) = (rows, 0u64, 0u64);
    for group in 0..parquet.n_row_groups() {
        let n_rows = parquet.row_group_rows(group);
        let (now, later) = rest.split_at(rest.partition_point(|&row| u64::from(row) < before + n_rows));
        if now.is_empty() {
            passed += n_rows;
        } else {
            row_groups.push(group);
            // What is subtracted is at most the row itself, of 32 bits.
            #[allow(clippy::cast_possible_truncation, reason = "at most the smallest of the rows")]
            within.extend(now.iter().map(|row| row - passed as u32));
        }
        (rest, before) = (later, before + n_rows);
    }
    (row_groups, within)
}

/// Returns how many of the first `rows` are read at once, at least one, and the bytes that the read holds: its pages as
/// they are in the file, and a batch.
fn fitting(parquet: &ParquetFile, rows: &[u32], most: u64) -> (usize, usize) {
    let (mut n, mut packed, mut row_bytes, mut before) = (0, 0u64, 0u64, 0);
    for group in 0..parquet.n_row_groups() {
        let end = before + parquet.row_group_rows(group);
        let of_group = &rows[n..];
        let of_group = &of_group[..of_group.partition_point(|&row| u64::from(row) < end)];
        if !of_group.is_empty() {
            let mut chunks: Vec<Chunk> = COLUMNS.iter().filter_map(|name| Chunk::of(parquet, group, name)).collect();
            row_bytes = row_bytes.max(document_bytes(parquet, group));
            for &row in of_group {
                let more: u64 = chunks.iter_mut().map(|chunk| chunk.packed_for(u64::from(row) - before)).sum();
                if n > 0 && held(n + 1, packed + more, row_bytes) > most {
                    return (n, in_memory(held(n, packed, row_bytes)));
                }
                packed += more;
                n += 1;
            }
        }
        before = end;
    }
    (rows.len(), in_memory(held(n, packed, row_bytes)))
}

/// Returns the bytes that a read of `n` rows holds, whose pages have so many as they are in the file. A page is unpacked,
/// and a batch may be twice as large while it grows.
fn held(n: usize, packed: u64, row_bytes: u64) -> u64 {
    let n_unpacked = (2 * n.min(BATCH_ROWS)) as u64;
    packed.saturating_mul(2).saturating_add(row_bytes.saturating_mul(n_unpacked))
}

/// Returns the bytes that a document has on average in the night's row group in which it has most: an id, another
/// document's id, and a hash.
pub fn mean_document_bytes(parquet: &ParquetFile) -> usize {
    let most = (0..parquet.n_row_groups()).map(|group| document_bytes(parquet, group)).max();
    in_memory(most.unwrap_or(0))
}

fn document_bytes(parquet: &ParquetFile, group: usize) -> u64 {
    const HASH_BYTES: u64 = 16;
    let ids = parquet.column_chunk(group, DOC_ID).map_or(0, |chunk| chunk.uncompressed_size().max(0).unsigned_abs());
    2 * ids.div_ceil(parquet.row_group_rows(group).max(1)) + HASH_BYTES
}

/// A column of a row group, whose pages are passed one after another.
struct Chunk {
    /// The first row and the bytes of each page that was not passed yet, the last one first. A chunk without an index of
    /// its pages is read whole, as one page.
    pages: Vec<(u64, u64)>,
}

impl Chunk {
    fn of(parquet: &ParquetFile, group: usize, column: &str) -> Option<Self> {
        let columns = parquet.footer().row_group(group).columns();
        let leaf = columns.iter().position(|chunk| chunk.column_path().string() == column)?;
        let bytes = |bytes: i64| bytes.max(0).unsigned_abs();
        let pages = match parquet.page_locations(group, leaf) {
            Some(pages) => {
                let pages = pages.iter().rev();
                pages.map(|at| (bytes(at.first_row_index), bytes(at.compressed_page_size.into()))).collect()
            }
            None => vec![(0, bytes(columns[leaf].compressed_size()))],
        };
        Some(Self { pages })
    }

    /// Returns the bytes of the page that has a row, or 0 if a former row was in it too. Rows ascend.
    fn packed_for(&mut self, row: u64) -> u64 {
        let mut bytes = 0;
        while let Some((_, of_page)) = self.pages.pop_if(|(first, _)| *first <= row) {
            bytes = of_page;
        }
        bytes
    }
}
