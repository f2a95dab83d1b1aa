//! A published night, as its manifest and the store describe it.

use std::collections::BTreeMap;

use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use nearprint_documents::{BadFile, FileRows};
use nearprint_fault::{MissingInput, Result};
use nearprint_parquet::{Columns, FileRecord, ParquetFile};
use nearprint_pipeline::{SpillStats, not_published};
use nearprint_storage::{Folder, InputFile, Storage};
use nearprint_store::{Night, Store, damaged, missing_store};
use serde::Serialize;

use super::manifest::Manifest;
use super::request::check_date;
use super::summary::{CountsOf, RunCounts, RunStatus, RunSummary};

/// The files of a published night.
#[derive(Debug)]
pub(crate) struct PublishedFiles {
    pub(crate) manifest: Manifest,
    /// The digest that names the generation.
    pub(crate) digest: String,
    /// The files of its decisions, one row a document.
    pub(crate) decisions: Vec<InputFile>,
    /// The files of the rows that are no documents.
    pub(crate) quarantine: Vec<InputFile>,
    /// The files of what it decided anew about documents of earlier nights. Nights of release 0.2.0 have none.
    pub(crate) redecided: Vec<InputFile>,
}

/// Returns the files of a published night. Who needs decisions finds them here, whatever the layout of the output.
///
/// # Errors
/// The manifest, or a file that it names, is missing or damaged.
pub(crate) async fn files_of(storage: &Storage, store: &Store, night: &Night) -> Result<PublishedFiles> {
    let manifest = manifest_of(storage, store, night).await?;
    let decisions = found_files(storage, &manifest, night, "decisions").await?;
    let quarantine = found_files(storage, &manifest, night, "quarantine").await?;
    let redecided = found_files(storage, &manifest, night, "redecided").await?;
    let digest = night.gen_digest.clone();
    Ok(PublishedFiles { manifest, digest, decisions, quarantine, redecided })
}

/// Returns the rows that are no documents, from the files of a night's quarantine.
///
/// # Errors
/// A file cannot be read or is damaged.
pub(crate) async fn rows_of_quarantine(files: &[InputFile]) -> Result<FileRows> {
    let mut by_file = FileRows::new();
    for file in files {
        let parquet = ParquetFile::open(file.clone()).await?;
        let mut batches = parquet.stream(parquet.whole(&["file", "row"]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let rows = columns.primitive::<Int64Type>("row")?;
            for (url, row) in columns.strings("file")?.iter().zip(rows.values()) {
                let nameless = || damaged(&parquet.file.url, "a row in quarantine has no file");
                by_file.entry(url.ok_or_else(nameless)?.to_owned()).or_default().push(row.unsigned_abs());
            }
        }
    }
    by_file.values_mut().for_each(|rows| rows.sort_unstable());
    Ok(by_file)
}

/// Returns the files of one dataset of a published night, in order.
///
/// # Errors
/// The manifest, or a file that it names, is missing or damaged.
pub(crate) async fn dataset_files(
    storage: &Storage,
    store: &Store,
    night: &Night,
    dataset: &str,
) -> Result<Vec<InputFile>> {
    found_files(storage, &manifest_of(storage, store, night).await?, night, dataset).await
}

pub(crate) async fn found_files(
    storage: &Storage,
    manifest: &Manifest,
    night: &Night,
    dataset: &str,
) -> Result<Vec<InputFile>> {
    let root = storage.folder(night.output_root())?;
    let mut files = Vec::new();
    for (place, record) in of_dataset(&root, manifest, night, dataset) {
        let there = place.find().await?.filter(|file| file.size == record.bytes);
        let damaged = || damaged(place.url(), "it is gone, or has not the size that the manifest records");
        files.push(there.ok_or_else(damaged)?);
    }
    Ok(files)
}

/// Returns the files of a dataset of a night in an output, in order, in whatever layout the night has.
fn of_dataset<'a>(
    root: &'a Folder,
    manifest: &'a Manifest,
    night: &'a Night,
    dataset: &'a str,
) -> impl Iterator<Item = (Folder, &'a FileRecord)> {
    let files = manifest.files.iter().filter(move |file| file.name.split('/').next() == Some(dataset));
    files.map(|file| (root.join(&night.file_path(&file.name)), file))
}

/// Returns the number of the commit, and the later nights that were made without this one.
pub(crate) fn commit_and_stale(store: &Store, night: &Night) -> (u64, Vec<String>) {
    let info = store.info();
    let stale = info.nights.iter().filter(|n| n.stale && n.dt > night.dt).map(|n| n.dt.clone()).collect();
    (info.commit, stale)
}

/// Returns the folder with a night's manifest.
pub(crate) fn generation(storage: &Storage, night: &Night) -> Result<Folder> {
    Ok(storage.folder(night.output_root())?.join(&night.generation_path()))
}

/// Reads the manifest of a published night.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the whole output is missing, whose disk may
/// not be mounted; an error if the manifest cannot be read or is damaged.
pub(crate) async fn manifest_of(storage: &Storage, store: &Store, night: &Night) -> Result<Manifest> {
    match Manifest::read(&generation(storage, night)?, night).await {
        Ok(manifest) => Ok(manifest),
        Err(error) => {
            refuse_missing_output(storage, store, night.output_root()).await?;
            Err(error)
        }
    }
}

/// Refuses an output of the store that has neither an identity nor a night. Other faults of the output are passed over.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the output is missing.
pub(crate) async fn refuse_missing_output(storage: &Storage, store: &Store, output: &str) -> Result<()> {
    match store.refuse_unmounted_output(storage, &storage.folder(output)?).await {
        Err(missing) if missing.matter() == Some(&MissingInput) => Err(missing),
        _ => Ok(()),
    }
}

pub(crate) async fn already_published(storage: &Storage, store: &Store, night: &Night) -> Result<RunSummary> {
    let read = manifest_of(storage, store, night).await?;
    let (commit, stale) = commit_and_stale(store, night);
    Ok(RunSummary {
        status: RunStatus::AlreadyPublished,
        dt: night.dt.clone(),
        output: night.output_root().to_owned(),
        generation: Some(night.gen_digest.clone()),
        commit,
        counts_of: CountsOf::Publication,
        counts: read.counts,
        references: read.references,
        spill: SpillStats::default(),
        n_tables: 0,
        n_parts: 0,
        stale,
        forgotten: Vec::new(),
        n_mended_files: 0,
        newest_input: None,
        breakers: Vec::new(),
        measured: None,
    })
}

/// Returns a published night's summary.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the night is not published.
pub async fn published_night(storage: &Storage, store_url: &str, dt: &str) -> Result<RunSummary> {
    check_date("dt", dt)?;
    let store = open_store(storage, store_url).await?;
    let night = published(&store, dt)?;
    let summary = already_published(storage, &store, night).await?;
    Ok(RunSummary { status: RunStatus::Published, ..summary })
}

/// The manifest of a published night, without the names of its files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NightRecord {
    /// The night.
    pub dt: String,
    /// The generation of the night.
    pub generation: String,
    /// The release that made it.
    pub release: String,
    /// The digest of the configuration of all fingerprints.
    pub config_digest: String,
    /// The number of files of documents.
    pub n_inputs: u64,
    /// The size of these files in bytes, as they lie there, compressed or not.
    pub input_bytes: u64,
    /// The files of other kinds that were passed over.
    pub ignored_inputs: Vec<String>,
    /// The files that could not be read.
    pub bad_files: Vec<BadFile>,
    /// The number of the night's documents that were forgotten since. The counts are those of the run.
    pub n_forgotten: u64,
    /// Nights of earlier dates were added, replaced or dropped since the night was joined with them.
    pub is_stale: bool,
    /// The counts of the run.
    pub counts: RunCounts,
}

/// A published night, and those before it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NightHistory {
    /// The night.
    pub night: NightRecord,
    /// The nights before it, oldest first, as many as were asked for.
    pub before: Vec<NightRecord>,
    /// Those of them whose manifests cannot be read, and the reasons. They are not in `before`.
    pub unread: Vec<(String, String)>,
}

/// Returns what the manifests say about a published night and the `n_before` nights before it.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the night is not published; an error if its
/// manifest cannot be read or is damaged.
pub async fn published_history(storage: &Storage, store_url: &str, dt: &str, n_before: usize) -> Result<NightHistory> {
    check_date("dt", dt)?;
    let store = open_store(storage, store_url).await?;
    let night = night_record(storage, &store, published(&store, dt)?).await?;
    let all = store.before(dt);
    let newest = &all[all.len().saturating_sub(n_before)..];
    let (before, unread) = night_records(storage, &store, newest).await;
    Ok(NightHistory { night, before, unread })
}

/// Returns the digest of the generation of each published night, by date.
///
/// # Errors
/// The store cannot be read.
pub async fn published_generations(storage: &Storage, store_url: &str) -> Result<BTreeMap<String, String>> {
    let store = open_store(storage, store_url).await?;
    Ok(store.nights().iter().map(|night| (night.dt.clone(), night.gen_digest.clone())).collect())
}

/// Returns what the manifests say about all published nights, oldest first, and the nights whose manifests cannot be read,
/// with the reasons.
///
/// # Errors
/// The store cannot be read.
pub async fn published_nights(storage: &Storage, store_url: &str) -> Result<(Vec<NightRecord>, Vec<(String, String)>)> {
    let store = open_store(storage, store_url).await?;
    Ok(night_records(storage, &store, &store.nights().iter().collect::<Vec<_>>()).await)
}

/// Reads the manifests of nights. Those that cannot be read come with the reasons.
async fn night_records(
    storage: &Storage,
    store: &Store,
    nights: &[&Night],
) -> (Vec<NightRecord>, Vec<(String, String)>) {
    let (mut read, mut unread) = (Vec::new(), Vec::new());
    for night in nights {
        match night_record(storage, store, night).await {
            Ok(record) => read.push(record),
            Err(error) => unread.push((night.dt.clone(), error.to_string())),
        }
    }
    (read, unread)
}

async fn night_record(storage: &Storage, store: &Store, night: &Night) -> Result<NightRecord> {
    let manifest = manifest_of(storage, store, night).await?;
    Ok(NightRecord {
        n_forgotten: manifest.n_forgotten(),
        dt: manifest.dt,
        generation: night.gen_digest.clone(),
        release: manifest.nearprint,
        config_digest: manifest.config_digest,
        n_inputs: manifest.inputs.len() as u64,
        input_bytes: manifest.inputs.iter().map(|input| input.bytes).sum(),
        ignored_inputs: manifest.ignored_inputs,
        bad_files: manifest.bad_files,
        is_stale: store.is_stale(night),
        counts: manifest.counts,
    })
}

/// Returns the files of a dataset of a published night, such as `decisions`, in order. The store and the night's manifest name
/// them, so they are the files of one generation, whatever else lies beside them.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the night is not published; an error if its
/// manifest, or a file that it names, is missing or damaged.
pub async fn published_files(storage: &Storage, store_url: &str, dt: &str, dataset: &str) -> Result<Vec<InputFile>> {
    check_date("dt", dt)?;
    let store = open_store(storage, store_url).await?;
    dataset_files(storage, &store, published(&store, dt)?, dataset).await
}

/// Returns the night of a date.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the night is not published.
pub(crate) fn published<'a>(store: &'a Store, dt: &str) -> Result<&'a Night> {
    store.night(dt).ok_or_else(|| not_published(store, dt))
}

pub(crate) async fn open_store(storage: &Storage, url: &str) -> Result<Store> {
    let folder = storage.folder(url)?;
    match Store::open_existing(&folder).await? {
        Some(store) => Ok(store),
        None => Err(missing_store(&folder).await),
    }
}
