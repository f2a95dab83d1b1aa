//! `nearprint check`: the store, and what it published, against the commits.

use std::collections::HashSet;
use std::time::SystemTime;

use arrow::datatypes::SchemaRef;
use serde::Serialize;

use super::check::check_content;
use super::gc::Leftover;
use super::{COMMITS, Commit, Night, Store, StoreProblem, StoreReport, commit_name, commit_number, generation_name};
use crate::error::{PipelineError, Result};
use crate::progress::Progress;
use crate::run::Manifest;
use crate::schema::{DECISIONS, PAIRS, SKIPPED};
use crate::storage::{Folder, Storage};

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRequest {
    /// The store.
    pub store: String,
    /// Root of results, beside those that the newest commit names: files there are counted that no commit names.
    pub output: Option<String>,
    /// One night only; all where none.
    pub dt: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The store.
    pub store: String,
    /// Number of the newest commit.
    pub commit: u64,
    /// Commits read.
    pub n_commits: u64,
    /// Nights whose files were read.
    pub n_nights: u64,
    /// Data files read.
    pub n_files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Nights that are published, but `_current` or `_SUCCESS` do not say so yet: the next run completes the newest one, and a run of its
    /// date any other.
    pub behind: Vec<String>,
    /// Files that no commit names.
    pub n_unreferenced_files: u64,
    /// Their bytes.
    pub unreferenced_bytes: u64,
    /// Everything that is wrong.
    pub problems: Vec<StoreProblem>,
}

pub(crate) async fn check(storage: &Storage, request: &CheckRequest, progress: &Progress) -> Result<CheckReport> {
    let folder = storage.folder(&request.store)?;
    let mut commits = Commits::read(&folder).await?;
    let Some(newest) = commits.read.pop() else {
        // Nobody can say what the rest should be.
        return Ok(commits.damaged(&folder));
    };
    let store = Store { folder: folder.clone(), commit: Some(newest) };
    let wanted = |night: &&Night| request.dt.as_ref().is_none_or(|dt| *dt == night.dt);
    let nights: Vec<&Night> = store.nights().iter().filter(wanted).collect();
    if let Some(dt) = request.dt.as_ref().filter(|_| nights.is_empty()) {
        let url = format!("{} dt={dt}", request.store);
        return Err(PipelineError::InputMissing { what: "published night", url, remedy: "run it first" });
    }
    let mut report = store.check_nights(nights.iter().copied(), progress).await?;
    let mut behind = Vec::new();
    progress.start("check", "nights", nights.len() as u64);
    for night in &nights {
        let place = storage.folder(&night.output)?;
        store.check_generation(&place, night, &mut report).await?;
        let pointers = check_pointers(&place, night, &commits.generations(&night.dt)).await;
        match pointers {
            Ok(Pointers::Behind) => behind.push(night.dt.clone()),
            other => drop(report.note(place.url(), other.map(drop))?),
        }
        progress.advance(1);
    }
    let live = store.live(SystemTime::now()).await?;
    let leftovers = store.leftovers(storage, request.output.as_deref(), &live).await?;
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

/// All commits of a store.
struct Commits {
    n: u64,
    newest: u64,
    /// By number, as far as they are what they were; empty where the newest is not.
    read: Vec<Commit>,
    problems: Vec<StoreProblem>,
}

impl Commits {
    async fn read(folder: &Folder) -> Result<Self> {
        let place = folder.join(COMMITS);
        let mut numbers: Vec<u64> = place.names().await?.iter().filter_map(|name| commit_number(name)).collect();
        numbers.sort_unstable();
        let Some(&newest) = numbers.last() else {
            let remedy = "the first `nearprint run` makes one";
            return Err(PipelineError::InputMissing { what: "store", url: folder.url().to_owned(), remedy });
        };
        let mut commits = Self { n: numbers.len() as u64, newest, read: Vec::new(), problems: Vec::new() };
        let mut report = StoreReport::of(folder);
        for number in numbers {
            let file = place.join(&commit_name(number));
            let read = Commit::read(&file).await.and_then(|commit| in_place(&file, number, commit));
            match read {
                Ok(commit) => commits.read.push(commit),
                Err(error) => drop(report.note(file.url(), Err(error))?),
            }
        }
        if commits.read.last().is_none_or(|last| last.sequence != newest) {
            commits.read.clear();
        }
        commits.problems = report.problems;
        Ok(commits)
    }

    fn damaged(self, folder: &Folder) -> CheckReport {
        CheckReport {
            store: folder.url().to_owned(),
            commit: self.newest,
            n_commits: self.n,
            n_nights: 0,
            n_files: 0,
            bytes: 0,
            behind: Vec::new(),
            n_unreferenced_files: 0,
            unreferenced_bytes: 0,
            problems: self.problems,
        }
    }

    /// Generations that a night had before.
    fn generations(&self, dt: &str) -> HashSet<&str> {
        let nights = self.read.iter().flat_map(|commit| &commit.nights);
        nights.filter(|night| night.dt == dt).map(|night| night.gen_digest.as_str()).collect()
    }
}

/// Refuses a commit under another one's name, or one that does not follow the one before.
fn in_place(file: &Folder, number: u64, commit: Commit) -> Result<Commit> {
    let parent = number.checked_sub(1).filter(|&parent| parent > 0);
    if (commit.sequence, commit.parent) == (number, parent) {
        return Ok(commit);
    }
    Err(PipelineError::damaged(file.url(), format!("a commit of number {}", commit.sequence)))
}

/// What `_current` and `_SUCCESS` say.
enum Pointers {
    Right,
    /// What they said before the commit.
    Behind,
}

/// A run that dies after its commit leaves no `_SUCCESS`, or no `_current` of its own yet: that is no damage.
async fn check_pointers(place: &Folder, night: &Night, earlier: &HashSet<&str>) -> Result<Pointers> {
    let success = place.join(&generation_name(&night.gen_digest)).join("_SUCCESS");
    let there = success.get().await?;
    if there.as_ref().is_some_and(|content| !content.is_empty()) {
        return Err(PipelineError::bad_file(success.url(), "it should be empty"));
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
            Err(PipelineError::bad_file(success.url(), "it is gone, though _current names its generation"))
        }
        Some(digest) if earlier.contains(digest) => Ok(Pointers::Behind),
        _ => Err(PipelineError::bad_file(pointer.url(), "it names a generation that was never published")),
    }
}

impl Store {
    /// The manifest of a night against the commit, and the files against the manifest.
    async fn check_generation(&self, place: &Folder, night: &Night, report: &mut StoreReport) -> Result<()> {
        let generation = place.join(&generation_name(&night.gen_digest));
        let url = generation.join("manifest.json");
        let manifest = match Manifest::read(&generation, night).await {
            Ok(manifest) => manifest,
            Err(error) => return report.note(url.url(), Err(error)).map(drop),
        };
        let agrees = self.commit.as_ref().is_some_and(|commit| manifest.is_of(night, &commit.config_digest));
        if !agrees {
            let reason = "the newest commit says otherwise about its date, configuration or joined runs";
            report.note(url.url(), Err(PipelineError::bad_file(url.url(), reason)))?;
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
}

impl StoreReport {
    fn of(folder: &Folder) -> Self {
        Self { store: folder.url().to_owned(), n_files: 0, bytes: 0, n_rows: 0, problems: Vec::new() }
    }
}

/// The columns of pairs, decisions and skipped documents.
fn check_schema(parquet: &crate::parquet_file::ParquetFile, name: &str) -> Result<()> {
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
            return Err(PipelineError::bad_file(&parquet.file.url, reason));
        }
    }
    Ok(())
}
