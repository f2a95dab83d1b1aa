//! Reading indexes: sorted copies of the fingerprints of several runs in other orders of bits, for single queries.

use std::collections::HashMap;

use futures::future::try_join_all;
use nearprint_fault::{Fault, Result};
use nearprint_join::LookupPlan;
use nearprint_parquet::ParquetFile;

use crate::commit::{SegmentRecord, is_worth_reading};
use crate::error::damaged;
use crate::store::Store;

/// The metadata key of an index's files for the number of bits that their order permutes.
pub const INDEX_BITS: &str = "nearprint.index_bits";
/// The metadata key of an index's files for the number of rows of each run, separated by commas.
pub const RUN_ROWS: &str = "nearprint.run_rows";

/// Returns the name of the folder of a table.
pub(crate) fn table_name(number: usize) -> String {
    format!("table-{number}")
}

/// Returns whether a folder has the name of a table.
pub fn is_table_name(name: &str) -> bool {
    (0..LookupPlan::COPIES as usize).any(|number| name == table_name(number))
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
    /// The number of bits that the orders of the tables permute.
    pub bits: u32,
    /// The tables, with their page indexes.
    pub tables: Vec<ParquetFile>,
}

impl OpenIndex {
    /// Reads what the tables of an index say about themselves.
    pub(crate) fn of(record: &SegmentRecord, tables: Vec<ParquetFile>) -> Result<Self> {
        let url = |tables: &[ParquetFile]| tables.first().map_or_else(String::new, |table| table.file.url.clone());
        let read = |table: &ParquetFile| {
            let bits = table.key_value(INDEX_BITS)?.parse().ok()?;
            let rows = table.key_value(RUN_ROWS)?;
            let rows: Option<Vec<u64>> = rows.split(',').map(|rows| rows.parse().ok()).collect();
            Some((bits, rows?))
        };
        let said: Option<Vec<(u32, Vec<u64>)>> = tables.iter().map(read).collect();
        let same = said.filter(|said| said.windows(2).all(|pair| pair[0] == pair[1]));
        let Some((bits, rows)) = same.and_then(|said| said.into_iter().next()) else {
            return Err(damaged(url(&tables), "its tables do not say which runs they have"));
        };
        let n_rows = rows.iter().fold(0u64, |sum, &rows| sum.saturating_add(rows));
        let is_whole = rows.len() == record.runs.len()
            && n_rows == record.n_rows
            && tables.len() == LookupPlan::COPIES as usize
            && tables.iter().all(|table| table.n_rows() == n_rows);
        if !is_whole {
            return Err(damaged(url(&tables), "its tables do not have the rows that the commit records"));
        }
        let runs = record.runs.iter().cloned().zip(rows).collect();
        Ok(Self { digest: record.digest.clone(), runs, bits, tables })
    }
}
