//! Documents that several nights have. The row of the earlier night is shadowed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nearprint_join::RowSet;

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

/// The documents of a night that other nights have too.
#[derive(Debug, Default)]
pub struct Recrawls {
    /// The rows of the query batch whose ids nights of earlier dates have, and whether the latest of these nights kept
    /// the document.
    pub(crate) earlier: BTreeMap<u32, bool>,
    /// The shadows, sorted.
    pub shadows: Vec<Shadow>,
}

/// The shadowed rows of each run, by the run's digest.
pub type Shadowed = HashMap<String, RowSet>;

impl Recrawls {
    /// Returns the number of documents whose id a night of an earlier date has.
    pub fn n_same_id(&self) -> u64 {
        self.earlier.len() as u64
    }

    /// Returns whether the latest earlier version of a row's document was kept. Such rows come first in keep order,
    /// before documents that the store has never seen, so that a document that represents others goes on doing so.
    pub fn is_incumbent(&self, row: u32) -> bool {
        self.earlier.get(&row).copied().unwrap_or(false)
    }

    /// Returns the approximate number of bytes that are held.
    pub fn memory_bytes(&self) -> usize {
        self.shadows.capacity() * size_of::<Shadow>() + self.earlier.len() * 16
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
