//! Writes the decisions about the documents of a night.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use nearprint_fault::Result;
use nearprint_parquet::schema::{DECISIONS, DROP, REDECIDED, SUPERSEDED};
use nearprint_parquet::{BATCH_ROWS, DatasetWriter, StagedFile};
use nearprint_store::{RecrawlHistory, Recrawls};
use nearprint_tasks::QueryBatch;

use crate::stages::decide::{Decisions, defect};
use crate::stages::made_ahead::write_in_order;
use crate::stages::stubs::{STUB, Stub, Stubs};

/// What is known of a document of an earlier night that is decided again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecidedAgain<'a> {
    /// The night of the state that is decided again, in days since 1970-01-01.
    pub(crate) day: i32,
    pub(crate) former_canonical_id: &'a str,
    /// What became of that document.
    pub(crate) cause: &'static str,
    /// The id that names its family from then on.
    pub(crate) family: &'a str,
}

impl Decisions {
    /// Writes the decisions below a folder, with those about stubs. `family_of` gives the family of a row, or `None` if the
    /// document has no text.
    pub fn write<'a>(
        &self,
        batch: &QueryBatch,
        recrawls: &Recrawls,
        family_of: impl Fn(u32) -> Result<Option<Cow<'a, str>>> + Sync,
        stubs: &Stubs,
        folder: &Path,
    ) -> Result<Vec<StagedFile>> {
        let mut writer = DatasetWriter::new(folder, "decisions", &DECISIONS, &[]);
        let mut documents = in_order(batch, stubs);
        let batches = std::iter::from_fn(|| {
            let made: Vec<Decided<'_>> = documents.by_ref().take(BATCH_ROWS).collect();
            (!made.is_empty()).then_some(made)
        });
        let rows = |made: Vec<Decided<'_>>| self.decision_rows(batch, recrawls, &family_of, &made);
        write_in_order(batches, rows, |rows| writer.write(rows))?;
        let mut files = writer.finish()?;
        files.extend(self.write_superseded(batch, folder)?);
        Ok(files)
    }

    /// Returns rows of the dataset of decisions.
    fn decision_rows<'a>(
        &self,
        batch: &QueryBatch,
        recrawls: &Recrawls,
        family_of: impl Fn(u32) -> Result<Option<Cow<'a, str>>>,
        made: &[Decided<'_>],
    ) -> Result<RecordBatch> {
        let cluster = |row| self.cluster(row);
        let histories: Vec<RecrawlHistory> = made.iter().map(|document| document.history(recrawls)).collect();
        let row = |document: &Decided<'_>| document.row();
        let outcome = |row: u32| self.rows[row as usize].outcome;
        let decision = |document| row(document).map_or(DROP, |row| outcome(row).decision());
        let reason = |document| row(document).map_or(STUB, |row| outcome(row).reason());
        let rows = || made.iter().map(row);
        let canonical = |row: Option<u32>| row.map_or(Ok(None), |row| self.canonical_id(batch, row));
        let distance = |row: Option<u32>| self.rows[row? as usize].distance.map(i32::from);
        let family = |row: Option<u32>| row.map_or(Ok(None), &family_of);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(made.iter().map(|document| document.id(batch)))),
            Arc::new(StringArray::from_iter_values(made.iter().map(decision))),
            Arc::new(rows().map(canonical).collect::<Result<StringArray>>()?),
            Arc::new(rows().map(distance).collect::<Int32Array>()),
            Arc::new(StringArray::from_iter_values(made.iter().map(reason))),
            Arc::new(rows().map(|row| cluster(row?).map(|(first, _)| batch.id(first))).collect::<StringArray>()),
            Arc::new(rows().map(|row| cluster(row?).map(|(_, n)| i64::from(n))).collect::<Int64Array>()),
            Arc::new(rows().map(|row| self.lost_share(batch, row?)).collect::<Float64Array>()),
            Arc::new(rows().map(|row| self.reference(batch, row?)).collect::<StringArray>()),
            Arc::new(StringArray::from_iter_values(histories.iter().map(|history| history.recrawl.name()))),
            Arc::new(Date32Array::from_iter_values(histories.iter().map(|history| history.first_seen))),
            Arc::new(Date32Array::from_iter_values(histories.iter().map(|history| history.last_changed))),
            Arc::new(made.iter().map(|document| Some(document.is_revisit(batch))).collect::<BooleanArray>()),
            Arc::new(rows().map(family).collect::<Result<StringArray>>()?),
        ];
        RecordBatch::try_new(Arc::clone(&DECISIONS), arrays).map_err(|e| defect(e.to_string()))
    }

    /// Writes the decisions about documents of earlier nights that were decided again below a folder. `of_rows` has what is
    /// known of each row of the batch.
    pub(crate) fn write_redecided(
        &self,
        batch: &QueryBatch,
        of_rows: &[DecidedAgain<'_>],
        folder: &Path,
    ) -> Result<Vec<StagedFile>> {
        debug_assert_eq!(of_rows.len(), batch.len(), "each orphan has one row of the batch");
        let mut writer = DatasetWriter::new(folder, "redecided", &REDECIDED, &[]);
        for (start, of_rows) in (0u32..).step_by(BATCH_ROWS).zip(of_rows.chunks(BATCH_ROWS)) {
            let rows = || (start..).take(of_rows.len());
            let made = || rows().map(|row| &self.rows[row as usize]);
            let arrays: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from_iter_values(rows().map(|row| batch.id(row)))),
                Arc::new(Date32Array::from_iter_values(of_rows.iter().map(|of| of.day))),
                Arc::new(StringArray::from_iter_values(made().map(|d| d.outcome.decision()))),
                Arc::new(rows().map(|row| self.canonical_id(batch, row)).collect::<Result<StringArray>>()?),
                Arc::new(made().map(|d| d.distance.map(i32::from)).collect::<Int32Array>()),
                Arc::new(StringArray::from_iter_values(rows().map(|row| self.reason_again(row)))),
                Arc::new(rows().map(|row| self.lost_share(batch, row)).collect::<Float64Array>()),
                Arc::new(rows().map(|row| self.reference(batch, row)).collect::<StringArray>()),
                Arc::new(StringArray::from_iter_values(of_rows.iter().map(|of| of.former_canonical_id))),
                Arc::new(StringArray::from_iter_values(of_rows.iter().map(|of| of.cause))),
                Arc::new(StringArray::from_iter_values(of_rows.iter().map(|of| of.family))),
            ];
            let rows = RecordBatch::try_new(Arc::clone(&REDECIDED), arrays);
            writer.write(rows.map_err(|e| defect(e.to_string()))?)?;
        }
        writer.finish()
    }

    fn write_superseded(&self, batch: &QueryBatch, folder: &Path) -> Result<Vec<StagedFile>> {
        let mut writer = DatasetWriter::new(folder, "superseded", &SUPERSEDED, &[]);
        for rows in self.superseded.chunks(BATCH_ROWS) {
            let of = || rows.iter().map(|(of, _)| of);
            let arrays: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from_iter_values(of().map(|of| &*of.id))),
                Arc::new(StringArray::from_iter_values(rows.iter().map(|&(_, row)| batch.id(row)))),
                Arc::new(Int32Array::from_iter_values(of().map(|of| i32::from(of.distance)))),
                Arc::new(Int32Array::from_iter_values(of().map(|of| i32::from(of.sketch_distance)))),
                Arc::new(Float64Array::from_iter_values(of().map(|of| of.lost_share))),
                Arc::new(Float64Array::from_iter_values(of().map(|of| of.lost_share_of_class))),
                Arc::new(of().map(|of| self.references.of(of.origin)).collect::<StringArray>()),
            ];
            let rows = RecordBatch::try_new(Arc::clone(&SUPERSEDED), arrays);
            writer.write(rows.map_err(|e| defect(e.to_string()))?)?;
        }
        writer.finish()
    }
}

/// A document of a night that is decided about.
enum Decided<'a> {
    Row(u32),
    Stub(&'a Stub),
}

impl Decided<'_> {
    /// Returns its row in the batch. A stub has none.
    fn row(&self) -> Option<u32> {
        match self {
            Self::Row(row) => Some(*row),
            Self::Stub(_) => None,
        }
    }

    fn id<'b>(&'b self, batch: &'b QueryBatch) -> Cow<'b, str> {
        match self {
            Self::Row(row) => batch.id(*row),
            Self::Stub(stub) => Cow::Borrowed(&stub.id),
        }
    }

    fn history(&self, recrawls: &Recrawls) -> RecrawlHistory {
        match self {
            Self::Row(row) => recrawls.history(*row),
            Self::Stub(stub) => stub.history,
        }
    }

    fn is_revisit(&self, batch: &QueryBatch) -> bool {
        match self {
            Self::Row(row) => batch.revisits.contains(*row),
            Self::Stub(stub) => stub.is_revisit,
        }
    }
}

/// Returns the documents of a batch and the stubs, by id.
fn in_order<'a>(batch: &'a QueryBatch, stubs: &'a Stubs) -> impl Iterator<Item = Decided<'a>> {
    let (mut rows, mut stubs) = (batch.rows().peekable(), stubs.iter().peekable());
    std::iter::from_fn(move || match (rows.peek(), stubs.peek()) {
        (Some(&row), Some(stub)) if *batch.id(row) < *stub.id => rows.next().map(Decided::Row),
        (_, Some(_)) => stubs.next().map(Decided::Stub),
        (_, None) => rows.next().map(Decided::Row),
    })
}
