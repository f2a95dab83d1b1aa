//! The faults of a file of JSON lines, or of one of its lines, in words.

use nearprint_fault::{Result, quoted};
use nearprint_parquet::MAX_VALUE_BYTES;
use nearprint_storage::InputFile;
use nearprint_warc::Packing;
use serde::de::IgnoredAny;

use super::batch::{DocumentColumns, ReadBytes, ReadContext};
use super::jsonl_lines::{Numbered, Value, WantedColumns};
use super::newest::micros;
use super::reader::RowFault;
use crate::quarantine::BadReason;

/// The characters of a line that a message shows.
const SHOWN_CHARS: usize = 60;

/// Returns the reason why a file is refused that is in UTF-16 or UTF-32 by its first bytes.
pub fn other_unicode(url: &str, beginning: &[u8]) -> Option<String> {
    // A file in UTF-32 may begin as one in UTF-16 does.
    let (name, charset) = match beginning {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => ("UTF-32", "UTF-32"),
        [b'{' | b'[', 0, 0, 0, ..] => ("UTF-32", "UTF-32LE"),
        [0, 0, 0, b'{' | b'[', ..] => ("UTF-32", "UTF-32BE"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ("UTF-16", "UTF-16"),
        [b'{' | b'[', 0, ..] => ("UTF-16", "UTF-16LE"),
        [0, b'{' | b'[', ..] => ("UTF-16", "UTF-16BE"),
        _ => return None,
    };
    let command = piped(url, &format!("iconv -f {charset} -t UTF-8"));
    Some(format!("it looks like {name}: write it as UTF-8, and remove this file, for example with: {command}"))
}

/// Returns whether these bytes begin an array.
pub fn begins_array(beginning: &[u8]) -> bool {
    beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start().starts_with(b"[")
}

/// Returns the reason why a file is refused whose first line is no object: it is JSON, but not JSON lines.
///
/// # Errors
/// The file cannot be read.
pub async fn refused(file: &InputFile, begins_array: bool, context: &ReadContext) -> Result<Option<String>> {
    let mut lines = Numbered::open(file, context.max_line_bytes(), &ReadBytes::default()).await?;
    let is_array = || Some(format!("it is a JSON array: {}", write_lines(&file.url, ".[]")));
    let Some(first) = next_text(&mut lines).await? else { return Ok(is_array().filter(|_| begins_array)) };
    let first = serde_json::from_slice::<IgnoredAny>(&first).map_err(|error| error.is_eof());
    let second = next_text(&mut lines).await?.unwrap_or_default();
    let second = second.trim_ascii_start();
    Ok(match first {
        Ok(_) if begins_array && second.is_empty() => is_array(),
        Err(true) if begins_array => is_array(),
        // An object that is cut off in its line is followed by another one, and one over several lines by its members.
        Err(true) if !second.is_empty() && !second.starts_with(b"{") => {
            Some(format!("its objects go over several lines: {}", write_lines(&file.url, ".")))
        }
        _ => None,
    })
}

/// Reads the next line that is not blank.
async fn next_text(lines: &mut Numbered) -> Result<Option<Vec<u8>>> {
    loop {
        match lines.next_numbered().await? {
            None | Some((_, None)) => return Ok(None),
            Some((_, Some([]))) => {}
            Some((_, Some(text))) => return Ok(Some(text.to_vec())),
        }
    }
}

fn write_lines(url: &str, filter: &str) -> String {
    format!(
        "write one object a line, and remove this file, for example with: {}",
        piped(url, &format!("jq -c '{filter}'"))
    )
}

/// Returns a command that writes a file of JSON lines from another one.
fn piped(url: &str, command: &str) -> String {
    let (packing, stem) = Packing::split(url);
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    let (url, new) = (quoted(url), quoted(&format!("{stem}.new.jsonl")));
    match packing {
        Packing::Plain => format!("{command} < {url} > {new}"),
        Packing::Gzip => format!("gzip -dc {url} | {command} > {new}"),
        Packing::Zstd => format!("zstd -dc {url} | {command} > {new}"),
    }
}

/// Returns what is wrong with a line that is no document for this reason, or `None` if it cannot be told.
pub async fn explain(
    file: &InputFile,
    columns: &DocumentColumns,
    (line, reason): (u64, BadReason),
    context: &ReadContext,
) -> Result<Option<RowFault>> {
    let mut lines = Numbered::open(file, context.max_line_bytes(), &ReadBytes::default()).await?;
    loop {
        match lines.next_numbered().await? {
            None => return Ok(None),
            Some((number, _)) if number < line => {}
            Some((_, Some(text))) => {
                let fault = of_text(&file.url, text, columns, reason, context.max_doc_bytes);
                return Ok(fault.map(|fault| RowFault { what: format!("{}; {}", fault.what, begins(text)), ..fault }));
            }
            Some((_, None)) => {
                let (size, limit) = (lines.line_bytes, context.max_line_bytes());
                let what = format!(
                    "the line has {size} bytes, {} over its limit of {limit}, which is three times max_doc_bytes and 1 MiB",
                    size.saturating_sub(limit)
                );
                let least = size.saturating_sub(1 << 20).div_ceil(3);
                return Ok(Some(RowFault { what, remedy: format!("set max_doc_bytes to {least} or more") }));
            }
        }
    }
}

/// Returns the beginning of a line for a message.
fn begins(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN_CHARS)]);
    let shown: String = text
        .chars()
        .take(SHOWN_CHARS)
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect();
    let more = if text.chars().count() > SHOWN_CHARS { "…" } else { "" };
    format!("the line begins with {shown}{more}")
}

fn of_text(
    url: &str,
    text: &[u8],
    columns: &DocumentColumns,
    reason: BadReason,
    max_doc_bytes: u64,
) -> Option<RowFault> {
    let fault = |what: String, remedy: &str| Some(RowFault { what, remedy: remedy.to_owned() });
    let wanted = WantedColumns::new(columns);
    match reason {
        BadReason::NotJson => not_json(url, text),
        BadReason::InvalidUtf8 => match std::str::from_utf8(text) {
            Err(error) => fault(
                format!("byte {} of the line is not UTF-8", error.valid_up_to() + 1),
                "write the file as UTF-8, for example with iconv",
            ),
            Ok(_) => fault("a string of it has half a surrogate pair".to_owned(), "mend the string"),
        },
        BadReason::NullId => {
            let id = wanted.parse(text).ok()?.into_iter().next()?;
            let what = if id.is_none() { "it has no" } else { "NULL is its" };
            fault(format!("{what} column '{}'", columns.id), "give each line an id, or set id_column")
        }
        BadReason::TooLarge => {
            let values = wanted.parse(text).ok()?;
            let size = |value: &Option<Value>| if let Some(Value::Text(text)) = value { text.len() } else { 0 };
            let text_bytes = size(values.get(1)?) as u64;
            if text_bytes > max_doc_bytes {
                let over = text_bytes - max_doc_bytes;
                let what = format!("column '{}' has {text_bytes} bytes, {over} over max_doc_bytes", columns.text);
                return fault(what, &format!("set max_doc_bytes to {text_bytes} or more"));
            }
            let (name, value) = wanted.names().zip(&values).find(|(_, value)| size(value) > MAX_VALUE_BYTES)?;
            let size = size(value);
            fault(format!("column '{name}' has {size} bytes, and may have {MAX_VALUE_BYTES}"), "shorten the value")
        }
        BadReason::WrongType => {
            let Ok(values) = wanted.parse(text) else {
                return fault("a number of it is larger than any of 64 bits".to_owned(), "write it as a string");
            };
            let is_wrong = |(at, value): &(usize, &Option<Value>)| match (at, value) {
                (_, None | Some(Value::Null | Value::Text(_))) | (0, Some(Value::Integer(_))) => false,
                (0 | 1, Some(_)) => true,
                (_, Some(value)) => matches!(value, Value::Other(_)),
            };
            let expected = |at| if at == 0 { "a string or a whole number of at most 64 bits" } else { "a string" };
            match values.iter().enumerate().find(is_wrong) {
                Some((at @ (0 | 1), Some(value))) => {
                    let name = wanted.names().nth(at)?;
                    let (got, expected) = (value.kind(), expected(at));
                    fault(
                        format!("column '{name}' is {got}, expected {expected}"),
                        &format!("write it as {expected}, or name another column"),
                    )
                }
                Some((at, Some(value))) => {
                    let name = wanted.names().nth(at)?;
                    fault(
                        format!("column '{name}' is {}, expected a number or a string", value.kind()),
                        "change keep or the value",
                    )
                }
                _ if no_time(columns, &wanted, &values).is_some() => {
                    let (name, text) = no_time(columns, &wanted, &values)?;
                    let shown: String = text.chars().take(SHOWN_CHARS).collect();
                    fault(
                        format!("column '{name}' is '{}', which is no time", shown.escape_debug()),
                        "write times like 2026-11-20T03:00:00Z, or name another column with newest_by",
                    )
                }
                _ => {
                    // A keep column has one type, of its first value.
                    let (name, value) = wanted
                        .names()
                        .zip(&values)
                        .skip(2)
                        .find(|(_, v)| v.as_ref().is_some_and(|v| *v != Value::Null))?;
                    let got = value.as_ref()?.kind();
                    fault(
                        format!("column '{name}' is {got}, unlike in the lines before"),
                        "write the column with one type",
                    )
                }
            }
        }
        BadReason::RepeatedId
        | BadReason::BrokenRecord
        | BadReason::BrokenBody
        | BadReason::CutOff
        | BadReason::UnknownRevisit => None,
    }
}

/// Returns the column that tells the newest row, and its text, if that is no time.
fn no_time<'a>(
    columns: &DocumentColumns,
    wanted: &'a WantedColumns,
    values: &'a [Option<Value>],
) -> Option<(&'a str, &'a str)> {
    columns.newest_by.as_ref()?;
    match (wanted.names().last()?, values.last()?.as_ref()?) {
        (name, Value::Text(text)) if micros(text).is_none() => Some((name, text)),
        _ => None,
    }
}

fn not_json(url: &str, text: &[u8]) -> Option<RowFault> {
    let error = serde_json::from_slice::<IgnoredAny>(text).err();
    let (what, remedy) = match error {
        None if text.trim_ascii_start().starts_with(b"[") => {
            // Other lines may be objects.
            let objects = r#"if type == "array" then .[] else . end"#;
            ("it is a JSON array, not an object".to_owned(), write_lines(url, objects))
        }
        None => ("it is JSON, but no object".to_owned(), "write one object a line".to_owned()),
        Some(error) if error.is_eof() => {
            ("the JSON does not end with the line".to_owned(), "write each object on one line, to its end".to_owned())
        }
        // serde_json counts from the only line.
        Some(error) => {
            let said = error.to_string();
            let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
            (format!("it is no JSON from character {} on ({said})", error.column()), "mend the line".to_owned())
        }
    };
    Some(RowFault { what, remedy })
}
