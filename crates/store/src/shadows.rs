//! Documents that several nights have: the row of the earlier one is shadowed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nearprint_join::RowSet;

/// A row of a run whose document a run of a later date has again. An empty `run` or `by` is the run that says so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shadow {
    /// The run that has the row.
    pub run: Arc<str>,
    /// The run that has its document again.
    pub by: Arc<str>,
    /// The row.
    pub row: u32,
}

/// Documents of the night that other nights have too.
#[derive(Debug, Default)]
pub struct Recrawls {
    /// Rows of the batch whose id a night of an earlier date has, and whether the latest of those nights kept it.
    pub(crate) earlier: BTreeMap<u32, bool>,
    /// Sorted.
    pub shadows: Vec<Shadow>,
}

/// Shadowed rows by the digest of their run.
pub type Shadowed = HashMap<String, RowSet>;

impl Recrawls {
    /// Documents whose id a night of an earlier date has.
    pub fn n_same_id(&self) -> u64 {
        self.earlier.len() as u64
    }

    /// Rows whose earlier version is kept: in keep order they come before documents that the store has never seen, so that
    /// what represents others stays what it is.
    pub fn is_incumbent(&self, row: u32) -> bool {
        self.earlier.get(&row).copied().unwrap_or(false)
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.shadows.capacity() * size_of::<Shadow>() + self.earlier.len() * 16
    }

    /// Rows of earlier runs that the batch has again, by run.
    pub(crate) fn shadowed(&self) -> Shadowed {
        let mut rows = Shadowed::new();
        for shadow in self.shadows.iter().filter(|s| s.by.is_empty()) {
            rows.entry(shadow.run.to_string()).or_default().insert(shadow.row);
        }
        rows
    }
}
