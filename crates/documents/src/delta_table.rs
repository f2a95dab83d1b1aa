//! The files of a Delta table, as its log names them.
//!
//! The log is a folder of commits, numbered from 0 and written as JSON lines, and of checkpoints in Parquet, each of
//! which has the state at its version. The state at a version is the newest checkpoint up to it and the commits after
//! that. Files that a commit removed stay on the disk for a while, so that only the log tells which files count.
//!
//! Tables that need more of a reader than that are refused: rows that are marked as deleted inside of files, columns
//! that have other names in the files, and reader features that are not known here.

use std::collections::BTreeMap;

use nearprint_delta::{Add, Checkpoint, LogNames, LogState, commit_name, parse, unescaped};
use nearprint_fault::{Fault, Result, Words, foreign, key, words};
use nearprint_parquet::DELTA_LOG;
use nearprint_storage::{Folder, InputFile, Storage, bad_file, bad_format};

use super::found::{FoundFiles, FoundTable};
use super::reader::Format;
use crate::error::documents_missing;

/// Reader features that may be on, because it shows elsewhere whether the table uses them in a way that matters here.
const KNOWN_FEATURES: [&str; 4] = ["columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"];

/// Returns the files of a version of a table, or of the newest one. `below` are the names `COLUMN=VALUE` that lead from
/// the table to one of its partitions; without names, the files are those of the whole table.
///
/// # Errors
/// The log cannot be read or is not complete, the table has features that are not supported, it has no such partition
/// columns, a file that the log names is missing or has another size, or the log names a file where the storage's roots
/// do not allow it.
pub async fn live_files(storage: &Storage, url: &str, below: &[String], version: Option<u64>) -> Result<FoundFiles> {
    let root = storage.input(url)?;
    // The log may be a link.
    storage.input(root.join(DELTA_LOG).url())?;
    let (state, version) = state(&root, version).await?;
    refuse_unsupported(&state, url)?;
    // A table without metadata has no partitions.
    let partition_columns = state.metadata.map(|metadata| metadata.partition_columns).unwrap_or_default();
    let partition = partition(url, below, &partition_columns)?;
    let live: Vec<(&String, &Add)> = state.files.iter().filter(|(_, add)| is_in(add, &partition)).collect();
    let files = stat(storage, &root, &live).await?;
    let table = FoundTable { url: url.to_owned(), version, partition_columns };
    if files.is_empty() {
        let place = below.iter().fold(url.to_owned(), |place, name| format!("{place}/{name}"));
        return Err(documents_missing(place));
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

/// Reads a version of a table, or its newest one, and returns the version too.
async fn state(root: &Folder, version: Option<u64>) -> Result<(LogState, u64)> {
    let log = root.join(DELTA_LOG);
    let names = LogNames::of(log.names().await?);
    let no_version = |what: &str| damaged(root, format!("its log has no version {what}"));
    let newest =
        names.newest().ok_or_else(|| no_version("at all: name the folder that a writer of Delta tables made"))?;
    let version = version.unwrap_or(newest);
    if version > newest {
        return Err(Fault::config(
            "documents_version".to_owned(),
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
            return Err(damaged(root, words![what, ": name one with ", key("documents_version")]));
        }
        let commit = log.join(&commit_name(number));
        let gone = || damaged(root, format!("{} is gone", commit.url()));
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
    if let Some(path) = state.files.iter().find(|(_, add)| add.deletion_vector.is_some()).map(|(path, _)| path) {
        let what = format!("has deletion vectors, so its files hold rows that it deleted (the first is {path})");
        return refused(&what, "let its engine write the files anew, such as by REORG TABLE … APPLY (PURGE)");
    }
    Ok(())
}

/// Looks up the files that count. No place is accessed before all of them are known to be allowed. The folder that holds
/// the files of the table's own is listed once.
async fn stat(storage: &Storage, root: &Folder, live: &[(&String, &Add)]) -> Result<BTreeMap<String, InputFile>> {
    let (relative, elsewhere): (Vec<_>, Vec<_>) = live.iter().partition::<Vec<_>, _>(|(path, _)| is_below(path));
    let mut places = Vec::with_capacity(elsewhere.len());
    for (path, add) in elsewhere {
        let is_whole = path.contains("://") || path.starts_with('/');
        let whole = if is_whole { path.clone() } else { format!("{}/{path}", root.url()) };
        places.push((storage.file_of_table(root, &whole)?, path, add));
    }
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
        storage.refuse_links_outside([&file])?;
        files.insert(url, checked(file, path, add)?);
    }
    // Only clones of other tables have files with a whole path.
    for (place, path, add) in places {
        let file = place.find().await?.ok_or_else(|| gone(root, path))?;
        files.insert(file.url.clone(), checked(file, path, add)?);
    }
    Ok(files)
}

/// Returns whether a path of the log leads to a place below the table, whatever the table is.
fn is_below(path: &str) -> bool {
    !path.contains("://") && !path.starts_with('/') && path.split('/').all(|name| name != "..")
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
        return Err(bad_file(&file.url, reason));
    }
    if Format::of(path).is_none_or(|format| format.name != "Parquet") {
        return Err(bad_file(&file.url, "its Delta table has files that are not Parquet"));
    }
    Ok(file)
}

fn gone(root: &Folder, path: &str) -> Fault {
    damaged(root, format!("its log names {path}, which is gone: name a newer version, or restore the file"))
}

fn damaged(root: &Folder, reason: impl Into<Words>) -> Fault {
    bad_format(root.url(), words!["this is a Delta table, but ", reason.into()])
}

#[cfg(test)]
mod tests {
    use super::common_folder;

    #[test]
    fn the_folder_of_all_files_is_the_deepest_one() {
        let common = |paths: &[&str]| common_folder(paths.iter().copied());
        assert_eq!(common(&["dt=1/a/x", "dt=1/a/y"]), "dt=1/a");
        assert_eq!(common(&["dt=1/x", "dt=10/x"]), "");
        assert_eq!(common(&["dt=1/x"]), "dt=1");
        assert_eq!(common(&["x"]), "");
    }
}
