//! Checkpoints: the state of a table at a version, one action a row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::builder::{ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Int64Type, Schema};
use bytes::Bytes;
use futures::TryStreamExt;
use nearprint_fault::{Fault, Result, foreign};
use nearprint_parquet::ParquetFile;
use nearprint_storage::{Folder, Sha256Hex, bad_file};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use super::actions::{Action, Add, DeletionVector, Metadata, Protocol, Remove, Sidecar, parse};
use super::names::SIDECARS;
use super::state::path_of;

/// The key of the metadata of nearprint's checkpoints that has the digest of their actions.
const OWN_SHA256: &str = "nearprint.checkpoint_sha256";

/// Makes the fault of a file that the log names and that is not there.
pub(crate) fn gone(file: &Folder) -> Fault {
    bad_file(file.url(), "the log of the Delta table names it, and it is gone")
}

/// A checkpoint that was read.
#[derive(Debug)]
pub struct Checkpoint {
    /// The actions, in the order of rows.
    pub actions: Vec<Action>,
    /// The digest that a checkpoint of nearprint's bears. `None` in those of other programs.
    pub own_sha256: Option<String>,
}

/// Returns the digest of actions: the SHA-256 of their JSON lines.
///
/// Invariant: the JSON of an action that is in a checkpoint never changes. A field that a later release adds is left out
/// of it where it is not set.
///
/// # Errors
/// The actions cannot be written as JSON.
pub fn digest(actions: &[Action]) -> serde_json::Result<String> {
    let lines: Vec<String> = actions.iter().map(serde_json::to_string).collect::<serde_json::Result<_>>()?;
    Ok(Sha256Hex::of(lines.join("\n").as_bytes()).0)
}

impl Checkpoint {
    /// Reads the files of a checkpoint, and the sidecars that they name. The metadata of files, such as statistics, and files
    /// that were removed are read with `whole` only.
    ///
    /// # Errors
    /// A file cannot be read, lacks a value that it must have, or has one of a type that is not understood.
    pub async fn read(log: &Folder, parts: &BTreeSet<String>, whole: bool) -> Result<Self> {
        let mut read = Self { actions: Vec::new(), own_sha256: None };
        for part in parts {
            read.add(&log.join(part), whole).await?;
        }
        let sidecars: Vec<Sidecar> = read.actions.iter_mut().filter_map(|action| action.sidecar.take()).collect();
        for Sidecar { path } in sidecars {
            // A name, or the whole path of a file in the folder of sidecars.
            let (path, folder) = (path_of(&path), log.join(SIDECARS));
            let place = folder.local_path().map_or_else(|| folder.url().to_owned(), |path| path.display().to_string());
            let below = path.strip_prefix(&place).and_then(|below| below.strip_prefix('/'));
            let name = below.unwrap_or(&path);
            if name.contains('/') {
                let reason = format!("a checkpoint names the file {name}, which is not in its folder of sidecars");
                return Err(bad_file(log.url(), reason));
            }
            read.add(&folder.join(name), whole).await?;
        }
        Ok(read)
    }

    /// Adds the actions of a file, which is JSON or Parquet.
    async fn add(&mut self, file: &Folder, whole: bool) -> Result<()> {
        const OF_FILES: [&str; 9] = [
            "add.path",
            "add.partitionValues",
            "add.size",
            "add.deletionVector",
            "protocol.minReaderVersion",
            "protocol.readerFeatures",
            "metaData.partitionColumns",
            "metaData.configuration",
            "sidecar.path",
        ];
        const WHOLE: [&str; 5] = ["add", "remove", "protocol", "metaData", "sidecar"];
        if file.url().ends_with(".json") {
            let content = file.get().await?.ok_or_else(|| gone(file))?;
            let bad = |(line, error)| bad_file(file.url(), format!("line {line} is no action ({})", foreign(&error)));
            self.actions.extend(parse(&content).map_err(bad)?);
            return Ok(());
        }
        let parquet = ParquetFile::open(file.find().await?.ok_or_else(|| gone(file))?).await?;
        self.own_sha256 = parquet.key_value(OWN_SHA256);
        let columns = if whole { &WHOLE[..] } else { &OF_FILES[..] };
        let mut batches = parquet.stream(parquet.whole(columns))?;
        while let Some(batch) = batches.try_next().await? {
            let unreadable = |reason: Unreadable| bad_file(&parquet.file.url, reason);
            self.actions.extend(actions_of(&batch).map_err(unreadable)?);
        }
        Ok(())
    }

    /// Returns the content of a checkpoint file with these actions. It depends on them and the release alone.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if the file cannot be encoded.
    pub fn encode(actions: &[Action]) -> Result<Bytes> {
        let internal = |reason: String| Fault::internal("checkpoint", reason);
        let own = digest(actions).map_err(|e| internal(e.to_string()))?;
        let batch = batch_of(actions).map_err(|e| internal(e.to_string()))?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("nearprint ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(vec![KeyValue::new(OWN_SHA256.to_owned(), Some(own))]))
            .build();
        let write = || {
            let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
            writer.write(&batch)?;
            writer.into_inner()
        };
        write().map(Bytes::from).map_err(|e: parquet::errors::ParquetError| internal(e.to_string()))
    }
}

type ArrowResult<T> = std::result::Result<T, arrow::error::ArrowError>;

fn batch_of(actions: &[Action]) -> ArrowResult<RecordBatch> {
    let columns: [(&str, ArrayRef); 4] = [
        ("protocol", protocols(actions)?),
        ("metaData", metadata(actions)?),
        ("add", adds(actions)?),
        ("remove", removes(actions)?),
    ];
    let fields: Fields =
        columns.iter().map(|(name, values)| Field::new(*name, values.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, values)| values).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn protocols(actions: &[Action]) -> ArrowResult<ArrayRef> {
    let all = || actions.iter().map(|action| action.protocol.as_ref());
    let number = |of: fn(&Protocol) -> i64| -> ArrayRef {
        Arc::new(all().map(|protocol| protocol.and_then(|p| i32::try_from(of(p)).ok())).collect::<Int32Array>())
    };
    let columns = [
        ("minReaderVersion", number(|p| p.min_reader_version)),
        ("minWriterVersion", number(|p| p.min_writer_version)),
    ];
    structs(&columns, all().map(|protocol| protocol.is_some()))
}

fn metadata(actions: &[Action]) -> ArrowResult<ArrayRef> {
    let all = || actions.iter().map(|action| action.meta_data.as_ref());
    let provider = |metadata: &Metadata| metadata.format.get("provider").and_then(|p| p.as_str()).map(str::to_owned);
    let format = structs(
        &[
            ("provider", strings(all().map(|m| m.and_then(provider)))),
            ("options", maps(all().map(|m| m.map(|_| BTreeMap::new())))?),
        ],
        all().map(|metadata| metadata.is_some()),
    )?;
    let mut partitions = ListBuilder::new(StringBuilder::new()).with_field(Field::new("element", DataType::Utf8, true));
    for metadata in all() {
        metadata.iter().flat_map(|m| &m.partition_columns).for_each(|column| partitions.values().append_value(column));
        partitions.append(metadata.is_some());
    }
    let columns = [
        ("id", strings(all().map(|m| m.map(|m| m.id.clone())))),
        ("name", strings(all().map(|m| m.and_then(|m| m.name.clone())))),
        ("format", format),
        ("schemaString", strings(all().map(|m| m.map(|m| m.schema_string.clone())))),
        ("partitionColumns", Arc::new(partitions.finish())),
        ("configuration", maps(all().map(|m| m.map(|m| m.configuration.clone())))?),
    ];
    structs(&columns, all().map(|metadata| metadata.is_some()))
}

fn adds(actions: &[Action]) -> ArrowResult<ArrayRef> {
    let all = || actions.iter().map(|action| action.add.as_ref());
    let columns = [
        ("path", strings(all().map(|add| add.map(|a| a.path.clone())))),
        ("partitionValues", maps(all().map(|add| add.map(|a| a.partition_values.clone())))?),
        ("size", longs(all().map(|add| add.and_then(|a| i64::try_from(a.size).ok())))),
        ("modificationTime", longs(all().map(|add| add.map(|a| a.modification_time)))),
        ("dataChange", booleans(all().map(|add| add.map(|a| a.data_change)))),
        ("stats", strings(all().map(|add| add.and_then(|a| a.stats.clone())))),
    ];
    structs(&columns, all().map(|add| add.is_some()))
}

fn removes(actions: &[Action]) -> ArrowResult<ArrayRef> {
    let all = || actions.iter().map(|action| action.remove.as_ref());
    let columns = [
        ("path", strings(all().map(|remove| remove.map(|r| r.path.clone())))),
        ("deletionTimestamp", longs(all().map(|remove| remove.and_then(|r| r.deletion_timestamp)))),
        ("dataChange", booleans(all().map(|remove| remove.map(|r| r.data_change)))),
        ("extendedFileMetadata", booleans(all().map(|remove| remove.map(|r| r.extended_file_metadata)))),
        ("partitionValues", maps(all().map(|remove| remove.map(|r| r.partition_values.clone())))?),
        ("size", longs(all().map(|remove| remove.and_then(|r| i64::try_from(r.size).ok())))),
        ("tags", maps(all().map(|remove| remove.map(|r| r.tags.clone())))?),
    ];
    structs(&columns, all().map(|remove| remove.is_some()))
}

fn structs(columns: &[(&str, ArrayRef)], is_there: impl Iterator<Item = bool>) -> ArrowResult<ArrayRef> {
    let fields: Fields =
        columns.iter().map(|(name, values)| Field::new(*name, values.data_type().clone(), true)).collect();
    let arrays = columns.iter().map(|(_, values)| Arc::clone(values)).collect();
    Ok(Arc::new(StructArray::try_new(fields, arrays, Some(is_there.collect()))?))
}

fn strings(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn longs(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

fn booleans(values: impl Iterator<Item = Option<bool>>) -> ArrayRef {
    Arc::new(values.collect::<BooleanArray>())
}

/// Makes maps with the names that Parquet recommends, which other readers expect.
fn maps(values: impl Iterator<Item = Option<BTreeMap<String, Option<String>>>>) -> ArrowResult<ArrayRef> {
    let [entry, key, value] = ["key_value", "key", "value"].map(str::to_owned);
    let names = MapFieldNames { entry, key, value };
    let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for map in values {
        for (key, value) in map.iter().flatten() {
            maps.keys().append_value(key);
            maps.values().append_option(value.as_ref());
        }
        maps.append(map.is_some())?;
    }
    Ok(Arc::new(maps.finish()))
}

/// A value that a checkpoint must have and has not, or that is of a type in which no checkpoint has it.
type Unreadable = String;

/// Returns the actions of the rows of a checkpoint. Columns that are not there are NULL. A row whose `add`, `remove` or
/// `protocol` lacks the value that makes it one is no such action, as in rows of other actions.
fn actions_of(batch: &RecordBatch) -> std::result::Result<Vec<Action>, Unreadable> {
    let column = |name: &str| batch.column_by_name(name).and_then(|column| column.as_struct_opt());
    let (adds, removes) = (column("add"), column("remove"));
    let (protocols, metadata, sidecars) = (column("protocol"), column("metaData"), column("sidecar"));
    let mut actions = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let at = |found: Option<&'_ StructArray>| found.filter(|found| found.is_valid(row)).cloned();
        actions.push(Action {
            commit_info: None,
            protocol: at(protocols).map(|of| protocol_at(&of, row)).transpose()?.flatten(),
            meta_data: at(metadata).map(|of| metadata_at(&of, row)).transpose()?,
            add: at(adds).map(|of| add_at(&of, row)).transpose()?.flatten(),
            remove: at(removes).map(|of| remove_at(&of, row)).transpose()?.flatten(),
            sidecar: at(sidecars).map(|of| text(&of, "path", row)).transpose()?.flatten().map(|path| Sidecar { path }),
        });
    }
    Ok(actions)
}

fn protocol_at(of: &StructArray, row: usize) -> std::result::Result<Option<Protocol>, Unreadable> {
    let Some(min_reader_version) = integer(of, "minReaderVersion", row)? else { return Ok(None) };
    let features = of.column_by_name("readerFeatures").filter(|features| features.is_valid(row));
    Ok(Some(Protocol {
        min_reader_version,
        // It is not read where only files are wanted.
        min_writer_version: integer(of, "minWriterVersion", row)?.unwrap_or_default(),
        reader_features: features.map(|_| texts(of, "readerFeatures", row)).transpose()?,
    }))
}

fn metadata_at(of: &StructArray, row: usize) -> std::result::Result<Metadata, Unreadable> {
    let format = of.column_by_name("format").and_then(|format| format.as_struct_opt());
    let format = match format.filter(|format| format.is_valid(row)) {
        Some(format) => {
            serde_json::json!({ "provider": text(format, "provider", row)?, "options": map(format, "options", row)? })
        }
        None => Value::default(),
    };
    Ok(Metadata {
        // Identity and schema are not read where only files are wanted.
        id: text(of, "id", row)?.unwrap_or_default(),
        name: text(of, "name", row)?,
        format,
        schema_string: text(of, "schemaString", row)?.unwrap_or_default(),
        partition_columns: texts(of, "partitionColumns", row)?,
        configuration: map(of, "configuration", row)?,
    })
}

fn add_at(of: &StructArray, row: usize) -> std::result::Result<Option<Add>, Unreadable> {
    let Some(path) = text(of, "path", row)? else { return Ok(None) };
    let vector = of.column_by_name("deletionVector").and_then(|vector| vector.as_struct_opt());
    let vector = vector.filter(|vector| vector.is_valid(row));
    Ok(Some(Add {
        size: size(of, row)?.ok_or_else(|| format!("the size of {path} is not in it"))?,
        path,
        partition_values: map(of, "partitionValues", row)?,
        // It is not read where only files are wanted.
        modification_time: integer(of, "modificationTime", row)?.unwrap_or_default(),
        data_change: boolean(of, "dataChange", row),
        stats: text(of, "stats", row)?,
        deletion_vector: vector.map(|of| deletion_vector_at(of, row)).transpose()?,
    }))
}

fn deletion_vector_at(of: &StructArray, row: usize) -> std::result::Result<DeletionVector, Unreadable> {
    let lacks = |name: &str| format!("a deletion vector has no {name}");
    let number = |name: &str| {
        let number = integer(of, name, row)?;
        number.map(|number| u64::try_from(number).map_err(|_| lacks(name))).transpose()
    };
    let required = |name: &str| text(of, name, row)?.ok_or_else(|| lacks(name));
    Ok(DeletionVector {
        storage_type: required("storageType")?,
        path_or_inline_dv: required("pathOrInlineDv")?,
        offset: number("offset")?,
        size_in_bytes: number("sizeInBytes")?.ok_or_else(|| lacks("sizeInBytes"))?,
        cardinality: number("cardinality")?.ok_or_else(|| lacks("cardinality"))?,
    })
}

fn remove_at(of: &StructArray, row: usize) -> std::result::Result<Option<Remove>, Unreadable> {
    let Some(path) = text(of, "path", row)? else { return Ok(None) };
    Ok(Some(Remove {
        path,
        deletion_timestamp: integer(of, "deletionTimestamp", row)?,
        data_change: boolean(of, "dataChange", row),
        extended_file_metadata: boolean(of, "extendedFileMetadata", row),
        partition_values: map(of, "partitionValues", row)?,
        // A file that was removed may have none.
        size: size(of, row)?.unwrap_or_default(),
        tags: map(of, "tags", row)?,
    }))
}

fn size(of: &StructArray, row: usize) -> std::result::Result<Option<u64>, Unreadable> {
    let size = integer(of, "size", row)?;
    size.map(|size| u64::try_from(size).map_err(|_| format!("a file has a size of {size} bytes"))).transpose()
}

/// Returns the column of a struct, if it is there and its value is not NULL, as `decoded` reads it.
fn valid<'a, T>(
    of: &'a StructArray,
    name: &str,
    row: usize,
    decoded: impl FnOnce(&'a ArrayRef) -> Option<T>,
) -> std::result::Result<Option<T>, Unreadable> {
    let Some(column) = of.column_by_name(name).filter(|column| column.is_valid(row)) else { return Ok(None) };
    decoded(column)
        .map(Some)
        .ok_or_else(|| format!("its column {name} is {}, which is not understood", column.data_type()))
}

fn text(of: &StructArray, name: &str, row: usize) -> std::result::Result<Option<String>, Unreadable> {
    valid(of, name, row, |values| Some(values.as_string_opt::<i32>()?.value(row).to_owned()))
}

fn boolean(of: &StructArray, name: &str, row: usize) -> bool {
    let values = of.column_by_name(name).and_then(|values| values.as_boolean_opt());
    values.is_some_and(|values| values.is_valid(row) && values.value(row))
}

fn integer(of: &StructArray, name: &str, row: usize) -> std::result::Result<Option<i64>, Unreadable> {
    valid(of, name, row, |values| {
        let long = values.as_primitive_opt::<Int64Type>().map(|values| values.value(row));
        long.or_else(|| values.as_primitive_opt::<Int32Type>().map(|values| values.value(row).into()))
    })
}

fn texts(of: &StructArray, name: &str, row: usize) -> std::result::Result<Vec<String>, Unreadable> {
    let found = valid(of, name, row, |list| {
        let values = list.as_list_opt::<i32>()?.value(row);
        values.as_string_opt::<i32>()?.iter().map(|text| text.map(str::to_owned)).collect()
    });
    // A list that is not there is empty.
    found.map(Option::unwrap_or_default)
}

fn map(of: &StructArray, name: &str, row: usize) -> std::result::Result<BTreeMap<String, Option<String>>, Unreadable> {
    let found = valid(of, name, row, |map| {
        let entries = map.as_map_opt()?.value(row);
        let [keys, values] = entries.columns() else { return None };
        let (keys, values) = (keys.as_string_opt::<i32>()?, values.as_string_opt::<i32>()?);
        let pairs = keys.iter().zip(values.iter());
        Some(pairs.filter_map(|(key, value)| Some((key?.to_owned(), value.map(str::to_owned)))).collect())
    });
    // A map that is not there is empty.
    found.map(Option::unwrap_or_default)
}
