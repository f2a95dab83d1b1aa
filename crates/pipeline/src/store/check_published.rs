//! `nearprint check`: the store, and what it published, against the commits.

use std::collections::HashSet;
use std::time::SystemTime;

use arrow::datatypes::SchemaRef;
use serde::Serialize;

use super::check::check_content;
use super::gc::Leftover;
use super::identity::check_identities;
use super::{COMMITS, Night, Store, StoreProblem, StoreReport, Stored};
use super::{commit_name, commit_numbers, generation_name, missing_store};
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
    let mut commits = Commits::check(&folder).await?;
    if !commits.newest_is_sound {
        // Nobody can say what the rest should be.
        return Ok(commits.damaged(&folder));
    }
    let store = match Store::open(&folder).await {
        // A page that an older commit was found to lack.
        Err(PipelineError::DamagedCommit { .. }) => return Ok(commits.damaged(&folder)),
        store => store?,
    };
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

/// What the commits of a store are, read one after another: a history of any length takes the memory of one.
struct Commits {
    n: u64,
    newest: u64,
    newest_is_sound: bool,
    problems: Vec<StoreProblem>,
}

impl Commits {
    async fn check(folder: &Folder) -> Result<Self> {
        let numbers = commit_numbers(folder).await?;
        let Some(&newest) = numbers.last() else {
            return Err(missing_store(folder.url()));
        };
        let mut commits = Self { n: numbers.len() as u64, newest, newest_is_sound: false, problems: Vec::new() };
        let (mut report, mut seen) = (StoreReport::of(folder), HashSet::new());
        for number in numbers {
            let file = folder.join(COMMITS).join(&commit_name(number));
            let checked = check_commit(folder, &file, number, number == newest, &mut seen).await;
            commits.newest_is_sound = report.note(file.url(), checked)?;
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
}

/// A run that dies after its commit leaves no `_SUCCESS`, or no `_current` of its own yet: that is no damage.
async fn check_pointers(folder: &Folder, place: &Folder, night: &Night) -> Result<Pointers> {
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
        Some(digest) if was_published(folder, place, &night.dt, digest).await? => Ok(Pointers::Behind),
        _ => Err(PipelineError::bad_file(pointer.url(), "it names a generation that was never published")),
    }
}

/// Refuses a commit under another one's name, one that does not follow the one before, and one whose pages are not what they were. Pages
/// that are `seen` were looked at.
async fn check_commit(
    folder: &Folder,
    file: &Folder,
    number: u64,
    is_newest: bool,
    seen: &mut HashSet<String>,
) -> Result<()> {
    let stored = Stored::read(file).await?;
    let parent = number.checked_sub(1).filter(|&parent| parent > 0);
    let is_in_place = match &stored {
        Stored::Pruned(sequence) if is_newest && *sequence == number => {
            return Err(PipelineError::damaged(file.url(), "pruned, though it is the newest commit"));
        }
        Stored::Pruned(sequence) => *sequence == number,
        _ => stored.place() == (number, parent),
    };
    if !is_in_place {
        return Err(PipelineError::damaged(file.url(), format!("a commit of number {}", stored.place().0)));
    }
    stored.unseen(folder, seen).await.map(drop)
}

/// Whether some commit names a generation of a night. Where the history was pruned, one that is there has been.
async fn was_published(folder: &Folder, place: &Folder, dt: &str, digest: &str) -> Result<bool> {
    let (mut seen, mut any_pruned) = (HashSet::new(), false);
    for number in commit_numbers(folder).await?.into_iter().rev() {
        let Ok(stored) = Stored::read(&folder.join(COMMITS).join(&commit_name(number))).await else {
            continue;
        };
        any_pruned |= matches!(stored, Stored::Pruned(_));
        let Ok((nights, _)) = stored.unseen(folder, &mut seen).await else {
            continue;
        };
        if nights.iter().any(|night| night.dt == dt && night.gen_digest == digest) {
            return Ok(true);
        }
    }
    let manifest = place.join(&generation_name(digest)).join("manifest.json");
    Ok(any_pruned && manifest.find().await?.is_some())
}

/// What `_current` and `_SUCCESS` say.
enum Pointers {
    Right,
    /// What they said before the commit.
    Behind,
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
