//! The run files of a night for the store: its documents in the order of a run, with their decisions.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::BATCH_ROWS;
use nearprint_parquet::schema::{EMPTY, RUN, SHORT};
use nearprint_storage::{in_pool, row_number};
use nearprint_store::{HistoryColumns, OwnDocuments, Recrawls, RunWriter, StagedRun, Store, canonical_hash, id_hash};
use nearprint_tasks::{QueryBatch, RowColumns, SkipReason};
use rayon::prelude::*;

use crate::stages::decide::Decisions;
use crate::stages::families::Families;
use crate::stages::fingerprint::fingerprint_order;
use crate::stages::made_ahead::write_in_order;

/// The rows of the batch in the order of a run: those with a fingerprint by (fingerprint, id), then the short texts by
/// (text hash, id), then documents without text by id.
struct RunOrder {
    rows: Vec<u32>,
    n_fingerprinted: usize,
    n_short: usize,
}

impl RunOrder {
    fn of(batch: &QueryBatch) -> Self {
        let mut rows = fingerprint_order(batch);
        let n_fingerprinted = rows.len();
        rows.extend(batch.rows().filter(|&row| batch.skipped.get(row) == Some(&SkipReason::TooShort)));
        rows[n_fingerprinted..].sort_by_key(|&row| (batch.text_hashes.get(row), row));
        let n_short = rows.len() - n_fingerprinted;
        let without_text =
            |row: &u32| matches!(batch.skipped.get(*row), Some(SkipReason::Empty | SkipReason::NullText));
        rows.extend(batch.rows().filter(without_text));
        debug_assert_eq!(rows.len(), batch.len(), "each document has one row of the run");
        debug_assert!(
            rows[..n_fingerprinted].is_sorted_by_key(|&row| (batch.fingerprints.get(row), row)),
            "a run ascends by fingerprint"
        );
        Self { rows, n_fingerprinted, n_short }
    }

    /// Returns the rows with a fingerprint, the short texts, and the documents without text.
    fn kinds(&self) -> [&[u32]; 3] {
        let (fingerprinted, others) = self.rows.split_at(self.n_fingerprinted);
        let (short, empty) = others.split_at(self.n_short);
        [fingerprinted, short, empty]
    }

    /// Returns (row of the run, row of the batch) of all rows.
    fn rows(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(self.rows.iter().copied())
    }

    /// Returns (hash of the id, row of the run, row of the batch) of all rows, sorted.
    fn by_hash(&self, batch: &QueryBatch) -> Vec<(u64, u32, u32)> {
        let hashed = |(run_row, &row): (usize, &u32)| (id_hash(&batch.id(row)), row_number(run_row), row);
        in_pool(|| {
            let mut by_hash: Vec<(u64, u32, u32)> = self.rows.par_iter().enumerate().map(hashed).collect();
            by_hash.par_sort_unstable();
            by_hash
        })
    }
}

/// Returns the documents of the batch that nights of other dates have.
pub async fn recrawls(store: &Store, batch: &QueryBatch, dt: &str) -> Result<Recrawls> {
    let by_hash = RunOrder::of(batch).by_hash(batch);
    let text_hash_of = |row| batch.text_hashes.get(row).copied();
    let own = OwnDocuments { by_hash: &by_hash, id_of: &|row| batch.id(row), text_hash_of: &text_hash_of };
    store.recrawls(dt, &own).await
}

/// Writes the run files below a folder.
pub fn write_run(
    batch: &QueryBatch,
    decisions: &Decisions,
    recrawls: &Recrawls,
    families: &Families,
    config_digest: &str,
    folder: &Path,
) -> Result<StagedRun> {
    let order = RunOrder::of(batch);
    let [fingerprinted, short, empty] = order.kinds();
    let columns = batch.fingerprint_columns(&RUN);
    let mut run = RunWriter::try_new(folder, config_digest, &columns)?;
    let with_fingerprints = |rows: &[u32]| {
        let of_rows = RowColumns { batch, rows };
        let canonical = canonical_ids(batch, decisions, rows)?;
        let arrays = vec![
            of_rows.fingerprints(),
            of_rows.ids(),
            of_rows.sketches()?,
            of_rows.text_hashes()?,
            canonical,
            of_rows.n_features(),
        ];
        let mut arrays = with_history(arrays, decisions, recrawls, rows);
        arrays.push(references(batch, decisions, rows));
        RecordBatch::try_new(Arc::clone(&columns), arrays).map_err(internal)
    };
    write_in_order(fingerprinted.chunks(BATCH_ROWS), with_fingerprints, |rows| run.fingerprints(rows))?;
    for rows in short.chunks(BATCH_ROWS) {
        let columns = RowColumns { batch, rows };
        let arrays = vec![columns.text_hashes()?, columns.ids(), canonical_ids(batch, decisions, rows)?];
        let mut arrays = with_history(arrays, decisions, recrawls, rows);
        arrays.push(references(batch, decisions, rows));
        run.short(RecordBatch::try_new(Arc::clone(&SHORT), arrays).map_err(internal)?)?;
    }
    for rows in empty.chunks(BATCH_ROWS) {
        let arrays = with_history(vec![RowColumns { batch, rows }.ids()], decisions, recrawls, rows);
        run.empty(RecordBatch::try_new(Arc::clone(&EMPTY), arrays).map_err(internal)?)?;
    }
    let ids = order.by_hash(batch);
    let ids = ids.into_iter().map(|(hash, run_row, _)| (hash, run_row));
    let dependents = dependents(batch, decisions, &order)?;
    let run = run.finish(ids, &recrawls.shadows, Some(&dependents))?;
    run.with_families(folder, config_digest, &families.stored(batch, order.rows()))
}

/// Returns the rows of the run that are dropped for documents of the own store, by the hashes of these.
fn dependents(batch: &QueryBatch, decisions: &Decisions, order: &RunOrder) -> Result<Vec<(u32, u32)>> {
    let mut dependents = Vec::new();
    for (run_row, row) in order.rows() {
        if let Some(canonical) = decisions.own_canonical_id(batch, row)? {
            dependents.push((canonical_hash(&canonical), run_row));
        }
    }
    dependents.sort_unstable();
    Ok(dependents)
}

/// Adds the dates of documents, and the reasons of the decisions about them, to their other columns.
fn with_history(mut columns: Vec<ArrayRef>, decisions: &Decisions, recrawls: &Recrawls, rows: &[u32]) -> Vec<ArrayRef> {
    let HistoryColumns { first_seen, last_changed } = recrawls.columns(rows.iter().copied());
    let reasons = StringArray::from_iter_values(rows.iter().map(|&row| decisions.reason(row)));
    let history: [ArrayRef; 3] = [Arc::new(first_seen), Arc::new(last_changed), Arc::new(reasons)];
    columns.extend(history);
    columns
}

fn references(batch: &QueryBatch, decisions: &Decisions, rows: &[u32]) -> ArrayRef {
    Arc::new(rows.iter().map(|&row| decisions.reference(batch, row)).collect::<StringArray>())
}

fn canonical_ids(batch: &QueryBatch, decisions: &Decisions, rows: &[u32]) -> Result<ArrayRef> {
    let ids: Result<StringArray> = rows.iter().map(|&row| decisions.canonical_id(batch, row)).collect();
    Ok(Arc::new(ids?))
}

fn internal(error: arrow::error::ArrowError) -> Fault {
    Fault::internal("store", error)
}
