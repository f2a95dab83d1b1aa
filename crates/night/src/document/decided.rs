//! The row of a document in the decisions of a night.

use arrow::datatypes::{Date32Type, Float64Type, Int32Type};
use futures::TryStreamExt;
use nearprint_fault::Result;
use nearprint_parquet::schema::{CANONICAL_ID, DOC_ID, LOST_SHARE, REFERENCE};
use nearprint_parquet::{Columns, ParquetFile, Sought, value};
use nearprint_storage::{Storage, day_of_date};
use nearprint_store::{Night, Store};

use crate::published::dataset_files;

/// The columns, of which files of earlier releases lack `recrawl`.
const COLUMNS: [&str; 8] = [DOC_ID, "decision", CANONICAL_ID, "distance", "reason", LOST_SHARE, REFERENCE, "recrawl"];

/// The columns by which a night decides again about a document of an earlier one.
const AGAIN: [&str; 8] = [DOC_ID, OF_DT, "decision", CANONICAL_ID, "distance", "reason", LOST_SHARE, REFERENCE];
const OF_DT: &str = "of_dt";

/// What a night decided about a document.
#[derive(Debug)]
pub struct Decided {
    pub decision: String,
    pub reason: String,
    pub canonical_id: Option<String>,
    pub reference: Option<String>,
    pub distance: Option<i32>,
    pub lost_share: Option<f64>,
    /// Files of earlier releases do not say it.
    pub recrawl: Option<String>,
}

impl Decided {
    /// Finds the row of a document by the page index of the decisions. Returns `None` if there is none.
    ///
    /// # Errors
    /// The manifest or a file of decisions is missing, damaged or cannot be read.
    pub async fn find(storage: &Storage, store: &Store, night: &Night, id: &str) -> Result<Option<Self>> {
        Self::find_in(
            storage,
            store,
            (night, "decisions"),
            &COLUMNS,
            |columns, row| Ok(columns.strings(DOC_ID)?.value(row) == id),
            id,
        )
        .await
    }

    /// Finds the newest decision of a later night about the state that a document has in the night of a date, and the
    /// date of that night. Returns `None` if no later night decided it again.
    ///
    /// # Errors
    /// A manifest or a file of such a night is missing, damaged or cannot be read.
    pub async fn find_again(
        storage: &Storage,
        store: &Store,
        state_dt: &str,
        id: &str,
    ) -> Result<Option<(String, Self)>> {
        let day = day_of_date(state_dt);
        // Where ids were forgotten, the night may have the decision in its results alone.
        let may_redecide = |night: &&Night| night.redecides || night.joined_as.is_some();
        let later = store.nights().iter().rev().filter(|night| night.dt.as_str() > state_dt).filter(may_redecide);
        for night in later {
            let is_it = |columns: Columns<'_>, row| {
                let is_of_day = Some(columns.primitive::<Date32Type>(OF_DT)?.value(row)) == day;
                Ok(is_of_day && columns.strings(DOC_ID)?.value(row) == id)
            };
            if let Some(found) = Self::find_in(storage, store, (night, "redecided"), &AGAIN, is_it, id).await? {
                return Ok(Some((night.dt.clone(), found)));
            }
        }
        Ok(None)
    }

    async fn find_in(
        storage: &Storage,
        store: &Store,
        (night, dataset): (&Night, &str),
        columns: &[&str],
        is_it: impl Fn(Columns<'_>, usize) -> Result<bool>,
        id: &str,
    ) -> Result<Option<Self>> {
        for file in dataset_files(storage, store, night, dataset).await? {
            let parquet = ParquetFile::open(file).await?;
            let Some(read) = parquet.that_may_have(DOC_ID, &[Sought::Text(id)], columns) else { continue };
            let mut batches = parquet.stream(read)?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                for row in 0..batch.num_rows() {
                    if is_it(columns, row)? {
                        return Self::at(columns, row).map(Some);
                    }
                }
            }
        }
        Ok(None)
    }

    fn at(columns: Columns<'_>, row: usize) -> Result<Self> {
        let text = |name: &str| -> Result<Option<String>> { Ok(value(columns.strings(name)?, row).map(str::to_owned)) };
        let recrawls = columns.optional("recrawl", Columns::strings)?;
        let (distances, shares) =
            (columns.primitive::<Int32Type>("distance")?, columns.primitive::<Float64Type>(LOST_SHARE)?);
        Ok(Self {
            decision: columns.strings("decision")?.value(row).to_owned(),
            reason: columns.strings("reason")?.value(row).to_owned(),
            canonical_id: text(CANONICAL_ID)?,
            reference: text(REFERENCE)?,
            distance: value(distances, row),
            lost_share: value(shares, row),
            recrawl: recrawls.and_then(|values| value(values, row)).map(str::to_owned),
        })
    }
}
