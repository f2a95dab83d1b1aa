//! The documents that a kept document represents.

use std::collections::HashSet;

use arrow::array::Array;
use futures::TryStreamExt;
use nearprint_fault::Result;
use nearprint_parquet::schema::{CANONICAL_ID, DOC_ID, REASON, REFERENCE};
use nearprint_parquet::{Columns, ParquetFile};
use nearprint_pipeline::STUB;
use nearprint_storage::Storage;
use nearprint_store::{Night, Store};
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::readable::readable;
use crate::published::dataset_files;

/// The documents whose newest state was dropped for a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Represented {
    /// The number of these documents.
    pub n_documents: u64,
    /// The first of their ids, in order.
    pub examples: Vec<String>,
}

/// The most decisions that are read to count them: less than a second. No index leads from a document to those that it
/// represents.
const MAX_ROWS: u64 = 1 << 21;

/// Returns the documents that a document of the store represents, whose first night is `since`. They are in the decisions
/// of that night and of later ones; of a document that several nights have, the newest decision counts. The inner error
/// is the reason why they were not counted.
///
/// # Errors
/// The place of the results does not answer.
pub async fn represented(
    storage: &Storage,
    store: &Store,
    id: &str,
    since: &str,
    n_examples: usize,
) -> Result<std::result::Result<Represented, String>> {
    let nights: Vec<&Night> = store.nights().iter().filter(|night| night.dt.as_str() >= since).collect();
    let n_rows: u64 = nights.iter().map(|night| night.run.n_documents()).sum();
    if n_rows > MAX_ROWS {
        return Ok(Err(format!(
            "the nights from {since} on have {n_rows} documents, of which {MAX_ROWS} would be read"
        )));
    }
    let mut ids = HashSet::new();
    for night in nights {
        if let Err(reason) = readable(follow(storage, store, night, id, &mut ids).await)? {
            return Ok(Err(reason));
        }
    }
    let n_documents = ids.len() as u64;
    let mut examples: Vec<String> = ids.into_iter().collect();
    examples.sort_unstable();
    examples.truncate(n_examples);
    Ok(Ok(Represented { n_documents, examples }))
}

/// Brings the ids that a document represents to the state after a night.
async fn follow(storage: &Storage, store: &Store, night: &Night, id: &str, ids: &mut HashSet<String>) -> Result<()> {
    let mut files = dataset_files(storage, store, night, "decisions").await?;
    // What the night decided again comes after what it decided about its own documents.
    files.extend(dataset_files(storage, store, night, "redecided").await?);
    for file in files {
        let parquet = ParquetFile::open(file).await?;
        let mut batches = parquet.stream(parquet.whole(&[DOC_ID, CANONICAL_ID, REFERENCE, REASON]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (of_rows, canonical) = (columns.strings(DOC_ID)?, columns.strings(CANONICAL_ID)?);
            let (references, reasons) = (columns.strings(REFERENCE)?, columns.strings(REASON)?);
            // A stub leaves the document as earlier nights left it.
            let is_stub = |row: &usize| reasons.is_valid(*row) && reasons.value(*row) == STUB;
            for row in (0..batch.num_rows()).filter(|row| !is_stub(row)) {
                let is_own = canonical.is_valid(row) && references.is_null(row);
                if is_own && canonical.value(row) == id {
                    ids.insert(of_rows.value(row).to_owned());
                } else if !ids.is_empty() {
                    ids.remove(of_rows.value(row));
                }
            }
        }
    }
    Ok(())
}
