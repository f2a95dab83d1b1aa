//! The names in a log.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use nearprint_storage::is_uuid;

/// The folder of a log with files that its checkpoints name.
pub const SIDECARS: &str = "_sidecars";

/// The names in a log. Names of other forms are passed over.
#[derive(Debug, Default)]
pub struct LogNames {
    /// The versions of the commits.
    pub commits: BTreeSet<u64>,
    /// The files of each complete checkpoint, by version.
    pub checkpoints: BTreeMap<u64, BTreeSet<String>>,
    /// The versions of checkpoints of which a part is missing.
    pub incomplete: BTreeSet<u64>,
}

/// Returns the file name of the commit of a version.
pub fn commit_name(version: u64) -> String {
    format!("{version:020}.json")
}

/// Returns the file name of the checkpoint of a version that consists of one file.
pub fn checkpoint_name(version: u64) -> String {
    format!("{version:020}.checkpoint.parquet")
}

/// Returns the version of the commit with this file name.
#[must_use]
pub fn version_of(name: &str) -> Option<u64> {
    version_digits(name.strip_suffix(".json")?)
}

/// Parses a version, which has 20 digits in the names of a log, and has a next one.
fn version_digits(digits: &str) -> Option<u64> {
    number(digits).filter(|&version| digits.len() == 20 && version < u64::MAX)
}

/// Parses a number that consists of digits alone.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

impl LogNames {
    /// Takes the names of the files in a log.
    pub fn of(names: Vec<String>) -> Self {
        let mut found = Self::default();
        let mut several: BTreeMap<(u64, u64), BTreeSet<String>> = BTreeMap::new();
        let mut by_id: BTreeMap<u64, String> = BTreeMap::new();
        for name in names {
            let parts: Vec<&str> = name.split('.').collect();
            match parts[..] {
                [at, "json"] => found.commits.extend(version_digits(at)),
                [at, "checkpoint", "parquet"] => {
                    let version = version_digits(at).into_iter();
                    found.checkpoints.extend(version.map(|version| (version, BTreeSet::from([name.clone()]))));
                }
                [at, "checkpoint", id, "parquet" | "json"] if is_uuid(id) => {
                    let version = version_digits(at).into_iter();
                    by_id.extend(version.map(|version| (version, name.clone())));
                }
                [at, "checkpoint", part, of, "parquet"] => {
                    if let (Some(version), Some(_), Some(of)) = (version_digits(at), number(part), number(of)) {
                        several.entry((version, of)).or_default().insert(name.clone());
                    }
                }
                _ => {}
            }
        }
        for ((version, of), parts) in several {
            if parts.len() as u64 == of {
                found.checkpoints.entry(version).or_insert(parts);
            } else {
                found.incomplete.insert(version);
            }
        }
        for (version, name) in by_id {
            found.checkpoints.entry(version).or_insert_with(|| BTreeSet::from([name]));
        }
        found
    }

    /// Returns the newest version.
    pub fn newest(&self) -> Option<u64> {
        self.commits.last().copied().max(self.checkpoints.keys().last().copied())
    }

    /// Returns the newest checkpoint that is not newer than a version.
    pub fn checkpoint(&self, version: u64) -> Option<(u64, &BTreeSet<String>)> {
        self.checkpoints.range(..=version).next_back().map(|(version, parts)| (*version, parts))
    }

    /// Returns versions that can be read, without a gap: the newest ones.
    pub fn newest_whole(&self) -> Option<RangeInclusive<u64>> {
        let from_start = self.commits.first().filter(|first| **first == 0);
        let starts = from_start.into_iter().chain(self.checkpoints.keys()).copied();
        let whole = starts.map(|start| {
            // No version is the largest number.
            let later = (start + 1..).zip(self.commits.range(start + 1..).copied());
            let last = later.take_while(|(wanted, there)| wanted == there).last();
            start..=last.map_or(start, |(end, _)| end)
        });
        // Of ranges that end alike, the longest.
        whole.max_by_key(|versions| (*versions.end(), Reverse(*versions.start())))
    }
}

#[cfg(test)]
mod tests {
    use super::LogNames;

    #[test]
    fn a_checkpoint_with_a_part_missing_does_not_count() {
        let names = |all: &[&str]| LogNames::of(all.iter().map(|name| (*name).to_owned()).collect());
        let one = "00000000000000000002.checkpoint.0000000001.0000000002.parquet";
        let two = "00000000000000000002.checkpoint.0000000002.0000000002.parquet";
        assert_eq!(names(&[one]).newest(), None);
        assert_eq!(
            names(&[one, two, "_last_checkpoint"]).checkpoint(7).map(|(at, parts)| (at, parts.len())),
            Some((2, 2))
        );
        assert_eq!(names(&["00000000000000000003.json", one]).newest(), Some(3));
        let by_id = "00000000000000000004.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json";
        assert_eq!(names(&[by_id]).checkpoint(4).map(|(at, parts)| (at, parts.len())), Some((4, 1)));
        assert_eq!(names(&["00000000000000000004.checkpoint.x.json"]).newest(), None);
        assert_eq!(names(&["00000000000000000003.crc", "x.json", "+3.json", "3.json"]).newest(), None);
    }

    #[test]
    fn the_newest_versions_without_a_gap_are_named_and_checkpoints_that_lack_a_part() {
        let of = |commits: &[u64], parts: &[u64]| {
            let commits = commits.iter().map(|at| format!("{at:020}.json"));
            let parts = parts.iter().map(|part| format!("{:020}.checkpoint.{part:010}.0000000002.parquet", 2));
            LogNames::of(commits.chain(parts).collect())
        };
        assert_eq!(of(&[0, 1, 3], &[]).newest_whole(), Some(0..=1));
        assert_eq!(of(&[0, 1, 2, 3], &[1, 2]).newest_whole(), Some(0..=3));
        assert_eq!(of(&[0, 1, 3, 4, 6], &[1, 2]).newest_whole(), Some(2..=4));
        assert_eq!(of(&[3, 4], &[1]).newest_whole(), None);
        assert!(of(&[3, 4], &[1]).incomplete.contains(&2) && of(&[3, 4], &[1, 2]).incomplete.is_empty());
    }
}
