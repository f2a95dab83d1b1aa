//! The documents behind near fingerprints: their sketches, and of those that match their ids and decisions.

use std::sync::Arc;

use arrow::array::Array;
use futures::TryStreamExt;
use nearprint_dataset::schema::{CANONICAL_ID, DOC_ID, SKETCH, TEXT_HASH};
use nearprint_dataset::sketch_column::SketchPages;
use nearprint_dataset::{BATCH_ROWS, Columns, DatasetError, ParquetFile, Read, fixed, selection, sketch_column};
use nearprint_fingerprint::Sketch;

use crate::counts::Counts;
use crate::error::Result;
use crate::nights::TextHash;

/// What a run file says about a document.
#[derive(Debug)]
pub struct Document {
    pub id: String,
    pub text_hash: Option<TextHash>,
    pub canonical_id: Option<String>,
}

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

/// Returns the documents of `rows`, which ascend, by page index.
///
/// # Errors
/// The file is damaged or cannot be read.
pub async fn documents(parquet: &ParquetFile, rows: &[u32], counts: &Counts) -> Result<Vec<Document>> {
    let (row_groups, rows) = in_row_groups(parquet, rows);
    let n_rows = row_groups.iter().map(|&group| parquet.row_group_rows(group)).sum();
    let read = Read {
        row_groups,
        columns: &[DOC_ID, TEXT_HASH, CANONICAL_ID],
        rows: Some(selection(&rows, n_rows)),
        batch_rows: BATCH_ROWS,
        bytes_read: Some(Arc::clone(&counts.documents)),
    };
    let mut documents = Vec::with_capacity(rows.len());
    let mut batches = parquet.stream(read)?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let (ids, hashes) = (columns.strings(DOC_ID)?, columns.bytes::<16>(TEXT_HASH)?);
        let canonical = columns.strings(CANONICAL_ID)?;
        documents.extend((0..batch.num_rows()).map(|i| Document {
            id: ids.value(i).to_owned(),
            text_hash: fixed(hashes, i),
            canonical_id: canonical.is_valid(i).then(|| canonical.value(i).to_owned()),
        }));
    }
    if documents.len() == rows.len() {
        return Ok(documents);
    }
    let reason = format!("gave {} of {} documents", documents.len(), rows.len());
    Err(DatasetError::bad_file(&parquet.file.url, reason).into())
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
