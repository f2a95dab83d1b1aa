//! The formats of document files.

use super::reader::Format;
use super::{jsonl, parquet};

/// All formats. Messages and the help text take the names and endings from here.
pub const FORMATS: &[Format] = &[parquet::FORMAT, jsonl::FORMAT];

/// The endings that may follow the ending of a format.
const COMPRESSIONS: [&str; 2] = [".gz", ".zst"];

impl Format {
    /// Returns the format of a file, according to its name.
    pub fn of(url: &str) -> Option<Self> {
        let name = url.rsplit('/').next().unwrap_or(url).to_ascii_lowercase();
        let plain = COMPRESSIONS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
        let (_, ending) = plain.rsplit_once('.')?;
        FORMATS.iter().find(|format| format.endings.contains(&ending)).copied()
    }
}

/// Returns whether a file of this name is read if it lies in a folder of documents.
#[must_use]
pub fn is_document_name(url: &str) -> bool {
    Format::of(url).is_some()
}

/// Returns the endings of document files, for messages: `.parquet, .jsonl or .ndjson, .gz or .zst allowed after it`.
#[must_use]
pub fn endings() -> String {
    let all: Vec<String> =
        FORMATS.iter().flat_map(|format| format.endings).map(|ending| format!(".{ending}")).collect();
    let (last, first) = all.split_last().map_or((String::new(), &all[..0]), |(last, first)| (last.clone(), first));
    format!("{} or {last}, {} allowed after it", first.join(", "), COMPRESSIONS.join(" or "))
}
