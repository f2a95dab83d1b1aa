//! The keys of job files, from the JSON Schema of a job file. It says where a wrong key or name stands and which one was
//! meant. The types of all other values are checked where the values are read.

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something in a job file that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The position in the text.
    pub offset: usize,
    /// The names that lead to the key.
    pub path: Vec<String>,
    /// The key or value, and the remedy.
    pub reason: String,
    /// The key or value that was probably meant.
    pub meant: Option<String>,
}

/// Returns the keys that a job file of this schema does not have, and those whose values are none of the names that they take.
pub fn unknown(table: &DeTable<'_>, schema: &Value) -> Vec<Unknown> {
    let mut found = Vec::new();
    in_table(table, (schema, schema), &[], &mut found);
    found
}

/// Returns the position of a key in the text of a job file. It is named by its path, such as `join.max_distance`, or by
/// its last part alone.
pub fn offset_of(text: &str, key: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut found = Vec::new();
    positions(table.get_ref(), "", &mut found);
    let is_meant = |path: &str| path == key || path.strip_suffix(key).is_some_and(|before| before.ends_with('.'));
    found.into_iter().find(|(path, _)| is_meant(path)).map(|(_, offset)| offset)
}

fn positions(table: &DeTable<'_>, path: &str, found: &mut Vec<(String, usize)>) {
    for (key, value) in table {
        let path = joined(path, key.get_ref());
        if let DeValue::Table(inner) = value.get_ref() {
            positions(inner, &path, found);
        }
        found.push((path, key.span().start));
    }
}

/// Looks at a table. `schema` is that of the table, beside that of the whole file.
fn in_table(table: &DeTable<'_>, (schema, whole): (&Value, &Value), path: &[String], found: &mut Vec<Unknown>) {
    let Some(known) = schema["properties"].as_object() else { return };
    for (key, value) in table {
        let name: &str = key.get_ref();
        let inner: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
        match known.get(name) {
            None => {
                let (reason, meant) = unknown_key(name, &path.join("."), known, whole);
                found.push(Unknown { offset: key.span().start, path: inner, reason, meant });
            }
            Some(of_value) => in_value(value, (of_value, whole), inner, found),
        }
    }
}

fn in_value(
    value: &Spanned<DeValue<'_>>,
    (schema, whole): (&Value, &Value),
    path: Vec<String>,
    found: &mut Vec<Unknown>,
) {
    match value.get_ref() {
        DeValue::Table(table) => in_table(table, (schema, whole), &path, found),
        DeValue::String(text) => {
            let names = names(schema);
            if !names.is_empty() && !names.contains(&&**text) {
                // A text that is far from every name may be a secret in the wrong place.
                let near = nearest(text, names.iter().copied());
                let meant =
                    near.map_or_else(|| format!("use {}", names.join(", ")), |near| format!("did you mean '{near}'?"));
                let reason = format!("{}: no such name: {meant}", path.join("."));
                found.push(Unknown { offset: value.span().start, path, reason, meant: near.map(str::to_owned) });
            }
        }
        _ => {}
    }
}

/// Returns the names that a value may have; none if it may be any text.
fn names(schema: &Value) -> Vec<&str> {
    schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Describes an unknown key, and returns the key that was meant, if there is one that is like it.
fn unknown_key(name: &str, path: &str, known: &Map<String, Value>, whole: &Value) -> (String, Option<String>) {
    let place = if path.is_empty() { "at the top of a job file".to_owned() } else { format!("in [{path}]") };
    let unknown = format!("unknown key '{name}' {place}");
    let mut places = places_of(name, whole, "");
    // Of several tables with such a key, those of the same section are meant.
    let section = path.split('.').next().filter(|section| !section.is_empty());
    let is_near = |place: &String| section.is_some() && place.split('.').next() == section;
    if places.iter().any(is_near) {
        places.retain(is_near);
    }
    match places.as_slice() {
        [] => {}
        [top] if top.is_empty() => {
            return (format!("{unknown}: it stands at the top of a job file: move it above the first [table]"), None);
        }
        [other] => return (format!("{unknown}: it stands in [{other}]"), Some(joined(other, name))),
        several => {
            let named = |place: &String| match place.is_empty() {
                true => "at the top of a job file".to_owned(),
                false => format!("in [{place}]"),
            };
            let named: Vec<String> = several.iter().map(named).collect();
            return (format!("{unknown}: it stands {}", named.join(" or ")), None);
        }
    }
    if let Some(own) = nearest(name, known.keys().map(String::as_str)) {
        return (format!("{unknown}: did you mean '{own}'?"), Some(own.to_owned()));
    }
    let other = nearest(name, all_keys(whole).into_iter());
    match other.and_then(|other| Some((other, places_of(other, whole, "").into_iter().next()?))) {
        Some((other, place)) if place.is_empty() => {
            (format!("{unknown}: did you mean '{other}' at the top of a job file?"), Some(other.to_owned()))
        }
        Some((other, place)) => {
            (format!("{unknown}: did you mean '{other}' in [{place}]?"), Some(joined(&place, other)))
        }
        None => (format!("{unknown}: `nearprint config schema` lists the keys"), None),
    }
}

/// Returns the tables that have a key of this name, the top of the file as an empty one.
fn places_of(name: &str, schema: &Value, path: &str) -> Vec<String> {
    let Some(known) = schema["properties"].as_object() else { return Vec::new() };
    let own = known.contains_key(name).then(|| path.to_owned());
    let below = known.iter().flat_map(|(key, of_value)| places_of(name, of_value, &joined(path, key)));
    own.into_iter().chain(below).collect()
}

fn all_keys(schema: &Value) -> Vec<&str> {
    let known = schema["properties"].as_object().into_iter().flatten();
    known.flat_map(|(key, of_value)| std::iter::once(key.as_str()).chain(all_keys(of_value))).collect()
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The similarity from which a name is taken for the one that was meant.
const SIMILAR: f64 = 0.8;

/// Returns the name that is most like a word, if one is like it.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored =
        names.map(|name| (strsim::normalized_damerau_levenshtein(word, name).max(strsim::jaro(word, name)), name));
    scored.filter(|(score, _)| *score >= SIMILAR).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// Returns the line and the column of a position, both counted from 1. Columns are characters.
pub fn line_and_column(text: &str, offset: usize) -> (u64, u64) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() as u64 + 1;
    // The last line begins after the last line break, or at the beginning.
    let column = before.rsplit_once('\n').map_or(before, |(_, line)| line).chars().count() as u64 + 1;
    (line, column)
}
