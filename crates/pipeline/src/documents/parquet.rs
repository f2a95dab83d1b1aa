//! Documents in Parquet.

use std::ops::Range;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::keep_column::{keep_type, to_keep_type};
use super::{BATCH_ROWS, DocumentBatch, DocumentColumns, keep_type_name};
use crate::columns::Columns;
use crate::error::{PipelineError, Result};
use crate::parquet_file::{ParquetFile, Read};
use crate::storage::InputFile;

#[derive(Debug)]
pub(super) struct ParquetDocuments {
    parquet: ParquetFile,
    column_types: Vec<(String, DataType)>,
}

impl ParquetDocuments {
    pub(super) async fn open(file: InputFile, columns: &DocumentColumns) -> Result<Self> {
        let parquet = ParquetFile::open(file).await?;
        let mut column_types = vec![(columns.id.clone(), id_type(&parquet, &columns.id)?)];
        require_text(&parquet, &columns.text)?;
        for column in &columns.keep {
            column_types.push((column.clone(), keep_column_type(&parquet, column)?));
        }
        Ok(Self { parquet, column_types })
    }

    pub(super) fn file(&self) -> &InputFile {
        &self.parquet.file
    }

    pub(super) fn n_rows(&self) -> u64 {
        self.parquet.n_rows()
    }

    pub(super) fn column_types(&self) -> &[(String, DataType)] {
        &self.column_types
    }

    /// Consecutive row groups of together at most `max_rows`, or single larger ones.
    pub(super) fn row_group_ranges(&self, max_rows: u64) -> Vec<Range<usize>> {
        self.parquet.row_group_ranges(0..self.parquet.n_row_groups(), max_rows)
    }

    pub(super) fn read(
        &self,
        row_groups: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
    ) -> Result<BoxStream<'static, Result<DocumentBatch>>> {
        let names: Vec<&str> =
            [columns.id.as_str(), &columns.text].into_iter().chain(columns.keep.iter().map(String::as_str)).collect();
        let first_row = self.parquet.rows_before(row_groups.start) + 1;
        let read = Read { row_groups: row_groups.collect(), columns: &names, rows: None, batch_rows: BATCH_ROWS };
        let (url, columns, keep_types) = (self.file().url.clone(), columns.clone(), keep_types.to_vec());
        let batches = self.parquet.stream(read)?.scan(first_row, move |next_row, batch| {
            let documents = batch.and_then(|batch| to_documents(&url, &columns, &keep_types, &batch, *next_row));
            if let Ok(documents) = &documents {
                *next_row += documents.ids.len() as u64;
            }
            futures::future::ready(Some(documents))
        });
        Ok(batches.boxed())
    }
}

fn to_documents(
    url: &str,
    columns: &DocumentColumns,
    keep_types: &[DataType],
    batch: &RecordBatch,
    first_row: u64,
) -> Result<DocumentBatch> {
    let found = Columns { batch, file: url };
    let of_arrow = |e| PipelineError::of_arrow(url, e);
    let ids = cast(found.get(&columns.id)?, &DataType::Utf8).map_err(of_arrow)?;
    let texts = cast(found.get(&columns.text)?, &DataType::Utf8).map_err(of_arrow)?;
    let keep_column = |(name, data_type): (&String, &DataType)| {
        let unreadable = |e| PipelineError::bad_file(url, format!("column '{name}': {e}"));
        to_keep_type(found.get(name)?, data_type).map_err(unreadable)
    };
    let keep = columns.keep.iter().zip(keep_types).map(keep_column).collect::<Result<_>>()?;
    Ok(DocumentBatch {
        ids: ids.as_string::<i32>().clone(),
        texts: texts.as_string::<i32>().clone(),
        keep,
        rows: (first_row..).take(batch.num_rows()).collect(),
    })
}

fn wrong_type(parquet: &ParquetFile, column: &str, got: &DataType, expected: &'static str) -> PipelineError {
    PipelineError::ColumnType {
        file: parquet.file.url.clone(),
        column: column.to_owned(),
        got: keep_type_name(got),
        expected,
    }
}

fn id_type(parquet: &ParquetFile, column: &str) -> Result<DataType> {
    match parquet.data_type(column, "set id_column or rename it")? {
        DataType::Utf8 => Ok(DataType::Utf8),
        t if t.is_integer() => Ok(DataType::Int64),
        other => Err(wrong_type(parquet, column, other, "string or integer")),
    }
}

fn require_text(parquet: &ParquetFile, column: &str) -> Result<()> {
    match parquet.data_type(column, "set text_column or rename it")? {
        DataType::Utf8 => Ok(()),
        other => Err(wrong_type(parquet, column, other, "string")),
    }
}

fn keep_column_type(parquet: &ParquetFile, column: &str) -> Result<DataType> {
    let got = parquet.data_type(column, "change keep or rename it")?;
    keep_type(got).ok_or_else(|| wrong_type(parquet, column, got, "a number, string, date or time"))
}
