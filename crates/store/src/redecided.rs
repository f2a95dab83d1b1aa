//! What nights decided about the documents in their run files, and what later nights decided again, because the documents
//! that represented these are gone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{Array, StringArray};
use nearprint_fault::Result;
use nearprint_join::RowSet;
use nearprint_parquet::schema::{CANONICAL_ID, DROP, KEEP, REASON, REFERENCE, SKIP};
use nearprint_parquet::{Columns, value};

use crate::interned::Names;

/// The document that represents a dropped one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewCanonical {
    /// Its id.
    pub id: Box<str>,
    /// The reference store that has it, as the job names it. `None` means that it is a document of the dropped one's own
    /// store.
    pub reference: Option<Arc<str>>,
}

impl NewCanonical {
    /// Returns whether it is a document of the dropped one's own store, and not of a reference store.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.reference.is_none()
    }
}

/// What became of a document in its night, or in a later one that decided it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDecision {
    /// Whether it is kept, dropped or skipped.
    pub outcome: StoredOutcome,
    /// The reason, as `decisions` has it. `None` means that nobody knows it: the runs of release 0.2.0 do not say it.
    pub reason: Option<Arc<str>>,
}

/// Whether a document is kept, dropped or skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredOutcome {
    /// It is kept.
    Keep,
    /// It is dropped for another document.
    Drop(NewCanonical),
    /// It has no text.
    Skip,
}

impl StoredOutcome {
    /// Returns the outcome as the column `decision` has it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Keep => KEEP,
            Self::Drop(_) => DROP,
            Self::Skip => SKIP,
        }
    }
}

/// The columns of a file of a run that say what became of its documents.
pub(crate) struct DecisionColumns<'a> {
    /// `None` in the file of documents without text.
    canonical: Option<&'a StringArray>,
    reason: Option<&'a StringArray>,
    reference: Option<&'a StringArray>,
}

impl<'a> DecisionColumns<'a> {
    /// The names of the columns, as far as a file has them.
    pub(crate) const NAMES: [&'static str; 3] = [CANONICAL_ID, REASON, REFERENCE];

    pub(crate) fn of(columns: Columns<'a>) -> Result<Self> {
        let optional = |name: &str| columns.optional(name, Columns::strings);
        let (canonical, reason, reference) = (optional(CANONICAL_ID)?, optional(REASON)?, optional(REFERENCE)?);
        Ok(Self { canonical, reason, reference })
    }

    /// Returns what became of the document of a row.
    pub(crate) fn row(&self, i: usize, names: &mut Names) -> StoredDecision {
        let mut name_in =
            |column: Option<&StringArray>| column.and_then(|column| value(column, i)).map(|name| names.of(name));
        let (reason, reference) = (name_in(self.reason), name_in(self.reference));
        let outcome = match self.canonical {
            None => StoredOutcome::Skip,
            Some(ids) if ids.is_null(i) => StoredOutcome::Keep,
            Some(ids) => StoredOutcome::Drop(NewCanonical { id: ids.value(i).into(), reference }),
        };
        StoredDecision { outcome, reason }
    }
}

/// A dropped row of a run, as the run of a later date decided it again. If `run` or `by` is empty, it stands for the run
/// that holds this redecision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Redecision {
    /// The run that has the row.
    pub run: Arc<str>,
    /// The run that decided it again.
    pub by: Arc<str>,
    /// The row.
    pub row: u32,
    /// What became of it.
    pub decision: NewDecision,
}

/// The reason of a document that is decided again and kept.
pub const RESTORED: &str = "restored";

/// What became of a document that was decided again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewDecision {
    /// The document that represents it from then on. `None` means that it is kept.
    pub canonical: Option<NewCanonical>,
    /// The reason, as `redecided` has it.
    pub reason: Arc<str>,
    /// Its own id.
    pub id: Box<str>,
    /// The id that names its family from then on.
    pub family: Arc<str>,
}

impl NewDecision {
    /// Returns it in the form that decisions of a document's own night have.
    #[must_use]
    pub fn stored(&self) -> StoredDecision {
        let outcome = self.canonical.clone().map_or(StoredOutcome::Keep, StoredOutcome::Drop);
        StoredDecision { outcome, reason: Some(Arc::clone(&self.reason)) }
    }
}

/// The rows of runs that later ones of some nights decided again, by the digest of the run. Of each row, the latest night
/// counts.
#[derive(Debug, Default)]
pub struct Redecided(HashMap<String, RedecidedRows>);

/// The rows of one run that later nights decided again.
pub type RedecidedRows = BTreeMap<u32, NewDecision>;

impl Redecided {
    /// Adds what was decided again of a row, in place of what was known.
    pub fn insert(&mut self, run: &str, row: u32, decision: NewDecision) {
        self.0.entry(run.to_owned()).or_default().insert(row, decision);
    }

    /// Returns what was decided again of a row of a run. `None` means that nothing was.
    #[must_use]
    pub fn of_row(&self, digest: &str, row: u32) -> Option<&NewDecision> {
        self.of_run(digest)?.get(&row)
    }

    /// Returns the rows of a run that were decided again. `None` means that there are none.
    #[must_use]
    pub fn of_run(&self, digest: &str) -> Option<&RedecidedRows> {
        self.0.get(digest)
    }

    /// Takes out the rows of a run that were decided again.
    pub fn take_run(&mut self, digest: &str) -> RedecidedRows {
        // Of most runs, no row was decided again.
        self.0.remove(digest).unwrap_or_default()
    }

    /// Returns the rows of a run that are kept now, and were dropped in their own night.
    #[must_use]
    pub fn restored(&self, digest: &str) -> RowSet {
        let mut rows = RowSet::default();
        for (&row, _) in self.of_run(digest).into_iter().flatten().filter(|(_, decision)| decision.canonical.is_none())
        {
            rows.insert(row);
        }
        rows
    }

    /// Returns the approximate number of bytes that are held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let of_row = |decision: &NewDecision| {
            let of_id = decision.canonical.as_ref().map_or(0, |canonical| canonical.id.len() + 16);
            size_of::<(u32, NewDecision)>() + of_id + decision.id.len()
        };
        self.0.values().flat_map(BTreeMap::values).map(of_row).sum()
    }
}
