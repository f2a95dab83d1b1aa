//! The actions of a log.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A line of a commit, or a row of a checkpoint. Exactly one field of it is set, or none if it is an action that does
/// not concern the files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Action {
    /// Who wrote the version, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_info: Option<Value>,
    /// The abilities that the table needs from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The columns and settings from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<Metadata>,
    /// A file that is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<Add>,
    /// A file that is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove: Option<Remove>,
    /// A file of actions that a checkpoint names. nearprint writes none.
    #[serde(skip_serializing)]
    pub sidecar: Option<Sidecar>,
}

/// A Parquet file in the folder `_sidecars` of the log, with actions of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Sidecar {
    /// Its name, escaped as in a URL.
    pub path: String,
}

/// The abilities that a reader or writer needs to use the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    pub min_reader_version: i64,
    #[serde(default)]
    pub min_writer_version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
}

/// The columns and the settings of the table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    pub id: String,
    pub name: Option<String>,
    pub format: Value,
    pub schema_string: String,
    pub partition_columns: Vec<String>,
    pub configuration: BTreeMap<String, Option<String>>,
}

/// A file that belongs to the table from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Add {
    /// The path below the table, escaped as in a URL.
    pub path: String,
    /// The values of the partition columns; `None` stands for NULL.
    #[serde(default)]
    pub partition_values: BTreeMap<String, Option<String>>,
    /// The size in bytes.
    pub size: u64,
    /// The time of the file, in milliseconds since 1970 in UTC.
    #[serde(default)]
    pub modification_time: i64,
    /// The table has other rows with the file than before.
    #[serde(default)]
    pub data_change: bool,
    /// The rows, NULLs and bounds, as JSON.
    #[serde(default)]
    pub stats: Option<String>,
    /// Set if rows of the file are deleted. nearprint writes no such files.
    #[serde(default, skip_serializing)]
    pub deletion_vector: Option<DeletionVector>,
}

/// Where the rows are that are deleted from a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVector {
    /// `u`: in a file below the table, whose name is a UUID in Z85 after a prefix; `p`: in the file of this path, which is escaped
    /// as in a URL; `i`: here, in Z85.
    pub storage_type: String,
    /// As the storage type says.
    pub path_or_inline_dv: String,
    /// The byte of the file at which it begins.
    #[serde(default)]
    pub offset: Option<u64>,
    /// The bytes of the bitmap.
    pub size_in_bytes: u64,
    /// The number of deleted rows.
    pub cardinality: u64,
}

/// A file that does not belong to the table any more.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remove {
    pub path: String,
    #[serde(default)]
    pub deletion_timestamp: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    pub data_change: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub extended_file_metadata: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub partition_values: BTreeMap<String, Option<String>>,
    #[serde(default, deserialize_with = "or_default")]
    pub size: u64,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, Option<String>>,
}

impl Action {
    /// Returns an action that adds a file.
    pub fn add(add: Add) -> Self {
        Self { add: Some(add), ..Self::default() }
    }

    /// Returns an action that removes a file.
    pub fn remove(remove: Remove) -> Self {
        Self { remove: Some(remove), ..Self::default() }
    }

    /// Returns an action that sets the protocol.
    pub fn protocol(protocol: Protocol) -> Self {
        Self { protocol: Some(protocol), ..Self::default() }
    }

    /// Returns an action that sets the metadata.
    pub fn metadata(metadata: Metadata) -> Self {
        Self { meta_data: Some(metadata), ..Self::default() }
    }
}

/// Reads a value, or its default where it is NULL.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

/// Parses a commit: an action a line. Blank lines are passed over.
///
/// # Errors
/// The number of the first line that is no action, and the reason.
pub fn parse(content: &[u8]) -> Result<Vec<Action>, (u64, serde_json::Error)> {
    let lines = (1..).zip(content.split(|&byte| byte == b'\n')).filter(|(_, line)| !line.trim_ascii().is_empty());
    lines.map(|(number, line)| serde_json::from_slice(line).map_err(|error| (number, error))).collect()
}
