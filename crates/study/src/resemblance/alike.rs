//! All pairs of texts that resemble each other.

use std::collections::HashMap;

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

/// Returns every pair of sets whose resemblance is 0.4 or more, by position. None is missed.
///
/// Two sets of resemblance s share at least s · n shingles of the one with n shingles, and of the other likewise. If
/// each set is ordered from its rarest shingle to its most frequent one, they therefore share one of the first
/// n - ⌈s n⌉ + 1 of each ("prefix filtering": Chaudhuri, Ganti, Kaushik, "A Primitive Operator for Similarity Joins in
/// Data Cleaning", ICDE 2006). Only sets that do so are compared.
///
/// The memory grows with the number of shingles of all sets and with the number of pairs. The time does too, and with
/// the number of sets that share a shingle: of n texts from one template, each is compared with each.
#[must_use]
pub fn alike_pairs(sets: &[ShingleSet]) -> Vec<AlikePair> {
    let prefixes = prefixes(sets);
    let mut by_shingle: HashMap<u64, Vec<u32>> = HashMap::new();
    for (set, prefix) in (0..).zip(&prefixes) {
        prefix.iter().for_each(|&shingle| by_shingle.entry(shingle).or_default().push(set));
    }
    let of_set = |a: u32| {
        let of_shingle = |shingle| by_shingle.get(shingle).map_or(&[][..], Vec::as_slice);
        let later = |sets: &[u32]| sets[sets.partition_point(|&b| b <= a)..].to_vec();
        let mut candidates: Vec<u32> = prefixes[a as usize].iter().map(of_shingle).flat_map(later).collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates.into_iter().filter_map(|b| alike(sets, a, b)).collect::<Vec<_>>()
    };
    (0..row_number(sets.len())).into_par_iter().flat_map_iter(of_set).collect()
}

/// Returns the first shingles of each set, of which two sets that resemble each other share at least one. Shingles that
/// no other set has are left out.
fn prefixes(sets: &[ShingleSet]) -> Vec<Vec<u64>> {
    let mut n_sets: HashMap<u64, u32> = HashMap::new();
    for shingle in sets.iter().flat_map(ShingleSet::iter) {
        *n_sets.entry(shingle).or_default() += 1;
    }
    let prefix = |set: &ShingleSet| {
        let mut shingles: Vec<(u32, u64)> = set.iter().map(|shingle| (n_sets[&shingle], shingle)).collect();
        shingles.sort_unstable();
        shingles.truncate(set.len() + 1 - least_shared(set.len()));
        shingles.into_iter().filter(|&(n_sets, _)| n_sets > 1).map(|(_, shingle)| shingle).collect()
    };
    sets.par_iter().map(prefix).collect()
}

/// Returns the least number of shingles that a set of `n` shares with a set that it resembles.
fn least_shared(n: usize) -> usize {
    (usize::from(LEAST_TENTHS) * n).div_ceil(10)
}

fn alike(sets: &[ShingleSet], a: u32, b: u32) -> Option<AlikePair> {
    let (of_a, of_b) = (&sets[a as usize], &sets[b as usize]);
    if of_a.len().min(of_b.len()) < least_shared(of_a.len().max(of_b.len())) {
        return None;
    }
    let resemblance = of_a.resemblance(of_b);
    (resemblance.parts(10) >= u64::from(LEAST_TENTHS)).then_some(AlikePair { a, b, resemblance })
}
