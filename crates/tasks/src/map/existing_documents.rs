//! The documents behind existing fingerprints: the sketches of candidates, then the ids, and the columns that decisions
//! need, of those that make pairs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::Array;
use arrow::datatypes::UInt32Type;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::Sketch;
use nearprint_join::{Origin, RowSet};
use nearprint_parquet::schema::{CANONICAL_ID, DOC_ID, N_FEATURES, SKETCH, TEXT_HASH};
use nearprint_parquet::{BATCH_ROWS, Columns, ParquetFile, Read, fixed, selection, sketch_column, value};
use nearprint_storage::bad_file;
use nearprint_store::{ExistingDocuments, ExistingFile, RunFile};

use super::context::{MapContext, Want};
use super::counts::Fetched;

/// An existing document that shares a pair, and the row of the batch that is the same document.
#[derive(Debug)]
pub(super) struct ExistingDocument {
    pub(super) id: String,
    pub(super) origin: Origin,
    pub(super) sketch: Option<Sketch>,
    /// The number of distinct features. `None` if the profile makes no sketches, and in files of other programs.
    pub(super) n_features: Option<u32>,
    pub(super) text_hash: Option<[u8; 16]>,
    pub(super) kept: bool,
    /// The first row of the batch whose id is not smaller than the document's.
    pub(super) before_row: u32,
    /// The row of the batch with the same id. `None` for documents of a reference: an id names one document within its
    /// store only.
    pub(super) same_id_row: Option<u32>,
}

/// Wanted rows of existing fingerprints whose documents are in one file. Rows that take no part are left out.
pub(super) struct DocumentRows<'a> {
    parquet: &'a ParquetFile,
    row_groups: Range<usize>,
    origin: Origin,
    /// `Some` if ids are row numbers, counted on from this one.
    numbered_from: Option<u64>,
    /// The dropped rows of the file that a later night restored.
    restored: &'a RowSet,
    /// The row of the file at which the row groups begin.
    first_row: u64,
    /// The rows of the row groups, ascending, and the position of each among the wanted rows.
    rows: Vec<(u32, usize)>,
}

/// Returns the places of the documents of `rows`, which ascend and count across `row_groups`.
pub(super) async fn places<'a>(
    existing: &'a ExistingFile,
    row_groups: &Range<usize>,
    rows: &[u32],
) -> Result<Vec<DocumentRows<'a>>> {
    let runs = match &existing.documents {
        ExistingDocuments::Here { shadowed, restored } => {
            let before = existing.parquet.rows_before(row_groups.start);
            // Shadowed rows have 32-bit numbers. Datasets of others may be longer, but none of their rows is shadowed.
            let is_shadowed =
                |row: u32| u32::try_from(before + u64::from(row)).is_ok_and(|in_file| shadowed.contains(in_file));
            let live = (0..rows.len()).filter(|&i| !is_shadowed(rows[i])).map(|i| (rows[i], i)).collect();
            return Ok(vec![DocumentRows {
                parquet: &existing.parquet,
                row_groups: row_groups.clone(),
                origin: existing.origin,
                numbered_from: existing.numbered_from.map(|first| first + before),
                restored,
                first_row: before,
                rows: live,
            }]);
        }
        ExistingDocuments::InRuns { runs } => runs,
    };
    let mut by_run: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
    for (position, (run, row)) in resolve(&existing.parquet, row_groups, rows).await?.into_iter().enumerate() {
        by_run.entry(run).or_default().push((row, position));
    }
    let of_runs = by_run.into_iter().map(|(run, rows)| rows_of_run(existing, runs, run, rows));
    of_runs.filter_map(Result::transpose).collect()
}

/// The number of files from which sketches or documents are fetched at the same time.
const FILES_AT_ONCE: usize = 8;

/// Fetches the sketches of documents. Returns those of the `n` wanted rows; `None` stands for a row that takes no part,
/// or has no sketch.
pub(super) async fn fetch_sketches(
    places: &[DocumentRows<'_>],
    n: usize,
    fetched: &Fetched,
) -> Result<Vec<Option<Sketch>>> {
    let mut sketches = vec![None; n];
    let fetches: Vec<_> = places
        .iter()
        .filter(|of_file| of_file.parquet.has_column(SKETCH))
        .map(|of_file| async move {
            let wanted = of_file.wanted();
            fetched.n_sketches.fetch_add(wanted.len() as u64, Ordering::Relaxed);
            let groups = of_file.row_groups.clone();
            let found = sketch_column::fetch(of_file.parquet, groups, &wanted, &fetched.of_sketches).await?;
            Ok::<_, Fault>((of_file, found))
        })
        .collect();
    let mut fetching = futures::stream::iter(fetches).buffer_unordered(FILES_AT_ONCE);
    while let Some((of_file, found)) = fetching.try_next().await? {
        debug_assert_eq!(of_file.rows.len(), found.len(), "a file gives the sketches of all rows or fails");
        for (&(_, position), sketch) in of_file.rows.iter().zip(found) {
            sketches[position] = sketch.map(Sketch);
        }
    }
    Ok(sketches)
}

/// Fetches documents. Returns those of the wanted rows, one for each of `sketches`, in their order; `None` stands for a
/// row that was not looked for.
pub(super) async fn fetch_documents(
    context: &MapContext,
    places: &[DocumentRows<'_>],
    sketches: Vec<Option<Sketch>>,
    fetched: &Fetched,
) -> Result<Vec<Option<ExistingDocument>>> {
    let mut documents: Vec<Option<ExistingDocument>> = sketches.iter().map(|_| None).collect();
    let fetches: Vec<_> = places
        .iter()
        .map(|of_file| async move { Ok::<_, Fault>((of_file, documents_of(context, of_file, fetched).await?)) })
        .collect();
    let mut fetching = futures::stream::iter(fetches).buffer_unordered(FILES_AT_ONCE);
    while let Some((of_file, found)) = fetching.try_next().await? {
        debug_assert_eq!(of_file.rows.len(), found.len(), "a file gives all rows or fails");
        for (&(_, position), document) in of_file.rows.iter().zip(found) {
            documents[position] = Some(ExistingDocument { sketch: sketches[position], ..document });
        }
    }
    Ok(documents)
}

impl DocumentRows<'_> {
    fn wanted(&self) -> Vec<u32> {
        debug_assert!(self.rows.is_sorted_by_key(|(row, _)| *row), "rows are fetched in the order of their file");
        self.rows.iter().map(|(row, _)| *row).collect()
    }

    /// Leaves the rows whose positions among the wanted ones are marked.
    pub(super) fn retain(&mut self, marked: &[bool]) {
        self.rows.retain(|&(_, position)| marked[position]);
    }
}

/// Returns the run, and the row of the run, of each of `rows`, which ascend. Rows count across `row_groups` of a
/// segment.
async fn resolve(parquet: &ParquetFile, row_groups: &Range<usize>, rows: &[u32]) -> Result<Vec<(u32, u32)>> {
    let row_groups: Vec<usize> = row_groups.clone().collect();
    let selected = Some(selection(rows, row_groups.iter().map(|&g| parquet.row_group_rows(g)).sum()));
    let read = Read { row_groups, rows: selected, ..parquet.whole(&["run", "row"]) };
    let mut batches = parquet.stream(read)?;
    let mut places = Vec::with_capacity(rows.len());
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let (run, row) = (columns.primitive::<UInt32Type>("run")?, columns.primitive::<UInt32Type>("row")?);
        places.extend(run.values().iter().copied().zip(row.values().iter().copied()));
    }
    all_found(parquet, rows.len(), places)
}

/// Returns the places of (row, position) pairs of a run. Shadowed rows are left out. `None` means that the run takes no
/// part.
fn rows_of_run<'a>(
    segment: &ExistingFile,
    runs: &'a [Option<RunFile>],
    run: u32,
    mut rows: Vec<(u32, usize)>,
) -> Result<Option<DocumentRows<'a>>> {
    let unknown = |what: String| bad_file(&segment.parquet.file.url, format!("{what} is not in the store"));
    let Some(file) = runs.get(run as usize).ok_or_else(|| unknown(format!("run {run}")))? else {
        return Ok(None);
    };
    rows.retain(|(row, _)| !file.shadowed.contains(*row));
    rows.sort_unstable();
    if let Some((row, _)) = rows.last().filter(|(row, _)| u64::from(*row) >= file.parquet.n_rows()) {
        return Err(unknown(format!("row {row} of run {run}")));
    }
    Ok(Some(DocumentRows {
        parquet: &file.parquet,
        row_groups: 0..file.parquet.n_row_groups(),
        origin: segment.origin,
        numbered_from: None,
        restored: &file.restored,
        first_row: 0,
        rows,
    }))
}

/// Fetches, by page index, the ids of the rows of a file and the columns that decisions need.
async fn documents_of(
    context: &MapContext,
    of_file: &DocumentRows<'_>,
    fetched: &Fetched,
) -> Result<Vec<ExistingDocument>> {
    let DocumentRows { parquet, row_groups, origin, numbered_from, restored, first_row, .. } = of_file;
    let rows = of_file.wanted();
    let number = |row: u32| numbered_from.map(|first| (first + u64::from(row)).to_string());
    let mut columns = Vec::new();
    if numbered_from.is_none() {
        columns.push(DOC_ID);
    }
    if context.want == Want::Forest {
        columns.extend([TEXT_HASH, CANONICAL_ID, N_FEATURES]);
    }
    columns.retain(|column| parquet.has_column(column));
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    if columns.is_empty() {
        let numbers = rows.iter().filter_map(|&row| number(row));
        let documents = numbers.map(|id| ExistingDocument::new(context, id, *origin, false)).collect::<Result<_>>()?;
        return all_found(parquet, rows.len(), documents);
    }
    let row_groups: Vec<usize> = row_groups.clone().collect();
    let n_rows = row_groups.iter().map(|&g| parquet.row_group_rows(g)).sum();
    let read = Read {
        row_groups,
        columns: &columns,
        rows: Some(selection(&rows, n_rows)),
        batch_rows: BATCH_ROWS,
        bytes_read: Some(Arc::clone(&fetched.document_bytes)),
    };
    let mut batches = parquet.stream(read)?;
    let mut documents = Vec::with_capacity(rows.len());
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let ids = if numbered_from.is_none() { Some(columns.ids(DOC_ID)?) } else { None };
        let text_hashes = columns.bytes::<16>(TEXT_HASH)?;
        let canonical = batch.column_by_name(CANONICAL_ID);
        let n_features = columns.optional(N_FEATURES, Columns::primitive::<UInt32Type>)?;
        for i in 0..batch.num_rows() {
            let row = *rows.get(documents.len()).ok_or_else(|| gave(parquet, documents.len() + 1, rows.len()))?;
            if ids.as_ref().is_some_and(|ids| ids.is_null(i)) {
                let reason = "doc_id is NULL: leave such rows out".to_owned();
                return Err(bad_file(&parquet.file.url, reason));
            }
            let mut document = match (&ids, number(row)) {
                (Some(ids), _) => ExistingDocument::new(context, ids.value(i).to_owned(), *origin, true)?,
                (None, Some(id)) => ExistingDocument::new(context, id, *origin, false)?,
                (None, None) => {
                    return Err(Fault::internal("map", format!("{} row {row}: no id", parquet.file.url)));
                }
            };
            document.text_hash = fixed(text_hashes, i);
            document.n_features = n_features.and_then(|n| value(n, i));
            // Rows that were restored have 32-bit numbers, like shadowed ones.
            let is_restored = || u32::try_from(first_row + u64::from(row)).is_ok_and(|row| restored.contains(row));
            document.kept = canonical.is_none_or(|c| c.is_null(i)) || is_restored();
            documents.push(document);
        }
    }
    all_found(parquet, rows.len(), documents)
}

impl ExistingDocument {
    /// Builds a document. Its id is a name if `is_name`, and otherwise only the number of its row.
    fn new(context: &MapContext, id: String, origin: Origin, is_name: bool) -> Result<Self> {
        let (before_row, is_same) = context.ids.place_of(&id)?;
        let is_own = is_name && context.ids_are_names && origin == Origin::OWN;
        let same_id_row = (is_own && is_same).then_some(before_row);
        Ok(Self { id, origin, sketch: None, n_features: None, text_hash: None, kept: true, before_row, same_id_row })
    }
}

fn all_found<T>(parquet: &ParquetFile, n_rows: usize, found: Vec<T>) -> Result<Vec<T>> {
    if found.len() == n_rows {
        return Ok(found);
    }
    Err(gave(parquet, found.len(), n_rows))
}

fn gave(parquet: &ParquetFile, n_found: usize, n_rows: usize) -> Fault {
    bad_file(&parquet.file.url, format!("gave {n_found} of {n_rows} rows"))
}
