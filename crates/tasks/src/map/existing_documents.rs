//! The documents behind existing fingerprints that make pairs: their ids, and the columns that verification and
//! decisions need.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::Array;
use arrow::datatypes::UInt32Type;
use futures::{StreamExt, TryStreamExt};
use nearprint_dataset::schema::{CANONICAL_ID, DOC_ID, SKETCH, TEXT_HASH};
use nearprint_dataset::{BATCH_ROWS, Columns, DatasetError, ParquetFile, Read, fixed, selection};
use nearprint_fingerprint::Sketch;
use nearprint_store::{ExistingDocuments, ExistingFile, RunFile};

use super::context::{MapContext, Want};
use crate::error::{Result, TaskError};

/// An existing document that shares a pair, and the row of the batch with the same id.
#[derive(Debug)]
pub(super) struct ExistingDocument {
    pub(super) id: String,
    pub(super) sketch: Option<Sketch>,
    pub(super) text_hash: Option<[u8; 16]>,
    pub(super) kept: bool,
    /// The first row of the batch whose id is not smaller than the document's.
    pub(super) before_row: u32,
    pub(super) same_id_row: Option<u32>,
}

/// Fetches the documents of `rows`, which ascend, in their order. Rows count across `row_groups`. `None` means that a
/// row takes no part.
pub(super) async fn fetch(
    context: &MapContext,
    existing: &ExistingFile,
    row_groups: &Range<usize>,
    rows: &[u32],
) -> Result<Vec<Option<ExistingDocument>>> {
    let mut documents: Vec<Option<ExistingDocument>> = rows.iter().map(|_| None).collect();
    let runs = match &existing.documents {
        ExistingDocuments::Here { shadowed } => {
            let before = existing.parquet.rows_before(row_groups.start);
            // Shadowed rows have 32-bit numbers. Datasets of others may be longer, but none of their rows is shadowed.
            let is_shadowed =
                |row: u32| u32::try_from(before + u64::from(row)).is_ok_and(|in_file| shadowed.contains(in_file));
            let live: Vec<usize> = (0..rows.len()).filter(|&i| !is_shadowed(rows[i])).collect();
            let wanted: Vec<u32> = live.iter().map(|&i| rows[i]).collect();
            let numbered_from = existing.numbered_from.map(|first| first + before);
            let row_groups = row_groups.clone().collect();
            let found = fetch_documents(context, &existing.parquet, numbered_from, row_groups, &wanted).await?;
            debug_assert_eq!(live.len(), found.len(), "a file gives all rows or fails");
            for (i, document) in live.into_iter().zip(found) {
                documents[i] = Some(document);
            }
            return Ok(documents);
        }
        ExistingDocuments::InRuns { runs } => runs,
    };
    let mut by_run: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
    for (position, (run, row)) in resolve(&existing.parquet, row_groups, rows).await?.into_iter().enumerate() {
        by_run.entry(run).or_default().push((row, position));
    }
    let fetches: Vec<_> =
        by_run.into_iter().map(|(run, rows)| fetch_of_run(context, existing, runs, run, rows)).collect();
    let mut fetched = futures::stream::iter(fetches).buffer_unordered(RUNS_AT_ONCE);
    while let Some(found) = fetched.try_next().await? {
        for (position, document) in found {
            documents[position] = Some(document);
        }
    }
    Ok(documents)
}

/// The number of runs from which the documents of one piece are fetched at the same time.
const RUNS_AT_ONCE: usize = 8;

/// Returns the run, and the row of the run, of each of `rows`, which ascend. Rows count across `row_groups` of a
/// segment.
async fn resolve(parquet: &ParquetFile, row_groups: &Range<usize>, rows: &[u32]) -> Result<Vec<(u32, u32)>> {
    let row_groups: Vec<usize> = row_groups.clone().collect();
    let selected = Some(selection(rows, row_groups.iter().map(|&g| parquet.row_group_rows(g)).sum()));
    let read = Read { row_groups, columns: &["run", "row"], rows: selected, batch_rows: BATCH_ROWS };
    let mut batches = parquet.stream(read)?;
    let mut places = Vec::with_capacity(rows.len());
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let (run, row) = (columns.primitive::<UInt32Type>("run")?, columns.primitive::<UInt32Type>("row")?);
        places.extend(run.values().iter().copied().zip(row.values().iter().copied()));
    }
    all_found(parquet, rows.len(), places)
}

/// Fetches the documents of (row, position) pairs of a run, and returns them with the positions. Shadowed rows are left
/// out, and so are all rows of a run that takes no part.
async fn fetch_of_run(
    context: &MapContext,
    segment: &ExistingFile,
    runs: &[Option<RunFile>],
    run: u32,
    mut rows: Vec<(u32, usize)>,
) -> Result<Vec<(usize, ExistingDocument)>> {
    let unknown =
        |what: String| DatasetError::bad_file(&segment.parquet.file.url, format!("{what} is not in the store"));
    let Some(file) = runs.get(run as usize).ok_or_else(|| unknown(format!("run {run}")))? else {
        return Ok(Vec::new());
    };
    rows.retain(|(row, _)| !file.shadowed.contains(*row));
    rows.sort_unstable();
    if let Some((row, _)) = rows.last().filter(|(row, _)| u64::from(*row) >= file.parquet.n_rows()) {
        return Err(unknown(format!("row {row} of run {run}")).into());
    }
    let wanted: Vec<u32> = rows.iter().map(|(row, _)| *row).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let all_groups = (0..file.parquet.n_row_groups()).collect();
    let documents = fetch_documents(context, &file.parquet, None, all_groups, &wanted).await?;
    debug_assert_eq!(rows.len(), documents.len(), "a file gives all rows or fails");
    Ok(rows.into_iter().map(|(_, position)| position).zip(documents).collect())
}

/// Fetches, by page index, the ids of `rows` and the columns that verification and decisions need. Rows ascend, and
/// count across `row_groups`. If `numbered_from` is given, ids are row numbers, counted on from it.
async fn fetch_documents(
    context: &MapContext,
    parquet: &ParquetFile,
    numbered_from: Option<u64>,
    row_groups: Vec<usize>,
    rows: &[u32],
) -> Result<Vec<ExistingDocument>> {
    let number = |row: u32| numbered_from.map(|first| (first + u64::from(row)).to_string());
    let mut columns = Vec::new();
    if numbered_from.is_none() {
        columns.push(DOC_ID);
    }
    if context.verifier.max_sketch_distance.is_some() {
        columns.push(SKETCH);
    }
    if context.want == Want::Forest {
        columns.extend([TEXT_HASH, CANONICAL_ID]);
    }
    columns.retain(|column| parquet.has_column(column));
    if columns.is_empty() {
        let numbers = rows.iter().filter_map(|&row| number(row));
        let documents = numbers.map(|id| ExistingDocument::new(context, id, false)).collect();
        return all_found(parquet, rows.len(), documents);
    }
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let n_rows = row_groups.iter().map(|&g| parquet.row_group_rows(g)).sum();
    let selected = Some(selection(rows, n_rows));
    let mut batches = parquet.stream(Read { row_groups, columns: &columns, rows: selected, batch_rows: BATCH_ROWS })?;
    let mut documents = Vec::with_capacity(rows.len());
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let ids = if numbered_from.is_none() { Some(columns.ids(DOC_ID)?) } else { None };
        let (sketches, text_hashes) = (columns.bytes::<32>(SKETCH)?, columns.bytes::<16>(TEXT_HASH)?);
        let canonical = batch.column_by_name(CANONICAL_ID);
        for i in 0..batch.num_rows() {
            let row = *rows.get(documents.len()).ok_or_else(|| gave(parquet, documents.len() + 1, rows.len()))?;
            if ids.as_ref().is_some_and(|ids| ids.is_null(i)) {
                let reason = "doc_id is NULL: leave such rows out".to_owned();
                return Err(DatasetError::bad_file(&parquet.file.url, reason).into());
            }
            let mut document = match (&ids, number(row)) {
                (Some(ids), _) => ExistingDocument::new(context, ids.value(i).to_owned(), true),
                (None, Some(id)) => ExistingDocument::new(context, id, false),
                (None, None) => {
                    return Err(TaskError::internal("map", format!("{} row {row}: no id", parquet.file.url)));
                }
            };
            document.sketch = fixed::<32>(sketches, i).map(Sketch);
            document.text_hash = fixed(text_hashes, i);
            document.kept = canonical.is_none_or(|c| c.is_null(i));
            documents.push(document);
        }
    }
    all_found(parquet, rows.len(), documents)
}

impl ExistingDocument {
    /// Builds a document. Its id is a name if `is_name`, and otherwise only the number of its row.
    fn new(context: &MapContext, id: String, is_name: bool) -> Self {
        let before_row = context.batch.first_row_not_before(&id);
        let same = is_name && context.ids_are_names && context.batch.has_id(before_row, &id);
        let same_id_row = same.then_some(before_row);
        Self { id, sketch: None, text_hash: None, kept: true, before_row, same_id_row }
    }
}

fn all_found<T>(parquet: &ParquetFile, n_rows: usize, found: Vec<T>) -> Result<Vec<T>> {
    if found.len() == n_rows {
        return Ok(found);
    }
    Err(gave(parquet, found.len(), n_rows))
}

fn gave(parquet: &ParquetFile, n_found: usize, n_rows: usize) -> TaskError {
    DatasetError::bad_file(&parquet.file.url, format!("gave {n_found} of {n_rows} rows")).into()
}
