//! How the objects of a store are named.

use nearprint_storage::Folder;

use crate::error::Result;

/// Below the store: the commits.
pub const COMMITS: &str = "_commits";
/// Below the store: the pages.
pub const PAGES: &str = "pages";

/// Below the store.
pub fn run_name(digest: &str) -> String {
    format!("runs/{digest}")
}

/// Below the store.
pub fn segment_name(digest: &str) -> String {
    format!("segments/{digest}")
}

/// Below a night's folder.
pub fn generation_name(digest: &str) -> String {
    format!("gen={digest}")
}

/// Numbers of the commits of the store at a folder, ascending.
pub async fn commit_numbers(folder: &Folder) -> Result<Vec<u64>> {
    let names = folder.join(COMMITS).names().await?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| commit_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

pub fn commit_name(sequence: u64) -> String {
    format!("{sequence:08}.json")
}

/// Other spellings of a number are somebody else's files.
pub fn commit_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".json")?.parse().ok()?;
    (commit_name(number) == name).then_some(number)
}

/// The first digits of a digest, for messages.
pub fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// A number that nobody draws twice. Nothing published depends on it.
pub fn drawn_number() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Below the store, as commits name what is removed.
pub fn page_name(digest: &str) -> String {
    format!("{PAGES}/{digest}")
}
