//! Documents of earlier nights that the corpus has again, and whose text is gone.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::TryStreamExt;
use nearprint_documents::Fate;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::DOC_ID;
use nearprint_parquet::{Columns, DatasetWriter, ParquetFile, StagedFile};
use nearprint_storage::day_of_date;

use super::plan::Planned;
use super::request::GONE;

/// The columns, by both of which the rows are sorted. `dt` is the night that had the text.
static GONE_COLUMNS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let dt = Field::new("dt", DataType::Date32, false);
    Arc::new(Schema::new(vec![dt, Field::new(DOC_ID, DataType::Utf8, false)]))
});

/// Writes the ids of the documents of nights that would be written if the input of the nights were there. The nights are
/// ascending by date.
///
/// # Errors
/// A file of decisions is damaged or cannot be read.
pub async fn gone_documents(nights: &[Planned], temp: &Path) -> Result<Vec<StagedFile>> {
    let mut writer = DatasetWriter::new(temp, GONE, &GONE_COLUMNS, &[]);
    for night in nights {
        let Some(fates) = &night.fates else { continue };
        let day =
            day_of_date(&night.dt).ok_or_else(|| Fault::internal("corpus", format!("'{}' is no date", night.dt)))?;
        let mut n_rows = 0;
        for file in &night.published.decisions {
            let parquet = ParquetFile::open(file.clone()).await?;
            let mut batches = parquet.stream(parquet.whole(&[DOC_ID]))?;
            while let Some(batch) = batches.try_next().await? {
                let ids = Columns { batch: &batch, file: &parquet.file.url }.strings(DOC_ID)?;
                let rows = n_rows..n_rows + ids.len() as u64;
                n_rows = rows.end;
                let ids = ids.iter().flatten().zip(rows).filter(|&(_, row)| fates.get(row) == Some(Fate::Keep));
                let ids: StringArray = ids.map(|(id, _)| Some(id)).collect();
                let days = Date32Array::from(vec![day; ids.len()]);
                let columns: Vec<ArrayRef> = vec![Arc::new(days), Arc::new(ids)];
                let batch = RecordBatch::try_new(Arc::clone(&GONE_COLUMNS), columns);
                writer.write(batch.map_err(|e| Fault::internal("corpus", e))?)?;
            }
        }
    }
    writer.finish()
}
