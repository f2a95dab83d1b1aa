//! The names of the objects in a store.

use nearprint_fault::Result;
use nearprint_storage::Folder;

/// The folder of the commits, below the store.
pub const COMMITS: &str = "_commits";
/// The folder of the pages, below the store.
pub const PAGES: &str = "pages";

/// The folder of the runs, below the store.
pub const RUNS: &str = "runs";

/// Returns the path of a run below the store.
pub fn run_name(digest: &str) -> String {
    format!("{RUNS}/{digest}")
}

/// The folder of the segments, below the store.
pub const SEGMENTS: &str = "segments";

/// Returns the path of a segment below the store.
pub fn segment_name(digest: &str) -> String {
    format!("{SEGMENTS}/{digest}")
}

/// The folder of the indexes, below the store.
pub const INDEXES: &str = "indexes";

/// Returns the path of an index below the store.
pub fn index_name(digest: &str) -> String {
    format!("{INDEXES}/{digest}")
}

/// The folder of an output that holds what is no table: the manifests of the nights. Readers of tables and folders pass
/// over names that begin with `_`.
pub const RECORDS: &str = "_nearprint";

/// The name of the manifest in the folder of a generation.
pub const MANIFEST: &str = "manifest.json";

/// Returns the path below an output of the folder with the manifests of a night's generations.
pub fn night_records(dt: &str) -> String {
    format!("{RECORDS}/dt={dt}")
}

/// Returns the path of a generation below the folder with the manifests of its night.
pub fn generation_name(digest: &str) -> String {
    format!("gen={digest}")
}

/// Returns the numbers of all commits of the store at a folder, ascending.
///
/// # Errors
/// The folder of the commits cannot be listed.
pub async fn commit_numbers(folder: &Folder) -> Result<Vec<u64>> {
    let names = folder.join(COMMITS).names().await?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| commit_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

pub fn commit_name(sequence: u64) -> String {
    format!("{sequence:08}.json")
}

/// Returns the number of the commit with this file name. A file that spells a number in another way is not nearprint's.
pub fn commit_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".json")?.parse().ok()?;
    (commit_name(number) == name).then_some(number)
}

/// Returns the first digits of a digest, for messages.
pub fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// Draws a random number, which is not expected to be drawn twice. Nothing that is published depends on it.
pub fn drawn_number() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Returns the path of a page below the store without its ending, which is the name that removals use.
pub fn page_name(digest: &str) -> String {
    format!("{PAGES}/{digest}")
}

/// Returns whether a name has hex digits alone.
pub fn is_hex(name: &str) -> bool {
    name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether a name has 32 hex digits, as the digests of runs, segments, indexes, pages and generations have.
pub fn is_digest(name: &str) -> bool {
    name.len() == 32 && is_hex(name)
}
