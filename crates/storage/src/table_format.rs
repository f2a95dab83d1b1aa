//! Formats of tables, and the names by which their folders are known.

use std::fmt;

/// A table format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Delta Lake.
    Delta,
    /// Apache Iceberg.
    Iceberg,
    /// Apache Hudi.
    Hudi,
}

/// Writes the name of the format with its article.
impl fmt::Display for TableFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delta => "a Delta",
            Self::Iceberg => "an Iceberg",
            Self::Hudi => "a Hudi",
        })
    }
}

impl TableFormat {
    /// The name of the folder with the metadata of an Iceberg table.
    pub(crate) const ICEBERG_FOLDER: &str = "metadata";

    /// The names of the folders by which a table's folder is known.
    pub(crate) const FOLDERS: [&str; 3] = ["_delta_log", ".hoodie", Self::ICEBERG_FOLDER];

    /// Returns the format that the names of a path reveal, and how many of the names lead to the table's folder.
    pub(crate) fn marked_by(names: &[impl AsRef<str>]) -> Option<(usize, Self)> {
        let name = |at: usize| names.get(at).map(AsRef::as_ref);
        (0..names.len()).find_map(|at| match name(at)? {
            "_delta_log" => Some((at, Self::Delta)),
            ".hoodie" => Some((at, Self::Hudi)),
            Self::ICEBERG_FOLDER if name(at + 1).is_some_and(is_iceberg_metadata) => Some((at, Self::Iceberg)),
            _ => None,
        })
    }

    /// Returns the format of which a folder is a table, if the folder `mark` in it has names that reveal it.
    pub(crate) fn in_folder(mark: &str, names: impl IntoIterator<Item = impl AsRef<str>>) -> Option<Self> {
        let found = names.into_iter().find_map(|name| Self::marked_by(&[mark, name.as_ref()]));
        found.map(|(_, format)| format)
    }

    /// Returns the remedy for a place that cannot be read because it is, or lies in, such a table.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::Delta | Self::Iceberg => {
                "name the table's folder, or one partition's, as the documents; elsewhere, write the rows that count to Parquet \
                 files in a folder outside of it, and name that"
            }
            Self::Hudi => "write the rows that count to Parquet files in a folder outside of it, and name that",
        }
    }
}

/// Returns whether a name has the form `v3.metadata.json` or `00003-UUID.metadata.json`, perhaps with `.gz` before
/// `.metadata.json` or after it. The number is one of any length before a UUID, and otherwise has 5 to 7 digits: a date has 4 or 8.
fn is_iceberg_metadata(name: &str) -> bool {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let Some(name) = name.strip_suffix(".metadata.json") else { return false };
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match name.strip_prefix('v') {
        Some(number) => is_number(number),
        None => name
            .split_once('-')
            .is_some_and(|(number, rest)| is_number(number) && ((5..=7).contains(&number.len()) || is_uuid(rest))),
    }
}

/// Returns whether a text has the form of a UUID, as names of checkpoints and of metadata have it.
#[must_use]
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
