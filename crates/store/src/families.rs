//! The families of stored documents. Run files name only those that do not follow from the decisions.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow::datatypes::UInt32Type;
use futures::stream::TryStreamExt;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::{CONFIG_DIGEST, DOC_ID, FAMILIES, FAMILY_ID};
use nearprint_parquet::{BATCH_ROWS, Columns, DatasetWriter};

use crate::commit::{Night, RunRecord};
use crate::interned::Names;
use crate::reader::JoinedNights;
use crate::shadows::Recrawls;
use crate::store::Store;
use crate::writer::StagedRun;

/// A document whose family is neither its own id nor, if it is dropped, the id of its canonical document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredFamily {
    /// Its row in the run.
    pub row: u32,
    /// Its id.
    pub id: Box<str>,
    /// The id that names the family.
    pub family: Arc<str>,
}

impl StagedRun {
    /// Adds families, by row, if there are any, to the run below the folder in which it was written.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn with_families(mut self, folder: &Path, config_digest: &str, families: &[StoredFamily]) -> Result<Self> {
        debug_assert!(families.is_sorted(), "families have one order, so that equal runs have equal bytes");
        if families.is_empty() {
            return Ok(self);
        }
        let metadata = [(CONFIG_DIGEST, config_digest)];
        let mut writer = DatasetWriter::new(folder, "families", &FAMILIES, &metadata).in_one_file();
        for rows in families.chunks(BATCH_ROWS) {
            let arrays: Vec<ArrayRef> = vec![
                Arc::new(UInt32Array::from_iter_values(rows.iter().map(|of| of.row))),
                Arc::new(StringArray::from_iter_values(rows.iter().map(|of| &*of.id))),
                Arc::new(StringArray::from_iter_values(rows.iter().map(|of| &*of.family))),
            ];
            let rows = RecordBatch::try_new(Arc::clone(&FAMILIES), arrays);
            writer.write(rows.map_err(|error| Fault::internal("families", error))?)?;
        }
        self.files.extend(writer.finish()?);
        let record = RunRecord::of(&self.files, self.record.n_fingerprints, self.record.n_short);
        Ok(Self { record, ..self })
    }
}

impl JoinedNights<'_> {
    /// Returns whether these nights name families that do not follow from their decisions.
    #[must_use]
    pub fn have_families(&self) -> bool {
        self.nights.iter().any(|night| night.run.has_file(FAMILIES_FILE) || night.run.redecides())
    }

    /// Returns the families of the newest states of those documents that are wanted, as far as they do not follow from the
    /// decisions, by id.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn families(&self, is_wanted: impl Fn(&str) -> bool) -> Result<HashMap<String, Arc<str>>> {
        let (shadowed, redecided) = (self.shadowed(&Recrawls::default()).await?, self.redecided().await?);
        let mut families = HashMap::new();
        for night in &self.nights {
            let digest = &night.run.digest;
            let shadowed = shadowed.get(digest);
            let is_live = |row: u32| !shadowed.is_some_and(|rows| rows.contains(row));
            for StoredFamily { row, id, family } in self.store.families(night).await? {
                if is_live(row) && is_wanted(&id) {
                    families.insert(id.into(), family);
                }
            }
            for (&row, decision) in redecided.of_run(digest).into_iter().flatten() {
                if is_live(row) && is_wanted(&decision.id) {
                    families.insert(decision.id.to_string(), Arc::clone(&decision.family));
                }
            }
        }
        Ok(families)
    }
}

const FAMILIES_FILE: &str = "families";

impl Store {
    /// Returns the families that a night's run names.
    pub(crate) async fn families(&self, night: &Night) -> Result<Vec<StoredFamily>> {
        if !night.run.has_file(FAMILIES_FILE) {
            return Ok(Vec::new());
        }
        let (mut found, mut names) = (Vec::new(), Names::default());
        let parquet = self.open_file(night, FAMILIES_FILE).await?;
        let mut batches = parquet.stream(parquet.whole(&["row", DOC_ID, FAMILY_ID]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (ids, families) = (columns.strings(DOC_ID)?, columns.strings(FAMILY_ID)?);
            for (i, &row) in columns.primitive::<UInt32Type>("row")?.values().iter().enumerate() {
                found.push(StoredFamily { row, id: ids.value(i).into(), family: names.of(families.value(i)) });
            }
        }
        Ok(found)
    }
}
