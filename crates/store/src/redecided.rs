//! Documents that later nights decided again, because the documents that represented them are gone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nearprint_join::RowSet;

/// The document that represents a dropped one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewCanonical {
    /// Its id.
    pub id: Box<str>,
    /// Whether it is a document of the dropped one's own store, and not of a reference store.
    pub is_own: bool,
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
    /// The document that represents it from then on. `None` means that it is kept.
    pub canonical: Option<NewCanonical>,
}

/// The rows of runs that later ones of some nights decided again, by the digest of the run. Of each row, the latest night
/// counts.
#[derive(Debug, Default)]
pub struct Redecided(HashMap<String, BTreeMap<u32, Option<NewCanonical>>>);

/// The rows of one run that later nights decided again.
pub type RedecidedRows = BTreeMap<u32, Option<NewCanonical>>;

impl Redecided {
    pub(crate) fn insert(&mut self, run: &str, row: u32, canonical: Option<NewCanonical>) {
        self.0.entry(run.to_owned()).or_default().insert(row, canonical);
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
        for (&row, _) in self.of_run(digest).into_iter().flatten().filter(|(_, canonical)| canonical.is_none()) {
            rows.insert(row);
        }
        rows
    }

    /// Returns the approximate number of bytes that are held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let of_row = |canonical: &Option<NewCanonical>| {
            size_of::<(u32, Option<NewCanonical>)>() + canonical.as_ref().map_or(0, |canonical| canonical.id.len() + 16)
        };
        self.0.values().flat_map(BTreeMap::values).map(of_row).sum()
    }
}
