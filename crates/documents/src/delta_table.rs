//! The files of a Delta table, as its log names them.
//!
//! The log is a folder of commits, numbered from 0 and written as JSON lines, and of checkpoints in Parquet, each of
//! which has the state at its version. The state at a version is the newest checkpoint up to it and the commits after
//! that. Files that a commit removed stay on the disk for a while, so that only the log tells which files count.
//!
//! A deletion vector says which rows of a file do not count. Tables that need more of a reader are refused: columns that
//! have other names in the files, and reader features that are not known here.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use nearprint_delta::{Add, Checkpoint, LogNames, LogState, SIDECARS, commit_name, parse, unescaped};
use nearprint_fault::{Fault, Result, Words, foreign, key, words};
use nearprint_parquet::DELTA_LOG;
use nearprint_storage::{Folder, Storage, TableFormat, bad_file, bad_format, known_scheme};

use super::found::{FoundFiles, FoundTable};
use super::table_files::{TableFile, TableVersions, damaged, look_up, nothing_there};

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
    if let Some(since) = versions.since {
        if since > version {
            let reason = format!("{url}: version {since} is later than version {version}, which is read");
            return Err(Fault::config("documents_since".to_owned(), reason));
        }
        let before = self::state(&root, Some(since), "documents_since").await?.0;
        state.files.retain(|path, _| !before.files.contains_key(path));
    }
    // A table without metadata has no partitions.
    let partition_columns = state.metadata.map(|metadata| metadata.partition_columns).unwrap_or_default();
    let partition = partition(url, below, &partition_columns)?;
    let live: Vec<(&String, &Add)> = state.files.iter().filter(|(_, add)| is_in(add, &partition)).collect();
    let named = live.into_iter().map(|(path, add)| async {
        let deleted_rows = match &add.deletion_vector {
            Some(vector) => Some(vector.rows(storage, &root, path).await?),
            None => None,
        };
        Ok::<_, Fault>(TableFile { path: known_scheme(path), bytes: add.size, deleted_rows })
    });
    let named: Vec<_> = named.collect();
    let named = futures::stream::iter(named).buffered(VECTORS_AT_ONCE).try_collect().await?;
    let files = look_up(storage, &root, TableFormat::Delta, named).await?;
    let table = FoundTable { url: url.to_owned(), partition_columns };
    if files.is_empty() {
        return Err(nothing_there(&root, below, versions));
    }
    tracing::info!(table = url, version, files = files.len(), "reads a Delta table");
    Ok(FoundFiles { files, unusable: BTreeMap::new(), table: Some(table) })
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
            Err(Fault::config(
                "documents".to_owned(),
                format!(
                    "{url} is a Delta table without the partition column '{column}' ({known}): name the table itself, one table a \
                     night with {{dt}} in its path, or a table that is partitioned by '{column}'"
                ),
            ))
        }
    }
}

/// Returns whether a file has these values in the partition columns.
fn is_in(add: &Add, partition: &BTreeMap<String, String>) -> bool {
    let value = |column: &str| add.partition_values.get(column).and_then(Option::as_deref);
    partition.iter().all(|(column, wanted)| value(column) == Some(wanted))
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
        return Err(Fault::config(
            setting.to_owned(),
            format!("{} has no version {version}: the newest is {newest}", root.url()),
        ));
    }
    let (mut state, mut first) = (LogState::default(), 0);
    if let Some((at, parts)) = names.checkpoint(version) {
        state.apply(at, Checkpoint::read(&log, parts, false).await?.actions);
        first = at + 1;
    }
    for number in first..=version {
        if !names.commits.contains(&number) {
            let least = names.first_whole();
            let from = least.map_or(String::new(), |least| format!("; versions from {least} on are complete"));
            let what = format!("its log has no version {number} any more, which version {version} needs{from}");
            return Err(damaged(words![what, ": name one with ", key(setting)]));
        }
        let commit = log.join(&commit_name(number));
        let gone = || damaged(format!("{} is gone", commit.url()).into());
        let content = commit.get().await?.ok_or_else(gone)?;
        let actions = parse(&content).map_err(|(line, error)| {
            let reason = format!("line {line} is no action of a Delta table's log ({})", foreign(&error));
            bad_file(commit.url(), reason)
        })?;
        state.apply(number, actions);
    }
    Ok((state, version))
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
