//! The existing documents of a night: those of earlier nights of its store, and those of reference stores.

use std::collections::HashSet;
use std::sync::Arc;

use nearprint_fault::Result;
use nearprint_join::Origin;
use nearprint_store::{Existing, ExistingShort, JoinedNights, Recrawls};
use nearprint_tasks::{QueryBatch, SkipReason};

/// The names of the reference stores, at the positions that the origins of their documents have.
#[derive(Debug, Clone, Default)]
pub struct ReferenceNames(pub Arc<[String]>);

impl ReferenceNames {
    /// Returns the name of the store of an existing document. `None` means the night's own store.
    pub(crate) fn of(&self, origin: Origin) -> Option<&str> {
        self.0.get(origin.position()?).map(String::as_str)
    }
}

/// The existing documents of all stores.
pub struct ExistingOfAll {
    /// The existing fingerprints.
    pub existing: Existing,
    /// The existing documents with short texts.
    pub short: ExistingShort,
    /// The number of fingerprints that take part, for each of the stores.
    pub n_live_rows: Vec<u64>,
}

/// Opens the existing documents of all `stores`. Of the short texts, only those are read that the batch has too.
///
/// # Errors
/// A file of a store is damaged or cannot be read.
pub async fn existing_of_all(
    stores: &[JoinedNights<'_>],
    recrawls: &Recrawls,
    batch: &QueryBatch,
) -> Result<ExistingOfAll> {
    let short_texts = short_texts(batch);
    let mut all =
        ExistingOfAll { existing: Existing::default(), short: ExistingShort::default(), n_live_rows: Vec::new() };
    for nights in stores {
        let (shadowed, redecided) = (nights.shadowed(recrawls).await?, nights.redecided().await?);
        all.short.append(nights.existing_short(&short_texts, &shadowed, &redecided).await?);
        let of_store = nights.existing(shadowed, &redecided).await?;
        all.n_live_rows.push(of_store.n_live_rows);
        all.existing.append(of_store);
    }
    Ok(all)
}

/// Returns the text hashes of the short texts of the batch.
fn short_texts(batch: &QueryBatch) -> HashSet<[u8; 16]> {
    let short = |row: &u32| batch.skipped.get(*row) == Some(&SkipReason::TooShort);
    batch.rows().filter(short).filter_map(|row| batch.text_hashes.get(row).copied()).collect()
}
