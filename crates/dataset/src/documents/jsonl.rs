//! Documents as JSON lines: plain, gzip or zstd.

use std::fmt;
use std::io;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::builder::BinaryViewBuilder;
use arrow::array::{ArrayRef, Float64Array, Int64Array, LargeStringArray, StringArray};
use arrow::datatypes::DataType;
use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};
use tokio_util::io::StreamReader;

use super::batch::{BATCH_ROWS, DocumentBatch, DocumentColumns, ReadBytes, ReadContext};
use super::foreign;
use super::hint;
use super::reader::{DocumentReader, Opened};
use crate::columns::MAX_VALUE_BYTES;
use crate::error::{DatasetError, Result};
use crate::quarantine::BadReason;
use nearprint_storage::{InputFile, StorageError};
use nearprint_warc::Packing;

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
        let wanted = Wanted::new(columns);
        let beginning = lines.beginning().await?;
        let foreign = foreign::by_beginning(beginning).map(|foreign| foreign.reason(&file.url));
        // The lines of a packed file were unpacked already.
        let is_plain = Packing::of(&file.url) == Packing::Plain;
        let mispacked = || foreign::mispacked(&file.url, file.size, beginning, b"").filter(|_| is_plain);
        if let Some(reason) = foreign.or_else(mispacked) {
            return Err(DatasetError::bad_format(&file.url, reason));
        }
        let Some(first) = lines.next_object(&wanted).await? else {
            return Ok(Self { file, column_types: Vec::new() });
        };
        for (i, column) in [&columns.id, &columns.text].into_iter().chain(&columns.keep).enumerate() {
            if first.values[i].is_none() {
                let present = lines.names_of_the_last();
                let remedy = match i {
                    0 | 1 => hint::remedy(columns, column, &present, &present),
                    _ => "change keep or source_column, or rename it".into(),
                };
                return Err(DatasetError::MissingColumn { file: file.url, column: column.clone(), present, remedy });
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

    fn read(
        &self,
        _: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
        context: &ReadContext,
    ) -> BoxStream<'static, Result<DocumentBatch>> {
        let (file, columns, context) = (self.file.clone(), columns.clone(), context.clone());
        let keep_types: Arc<[DataType]> = keep_types.into();
        let opened = async move {
            let lines = Numbered::open(&file, context.max_line_bytes(), &context.read_bytes).await?;
            let wanted = Arc::new(Wanted::new(&columns));
            let batches = futures::stream::try_unfold(lines, move |mut lines| {
                let (wanted, keep_types, context) = (Arc::clone(&wanted), Arc::clone(&keep_types), context.clone());
                async move {
                    let url = lines.url.clone();
                    let next = AssertUnwindSafe(next_batch(&mut lines, &wanted, &keep_types, &context)).catch_unwind();
                    let batch = next.await.unwrap_or_else(|panic| {
                        let reason = format!("the reader failed on it ({})", nearprint_storage::panic_text(&*panic));
                        Err(DatasetError::bad_file(url, reason))
                    })?;
                    Ok(batch.map(|batch| (batch, lines)))
                }
            });
            Ok::<_, DatasetError>(batches)
        };
        futures::stream::once(opened).try_flatten().boxed()
    }
}

/// The lines of a file with their numbers. Blank lines are counted too, so that messages name the line that an editor
/// shows.
pub struct Numbered {
    reader: Box<dyn AsyncBufRead + Send + Unpin>,
    url: String,
    n_read: u64,
    /// The line that was read last, without its line feed.
    pub line: Vec<u8>,
    /// The largest size of a line. The rest of a longer one is skipped.
    max_line_bytes: u64,
}

/// A line that was read.
struct Row {
    line: u64,
    /// The values of the id, the text and the keep order; `None` if the line lacks the column.
    values: Vec<Option<Value>>,
    fault: Option<BadReason>,
}

impl Numbered {
    /// Opens a file. A line of more than `max_line_bytes` bytes is passed over without being held.
    ///
    /// # Errors
    /// None: the file is read with its first line.
    pub async fn open(file: &InputFile, max_line_bytes: u64, read_bytes: &ReadBytes) -> Result<Self> {
        let bytes = StreamReader::new(read_bytes.stream(file).map_err(io::Error::other));
        let reader: Box<dyn AsyncBufRead + Send + Unpin> = match file.url.rsplit('.').next() {
            Some("gz") => Box::new(unpacked(several(GzipDecoder::new(bytes)))),
            Some("zst") => Box::new(unpacked(several_zstd(ZstdDecoder::new(bytes)))),
            _ => Box::new(bytes),
        };
        Ok(Self { reader, url: file.url.clone(), n_read: 0, line: Vec::new(), max_line_bytes })
    }

    /// Returns the first bytes without consuming them. There may be fewer than there are in the file.
    async fn beginning(&mut self) -> Result<&[u8]> {
        let failed = |e| cannot_read(&self.url, 0, e);
        self.reader.fill_buf().await.map_err(failed)
    }

    /// Reads the next line that is not blank.
    async fn next_row(&mut self, wanted: &Wanted) -> Result<Option<Row>> {
        loop {
            let (line, text) = match self.next_numbered().await? {
                None => return Ok(None),
                Some((line, None)) => {
                    return Ok(Some(Row { line, values: wanted.none(), fault: Some(BadReason::TooLarge) }));
                }
                Some((_, Some([]))) => continue,
                Some((line, Some(text))) => (line, text),
            };
            let (values, fault) = match wanted.parse(text) {
                Ok(values) => (values, None),
                Err(reason) => (wanted.none(), Some(reason)),
            };
            return Ok(Some(Row { line, values, fault }));
        }
    }

    /// Reads the next line. Returns its number and its text without a byte order mark: the text is empty if the line is
    /// blank, and `None` if the line is too long to be held. Returns `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn next_numbered(&mut self) -> Result<Option<(u64, Option<&[u8]>)>> {
        let Some(whole) = self.next_line().await? else { return Ok(None) };
        self.n_read += 1;
        let text = self.line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.line);
        let text = if text.trim_ascii().is_empty() { &[] } else { text };
        Ok(Some((self.n_read, whole.then_some(text))))
    }

    /// Reads the next line that is a JSON object.
    async fn next_object(&mut self, wanted: &Wanted) -> Result<Option<Row>> {
        while let Some(row) = self.next_row(wanted).await? {
            if row.fault.is_none() {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Reads a line into `line`. Returns `false` if the line is too long to be held, and `None` at the end of the file.
    async fn next_line(&mut self) -> Result<Option<bool>> {
        if self.line.capacity() > KEPT_LINE_BYTES {
            self.line = Vec::new();
        }
        self.line.clear();
        let (mut whole, mut any) = (true, false);
        loop {
            let failed = |e| cannot_read(&self.url, self.n_read, e);
            let bytes = self.reader.fill_buf().await.map_err(failed)?;
            if bytes.is_empty() {
                return Ok(any.then_some(whole));
            }
            any = true;
            let (end, line) = match bytes.iter().position(|&byte| byte == b'\n') {
                Some(at) => (at + 1, &bytes[..at]),
                None => (bytes.len(), bytes),
            };
            let ended = line.len() < end;
            whole = whole && (self.line.len() + line.len()) as u64 <= self.max_line_bytes;
            if whole {
                self.line.extend_from_slice(line);
            } else {
                self.line = Vec::new();
            }
            self.reader.consume(end);
            if ended {
                return Ok(Some(whole));
            }
        }
    }

    fn names_of_the_last(&self) -> Vec<String> {
        let text = self.line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.line);
        let names: std::collections::BTreeMap<String, IgnoredAny> = serde_json::from_slice(text).unwrap_or_default();
        names.into_keys().collect()
    }
}

/// The largest buffer that is used again for the next line.
const KEPT_LINE_BYTES: usize = 1 << 20;

/// Converts a failed read to an error. A failure of the store keeps its kind; any other is an error of the file.
fn cannot_read(url: &str, line: u64, error: io::Error) -> DatasetError {
    error.downcast::<StorageError>().map_or_else(
        |error| DatasetError::bad_file(url, format!("cannot be read past line {line} ({error})")),
        DatasetError::from,
    )
}

/// Makes a decoder read on after the end of a compressed member, because a file may have several.
fn several<R: AsyncBufRead>(mut decoder: GzipDecoder<R>) -> GzipDecoder<R> {
    decoder.multiple_members(true);
    decoder
}

/// Bytes that a decoder unpacks at once.
const UNPACKED_BYTES: usize = 64 << 10;

fn unpacked<R: AsyncRead>(decoder: R) -> BufReader<R> {
    BufReader::with_capacity(UNPACKED_BYTES, decoder)
}

fn several_zstd<R: AsyncBufRead>(mut decoder: ZstdDecoder<R>) -> ZstdDecoder<R> {
    decoder.multiple_members(true);
    decoder
}

/// A value of a column that is read.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Text(String),
    Integer(i128),
    Float(f64),
    /// A value of a type that no column may have.
    Other,
}

/// The columns that are read. All others are skipped without being held.
#[derive(Debug)]
struct Wanted {
    names: Vec<String>,
}

impl Wanted {
    fn new(columns: &DocumentColumns) -> Self {
        Self { names: [&columns.id, &columns.text].into_iter().chain(&columns.keep).cloned().collect() }
    }

    fn none(&self) -> Vec<Option<Value>> {
        vec![None; self.names.len()]
    }

    fn parse(&self, line: &[u8]) -> std::result::Result<Vec<Option<Value>>, BadReason> {
        let text = std::str::from_utf8(line).map_err(|_| BadReason::InvalidUtf8)?;
        let mut json = serde_json::Deserializer::from_str(text);
        let parsed = self.deserialize(&mut json).and_then(|values| json.end().map(|()| values));
        parsed.map_err(|_| {
            // Half a surrogate pair is correct JSON, but not text.
            let sound = text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
            if sound { BadReason::InvalidUtf8 } else { BadReason::NotJson }
        })
    }
}

/// Finds the ids of lines.
#[derive(Debug)]
pub struct IdColumn(Wanted);

impl IdColumn {
    /// Creates a finder for the column `name`.
    pub fn new(name: &str) -> Self {
        Self(Wanted { names: vec![name.to_owned()] })
    }

    /// Returns the id of a line: the value of the column, if it can be one.
    pub fn of(&self, line: &[u8]) -> Option<LineId> {
        match self.0.parse(line).ok()?.into_iter().next()?? {
            Value::Text(text) => Some(LineId { text, is_integer: false }),
            Value::Integer(id) => Some(LineId { text: id.to_string(), is_integer: true }),
            Value::Null | Value::Float(_) | Value::Other => None,
        }
    }
}

/// The id of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineId {
    /// The id as text.
    pub text: String,
    /// Whether the line has it as a number.
    pub is_integer: bool,
}

impl<'de> DeserializeSeed<'de> for &Wanted {
    type Value = Vec<Option<Value>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> std::result::Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &Wanted {
    type Value = Vec<Option<Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut values = self.none();
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let places: Vec<usize> = (0..self.names.len()).filter(|&i| self.names[i] == name).collect();
            if places.is_empty() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value_seed(AnyValue)?;
            for place in places {
                values[place] = Some(value.clone());
            }
        }
        Ok(values)
    }
}

struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> std::result::Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}

async fn next_batch(
    lines: &mut Numbered,
    wanted: &Wanted,
    keep_types: &[DataType],
    context: &ReadContext,
) -> Result<Option<DocumentBatch>> {
    let mut rows = Vec::with_capacity(BATCH_ROWS);
    let mut bytes = 0;
    while rows.len() < BATCH_ROWS && bytes < context.limits.batch_bytes {
        let Some(row) = lines.next_row(wanted).await? else { break };
        bytes += lines.line.len() as u64;
        rows.push(row);
    }
    Ok((!rows.is_empty()).then(|| to_documents(rows, keep_types, context)))
}

fn to_documents(mut rows: Vec<Row>, keep_types: &[DataType], context: &ReadContext) -> DocumentBatch {
    let ids: Vec<Option<String>> = rows.iter_mut().map(Row::take_id).collect();
    let mut texts = BinaryViewBuilder::with_capacity(rows.len());
    for row in &mut rows {
        texts.append_option(row.take_text(context.max_doc_bytes));
    }
    let keep = (2..).zip(keep_types).map(|(column, data_type)| keep_array(&mut rows, column, data_type)).collect();
    DocumentBatch {
        ids: StringArray::from(ids),
        texts: texts.finish(),
        keep,
        rows: rows.iter().map(|row| row.line).collect(),
        faults: rows.iter().map(|row| row.fault).collect(),
        max_doc_bytes: context.max_doc_bytes,
    }
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
            Value::Float(_) | Value::Other => self.fault(BadReason::WrongType),
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
            Value::Float(value) => Some(value),
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
    wanted: &Wanted,
    mut lines: Numbered,
    first: Row,
) -> Result<Vec<(String, DataType)>> {
    let mut known: Vec<Option<DataType>> = vec![None; columns.keep.len()];
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
    let known = columns.keep.iter().cloned().zip(known);
    Ok(known.filter_map(|(column, data_type)| Some((column, data_type?))).collect())
}

/// Returns the strings `id` and `text` of a line, or `None` if the line is not an object or not UTF-8.
#[cfg(fuzzing)]
pub fn id_and_text(line: &[u8]) -> Option<[Option<String>; 2]> {
    let values = Wanted::new(&DocumentColumns::default()).parse(line).ok()?;
    let text = |value: &Option<Value>| match value {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    Some([text(&values[0]), text(&values[1])])
}
