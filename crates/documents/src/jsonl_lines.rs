//! The lines of files of JSON lines, and the values of their columns.

use std::fmt;
use std::io;

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use bytes::BytesMut;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_storage::{InputFile, bad_file};
use nearprint_warc::Packing;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio_util::io::StreamReader;

use super::batch::{DocumentColumns, ReadBytes};
use super::reader::warn_of_zeros;
use crate::quarantine::BadReason;

/// The lines of a file with their numbers. Blank lines are counted too, so that messages name the line that an editor
/// shows.
pub struct Numbered {
    reader: Box<dyn AsyncBufRead + Send + Unpin>,
    /// The path or URL of the file.
    pub url: String,
    n_read: u64,
    /// The line that was read last, without its line feed.
    pub line: Vec<u8>,
    /// The number of bytes of the line that was read last, without its line feed, whether it is held or not.
    pub line_bytes: u64,
    /// The largest size of a line. The rest of a longer one is skipped.
    max_line_bytes: u64,
}

/// A line that was read.
pub struct Row {
    /// Its number, counted from 1.
    pub line: u64,
    /// The values of the id, the text, the keep order and `newest_by`; `None` if the line lacks the column.
    pub values: Vec<Option<Value>>,
    /// The reason for which the line is no document, as far as it shows here.
    pub fault: Option<BadReason>,
}

impl Numbered {
    /// Opens a file. A line of more than `max_line_bytes` bytes is passed over without being held.
    ///
    /// # Errors
    /// None: the file is read with its first line.
    pub async fn open(file: &InputFile, max_line_bytes: u64, read_bytes: &ReadBytes) -> Result<Self> {
        let bytes = StreamReader::new(read_bytes.stream(file).map_err(io::Error::other));
        let reader: Box<dyn AsyncBufRead + Send + Unpin> = match Packing::of(&file.url) {
            Packing::Gzip => Box::new(gunzipped(bytes, file.url.clone())),
            Packing::Zstd => Box::new(BufReader::with_capacity(UNPACKED_BYTES, several_frames(bytes))),
            Packing::Plain => Box::new(bytes),
        };
        Ok(Self { reader, url: file.url.clone(), n_read: 0, line: Vec::new(), line_bytes: 0, max_line_bytes })
    }

    /// Returns the first bytes without consuming them. There may be fewer than there are in the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn beginning(&mut self) -> Result<&[u8]> {
        let failed = |e| cannot_read(&self.url, 0, e);
        self.reader.fill_buf().await.map_err(failed)
    }

    /// Reads the next line that is not blank.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn next_row(&mut self, wanted: &WantedColumns) -> Result<Option<Row>> {
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
            debug_assert_eq!(values.len(), wanted.names.len(), "each column that is wanted has its place");
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
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn next_object(&mut self, wanted: &WantedColumns) -> Result<Option<Row>> {
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
        self.line_bytes = 0;
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
            self.line_bytes += line.len() as u64;
            whole = whole && self.line_bytes <= self.max_line_bytes;
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

    /// Returns the names of the columns of the line that was read last.
    pub fn names_of_the_last(&self) -> Vec<String> {
        let text = self.line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.line);
        let names: std::collections::BTreeMap<String, IgnoredAny> = serde_json::from_slice(text).unwrap_or_default();
        names.into_keys().collect()
    }
}

/// The largest buffer that is used again for the next line.
const KEPT_LINE_BYTES: usize = 1 << 20;

/// Converts a failed read to an error. A failure of the store keeps its kind; any other is an error of the file.
fn cannot_read(url: &str, line: u64, error: io::Error) -> Fault {
    error
        .downcast::<Fault>()
        .map_or_else(|error| bad_file(url, format!("cannot be read past line {line} ({error})")), Fault::from)
}

/// Bytes that a decoder unpacks at once.
const UNPACKED_BYTES: usize = 64 << 10;

/// Unpacks the members of a gzip file, one after another, up to the zeros that may follow them.
fn gunzipped<R: AsyncBufRead + Send + Unpin + 'static>(
    bytes: R,
    url: String,
) -> impl AsyncBufRead + Send + Unpin + 'static {
    let pieces = futures::stream::try_unfold((GzipDecoder::new(bytes), url), |(mut member, url)| async move {
        loop {
            let mut piece = BytesMut::with_capacity(UNPACKED_BYTES);
            if member.read_buf(&mut piece).await? > 0 {
                return Ok::<_, io::Error>(Some((piece.freeze(), (member, url))));
            }
            let mut rest = member.into_inner();
            if let Some(n_zeros) = padding(&mut rest).await? {
                warn_of_zeros(&url, n_zeros);
                return Ok(None);
            }
            member = GzipDecoder::new(rest);
        }
    });
    StreamReader::new(pieces.boxed())
}

/// Passes over zeros, with which tapes and block devices fill their last block. Returns their number, if nothing else follows a
/// member.
///
/// # Errors
/// The bytes cannot be read, or something follows the zeros.
async fn padding<R: AsyncBufRead + Unpin>(rest: &mut R) -> io::Result<Option<u64>> {
    let mut n_zeros = 0;
    loop {
        let bytes = rest.fill_buf().await?;
        if bytes.is_empty() {
            return Ok(Some(n_zeros));
        }
        let n = bytes.iter().take_while(|&&byte| byte == 0).count();
        n_zeros += n as u64;
        match (n == bytes.len(), n_zeros) {
            (true, _) => rest.consume(n),
            (false, 0) => return Ok(None),
            (false, _) => return Err(io::Error::other("zeros, and then other bytes, follow a member of gzip")),
        }
    }
}

/// Makes a decoder that reads on after the end of a frame of zstd, because a file may have several.
fn several_frames<R: AsyncBufRead>(bytes: R) -> ZstdDecoder<R> {
    let mut decoder = ZstdDecoder::new(bytes);
    decoder.multiple_members(true);
    decoder
}

/// A value of a column that is read.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Text(String),
    Integer(i128),
    Float(f64),
    /// A value of a type that no column may have: which one, for messages.
    Other(&'static str),
}

impl Value {
    /// Returns what the value is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Text(_) => "a string",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Other(kind) => kind,
        }
    }
}

/// The columns that are read. All others are skipped without being held.
#[derive(Debug)]
pub struct WantedColumns {
    names: Vec<String>,
}

impl WantedColumns {
    pub fn new(columns: &DocumentColumns) -> Self {
        Self { names: [&columns.id, &columns.text].into_iter().chain(columns.kept()).cloned().collect() }
    }

    /// Returns the names of the columns, in the order of their values: of ids, of texts, of the keep order, `newest_by`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    fn none(&self) -> Vec<Option<Value>> {
        vec![None; self.names.len()]
    }

    /// Returns the values of a line; `None` if the line lacks the column.
    pub fn parse(&self, line: &[u8]) -> std::result::Result<Vec<Option<Value>>, BadReason> {
        let text = std::str::from_utf8(line).map_err(|_| BadReason::InvalidUtf8)?;
        let mut json = serde_json::Deserializer::from_str(text);
        let parsed = self.deserialize(&mut json).and_then(|values| json.end().map(|()| values));
        parsed.map_err(|_| {
            // Half a surrogate pair is correct JSON, but not text, and so is 1e400, but no number of 64 bits.
            let sound = text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
            match sound {
                false => BadReason::NotJson,
                true if has_half_a_pair(text) => BadReason::InvalidUtf8,
                true => BadReason::WrongType,
            }
        })
    }
}

/// Returns whether a string of a line of JSON has half a surrogate pair.
fn has_half_a_pair(json: &str) -> bool {
    let mut rest = json;
    let mut is_open = false;
    while let Some(at) = rest.find('\\') {
        let unit = rest.get(at + 2..at + 6).and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit = unit.filter(|_| rest[at + 1..].starts_with('u'));
        let closes = unit.is_some_and(|unit| (0xDC00..0xE000).contains(&unit));
        if closes != is_open || (is_open && at > 0) {
            return true;
        }
        is_open = unit.is_some_and(|unit| (0xD800..0xDC00).contains(&unit));
        // The character after a backslash is an ASCII one, as in all correct JSON.
        rest = rest.get(at + if unit.is_some() { 6 } else { 2 }..).unwrap_or_default();
    }
    is_open
}

/// Finds the ids of lines.
#[derive(Debug)]
pub struct IdColumn(WantedColumns);

impl IdColumn {
    /// Creates a finder for the column `name`.
    pub fn new(name: &str) -> Self {
        Self(WantedColumns { names: vec![name.to_owned()] })
    }

    /// Returns the id of a line: the value of the column, if it can be one.
    pub fn of(&self, line: &[u8]) -> Option<LineId> {
        match self.0.parse(line).ok()?.into_iter().next()?? {
            Value::Text(text) => Some(LineId { text, is_integer: false }),
            Value::Integer(id) => Some(LineId { text: id.to_string(), is_integer: true }),
            Value::Null | Value::Float(_) | Value::Other(_) => None,
        }
    }
}

/// The id of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineId {
    /// The id as text.
    pub text: String,
    /// The line has it as a number.
    pub is_integer: bool,
}

/// The columns that are read of an object, or of an object within it: their places, and what is left of their names.
struct ObjectColumns<'a>(Vec<(usize, &'a str)>);

impl<'a> ObjectColumns<'a> {
    /// Returns those whose value has this name.
    fn named(&self, name: &str) -> Vec<usize> {
        self.0.iter().filter(|(_, column)| *column == name).map(|&(place, _)| place).collect()
    }

    /// Returns those that lie within the value of this name.
    fn within(&self, name: &str) -> Self {
        let inner = |&(place, column): &(usize, &'a str)| Some((place, column.strip_prefix(name)?.strip_prefix('.')?));
        Self(self.0.iter().filter_map(inner).collect())
    }

    /// Reads the values of an object. A column of the whole name goes before one within another.
    fn read<'de, A: MapAccess<'de>>(
        &self,
        values: &mut [Option<Value>],
        mut map: A,
    ) -> std::result::Result<(), A::Error> {
        let (mut own, mut outer) = (Vec::new(), Vec::new());
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let (places, inner) = (self.named(&name), self.within(&name));
            if places.is_empty() && inner.0.is_empty() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if !inner.0.is_empty() {
                // Of a name that comes again, the last value counts, also for what only an earlier one had.
                if outer.contains(&name) {
                    let places = inner.0.iter().map(|&(place, _)| place).filter(|place| !own.contains(place));
                    places.for_each(|place| values[place] = None);
                }
                outer.push(name);
            }
            let mut found = vec![None; if inner.0.is_empty() { 0 } else { values.len() }];
            let value = map.next_value_seed(AnyValue { inner, values: &mut found })?;
            for (place, found) in found.into_iter().enumerate().filter(|(place, _)| !own.contains(place)) {
                values[place] = found.or(values[place].take());
            }
            for place in places {
                values[place] = Some(value.clone());
                own.push(place);
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for &WantedColumns {
    type Value = Vec<Option<Value>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> std::result::Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &WantedColumns {
    type Value = Vec<Option<Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut values = self.none();
        let columns = ObjectColumns(self.names.iter().map(String::as_str).enumerate().collect());
        columns.read(&mut values, map)?;
        Ok(values)
    }
}

/// Reads a value, and the columns within it.
struct AnyValue<'a> {
    inner: ObjectColumns<'a>,
    values: &'a mut [Option<Value>],
}

impl<'de> DeserializeSeed<'de> for AnyValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> std::result::Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        for (place, _) in self.inner.0 {
            self.values[place] = Some(Value::Null);
        }
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<Value, E> {
        Ok(Value::Other("true or false"))
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
        Ok(Value::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        if self.inner.0.is_empty() {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        } else {
            self.inner.read(self.values, map)?;
        }
        Ok(Value::Other("an object"))
    }
}

/// Returns the strings `id` and `text` of a line, or `None` if the line is not an object or not UTF-8.
#[cfg(fuzzing)]
pub fn id_and_text(line: &[u8]) -> Option<[Option<String>; 2]> {
    let values = WantedColumns::new(&DocumentColumns::default()).parse(line).ok()?;
    let text = |value: &Option<Value>| match value {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    Some([text(&values[0]), text(&values[1])])
}
