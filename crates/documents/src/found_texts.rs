//! The texts of documents by id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::{SortColumn, concat, lexsort_to_indices};
use futures::TryStreamExt;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::value;
use nearprint_storage::is_date;

use super::open::{DocumentRange, Documents};
use crate::formats::has_fetch_times;
use crate::keep_key::{KeepKey, LENGTH};
use crate::quarantine::{DuplicateIds, Repeats};

/// A text, together with the file that holds it.
#[derive(Debug, Clone)]
pub struct FoundText {
    /// The text, or `None` if it is NULL.
    pub text: Option<String>,
    /// The path or URL of the file.
    pub file: String,
    /// How new the row is.
    newest_by: Option<i64>,
    /// The values of the row for the keep order, an array of one value for each column.
    keep: Vec<ArrayRef>,
}

impl Documents {
    /// Returns the texts of the `wanted` ids by id. A text is `None` if it is NULL. Ids that are not found are left
    /// out. The files are read only until all ids are found, and no other texts are kept.
    ///
    /// ```
    /// use nearprint_documents::{DocumentColumns, Documents, InputPolicy};
    /// use nearprint_storage::Storage;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let temp = tempfile::tempdir()?;
    /// # let pages = temp.path().join("pages.jsonl");
    /// std::fs::write(&pages, "{\"id\": \"a\", \"text\": \"one page\"}\n{\"id\": \"b\", \"text\": null}\n")?;
    /// let (storage, columns) = (Storage::default(), DocumentColumns::default());
    /// let place = pages.display().to_string().into();
    /// let documents = Documents::open(&storage, &place, columns, &InputPolicy::default()).await?;
    /// let texts = documents.texts_of(["a", "b", "c"].into()).await?;
    /// assert_eq!((texts["a"].as_deref(), texts["b"].as_deref(), texts.get("c")), (Some("one page"), None, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// A file cannot be read.
    pub async fn texts_of(&self, wanted: BTreeSet<&str>) -> Result<BTreeMap<String, Option<String>>> {
        let found = self.look_for(wanted, self.ranges(), Some(DuplicateIds::KeepFirst)).await?;
        let text = |(id, rows): (String, Vec<FoundText>)| Some((id, rows.into_iter().next()?.text));
        Ok(found.into_iter().filter_map(text).collect())
    }

    /// Returns the texts of the `wanted` ids with their files. If several nights have an id, the text of the newest night
    /// is returned, because that is the one that counts; if several rows of that night have it, that of the row which the
    /// rule keeps. `length_of` gives the number of characters of a text after normalisation.
    ///
    /// # Errors
    /// A file cannot be read.
    pub async fn newest_texts_of(
        &self,
        wanted: BTreeSet<&str>,
        repeats: &Repeats,
        length_of: &(dyn Fn(&str) -> u64 + Sync),
    ) -> Result<BTreeMap<String, FoundText>> {
        let mut ranges = self.ranges();
        ranges.sort_by(|a, b| night_of(&b.file).cmp(&night_of(&a.file)));
        let mut found = BTreeMap::new();
        for (id, mut rows) in self.look_for(wanted, ranges, repeats.on_duplicate_id).await? {
            let best = if rows.len() > 1 { self.best_of(&rows, &repeats.keep, length_of)? } else { 0 };
            found.insert(id, rows.swap_remove(best));
        }
        Ok(found)
    }

    /// Returns the position of the row that comes first in the keep order. Of equal rows, it is the first.
    fn best_of(&self, rows: &[FoundText], keys: &[KeepKey], length_of: &(dyn Fn(&str) -> u64 + Sync)) -> Result<usize> {
        let of_order = |reason: String| Fault::internal("order rows of one id", reason);
        let mut columns = Vec::with_capacity(keys.len() + 1);
        for key in keys {
            let values: ArrayRef = if key.column == LENGTH {
                let length = |row: &FoundText| row.text.as_deref().map_or(0, length_of);
                Arc::new(rows.iter().map(|row| Some(length(row))).collect::<UInt64Array>())
            } else {
                let at = self.columns.keep.iter().position(|column| *column == key.column);
                let values = |row: &FoundText| row.keep.get(at?).cloned();
                let values: Option<Vec<ArrayRef>> = rows.iter().map(values).collect();
                let values = values.ok_or_else(|| of_order(format!("no values of {}", key.column)))?;
                concat(&values.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(|e| of_order(e.to_string()))?
            };
            columns.push(key.sorting(values));
        }
        let places = Arc::new(UInt64Array::from_iter_values(0..rows.len() as u64));
        columns.push(SortColumn { values: places, options: None });
        let order = lexsort_to_indices(&columns, Some(1)).map_err(|e| of_order(e.to_string()))?;
        order.values().first().map(|&first| first as usize).ok_or_else(|| of_order("no rows".to_owned()))
    }

    /// Returns the rows with the `wanted` ids that may be the documents of the first of the nights that has them: one of
    /// each id, except that only the keep order tells which one [`DuplicateIds::KeepBest`] keeps.
    async fn look_for(
        &self,
        mut wanted: BTreeSet<&str>,
        ranges: Vec<DocumentRange>,
        rule: Option<DuplicateIds>,
    ) -> Result<BTreeMap<String, Vec<FoundText>>> {
        let mut found: BTreeMap<String, Vec<FoundText>> = BTreeMap::new();
        for nights in ranges.chunk_by(|a, b| night_of(&a.file) == night_of(&b.file)) {
            for range in nights {
                let of_format =
                    if has_fetch_times(&range.file) { DuplicateIds::KeepNewest } else { DuplicateIds::KeepFirst };
                let mut batches = self.read(range).batches;
                while !wanted.is_empty()
                    && let Some(batch) = batches.try_next().await?
                {
                    for i in (0..batch.ids.len()).filter(|&i| batch.ids.is_valid(i)) {
                        let id = batch.ids.value(i);
                        let Ok(text) = batch.text(i) else { continue };
                        if !wanted.contains(id) {
                            continue;
                        }
                        let row = FoundText {
                            text: text.map(str::to_owned),
                            file: range.file.clone(),
                            newest_by: value(&batch.newest_by, i),
                            keep: batch.keep.iter().map(|values| values.slice(i, 1)).collect(),
                        };
                        let rows = found.entry(id.to_owned()).or_default();
                        match rule.unwrap_or(of_format) {
                            DuplicateIds::Fail | DuplicateIds::KeepFirst => {
                                wanted.remove(id);
                                *rows = vec![row];
                            }
                            DuplicateIds::KeepLast => *rows = vec![row],
                            DuplicateIds::KeepNewest => match rows.first() {
                                Some(known) if known.newest_by >= row.newest_by => {}
                                _ => *rows = vec![row],
                            },
                            DuplicateIds::KeepBest => rows.push(row),
                        }
                    }
                }
            }
            wanted.retain(|id| !found.contains_key(*id));
        }
        Ok(found)
    }
}

/// Returns the value by which files are sorted by night: the date in a path, or the folder if the path has no date. A
/// date after `dt=` takes precedence over other dates.
fn night_of(url: &str) -> (Option<&str>, &str) {
    let date = |at: usize| url.get(at..at + 10).filter(|date| is_date(date));
    let named = url.rmatch_indices("dt=").find_map(|(at, dt)| date(at + dt.len()));
    let folder = url.rsplit_once('/').map_or("", |(folder, _)| folder);
    match named.or_else(|| (0..url.len()).rev().find_map(date)) {
        Some(date) => (Some(date), ""),
        None => (None, folder),
    }
}
