//! Manifests: the files of a snapshot.

use std::io::Cursor;

use apache_avro::Reader;
use apache_avro::types::Value;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_storage::{Folder, bad_file, bad_format, caught, date_of_day};

use crate::table::{PartitionField, Snapshot, Table};

/// The number of manifests that are read at once.
const MANIFESTS_AT_ONCE: usize = 16;

/// The files of a snapshot.
#[derive(Debug, Default)]
pub struct SnapshotFiles {
    /// The files with rows.
    pub data: Vec<DataFile>,
    /// The files that say which rows are deleted.
    pub deletes: Vec<DeleteFile>,
}

/// A file with rows.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// The path, as the table has it.
    pub path: String,
    /// The format of the file, in lower case.
    pub format: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The number of the way in which it is partitioned.
    pub spec_id: i32,
    /// The values by which it is partitioned, with their names.
    pub partition: Vec<(String, PartitionValue)>,
    /// The number of the change that added its rows.
    pub sequence: i64,
    /// The snapshot that added the file, if the manifests tell it.
    pub snapshot: Option<i64>,
}

/// A value by which a file is partitioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionValue {
    /// As folders have it in their names: a date, a number, a truth value or a string.
    Shown(String),
    /// A number or a text that no folder has in its name, such as the number of a bucket.
    Derived(String),
    /// NULL.
    Null,
    /// Any other value. It may be equal to one of another type, which its column had before.
    Other,
}

/// A file that says which rows are deleted.
#[derive(Debug, Clone)]
pub struct DeleteFile {
    /// The path, as the table has it.
    pub path: String,
    /// The format of the file, in lower case: `parquet`, or `puffin` for deletion vectors.
    pub format: String,
    /// It names values that rows have, and not the numbers of rows.
    pub by_value: bool,
    /// The number of the way in which it is partitioned.
    pub spec_id: i32,
    /// The values by which it is partitioned, with their names. Without any, it is about files of all partitions.
    pub partition: Vec<(String, PartitionValue)>,
    /// The one file of which it deletes rows, if that is known.
    pub of: Option<String>,
    /// The bytes of the file in which the deletion vector is.
    pub vector: Option<(u64, u64)>,
    /// The number of the change that deleted the rows. Files that were added later keep all of theirs.
    pub sequence: i64,
}

/// A manifest, with what its entries have of it if they do not say it.
struct Manifest {
    place: Folder,
    spec_id: i64,
    sequence: i64,
    snapshot: Option<i64>,
}

/// The contents of manifests and of data files, by their numbers in the format.
const DATA: i64 = 0;
const EQUALITY_DELETES: i64 = 2;
/// The state of an entry that is not in the snapshot any more.
const DELETED: i64 = 2;
/// The bytes of the marker between the blocks of an Avro file.
const MARKER_BYTES: usize = 16;
/// How a value follows from its column if files are not partitioned by it any more: it is always NULL.
const VOID: &str = "void";

impl SnapshotFiles {
    /// Reads the files of a snapshot. `place` finds a file of the table by its path.
    ///
    /// # Errors
    /// A manifest is gone or damaged, or lies where `place` does not allow it.
    pub async fn read(table: &Table, snapshot: &Snapshot, place: impl Fn(&str) -> Result<Folder>) -> Result<Self> {
        let list = snapshot.manifest_list.as_ref().ok_or_else(|| {
            let reason =
                "a snapshot of the Iceberg table has no list of manifests: let its engine write a new snapshot";
            bad_file(&table.location, reason)
        })?;
        let list = place(list)?;
        let mut manifests = Vec::new();
        for entry in records(&list).await? {
            let of = Record { place: &list, value: &entry };
            manifests.push(Manifest {
                place: place(of.text("manifest_path")?)?,
                spec_id: of.integer_or("partition_spec_id", 0)?,
                // In version 1, numbers of changes are missing, and so are files of deletes.
                sequence: of.integer_or("sequence_number", 0)?,
                snapshot: of.optional_integer("added_snapshot_id")?,
            });
        }
        let read = manifests.into_iter().map(|manifest| async move {
            let mut found = Self::default();
            for entry in records(&manifest.place).await? {
                found.add(table, &manifest, &Record { place: &manifest.place, value: &entry })?;
            }
            Ok::<_, Fault>(found)
        });
        let read: Vec<_> = read.collect();
        let mut read = futures::stream::iter(read).buffered(MANIFESTS_AT_ONCE);
        let mut all = Self::default();
        while let Some(found) = read.try_next().await? {
            all.data.extend(found.data);
            all.deletes.extend(found.deletes);
        }
        Ok(all)
    }

    fn add(&mut self, table: &Table, manifest: &Manifest, entry: &Record<'_>) -> Result<()> {
        if entry.integer("status")? == DELETED {
            return Ok(());
        }
        let file = entry.record("data_file")?;
        let path = file.text("file_path")?.to_owned();
        let format = file.text("file_format")?.to_ascii_lowercase();
        let sequence = entry.integer_or("sequence_number", manifest.sequence)?;
        let content = file.integer_or("content", DATA)?;
        let spec_id = i32::try_from(manifest.spec_id).map_err(|_| entry.bad("a manifest has no partition_spec_id"))?;
        let partition = partition(&file, table.partition_fields(spec_id))?;
        if content == DATA {
            let bytes = file.integer("file_size_in_bytes")?;
            let bytes = u64::try_from(bytes).map_err(|_| entry.bad(&format!("{path} has {bytes} bytes")))?;
            let snapshot = entry.optional_integer("snapshot_id")?.or(manifest.snapshot);
            self.data.push(DataFile { path, format, bytes, spec_id, partition, sequence, snapshot });
            return Ok(());
        }
        let range = (file.optional_integer("content_offset")?, file.optional_integer("content_size_in_bytes")?);
        let vector = match range {
            (Some(offset), Some(size)) => u64::try_from(offset).ok().zip(u64::try_from(size).ok()),
            _ => None,
        };
        let of = file.get("referenced_data_file").and_then(text_of).map(str::to_owned);
        let by_value = content == EQUALITY_DELETES;
        self.deletes.push(DeleteFile { path, format, by_value, spec_id, partition, of, vector, sequence });
        Ok(())
    }
}

/// Returns the values by which a file is partitioned. They stand in the order of the fields: the manifest may have other names,
/// because Avro does not allow all names, and because fields may be renamed. Fields that the table has given up, which are
/// `void`, have no values.
fn partition(file: &Record<'_>, fields: &[PartitionField]) -> Result<Vec<(String, PartitionValue)>> {
    let values = match file.get("partition") {
        Some(Value::Record(values)) => values.as_slice(),
        None if fields.is_empty() => &[],
        _ => return Err(file.bad("a file has no partition")),
    };
    if values.len() != fields.len() {
        return Err(file.bad("a partition has not as many values as the table says"));
    }
    let named = fields.iter().zip(values).filter(|(field, _)| field.transform != VOID);
    Ok(named.map(|(field, (_, value))| (field.name.clone(), partition_value(value, &field.transform))).collect())
}

/// Returns a value of a partition: as the name of a folder has it, if there is a way that everybody takes.
fn partition_value(value: &Value, transform: &str) -> PartitionValue {
    let shown = match (transform, value) {
        (_, Value::Union(_, value)) => return partition_value(value, transform),
        (_, Value::Null) => return PartitionValue::Null,
        ("identity" | "day", Value::Date(days)) | ("day", Value::Int(days)) => date_of_day(*days),
        ("identity", Value::Int(number)) => Some(number.to_string()),
        ("identity", Value::Long(number)) => Some(number.to_string()),
        ("identity", Value::Boolean(value)) => Some(value.to_string()),
        ("identity", Value::String(text)) => Some(text.clone()),
        _ => None,
    };
    match (shown, comparable(value)) {
        (Some(shown), _) => PartitionValue::Shown(shown),
        (None, Some(comparable)) => PartitionValue::Derived(comparable),
        (None, None) => PartitionValue::Other,
    }
}

/// Returns a value in a form that does not depend on its type, because a column of `int` may become one of `long`. `None`: there
/// is no such form.
fn comparable(value: &Value) -> Option<String> {
    match value {
        Value::Int(number) => Some(number.to_string()),
        Value::Long(number) | Value::TimestampMicros(number) | Value::LocalTimestampMicros(number) => {
            Some(number.to_string())
        }
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Makes the fault of a file that the table names and that is not there.
pub(crate) fn gone(place: &Folder) -> Fault {
    bad_file(place.url(), "the Iceberg table names it, and it is gone")
}

/// Returns the records of an Avro file.
async fn records(place: &Folder) -> Result<Vec<Value>> {
    let content = place.get().await?.ok_or_else(|| gone(place))?;
    let bad = |e: apache_avro::Error| {
        if let apache_avro::error::Details::CodecNotSupported(codec) = e.details() {
            let reason = format!(
                "this manifest of an Iceberg table is packed by {codec}, which is not read: let its engine write the manifests anew"
            );
            return bad_format(place.url(), reason);
        }
        bad_file(place.url(), format!("it is no manifest of an Iceberg table ({e})"))
    };
    caught(place.url(), || {
        let records = Reader::new(Cursor::new(with_plain_uuids(content))).map_err(bad)?;
        records.collect::<std::result::Result<_, _>>().map_err(bad)
    })
}

/// Gives the logical type `uuid` in the schema of an Avro file a name that no reader knows: such values are their bytes then. The
/// reader takes each `uuid` for a text, also where it is a value of 16 bytes, as Iceberg writes them.
fn with_plain_uuids(content: Bytes) -> Bytes {
    const KEY: &[u8] = b"\"logicalType\"";
    const KNOWN: &[u8] = b"\"uuid\"";
    const UNKNOWN: &[u8] = b"\"uu1d\"";
    // The marker at the end of the header stands behind each block too, and so at the end of the file.
    let marker = content.len().checked_sub(MARKER_BYTES).map(|at| &content[at..]);
    let end = marker.and_then(|marker| content.windows(MARKER_BYTES).position(|bytes| bytes == marker));
    let header = &content[..end.unwrap_or(0)];
    let mut plain: Option<Vec<u8>> = None;
    for at in (0..header.len()).filter(|&at| header[at..].starts_with(KEY)) {
        let value = header[at + KEY.len()..].trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        if let Some(value) = value.filter(|value| value.starts_with(KNOWN)) {
            let at = header.len() - value.len();
            plain.get_or_insert_with(|| content.to_vec())[at..at + UNKNOWN.len()].copy_from_slice(UNKNOWN);
        }
    }
    plain.map_or_else(|| content.clone(), Bytes::from)
}

/// A record of a manifest, and the place of that.
#[derive(Clone, Copy)]
struct Record<'a> {
    place: &'a Folder,
    value: &'a Value,
}

impl<'a> Record<'a> {
    fn bad(&self, reason: &str) -> Fault {
        bad_file(self.place.url(), format!("it is no manifest of an Iceberg table: {reason}"))
    }

    /// Returns a value, unless it is missing or NULL.
    fn get(&self, name: &str) -> Option<&'a Value> {
        let Value::Record(fields) = self.value else { return None };
        let (_, value) = fields.iter().find(|(field, _)| field == name)?;
        match value {
            Value::Union(_, value) => Some(&**value),
            value => Some(value),
        }
        .filter(|value| !matches!(value, Value::Null))
    }

    fn required(&self, name: &str) -> Result<&'a Value> {
        self.get(name).ok_or_else(|| self.bad(&format!("an entry has no {name}")))
    }

    fn record(&self, name: &str) -> Result<Self> {
        Ok(Self { place: self.place, value: self.required(name)? })
    }

    fn text(&self, name: &str) -> Result<&'a str> {
        text_of(self.required(name)?).ok_or_else(|| self.bad(&format!("{name} is no text")))
    }

    fn optional_integer(&self, name: &str) -> Result<Option<i64>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Int(number)) => Ok(Some(i64::from(*number))),
            Some(Value::Long(number)) => Ok(Some(*number)),
            Some(_) => Err(self.bad(&format!("{name} is no number"))),
        }
    }

    fn integer(&self, name: &str) -> Result<i64> {
        self.optional_integer(name)?.ok_or_else(|| self.bad(&format!("an entry has no {name}")))
    }

    fn integer_or(&self, name: &str, missing: i64) -> Result<i64> {
        self.optional_integer(name).map(|number| number.unwrap_or(missing))
    }
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}
