//! The files of a Delta table, as its log names them.
//!
//! The log is a folder of commits, numbered from 0 and written as JSON lines, and of checkpoints in Parquet, each of
//! which has the state at its version. The state at a version is the newest checkpoint up to it and the commits after
//! that. Files that a commit removed stay on the disk for a while, so that only the log tells which files count.
//!
//! Tables that need more of a reader than that are refused: rows that are marked as deleted inside of files, columns
//! that have other names in the files, and reader features that are not known here.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{Int32Type, Int64Type};
use futures::TryStreamExt;
use nearprint_storage::{Folder, InputFile, Storage};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::found::{Found, FoundTable};
use super::reader::Format;
use crate::error::{DatasetError, Result};
use crate::parquet_file::ParquetFile;
use crate::published::DELTA_LOG;
use crate::table_log::version_digits;

/// Reader features that may be on, because it shows elsewhere whether the table uses them in a way that matters here.
const KNOWN_FEATURES: [&str; 4] = ["columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"];

/// Returns the files of a version of a table, or of the newest one. `below` are the names `COLUMN=VALUE` that lead from
/// the table to one of its partitions; without names, the files are those of the whole table.
///
/// # Errors
/// The log cannot be read or is not complete, the table has features that are not supported, it has no such partition
/// columns, or a file that the log names is missing or has another size.
pub async fn live_files(storage: &Storage, url: &str, below: &[String], version: Option<u64>) -> Result<Found> {
    let root = storage.folder(url)?;
    let (state, version) = State::read(&root, version).await?;
    state.refuse_unsupported(url)?;
    let partition = partition(url, below, &state.partition_columns)?;
    let live: Vec<(&String, &Add)> = state.files.iter().filter(|(_, add)| add.is_in(&partition)).collect();
    let files = stat(storage, &root, &live).await?;
    let table = FoundTable { url: url.to_owned(), version, partition_columns: state.partition_columns.clone() };
    if files.is_empty() {
        let place = below.iter().fold(url.to_owned(), |place, name| format!("{place}/{name}"));
        return Err(DatasetError::DocumentsMissing { url: place });
    }
    tracing::info!(table = url, version, files = files.len(), "reads a Delta table");
    Ok(Found { files, unusable: BTreeMap::new(), table: Some(table) })
}

/// Parses the names of a partition's folder. The log escapes special characters in them like a URL does.
fn partition(url: &str, below: &[String], columns: &[String]) -> Result<BTreeMap<String, String>> {
    let parsed = below.iter().filter_map(|name| name.split_once('='));
    let parsed: BTreeMap<String, String> =
        parsed.map(|(column, value)| (unescaped(column), unescaped(value))).collect();
    match parsed.keys().find(|column| !columns.contains(column)) {
        None => Ok(parsed),
        Some(column) => {
            let known = if columns.is_empty() { "it has none".to_owned() } else { columns.join(", ") };
            Err(DatasetError::Config {
                key: "documents".to_owned(),
                reason: format!(
                    "{url} is a Delta table without the partition column '{column}' ({known}): name the table itself, one table a \
                     night with {{dt}} in its path, or a table that is partitioned by '{column}'"
                ),
            })
        }
    }
}

/// The files that a table has at a version, and what a reader has to know of it.
#[derive(Debug, Default)]
struct State {
    /// The files by path, as it stands in the log, unescaped.
    files: BTreeMap<String, Add>,
    min_reader_version: i64,
    reader_features: Vec<String>,
    partition_columns: Vec<String>,
    configuration: BTreeMap<String, Option<String>>,
}

/// A line of a commit. Actions that say nothing about files are left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Action {
    add: Option<Add>,
    remove: Option<Remove>,
    protocol: Option<Protocol>,
    #[serde(rename = "metaData")]
    metadata: Option<Metadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Add {
    path: String,
    #[serde(default)]
    partition_values: BTreeMap<String, Option<String>>,
    size: u64,
    #[serde(default)]
    deletion_vector: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Remove {
    path: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Protocol {
    min_reader_version: i64,
    #[serde(default)]
    reader_features: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    partition_columns: Vec<String>,
    #[serde(default)]
    configuration: BTreeMap<String, Option<String>>,
}

impl Add {
    /// Returns whether the file has these values in the partition columns.
    fn is_in(&self, partition: &BTreeMap<String, String>) -> bool {
        let value = |column: &str| self.partition_values.get(column).and_then(Option::as_deref);
        partition.iter().all(|(column, wanted)| value(column) == Some(wanted))
    }
}

impl State {
    /// Reads a version of the table, or its newest one, and returns the version too.
    async fn read(root: &Folder, version: Option<u64>) -> Result<(Self, u64)> {
        let log = root.join(DELTA_LOG);
        let names = LogNames::of(log.names().await?);
        let no_version = |what: &str| damaged(root, format!("its log has no version {what}"));
        let newest =
            names.newest().ok_or_else(|| no_version("at all: name the folder that a writer of Delta tables made"))?;
        let version = version.unwrap_or(newest);
        if version > newest {
            return Err(DatasetError::Config {
                key: "documents_version".to_owned(),
                reason: format!("{} has no version {version}: the newest is {newest}", root.url()),
            });
        }
        let (mut state, first) = match names.checkpoint(version) {
            Some((at, parts)) => (Self::of_checkpoint(&log, parts).await?, at + 1),
            None => (Self::default(), 0),
        };
        for number in first..=version {
            if !names.commits.contains(&number) {
                let least = names.first_whole();
                let from = least.map_or(String::new(), |least| format!("; versions from {least} on are complete"));
                return Err(no_version(&format!(
                    "{number} any more, which version {version} needs{from}: name one with `documents_version`"
                )));
            }
            let commit = log.join(&format!("{number:020}.json"));
            let gone = || damaged(root, format!("{} is gone", commit.url()));
            state.apply_commit(commit.url(), &commit.get().await?.ok_or_else(gone)?)?;
        }
        Ok((state, version))
    }

    /// Applies the actions of a commit, which have no order among each other: a path that is both removed and added is
    /// added.
    fn apply_commit(&mut self, url: &str, content: &[u8]) -> Result<()> {
        let lines = (1..).zip(content.split(|&byte| byte == b'\n')).filter(|(_, line)| !line.trim_ascii().is_empty());
        let mut added = Vec::new();
        for (number, line) in lines {
            let action: Action = serde_json::from_slice(line).map_err(|e| {
                DatasetError::bad_file(url, format!("line {number} is no action of a Delta table's log ({e})"))
            })?;
            if let Some(remove) = action.remove {
                self.files.remove(&unescaped(&remove.path));
            }
            added.extend(action.add);
            if let Some(protocol) = action.protocol {
                self.min_reader_version = protocol.min_reader_version;
                self.reader_features = protocol.reader_features.unwrap_or_default();
            }
            if let Some(metadata) = action.metadata {
                self.partition_columns = metadata.partition_columns;
                self.configuration = metadata.configuration;
            }
        }
        self.files.extend(added.into_iter().map(|add| (unescaped(&add.path), add)));
        Ok(())
    }

    async fn of_checkpoint(log: &Folder, parts: &BTreeSet<String>) -> Result<Self> {
        const COLUMNS: [&str; 8] = [
            "add.path",
            "add.partitionValues",
            "add.size",
            "add.deletionVector",
            "protocol.minReaderVersion",
            "protocol.readerFeatures",
            "metaData.partitionColumns",
            "metaData.configuration",
        ];
        let mut state = Self::default();
        for part in parts {
            let parquet = ParquetFile::open(log.join(part).file().await?).await?;
            let mut batches = parquet.stream(parquet.whole(&COLUMNS))?;
            while let Some(batch) = batches.try_next().await? {
                state.apply_checkpoint(&batch);
            }
        }
        Ok(state)
    }

    fn apply_checkpoint(&mut self, batch: &RecordBatch) {
        let action = |name: &str| batch.column_by_name(name).and_then(|column| column.as_struct_opt());
        let (adds, protocols, metadata) = (action("add"), action("protocol"), action("metaData"));
        for row in 0..batch.num_rows() {
            let at = |found: Option<&StructArray>| found.filter(|found| found.is_valid(row)).cloned();
            if let Some(add) = at(adds)
                && let Some(path) = text(&add, "path", row)
            {
                let deletion_vector =
                    add.column_by_name("deletionVector").filter(|v| v.is_valid(row)).map(|_| IgnoredAny);
                let size = integer(&add, "size", row).and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
                let partition_values = map(&add, "partitionValues", row);
                self.files.insert(unescaped(&path), Add { path, partition_values, size, deletion_vector });
            }
            if let Some(protocol) = at(protocols) {
                self.min_reader_version = integer(&protocol, "minReaderVersion", row).unwrap_or_default();
                self.reader_features = texts(&protocol, "readerFeatures", row);
            }
            if let Some(metadata) = at(metadata) {
                self.partition_columns = texts(&metadata, "partitionColumns", row);
                self.configuration = map(&metadata, "configuration", row);
            }
        }
    }

    /// Refuses a table whose files alone do not tell its rows.
    fn refuse_unsupported(&self, url: &str) -> Result<()> {
        let refused = |what: &str, remedy: &str| {
            Err(DatasetError::BadFormat { file: url.to_owned(), reason: format!("the Delta table {what}: {remedy}") })
        };
        const COPY: &str = "write the rows that count to a table or to Parquet files without it, and name these";
        let version = self.min_reader_version;
        if version == 0 {
            return Err(DatasetError::bad_file(url, "the log of the Delta table has no protocol"));
        }
        let unknown = self.reader_features.iter().find(|feature| !KNOWN_FEATURES.contains(&feature.as_str()));
        if version > 3 {
            return refused(&format!("asks for reader version {version}, and 3 is the newest known"), COPY);
        }
        if let Some(feature) = unknown {
            return refused(&format!("asks for the reader feature '{feature}', which is not supported"), COPY);
        }
        let mapping = self.configuration.get("delta.columnMapping.mode").and_then(Option::as_deref);
        if version > 1 && mapping.is_some_and(|mode| mode != "none") {
            return refused("has column mapping, so its files have other column names", COPY);
        }
        if let Some(path) = self.files.iter().find(|(_, add)| add.deletion_vector.is_some()).map(|(path, _)| path) {
            let what = format!("has deletion vectors, so its files hold rows that it deleted (the first is {path})");
            return refused(&what, "let its engine write the files anew, such as by REORG TABLE … APPLY (PURGE)");
        }
        Ok(())
    }
}

/// The names in a log.
#[derive(Debug, Default)]
struct LogNames {
    commits: BTreeSet<u64>,
    /// The files of each complete checkpoint, by version.
    checkpoints: BTreeMap<u64, BTreeSet<String>>,
}

impl LogNames {
    fn of(names: Vec<String>) -> Self {
        let mut found = Self::default();
        let mut several: BTreeMap<(u64, u64), BTreeSet<String>> = BTreeMap::new();
        for name in names {
            let parts: Vec<&str> = name.split('.').collect();
            match parts[..] {
                [at, "json"] => found.commits.extend(version_digits(at)),
                [at, "checkpoint", "parquet"] => {
                    let version = version_digits(at).into_iter();
                    found.checkpoints.extend(version.map(|version| (version, BTreeSet::from([name.clone()]))));
                }
                [at, "checkpoint", part, of, "parquet"] => {
                    if let (Some(version), Some(_), Some(of)) = (version_digits(at), number(part), number(of)) {
                        several.entry((version, of)).or_default().insert(name.clone());
                    }
                }
                _ => {}
            }
        }
        for ((version, of), parts) in several {
            if parts.len() as u64 == of {
                found.checkpoints.entry(version).or_insert(parts);
            }
        }
        found
    }

    fn newest(&self) -> Option<u64> {
        self.commits.last().copied().max(self.checkpoints.keys().last().copied())
    }

    /// Returns the newest checkpoint that is not newer than a version.
    fn checkpoint(&self, version: u64) -> Option<(u64, &BTreeSet<String>)> {
        self.checkpoints.range(..=version).next_back().map(|(version, parts)| (*version, parts))
    }

    /// Returns the oldest version that can be read.
    fn first_whole(&self) -> Option<u64> {
        self.commits.first().filter(|first| **first == 0).or_else(|| self.checkpoints.keys().next()).copied()
    }
}

/// Parses a number that consists of digits alone.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

/// Looks up the files that count. The folder that holds all of them is listed once.
async fn stat(storage: &Storage, root: &Folder, live: &[(&String, &Add)]) -> Result<BTreeMap<String, InputFile>> {
    let (relative, elsewhere): (Vec<_>, Vec<_>) =
        live.iter().partition::<Vec<_>, _>(|(path, _)| !path.contains("://") && !path.starts_with('/'));
    let common = common_folder(relative.iter().map(|(path, _)| path.as_str()));
    let place = if common.is_empty() { root.clone() } else { root.join(&common) };
    let mut listed: BTreeMap<String, InputFile> = BTreeMap::new();
    if !relative.is_empty() {
        let listing = place.files_below().await?;
        listed.extend(listing.files.into_iter().map(|file| (file.url.clone(), file)));
    }
    let mut files = BTreeMap::new();
    for (path, add) in relative {
        let url = root.join(path).url().to_owned();
        let file = listed.remove(&url).ok_or_else(|| gone(root, path))?;
        files.insert(url, checked(file, path, add)?);
    }
    // Only clones of other tables have files with a whole path.
    for (path, add) in elsewhere {
        let file = storage.folder(path)?.find().await?.ok_or_else(|| gone(root, path))?;
        files.insert(file.url.clone(), checked(file, path, add)?);
    }
    Ok(files)
}

/// Returns the folder that holds all paths, without a slash at its end.
fn common_folder<'a>(mut paths: impl Iterator<Item = &'a str>) -> String {
    let folder = |path: &'a str| path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let Some(first) = paths.next() else { return String::new() };
    let mut common: Vec<&str> = folder(first).split('/').collect();
    for path in paths {
        let same = common.iter().zip(folder(path).split('/')).take_while(|(a, b)| *a == b).count();
        common.truncate(same);
    }
    common.join("/")
}

fn checked(file: InputFile, path: &str, add: &Add) -> Result<InputFile> {
    if file.size != add.size {
        let reason = format!("the log of its Delta table says that it has {} bytes, it has {}", add.size, file.size);
        return Err(DatasetError::bad_file(&file.url, reason));
    }
    if Format::of(path).is_none_or(|format| format.name != "Parquet") {
        return Err(DatasetError::bad_file(&file.url, "its Delta table has files that are not Parquet"));
    }
    Ok(file)
}

fn gone(root: &Folder, path: &str) -> DatasetError {
    damaged(root, format!("its log names {path}, which is gone: name a newer version, or restore the file"))
}

fn damaged(root: &Folder, reason: String) -> DatasetError {
    DatasetError::BadFormat { file: root.url().to_owned(), reason: format!("this is a Delta table, but {reason}") }
}

/// Replaces each `%` and two hex digits with the byte that they stand for.
fn unescaped(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let coded = path.get(at + 1..at + 3).filter(|_| byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(coded.unwrap_or(byte));
        at += if coded.is_some() { 3 } else { 1 };
    }
    String::from_utf8(plain).unwrap_or_else(|_| path.to_owned())
}

fn text(of: &StructArray, name: &str, row: usize) -> Option<String> {
    let values = of.column_by_name(name)?.as_string_opt::<i32>()?;
    values.is_valid(row).then(|| values.value(row).to_owned())
}

fn integer(of: &StructArray, name: &str, row: usize) -> Option<i64> {
    let values = of.column_by_name(name).filter(|values| values.is_valid(row))?;
    let long = values.as_primitive_opt::<Int64Type>().map(|values| values.value(row));
    long.or_else(|| values.as_primitive_opt::<Int32Type>().map(|values| values.value(row).into()))
}

fn texts(of: &StructArray, name: &str, row: usize) -> Vec<String> {
    let list = of.column_by_name(name).filter(|list| list.is_valid(row)).and_then(|list| list.as_list_opt::<i32>());
    let values = list.map(|list| list.value(row));
    let values = values.as_ref().and_then(|values| values.as_string_opt::<i32>());
    values.into_iter().flatten().flatten().map(str::to_owned).collect()
}

fn map(of: &StructArray, name: &str, row: usize) -> BTreeMap<String, Option<String>> {
    let map = of.column_by_name(name).filter(|map| map.is_valid(row)).and_then(|map| map.as_map_opt());
    let entries = map.map(|map| map.value(row));
    let columns = entries.as_ref().and_then(|entries| {
        let [keys, values] = entries.columns() else { return None };
        Some((keys.as_string_opt::<i32>()?, values.as_string_opt::<i32>()?))
    });
    let pairs = columns.into_iter().flat_map(|(keys, values)| keys.iter().zip(values.iter()));
    pairs.filter_map(|(key, value)| Some((key?.to_owned(), value.map(str::to_owned)))).collect()
}

#[cfg(test)]
mod tests {
    use super::{LogNames, common_folder, unescaped};

    #[test]
    fn percent_escapes_are_bytes_of_the_path_and_stray_percent_signs_are_themselves() {
        assert_eq!(unescaped("dt=2026-11-20/part%20%C3%A9.parquet"), "dt=2026-11-20/part é.parquet");
        for plain in ["100%", "%zz", "%é", "a%2", ""] {
            assert_eq!(unescaped(plain), plain);
        }
    }

    #[test]
    fn a_checkpoint_with_a_part_missing_does_not_count() {
        let names = |all: &[&str]| LogNames::of(all.iter().map(|name| (*name).to_owned()).collect());
        let one = "00000000000000000002.checkpoint.0000000001.0000000002.parquet";
        let two = "00000000000000000002.checkpoint.0000000002.0000000002.parquet";
        assert_eq!(names(&[one]).newest(), None);
        assert_eq!(
            names(&[one, two, "_last_checkpoint"]).checkpoint(7).map(|(at, parts)| (at, parts.len())),
            Some((2, 2))
        );
        assert_eq!(names(&["00000000000000000003.json", one]).newest(), Some(3));
        assert_eq!(names(&["00000000000000000003.crc", "x.json", "+3.json", "3.json"]).newest(), None);
    }

    #[test]
    fn the_folder_of_all_files_is_the_deepest_one() {
        let common = |paths: &[&str]| common_folder(paths.iter().copied());
        assert_eq!(common(&["dt=1/a/x", "dt=1/a/y"]), "dt=1/a");
        assert_eq!(common(&["dt=1/x", "dt=10/x"]), "");
        assert_eq!(common(&["dt=1/x"]), "dt=1");
        assert_eq!(common(&["x"]), "");
    }
}
