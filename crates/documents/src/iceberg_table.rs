//! The files of an Iceberg table, as its metadata names them.
//!
//! The newest file of metadata below the table counts. Only a catalog knows for certain which one that is, so the place of
//! the documents may be a file of metadata too. Tables whose files do not have the columns under their present names are
//! refused, and so are those that delete rows by their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_iceberg::{DataFile, PartitionValue, Snapshot, SnapshotFiles, Table, deleted_rows, newest_metadata};
use nearprint_storage::{Folder, Storage, TableFormat, bad_format, known_scheme};

use super::found::{FoundFiles, FoundTable};
use super::table_files::{
    NULL_PARTITION, TableFile, TableVersions, damaged, later_than, look_up, not_all_new, nothing_there, partition,
};

/// The number of snapshots that a message names.
const NAMED_SNAPSHOTS: usize = 5;

/// Divides a place that begins with a file of metadata: the file, and the names of a partition behind it.
pub fn metadata_file(pattern: &str) -> Option<(&str, Vec<String>)> {
    let ending = [".metadata.json.gz", ".metadata.json"].into_iter().find_map(|ending| {
        let end = pattern.find(ending)? + ending.len();
        matches!(pattern[end..].chars().next(), None | Some('/')).then_some(end)
    })?;
    let (file, below) = pattern.split_at(ending);
    let is_metadata = file.rsplit('/').nth(1) == Some("metadata");
    let below: Vec<String> = below.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    (is_metadata && below.iter().all(|name| name.contains('='))).then_some((file, below))
}

/// Returns the files of a snapshot of the table whose metadata are in a file, or of one of its partitions.
///
/// # Errors
/// Those of [`live_files`].
pub async fn live_files_by(
    storage: &Storage,
    metadata: &str,
    below: &[String],
    versions: TableVersions,
) -> Result<FoundFiles> {
    let place = storage.input(metadata)?;
    let root = place.above().and_then(|folder| folder.above());
    let root = root.ok_or_else(|| Fault::internal("documents", format!("{metadata} is in no folder")))?;
    of_metadata(storage, &root, &place, below, versions).await
}

/// Returns the files of a snapshot of a table, or of the newest one. `below` are the names `NAME=VALUE` of one of its
/// partitions; without names, the files are those of the whole table.
///
/// # Errors
/// The metadata cannot be read, the table has features that are not supported, it has no such partitions or snapshots, a file
/// is missing or has another size, or lies where the storage's roots do not allow it.
pub async fn live_files(storage: &Storage, url: &str, below: &[String], versions: TableVersions) -> Result<FoundFiles> {
    let root = storage.input(url)?;
    let metadata = newest_metadata(&root).await?;
    // The folder of the metadata may be a link.
    storage.input(metadata.url())?;
    of_metadata(storage, &root, &metadata, below, versions).await
}

async fn of_metadata(
    storage: &Storage,
    root: &Folder,
    metadata: &Folder,
    below: &[String],
    versions: TableVersions,
) -> Result<FoundFiles> {
    let table = Table::read(metadata).await?;
    if let Some(column) = table.renamed_column() {
        let reason = format!(
            "the Iceberg table has renamed the column '{column}', so its files have other column names: write the rows that count \
             to a new table or to Parquet files, and name these"
        );
        return Err(bad_format(root.url(), reason));
    }
    let place = |path: &str| {
        let path = relative(&table, path);
        let is_whole = path.contains("://") || path.starts_with('/');
        // What lies below the table may be a link.
        if is_whole { storage.file_of_table(root, &path) } else { storage.input(root.join(&path).url()) }
    };
    let read = snapshot(&table, root, versions.version, "documents_version")?;
    let since = match versions.since {
        Some(_) => snapshot(&table, root, versions.since, "documents_since")?,
        None => None,
    };
    if let (Some(read), Some(since)) = (read, since)
        && since.sequence_number > read.sequence_number
    {
        return Err(later_than(root.url(), "snapshot", since.id, read.id));
    }
    let mut files = match read {
        Some(snapshot) => SnapshotFiles::read(&table, snapshot, place).await?,
        None => SnapshotFiles::default(),
    };
    let before: BTreeSet<String> = match since {
        Some(snapshot) => SnapshotFiles::read(&table, snapshot, place)
            .await?
            .data
            .into_iter()
            .map(|file| known_scheme(&file.path))
            .collect(),
        None => BTreeSet::new(),
    };
    let named = (TableFormat::Iceberg, "partition field");
    let wanted = partition(root.url(), named, below, &table.partition_names(), str::to_owned)?;
    let others;
    (files.data, others) = wanted_files(&table, root, since, &before, files.data, &wanted.values)?;
    let mut deleted = deleted_rows(&files, place).await?;
    let live = files.data.into_iter().map(|file| {
        let deleted_rows = deleted.remove(&known_scheme(&file.path));
        TableFile { path: relative(&table, &file.path), bytes: file.bytes, deleted_rows }
    });
    let live = live.collect();
    let mut files = look_up(storage, root, TableFormat::Iceberg, live).await?;
    let column_ids = table.column_ids().map(Arc::new);
    files.values_mut().for_each(|file| file.column_ids.clone_from(&column_ids));
    if files.is_empty() {
        let there = others.iter().map(|file| shown_values(file, &wanted.values)).collect();
        return Err(nothing_there(root, &wanted, versions.since, there));
    }
    tracing::info!(table = root.url(), metadata = metadata.url(), files = files.len(), "reads an Iceberg table");
    let table = FoundTable { url: root.url().to_owned(), partition_columns: Vec::new() };
    Ok(FoundFiles { files, unusable: BTreeMap::new(), table: Some(table) })
}

/// Returns those of the files of a snapshot that have the wanted values of partitions and are not among those of `before`, which the
/// snapshot `since` has. Returns the others too.
fn wanted_files(
    table: &Table,
    root: &Folder,
    since: Option<&Snapshot>,
    before: &BTreeSet<String>,
    files: Vec<DataFile>,
    wanted: &BTreeMap<String, String>,
) -> Result<(Vec<DataFile>, Vec<DataFile>)> {
    let (mut data, mut others, mut paths, mut n_unknown) = (Vec::new(), Vec::new(), BTreeSet::new(), 0_usize);
    for file in files {
        if before.contains(&known_scheme(&file.path)) || !is_in(root, &file, wanted)? {
            others.push(file);
            continue;
        }
        n_unknown += usize::from(since.is_some() && !file.snapshot.is_some_and(|id| table.has_snapshot(id)));
        if let (Some(since), Some(rewrite)) = (since, file.snapshot.and_then(|id| table.rewrite(id))) {
            let by = format!("snapshot {}", rewrite.id);
            let older = rewrite.parent_id.filter(|&older| older != since.id && table.has_snapshot(older));
            return Err(not_all_new(root.url(), &by, &file.path, older, rewrite.id));
        }
        if file.format != "parquet" {
            let reason = format!("the Iceberg table has files of the format {}, and only Parquet is read", file.format);
            return Err(bad_format(root.url(), reason));
        }
        if !paths.insert(known_scheme(&file.path)) {
            return Err(damaged(root, TableFormat::Iceberg, format!("it names {} twice", file.path)));
        }
        data.push(file);
    }
    if n_unknown > 0 {
        tracing::warn!(
            "{}: {n_unknown} of the files since then are of snapshots that have expired, so files that rewrite_data_files wrote count as \
             added",
            root.url()
        );
    }
    Ok((data, others))
}

/// Returns a path of the metadata below the table, if it is there, so that a table may be read where it was copied to. Other
/// paths stay whole, with the schemes that the storage knows.
fn relative(table: &Table, path: &str) -> String {
    let (path, location) = (known_scheme(path), known_scheme(table.location.trim_end_matches('/')));
    let below = path.strip_prefix(&location).and_then(|below| below.strip_prefix('/'));
    below.filter(|below| below.split('/').all(|name| name != "..")).map(str::to_owned).unwrap_or(path)
}

/// Returns a snapshot. `setting` is the key that names it.
fn snapshot<'a>(
    table: &'a Table,
    root: &Folder,
    id: Option<u64>,
    setting: &'static str,
) -> Result<Option<&'a Snapshot>> {
    table.snapshot(id).map_err(|there| match id {
        Some(id) => {
            // The newest come last.
            let shown = &there[there.len().saturating_sub(NAMED_SNAPSHOTS)..];
            let named: Vec<String> = shown.iter().map(i64::to_string).collect();
            let more = if shown.len() < there.len() { "the newest are " } else { "it has " };
            let reason = format!("{} has no snapshot {id}: {more}{}", root.url(), named.join(", "));
            Fault::config(setting, reason)
        }
        None => damaged(root, TableFormat::Iceberg, "its metadata lack the current snapshot"),
    })
}

/// Returns the values of a file in the fields of a partition, as far as folders have them in their names.
fn shown_values(file: &DataFile, wanted: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = file.partition.iter().filter_map(|(field, value)| match value {
        PartitionValue::Shown(value) if wanted.contains_key(field) => Some((field.clone(), value.clone())),
        _ => None,
    });
    shown.collect()
}

/// Returns whether a file has these values of partitions.
fn is_in(root: &Folder, file: &DataFile, wanted: &BTreeMap<String, String>) -> Result<bool> {
    for (name, wanted) in wanted {
        let value = file.partition.iter().find(|(field, _)| field == name);
        match value {
            Some((_, PartitionValue::Shown(value))) if value == wanted => {}
            // Iceberg's own name of a folder for NULL, and Hive's.
            Some((_, PartitionValue::Null)) if ["null", NULL_PARTITION].contains(&wanted.as_str()) => {}
            Some((_, PartitionValue::Shown(_) | PartitionValue::Null)) => return Ok(false),
            Some((_, PartitionValue::Derived(_) | PartitionValue::Other)) | None => {
                let reason = format!(
                    "the Iceberg table does not say of {} which '{name}' it has: only values of columns and days name a night; \
                     let its engine write the files anew, partitioned by one of these",
                    file.path
                );
                return Err(bad_format(root.url(), reason));
            }
        }
    }
    Ok(true)
}
