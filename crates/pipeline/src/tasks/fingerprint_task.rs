//! One task of fingerprinting: documents to fingerprinted documents.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::builder::FixedSizeBinaryBuilder;
use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::StreamExt;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use rayon::prelude::*;
use tokio::sync::Semaphore;

use super::{FingerprintTask, blocking};
use crate::analyze::{FingerprintedText, Outcome, TextFingerprinter};
use crate::documents::{DocumentBatch, Documents};
use crate::error::{PipelineError, Result};
use crate::progress::Progress;
use crate::query_batch::{FILE, KEEP_PREFIX, LENGTH, ROW, SKIPPED, SkipReason};
use crate::schema::{FINGERPRINTS, SKETCH_BYTES, TEXT_HASH_BYTES};

/// What all fingerprint tasks of a run share.
#[derive(Debug)]
pub(crate) struct FingerprintContext {
    documents: Documents,
    fingerprinter: TextFingerprinter,
    /// Position of each file among the night's files, in path order.
    positions: HashMap<String, u32>,
    schema: SchemaRef,
    permits: Arc<Semaphore>,
    progress: Progress,
}

impl FingerprintContext {
    pub(crate) fn new(
        documents: Documents,
        keep: &[String],
        fingerprinter: TextFingerprinter,
        threads: usize,
        progress: Progress,
    ) -> Self {
        let positions = documents.files().zip(0..).map(|(file, i)| (file.url.clone(), i)).collect();
        let schema = schema(keep, documents.keep_types());
        Self { documents, fingerprinter, positions, schema, permits: Arc::new(Semaphore::new(threads)), progress }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Fingerprints datasets' columns, why there is no fingerprint, the keep keys, and where the row came from.
fn schema(keep: &[String], keep_types: &[DataType]) -> SchemaRef {
    let nullable = |f: &Arc<Field>| f.as_ref().clone().with_nullable(true);
    let mut fields: Vec<Field> = FINGERPRINTS.fields().iter().map(nullable).collect();
    fields.push(Field::new(SKIPPED, DataType::Utf8, true));
    fields.push(Field::new(LENGTH, DataType::UInt64, false));
    fields.push(Field::new(FILE, DataType::UInt32, false));
    fields.push(Field::new(ROW, DataType::UInt64, false));
    fields.extend(
        keep.iter().zip(keep_types).map(|(name, t)| Field::new(format!("{KEEP_PREFIX}{name}"), t.clone(), true)),
    );
    Arc::new(Schema::new(fields))
}

/// The fingerprinted documents of a task, in file order.
pub(crate) fn fingerprint_task(
    context: &Arc<FingerprintContext>,
    task: &FingerprintTask,
) -> BoxStream<'static, Result<RecordBatch>> {
    let (context, task) = (Arc::clone(context), task.clone());
    let started = async move {
        let permit = Arc::clone(&context.permits).acquire_owned().await.map_err(cancelled)?;
        let documents = context.documents.read(&task)?;
        let file = context.positions.get(&task.file).copied().unwrap_or(u32::MAX);
        Ok::<_, PipelineError>(documents.and_then(move |batch| {
            // Held until the task's last batch is done: a night of many files opens few at a time.
            let _held = &permit;
            let context = Arc::clone(&context);
            blocking("fingerprinting", move || fingerprint_batch(&context, file, batch))
        }))
    };
    futures::stream::once(started).try_flatten().boxed()
}

fn fingerprint_batch(context: &FingerprintContext, file: u32, batch: DocumentBatch) -> Result<RecordBatch> {
    let texts = &batch.texts;
    let done: Vec<Option<FingerprintedText>> = (0..texts.len())
        .into_par_iter()
        .map(|i| texts.is_valid(i).then(|| context.fingerprinter.fingerprint(texts.value(i))))
        .collect();
    context.progress.advance(done.len() as u64);
    let n = done.len();
    let mut columns = vec![Arc::new(batch.ids) as ArrayRef];
    columns.extend(outcome_columns(&done)?);
    columns.push(Arc::new(UInt64Array::from_iter_values(done.iter().map(|d| d.as_ref().map_or(0, |d| d.length)))));
    columns.push(Arc::new(UInt32Array::from_iter_values(std::iter::repeat_n(file, n))));
    columns.push(Arc::new(UInt64Array::from(batch.rows)));
    columns.extend(batch.keep);
    RecordBatch::try_new(context.schema(), columns).map_err(internal)
}

/// `fingerprint`, `sketch`, `text_hash`, `skipped`.
fn outcome_columns(done: &[Option<FingerprintedText>]) -> Result<[ArrayRef; 4]> {
    let mut sketches = FixedSizeBinaryBuilder::with_capacity(done.len(), SKETCH_BYTES);
    let mut text_hashes = FixedSizeBinaryBuilder::with_capacity(done.len(), TEXT_HASH_BYTES);
    let (mut fingerprints, mut skipped) = (Vec::new(), Vec::new());
    for text in done {
        let (fingerprint, sketch, text_hash, reason) = match text.as_ref().map(|t| &t.outcome) {
            None => (None, None, None, Some(SkipReason::NullText)),
            Some(Outcome::Empty) => (None, None, None, Some(SkipReason::Empty)),
            Some(Outcome::TooShort { text_hash }) => (None, None, Some(text_hash), Some(SkipReason::TooShort)),
            Some(Outcome::Fingerprinted { fingerprint, sketch, text_hash }) => {
                (Some(*fingerprint), sketch.as_ref(), Some(text_hash), None)
            }
        };
        fingerprints.push(fingerprint);
        skipped.push(reason.map(SkipReason::name));
        append(&mut sketches, sketch.map(|s| s.0.as_slice()))?;
        append(&mut text_hashes, text_hash.map(|h| h.as_slice()))?;
    }
    Ok([
        Arc::new(UInt64Array::from(fingerprints)),
        Arc::new(sketches.finish()),
        Arc::new(text_hashes.finish()),
        Arc::new(StringArray::from(skipped)),
    ])
}

/// A value or a null.
pub(crate) fn append(builder: &mut FixedSizeBinaryBuilder, value: Option<&[u8]>) -> Result<()> {
    match value {
        Some(value) => builder.append_value(value).map_err(internal),
        None => {
            builder.append_null();
            Ok(())
        }
    }
}

fn cancelled(_: tokio::sync::AcquireError) -> PipelineError {
    PipelineError::TryAgain { reason: "the run was cancelled".to_owned() }
}

fn internal(error: arrow::error::ArrowError) -> PipelineError {
    PipelineError::Internal { stage: "fingerprinting", reason: error.to_string() }
}
