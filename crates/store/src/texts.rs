//! The texts of documents of earlier nights, as far as a store has them: what revisit records of a crawl refer to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use futures::future::FutureExt;
use futures::stream::TryStreamExt;
use nearprint_fault::Result;

use crate::dependents::StoredRows;
use crate::reader::{JoinedNights, OwnDocuments, at_once};
use crate::writer::id_hash;

/// The texts that the newest states of some documents have.
#[derive(Debug, Default)]
pub struct NewestTexts {
    /// The rows of documents with a text, by night and row.
    pub stored: Vec<StoredRows>,
    /// The ids of documents without a text.
    pub without_text: Vec<String>,
}

impl JoinedNights<'_> {
    /// Returns what the newest states of documents with some different ids have in these nights. Of ids that no night has,
    /// nothing is returned.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn newest_texts(&self, ids: &[&str]) -> Result<NewestTexts> {
        let mut by_hash: Vec<(u64, u32, u32)> = ids.iter().zip(0..).map(|(id, row)| (id_hash(id), row, row)).collect();
        by_hash.sort_unstable();
        let id_of = |row: u32| Cow::Borrowed(ids[row as usize]);
        let own = OwnDocuments { by_hash: &by_hash, id_of: &id_of, text_hash_of: &|_| None };
        // The nights come by date, so the state that comes last is the newest.
        let mut newest: BTreeMap<u32, (usize, u32)> = BTreeMap::new();
        let mut of_nights = at_once(self.nights.iter().map(|night| self.store.same_ids(night, &own).boxed()).collect());
        let mut position = 0;
        while let Some(found) = of_nights.try_next().await? {
            newest.extend(found.into_iter().map(|same| (same.row, (position, same.run_row))));
            position += 1;
        }
        let mut of_night: BTreeMap<usize, BTreeMap<u32, u32>> = BTreeMap::new();
        for (id, (night, run_row)) in newest {
            of_night.entry(night).or_default().insert(run_row, id);
        }
        let mut texts = NewestTexts::default();
        for (night, rows) in of_night {
            let [.., (_, empty)] = self.store.datasets(self.nights[night])?;
            texts.without_text.extend(rows.range(empty).map(|(_, &id)| ids[id as usize].to_owned()));
            texts.stored.extend(self.stored_rows(night, &rows.into_keys().collect::<Vec<_>>()).await?);
        }
        Ok(texts)
    }
}
