//! Reading indexes: sorted copies of the keys of several runs in other orders of bits, for single queries. Keys are the
//! fingerprints, and words of the sketches.

use std::collections::HashMap;

use futures::future::try_join_all;
use nearprint_fault::{Fault, Result};
use nearprint_join::{Key, LookupPlan};
use nearprint_parquet::ParquetFile;

use crate::commit::{SegmentRecord, is_worth_reading};
use crate::error::{INDEX_REPAIR, damaged};
use crate::store::Store;

/// The metadata key of an index's files for the number of bits that their order permutes.
pub const INDEX_BITS: &str = "nearprint.index_bits";
/// The metadata key of an index's files for the number of rows of each run, separated by commas.
pub const RUN_ROWS: &str = "nearprint.run_rows";

/// The number of words of sketches of which an index has tables: so many of the first ones, as the default profile has keys of.
pub const INDEX_WORDS: u8 = 2;

/// Returns the name of the folder of a table of a key.
pub(crate) fn table_name(key: Key, number: usize) -> String {
    match key {
        Key::Fingerprint => format!("table-{number}"),
        Key::Word(word) => format!("word-{word}-table-{number}"),
    }
}

/// Returns the keys of an index with so many words, in the order of their tables.
pub(crate) fn keys(n_words: u8) -> impl Iterator<Item = Key> {
    std::iter::once(Key::Fingerprint).chain((0..n_words).map(Key::Word))
}

/// Returns whether a folder has the name of a table.
pub fn is_table_name(name: &str) -> bool {
    keys(INDEX_WORDS).any(|key| (0..LookupPlan::COPIES as usize).any(|number| name == table_name(key, number)))
}

impl Store {
    /// Opens the indexes that are worth reading. An index of which a file is missing, or has another size, is left out
    /// with a warning: the runs have the same data.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a table is not what its record says; an error if
    /// a file cannot be read.
    pub async fn open_indexes(&self) -> Result<Vec<OpenIndex>> {
        let rows: HashMap<&str, u64> =
            self.nights().iter().map(|n| (n.run.digest.as_str(), n.run.n_fingerprints)).collect();
        let mut opened = Vec::new();
        for index in self.indexes() {
            let n_live = index.runs.iter().filter_map(|run| rows.get(run.as_str())).sum();
            if is_worth_reading(n_live, index)
                && let Some(tables) = self.open_tables(index).await?
            {
                opened.push(OpenIndex::of(index, tables)?);
            }
        }
        Ok(opened)
    }

    async fn open_tables(&self, index: &SegmentRecord) -> Result<Option<Vec<ParquetFile>>> {
        let folder = self.index_folder(&index.digest);
        let opened = index.files.iter().map(|recorded| {
            let place = folder.join(&recorded.name);
            async move {
                let Some(file) = place.find().await?.filter(|file| file.size == recorded.bytes) else {
                    let table = place.url();
                    tracing::warn!(table, "a table of the index is gone or damaged: scanning; mend with store index");
                    return Ok::<_, Fault>(None);
                };
                Ok(Some(ParquetFile::open(file).await?))
            }
        });
        Ok(try_join_all(opened).await?.into_iter().collect())
    }
}

/// An index whose files are open.
#[derive(Debug)]
pub struct OpenIndex {
    /// The digest.
    pub digest: String,
    /// The digest and the number of rows of each run, in the order in which places count their rows.
    pub runs: Vec<(String, u64)>,
    /// The tables of each key: those of the fingerprints, and of each word in the order of the words. Indexes of earlier
    /// releases have none of words, and so have those of sketches that are missing throughout.
    pub keys: Vec<OpenTables>,
}

/// The tables of a key.
#[derive(Debug)]
pub struct OpenTables {
    /// The key.
    pub key: Key,
    /// The number of bits that the orders of the tables permute.
    pub bits: u32,
    /// The tables, with their page indexes.
    pub tables: Vec<ParquetFile>,
}

impl OpenIndex {
    /// Reads what the tables of an index say about themselves.
    pub(crate) fn of(record: &SegmentRecord, tables: Vec<ParquetFile>) -> Result<Self> {
        let odd = |table: Option<&ParquetFile>, reason| {
            let url = table.map_or_else(String::new, |table| table.file.url.clone());
            damaged(url, reason).remedy(INDEX_REPAIR)
        };
        let bits_of = |table: &ParquetFile| table.key_value(INDEX_BITS)?.parse::<u32>().ok();
        let rows_of = |table: &ParquetFile| {
            let rows = table.key_value(RUN_ROWS)?;
            rows.split(',').map(|rows| rows.parse().ok()).collect::<Option<Vec<u64>>>()
        };
        let rows: Vec<Option<Vec<u64>>> = tables.iter().map(rows_of).collect();
        let Some(rows) = one_of_all(&rows) else {
            return Err(odd(tables.get(least_common(&rows)), "it names other runs than the other tables"));
        };
        let n_rows = rows.iter().fold(0u64, |sum, &rows| sum.saturating_add(rows));
        let (n_tables, n_words) = (tables.len(), tables.len() / LookupPlan::COPIES as usize);
        let n_words = n_words.checked_sub(1).and_then(|n| u8::try_from(n).ok()).filter(|&n| n <= INDEX_WORDS);
        let is_whole = rows.len() == record.runs.len()
            && n_rows == record.n_rows
            && n_tables.is_multiple_of(LookupPlan::COPIES as usize)
            && tables.iter().all(|table| table.n_rows() == n_rows);
        let Some(n_words) = n_words.filter(|_| is_whole) else {
            let table = tables.iter().find(|table| table.n_rows() != record.n_rows).or(tables.first());
            return Err(odd(table, "it does not have the rows that the commit records"));
        };
        let (mut opened, mut rest) = (Vec::new(), tables.into_iter());
        for key in keys(n_words) {
            let tables: Vec<ParquetFile> = rest.by_ref().take(LookupPlan::COPIES as usize).collect();
            let bits: Vec<Option<u32>> = tables.iter().map(bits_of).collect();
            let Some(bits) = one_of_all(&bits) else {
                let table = tables.get(least_common(&bits));
                return Err(odd(table, "it has another order of bits than the other tables"));
            };
            opened.push(OpenTables { key, bits, tables });
        }
        let runs = record.runs.iter().cloned().zip(rows).collect();
        Ok(Self { digest: record.digest.clone(), runs, keys: opened })
    }
}

/// Returns what all values are, if they are one.
fn one_of_all<T: Clone + PartialEq>(values: &[Option<T>]) -> Option<T> {
    let first = values.first()?.clone()?;
    values.iter().all(|value| value.as_ref() == Some(&first)).then_some(first)
}

/// Returns the place of the value that fewest others equal.
fn least_common<T: PartialEq>(values: &[Option<T>]) -> usize {
    let n_equal = |&at: &usize| values.iter().filter(|value| **value == values[at]).count();
    (0..values.len()).min_by_key(n_equal).unwrap_or(0)
}
