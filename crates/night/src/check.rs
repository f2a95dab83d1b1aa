//! `nearprint check`: it checks the store, and the results that it published, against the commits.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use arrow::datatypes::{FieldRef, SchemaRef};
use nearprint_delta::{TableFile, TableLog};
use nearprint_fault::Result;
use nearprint_parquet::{CHANGES, FileRecord, ParquetFile, PublishedDataset, PublishedName};
use nearprint_pipeline::not_published;
use nearprint_storage::{Folder, Progress, Storage};
use nearprint_store::maintain::{
    CheckedCommits, Damaged, Leftover, StoreProblem, StoreReport, check_content, check_identities, check_nights,
    leftovers, output_roots, own_outputs,
};
use nearprint_store::{ChangedOutput, Damage, MANIFEST, Night, Store, damaged, is_about_content};
use schemars::JsonSchema;
use serde::Serialize;

use crate::manifest::Manifest;
use crate::published::refuse_missing_output;
use crate::request::check_date;
use crate::results_left::drops_for_none;
use crate::tables::{cannot_go_on, dropped_nights, is_current, missing_changes};

/// The request of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRequest {
    /// The store.
    pub store: String,
    /// A root of results besides those that the newest commit names. Files there that no commit names are counted.
    pub output: Option<String>,
    /// The only night to check. `None` means all nights.
    pub dt: Option<String>,
}

/// The findings of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckReport {
    /// The store.
    pub store: String,
    /// The night, if one alone was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dt: Option<String>,
    /// The number of the newest commit.
    pub commit: u64,
    /// The number of commits that were read.
    pub n_commits: u64,
    /// The number of nights whose files were read.
    pub n_nights: u64,
    /// The number of data files that were read.
    pub n_files: u64,
    /// The bytes of these data files.
    pub bytes: u64,
    /// The nights that are published, but that a table does not have yet, and nights that were dropped, but that a table
    /// still has. The next run into their output completes them.
    pub behind: Vec<String>,
    /// The nights that are stale: nights of earlier dates were added, replaced or dropped since they were made. That is no
    /// damage.
    pub stale: Vec<String>,
    /// The reference stores with which the nights were joined, by name. They are not read.
    pub references: Vec<CheckedReference>,
    /// The number of files that no commit names.
    pub n_unreferenced_files: u64,
    /// The bytes of these files.
    pub unreferenced_bytes: u64,
    /// All problems that were found.
    pub problems: Vec<StoreProblem>,
}

/// A reference store with which nights were joined, as their manifests say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckedReference {
    /// The store, as the nights name it.
    pub store: String,
    /// The number of nights that were joined with it.
    pub n_nights: u64,
    /// The newest of its commits with which one of them was joined.
    pub commit: u64,
}

/// Checks every file of a store, and the results that it published.
///
/// ```
/// use nearprint_night::{CheckRequest, check, store_check, store_info};
/// # use nearprint_night::{Breakers, RunRequest, run};
/// # use nearprint_pipeline::Resources;
/// use nearprint_storage::{Progress, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// let (storage, progress) = (Storage::default(), Progress::default());
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents").to_owned();
/// # let [store, output] = ["store", "results"].map(|name| temp.path().join(name).display().to_string());
/// # let profile = nearprint_profile::by_name("default")?;
/// # let request = RunRequest::new("2026-11-19", documents, store.as_str(), output, profile);
/// # let request = RunRequest { create_store: true, breakers: Breakers::off(), ..request };
/// # run(&storage, &request, &Resources::default(), &progress).await?;
/// // `store` is a store in which one night is published.
/// assert_eq!(store_info(&storage, &store).await?.nights[0].dt, "2026-11-19");
/// assert!(store_check(&storage, &store, &progress).await?.problems.is_empty());
/// let report = check(&storage, &CheckRequest { store, output: None, dt: None }, &progress).await?;
/// assert_eq!((report.commit, report.n_nights), (1, 1));
/// assert!(report.problems.is_empty() && report.behind.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The date is malformed, the night is not published, an output is missing altogether, or the store cannot be read. Damage
/// is in the report.
pub async fn check(storage: &Storage, request: &CheckRequest, progress: &Progress) -> Result<CheckReport> {
    if let Some(dt) = &request.dt {
        check_date("dt", dt)?;
    }
    let folder = storage.folder(&request.store)?;
    let mut commits = CheckedCommits::check(&folder).await?;
    if !commits.newest_is_sound {
        // The newest commit is damaged, so nobody can say how the rest should be.
        return Ok(of_damaged_commit(commits, &folder));
    }
    let store = match Store::open(&folder).await {
        // A page is missing that the check of an older commit found to be missing.
        Err(error) if error.matter() == Some(&Damage::Commit) => return Ok(of_damaged_commit(commits, &folder)),
        store => store?,
    };
    let wanted = |night: &&Night| request.dt.as_ref().is_none_or(|dt| *dt == night.dt);
    let nights: Vec<&Night> = store.nights().iter().filter(wanted).collect();
    if let Some(dt) = request.dt.as_ref().filter(|_| nights.is_empty()) {
        return Err(not_published(&store, dt));
    }
    for output in nights.iter().map(|night| night.output_root()).collect::<BTreeSet<_>>() {
        refuse_missing_output(storage, &store, output).await?;
    }
    let mut report = check_nights(&store, nights.iter().copied(), progress).await?;
    let mut tables = Tables::default();
    let (mut behind, mut references) = (Vec::new(), BTreeMap::new());
    progress.start("check", "nights", nights.len() as u64);
    for night in &nights {
        let output = storage.folder(night.output_root())?;
        if let Some(manifest) = check_generation((storage, &store, &output), night, &mut report).await? {
            note_references(&mut references, &manifest);
            if tables.of(&output, &mut report).await?.lack(night, &manifest, &mut report)? {
                behind.push(night.dt.clone());
            }
        }
        progress.advance(1);
    }
    let outputs = output_roots(&store, storage, request.output.as_deref())?;
    check_identities(&store, &outputs, &mut report).await?;
    let (own, _) = own_outputs(&store, outputs).await;
    for output in &own {
        let of_output = tables.of(output, &mut report).await?;
        behind.extend(dropped_nights(&store, &of_output.logs));
        of_output.check_unknown(&store, &mut report).await?;
        if of_output.check_changes(storage, &store, output, &mut report).await? {
            behind.extend(store.changed_night().map(str::to_owned));
        }
    }
    let leftovers = match tables.are_sound() {
        true => leftovers(&store, &own, SystemTime::now()).await?,
        // Nobody can say what a damaged log still names.
        false => Vec::new(),
    };
    commits.problems.extend(report.problems);
    Ok(CheckReport {
        store: request.store.clone(),
        dt: request.dt.clone(),
        commit: store.sequence(),
        n_commits: commits.n,
        n_nights: nights.len() as u64,
        n_files: report.n_files,
        bytes: report.bytes,
        behind,
        stale: nights.iter().filter(|night| store.is_stale(night)).map(|night| night.dt.clone()).collect(),
        references: references.into_values().collect(),
        n_unreferenced_files: leftovers.iter().map(|l| l.files.len() as u64).sum(),
        unreferenced_bytes: leftovers.iter().map(Leftover::bytes).sum(),
        problems: commits.problems,
    })
}

/// Adds the references of a night.
fn note_references(references: &mut BTreeMap<String, CheckedReference>, manifest: &Manifest) {
    for joined in &manifest.references {
        let new = || CheckedReference { store: joined.store.clone(), n_nights: 0, commit: 0 };
        let reference = references.entry(joined.store.clone()).or_insert_with(new);
        reference.n_nights += 1;
        reference.commit = reference.commit.max(joined.commit);
    }
}

/// The tables of the outputs, each of which is read once.
#[derive(Default)]
struct Tables {
    /// By the place of the output.
    of_outputs: BTreeMap<String, OutputTables>,
}

/// The tables of an output: those whose logs are sound.
#[derive(Default)]
struct OutputTables {
    logs: Vec<TableLog>,
    /// The log of the table `changes`.
    changes: Option<TableLog>,
    any_damaged: bool,
}

impl Tables {
    /// Returns the tables of an output. Damaged logs are problems, once.
    async fn of(&mut self, output: &Folder, report: &mut StoreReport) -> Result<&OutputTables> {
        let place = output.local_path().map_or_else(|| output.url().to_owned(), |path| path.display().to_string());
        match self.of_outputs.entry(place) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let mut tables = OutputTables::default();
                for dataset in PublishedDataset::tables() {
                    match TableLog::open_whole(output, dataset).await {
                        Ok(log) if dataset.name == CHANGES.name => tables.changes = Some(log),
                        Ok(log) => tables.logs.push(log),
                        Err(error) => {
                            let of = if dataset.name == CHANGES.name { Damaged::Changes } else { Damaged::Table };
                            report.note(&of, output.join(dataset.name).url(), Err(error))?;
                            tables.any_damaged = true;
                        }
                    }
                }
                Ok(place.insert(tables))
            }
        }
    }

    fn are_sound(&self) -> bool {
        self.of_outputs.values().all(|tables| !tables.any_damaged)
    }
}

impl OutputTables {
    /// Compares the tables with the manifest of a night. Returns whether one of them does not have the night's generation
    /// yet. Files of the generation that are not those of the manifest are a problem.
    fn lack(&self, night: &Night, manifest: &Manifest, report: &mut StoreReport) -> Result<bool> {
        let mut any_behind = false;
        for log in &self.logs {
            let mut wanted: Vec<(String, u64, Option<u64>)> = manifest
                .files_of(night, log.dataset())
                .map(|(path, file)| (path, file.bytes, Some(file.rows)))
                .collect();
            wanted.sort();
            if !is_current(log, night) {
                any_behind |= !wanted.is_empty();
                continue;
            }
            let named: Vec<_> = log.night(&night.dt).map(|file| (file.path.clone(), file.bytes, file.rows())).collect();
            if named != wanted {
                let reason = format!("its log names other files of {} than the manifest", night.dt);
                report.note(&Damaged::Table, log.table().url(), Err(damaged(log.table().url(), reason)))?;
            }
        }
        Ok(any_behind)
    }

    /// Checks the files of the table `changes`. Returns whether it lacks the newest set of changes.
    async fn check_changes(
        &self,
        storage: &Storage,
        store: &Store,
        output: &Folder,
        report: &mut StoreReport,
    ) -> Result<bool> {
        let Some(log) = &self.changes else { return Ok(false) };
        // Sets without rows are equal, so two nights may have sets of one digest.
        let mut sets: BTreeMap<(&str, &str), Vec<&TableFile>> = BTreeMap::new();
        for file in log.files() {
            let digest = PublishedName::parse(&file.path).map_or("", |name| name.generation);
            sets.entry((&file.dt, digest)).or_default().push(file);
        }
        for ((_, digest), files) in sets {
            report.n_files += files.len() as u64;
            report.bytes += files.iter().map(|file| file.bytes).sum::<u64>();
            let checked = check_set(log.table(), digest, &files).await;
            let place = log.table().join(files.first().map_or("", |file| file.path.as_str()));
            report.note(&Damaged::Changes, place.url(), checked)?;
        }
        if let Some(fault) = cannot_go_on(storage, store, output, log).await? {
            report.note(&Damaged::Changes, log.table().url(), Err(fault))?;
            return Ok(false);
        }
        match missing_changes(storage, store, output, log).await {
            Ok(change) => Ok(!change.is_empty()),
            Err(error) => report.note(&Damaged::Changes, log.table().url(), Err(error)).map(|_| false),
        }
    }

    /// Reports nights in the tables that the store does not know: it was put back to an earlier state, or it dropped
    /// them and was then stopped.
    async fn check_unknown(&self, store: &Store, report: &mut StoreReport) -> Result<()> {
        let unknown = |store: &Store| {
            let dates = self.logs.iter().flat_map(|log| log.files().map(|file| file.dt.clone()));
            dates.filter(|dt| store.night(dt).is_none() && !store.has_dropped(dt)).collect::<BTreeSet<_>>()
        };
        // A run may have published it since the store was opened.
        if unknown(store).is_empty() {
            return Ok(());
        }
        for dt in unknown(&Store::open(store.folder()).await?) {
            let url = self.logs.first().map_or_else(String::new, |log| log.table().url().to_owned());
            let reason = format!("it has dt={dt}, which the store does not know");
            report.note(&Damaged::Table, &url, Err(damaged(&url, reason)))?;
        }
        Ok(())
    }
}

/// Checks the manifest of a night against the commit, and the files against the manifest. Returns the manifest if it is
/// sound.
async fn check_generation(
    (storage, store, output): (&Storage, &Store, &Folder),
    night: &Night,
    report: &mut StoreReport,
) -> Result<Option<Manifest>> {
    let generation = output.join(&night.generation_path());
    let (url, of) = (generation.join(MANIFEST), Damaged::Results { dt: night.dt.clone() });
    let manifest = match Manifest::read(&generation, night).await {
        Ok(manifest) => manifest,
        Err(error) if error.matter::<Damage>().is_some() => {
            report.note(&of, url.url(), Err(error))?;
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let agrees = store.config_digest().is_some_and(|digest| manifest.is_of(night, digest));
    if !agrees {
        let reason = "the newest commit says otherwise about its date, configuration or joined runs";
        report.note(&of, url.url(), Err(damaged(url.url(), reason)))?;
    }
    for recorded in &manifest.files {
        let file = output.join(&night.file_path(&recorded.name));
        report.n_files += 1;
        let checked = check_content(file.file().await, recorded, report).await;
        let checked = checked.and_then(|parquet| check_schema(&parquet, &recorded.name));
        report.note(&of, file.url(), checked)?;
    }
    match drops_for_none(storage, &manifest, night).await {
        Ok(true) => {
            let reason = "it drops documents for none, so the corpus lacks their texts: release 0.2.0 forgot those that represented them";
            let remedy = "run `nearprint store forget --ids` once more, with the same file or any other one";
            report.note(&of, url.url(), Err(damaged(url.url(), reason).remedy(remedy)))?;
        }
        // What cannot be read is a problem already.
        Ok(false) => {}
        Err(error) if is_about_content(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(Some(manifest))
}

/// Checks the files of a set of changes against their log and the digest in their names.
async fn check_set(table: &Folder, digest: &str, files: &[&TableFile]) -> Result<()> {
    let mut records = Vec::new();
    for logged in files {
        let file = table.join(&logged.path).file().await?;
        let (bytes, sha256) = file.sha256().await?;
        let parquet = ParquetFile::open(file).await?;
        check_schema(&parquet, CHANGES.name)?;
        if (bytes, Some(parquet.n_rows())) != (logged.bytes, logged.rows()) {
            return Err(damaged(&parquet.file.url, "its size or its rows are not those in the log of its table"));
        }
        let part = logged.path.rsplit('/').next().and_then(|name| name.split('-').nth(1)).unwrap_or("");
        let name = format!("{}/part-{part}.parquet", CHANGES.name);
        records.push(FileRecord { name, rows: parquet.n_rows(), bytes, sha256 });
    }
    records.sort();
    if ChangedOutput::digest(&records) == digest {
        return Ok(());
    }
    let first = files.first().map_or("", |file| file.path.as_str());
    Err(damaged(table.join(first).url(), "the digest in its name is not that of its set of changes"))
}

/// Checks the columns of a published file. Nullable ones may be missing: earlier releases wrote files without them.
fn check_schema(parquet: &ParquetFile, name: &str) -> Result<()> {
    let Some(dataset) = PublishedDataset::of(name) else {
        return Ok(());
    };
    let expected: &SchemaRef = dataset.schema;
    let is_there = |field: &&FieldRef| !field.is_nullable() || parquet.has_column(field.name());
    for field in expected.fields().iter().filter(is_there) {
        let data_type = parquet.data_type(field.name(), "its dataset has it")?;
        if data_type != field.data_type() {
            let reason = format!("column '{}' is {data_type}, expected {}", field.name(), field.data_type());
            return Err(damaged(&parquet.file.url, reason));
        }
    }
    Ok(())
}

/// Returns the report on a store whose newest commit is damaged: nobody can say how the rest should be.
fn of_damaged_commit(commits: CheckedCommits, folder: &Folder) -> CheckReport {
    CheckReport {
        store: folder.url().to_owned(),
        dt: None,
        commit: commits.newest,
        n_commits: commits.n,
        n_nights: 0,
        n_files: 0,
        bytes: 0,
        behind: Vec::new(),
        stale: Vec::new(),
        references: Vec::new(),
        n_unreferenced_files: 0,
        unreferenced_bytes: 0,
        problems: commits.problems,
    }
}
