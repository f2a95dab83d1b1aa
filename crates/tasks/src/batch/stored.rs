//! The query batch of documents that a store has already: those that are decided again.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array, new_null_array};
use arrow::datatypes::{DataType, Field, Schema};
use nearprint_fault::Result;
use nearprint_parquet::schema::FINGERPRINT;
use nearprint_store::StoredRows;

use super::collect::{CollectPolicy, Collecting};
use super::query_batch::{FILE, QueryBatch, ROW, SKIPPED, SkipReason, defect};

/// Makes a query batch of stored documents, each of which has another id. The fullest documents, which have most
/// features, come first in keep order, and among equally full ones the order of the ids decides.
///
/// # Errors
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the batch would take more than `max_bytes`.
pub fn batch_of_stored(stored: &[StoredRows], max_bytes: usize) -> Result<QueryBatch> {
    let mut collecting = Collecting::new(&[], None, max_bytes);
    let mut first_row = 0;
    for rows in stored {
        collecting.push(&as_fingerprinted(rows, first_row)?)?;
        first_row += rows.batch.num_rows() as u64;
    }
    let mut batch = collecting.finish(&CollectPolicy::default(), |_| "the store".to_owned())?;
    let mut order: Vec<u32> = batch.rows().collect();
    order.sort_by_key(|&row| std::cmp::Reverse(batch.n_features.get(row).copied()));
    batch.keep_order = Some(order);
    Ok(batch)
}

/// Returns the rows with the columns that [`Collecting`] takes.
fn as_fingerprinted(stored: &StoredRows, first_row: u64) -> Result<RecordBatch> {
    let batch = &stored.batch;
    let n = batch.num_rows();
    let mut fields: Vec<Field> = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut columns = batch.columns().to_vec();
    let mut add = |name: &str, column: ArrayRef| {
        fields.push(Field::new(name, column.data_type().clone(), true));
        columns.push(column);
    };
    let skipped = stored.are_short.then_some(SkipReason::TooShort.name());
    if stored.are_short {
        add(FINGERPRINT, new_null_array(&DataType::UInt64, n));
    }
    add(SKIPPED, Arc::new(StringArray::from(vec![skipped; n])));
    add(FILE, Arc::new(UInt32Array::from(vec![0; n])));
    add(ROW, Arc::new(UInt64Array::from_iter_values((first_row..).take(n))));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(defect)
}
