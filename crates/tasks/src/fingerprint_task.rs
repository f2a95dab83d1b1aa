//! Fingerprint tasks: each reads documents and returns fingerprinted documents.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Display;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, LargeBinaryBuilder, RecordBatch, StringArray, UInt8Array, UInt32Array, UInt64Array, new_null_array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type, UInt64Type};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use nearprint_documents::{
    BadReason, DocumentBatch, DocumentColumns, DocumentRange, DocumentRows, Documents, PassedReason, ReadBytes,
    RevisitColumns, Revisits, Seam,
};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::{FINGERPRINTS, N_FEATURES, SKETCH_BYTES, TEXT_HASH, TEXT_HASH_BYTES};
use nearprint_parquet::{Columns, ReadLimits};
use nearprint_profile::{FingerprintedText, Outcome, ProfileConfig, TextFingerprinter};
use nearprint_storage::{Progress, Storage, Unreadable, blocking, in_pool, panic_text};
use nearprint_tokenize::Resources as AnalyzerResources;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::batch::{
    BAD, FILE, KEEP_PREFIX, LENGTH, LOW_HALF, NEWEST_BY, REVISIT_NEWEST_BY, REVISIT_OF, ROW, SKIPPED, SkipReason,
    WORDS, fixed_size_binary,
};
use crate::file_reading::FileReading;
use crate::stream::{TaskBatch, produce};

/// The specification that all fingerprint tasks of a run share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FingerprintSpec {
    /// The columns of the documents.
    pub columns: DocumentColumns,
    /// The type of each column of the keep order, and of `newest_by`, as Arrow writes it.
    pub keep_types: Vec<String>,
    /// The profile by which texts become fingerprints.
    pub profile: ProfileConfig,
    /// The contents of the user's dictionary and stop words.
    pub analyzer_resources: AnalyzerResources,
    /// The most bytes that a text may have. A row with a larger text is not a document.
    pub max_doc_bytes: u64,
    /// A file that cannot be read becomes a note instead of an error.
    pub passes_over_files: bool,
    /// What becomes of revisit records.
    pub revisits: Revisits,
    /// The words of texts that tasks return, if the profile has a judge.
    pub words: SentWords,
    /// The memory limit of the process, in bytes. `None` means no limit.
    pub memory_limit: Option<usize>,
    /// The number of tasks that run at once in the process.
    pub threads: usize,
}

/// The words of texts that fingerprint tasks return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentWords {
    /// Each document has the words of its text.
    Whole,
    /// Each document whose text has words has an empty value in their place.
    Marks,
    /// Tasks return no documents, but these texts with their words, each once.
    Only(WantedTexts),
}

/// A set of texts: the first halves of their hashes, in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WantedTexts(Vec<u64>);

impl WantedTexts {
    /// Returns the set of the texts that have these hashes, and of those few that share half a hash with them.
    pub fn of<'a>(hashes: impl Iterator<Item = &'a [u8; 16]>) -> Self {
        let mut halves: Vec<u64> = hashes.map(first_half).collect();
        halves.sort_unstable();
        halves.dedup();
        Self(halves)
    }

    fn contains(&self, hash: &[u8; 16]) -> bool {
        self.0.binary_search(&first_half(hash)).is_ok()
    }
}

fn first_half(&[a, b, c, d, e, f, g, h, ..]: &[u8; 16]) -> u64 {
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// A task that fingerprints the documents in a range of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FingerprintTask {
    /// The range.
    pub range: DocumentRange,
    /// The reading of the file. Fingerprinted rows carry it.
    #[serde(rename = "position")]
    pub reading: FileReading,
}

/// The state that fingerprint tasks share, made from their specification.
#[derive(Debug)]
pub struct FingerprintContext {
    documents: Arc<Documents>,
    fingerprinter: TextFingerprinter,
    schema: SchemaRef,
    words: SentWords,
    passes_over_files: bool,
    progress: Progress,
    /// The progress counts bytes, because a file does not know the number of its documents.
    counts_bytes: bool,
}

impl FingerprintContext {
    /// Builds a context from the specification alone. Tasks open their files themselves.
    ///
    /// # Errors
    /// The profile cannot be used, or a type in `keep_types` is unknown.
    pub fn try_new(spec: &FingerprintSpec, storage: &Storage) -> Result<Self> {
        let unknown = |e: arrow::error::ArrowError| defect(format!("keep_types: {e}"));
        let keep_types = spec.keep_types.iter().map(|t| t.parse::<DataType>().map_err(unknown));
        let keep_types = keep_types.collect::<Result<_>>()?;
        let mut documents = Documents::unopened(storage, spec.columns.clone(), keep_types, spec.max_doc_bytes);
        documents.limit(ReadLimits::new(spec.memory_limit, spec.threads));
        documents.treat_revisits(spec.revisits);
        Self::with_documents(spec, Arc::new(documents), Progress::default())
    }

    /// Builds a context with files that were opened before.
    ///
    /// # Errors
    /// The profile cannot be used.
    pub fn with_documents(spec: &FingerprintSpec, documents: Arc<Documents>, progress: Progress) -> Result<Self> {
        Ok(Self {
            fingerprinter: TextFingerprinter::try_new(spec.profile.clone(), &spec.analyzer_resources)?,
            schema: match &spec.words {
                SentWords::Only(_) => Arc::clone(&TEXT_WORDS),
                _ => schema(&spec.columns.keep, documents.keep_types(), spec.profile.judge().is_some()),
            },
            words: spec.words.clone(),
            counts_bytes: documents.n_rows().is_none(),
            documents,
            passes_over_files: spec.passes_over_files,
            progress,
        })
    }
}

/// The most characters of a normalised text that the keep order can hold. A normalised text may have more characters
/// than the text had bytes.
const MAX_LENGTH: u64 = 0xFFFF_FFFF;

/// The schema of the notes of fingerprint tasks. A note with a `reason` says that the file could not be read to its
/// end, and that none of its rows counts. A note with `passed` says that `n` records of the file were passed over for
/// that reason, because they are no documents. A note with `span` says that this span of the file, up to `span_end`, was
/// read from `first` to `next`. Any other note says that the file has pages without checksums.
static FILE_NOTES: LazyLock<SchemaRef> = LazyLock::new(|| {
    let fields = [
        Field::new(FILE, DataType::UInt32, false),
        Field::new("reason", DataType::Utf8, true),
        Field::new("passed", DataType::Utf8, true),
        Field::new("n", DataType::UInt64, false),
        Field::new("span", DataType::UInt64, true),
        Field::new("span_end", DataType::UInt64, true),
        Field::new("first", DataType::UInt64, true),
        Field::new("next", DataType::UInt64, true),
    ];
    Arc::new(Schema::new(fields.to_vec()))
});

/// The content of the notes of fingerprint tasks, by the readings of the files.
#[derive(Debug, Default)]
pub struct FileNote {
    /// The files that could not be read to their end, and the reasons.
    pub bad: BTreeMap<FileReading, String>,
    /// The files that have pages without checksums.
    pub unchecked: BTreeSet<FileReading>,
    /// The numbers of records that were passed over, by file and reason.
    pub passed: BTreeMap<(FileReading, String), u64>,
    /// The spans that must join, by file and first byte: the byte behind each, and its seam.
    pub spans: BTreeMap<FileReading, BTreeMap<u64, (u64, Option<Seam>)>>,
}

impl FileNote {
    /// Adds the notes of a task.
    ///
    /// # Errors
    /// The notes do not have the columns of a fingerprint task's notes.
    pub fn add(&mut self, notes: &RecordBatch) -> Result<()> {
        let columns = Columns { batch: notes, file: "notes of fingerprinting" };
        let (files, reasons) = (columns.primitive::<UInt32Type>(FILE)?, columns.strings("reason")?);
        let (passed, numbers) = (columns.strings("passed")?, columns.primitive::<UInt64Type>("n")?);
        let [spans, ends, first, next] =
            ["span", "span_end", "first", "next"].map(|name| columns.primitive::<UInt64Type>(name));
        let (spans, ends, first, next) = (spans?, ends?, first?, next?);
        let value = |of: &UInt64Array, i: usize| of.is_valid(i).then(|| of.value(i));
        for (i, &reading) in files.values().iter().enumerate() {
            let reading = FileReading::from(reading);
            if let Some(span) = value(spans, i) {
                let seam = value(next, i).map(|next| Seam { first: value(first, i), next });
                self.spans.entry(reading).or_default().insert(span, (ends.value(i), seam));
                continue;
            }
            if passed.is_valid(i) {
                *self.passed.entry((reading, passed.value(i).to_owned())).or_default() += numbers.value(i);
                continue;
            }
            if reasons.is_null(i) {
                self.unchecked.insert(reading);
                continue;
            }
            // Several ranges of a file may be bad, and their tasks end in any order.
            let reason = self.bad.entry(reading).or_insert_with(|| reasons.value(i).to_owned());
            if reasons.value(i) < reason.as_str() {
                reasons.value(i).clone_into(reason);
            }
        }
        Ok(())
    }
}

/// A note about a file.
#[derive(Default)]
struct Note<'a> {
    reason: Option<&'a str>,
    passed: Option<(PassedReason, u64)>,
    span: Option<(Range<u64>, Option<Seam>)>,
}

fn file_note(reading: FileReading, Note { reason, passed, span }: Note<'_>) -> Result<TaskBatch> {
    let (span, seam) = span.map_or((None, None), |(span, seam)| (Some(span), seam));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt32Array::from(vec![u32::from(reading)])),
        Arc::new(StringArray::from(vec![reason])),
        Arc::new(StringArray::from(vec![passed.map(|(reason, _)| reason.name())])),
        Arc::new(UInt64Array::from(vec![passed.map_or(0, |(_, n)| n)])),
        Arc::new(UInt64Array::from(vec![span.as_ref().map(|span| span.start)])),
        Arc::new(UInt64Array::from(vec![span.map(|span| span.end)])),
        Arc::new(UInt64Array::from(vec![seam.and_then(|seam| seam.first)])),
        Arc::new(UInt64Array::from(vec![seam.map(|seam| seam.next)])),
    ];
    RecordBatch::try_new(Arc::clone(&FILE_NOTES), columns).map(TaskBatch::Notes).map_err(defect)
}

/// The schema of texts and their words.
static TEXT_WORDS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let fields = [
        Field::new(TEXT_HASH, DataType::FixedSizeBinary(TEXT_HASH_BYTES), false),
        Field::new(WORDS, DataType::LargeBinary, false),
    ];
    Arc::new(Schema::new(fields.to_vec()))
});

/// Returns the schema of fingerprinted documents: the columns of fingerprints datasets, the number of features, the reason
/// why there is no fingerprint, the place of the row, how new it is, whose text a revisit has, the words that a judge reads,
/// and the keep keys.
fn schema(keep: &[String], keep_types: &[DataType], has_judge: bool) -> SchemaRef {
    let nullable = |f: &Arc<Field>| f.as_ref().clone().with_nullable(true);
    let mut fields: Vec<Field> = FINGERPRINTS.fields().iter().map(nullable).collect();
    fields.push(Field::new(LOW_HALF, DataType::UInt64, true));
    fields.push(Field::new(N_FEATURES, DataType::UInt32, true));
    fields.push(Field::new(SKIPPED, DataType::Utf8, true));
    fields.push(Field::new(LENGTH, DataType::UInt64, false));
    fields.push(Field::new(FILE, DataType::UInt32, false));
    fields.push(Field::new(ROW, DataType::UInt64, false));
    fields.push(Field::new(BAD, DataType::UInt8, false));
    fields.push(Field::new(NEWEST_BY, DataType::Int64, true));
    fields.push(Field::new(REVISIT_OF, DataType::Utf8, true));
    fields.extend(REVISIT_NEWEST_BY.map(|name| Field::new(name, DataType::Int64, true)));
    fields.extend(has_judge.then(|| Field::new(WORDS, DataType::LargeBinary, true)));
    fields.extend(
        keep.iter().zip(keep_types).map(|(name, t)| Field::new(format!("{KEEP_PREFIX}{name}"), t.clone(), true)),
    );
    Arc::new(Schema::new(fields))
}

/// Returns the fingerprinted documents of a task, in file order, and the notes about its file. If the specification asks for the
/// words of some texts only, the rows are the wanted texts of the range with their words, each text once.
///
/// ```
/// use std::sync::Arc;
///
/// use futures::TryStreamExt;
/// use nearprint_documents::{DocumentColumns, Documents, InputPolicy, Revisits};
/// use nearprint_storage::Storage;
/// use nearprint_tasks::{
///     CollectPolicy, Collecting, FileReading, FingerprintContext, FingerprintSpec, FingerprintTask, SentWords,
///     TaskBatch, fingerprint_task,
/// };
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let pattern = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents/dt=2026-11-19");
/// let (storage, columns) = (Storage::default(), DocumentColumns::default());
/// let documents = Documents::open(&storage, &pattern.into(), columns.clone(), &InputPolicy::default()).await?;
/// let spec = FingerprintSpec {
///     columns,
///     keep_types: Vec::new(),
///     profile: nearprint_profile::by_name("default")?,
///     analyzer_resources: nearprint_tokenize::Resources::default(),
///     max_doc_bytes: 64 << 20,
///     passes_over_files: false,
///     revisits: Revisits::PassedOver,
///     words: SentWords::Whole,
///     memory_limit: None,
///     threads: 1,
/// };
/// let context = Arc::new(FingerprintContext::try_new(&spec, &storage)?);
/// let mut collecting = Collecting::new(&[], None, usize::MAX);
/// for range in documents.ranges() {
///     let mut batches = fingerprint_task(&context, &FingerprintTask { range, reading: FileReading::first(0) });
///     while let Some(batch) = batches.try_next().await? {
///         if let TaskBatch::Rows(rows) = batch {
///             collecting.push(&rows)?;
///         }
///     }
/// }
/// let batch = collecting.finish(&CollectPolicy::default(), |_| pattern.to_owned())?;
/// assert_eq!(batch.len(), 155);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub fn fingerprint_task(
    context: &Arc<FingerprintContext>,
    task: &FingerprintTask,
) -> BoxStream<'static, Result<TaskBatch>> {
    let (context, task) = (Arc::clone(context), task.clone());
    produce("fingerprinting", move |sender| async move {
        let DocumentRows { mut batches, unchecked, passed, read_bytes, span } = context.documents.read(&task.range);
        let mut reached = Reached::new(&context, &task.range, read_bytes);
        let mut sent = HashSet::new();
        loop {
            match batches.try_next().await {
                Ok(Some(batch)) => {
                    let (own, task, n_rows) = (Arc::clone(&context), task.clone(), batch.rows.len());
                    let work = move || match &own.words {
                        SentWords::Only(wanted) => {
                            words_batch(&own, &task, &batch, wanted, &mut sent).map(|rows| (rows, sent))
                        }
                        _ => fingerprint_batch(&own, &task, batch).map(|rows| (rows, sent)),
                    };
                    let rows;
                    (rows, sent) = blocking("fingerprinting", work).await?;
                    reached.rows(n_rows as u64);
                    sender.send(TaskBatch::Rows(rows)).await?;
                }
                Ok(None) => break,
                Err(error) if context.passes_over_files && error.matter::<Unreadable>().is_some() => {
                    let reason = error.reason_in_file();
                    sender.send(file_note(task.reading, Note { reason: Some(&reason), ..Note::default() })?).await?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        reached.end();
        if unchecked.is_set() {
            sender.send(file_note(task.reading, Note::default())?).await?;
        }
        for counted in passed.counts() {
            sender.send(file_note(task.reading, Note { passed: Some(counted), ..Note::default() })?).await?;
        }
        if let span @ Some(_) = span.get() {
            sender.send(file_note(task.reading, Note { span, ..Note::default() })?).await?;
        }
        Ok(())
    })
}

/// The progress of a task through its range: in documents if all files know their number, and otherwise
/// in bytes.
struct Reached {
    progress: Progress,
    /// The bytes that are read, and those of the range.
    bytes: Option<(ReadBytes, u64)>,
    /// The bytes that the progress knows of.
    n_known: u64,
}

impl Reached {
    fn new(context: &FingerprintContext, range: &DocumentRange, read_bytes: ReadBytes) -> Self {
        let bytes = context.counts_bytes.then(|| (read_bytes, context.documents.bytes_of(range)));
        Self { progress: context.progress.clone(), bytes, n_known: 0 }
    }

    fn rows(&mut self, n: u64) {
        match &self.bytes {
            None => self.progress.advance(n),
            Some((read, of_range)) => self.bytes(read.get().min(*of_range)),
        }
    }

    fn end(&mut self) {
        if let Some((_, of_range)) = self.bytes {
            self.bytes(of_range);
        }
    }

    fn bytes(&mut self, n: u64) {
        debug_assert!(n >= self.n_known, "the bytes that were read never become fewer");
        self.progress.advance(n.saturating_sub(self.n_known));
        self.n_known = n;
    }
}

/// What is made of a row: `None` of one that has no text, and a reason if the row is no document.
type Done<T> = std::result::Result<Option<T>, BadReason>;

fn fingerprint_batch(
    context: &FingerprintContext,
    task: &FingerprintTask,
    batch: DocumentBatch,
) -> Result<RecordBatch> {
    let done = of_texts(&task.range.file, &batch, |text| context.fingerprinter.fingerprint(text))?;
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
    debug_assert!(
        [batch.ids.len(), batch.texts.len(), batch.faults.len(), batch.newest_by.len()] == [n; 4]
            && batch.keep.iter().all(|kept| kept.len() == n),
        "the columns that a reader gives are of the same rows"
    );
    let done: Vec<Option<&FingerprintedText>> = done.iter().map(|d| d.as_ref().ok().and_then(Option::as_ref)).collect();
    let mut columns = vec![Arc::new(batch.ids) as ArrayRef];
    columns.extend(outcome_columns(&done)?);
    columns.push(Arc::new(UInt64Array::from_iter_values(done.iter().map(|d| d.map_or(0, |d| d.length)))));
    columns.push(Arc::new(UInt32Array::from_iter_values(std::iter::repeat_n(u32::from(task.reading), n))));
    columns.push(Arc::new(UInt64Array::from(batch.rows)));
    columns.push(Arc::new(UInt8Array::from_iter_values(bad.into_iter().map(BadReason::code))));
    columns.push(Arc::new(batch.newest_by));
    columns.extend(match batch.revisits {
        Some(RevisitColumns { of, newest_by: [from, to] }) => [Arc::new(of) as ArrayRef, Arc::new(from), Arc::new(to)],
        None => [DataType::Utf8, DataType::Int64, DataType::Int64].map(|data_type| new_null_array(&data_type, n)),
    });
    if context.fingerprinter.config().judge().is_some() {
        let is_whole = context.words == SentWords::Whole;
        let words =
            || done.iter().copied().map(|d| d?.words.as_ref().map(|words| if is_whole { words } else { &[][..] }));
        let mut column = LargeBinaryBuilder::with_capacity(n, words().flatten().map(<[u8]>::len).sum());
        words().for_each(|words| column.append_option(words));
        columns.push(Arc::new(column.finish()));
    }
    columns.extend(batch.keep);
    RecordBatch::try_new(Arc::clone(&context.schema), columns).map_err(defect)
}

/// Returns the words of the texts of a batch that are wanted and not among those that were sent.
fn words_batch(
    context: &FingerprintContext,
    task: &FingerprintTask,
    batch: &DocumentBatch,
    wanted: &WantedTexts,
    sent: &mut HashSet<[u8; 16]>,
) -> Result<RecordBatch> {
    let words_if = |text: &str| context.fingerprinter.words_if(text, |hash| wanted.contains(hash));
    let found = of_texts(&task.range.file, batch, words_if)?;
    let (mut hashes, mut words) = (Vec::new(), LargeBinaryBuilder::new());
    for (hash, of_text) in found.iter().filter_map(|done| done.as_ref().ok()?.as_ref()?.as_ref()) {
        if sent.insert(*hash) {
            hashes.push(Some(hash.as_slice()));
            words.append_value(of_text);
        }
    }
    let columns: Vec<ArrayRef> =
        vec![fixed_size_binary(hashes.into_iter(), TEXT_HASH_BYTES)?, Arc::new(words.finish())];
    RecordBatch::try_new(Arc::clone(&context.schema), columns).map_err(defect)
}

/// Makes something of each text. Rows that share a dictionary value share a text, of which it is made once.
fn of_texts<T: Clone + Send>(
    url: &str,
    batch: &DocumentBatch,
    make: impl Fn(&str) -> T + Sync,
) -> Result<Vec<Done<T>>> {
    let views = batch.texts.views();
    let mut first_of: HashMap<u128, usize> = HashMap::with_capacity(views.len());
    let same: Vec<usize> = (0..views.len())
        .map(|i| {
            let sound = batch.faults[i].is_none() && batch.texts.is_valid(i);
            if sound { *first_of.entry(views[i]).or_insert(i) } else { i }
        })
        .collect();
    let make_once = |i: usize| -> Result<Option<Done<T>>> {
        if same[i] != i {
            return Ok(None);
        }
        let text = match batch.text(i) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Some(Ok(None))),
            Err(reason) => return Ok(Some(Err(reason))),
        };
        let done = std::panic::catch_unwind(AssertUnwindSafe(|| make(text)));
        done.map(|done| Some(Ok(Some(done)))).map_err(|panic| {
            Fault::internal("fingerprinting", format!("{url} row {}: {}", batch.rows[i], panic_text(&*panic)))
        })
    };
    let done: Vec<Option<Done<T>>> =
        in_pool(|| (0..views.len()).into_par_iter().map(make_once).collect::<Result<_>>())?;
    let of_text = |&i: &usize| {
        let unknown = || defect(format!("{url} row {}: not fingerprinted", batch.rows[i]));
        done[i].clone().ok_or_else(unknown)
    };
    same.iter().map(of_text).collect()
}

/// Builds the columns `fingerprint`, `sketch`, `text_hash`, `low_half`, `n_features` and `skipped`.
fn outcome_columns(done: &[Option<&FingerprintedText>]) -> Result<[ArrayRef; 6]> {
    let (mut sketches, mut text_hashes) = (Vec::with_capacity(done.len()), Vec::with_capacity(done.len()));
    let (mut fingerprints, mut low_halves, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    let mut counts = Vec::with_capacity(done.len());
    for text in done {
        let (fingerprint, low_half, sketch, text_hash, reason) = match text.map(|t| &t.outcome) {
            None => (None, None, None, None, Some(SkipReason::NullText)),
            Some(Outcome::Empty) => (None, None, None, None, Some(SkipReason::Empty)),
            Some(Outcome::TooShort { text_hash }) => (None, None, None, Some(text_hash), Some(SkipReason::TooShort)),
            Some(Outcome::Fingerprinted { fingerprint, low_half, sketch, text_hash, .. }) => {
                (Some(*fingerprint), *low_half, sketch.as_ref(), Some(text_hash), None)
            }
        };
        counts.push(match text.map(|t| &t.outcome) {
            Some(Outcome::Fingerprinted { n_features, .. }) => *n_features,
            _ => None,
        });
        fingerprints.push(fingerprint);
        low_halves.push(low_half);
        skipped.push(reason.map(SkipReason::name));
        sketches.push(sketch.map(|sketch| sketch.0.as_slice()));
        text_hashes.push(text_hash.map(<[u8; 16]>::as_slice));
    }
    Ok([
        Arc::new(UInt64Array::from(fingerprints)),
        fixed_size_binary(sketches.into_iter(), SKETCH_BYTES)?,
        fixed_size_binary(text_hashes.into_iter(), TEXT_HASH_BYTES)?,
        Arc::new(UInt64Array::from(low_halves)),
        Arc::new(UInt32Array::from(counts)),
        Arc::new(StringArray::from(skipped)),
    ])
}

fn defect(reason: impl Display) -> Fault {
    Fault::internal("fingerprinting", reason)
}
