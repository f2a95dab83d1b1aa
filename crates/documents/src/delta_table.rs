//! The files of a Delta table, as its log names them.
//!
//! The log is a folder of commits, numbered from 0 and written as JSON lines, and of checkpoints in Parquet, each of
//! which has the state at its version. The state at a version is the newest checkpoint up to it and the commits after
//! that. Files that a commit removed stay on the disk for a while, so that only the log tells which files count.
//!
//! A deletion vector says which rows of a file do not count. Tables that need more of a reader are refused: columns that
//! have other names in the files, and reader features that are not known here.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt};
use nearprint_delta::{Action, Add, Checkpoint, LogNames, LogState, SIDECARS, commit_name, parse, path_of, unescaped};
use nearprint_fault::{Fault, Result, Words, foreign, key, words};
use nearprint_parquet::DELTA_LOG;
use nearprint_storage::{Folder, Storage, TableFormat, bad_file, bad_format};

use super::found::{FoundFiles, FoundTable};
use super::table_files::{
    NULL_PARTITION, TableFile, TableVersions, damaged, later_than, look_up, not_all_new, nothing_there, partition,
};

/// Reader features that may be on: rows and columns are read as they are meant with them, or it shows elsewhere that the
/// table uses them in a way that is not supported.
const KNOWN_FEATURES: [&str; 10] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
];

/// The number of deletion vectors that are read at once.
const VECTORS_AT_ONCE: usize = 16;

/// The number of commits that are read at once.
const COMMITS_AT_ONCE: usize = 16;

/// Returns the files of a version of a table, or of the newest one. `below` are the names `COLUMN=VALUE` that lead from
/// the table to one of its partitions; without names, the files are those of the whole table.
///
/// # Errors
/// The log cannot be read or is not complete, the table has features that are not supported, it has no such partition
/// columns, a file that the log names is missing or has another size, or the log names a file where the storage's roots
/// do not allow it.
pub async fn live_files(storage: &Storage, url: &str, below: &[String], versions: TableVersions) -> Result<FoundFiles> {
    let root = storage.input(url)?;
    // The log may be a link, and the folder of sidecars too.
    storage.input(root.join(DELTA_LOG).url())?;
    storage.input(root.join(DELTA_LOG).join(SIDECARS).url())?;
    let (mut state, version) = state(&root, versions.version, "documents_version").await?;
    refuse_unsupported(&state, url)?;
    let mut added = Added::default();
    if let Some(since) = versions.since {
        if since > version {
            return Err(later_than(url, "version", since, version));
        }
        let before = self::state(&root, Some(since), "documents_since").await?.0;
        state.files.retain(|path, _| !before.files.contains_key(path));
        added = Added::since(&root, since, version, &before).await?;
    }
    // A table without metadata has no partitions.
    let partition_columns = state.metadata.map(|metadata| metadata.partition_columns).unwrap_or_default();
    let known: Vec<&str> = partition_columns.iter().map(String::as_str).collect();
    // The log escapes special characters in names and values like a URL does.
    let partition = partition(url, (TableFormat::Delta, "partition column"), below, &known, unescaped)?;
    let live: Vec<(&String, &Add)> = state.files.iter().filter(|(_, add)| is_in(add, &partition.values)).collect();
    let rewrite = live.iter().find_map(|(path, _)| Some((path, added.version_of_rewrite(path)?)));
    if let (Some((path, version)), Some(since)) = (rewrite, versions.since) {
        let by = format!("version {version}");
        let older = version.checked_sub(1).filter(|&older| older > since);
        return Err(not_all_new(url, &by, path, older, version));
    }
    let named = live.into_iter().map(|(path, add)| async {
        let deleted_rows = match &add.deletion_vector {
            Some(vector) => Some(vector.rows(storage, &root, path).await?),
            None => None,
        };
        Ok::<_, Fault>(TableFile { path: path.clone(), bytes: add.size, deleted_rows })
    });
    let named: Vec<_> = named.collect();
    let named = futures::stream::iter(named).buffered(VECTORS_AT_ONCE).try_collect().await?;
    let files = look_up(storage, &root, TableFormat::Delta, named).await?;
    let table = FoundTable { url: url.to_owned(), partition_columns };
    if files.is_empty() {
        let value = |add, column: &String| Some((column.clone(), value_of(add, column)?.to_owned()));
        let values = |add| partition.values.keys().filter_map(|column| value(add, column)).collect();
        return Err(nothing_there(&root, &partition, versions.since, state.files.values().map(values).collect()));
    }
    tracing::info!(table = url, version, files = files.len(), "reads a Delta table");
    Ok(FoundFiles { files, unusable: BTreeMap::new(), table: Some(table) })
}

/// Returns whether a file has these values in the partition columns.
fn is_in(add: &Add, partition: &BTreeMap<String, String>) -> bool {
    partition.iter().all(|(column, wanted)| match value_of(add, column) {
        Some(value) => value == wanted,
        None => wanted == NULL_PARTITION,
    })
}

/// Returns the value of a file in a partition column. NULL may be written as an empty text.
fn value_of<'a>(add: &'a Add, column: &str) -> Option<&'a str> {
    add.partition_values.get(column).and_then(Option::as_deref).filter(|value| !value.is_empty())
}

/// Reads a version of a table, or its newest one, and returns the version too. `setting` is the key that names the version.
async fn state(root: &Folder, version: Option<u64>, setting: &'static str) -> Result<(LogState, u64)> {
    let log = root.join(DELTA_LOG);
    let names = LogNames::of(log.names().await?);
    let damaged = |reason: Words| damaged(root, TableFormat::Delta, reason);
    let no_version = |what: &str| damaged(format!("its log has no version {what}").into());
    let newest =
        names.newest().ok_or_else(|| no_version("at all: name the folder that a writer of Delta tables made"))?;
    let version = version.unwrap_or(newest);
    if version > newest {
        return Err(Fault::config(setting, format!("{} has no version {version}: the newest is {newest}", root.url())));
    }
    let (mut state, mut first) = (LogState::default(), 0);
    if let Some((at, parts)) = names.checkpoint(version) {
        state.apply(at, Checkpoint::read(&log, parts, false).await?.actions);
        first = at + 1;
    }
    for number in first..=version {
        if !names.commits.contains(&number) {
            let mut what = format!("its log has no version {number} any more, which version {version} needs");
            if let Some(checkpoint) = names.incomplete.range(number..=version).next_back() {
                what += &format!(", and the checkpoint of version {checkpoint} lacks a part");
            }
            let Some(whole) = names.newest_whole() else {
                return Err(damaged(format!("{what}: restore the log").into()));
            };
            what += &match *whole.end() == newest {
                true => format!("; versions from {} on are complete", whole.start()),
                false => format!("; versions {} to {} are complete", whole.start(), whole.end()),
            };
            return Err(damaged(words![what, ": name one with ", key(setting)]));
        }
        let commit = log.join(&commit_name(number));
        let gone = || damaged(format!("{} is gone", commit.url()).into());
        state.apply(number, actions(&commit).await?.ok_or_else(gone)?);
    }
    Ok((state, version))
}

/// Reads a commit. `None`: it is not there.
async fn actions(commit: &Folder) -> Result<Option<Vec<Action>>> {
    let Some(content) = commit.get().await? else { return Ok(None) };
    let bad = |(line, error)| {
        let reason = format!("line {line} is no action of a Delta table's log ({})", foreign(&error));
        bad_file(commit.url(), reason)
    };
    parse(&content).map(Some).map_err(bad)
}

/// The values of the partition columns of a file.
type PartitionValues = BTreeMap<String, String>;

/// The files that a table got since a version, by path.
#[derive(Debug, Default)]
struct Added(BTreeMap<String, AddedFile>);

#[derive(Debug)]
struct AddedFile {
    partition: PartitionValues,
    /// The version that wrote rows into the file which the table had before, as maintenance such as `OPTIMIZE` does.
    rewrite: Option<u64>,
}

impl Added {
    /// Looks into the commits after `since` up to a version. `before` is the state at `since`.
    async fn since(root: &Folder, since: u64, version: u64, before: &LogState) -> Result<Self> {
        let log = root.join(DELTA_LOG);
        let names = LogNames::of(log.names().await?);
        let there = names.commits.iter().filter(|&&number| number > since && number <= version);
        let commits = there.map(|&number| {
            let commit = log.join(&commit_name(number));
            async move { actions(&commit).await.map(|actions| (number, actions)) }
        });
        let commits: Vec<_> = commits.collect();
        let (mut added, mut n_read) = (Self::default(), 0);
        let mut commits = futures::stream::iter(commits).buffered(COMMITS_AT_ONCE);
        while let Some((number, actions)) = commits.try_next().await? {
            if let Some(actions) = actions {
                added.apply(number, &actions, before);
                n_read += 1;
            }
        }
        if n_read < version - since {
            tracing::warn!(
                "{}: its log has not all versions since {since} any more, so files that OPTIMIZE wrote in those count as added",
                root.url()
            );
        }
        Ok(added)
    }

    fn apply(&mut self, version: u64, actions: &[Action], before: &LogState) {
        let (mut earlier, mut later) = (BTreeSet::new(), BTreeSet::new());
        for remove in actions.iter().filter_map(|action| action.remove.as_ref()) {
            let path = path_of(&remove.path);
            match (before.files.get(&path), self.0.get(&path)) {
                (Some(add), _) => earlier.insert(values_of(add)),
                (None, Some(file)) if file.rewrite.is_some() => earlier.insert(file.partition.clone()),
                (None, Some(file)) => later.insert(file.partition.clone()),
                (None, None) => false,
            };
        }
        for add in actions.iter().filter_map(|action| action.add.as_ref()) {
            let partition = values_of(add);
            // Maintenance writes the rows of a partition into files of that partition. Its values may be written in another way.
            let may_have_earlier = earlier.contains(&partition) || !earlier.is_empty() && !later.contains(&partition);
            let rewrite = (!add.data_change && may_have_earlier).then_some(version);
            // A file that is added again, with a deletion vector or after it was removed, has the rows of before.
            self.0.entry(path_of(&add.path)).or_insert(AddedFile { partition, rewrite });
        }
    }

    fn version_of_rewrite(&self, path: &str) -> Option<u64> {
        self.0.get(path)?.rewrite
    }
}

/// Returns the values of the partition columns of a file, without those that are NULL.
fn values_of(add: &Add) -> PartitionValues {
    let values =
        add.partition_values.keys().filter_map(|column| Some((column.clone(), value_of(add, column)?.to_owned())));
    values.collect()
}

/// Refuses a table whose files alone do not tell its rows.
fn refuse_unsupported(state: &LogState, url: &str) -> Result<()> {
    let refused =
        |what: &str, remedy: &str| Err(bad_format(url.to_owned(), format!("the Delta table {what}: {remedy}")));
    const COPY: &str = "write the rows that count to a table or to Parquet files without it, and name these";
    let Some(protocol) = &state.protocol else {
        return Err(bad_file(url, "the log of the Delta table has no protocol"));
    };
    let version = protocol.min_reader_version;
    let mut features = protocol.reader_features.iter().flatten();
    let unknown = features.find(|feature| !KNOWN_FEATURES.contains(&feature.as_str()));
    if version > 3 {
        return refused(&format!("asks for reader version {version}, and 3 is the newest known"), COPY);
    }
    if let Some(feature) = unknown {
        return refused(&format!("asks for the reader feature '{feature}', which is not supported"), COPY);
    }
    let mapping = state.metadata.as_ref().and_then(|metadata| metadata.configuration.get("delta.columnMapping.mode"));
    if version > 1 && mapping.and_then(Option::as_deref).is_some_and(|mode| mode != "none") {
        return refused("has column mapping, so its files have other column names", COPY);
    }
    Ok(())
}
