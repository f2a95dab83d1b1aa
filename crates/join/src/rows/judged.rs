//! Pairs of classes that a judge took for near-duplicates, by their texts.

use nearprint_fingerprint::{Alike, Verdict};

use crate::rows::lost_share::LossLimit;
use crate::rows::query_rows::QueryRows;
use crate::rows::undecided::UndecidedPair;

/// Two classes whose texts are alike, and the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedPair {
    /// The classes and their distances.
    pub pair: UndecidedPair,
    /// The verdict.
    pub verdict: Verdict,
}

/// The pairs of classes that a judge took for near-duplicates, and the rule by which documents are dropped for others.
#[derive(Debug, Default)]
pub struct JudgedPairs {
    /// By class, the smaller one first.
    pairs: Vec<JudgedPair>,
}

impl JudgedPairs {
    /// Makes a set of judged pairs, each given once.
    #[must_use]
    pub fn new(mut pairs: Vec<JudgedPair>) -> Self {
        pairs.sort_unstable_by_key(|judged| (judged.pair.a, judged.pair.b));
        debug_assert!(
            pairs.is_sorted_by(|x, y| (x.pair.a, x.pair.b) < (y.pair.a, y.pair.b)),
            "two classes are judged once"
        );
        Self { pairs }
    }

    /// Iterates over the pairs, by class.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &JudgedPair> {
        self.pairs.iter()
    }

    /// Returns what was judged of two classes, in whatever order they are given. `None` means that the judge did not take
    /// them for near-duplicates, or that their sketches had decided.
    #[must_use]
    pub fn get(&self, class: u32, other: u32) -> Option<&JudgedPair> {
        let key = (class.min(other), class.max(other));
        let at = self.pairs.binary_search_by_key(&key, |judged| (judged.pair.a, judged.pair.b));
        at.ok().map(|at| &self.pairs[at])
    }

    /// Returns the lost share of the rows of a class for those of another: exactly, if the two were judged, and otherwise as
    /// [`QueryRows::lost_share`] estimates it.
    #[must_use]
    pub fn lost_share(&self, rows: &QueryRows, class: u32, keeper: u32) -> Option<f64> {
        let Some(judged) = self.get(class, keeper) else { return rows.lost_share(class, keeper) };
        let own = rows.n_features(class)?;
        let lost = own.saturating_sub(judged.verdict.n_shared);
        Some(if own == 0 { 0.0 } else { f64::from(lost) / f64::from(own) })
    }

    /// Returns whether the rows of a class may be dropped for those of another: they lose no more than the limit allows, and
    /// of two texts of which one contains the other, the longer one is never dropped for the shorter.
    #[must_use]
    pub fn may_drop(&self, rows: &QueryRows, loss: LossLimit, class: u32, keeper: u32) -> bool {
        let contained = self.get(class, keeper).filter(|judged| judged.verdict.alike == Alike::Contained);
        let is_longer = contained.is_some() && rows.n_features(class) > rows.n_features(keeper);
        !is_longer && (loss == LossLimit::NONE || loss.allows(self.lost_share(rows, class, keeper)))
    }
}
