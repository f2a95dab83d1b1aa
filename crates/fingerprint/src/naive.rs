//! The oracles of the judge: what it measures, by definitions that anyone can check, in time for the square of the words.

use std::collections::{HashMap, HashSet};

use crate::sketch::MAX_OCCURRENCE;

/// Returns the length of a longest common subsequence, by the table of the textbook.
#[must_use]
pub fn n_common(a: &[u64], b: &[u64]) -> usize {
    let mut before = vec![0; b.len() + 1];
    for x in a {
        let mut row = vec![0; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            row[j + 1] = if x == y { before[j] + 1 } else { row[j].max(before[j + 1]) };
        }
        before = row;
    }
    before[b.len()]
}

/// Returns the number of distinct runs of three words that both texts have, and of those of the text that has fewer.
#[must_use]
pub fn n_contained(a: &[u64], b: &[u64]) -> (usize, usize) {
    let of = |words: &[u64]| -> HashSet<Vec<u64>> {
        let runs: HashSet<Vec<u64>> = words.windows(3).map(<[u64]>::to_vec).collect();
        if runs.is_empty() && !words.is_empty() { HashSet::from([words.to_vec()]) } else { runs }
    };
    let (a, b) = (of(a), of(b));
    (a.intersection(&b).count(), a.len().min(b.len()))
}

/// Returns the number of distinct features that both texts have, and of those of each text: words, each with the number
/// of its occurrence, and shingles.
#[must_use]
pub fn n_shared(a: &[u64], b: &[u64], shingle: usize) -> (usize, [usize; 2]) {
    let of = |words: &[u64]| -> HashSet<(usize, Vec<u64>)> {
        let mut seen: HashMap<u64, usize> = HashMap::new();
        let mut features: HashSet<(usize, Vec<u64>)> = HashSet::new();
        for &word in words {
            let occurrence = seen.entry(word).or_default();
            *occurrence += 1;
            if *occurrence <= MAX_OCCURRENCE {
                features.insert((*occurrence, vec![word]));
            }
        }
        if shingle > 1 {
            features.extend(words.windows(shingle).map(|run| (0, run.to_vec())));
        }
        features
    };
    let (a, b) = (of(a), of(b));
    (a.intersection(&b).count(), [a.len(), b.len()])
}
