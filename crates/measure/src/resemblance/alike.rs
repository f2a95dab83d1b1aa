//! All pairs of texts that resemble each other.

use std::ops::Range;

use nearprint_storage::row_number;
use rayon::prelude::*;

use super::shingles::{Resemblance, ShingleSet};

/// The least resemblance of a pair that [`alike_pairs`] returns, in tenths.
pub const LEAST_TENTHS: u8 = 4;

/// Two texts that resemble each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlikePair {
    /// The position of the first text.
    pub a: u32,
    /// The position of the second text, which is larger than that of the first.
    pub b: u32,
    /// Their resemblance.
    pub resemblance: Resemblance,
}

/// Returns every pair of sets whose resemblance is 0.4 or more, in ascending order. None is missed.
///
/// For each set, the shingles that it shares with each later set are counted by an inverted index, so every two sets
/// that share a shingle are compared. The memory grows with the number of shingles of all sets, at about 30 bytes each,
/// and with the number of pairs that are returned. The time grows with the sum, over all shingles, of the squared
/// number of sets that have the shingle.
#[must_use]
pub fn alike_pairs(sets: &[ShingleSet]) -> Vec<AlikePair> {
    let index = Index::new(sets);
    let of_set = |counts: &mut Vec<u64>, a: u32| index.alike(sets, a, counts);
    (0..row_number(sets.len())).into_par_iter().map_init(|| vec![0; sets.len()], of_set).flatten_iter().collect()
}

/// The sets that have each shingle.
#[derive(Debug)]
struct Index {
    /// The sets of the first shingle in ascending order, then those of the second, and so on.
    members: Vec<u32>,
    /// For each set and each of its shingles, the range of `members` that has the later sets with this shingle, if
    /// there are any.
    later: Vec<Vec<Range<usize>>>,
}

impl Index {
    fn new(sets: &[ShingleSet]) -> Self {
        let mut entries: Vec<(u64, u32)> = Vec::with_capacity(sets.iter().map(ShingleSet::len).sum());
        for (set, shingles) in (0..).zip(sets) {
            entries.extend(shingles.iter().map(|shingle| (shingle, set)));
        }
        entries.par_sort_unstable();
        let mut later = vec![Vec::new(); sets.len()];
        let mut end = 0;
        for same in entries.chunk_by(|a, b| a.0 == b.0) {
            let start = end + 1;
            end += same.len();
            for (next, &(_, set)) in (start..end).zip(same) {
                later[set as usize].push(next..end);
            }
        }
        Self { members: entries.into_iter().map(|(_, set)| set).collect(), later }
    }

    /// Returns the pairs of set `a` and each later set that it resembles. `counts` is 0 for every set before and after.
    fn alike(&self, sets: &[ShingleSet], a: u32, counts: &mut [u64]) -> Vec<AlikePair> {
        let mut others = Vec::new();
        for &b in self.later[a as usize].iter().flat_map(|range| &self.members[range.clone()]) {
            let n_shared = &mut counts[b as usize];
            if *n_shared == 0 {
                others.push(b);
            }
            *n_shared += 1;
        }
        others.sort_unstable();
        let pair = |b: u32| {
            let n_shared = std::mem::take(&mut counts[b as usize]);
            let n_all = (sets[a as usize].len() + sets[b as usize].len()) as u64 - n_shared;
            AlikePair { a, b, resemblance: Resemblance { n_shared, n_all } }
        };
        let is_alike = |pair: &AlikePair| pair.resemblance.parts(10) >= u64::from(LEAST_TENTHS);
        others.into_iter().map(pair).filter(is_alike).collect()
    }
}
