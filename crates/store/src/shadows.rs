//! Documents that several nights have. The row of the earlier night is shadowed.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::Date32Array;
use nearprint_join::RowSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::redecided::{StoredDecision, StoredOutcome};

/// A row of a run whose document a run of a later date has again. If `run` or `by` is empty, it stands for the run that
/// holds this shadow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shadow {
    /// The run that has the row.
    pub run: Arc<str>,
    /// The run that has its document again.
    pub by: Arc<str>,
    /// The row of the document.
    pub row: u32,
}

/// How the text of a document compares with the newest state that nights of earlier dates have of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recrawl {
    /// They have no document of this id.
    New,
    /// Its normalised text is the same, or neither of the two has a text.
    Same,
    /// Its normalised text is another.
    Changed,
}

impl Recrawl {
    /// Returns its name in datasets.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Same => "same",
            Self::Changed => "changed",
        }
    }
}

/// What a document is to the nights before its own. Dates are days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecrawlHistory {
    /// How its text compares with its newest earlier state.
    pub recrawl: Recrawl,
    /// The date of the first night that had the id.
    pub first_seen: i32,
    /// The date of the night since which the document has had its text.
    pub last_changed: i32,
}

/// A document of the night that nights of earlier dates have too.
#[derive(Debug, Clone)]
pub(crate) struct Recrawled {
    /// The row of the query batch.
    pub row: u32,
    /// The earliest date that the earlier states have as that of their first night.
    pub first_seen: i32,
    /// The date since which the newest earlier state had its text.
    pub last_changed: i32,
    /// Whether the newest earlier state has the same text.
    pub is_same: bool,
    /// The position of the night of the newest earlier state among the nights of the store.
    pub night: u32,
    /// The row of the newest earlier state in the run of its night.
    pub run_row: u32,
    /// What became of the newest earlier state: in its night, or in a later one that decided it again.
    pub decision: StoredDecision,
}

impl Recrawled {
    fn is_kept(&self) -> bool {
        self.decision.outcome == StoredOutcome::Keep
    }

    fn state(&self) -> EarlierState<'_> {
        let Self { decision, is_same, night, run_row, .. } = self;
        EarlierState { decision, is_same: *is_same, night: *night as usize, run_row: *run_row }
    }
}

/// The documents of a night that other nights have too.
#[derive(Debug, Default)]
pub struct Recrawls {
    /// The date of the night.
    night: i32,
    /// The documents that nights of earlier dates have, by row.
    earlier: Vec<Recrawled>,
    /// The documents that nights of later dates have, by row.
    later: RowSet,
    /// The shadows, sorted.
    pub shadows: Vec<Shadow>,
}

/// The numbers of a night's documents by what they are to the nights before. Together they are all its documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecrawlCounts {
    /// The number of documents whose ids no earlier night has.
    pub n_new: u64,
    /// The number of documents with the same normalised text as the newest earlier state of their ids, or like it without one.
    pub n_same: u64,
    /// The number of documents with another text than the newest earlier state of their ids.
    pub n_changed: u64,
}

/// Columns of run files that say since when the night's documents are what they are.
#[derive(Debug)]
pub struct HistoryColumns {
    /// The dates of the first nights that had the ids.
    pub first_seen: Date32Array,
    /// The dates of the nights since which the documents have had their texts.
    pub last_changed: Date32Array,
}

/// The state of a document in the latest earlier night that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierState<'a> {
    /// What became of it: in that night, or in a later one before the night that decided it again.
    pub decision: &'a StoredDecision,
    /// Whether it has the same text as the document of the night, or like it none.
    pub is_same: bool,
    /// The position of its night among the nights of the store.
    pub night: usize,
    /// Its row in the run of that night.
    pub run_row: u32,
}

impl EarlierState<'_> {
    /// Returns whether the document is kept: its night kept it, or a later one decided so.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.decision.outcome == StoredOutcome::Keep
    }
}

/// The shadowed rows of each run, by the run's digest.
pub type Shadowed = HashMap<String, RowSet>;

impl Recrawls {
    /// Returns the recrawls of the night of a date. `earlier` are the documents that nights before it have, by row.
    pub(crate) fn new(night: i32, earlier: Vec<Recrawled>, later: RowSet, mut shadows: Vec<Shadow>) -> Self {
        debug_assert!(earlier.is_sorted_by(|a, b| a.row < b.row), "a document is found by bisection");
        shadows.sort_unstable();
        Self { night, earlier, later, shadows }
    }

    /// Returns the number of documents whose id a night of an earlier date has.
    pub fn n_same_id(&self) -> u64 {
        self.earlier.len() as u64
    }

    /// Returns what the `n_documents` documents of the night are to the nights before, in numbers.
    pub fn counts(&self, n_documents: u32) -> RecrawlCounts {
        let n_same = self.earlier.iter().filter(|earlier| earlier.is_same).count() as u64;
        RecrawlCounts { n_new: u64::from(n_documents) - self.n_same_id(), n_same, n_changed: self.n_same_id() - n_same }
    }

    /// Returns what some documents of the night are to the nights before.
    pub fn columns(&self, rows: impl Iterator<Item = u32>) -> HistoryColumns {
        let histories: Vec<RecrawlHistory> = rows.map(|row| self.history(row)).collect();
        HistoryColumns {
            first_seen: histories.iter().map(|history| Some(history.first_seen)).collect(),
            last_changed: histories.iter().map(|history| Some(history.last_changed)).collect(),
        }
    }

    /// Returns what a document of the night is to the nights before.
    pub fn history(&self, row: u32) -> RecrawlHistory {
        match self.earlier_of(row) {
            None => RecrawlHistory { recrawl: Recrawl::New, first_seen: self.night, last_changed: self.night },
            Some(&Recrawled { first_seen, last_changed, is_same: true, .. }) => {
                RecrawlHistory { recrawl: Recrawl::Same, first_seen, last_changed }
            }
            Some(&Recrawled { first_seen, .. }) => {
                RecrawlHistory { recrawl: Recrawl::Changed, first_seen, last_changed: self.night }
            }
        }
    }

    /// Returns whether a night of a later date has the document of a row.
    pub fn has_later(&self, row: u32) -> bool {
        self.later.contains(row)
    }

    /// Returns whether a night of an earlier date has the document of a row.
    pub fn has(&self, row: u32) -> bool {
        self.earlier_of(row).is_some()
    }

    fn earlier_of(&self, row: u32) -> Option<&Recrawled> {
        let at = self.earlier.binary_search_by_key(&row, |earlier| earlier.row).ok()?;
        self.earlier.get(at)
    }

    /// Returns whether the latest earlier version of a row's document was kept. Such rows come first in keep order,
    /// before documents that the store has never seen, so that a document that represents others goes on doing so.
    pub fn is_incumbent(&self, row: u32) -> bool {
        self.earlier_of(row).is_some_and(Recrawled::is_kept)
    }

    /// Returns whether the latest earlier version of a row's document has the same text.
    pub fn is_same(&self, row: u32) -> bool {
        self.earlier_of(row).is_some_and(|earlier| earlier.is_same)
    }

    /// Returns the rows of the query batch whose ids nights of earlier dates have, each with the latest earlier state.
    pub fn earlier(&self) -> impl Iterator<Item = (u32, EarlierState<'_>)> {
        self.earlier.iter().map(|earlier| (earlier.row, earlier.state()))
    }

    /// Returns the latest earlier state of the document of a row, or `None` if no night of an earlier date has it.
    pub fn state_before(&self, row: u32) -> Option<EarlierState<'_>> {
        self.earlier_of(row).map(Recrawled::state)
    }

    /// Returns the approximate number of bytes that are held.
    pub fn memory_bytes(&self) -> usize {
        let of_id = |earlier: &Recrawled| match &earlier.decision.outcome {
            StoredOutcome::Drop(canonical) => canonical.id.len(),
            StoredOutcome::Keep | StoredOutcome::Skip => 0,
        };
        let ids: usize = self.earlier.iter().map(of_id).sum();
        self.shadows.capacity() * size_of::<Shadow>() + self.earlier.capacity() * size_of::<Recrawled>() + ids
    }

    /// Returns the rows of earlier runs that the query batch has again, by run.
    pub(crate) fn shadowed(&self) -> Shadowed {
        let mut rows = Shadowed::new();
        for shadow in self.shadows.iter().filter(|s| s.by.is_empty()) {
            rows.entry(shadow.run.to_string()).or_default().insert(shadow.row);
        }
        rows
    }
}
