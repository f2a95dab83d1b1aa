//! Documents as JSON lines, plain, gzip or zstd.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};
use arrow::datatypes::DataType;
use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use futures::{Stream, TryStreamExt};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};
use tokio_util::io::StreamReader;

use super::{BATCH_ROWS, DocumentBatch, DocumentColumns};
use crate::error::{PipelineError, Result};
use crate::storage::InputFile;

#[derive(Debug, Clone)]
pub(super) struct JsonlFile {
    pub(super) file: InputFile,
    pub(super) column_types: Vec<(String, DataType)>,
}

/// A batch ends with the text that takes it past this.
const BATCH_BYTES: usize = 64 << 20;

type Object = Map<String, Value>;
type Lines = tokio::io::Lines<Box<dyn AsyncBufRead + Send + Unpin>>;

impl JsonlFile {
    /// Looks at the first line: a column that it lacks is taken to be misnamed, one that a later line lacks is null there.
    pub(super) async fn open(file: InputFile, columns: &DocumentColumns) -> Result<Self> {
        let mut lines = Numbered::open(&file).await?;
        let Some((line, first)) = lines.next_object().await? else {
            return Ok(Self { file, column_types: Vec::new() });
        };
        let named = [(&columns.id, "set id_column or rename it"), (&columns.text, "set text_column or rename it")];
        for (column, remedy) in named.into_iter().chain(columns.keep.iter().map(|c| (c, "change keep or rename it"))) {
            if !first.contains_key(column) {
                let present = first.keys().cloned().collect();
                return Err(PipelineError::MissingColumn { file: file.url, column: column.clone(), present, remedy });
            }
        }
        let column_types = keep_types(&file, columns, lines, (line, first)).await?;
        Ok(Self { file, column_types })
    }

    pub(super) fn read(
        &self,
        columns: &DocumentColumns,
        keep_types: &[DataType],
    ) -> impl Stream<Item = Result<DocumentBatch>> + use<> {
        let (file, columns, keep_types) = (self.file.clone(), columns.clone(), keep_types.to_vec());
        let opened = async move {
            let lines = Numbered::open(&file).await?;
            let batches = futures::stream::try_unfold(lines, move |mut lines| {
                let (file, columns, keep_types) = (file.clone(), columns.clone(), keep_types.clone());
                async move {
                    let batch = next_batch(&mut lines, &file, &columns, &keep_types).await?;
                    Ok(batch.map(|batch| (batch, lines)))
                }
            });
            Ok::<_, PipelineError>(batches)
        };
        futures::stream::once(opened).try_flatten()
    }
}

/// Rows are the file's lines, blank ones included, so that messages name the line an editor shows.
struct Numbered {
    lines: Lines,
    url: String,
    n_read: u64,
}

impl Numbered {
    async fn open(file: &InputFile) -> Result<Self> {
        let bytes = BufReader::new(StreamReader::new(file.stream().map_err(std::io::Error::other)));
        let reader: Box<dyn AsyncBufRead + Send + Unpin> = match file.url.rsplit('.').next() {
            Some("gz") => Box::new(BufReader::new(several(GzipDecoder::new(bytes)))),
            Some("zst") => Box::new(BufReader::new(several_zstd(ZstdDecoder::new(bytes)))),
            _ => Box::new(bytes),
        };
        Ok(Self { lines: reader.lines(), url: file.url.clone(), n_read: 0 })
    }

    async fn next_object(&mut self) -> Result<Option<(u64, Object)>> {
        loop {
            let line = self.lines.next_line().await.map_err(|e| self.cannot_read(e))?;
            let Some(line) = line else { return Ok(None) };
            self.n_read += 1;
            if line.trim().is_empty() {
                continue;
            }
            let bad_row = |reason: String| PipelineError::BadRow { file: self.url.clone(), row: self.n_read, reason };
            return match serde_json::from_str(line.trim_start_matches('\u{feff}')) {
                Ok(Value::Object(object)) => Ok(Some((self.n_read, object))),
                Ok(_) => Err(bad_row("not a JSON object: write one object a line".to_owned())),
                Err(e) => Err(bad_row(format!("not JSON ({e}): write one object a line"))),
            };
        }
    }

    /// An error of the store beneath the decoder keeps its own kind.
    fn cannot_read(&self, error: std::io::Error) -> PipelineError {
        error.downcast::<PipelineError>().unwrap_or_else(|error| {
            let reason = format!("cannot be read past line {} ({error})", self.n_read);
            PipelineError::bad_file(&self.url, reason)
        })
    }
}

/// Files of several compressed members are read to their end.
fn several<R: AsyncBufRead>(mut decoder: GzipDecoder<R>) -> GzipDecoder<R> {
    decoder.multiple_members(true);
    decoder
}

fn several_zstd<R: AsyncBufRead>(mut decoder: ZstdDecoder<R>) -> ZstdDecoder<R> {
    decoder.multiple_members(true);
    decoder
}

async fn next_batch(
    lines: &mut Numbered,
    file: &InputFile,
    columns: &DocumentColumns,
    keep_types: &[DataType],
) -> Result<Option<DocumentBatch>> {
    let mut objects = Vec::with_capacity(BATCH_ROWS);
    let mut bytes = 0;
    while objects.len() < BATCH_ROWS && bytes < BATCH_BYTES {
        let Some((line, object)) = lines.next_object().await? else { break };
        bytes += text_bytes(file, line, columns, &object)?;
        objects.push((line, object));
    }
    if objects.is_empty() {
        return Ok(None);
    }
    let id = |(line, object): &(u64, Object)| text_of_id(file, *line, columns, object);
    let ids: Vec<Option<String>> = objects.iter().map(id).collect::<Result<_>>()?;
    let text = |(line, object): &(u64, Object)| match object.get(&columns.text) {
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(bad(file, *line, &columns.text, "a string")),
    };
    let texts: Vec<Option<String>> = objects.iter().map(text).collect::<Result<_>>()?;
    let keep =
        columns.keep.iter().zip(keep_types).map(|(c, t)| keep_array(file, c, t, &objects)).collect::<Result<_>>()?;
    Ok(Some(DocumentBatch {
        ids: StringArray::from(ids),
        texts: StringArray::from(texts),
        keep,
        rows: objects.iter().map(|(line, _)| *line).collect(),
    }))
}

/// Bytes of a document's text, which an array of texts must be able to count.
fn text_bytes(file: &InputFile, line: u64, columns: &DocumentColumns, object: &Object) -> Result<usize> {
    let bytes = object.get(&columns.text).and_then(Value::as_str).map_or(0, str::len);
    if bytes + BATCH_BYTES > i32::MAX as usize {
        let reason = format!("column '{}' has {bytes} bytes: leave out documents of nearly 2 GiB", columns.text);
        return Err(PipelineError::BadRow { file: file.url.clone(), row: line, reason });
    }
    Ok(bytes)
}

fn text_of_id(file: &InputFile, line: u64, columns: &DocumentColumns, object: &Object) -> Result<Option<String>> {
    match object.get(&columns.id) {
        Some(Value::String(id)) => Ok(Some(id.clone())),
        Some(Value::Number(id)) if id.is_i64() || id.is_u64() => Ok(Some(id.to_string())),
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(bad(file, line, &columns.id, "a string or an integer")),
    }
}

fn keep_array(file: &InputFile, column: &str, data_type: &DataType, objects: &[(u64, Object)]) -> Result<ArrayRef> {
    let present = |object: &Object| object.get(column).filter(|v| !v.is_null()).cloned();
    let wrong = |line: u64| bad(file, line, column, "of one type in all lines");
    let values = objects.iter().map(|(line, object)| (*line, present(object)));
    match data_type {
        DataType::Int64 | DataType::Float64 => {
            let value = |(line, v): (u64, Option<Value>)| v.map(|v| v.as_f64().ok_or_else(|| wrong(line))).transpose();
            Ok(Arc::new(values.map(value).collect::<Result<Float64Array>>()?))
        }
        _ => {
            let value = |(line, v): (u64, Option<Value>)| {
                v.map(|v| v.as_str().map(str::to_owned).ok_or_else(|| wrong(line))).transpose()
            };
            Ok(Arc::new(values.map(value).collect::<Result<StringArray>>()?))
        }
    }
}

/// The type of each keep-order column: that of its first value that is not null; none where all are.
async fn keep_types(
    file: &InputFile,
    columns: &DocumentColumns,
    mut lines: Numbered,
    first: (u64, Object),
) -> Result<Vec<(String, DataType)>> {
    let mut unknown = columns.keep.clone();
    let mut known = Vec::new();
    let mut next = Some(first);
    while let Some((line, object)) = next.take().filter(|_| !unknown.is_empty()) {
        let mut still = Vec::new();
        for column in unknown {
            match object.get(&column) {
                None | Some(Value::Null) => still.push(column),
                // JSON has one kind of number: whether the first one is whole must not matter.
                Some(Value::Number(_)) => known.push((column, DataType::Float64)),
                Some(Value::String(_)) => known.push((column, DataType::Utf8)),
                Some(_) => return Err(bad(file, line, &column, "a number or string")),
            }
        }
        unknown = still;
        next = lines.next_object().await?;
    }
    Ok(known)
}

fn bad(file: &InputFile, row: u64, column: &str, expected: &str) -> PipelineError {
    let reason = format!("column '{column}' is not {expected}: mend the line");
    PipelineError::BadRow { file: file.url.clone(), row, reason }
}
