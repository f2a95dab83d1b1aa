//! Documents as JSON lines: plain, gzip or zstd.

use std::num::NonZeroU64;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::builder::BinaryViewBuilder;
use arrow::array::{ArrayRef, Float64Array, Int64Array, LargeStringArray, StringArray};
use arrow::datatypes::DataType;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::{MAX_VALUE_BYTES, missing_column, of_arrow};
use nearprint_storage::{InputFile, bad_format, panicked};
use nearprint_warc::Packing;

use super::batch::{BATCH_ROWS, DocumentBatch, DocumentColumns, ReadBytes, ReadContext};
use super::jsonl_lines::{Numbered, Row, Value, WantedColumns};
use super::newest::newness;
use super::reader::{DocumentReader, Opened, RowFault};
use super::{foreign, hint, jsonl_fault};
use crate::quarantine::BadReason;

/// Opens a file and checks the columns of its first line.
pub fn open(file: InputFile, columns: DocumentColumns, context: ReadContext) -> Opened {
    Box::pin(async move { Ok(Box::new(JsonlFile::open(file, &columns, &context).await?) as Box<dyn DocumentReader>) })
}

#[derive(Debug, Clone)]
struct JsonlFile {
    file: InputFile,
    column_types: Vec<(String, DataType)>,
}

impl JsonlFile {
    /// Opens a file by its first line that is an object. If that line lacks a column, the column is taken to be
    /// misnamed. If a later line lacks it, the value is NULL there.
    async fn open(file: InputFile, columns: &DocumentColumns, context: &ReadContext) -> Result<Self> {
        let mut lines = Numbered::open(&file, context.max_line_bytes(), &ReadBytes::default()).await?;
        let wanted = WantedColumns::new(columns);
        let mispacked = |packed: &[u8]| foreign::mispacked(&file.url, file.size, packed, b"{");
        let beginning = match lines.beginning().await {
            Ok(beginning) => beginning,
            Err(error) => {
                let reason = mispacked(&foreign::beginning(&file).await);
                return Err(reason.map_or(error, |reason| bad_format(&file.url, reason)));
            }
        };
        let foreign = foreign::by_beginning(beginning).map(|foreign| foreign.reason(&file.url));
        // The lines of a packed file were unpacked already.
        let is_plain = Packing::of(&file.url) == Packing::Plain;
        let mispacked = || mispacked(beginning).filter(|_| is_plain);
        let other_unicode = || jsonl_fault::other_unicode(&file.url, beginning);
        if let Some(reason) = foreign.or_else(mispacked).or_else(other_unicode) {
            return Err(bad_format(&file.url, reason));
        }
        let begins_array = jsonl_fault::begins_array(beginning);
        let mut first = lines.next_row(&wanted).await?;
        if first.as_ref().is_some_and(|row| row.fault.is_some()) {
            if let Some(reason) = jsonl_fault::refused(&file, begins_array, context).await? {
                return Err(bad_format(&file.url, reason));
            }
            first = lines.next_object(&wanted).await?;
        }
        let Some(first) = first else {
            return Ok(Self { file, column_types: Vec::new() });
        };
        for (i, column) in [&columns.id, &columns.text].into_iter().chain(columns.kept()).enumerate() {
            if first.values[i].is_none() {
                let present = lines.names_of_the_last();
                let remedy = hint::nested(column, &present).unwrap_or_else(|| match i {
                    0 | 1 => hint::remedy(columns, column, &present, &present),
                    _ => hint::of_kept(columns, column).into(),
                });
                return Err(missing_column(file.url, column, NonZeroU64::new(first.line), present, remedy));
            }
        }
        let column_types = keep_types(columns, &wanted, lines, first).await?;
        Ok(Self { file, column_types })
    }
}

impl DocumentReader for JsonlFile {
    fn file(&self) -> &InputFile {
        &self.file
    }

    fn column_types(&self) -> &[(String, DataType)] {
        &self.column_types
    }

    fn n_rows(&self) -> Option<u64> {
        (self.file.size == 0).then_some(0)
    }

    fn explain(
        &self,
        row: u64,
        reason: BadReason,
        columns: &DocumentColumns,
        context: &ReadContext,
    ) -> BoxFuture<'static, Option<RowFault>> {
        let (file, columns, context) = (self.file.clone(), columns.clone(), context.clone());
        // A file that cannot be read again has its error elsewhere.
        async move { jsonl_fault::explain(&file, &columns, (row, reason), &context).await.unwrap_or(None) }.boxed()
    }

    fn read(
        &self,
        _: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
        context: &ReadContext,
    ) -> BoxStream<'static, Result<DocumentBatch>> {
        let (file, columns, context) = (self.file.clone(), columns.clone(), context.clone());
        let keep_types = keep_types.to_vec();
        let opened = async move {
            let lines = Numbered::open(&file, context.max_line_bytes(), &context.read_bytes).await?;
            let form = Arc::new(Form { wanted: WantedColumns::new(&columns), n_keep: columns.keep.len(), keep_types });
            let batches = futures::stream::try_unfold(lines, move |mut lines| {
                let (form, context) = (Arc::clone(&form), context.clone());
                async move {
                    let url = lines.url.clone();
                    let next = AssertUnwindSafe(next_batch(&mut lines, &form, &context)).catch_unwind();
                    let batch = next.await.unwrap_or_else(|panic| Err(panicked(&url, &*panic)))?;
                    Ok(batch.map(|batch| (batch, lines)))
                }
            });
            Ok::<_, Fault>(batches)
        };
        futures::stream::once(opened).try_flatten().boxed()
    }
}

/// The columns that are read, and what they become.
struct Form {
    wanted: WantedColumns,
    /// The number of columns of the keep order.
    n_keep: usize,
    /// The types of these columns and of `newest_by`.
    keep_types: Vec<DataType>,
}

async fn next_batch(lines: &mut Numbered, form: &Form, context: &ReadContext) -> Result<Option<DocumentBatch>> {
    let mut rows = Vec::with_capacity(BATCH_ROWS);
    let mut bytes = 0;
    while rows.len() < BATCH_ROWS && bytes < context.limits.batch_bytes {
        let Some(row) = lines.next_row(&form.wanted).await? else { break };
        bytes += lines.line.len() as u64;
        rows.push(row);
    }
    (!rows.is_empty()).then(|| to_documents(&lines.url, rows, form, context)).transpose()
}

fn to_documents(url: &str, mut rows: Vec<Row>, form: &Form, context: &ReadContext) -> Result<DocumentBatch> {
    let ids: Vec<Option<String>> = rows.iter_mut().map(Row::take_id).collect();
    let mut texts = BinaryViewBuilder::with_capacity(rows.len());
    for row in &mut rows {
        texts.append_option(row.take_text(context.max_doc_bytes));
    }
    let kept = (2..).zip(&form.keep_types).map(|(column, data_type)| keep_array(&mut rows, column, data_type));
    let mut keep: Vec<ArrayRef> = kept.collect();
    let newest = keep.split_off(form.n_keep.min(keep.len())).pop();
    let mut faults: Vec<Option<BadReason>> = rows.iter().map(|row| row.fault).collect();
    let newest_by = match newest {
        Some(values) => newness(&values, &mut faults).map_err(|error| of_arrow(url, error))?,
        None => Int64Array::new_null(rows.len()),
    };
    Ok(DocumentBatch {
        ids: StringArray::from(ids),
        texts: texts.finish(),
        keep,
        newest_by,
        rows: rows.iter().map(|row| row.line).collect(),
        faults,
        revisits: None,
        max_doc_bytes: context.max_doc_bytes,
    })
}

impl Row {
    fn fault<T>(&mut self, reason: BadReason) -> Option<T> {
        self.fault.get_or_insert(reason);
        None
    }

    fn take(&mut self, column: usize) -> Value {
        self.values[column].take().unwrap_or(Value::Null)
    }

    fn take_id(&mut self) -> Option<String> {
        match self.take(0) {
            Value::Text(id) if id.len() > MAX_VALUE_BYTES => self.fault(BadReason::TooLarge),
            Value::Text(id) => Some(id),
            Value::Integer(id) => Some(id.to_string()),
            Value::Null => None,
            Value::Float(_) | Value::Other(_) => self.fault(BadReason::WrongType),
        }
    }

    fn take_text(&mut self, max_bytes: u64) -> Option<String> {
        match self.take(1) {
            Value::Text(text) if text.len() as u64 > max_bytes => self.fault(BadReason::TooLarge),
            Value::Text(text) => Some(text),
            Value::Null => None,
            _ => self.fault(BadReason::WrongType),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "JSON has one kind of number; files keep their order by floats")]
    fn take_number(&mut self, column: usize) -> Option<f64> {
        match self.take(column) {
            Value::Integer(value) => Some(value as f64),
            // Zeros of both signs are equal.
            Value::Float(value) => Some(value + 0.0),
            Value::Null => None,
            _ => self.fault(BadReason::WrongType),
        }
    }

    fn take_null(&mut self, column: usize) -> Option<i64> {
        match self.take(column) {
            Value::Null => None,
            _ => self.fault(BadReason::WrongType),
        }
    }

    fn take_string(&mut self, column: usize) -> Option<String> {
        match self.take(column) {
            Value::Text(text) if text.len() > MAX_VALUE_BYTES => self.fault(BadReason::TooLarge),
            Value::Text(text) => Some(text),
            Value::Null => None,
            _ => self.fault(BadReason::WrongType),
        }
    }
}

fn keep_array(rows: &mut [Row], column: usize, data_type: &DataType) -> ArrayRef {
    let rows = rows.iter_mut();
    match data_type {
        // The night has whole numbers only if no line of this file has a number (see `keep_types`).
        DataType::Int64 => Arc::new(rows.map(|row| row.take_null(column)).collect::<Int64Array>()),
        DataType::Float64 => Arc::new(rows.map(|row| row.take_number(column)).collect::<Float64Array>()),
        _ => Arc::new(rows.map(|row| row.take_string(column)).collect::<LargeStringArray>()),
    }
}

/// Returns the type of each keep-order column, which is that of its first number or string. Columns without either are
/// left out.
async fn keep_types(
    columns: &DocumentColumns,
    wanted: &WantedColumns,
    mut lines: Numbered,
    first: Row,
) -> Result<Vec<(String, DataType)>> {
    let mut known: Vec<Option<DataType>> = vec![None; columns.kept().count()];
    let mut next = Some(first);
    while let Some(row) = next.take().filter(|_| known.contains(&None)) {
        for (data_type, value) in known.iter_mut().zip(&row.values[2..]) {
            let found = match value {
                // JSON has one kind of number, so it must not matter whether the first one is whole.
                Some(Value::Integer(_) | Value::Float(_)) => Some(DataType::Float64),
                Some(Value::Text(_)) => Some(DataType::LargeUtf8),
                _ => None,
            };
            *data_type = data_type.take().or(found);
        }
        next = lines.next_object(wanted).await?;
    }
    let known = columns.kept().cloned().zip(known);
    Ok(known.filter_map(|(column, data_type)| Some((column, data_type?))).collect())
}
