//! All commits of a store, looked at one after another: a history of any length takes the memory of one.

use std::collections::HashSet;

use nearprint_storage::Folder;

use crate::check::{StoreProblem, StoreReport};
use crate::commit::Stored;
use crate::error::{Result, StoreError};
use crate::names::{COMMITS, commit_name, commit_numbers, generation_name};
use crate::store::missing_store;

/// What the commits of a store are.
#[derive(Debug)]
pub struct CheckedCommits {
    /// How many there are.
    pub n: u64,
    /// The number of the newest.
    pub newest: u64,
    /// Whether the newest is what it was: only then can anybody say what the rest should be.
    pub newest_is_sound: bool,
    /// Everything that is wrong with them.
    pub problems: Vec<StoreProblem>,
}

impl CheckedCommits {
    /// Reads all commits.
    ///
    /// # Errors
    /// [`StoreError::InputMissing`] where there is none; a place that does not answer.
    pub async fn check(folder: &Folder) -> Result<Self> {
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
            return Err(StoreError::damaged(file.url(), "pruned, though it is the newest commit"));
        }
        Stored::Pruned(sequence) => *sequence == number,
        _ => stored.place() == (number, parent),
    };
    if !is_in_place {
        return Err(StoreError::damaged(file.url(), format!("a commit of number {}", stored.place().0)));
    }
    stored.unseen(folder, seen).await.map(drop)
}

/// Whether some commit names a generation of a night. Where the history was pruned, one that is there has been.
pub async fn was_published(folder: &Folder, place: &Folder, dt: &str, digest: &str) -> Result<bool> {
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
