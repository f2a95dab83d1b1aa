//! Reading all commits of a store. They are read one after another, so a history of any length takes the memory of one
//! commit.

use std::collections::HashSet;

use nearprint_fault::Result;
use nearprint_storage::Folder;

use super::check::{Damaged, StoreProblem, StoreReport};
use crate::commit::Stored;
use crate::error::damaged;
use crate::identity::missing_store;
use crate::names::{COMMITS, commit_name, commit_numbers};

/// The result of checking all commits of a store.
#[derive(Debug)]
pub struct CheckedCommits {
    /// The number of commits.
    pub n: u64,
    /// The number of the newest commit.
    pub newest: u64,
    /// The newest commit is sound. Only then it is known what everything else should be.
    pub newest_is_sound: bool,
    /// All problems of the commits.
    pub problems: Vec<StoreProblem>,
}

impl CheckedCommits {
    /// Reads and checks all commits.
    ///
    /// # Errors
    /// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if there is no commit; an error if the
    /// store does not answer.
    pub async fn check(folder: &Folder) -> Result<Self> {
        let numbers = commit_numbers(folder).await?;
        let Some(&newest) = numbers.last() else {
            return Err(missing_store(folder).await);
        };
        let mut commits = Self { n: numbers.len() as u64, newest, newest_is_sound: false, problems: Vec::new() };
        let (mut report, mut seen) = (StoreReport::of(folder), HashSet::new());
        for number in numbers {
            let file = folder.join(COMMITS).join(&commit_name(number));
            let checked = check_commit(folder, &file, number, number == newest, &mut seen).await;
            commits.newest_is_sound = report.note(&Damaged::Commit, file.url(), checked)?;
        }
        commits.problems = report.problems;
        Ok(commits)
    }
}

/// Refuses a commit whose number is not the one in its name, one that does not follow the commit before it, and one
/// with a damaged page. Pages in `seen` are not read again.
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
            return Err(damaged(file.url(), "pruned, though it is the newest commit"));
        }
        Stored::Pruned(sequence) => *sequence == number,
        _ => stored.place() == (number, parent),
    };
    if !is_in_place {
        return Err(damaged(file.url(), format!("a commit of number {}", stored.place().0)));
    }
    stored.unseen(folder, seen).await.map(drop)
}
