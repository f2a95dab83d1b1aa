//! The log of a Delta Lake table, as far as a published dataset needs it: whole files are added and removed.
//!
//! A version of the table is an object `_delta_log/NNNNNNNNNNNNNNNNNNNN.json`, one JSON action a line. It is created only
//! if it does not exist yet, by the same means as the store's commits. So of two writers of one version one wins, and
//! the other one reads what the winner wrote. There are no checkpoints.
//!
//! Invariants: a version of nearprint's bears its own SHA-256. It has no time of a clock: its times follow from the
//! nights and from its number, so the same change of the same version has the same bytes, whoever writes it and when.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, SchemaRef};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use nearprint_storage::{ErrorKind, Folder, Sha256Hex};
use parquet::file::statistics::Statistics;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{DatasetError, Result};
use crate::parquet_file::ParquetFile;
use crate::published::{DELTA_LOG, DT, PublishedDataset};

/// The number of versions that are read at once.
const READS_AT_ONCE: usize = 16;
/// How often a file is read that others write again meanwhile.
const READ_ATTEMPTS: usize = 10;
/// A day in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// What `engineInfo` begins with in the versions that nearprint writes.
const ENGINE: &str = "nearprint ";
/// The names that every version of nearprint's has for its own SHA-256.
const OWN_SHA256: &str = "nearprintSha256";

/// A file of a table's newest version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFile {
    /// The path below the table.
    pub path: String,
    /// The date of its night.
    pub dt: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The rows, NULLs and bounds, in the form in which the log has them.
    statistics: String,
}

impl TableFile {
    /// Describes a published file, by its footer.
    ///
    /// # Errors
    /// The file is not a readable Parquet file.
    pub async fn of(table: &Folder, path: &str, dt: &str, dataset: &PublishedDataset) -> Result<Self> {
        let mut read = Self::read(table, path, dt, dataset).await;
        // Another run of the same night may be writing the same bytes to the same name.
        for _ in 1..READ_ATTEMPTS {
            if !read.as_ref().is_err_and(|error| error.kind() == ErrorKind::TryAgain) {
                break;
            }
            read = Self::read(table, path, dt, dataset).await;
        }
        read
    }

    async fn read(table: &Folder, path: &str, dt: &str, dataset: &PublishedDataset) -> Result<Self> {
        let parquet = ParquetFile::open_without_page_index(table.join(path).file().await?).await?;
        Ok(Self {
            path: path.to_owned(),
            dt: dt.to_owned(),
            bytes: parquet.file.size,
            statistics: statistics(&parquet, dataset.schema),
        })
    }

    /// Returns the number of rows, if the log says it.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        serde_json::from_str::<Value>(&self.statistics).ok()?.get("numRecords")?.as_u64()
    }
}

/// The change from one version of a table to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableChange {
    /// The paths of files that no longer belong to the table.
    pub removed: Vec<String>,
    /// The files that now belong to it.
    pub added: Vec<TableFile>,
}

impl TableChange {
    /// Returns whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }
}

/// A removal that the log of a table records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedFile {
    /// The path below the table.
    pub path: String,
    /// The version that removed it.
    pub version: u64,
}

/// The log of a table, as far as it has been read.
#[derive(Debug, Clone)]
pub struct TableLog {
    table: Folder,
    dataset: &'static PublishedDataset,
    /// The number of versions that were read.
    n_versions: u64,
    schema: Option<String>,
    files: BTreeMap<String, TableFile>,
    removed: Vec<RemovedFile>,
}

impl TableLog {
    /// Reads the log of a dataset's table below an output. A table that does not exist yet has no versions and no files.
    /// This takes one LIST, and one GET for each version.
    ///
    /// # Errors
    /// [`DatasetError::BadFile`] if a version is missing or damaged; an error if the place does not answer.
    pub async fn open(output: &Folder, dataset: &'static PublishedDataset) -> Result<Self> {
        let table = output.join(dataset.name);
        let mut log = Self { table, dataset, n_versions: 0, schema: None, files: BTreeMap::new(), removed: Vec::new() };
        log.refresh().await?;
        Ok(log)
    }

    /// Reads the versions that were written since.
    ///
    /// # Errors
    /// The same as those of [`open`](Self::open).
    pub async fn refresh(&mut self) -> Result<()> {
        let names = self.table.join(DELTA_LOG).names().await?;
        let mut versions: Vec<u64> = names.iter().filter_map(|name| version_of(name)).collect();
        versions.retain(|&version| version >= self.n_versions);
        versions.sort_unstable();
        if let Some((wanted, _)) = (self.n_versions..).zip(&versions).find(|(wanted, there)| wanted != *there) {
            let place = self.place(wanted);
            return Err(damaged(place.url(), "this version of the table is gone"));
        }
        let places: Vec<(u64, Folder)> = versions.into_iter().map(|version| (version, self.place(version))).collect();
        let read = places.into_iter().map(|(version, place)| async move {
            let gone = || damaged(place.url(), "this version of the table is gone");
            let content = place.get().await?.ok_or_else(gone)?;
            Ok::<_, DatasetError>((version, actions(place.url(), &content)?))
        });
        let read: Vec<(u64, Vec<Action>)> = futures::stream::iter(read).buffered(READS_AT_ONCE).try_collect().await?;
        for (version, actions) in read {
            self.replay(version, actions);
        }
        Ok(())
    }

    fn replay(&mut self, version: u64, actions: Vec<Action>) {
        for action in actions {
            if let Some(metadata) = action.meta_data {
                self.schema = Some(metadata.schema_string);
            }
            if let Some(remove) = action.remove {
                self.files.remove(&remove.path);
                self.removed.push(RemovedFile { path: remove.path, version });
            }
            if let Some(add) = action.add {
                let dt = add.partition_values.get(DT).cloned().unwrap_or_default();
                let (path, bytes, statistics) = (add.path, add.size, add.stats.unwrap_or_default());
                self.files.insert(path.clone(), TableFile { path, dt, bytes, statistics });
            }
        }
        self.n_versions = version + 1;
    }

    /// Returns the folder of the table.
    pub fn table(&self) -> &Folder {
        &self.table
    }

    /// Returns the dataset of the table.
    pub fn dataset(&self) -> &'static PublishedDataset {
        self.dataset
    }

    /// Returns the files of the newest version that was read, by path.
    pub fn files(&self) -> impl Iterator<Item = &TableFile> {
        self.files.values()
    }

    /// Returns the files of a night in the newest version that was read, by path.
    pub fn night<'a>(&'a self, dt: &'a str) -> impl Iterator<Item = &'a TableFile> {
        self.files().filter(move |file| file.dt == dt)
    }

    /// Returns the files that were removed from the table at some time, in the order of versions.
    pub fn removed(&self) -> &[RemovedFile] {
        &self.removed
    }

    /// Writes the next version. Returns `false` if another writer was faster: read it, and look again what to change.
    /// `newest_night` is the date of the store's newest night. All times in the version are the end of that night, in
    /// UTC, and as many milliseconds as there were versions before.
    ///
    /// # Errors
    /// The version cannot be written, or it is unknown whether it was.
    pub async fn write(&self, change: &TableChange, newest_night: &str, table_id: &str) -> Result<bool> {
        let content = self.encode(change, newest_night, table_id)?;
        Ok(self.place(self.n_versions).put_if_absent(content).await?)
    }

    fn place(&self, version: u64) -> Folder {
        self.table.join(DELTA_LOG).join(&format!("{version:020}.json"))
    }

    fn encode(&self, change: &TableChange, newest_night: &str, table_id: &str) -> Result<Bytes> {
        let internal = |reason: String| DatasetError::Internal { stage: "table", reason };
        let time = time_of(newest_night, self.n_versions)
            .ok_or_else(|| internal(format!("'{newest_night}' is not a date")))?;
        let nights = change.added.iter().map(|file| &file.dt).chain(change.removed.iter().filter_map(|path| {
            let removed = self.files.get(path)?;
            Some(&removed.dt)
        }));
        let nights: Vec<&str> =
            nights.map(String::as_str).collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        let info = serde_json::json!({
            "timestamp": time,
            "operation": "WRITE",
            "operationParameters": { "nights": nights.join(",") },
            "engineInfo": concat!("nearprint ", env!("CARGO_PKG_VERSION")),
            OWN_SHA256: "",
        });
        let mut actions = vec![Action { commit_info: Some(info), ..Action::default() }];
        if self.n_versions == 0 {
            let protocol = Protocol { min_reader_version: 1, min_writer_version: 2 };
            actions.push(Action { protocol: Some(protocol), ..Action::default() });
        }
        let schema = schema_string(self.dataset.schema).map_err(|e| internal(e.to_string()))?;
        if self.schema.as_ref() != Some(&schema) {
            let metadata = MetaData::of(self.dataset.name, table_id, schema);
            actions.push(Action { meta_data: Some(metadata), ..Action::default() });
        }
        for path in &change.removed {
            let gone = self.files.get(path);
            let remove = Remove {
                path: path.clone(),
                deletion_timestamp: Some(time),
                data_change: true,
                extended_file_metadata: true,
                partition_values: partition(gone.map_or("", |file| &file.dt)),
                size: gone.map_or(0, |file| file.bytes),
            };
            actions.push(Action { remove: Some(remove), ..Action::default() });
        }
        for file in &change.added {
            let add = Add {
                path: file.path.clone(),
                partition_values: partition(&file.dt),
                size: file.bytes,
                modification_time: time,
                data_change: true,
                stats: Some(file.statistics.clone()),
            };
            actions.push(Action { add: Some(add), ..Action::default() });
        }
        let lines: std::result::Result<Vec<String>, _> = actions.iter().map(serde_json::to_string).collect();
        let mut content = lines.map_err(|e| internal(e.to_string()))?.join("\n");
        content.push('\n');
        let own = Sha256Hex::of(content.as_bytes()).0;
        Ok(Bytes::from(content.replacen(&own_field(""), &own_field(&own), 1)))
    }
}

/// Returns the number of the version with this file name.
#[must_use]
pub fn version_of(name: &str) -> Option<u64> {
    version_digits(name.strip_suffix(".json")?)
}

/// Parses a version, which has 20 digits in the names of a log.
pub(crate) fn version_digits(digits: &str) -> Option<u64> {
    let is_version = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    is_version.then(|| digits.parse().ok())?
}

fn damaged(url: &str, reason: &str) -> DatasetError {
    let remedy = "move the folder `_delta_log` away and run any date again, which writes it anew from the store";
    DatasetError::Table { file: url.to_owned(), reason: format!("{}: {remedy}", nearprint_storage::one_line(reason)) }
}

/// Parses a version. A version of nearprint's must have the SHA-256 that it bears; those of other programs have none.
fn actions(url: &str, content: &[u8]) -> Result<Vec<Action>> {
    let text = std::str::from_utf8(content).map_err(|_| damaged(url, "it is not UTF-8"))?;
    let lines = text.lines().map(serde_json::from_str::<Action>).collect::<std::result::Result<Vec<_>, _>>();
    let actions = lines.map_err(|e| damaged(url, &format!("it is not a version of a table ({e})")))?;
    let info = actions.iter().find_map(|action| action.commit_info.as_ref());
    let info = info.ok_or_else(|| damaged(url, "it does not say who wrote it"))?;
    let word = |key: &str| info.get(key).and_then(Value::as_str);
    let is_own = word("engineInfo").is_some_and(|engine| engine.starts_with(ENGINE)) || word(OWN_SHA256).is_some();
    let own = word(OWN_SHA256).unwrap_or_default();
    if is_own && Sha256Hex::of(text.replacen(&own_field(own), &own_field(""), 1).as_bytes()).0 != own {
        return Err(damaged(url, "its content is not what its own SHA-256 says"));
    }
    Ok(actions)
}

fn own_field(sha256: &str) -> String {
    format!("\"{OWN_SHA256}\":\"{sha256}\"")
}

/// Returns the time of a version, in milliseconds since 1970 in UTC. A later version never has an earlier time as long as
/// the newest night stays.
fn time_of(newest_night: &str, version: u64) -> Option<i64> {
    let date: chrono::NaiveDate = newest_night.parse().ok()?;
    let days = date.signed_duration_since(chrono::NaiveDate::default()).num_days();
    Some((days + 1) * DAY_MS + i64::try_from(version).ok()?)
}

fn partition(dt: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(DT.to_owned(), dt.to_owned())])
}

/// A line of a version. Exactly one field of it is set, or none if it is an action that does not concern the files.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Action {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit_info: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol: Option<Protocol>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta_data: Option<MetaData>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    add: Option<Add>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remove: Option<Remove>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Protocol {
    min_reader_version: u32,
    min_writer_version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetaData {
    id: String,
    #[serde(default)]
    name: Option<String>,
    format: Value,
    schema_string: String,
    partition_columns: Vec<String>,
    #[serde(default)]
    configuration: Map<String, Value>,
}

impl MetaData {
    fn of(name: &str, table_id: &str, schema_string: String) -> Self {
        let digest = Sha256Hex::of(format!("{table_id} {name}").as_bytes()).0;
        let part = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
        Self {
            id: [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"),
            name: Some(name.to_owned()),
            format: serde_json::json!({ "provider": "parquet", "options": {} }),
            schema_string,
            partition_columns: vec![DT.to_owned()],
            configuration: Map::new(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Add {
    path: String,
    partition_values: BTreeMap<String, String>,
    size: u64,
    modification_time: i64,
    data_change: bool,
    #[serde(default)]
    stats: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Remove {
    path: String,
    #[serde(default)]
    deletion_timestamp: Option<i64>,
    data_change: bool,
    #[serde(default)]
    extended_file_metadata: bool,
    #[serde(default)]
    partition_values: BTreeMap<String, String>,
    #[serde(default)]
    size: u64,
}

/// Returns the columns of a table as Delta writes them.
fn schema_string(schema: &SchemaRef) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Field<'a> {
        name: &'a str,
        r#type: &'static str,
        nullable: bool,
        metadata: Map<String, Value>,
    }
    #[derive(Serialize)]
    struct Struct<'a> {
        r#type: &'static str,
        fields: Vec<Field<'a>>,
    }
    let field = |name, r#type, nullable| Field { name, r#type, nullable, metadata: Map::new() };
    let of_files = schema.fields().iter().map(|f| field(f.name(), type_name(f.data_type()), f.is_nullable()));
    let fields = of_files.chain([field(DT, "date", true)]).collect();
    serde_json::to_string(&Struct { r#type: "struct", fields })
}

/// Returns Delta's name of a type. Published datasets have no other types than these.
fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "boolean",
        DataType::Int32 => "integer",
        DataType::Int64 => "long",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Utf8 => "string",
        _ => "binary",
    }
}

/// Returns the statistics of a file: its rows, and of each column the NULLs and the smallest and largest value, as far as
/// the footer has them for all row groups. Long strings are cut there, such that they remain bounds.
fn statistics(parquet: &ParquetFile, schema: &SchemaRef) -> String {
    let (mut least, mut most, mut nulls) = (Map::new(), Map::new(), Map::new());
    for field in schema.fields() {
        let chunks = (0..parquet.n_row_groups()).map(|group| {
            Some((parquet.column_chunk(group, field.name())?.statistics()?, parquet.row_group_rows(group)))
        });
        let Some(chunks) = chunks.collect::<Option<Vec<(&Statistics, u64)>>>() else {
            continue;
        };
        let n_null = chunks.iter().map(|(chunk, _)| chunk.null_count_opt()).sum::<Option<u64>>();
        nulls.extend(n_null.map(|n| (field.name().clone(), Value::from(n))));
        let with_values = chunks.iter().filter(|(chunk, rows)| chunk.null_count_opt() != Some(*rows));
        let bounds = with_values.map(|(chunk, _)| bounds(chunk)).collect::<Option<Vec<_>>>();
        if let Some((min, max)) = bounds.and_then(|all| all.into_iter().reduce(Bounds::wider)).map(Bounds::values) {
            least.insert(field.name().clone(), min);
            most.insert(field.name().clone(), max);
        }
    }
    let all = serde_json::json!({
        "numRecords": parquet.n_rows(), "minValues": least, "maxValues": most, "nullCount": nulls,
    });
    all.to_string()
}

/// The smallest and the largest value of a column.
enum Bounds<'a> {
    Strings(&'a str, &'a str),
    Numbers(i64, i64),
}

/// Returns the bounds of a column in a row group, or `None` if the footer does not have them.
fn bounds(chunk: &Statistics) -> Option<Bounds<'_>> {
    match chunk {
        Statistics::ByteArray(known) => {
            Some(Bounds::Strings(known.min_opt()?.as_utf8().ok()?, known.max_opt()?.as_utf8().ok()?))
        }
        Statistics::Int32(known) => Some(Bounds::Numbers((*known.min_opt()?).into(), (*known.max_opt()?).into())),
        Statistics::Int64(known) => Some(Bounds::Numbers(*known.min_opt()?, *known.max_opt()?)),
        _ => None,
    }
}

impl Bounds<'_> {
    /// Joins the bounds of two row groups. A column has one type, so they are of one kind.
    fn wider(self, other: Self) -> Self {
        match (self, other) {
            (Self::Strings(a, b), Self::Strings(c, d)) => Self::Strings(a.min(c), b.max(d)),
            (Self::Numbers(a, b), Self::Numbers(c, d)) => Self::Numbers(a.min(c), b.max(d)),
            (one, _) => one,
        }
    }

    fn values(self) -> (Value, Value) {
        match self {
            Self::Strings(min, max) => (min.into(), max.into()),
            Self::Numbers(min, max) => (min.into(), max.into()),
        }
    }
}
