//! The pairs of a join: the rows that are written, and their counts.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{Int32Type, UInt8Type, UInt16Type, UInt32Type};
use datafusion_execution::SendableRecordBatchStream;
use futures::TryStreamExt;
use nearprint_fault::{Fault, Result};
use nearprint_join::{ClassOfRows, Origin, QueryRows};
use nearprint_parquet::schema::PAIRS;
use nearprint_parquet::{Columns, DatasetWriter, StagedFile};
use nearprint_tasks::QueryBatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{of_datafusion, too_many_pairs};
use crate::stages::existing::ReferenceNames;
use crate::stages::judge::NightJudge;

/// The pairs that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairsMode {
    /// A spanning forest. It has the same clusters, and fewer pairs than there are documents and existing fingerprints.
    #[default]
    Forest,
    /// Every verified pair.
    All,
}

/// The counts of a join's pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairCounts {
    /// The number of rows that were written.
    pub n_pairs: u64,
    /// The number of these pairs that are of a new document and an existing one.
    pub n_new_existing: u64,
    /// The number of these pairs that are of two new documents.
    pub n_new_new: u64,
    /// The number of rows at each Hamming distance, from 0.
    pub by_distance: Vec<u64>,
}

/// The names of what the rows of a reduce mean by numbers.
pub(super) struct PairNames<'a> {
    pub(super) batch: &'a QueryBatch,
    pub(super) references: &'a ReferenceNames,
    pub(super) rows: &'a QueryRows,
    /// The judge of the join, which has read before the first row comes.
    pub(super) judge: Option<&'a NightJudge>,
    /// The largest distance of two sketches of the batch at which the judge is not asked.
    pub(super) max_sketch_distance: Option<u16>,
}

impl PairNames<'_> {
    /// Writes the rows of a reduce as pairs. More than `max_pairs` of them are an error.
    pub(super) async fn write(
        &self,
        mut rows: SendableRecordBatchStream,
        folder: &Path,
        max_pairs: u64,
    ) -> Result<(Vec<StagedFile>, PairCounts)> {
        let mut writer = DatasetWriter::new(folder, "pairs", &PAIRS, &[]);
        let mut counts = PairCounts::default();
        let classes = LazyCell::new(|| self.rows.class_of_rows(self.batch.n_rows));
        while let Some(rows) = rows.try_next().await.map_err(|e| of_datafusion("reduce", e))? {
            counts.add(&rows)?;
            if counts.n_pairs > max_pairs {
                return Err(too_many_pairs(max_pairs));
            }
            writer.write(self.as_pairs(&rows, &classes)?)?;
        }
        Ok((writer.finish()?, counts))
    }

    /// Returns rows of the reduce as rows of the pairs dataset.
    fn as_pairs(
        &self,
        rows: &RecordBatch,
        classes: &LazyCell<ClassOfRows, impl FnOnce() -> ClassOfRows>,
    ) -> Result<RecordBatch> {
        let columns = Columns { batch: rows, file: "pairs" };
        let (a, b) = (columns.primitive::<UInt32Type>("a")?, columns.primitive::<UInt32Type>("b")?);
        let (new, id_b) = (columns.booleans("new")?, columns.strings("id_b")?);
        let id_a = a.values().iter().map(|&row| self.batch.id(row));
        let id_b = (0..rows.num_rows())
            .map(|i| if new.value(i) { self.batch.id(b.value(i)) } else { Cow::Borrowed(id_b.value(i)) });
        let stores = columns.primitive::<UInt8Type>("store_b")?.values();
        let references = stores.iter().map(|&store| self.references.of(Origin::from(store)));
        let judged = self.judge.map(NightJudge::pairs);
        let sketch_distances = columns.primitive::<UInt16Type>("sketch_distance")?;
        let reason = |i: usize| {
            let is_judged = new.value(i)
                && sketch_distances.is_valid(i)
                && self.max_sketch_distance.is_some_and(|limit| sketch_distances.value(i) > limit);
            if !is_judged {
                return Ok("near");
            }
            let both = classes.of(a.value(i)).zip(classes.of(b.value(i)));
            let judged = both.and_then(|(a, b)| judged.as_ref()?.get(a, b));
            let unknown = || Fault::internal("pairs", format!("row {i} is neither near nor judged"));
            judged.map(|judged| judged.verdict.alike.name()).ok_or_else(unknown)
        };
        let reasons = (0..rows.num_rows()).map(reason).collect::<Result<Vec<_>>>()?;
        let scopes = new.values().iter().map(|new| if new { "new_new" } else { "new_existing" });
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(id_a)),
            Arc::new(StringArray::from_iter_values(id_b)),
            Arc::new(columns.primitive::<UInt8Type>("distance")?.unary::<_, Int32Type>(i32::from)),
            Arc::new(sketch_distances.unary::<_, Int32Type>(i32::from)),
            Arc::new(StringArray::from_iter_values(scopes)),
            Arc::new(references.collect::<StringArray>()),
            Arc::new(StringArray::from(reasons)),
        ];
        RecordBatch::try_new(Arc::clone(&PAIRS), arrays).map_err(|e| Fault::internal("pairs", e))
    }
}

impl PairCounts {
    fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let columns = Columns { batch: rows, file: "pairs" };
        let distances = columns.primitive::<UInt8Type>("distance")?;
        let n_new = columns.booleans("new")?.true_count() as u64;
        self.n_pairs += rows.num_rows() as u64;
        self.n_new_new += n_new;
        self.n_new_existing += rows.num_rows() as u64 - n_new;
        for &distance in distances.values() {
            let at = usize::from(distance);
            if self.by_distance.len() <= at {
                self.by_distance.resize(at + 1, 0);
            }
            self.by_distance[at] += 1;
        }
        Ok(())
    }
}
