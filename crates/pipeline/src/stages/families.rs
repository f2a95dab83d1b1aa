//! The families of documents: a family is named by the id under which its document was first kept.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nearprint_fault::Result;
use nearprint_store::{EarlierState, JoinedNights, Recrawls, StoredFamily, StoredOutcome};
use nearprint_tasks::QueryBatch;

use crate::stages::decide::Decisions;

/// The families of a night's documents.
///
/// A kept document has the family of its earlier state, if its text is still the same or if it was kept before too; any
/// other kept document begins one of its own. A dropped document has the family of the document that represents it. So a
/// family outlives the document whose id names it.
#[derive(Debug, Default)]
pub struct Families {
    /// The rows whose family is neither their own id nor, if they are dropped, that of their canonical document.
    named: HashMap<u32, Arc<str>>,
}

impl Families {
    /// Finds the families of a night, which follows `earlier`.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn of_night(
        earlier: &JoinedNights<'_>,
        batch: &QueryBatch,
        decisions: &Decisions,
        recrawls: &Recrawls,
    ) -> Result<Self> {
        let mut known = HashMap::new();
        if earlier.have_families() {
            let mut wanted: HashSet<Cow<'_, str>> = HashSet::new();
            for row in batch.rows() {
                if decisions.is_kept(row) && recrawls.has(row) {
                    wanted.insert(batch.id(row));
                } else if let Some(id) = decisions.own_existing_canonical(batch, row) {
                    wanted.insert(id.into());
                }
            }
            known = earlier.families(|id| wanted.contains(id)).await?;
        }
        let mut named = HashMap::new();
        for row in batch.rows().filter(|&row| decisions.is_kept(row)) {
            let id = batch.id(row);
            let family = recrawls.state_before(row).and_then(|state| inherited(&id, state, &known));
            if let Some(family) = family.filter(|family| **family != *id) {
                named.insert(row, family);
            }
        }
        for row in batch.rows() {
            let family = match decisions.canonical_row(row) {
                Some(other) => named.get(&other).cloned(),
                None => decisions.own_existing_canonical(batch, row).and_then(|id| known.get(id).cloned()),
            };
            if let Some(family) = family {
                named.insert(row, family);
            }
        }
        Ok(Self { named })
    }

    /// Returns the families of orphans, by row: a restored one keeps its own, which `own` has, and another one has that of
    /// the document that represents it, of which `known` and `tonight` know those that are not its id.
    pub(crate) fn of_orphans(
        batch: &QueryBatch,
        decisions: &Decisions,
        own: impl Fn(u32) -> Arc<str>,
        known: impl Fn(&str) -> Option<Arc<str>>,
    ) -> Result<Vec<Arc<str>>> {
        let of_row = |row: u32| match (decisions.is_kept(row), decisions.canonical_row(row)) {
            (true, _) => Ok(own(row)),
            (false, Some(other)) => Ok(own(other)),
            (false, None) => {
                let canonical = decisions.canonical_id(batch, row)?.unwrap_or(batch.id(row));
                let is_own = decisions.own_existing_canonical(batch, row).is_some();
                Ok(known(&canonical).filter(|_| is_own).unwrap_or_else(|| canonical.as_ref().into()))
            }
        };
        batch.rows().map(of_row).collect()
    }

    /// Returns the family of a document. `None` means that it has no text.
    ///
    /// # Errors
    /// A document is dropped for none.
    pub fn of_row<'a>(
        &'a self,
        batch: &'a QueryBatch,
        decisions: &'a Decisions,
        row: u32,
    ) -> Result<Option<Cow<'a, str>>> {
        if let Some(family) = self.named.get(&row) {
            return Ok(Some(Cow::Borrowed(family)));
        }
        let own = || decisions.is_kept(row).then(|| batch.id(row));
        Ok(decisions.canonical_id(batch, row)?.or_else(own))
    }

    /// Returns the family of a document, if it is neither its own id nor that of its canonical document.
    pub(crate) fn named(&self, row: u32) -> Option<&Arc<str>> {
        self.named.get(&row)
    }

    /// Returns those families in the form in which run files have them, for rows of the run with rows of the batch.
    pub(crate) fn stored(&self, batch: &QueryBatch, rows: impl Iterator<Item = (u32, u32)>) -> Vec<StoredFamily> {
        let of_row = |(run_row, row): (u32, u32)| {
            let family = Arc::clone(self.named.get(&row)?);
            Some(StoredFamily { row: run_row, id: batch.id(row).as_ref().into(), family })
        };
        rows.filter_map(of_row).collect()
    }
}

/// Returns the family that a kept document of tonight has from its earlier state. `None` means that it begins one.
fn inherited(id: &str, earlier: EarlierState<'_>, known: &HashMap<String, Arc<str>>) -> Option<Arc<str>> {
    let was_kept = earlier.is_kept();
    if !was_kept && !earlier.is_same {
        return None;
    }
    match (known.get(id), &earlier.decision.outcome) {
        (Some(family), _) => Some(Arc::clone(family)),
        (None, StoredOutcome::Drop(canonical)) => Some(canonical.id.as_ref().into()),
        (None, StoredOutcome::Keep | StoredOutcome::Skip) => None,
    }
}
