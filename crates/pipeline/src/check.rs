//! `nearprint check`: it checks the store, and the results that it published, against the commits.

use std::time::SystemTime;

use arrow::datatypes::SchemaRef;
use serde::Serialize;

use nearprint_dataset::ParquetFile;
use nearprint_dataset::schema::{DECISIONS, PAIRS, SKIPPED};
use nearprint_storage::{Folder, Progress, Storage, StorageError};
use nearprint_store::{
    CheckedCommits, Leftover, Night, Store, StoreError, StoreProblem, StoreReport, check_content, check_identities,
    generation_name, was_published,
};

use crate::error::{PipelineError, Result};
use crate::night::manifest::Manifest;
use crate::night::request::check_date;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The store.
    pub store: String,
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
    /// The nights that are published, but of which `_current` or `_SUCCESS` do not yet say so. The next run completes
    /// the newest of them. A run of its date completes any other.
    pub behind: Vec<String>,
    /// The number of files that no commit names.
    pub n_unreferenced_files: u64,
    /// The bytes of these files.
    pub unreferenced_bytes: u64,
    /// All problems that were found.
    pub problems: Vec<StoreProblem>,
}

/// Checks every file of a store, and the results that it published.
///
/// ```
/// use nearprint_pipeline::{CheckRequest, check, store_check, store_info};
/// # use nearprint_pipeline::{Breakers, Resources, RunRequest, run};
/// use nearprint_storage::{Progress, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// let (storage, progress) = (Storage::default(), Progress::default());
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents").to_owned();
/// # let [store, output] = ["store", "results"].map(|name| temp.path().join(name).display().to_string());
/// # let (columns, profile, breakers) = (Default::default(), nearprint_profile::by_name("default")?, Breakers::off());
/// # let request = RunRequest {
/// #     dt: "2026-11-19".to_owned(), documents, store: store.clone(), output, columns, keep: Vec::new(),
/// #     source_column: None, profile, analyzer_resources: Default::default(), input: Default::default(),
/// #     pairs: Default::default(), max_pairs: 1_000_000, clusters: Default::default(), late: false, replace: false,
/// #     writers: Default::default(), breakers, roots: Default::default(), preflight: false, create_store: true,
/// #     job_file: None,
/// # };
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
/// The date is malformed, the night is not published, or the store cannot be read. Damage is in the report.
pub async fn check(storage: &Storage, request: &CheckRequest, progress: &Progress) -> Result<CheckReport> {
    if let Some(dt) = &request.dt {
        check_date(dt)?;
    }
    let folder = storage.folder(&request.store)?;
    let mut commits = CheckedCommits::check(&folder).await?;
    if !commits.newest_is_sound {
        // The newest commit is damaged, so nobody can say how the rest should be.
        return Ok(damaged(commits, &folder));
    }
    let store = match Store::open(&folder).await {
        // A page is missing that the check of an older commit found to be missing.
        Err(StoreError::DamagedCommit { .. }) => return Ok(damaged(commits, &folder)),
        store => store?,
    };
    let wanted = |night: &&Night| request.dt.as_ref().is_none_or(|dt| *dt == night.dt);
    let nights: Vec<&Night> = store.nights().iter().filter(wanted).collect();
    if let Some(dt) = request.dt.as_ref().filter(|_| nights.is_empty()) {
        let url = format!("{} dt={dt}", request.store);
        return Err(StorageError::InputMissing { what: "published night", url, remedy: "run it first" }.into());
    }
    let mut report = store.check_nights(nights.iter().copied(), progress).await?;
    let mut behind = Vec::new();
    progress.start("check", "nights", nights.len() as u64);
    for night in &nights {
        let place = storage.folder(&night.output)?;
        check_generation(&store, &place, night, &mut report).await?;
        let pointers = check_pointers(&folder, &place, night).await;
        match pointers {
            Ok(Pointers::Behind) => behind.push(night.dt.clone()),
            other => drop(report.note(place.url(), other.map(drop))?),
        }
        progress.advance(1);
    }
    let live = store.live(SystemTime::now()).await?;
    let outputs = store.output_roots(storage, request.output.as_deref())?;
    check_identities(&store, &outputs, &mut report).await?;
    let leftovers = store.leftovers(&store.own(outputs).await.0, &live).await?;
    commits.problems.extend(report.problems);
    Ok(CheckReport {
        store: request.store.clone(),
        commit: store.sequence(),
        n_commits: commits.n,
        n_nights: nights.len() as u64,
        n_files: report.n_files,
        bytes: report.bytes,
        behind,
        n_unreferenced_files: leftovers.iter().map(|l| l.files.len() as u64).sum(),
        unreferenced_bytes: leftovers.iter().map(Leftover::bytes).sum(),
        problems: commits.problems,
    })
}

/// Checks the pointers of a night. A run that dies after its commit leaves no `_SUCCESS`, or no `_current` of its own
/// yet. That is not damage.
async fn check_pointers(folder: &Folder, place: &Folder, night: &Night) -> nearprint_store::Result<Pointers> {
    let success = place.join(&generation_name(&night.gen_digest)).join("_SUCCESS");
    let there = success.get().await?;
    if there.as_ref().is_some_and(|content| !content.is_empty()) {
        return Err(StoreError::damaged(success.url(), "it should be empty"));
    }
    let pointer = place.join("_current");
    let Some(content) = pointer.get().await? else {
        return Ok(Pointers::Behind);
    };
    let content = String::from_utf8_lossy(&content).into_owned();
    let named = content.strip_prefix("gen=").and_then(|rest| rest.strip_suffix('\n'));
    match named {
        Some(digest) if digest == night.gen_digest && there.is_some() => Ok(Pointers::Right),
        Some(digest) if digest == night.gen_digest => {
            Err(StoreError::damaged(success.url(), "it is gone, though _current names its generation"))
        }
        Some(digest) if was_published(folder, place, &night.dt, digest).await? => Ok(Pointers::Behind),
        _ => Err(StoreError::damaged(pointer.url(), "it names a generation that was never published")),
    }
}

/// The state of `_current` and `_SUCCESS`.
enum Pointers {
    Right,
    /// They are as they were before the commit.
    Behind,
}

/// Checks the manifest of a night against the commit, and the files against the manifest.
async fn check_generation(store: &Store, place: &Folder, night: &Night, report: &mut StoreReport) -> Result<()> {
    let generation = place.join(&generation_name(&night.gen_digest));
    let url = generation.join("manifest.json");
    let manifest = match Manifest::read(&generation, night).await {
        Ok(manifest) => manifest,
        Err(PipelineError::Store(error)) => return Ok(report.note(url.url(), Err(error)).map(drop)?),
        Err(error) => return Err(error),
    };
    let agrees = store.config_digest().is_some_and(|digest| manifest.is_of(night, digest));
    if !agrees {
        let reason = "the newest commit says otherwise about its date, configuration or joined runs";
        report.note(url.url(), Err(StoreError::damaged(url.url(), reason)))?;
    }
    for recorded in &manifest.files {
        let file = generation.join(&recorded.name);
        report.n_files += 1;
        let checked = check_content(file.file().await, recorded, report).await;
        let checked = checked.and_then(|parquet| check_schema(&parquet, &recorded.name));
        report.note(file.url(), checked)?;
    }
    Ok(())
}

/// Checks the columns of pairs, decisions and skipped documents.
fn check_schema(parquet: &ParquetFile, name: &str) -> nearprint_store::Result<()> {
    let expected: &SchemaRef = match name.split('/').next() {
        Some("pairs") => &PAIRS,
        Some("decisions") => &DECISIONS,
        Some("skipped") => &SKIPPED,
        _ => return Ok(()),
    };
    for field in expected.fields() {
        let data_type = parquet.data_type(field.name(), "its dataset has it")?;
        if data_type != field.data_type() {
            let reason = format!("column '{}' is {data_type}, expected {}", field.name(), field.data_type());
            return Err(StoreError::damaged(&parquet.file.url, reason));
        }
    }
    Ok(())
}

/// Returns the report on a store whose newest commit is damaged: nobody can say how the rest should be.
fn damaged(commits: CheckedCommits, folder: &Folder) -> CheckReport {
    CheckReport {
        store: folder.url().to_owned(),
        commit: commits.newest,
        n_commits: commits.n,
        n_nights: 0,
        n_files: 0,
        bytes: 0,
        behind: Vec::new(),
        n_unreferenced_files: 0,
        unreferenced_bytes: 0,
        problems: commits.problems,
    }
}
