//! The log of a Delta Lake table, as far as a published dataset needs it: whole files are added and removed.
//!
//! A version of the table is an object `_delta_log/NNNNNNNNNNNNNNNNNNNN.json`, one JSON action a line. It is created only
//! if it does not exist yet, by the same means as the store's commits. So of two writers of one version one wins, and
//! the other one reads what the winner wrote.
//!
//! Every tenth version gets a checkpoint, so that readers need not read those before it. A checkpoint follows its version,
//! and whoever finds it missing writes it. Nothing depends on one: the versions before it stay, and a checkpoint that is
//! damaged, or that another program wrote, is passed over.
//!
//! Invariants: a version of nearprint's bears its own SHA-256, and so does a checkpoint. It has no time of a clock: its
//! times follow from the nights and from its number, so the same change of the same version has the same bytes, whoever
//! writes it and when. A checkpoint depends on the versions up to its own, and on the release that writes it.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::{DataType, SchemaRef};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{ErrorKind, Fault, Result, one_line};
use nearprint_parquet::{DELTA_LOG, DT, ParquetFile, PublishedDataset};
use nearprint_storage::{Folder, Sha256Hex, date_of_day, day_of_date};
use parquet::file::statistics::Statistics;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::actions::{Action, Add, Metadata, Protocol, Remove, parse};
use crate::checkpoint::{Checkpoint, digest};
use crate::names::{LogNames, checkpoint_name, commit_name};
use crate::state::{LogState, path_of};

/// The number of versions that are read at once.
const READS_AT_ONCE: usize = 16;
/// The number of times that a file is read which others write again meanwhile.
const READ_ATTEMPTS: usize = 10;
/// A day in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The value of `engineInfo` in the versions that nearprint writes. It has no release, so that another release that completes
/// the tables writes the same bytes; earlier builds added theirs.
const ENGINE: &str = "nearprint";
/// The names that every version of nearprint's has for its own SHA-256.
const OWN_SHA256: &str = "nearprintSha256";
/// The versions whose numbers are multiples of this have a checkpoint, except the first.
const CHECKPOINT_VERSIONS: u64 = 10;
/// The object that names the newest checkpoint, for readers that do not list the log.
const LAST_CHECKPOINT: &str = "_last_checkpoint";

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

    fn of_add(path: String, add: &Add) -> Self {
        // A file without a date is of no night that a store has, which `check` reports. Statistics are optional.
        let dt = add.partition_values.get(DT).cloned().flatten().unwrap_or_default();
        Self { path, dt, bytes: add.size, statistics: add.stats.clone().unwrap_or_default() }
    }

    /// Returns the number of rows, if the log says it.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        serde_json::from_str::<Value>(&self.statistics).ok()?.get("numRecords")?.as_u64()
    }

    /// Returns the largest value of a column of integers, if the log says it.
    #[must_use]
    pub fn largest(&self, column: &str) -> Option<i64> {
        serde_json::from_str::<Value>(&self.statistics).ok()?.get("maxValues")?.get(column)?.as_i64()
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
    state: LogState,
    files: BTreeMap<String, TableFile>,
    /// The versions have actions that a checkpoint would lose. Other programs write such.
    has_more: bool,
    /// The newest checkpoint that is missing.
    due: Option<DueCheckpoint>,
}

#[derive(Debug, Clone)]
struct DueCheckpoint {
    version: u64,
    n_actions: usize,
    content: Bytes,
}

impl TableLog {
    /// Reads the log of a dataset's table below an output. A table that does not exist yet has no versions and no files.
    /// This takes one LIST, some requests for the newest checkpoint, and one GET for each version after it.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a version is missing or damaged; an error if the
    /// place does not answer.
    pub async fn open(output: &Folder, dataset: &'static PublishedDataset) -> Result<Self> {
        let mut log = Self::unread(output, dataset);
        let names = log.names().await?;
        log.begin_at_checkpoint(&names).await?;
        log.read(&names).await?;
        Ok(log)
    }

    /// Reads all versions of the log, and compares its newest checkpoint with them. This takes one GET for each version.
    ///
    /// # Errors
    /// The same as those of [`open`](Self::open), or [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the
    /// checkpoint is damaged.
    pub async fn open_whole(output: &Folder, dataset: &'static PublishedDataset) -> Result<Self> {
        let mut log = Self::unread(output, dataset);
        let names = log.names().await?;
        let own = log.own_checkpoint(&names, Unreadable::IsDamaged).await?;
        let (before, after): (BTreeSet<u64>, BTreeSet<u64>) =
            names.commits.iter().partition(|version| own.as_ref().is_some_and(|own| **version <= own.version));
        log.read(&LogNames { commits: before, checkpoints: names.checkpoints.clone(), ..LogNames::default() }).await?;
        if let Some(own) = own {
            let actions = log.state.actions();
            if log.n_versions != own.version + 1 || log.digest(&actions)? != own.sha256 {
                let place = log.table.join(DELTA_LOG).join(&checkpoint_name(own.version));
                return Err(damaged_checkpoint(place.url(), "it has not the state of its version"));
            }
        }
        log.read(&LogNames { commits: after, ..names }).await?;
        Ok(log)
    }

    fn unread(output: &Folder, dataset: &'static PublishedDataset) -> Self {
        Self {
            table: output.join(dataset.name),
            dataset,
            n_versions: 0,
            state: LogState::default(),
            files: BTreeMap::new(),
            has_more: false,
            due: None,
        }
    }

    /// Reads the versions that were written since.
    ///
    /// # Errors
    /// The same as those of [`open`](Self::open).
    pub async fn refresh(&mut self) -> Result<()> {
        let names = self.names().await?;
        self.read(&names).await
    }

    async fn names(&self) -> Result<LogNames> {
        Ok(LogNames::of(self.table.join(DELTA_LOG).names().await?))
    }

    /// Takes the state of nearprint's newest checkpoint, if there is one.
    async fn begin_at_checkpoint(&mut self, names: &LogNames) -> Result<()> {
        if let Some(own) = self.own_checkpoint(names, Unreadable::IsPassedOver).await? {
            self.replay(own.version, own.actions);
        }
        Ok(())
    }

    /// Returns nearprint's newest checkpoint whose version is there.
    async fn own_checkpoint(&self, names: &LogNames, unreadable: Unreadable) -> Result<Option<OwnCheckpoint>> {
        let log = self.table.join(DELTA_LOG);
        for (&version, parts) in names.checkpoints.iter().rev().filter(|(version, _)| names.commits.contains(version)) {
            let url = log.join(&checkpoint_name(version)).url().to_owned();
            let read = match Checkpoint::read(&log, parts, true).await {
                Ok(Checkpoint { own_sha256: None, .. }) => continue,
                Ok(Checkpoint { actions, own_sha256: Some(sha256) }) => match self.digest(&actions)? == sha256 {
                    true => Ok(OwnCheckpoint { version, actions, sha256 }),
                    false => Err("its content is not what its own SHA-256 says".to_owned()),
                },
                Err(error) if error.kind() == ErrorKind::BadData => Err(error.to_string()),
                Err(error) => return Err(error),
            };
            match (read, unreadable) {
                (Ok(own), _) => return Ok(Some(own)),
                (Err(reason), Unreadable::IsDamaged) => return Err(damaged_checkpoint(&url, &reason)),
                (Err(reason), Unreadable::IsPassedOver) => {
                    tracing::warn!(checkpoint = url, "{reason}: reads the versions before it");
                }
            }
        }
        Ok(None)
    }

    fn digest(&self, actions: &[Action]) -> Result<String> {
        digest(actions).map_err(|e| Fault::internal("table", e))
    }

    /// Reads the versions that are not read yet.
    async fn read(&mut self, names: &LogNames) -> Result<()> {
        let versions: Vec<u64> = names.commits.range(self.n_versions..).copied().collect();
        if let Some((wanted, _)) = (self.n_versions..).zip(&versions).find(|(wanted, there)| wanted != *there) {
            let place = self.place(wanted);
            return Err(damaged(place.url(), "this version of the table is gone"));
        }
        let last = versions.last().map(|newest| newest - newest % CHECKPOINT_VERSIONS).filter(|&version| version > 0);
        let places: Vec<(u64, Folder)> = versions.into_iter().map(|version| (version, self.place(version))).collect();
        let read = places.into_iter().map(|(version, place)| async move {
            let gone = || damaged(place.url(), "this version of the table is gone");
            let content = place.get().await?.ok_or_else(gone)?;
            Ok::<_, Fault>((version, commit(place.url(), &content)?))
        });
        let mut read = futures::stream::iter(read).buffered(READS_AT_ONCE);
        while let Some((version, commit)) = read.try_next().await? {
            self.has_more |= commit.has_more;
            self.replay(version, commit.actions);
            if Some(version) == last {
                let is_there = names.checkpoints.contains_key(&version);
                self.due = if is_there { None } else { self.checkpoint(version)? };
            }
        }
        Ok(())
    }

    fn replay(&mut self, version: u64, actions: Vec<Action>) {
        let paths = |action: &Action| {
            let of_add = action.add.iter().map(|add| path_of(&add.path));
            of_add.chain(action.remove.iter().map(|remove| path_of(&remove.path))).collect::<Vec<_>>()
        };
        let changed: Vec<String> = actions.iter().flat_map(paths).collect();
        debug_assert!(version >= self.n_versions, "versions are applied in their order, each once");
        self.state.apply(version, actions);
        for path in changed {
            match self.state.files.get(&path) {
                Some(add) => drop(self.files.insert(path.clone(), TableFile::of_add(path, add))),
                None => drop(self.files.remove(&path)),
            }
        }
        debug_assert_eq!(self.files.len(), self.state.files.len(), "each file of the state is listed, and no other");
        self.n_versions = version + 1;
    }

    /// Returns the checkpoint of the state, unless it would lose something.
    fn checkpoint(&self, version: u64) -> Result<Option<DueCheckpoint>> {
        if self.has_more || self.state.files.values().any(|add| add.deletion_vector.is_some()) {
            return Ok(None);
        }
        let actions = self.state.actions();
        Ok(Some(DueCheckpoint { version, n_actions: actions.len(), content: Checkpoint::encode(&actions)? }))
    }

    /// Writes the newest checkpoint that is missing. Writers that find the same one missing write the same, so it does
    /// not matter who is first, and a writer that is killed leaves it to the next.
    ///
    /// # Errors
    /// The checkpoint cannot be written. Nothing depends on it.
    pub async fn write_checkpoint(&mut self) -> Result<()> {
        let Some(DueCheckpoint { version, n_actions, content }) = self.due.take() else { return Ok(()) };
        let log = self.table.join(DELTA_LOG);
        log.join(&checkpoint_name(version)).put_if_absent(content).await?;
        let last = log.join(LAST_CHECKPOINT);
        let there = last.get().await?.and_then(|there| serde_json::from_slice::<Value>(&there).ok());
        // It is a hint only: of two writers at once, the one with the older checkpoint may come last.
        if there.and_then(|there| there.get("version")?.as_u64()).is_none_or(|there| there < version) {
            let content = serde_json::json!({ "version": version, "size": n_actions });
            last.put(content.to_string().into()).await?;
        }
        Ok(())
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

    /// Returns the files that were removed from the table and not added again, in the order of versions.
    #[must_use]
    pub fn removed(&self) -> Vec<RemovedFile> {
        let removed = self.state.removed.iter();
        let mut removed: Vec<RemovedFile> =
            removed.map(|(path, (version, _))| RemovedFile { path: path.clone(), version: *version }).collect();
        removed.sort_by_key(|removed| removed.version);
        removed
    }

    /// Writes the next version. Returns `false` if another writer was faster: read it, and look again what to change.
    /// `newest_night` is the date of the store's newest night. All times in the version are the end of that night, in
    /// UTC, and as many milliseconds as there were versions before.
    ///
    /// # Errors
    /// The version cannot be written, or it is unknown whether it was.
    pub async fn write(&self, change: &TableChange, newest_night: &str, table_id: &str) -> Result<bool> {
        debug_assert!(!change.is_empty(), "a version without a change would grow the log at every run");
        let content = self.encode(change, newest_night, table_id)?;
        self.place(self.n_versions).put_if_absent(content).await
    }

    fn place(&self, version: u64) -> Folder {
        self.table.join(DELTA_LOG).join(&commit_name(version))
    }

    fn encode(&self, change: &TableChange, newest_night: &str, table_id: &str) -> Result<Bytes> {
        let internal = |reason: String| Fault::internal("table", reason);
        let time = time_of(newest_night, self.n_versions)
            .ok_or_else(|| internal(format!("'{newest_night}' is not a date")))?;
        let nights = change.added.iter().map(|file| &file.dt).chain(change.removed.iter().filter_map(|path| {
            let removed = self.files.get(path)?;
            Some(&removed.dt)
        }));
        let nights: Vec<&str> = nights.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
        let info = serde_json::json!({
            "timestamp": time,
            "operation": "WRITE",
            "operationParameters": { "nights": nights.join(",") },
            "engineInfo": ENGINE,
            OWN_SHA256: "",
        });
        let mut actions = vec![Action { commit_info: Some(info), ..Action::default() }];
        if self.n_versions == 0 {
            let protocol = Protocol { min_reader_version: 1, min_writer_version: 2, reader_features: None };
            actions.push(Action::protocol(protocol));
        }
        let schema = schema_string(self.dataset.schema).map_err(|e| internal(e.to_string()))?;
        if self.state.metadata.as_ref().map(|metadata| &metadata.schema_string) != Some(&schema) {
            actions.push(Action::metadata(table_metadata(self.dataset.name, table_id, schema)));
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
                tags: BTreeMap::new(),
            };
            actions.push(Action::remove(remove));
        }
        for file in &change.added {
            let add = Add {
                path: file.path.clone(),
                partition_values: partition(&file.dt),
                size: file.bytes,
                modification_time: time,
                data_change: true,
                stats: Some(file.statistics.clone()),
                deletion_vector: None,
            };
            actions.push(Action::add(add));
        }
        let lines: std::result::Result<Vec<String>, _> = actions.iter().map(serde_json::to_string).collect();
        let mut content = lines.map_err(|e| internal(e.to_string()))?.join("\n");
        content.push('\n');
        let own = Sha256Hex::of(content.as_bytes()).0;
        Ok(Bytes::from(content.replacen(&own_field(""), &own_field(&own), 1)))
    }
}

fn damaged(url: &str, reason: &str) -> Fault {
    let remedy = "move the folder `_delta_log` away and run any date again, which writes it anew from the store";
    Fault::bad_data(url, format!("{}: {remedy}", one_line(reason)))
}

/// The treatment of a checkpoint of nearprint's that cannot be read.
#[derive(Debug, Clone, Copy)]
enum Unreadable {
    IsDamaged,
    IsPassedOver,
}

/// A checkpoint of nearprint's that has the digest that it bears.
struct OwnCheckpoint {
    version: u64,
    actions: Vec<Action>,
    sha256: String,
}

fn damaged_checkpoint(url: &str, reason: &str) -> Fault {
    let remedy = "delete this checkpoint and `_last_checkpoint` beside it, which nothing depends on";
    Fault::bad_data(url, format!("{}: {remedy}", one_line(reason)))
}

/// A version that was read.
struct Commit {
    actions: Vec<Action>,
    /// Another program wrote it, and it has more than added and removed files.
    has_more: bool,
}

/// Parses a version. A version of nearprint's must have the SHA-256 that it bears; those of other programs have none.
fn commit(url: &str, content: &[u8]) -> Result<Commit> {
    let text = std::str::from_utf8(content).map_err(|_| damaged(url, "it is not UTF-8"))?;
    let actions = parse(content).map_err(|(_, e)| damaged(url, &format!("it is not a version of a table ({e})")))?;
    let info = actions.iter().find_map(|action| action.commit_info.as_ref());
    let info = info.ok_or_else(|| damaged(url, "it does not say who wrote it"))?;
    let word = |key: &str| info.get(key).and_then(Value::as_str);
    let is_own = word("engineInfo").is_some_and(|engine| engine.starts_with(ENGINE)) || word(OWN_SHA256).is_some();
    // A version of nearprint's without a digest has not the one that it must have.
    let own = word(OWN_SHA256).unwrap_or_default();
    if is_own && Sha256Hex::of(text.replacen(&own_field(own), &own_field(""), 1).as_bytes()).0 != own {
        return Err(damaged(url, "its content is not what its own SHA-256 says"));
    }
    let is_known = |a: &Action| a.commit_info.is_some() || a.add.is_some() || a.remove.is_some();
    let has_more = !is_own && !actions.iter().all(is_known);
    Ok(Commit { actions, has_more })
}

fn own_field(sha256: &str) -> String {
    format!("\"{OWN_SHA256}\":\"{sha256}\"")
}

/// Returns the time of a version, in milliseconds since 1970 in UTC. A later version never has an earlier time as long as
/// the newest night stays.
fn time_of(newest_night: &str, version: u64) -> Option<i64> {
    let day = i64::from(day_of_date(newest_night)?);
    Some((day + 1) * DAY_MS + i64::try_from(version).ok()?)
}

fn partition(dt: &str) -> BTreeMap<String, Option<String>> {
    BTreeMap::from([(DT.to_owned(), Some(dt.to_owned()))])
}

/// Returns the metadata of a table. Its identity follows from that of the store.
fn table_metadata(name: &str, table_id: &str, schema_string: String) -> Metadata {
    let digest = Sha256Hex::of(format!("{table_id} {name}").as_bytes()).0;
    // A digest has 64 digits.
    let part = |from: usize, to: usize| &digest[from..to];
    Metadata {
        id: [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"),
        name: Some(name.to_owned()),
        format: serde_json::json!({ "provider": "parquet", "options": {} }),
        schema_string,
        partition_columns: vec![DT.to_owned()],
        configuration: BTreeMap::new(),
    }
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
        DataType::Date32 => "date",
        _ => "binary",
    }
}

/// Returns the statistics of a file: its rows, and of each column the NULLs, as far as the footer has them for all row
/// groups. Columns of integers and dates also have the smallest and the largest value. Strings have none: versions of a table are
/// never deleted, and so they must not name documents, which a store may have to forget.
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
        let bounds = with_values.map(|(chunk, _)| bounds(chunk)).collect::<Option<Vec<(i64, i64)>>>();
        let wider = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
        if let Some((min, max)) = bounds.and_then(|all| all.into_iter().reduce(wider)) {
            least.insert(field.name().clone(), bound(field.data_type(), min));
            most.insert(field.name().clone(), bound(field.data_type(), max));
        }
    }
    let all = serde_json::json!({
        "numRecords": parquet.n_rows(), "minValues": least, "maxValues": most, "nullCount": nulls,
    });
    all.to_string()
}

/// Returns a bound of a column as the log has it: a date as text.
fn bound(data_type: &DataType, bound: i64) -> Value {
    let date = i32::try_from(bound).ok().filter(|_| *data_type == DataType::Date32).and_then(date_of_day);
    date.map_or_else(|| bound.into(), Value::from)
}

/// Returns the bounds of a column of integers or dates in a row group, or `None` if the footer does not have them.
fn bounds(chunk: &Statistics) -> Option<(i64, i64)> {
    match chunk {
        Statistics::Int32(known) => Some(((*known.min_opt()?).into(), (*known.max_opt()?).into())),
        Statistics::Int64(known) => Some((*known.min_opt()?, *known.max_opt()?)),
        _ => None,
    }
}
