//! Counts of map tasks. They leave the tasks as notes.

use std::ops::AddAssign;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use nearprint_dataset::Columns;

use crate::error::{Result, TaskError};

/// The amount of data that a map task looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapCounts {
    /// The number of existing fingerprints that were read, or of distinct fingerprints of the batch itself.
    pub n_rows: u64,
    /// The number of pairs of different values within the distance, before sketches are compared.
    pub n_candidates: u64,
}

static COUNTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |name: &str| Field::new(name, DataType::UInt64, false);
    Arc::new(Schema::new(vec![field("n_rows"), field("n_candidates")]))
});

impl AddAssign for MapCounts {
    fn add_assign(&mut self, other: Self) {
        self.n_rows += other.n_rows;
        self.n_candidates += other.n_candidates;
    }
}

impl MapCounts {
    /// Builds the notes of a task.
    pub(super) fn notes(self) -> Result<RecordBatch> {
        let column = |n| Arc::new(UInt64Array::from(vec![n])) as ArrayRef;
        RecordBatch::try_new(Arc::clone(&COUNTS), vec![column(self.n_rows), column(self.n_candidates)])
            .map_err(|e| TaskError::internal("map", e))
    }

    /// Reads the counts from the notes of a task. `None` means that these are other notes.
    ///
    /// # Errors
    /// A column of the notes cannot be read.
    pub fn of(notes: &RecordBatch) -> Result<Option<Self>> {
        if notes.schema() != *COUNTS {
            return Ok(None);
        }
        let columns = Columns { batch: notes, file: "counts of a map task" };
        let sum = |name| Ok::<u64, TaskError>(columns.primitive::<UInt64Type>(name)?.values().iter().sum());
        Ok(Some(Self { n_rows: sum("n_rows")?, n_candidates: sum("n_candidates")? }))
    }
}
