//! Faults of a job file, each with its place. All faults are found at once: what is at fault is taken out, and the rest is
//! looked at again.

use nearprint_fault::{ErrorKind, Fault, Words, foreign, words};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::job_keys::{self, line_and_column};

/// A fault of a job file, with its place there.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What is wrong, with the key that it is about, such as `join.max_distance`.
    fault: Fault,
    key: Option<String>,
    /// The position in the text, and its line and character there, both counted from 1. `None` if the fault is at no place
    /// of the file, such as a key that is missing.
    at: Option<(usize, (u64, u64))>,
    /// The key or value that was probably meant.
    meant: Option<String>,
    /// Whether the text is no TOML.
    pub is_of_syntax: bool,
}

/// A fault of a job file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingKeys {
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
}

impl PartialEq for Finding {
    fn eq(&self, other: &Self) -> bool {
        let said = |finding: &Self| (finding.at, finding.key.clone(), finding.fault.words(), finding.meant.clone());
        said(self) == said(other)
    }
}

impl Finding {
    fn at(text: &str, offset: Option<usize>, key: Option<String>, fault: Fault) -> Self {
        let at = offset.map(|offset| (offset, line_and_column(text, offset)));
        Self { fault, key, at, meant: None, is_of_syntax: false }
    }

    /// Returns a fault of a text. It is about its own key if the text has that, and otherwise about `key`, if there is one.
    pub fn of(text: &str, key: Option<&str>, fault: Fault) -> Self {
        let own = fault.of_key().filter(|own| job_keys::offset_of(text, own).is_some());
        let key = own.or(key).map(str::to_owned);
        let offset = key.as_deref().and_then(|key| job_keys::offset_of(text, key));
        Self::at(text, offset, key, fault)
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
        let fault = Fault::new(ErrorKind::Config, message.clone());
        let fault = named.map_or(fault.clone(), |key| fault.key(key));
        Self::at(text, offset, key, fault)
    }

    /// Returns whether the fault is about a key.
    pub fn is_about(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key)
    }

    /// Returns the position, by which faults are in order: those at no place of the file come last.
    pub fn place(&self) -> usize {
        self.at.map_or(usize::MAX, |at| at.0)
    }

    /// Returns the line of the file.
    pub fn line(&self) -> Option<u64> {
        self.at.map(|(_, (line, _))| line)
    }

    /// Returns the words of the fault of a file of this name.
    pub fn said(&self, file: &str) -> Words {
        let at = match self.at {
            Some((_, (line, column))) => format!(" line {line}, column {column}:"),
            None => String::new(),
        };
        words![format!("{file}:{at} "), self.fault.words()]
    }

    /// Returns the keys of a summary. `name` names the keys in the message.
    pub fn keys(&self, name: impl Fn(&str) -> Option<String>) -> FindingKeys {
        FindingKeys {
            line: self.line(),
            column: self.at.map(|(_, (_, column))| column),
            key: self.key.clone(),
            message: self.fault.words().named(name),
            meant: self.meant.clone(),
        }
    }
}

/// Reads a TOML text of this schema. Keys that are unknown or whose values are wrong are faults, and have their defaults. The faults are in
/// no order. If the text is no TOML, the first place where it is none is all that can be told.
pub fn parsed<T: Default + DeserializeOwned>(text: &str, schema: &Value) -> (T, Vec<Finding>) {
    let (mut table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // The others may be consequences of the first.
        let of_syntax = |error| Finding { is_of_syntax: true, ..Finding::of_toml(text, error, None) };
        return (T::default(), errors.iter().take(1).map(of_syntax).collect());
    }
    let mut faults = Vec::new();
    for unknown in job_keys::unknown(table.get_ref(), schema) {
        let key = unknown.path.join(".");
        let fault = Fault::new(ErrorKind::Config, unknown.reason);
        faults.push(Finding::at(text, Some(unknown.offset), Some(key), fault).meant(unknown.meant));
        remove(table.get_mut(), &unknown.path);
    }
    loop {
        let error = match T::deserialize(Deserializer::from(table.clone())) {
            Ok(value) => return (value, faults),
            Err(error) => error,
        };
        let at = error.span().map(|span| span.start);
        let path = at.and_then(|at| path_at(table.get_ref(), at));
        let fault = Finding::of_toml(text, &error, path.as_deref());
        // What is left of a value at fault is no second fault.
        if !faults.iter().any(|other| fault.line().is_some() && other.line() == fault.line()) {
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
