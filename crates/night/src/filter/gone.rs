//! Documents of the corpus whose text is gone.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::TryStreamExt;
use nearprint_documents::Fate;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::DOC_ID;
use nearprint_parquet::{BATCH_ROWS, Columns, DatasetWriter, ParquetFile, StagedFile};
use nearprint_storage::day_of_date;

use super::corpus::WithoutRecord;
use super::plan::Planned;
use super::request::GONE;

/// The columns, by both of which the rows are sorted. `dt` is the night that had the text.
static GONE_COLUMNS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let dt = Field::new("dt", DataType::Date32, false);
    Arc::new(Schema::new(vec![dt, Field::new(DOC_ID, DataType::Utf8, false)]))
});

/// Writes the ids of the documents that would be written if the input of the nights were there, and of those whose text is in
/// no record of a night, which are sorted. The nights are ascending by date.
///
/// # Errors
/// A file of decisions is damaged or cannot be read.
pub async fn gone_documents(
    nights: &[Planned],
    without_record: Vec<WithoutRecord>,
    temp: &Path,
) -> Result<Vec<StagedFile>> {
    debug_assert!(without_record.is_sorted(), "the rows of the file are sorted");
    let mut without_record = without_record.into_iter().peekable();
    let mut gone = Gone { writer: DatasetWriter::new(temp, GONE, &GONE_COLUMNS, &[]), rows: Vec::new() };
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
                for (id, _) in ids {
                    let of_night = WithoutRecord { day, id: id.to_owned() };
                    while let Some(earlier) = without_record.next_if(|earlier| *earlier < of_night) {
                        gone.add(earlier)?;
                    }
                    gone.add(of_night)?;
                }
            }
        }
    }
    without_record.try_for_each(|left| gone.add(left))?;
    gone.write()?;
    gone.writer.finish()
}

/// The file of documents that are not written.
struct Gone {
    writer: DatasetWriter,
    /// The rows that wait to be written.
    rows: Vec<WithoutRecord>,
}

impl Gone {
    fn add(&mut self, row: WithoutRecord) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() == BATCH_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let days = Date32Array::from_iter_values(self.rows.iter().map(|row| row.day));
        let ids = StringArray::from_iter_values(self.rows.iter().map(|row| &row.id));
        self.rows.clear();
        let columns: Vec<ArrayRef> = vec![Arc::new(days), Arc::new(ids)];
        let batch = RecordBatch::try_new(Arc::clone(&GONE_COLUMNS), columns);
        self.writer.write(batch.map_err(|e| Fault::internal("corpus", e))?)
    }
}
