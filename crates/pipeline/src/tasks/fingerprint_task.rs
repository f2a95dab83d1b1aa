//! One task of fingerprinting: documents to fingerprinted documents.

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::builder::FixedSizeBinaryBuilder;
use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, UInt8Array, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::StreamExt;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use rayon::prelude::*;
use tokio::sync::Semaphore;

use crate::batch::collect::BAD;
use crate::batch::query_batch::{FILE, KEEP_PREFIX, LENGTH, LOW_HALF, ROW, SKIPPED, SkipReason};
use crate::error::{PipelineError, Result};
use nearprint_dataset::schema::{FINGERPRINTS, SKETCH_BYTES, TEXT_HASH_BYTES};
use nearprint_dataset::{BadFile, BadReason, InputPolicy};
use nearprint_dataset::{DatasetError, DocumentRange};
use nearprint_dataset::{DocumentBatch, Documents};
use nearprint_profile::{FingerprintedText, Outcome, TextFingerprinter};
use nearprint_storage::Progress;
use nearprint_storage::locked;
use nearprint_storage::{blocking, panic_text};

/// What all fingerprint tasks of a run share.
#[derive(Debug)]
pub(crate) struct FingerprintContext {
    pub(crate) documents: Documents,
    fingerprinter: TextFingerprinter,
    /// The files, in path order.
    urls: Vec<String>,
    /// Position of each file among them.
    positions: HashMap<String, u32>,
    schema: SchemaRef,
    permits: Arc<Semaphore>,
    progress: Progress,
    policy: InputPolicy,
    /// Rows so far that are no documents.
    n_bad_rows: AtomicU64,
    /// Files that could not be read to their end.
    bad_files: Mutex<BTreeMap<u32, String>>,
}

/// A run whose rows are mostly no documents stops this far past the limit, and does not list them all.
const BAD_ROWS_PAST_LIMIT: u64 = 100_000;

/// Characters of a normalised text that the keep order can tell: normalising may make a text longer than its bytes.
const MAX_LENGTH: u64 = 0xFFFF_FFFF;

impl FingerprintContext {
    pub(crate) fn new(
        documents: Documents,
        keep: &[String],
        fingerprinter: TextFingerprinter,
        threads: usize,
        policy: InputPolicy,
        progress: Progress,
    ) -> Self {
        let urls: Vec<String> = documents.files().map(|file| file.url.clone()).collect();
        let positions = urls.iter().cloned().zip(0..).collect();
        Self {
            schema: schema(keep, documents.keep_types()),
            documents,
            fingerprinter,
            urls,
            positions,
            permits: Arc::new(Semaphore::new(threads)),
            progress,
            policy,
            n_bad_rows: AtomicU64::new(0),
            bad_files: Mutex::new(BTreeMap::new()),
        }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The file at a position.
    pub(crate) fn url(&self, file: u32) -> String {
        self.urls[file as usize].clone()
    }

    fn position_of(&self, url: &str) -> Result<u32> {
        let unknown = || defect(format!("no file {url} in this run"));
        self.positions.get(url).copied().ok_or_else(unknown)
    }

    /// Files that could not be read to their end: of these no row counts.
    pub(crate) fn bad_files(&self) -> BTreeMap<u32, String> {
        locked(&self.bad_files).clone()
    }

    /// All files that cannot be read, by path.
    pub(crate) fn all_bad_files(&self) -> Vec<BadFile> {
        let opened = self.documents.bad.iter().map(|(file, reason)| (file.url.clone(), reason.clone()));
        let read = self.bad_files().into_iter().map(|(file, reason)| (self.url(file), reason));
        let mut all: Vec<BadFile> = opened.chain(read).map(|(url, reason)| BadFile { url, reason }).collect();
        all.sort();
        all
    }

    fn is_bad_file(&self, file: u32) -> bool {
        locked(&self.bad_files).contains_key(&file)
    }

    /// Passes over a file that cannot be read, unless there are too many.
    fn pass_over(&self, file: u32, error: PipelineError) -> Result<()> {
        let PipelineError::Dataset(DatasetError::BadFile { reason, .. }) = &error else {
            return Err(error);
        };
        if self.policy.max_bad_files == 0 {
            return Err(error);
        }
        locked(&self.bad_files).entry(file).or_insert_with(|| reason.clone());
        let all = self.all_bad_files();
        match all.first() {
            Some(first) if all.len() as u64 > self.policy.max_bad_files => Err(DatasetError::TooManyBadFiles {
                allowed: self.policy.max_bad_files,
                example: format!("{}: {}", first.url, first.reason),
            }
            .into()),
            _ => Ok(()),
        }
    }

    fn count_bad_rows(&self, file: u32, bad: &[Option<BadReason>], rows: &[u64]) -> Result<()> {
        let more = bad.iter().flatten().count() as u64;
        let n = self.n_bad_rows.fetch_add(more, Ordering::Relaxed) + more;
        let first = bad.iter().zip(rows).find_map(|(bad, row)| bad.map(|reason| (reason, row)));
        match first {
            Some((reason, row)) if n > self.policy.max_bad_rows.saturating_add(BAD_ROWS_PAST_LIMIT) => {
                let example = format!("stopped at {} row {row}: {}", self.url(file), reason.name());
                Err(PipelineError::TooManyBadRows { n, allowed: self.policy.max_bad_rows, example })
            }
            _ => Ok(()),
        }
    }
}

/// Fingerprints datasets' columns, why there is no fingerprint, the keep keys, and where the row came from.
fn schema(keep: &[String], keep_types: &[DataType]) -> SchemaRef {
    let nullable = |f: &Arc<Field>| f.as_ref().clone().with_nullable(true);
    let mut fields: Vec<Field> = FINGERPRINTS.fields().iter().map(nullable).collect();
    fields.push(Field::new(LOW_HALF, DataType::UInt64, true));
    fields.push(Field::new(SKIPPED, DataType::Utf8, true));
    fields.push(Field::new(LENGTH, DataType::UInt64, false));
    fields.push(Field::new(FILE, DataType::UInt32, false));
    fields.push(Field::new(ROW, DataType::UInt64, false));
    fields.push(Field::new(BAD, DataType::UInt8, false));
    fields.extend(
        keep.iter().zip(keep_types).map(|(name, t)| Field::new(format!("{KEEP_PREFIX}{name}"), t.clone(), true)),
    );
    Arc::new(Schema::new(fields))
}

/// The fingerprinted documents of a task, in file order.
pub(crate) fn fingerprint_task(
    context: &Arc<FingerprintContext>,
    task: &DocumentRange,
) -> BoxStream<'static, Result<RecordBatch>> {
    let (context, task) = (Arc::clone(context), task.clone());
    let started = async move {
        let permit = Arc::clone(&context.permits).acquire_owned().await.map_err(cancelled)?;
        let file = context.position_of(&task.file)?;
        let documents = context.documents.read(&task)?;
        let passing = Arc::clone(&context);
        let batches = documents.map_err(PipelineError::from).and_then(move |batch| {
            // Held until the task's last batch is done: a night of many files opens few at a time.
            let _held = &permit;
            let context = Arc::clone(&context);
            blocking("fingerprinting", move || fingerprint_batch(&context, file, batch))
        });
        let wanted = Arc::clone(&passing);
        let batches = batches.take_while(move |_| futures::future::ready(!wanted.is_bad_file(file)));
        Ok::<_, PipelineError>(batches.filter_map(move |batch| {
            let kept = match batch {
                Err(error) => passing.pass_over(file, error).err().map(Err),
                batch => Some(batch),
            };
            futures::future::ready(kept)
        }))
    };
    futures::stream::once(started).try_flatten().boxed()
}

type Done = std::result::Result<Option<FingerprintedText>, BadReason>;

fn fingerprint_batch(context: &FingerprintContext, file: u32, batch: DocumentBatch) -> Result<RecordBatch> {
    let done = fingerprint_texts(context, file, &batch)?;
    context.progress.advance(done.len() as u64);
    let n = done.len();
    let bad: Vec<Option<BadReason>> = (0..n)
        .map(|i| {
            batch.faults[i]
                .or_else(|| batch.ids.is_null(i).then_some(BadReason::NullId))
                .or(done[i].as_ref().err().copied())
                .or_else(|| (done[i].as_ref().ok()?.as_ref()?.length > MAX_LENGTH).then_some(BadReason::TooLarge))
        })
        .collect();
    debug_assert_eq!(bad.len(), batch.rows.len(), "a reader gives each row its number");
    context.count_bad_rows(file, &bad, &batch.rows)?;
    let done: Vec<Option<&FingerprintedText>> = done.iter().map(|d| d.as_ref().ok().and_then(Option::as_ref)).collect();
    let mut columns = vec![Arc::new(batch.ids) as ArrayRef];
    columns.extend(outcome_columns(&done)?);
    columns.push(Arc::new(UInt64Array::from_iter_values(done.iter().map(|d| d.map_or(0, |d| d.length)))));
    columns.push(Arc::new(UInt32Array::from_iter_values(std::iter::repeat_n(file, n))));
    columns.push(Arc::new(UInt64Array::from(batch.rows)));
    columns.push(Arc::new(UInt8Array::from_iter_values(bad.into_iter().map(BadReason::code))));
    columns.extend(batch.keep);
    RecordBatch::try_new(context.schema(), columns).map_err(internal)
}

/// Each text's fingerprint. Rows of one dictionary value are one text, and it is fingerprinted once.
fn fingerprint_texts(context: &FingerprintContext, file: u32, batch: &DocumentBatch) -> Result<Vec<Done>> {
    let views = batch.texts.views();
    let mut first_of: HashMap<u128, usize> = HashMap::with_capacity(views.len());
    let same: Vec<usize> = (0..views.len())
        .map(|i| {
            let sound = batch.faults[i].is_none() && batch.texts.is_valid(i);
            if sound { *first_of.entry(views[i]).or_insert(i) } else { i }
        })
        .collect();
    let fingerprint = |i: usize| -> Result<Option<Done>> {
        if same[i] != i {
            return Ok(None);
        }
        let text = match batch.text(i) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Some(Ok(None))),
            Err(reason) => return Ok(Some(Err(reason))),
        };
        let done = std::panic::catch_unwind(AssertUnwindSafe(|| context.fingerprinter.fingerprint(text)));
        done.map(|done| Some(Ok(Some(done)))).map_err(|panic| PipelineError::Internal {
            stage: "fingerprinting",
            reason: format!("{} row {}: {}", context.url(file), batch.rows[i], panic_text(&*panic)),
        })
    };
    let done: Vec<Option<Done>> = (0..views.len()).into_par_iter().map(fingerprint).collect::<Result<_>>()?;
    let of_text = |&i: &usize| {
        let unknown = || defect(format!("{} row {}: not fingerprinted", context.url(file), batch.rows[i]));
        done[i].clone().ok_or_else(unknown)
    };
    same.iter().map(of_text).collect()
}

/// `fingerprint`, `sketch`, `text_hash`, `low_half`, `skipped`.
fn outcome_columns(done: &[Option<&FingerprintedText>]) -> Result<[ArrayRef; 5]> {
    let mut sketches = FixedSizeBinaryBuilder::with_capacity(done.len(), SKETCH_BYTES);
    let mut text_hashes = FixedSizeBinaryBuilder::with_capacity(done.len(), TEXT_HASH_BYTES);
    let (mut fingerprints, mut low_halves, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for text in done {
        let (fingerprint, low_half, sketch, text_hash, reason) = match text.map(|t| &t.outcome) {
            None => (None, None, None, None, Some(SkipReason::NullText)),
            Some(Outcome::Empty) => (None, None, None, None, Some(SkipReason::Empty)),
            Some(Outcome::TooShort { text_hash }) => (None, None, None, Some(text_hash), Some(SkipReason::TooShort)),
            Some(Outcome::Fingerprinted { fingerprint, low_half, sketch, text_hash }) => {
                (Some(*fingerprint), *low_half, sketch.as_ref(), Some(text_hash), None)
            }
        };
        fingerprints.push(fingerprint);
        low_halves.push(low_half);
        skipped.push(reason.map(SkipReason::name));
        append(&mut sketches, sketch.map(|s| s.0.as_slice()))?;
        append(&mut text_hashes, text_hash.map(|h| h.as_slice()))?;
    }
    Ok([
        Arc::new(UInt64Array::from(fingerprints)),
        Arc::new(sketches.finish()),
        Arc::new(text_hashes.finish()),
        Arc::new(UInt64Array::from(low_halves)),
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
    defect(error.to_string())
}

fn defect(reason: String) -> PipelineError {
    PipelineError::Internal { stage: "fingerprinting", reason }
}
