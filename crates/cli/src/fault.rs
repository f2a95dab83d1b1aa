//! Faults of a job file, each with its place. All faults are found at once: what is at fault is taken out, and the rest is
//! looked at again.

use nearprint_storage::foreign;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::job_keys::{self, line_and_column};

/// A fault of a job file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fault {
    /// The position in the text.
    #[serde(skip)]
    pub offset: Option<usize>,
    /// The line, counted from 1; `None` if the fault is at no place of the file, such as a key that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The character in the line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    /// The path of the key, such as `join.max_distance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// What is wrong, and the remedy.
    message: String,
    /// The key or value that was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    meant: Option<String>,
    /// Whether the text is no TOML.
    #[serde(skip)]
    pub is_of_syntax: bool,
}

impl Fault {
    fn at(text: &str, offset: Option<usize>, key: Option<String>, message: String) -> Self {
        let place = offset.map(|offset| line_and_column(text, offset));
        let (line, column) = (place.map(|place| place.0), place.map(|place| place.1));
        Self { offset, line, column, key, message, meant: None, is_of_syntax: false }
    }

    /// Returns a fault of the value of a key. The message begins with the key.
    pub fn of_key(text: &str, key: &str, reason: &str) -> Self {
        Self::of_message(text, key, &format!("{key}: {reason}"))
    }

    /// Returns a fault of the value of a key, of which the message says all.
    pub fn of_message(text: &str, key: &str, message: &str) -> Self {
        Self::at(text, job_keys::offset_of(text, key), Some(key.to_owned()), message.to_owned())
    }

    /// Returns a fault that is at no place of the file.
    pub fn of_file(message: &str) -> Self {
        Self::at("", None, None, message.to_owned())
    }

    /// Returns the fault with the key or value that was probably meant.
    pub fn meant(self, meant: Option<String>) -> Self {
        Self { meant, ..self }
    }

    fn of_toml(text: &str, error: &toml::de::Error, key: Option<&[String]>) -> Self {
        let offset = error.span().map(|span| span.start.min(text.len()));
        let message = in_words(&without_value(&foreign(error.message())));
        let key = key.map(|key| key.join("."));
        // A message about a value does not name its key.
        let named = key.as_ref().filter(|key| !message.contains(key.as_str()));
        let message = named.map_or(message.clone(), |key| format!("{key}: {message}"));
        Self::at(text, offset, key, message)
    }

    /// Returns whether the fault is about a key.
    pub fn is_about(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key)
    }

    /// Returns the position, by which faults are in order: those at no place of the file come last.
    pub fn place(&self) -> usize {
        self.offset.unwrap_or(usize::MAX)
    }

    /// Returns the line of the file.
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// Describes the fault of a file of this name.
    pub fn said(&self, file: &str) -> String {
        let at = match (self.line, self.column) {
            (Some(line), Some(column)) => format!(" line {line}, column {column}:"),
            _ => String::new(),
        };
        format!("{file}:{at} {}", self.message)
    }
}

/// Reads a TOML text of this schema. Keys that are unknown or whose values are wrong are faults, and have their defaults. The faults are in
/// no order. If the text is no TOML, the first place where it is none is all that can be told.
pub fn parsed<T: Default + DeserializeOwned>(text: &str, schema: &Value) -> (T, Vec<Fault>) {
    let (mut table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // The others may be consequences of the first.
        let of_syntax = |error| Fault { is_of_syntax: true, ..Fault::of_toml(text, error, None) };
        return (T::default(), errors.iter().take(1).map(of_syntax).collect());
    }
    let mut faults = Vec::new();
    for unknown in job_keys::unknown(table.get_ref(), schema) {
        let key = unknown.path.join(".");
        faults.push(Fault::at(text, Some(unknown.offset), Some(key), unknown.reason).meant(unknown.meant));
        remove(table.get_mut(), &unknown.path);
    }
    loop {
        let error = match T::deserialize(Deserializer::from(table.clone())) {
            Ok(value) => return (value, faults),
            Err(error) => error,
        };
        let at = error.span().map(|span| span.start);
        let path = at.and_then(|at| path_at(table.get_ref(), at));
        let fault = Fault::of_toml(text, &error, path.as_deref());
        // What is left of a value at fault is no second fault.
        if !faults.iter().any(|other| fault.line.is_some() && other.line == fault.line) {
            faults.push(fault);
        }
        if !path.is_some_and(|path| remove(table.get_mut(), &path)) {
            return (T::default(), faults);
        }
    }
}

/// Returns the path of the key that stands at a position, or whose value does. The innermost one counts.
fn path_at(table: &DeTable<'_>, at: usize) -> Option<Vec<String>> {
    let inner = table.iter().find_map(|(key, value)| {
        let DeValue::Table(inner) = value.get_ref() else { return None };
        let mut path = path_at(inner, at)?;
        path.insert(0, key.get_ref().to_string());
        Some(path)
    });
    let is_at = |span: std::ops::Range<usize>| span.contains(&at);
    let own = || table.iter().find(|(key, value)| is_at(value.span()) || is_at(key.span()));
    inner.or_else(|| own().map(|(key, _)| vec![key.get_ref().to_string()]))
}

/// Takes a key out of a table. Returns `false` if it is not there.
fn remove(table: &mut DeTable<'_>, path: &[String]) -> bool {
    match path {
        [] => false,
        [key] => table.remove(key.as_str()).is_some(),
        [key, rest @ ..] => match table.get_mut(key.as_str()).map(toml::Spanned::get_mut) {
            Some(DeValue::Table(inner)) => remove(inner, rest),
            _ => false,
        },
    }
}

/// Says in words of a job file what the parser says in words of its language.
fn in_words(message: &str) -> String {
    let words = [
        ("invalid type: unit variant, expected newtype variant", "this name needs a value: write { NAME = VALUE }"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("expected a sequence", "expected a list: write [VALUE, VALUE]"),
    ];
    words.into_iter().fold(message.to_owned(), |message, (from, to)| message.replace(from, to))
}

/// Removes a string of the wrong type from the message, because it may be a secret in the wrong place.
fn without_value(message: &str) -> String {
    let around = message.split_once("string \"").zip(message.rsplit_once("\", expected"));
    around.map_or_else(|| message.to_owned(), |((before, _), (_, after))| format!("{before}string, expected{after}"))
}
