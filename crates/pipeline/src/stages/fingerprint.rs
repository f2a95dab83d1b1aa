//! Fingerprints documents for the query batch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use futures::{StreamExt, TryStreamExt};
use nearprint_documents::{
    BadFile, BadReason, BadRow, DocumentColumns, DocumentPlace, DocumentRange, Documents, FileRows, InputPolicy,
    PassedReason, Repeats, Revisits, is_unfinished, spans_join,
};
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_parquet::schema::{QUARANTINE, SKIPPED};
use nearprint_parquet::{BATCH_ROWS, DatasetWriter, ReadLimits, StagedFile};
use nearprint_profile::ProfileConfig;
use nearprint_storage::{InputFile, Progress, Storage, in_pool};
use nearprint_store::JoinedNights;
use nearprint_tasks::{
    CollectPolicy, Collecting, FileNote, FileReading, FingerprintContext, FingerprintSpec, FingerprintTask, Form,
    InOrder, KeepKey, QueryBatch, SentWords, SkipReason, TaskBatch, TaskBatches, TextOf, Weighed, WordSpill,
    fingerprint_task, received,
};
use nearprint_tokenize::Resources as AnalyzerResources;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::CommandContext;
use crate::remaining_time::RemainingTime;
use crate::resources::Resources;
use crate::stages::bad_rows::{
    FileUrls, Seen, all_bad_files, by_reason, explained, limited, refuse_bad_files, refuse_bad_rows,
    refuse_nothing_read, too_many_bad_rows,
};
use crate::stages::texts_elsewhere::TextsElsewhere;

/// The request to fingerprint documents.
#[derive(Debug, Clone)]
pub struct FingerprintRequest {
    /// The place of the documents.
    pub documents: DocumentPlace,
    /// The columns of the documents.
    pub columns: DocumentColumns,
    /// The keys of the keep order.
    pub keep: Vec<KeepKey>,
    /// The column, among those to keep, that names a document's source.
    pub source: Option<String>,
    /// The profile by which texts become fingerprints.
    pub profile: ProfileConfig,
    /// The contents of the user's dictionary and stop words.
    pub analyzer_resources: AnalyzerResources,
    /// The rows and files that are set aside, and the most that may be.
    pub input: InputPolicy,
}

impl FingerprintRequest {
    /// Returns a request for documents whose order does not matter, and all of whose rows must be documents.
    pub fn of(
        documents: &DocumentPlace,
        columns: &DocumentColumns,
        profile: &ProfileConfig,
        resources: &AnalyzerResources,
    ) -> Self {
        Self {
            documents: documents.clone(),
            columns: columns.clone(),
            keep: Vec::new(),
            source: None,
            profile: profile.clone(),
            analyzer_resources: resources.clone(),
            input: InputPolicy::default(),
        }
    }
}

impl FingerprintRequest {
    /// Returns the request with a rule for rows with one id.
    #[must_use]
    pub fn with_repeats(self, repeats: &Repeats) -> Self {
        let Repeats { on_duplicate_id, max_repeated_ids, ref keep } = *repeats;
        let input = InputPolicy { on_duplicate_id, max_repeated_ids, ..self.input };
        Self { keep: keep.clone(), input, ..self }
    }
}

/// The counts of fingerprinting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FingerprintCounts {
    /// The number of files that were read.
    pub n_files: u64,
    /// The number of files of other kinds in the same folder, which were passed over.
    pub n_ignored_files: u64,
    /// The number of those of them whose names say that they are still being written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_unfinished_files: u64,
    /// The number of rows that are documents.
    pub n_documents: u64,
    /// The number of documents with a fingerprint.
    pub n_fingerprinted: u64,
    /// The number of documents below the feature floor.
    pub n_too_short: u64,
    /// The number of documents whose text normalises to nothing.
    pub n_empty: u64,
    /// The number of documents whose text is NULL.
    pub n_null_text: u64,
    /// The number of rows with an id of another row that the rule for repeated ids left out.
    #[serde(default, skip_serializing_if = "never")]
    pub n_repeated_ids: u64,
    /// The number of documents whose record is a revisit: they have the text of another record of the night, or of an earlier
    /// night.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_revisits: u64,
    /// The number of revisit records whose text is unknown. They are no documents, and are listed among the bad rows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_unknown_revisits: u64,
    /// The number of rows that are not documents for another reason.
    pub n_bad_rows: u64,
    /// The numbers of these rows by reason. Reasons without rows are left out.
    pub bad_rows_by_reason: BTreeMap<String, u64>,
    /// The number of records of WARC files that are no documents by what they are, and were passed over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_passed_records: u64,
    /// The numbers of these records by reason. Reasons without records are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passed_records_by_reason: BTreeMap<String, u64>,
    /// The number of files that cannot be read, which were passed over as a whole.
    pub n_bad_files: u64,
    /// The number of Parquet files without rows, and of other files without bytes.
    pub n_empty_files: u64,
    /// The number of Parquet files in which pages without a checksum were read. Damage to these may go unseen.
    pub n_files_without_checksums: u64,
}

/// The number is written always, but it may be missing where it is read, as in manifests of release 0.2.0. So the schema does not
/// ask for it.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn never(_: &u64) -> bool {
    false
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The query batch, its counts, and the sources of its rows.
#[derive(Debug)]
pub struct Fingerprinted {
    /// The query batch.
    pub batch: QueryBatch,
    /// The counts.
    pub counts: FingerprintCounts,
    /// What brings the words of texts for the judge, if there is one and they are not with the batch.
    pub texts: Option<TextsElsewhere>,
    documents: Arc<Documents>,
    urls: FileUrls,
    notes: FileNote,
}

impl Fingerprinted {
    /// Returns the files that were passed over, by path.
    pub fn bad_files(&self) -> Vec<BadFile> {
        all_bad_files(&self.documents, &self.urls, &self.notes)
    }

    /// Returns the rows that are not documents.
    pub fn left_out(&self) -> FileRows {
        let mut rows = FileRows::new();
        for bad in &self.batch.bad_rows {
            rows.entry(self.urls.of_row(bad).to_owned()).or_default().push(bad.row);
        }
        rows
    }
}

/// The bytes of the row of a document as it travels, with an id of some 60 bytes.
const ROW_BYTES: u64 = 200;

/// The number of bad rows past the limit at which a run stops, without listing them all.
const BAD_ROWS_PAST_LIMIT: u64 = 100_000;

/// The nights of the store that have the texts of revisits.
#[derive(Debug)]
pub struct TextsOfRevisits<'a> {
    /// The nights before the night: the newest state of the document that a revisit names.
    pub earlier: JoinedNights<'a>,
    /// The night as it was published, if the store has forgotten nights since: what it made of the revisit itself.
    pub published: Option<JoinedNights<'a>>,
}

/// Fingerprints documents that are open. The progress is told what is `ahead` of the night. Revisits have texts of the night,
/// or else of nights of the store. Without these, they are passed over.
pub async fn fingerprint_documents(
    request: &FingerprintRequest,
    mut documents: Documents,
    earlier: Option<TextsOfRevisits<'_>>,
    ahead: Option<RemainingTime>,
    work: CommandContext<'_>,
) -> Result<Fingerprinted> {
    for file in &documents.ignored {
        if is_unfinished(file) {
            tracing::warn!(file, "still being written, by its name: passed over");
        } else {
            tracing::warn!(file, "not a file of documents by its name: passed over");
        }
    }
    let (resources, input) = (work.resources, &request.input);
    let threads = resources.n_threads();
    documents.limit(ReadLimits::new(resources.memory_limit, threads));
    let revisits = if earlier.is_some() { Revisits::Given } else { Revisits::PassedOver };
    documents.treat_revisits(revisits);
    let documents = Arc::new(documents);
    let urls = FileUrls(documents.files().map(|file| file.url.clone()).collect());
    match documents.n_rows() {
        Some(n) => work.progress.start("fingerprint", "documents", n),
        None => work.progress.start("fingerprint", "bytes", documents.n_bytes()),
    }
    let mut collecting = Collecting::new(&request.keep, request.source.as_deref(), resources.counted_bytes());
    if request.profile.judge().is_some() && work.engine.is_none() {
        collecting = collecting.with_words(WordSpill::create(resources.temp_dir()?)?);
    }
    let mut notes = FileNote::default();
    let reading = Reading { request, documents: &documents, revisits, urls: &urls, work };
    let mut tasks = tasks_of(&documents, &documents.ranges_to_join(), FileReading::first)?;
    reading.collect(tasks.clone(), &mut collecting, &mut notes, &BTreeSet::new(), ahead).await?;
    let again = unjoined(&documents, &notes);
    if !again.is_empty() {
        let ranges: Vec<DocumentRange> =
            documents.ranges().into_iter().filter(|range| again.values().any(|file| **file == range.file)).collect();
        for file in again.values() {
            tracing::warn!(file, "its spans do not join: it is read again, from its beginning");
        }
        let more = tasks_of(&documents, &ranges, FileReading::again)?;
        let replaced = again.keys().copied().collect();
        reading.collect(more.clone(), &mut collecting, &mut notes, &replaced, None).await?;
        tasks.extend(more);
    }
    let left_out: BTreeSet<FileReading> = notes.bad.keys().chain(again.keys()).copied().collect();
    notes.passed.retain(|(reading, _), _| !left_out.contains(reading));
    tasks.retain(|Weighed { task, .. }| !left_out.contains(&task.reading));
    let texts = reading.texts_elsewhere(tasks)?;
    let (on_duplicate_id, max_repeated_ids) = (input.on_duplicate_id, input.max_repeated_ids);
    let policy = CollectPolicy { on_duplicate_id, is_setting: true, max_repeated_ids, left_out };
    let mut in_order = collecting.in_order(&policy, |file| urls.of(file.into()).to_owned())?;
    if let Some(earlier) = earlier {
        add_texts(&mut in_order, earlier).await?;
    }
    let n_passed_revisits = in_order.n_passed_revisits();
    let batch = in_order.finish()?;
    let bad_rows = limited(&batch.bad_rows);
    refuse_bad_rows(&bad_rows, batch.len(), input.max_bad_rows, &urls, &documents).await?;
    let bad_files = all_bad_files(&documents, &urls, &notes);
    let counts = counts(&batch, &bad_rows, n_passed_revisits, &documents, &notes, &bad_files);
    refuse_nothing_read(&bad_files, counts.n_files)?;
    warn(&bad_files, &counts);
    Ok(Fingerprinted { batch, counts, texts, documents, urls, notes })
}

/// Gives revisits the texts that nights of the store have.
async fn add_texts(in_order: &mut InOrder<'_>, texts: TextsOfRevisits<'_>) -> Result<()> {
    for (nights, of) in [(Some(texts.earlier), TextOf::Named), (texts.published, TextOf::Itself)] {
        let Some(nights) = nights else { continue };
        let wanted: Vec<&str> = in_order.wanted(of).into_iter().collect();
        if wanted.is_empty() {
            continue;
        }
        match nights.newest_texts(&wanted).await {
            Ok(texts) => in_order.add(&texts, of)?,
            // The night itself is being made again, perhaps because it is damaged.
            Err(error) if of == TextOf::Itself && error.kind() == ErrorKind::BadData => {
                tracing::warn!(%error, "texts of revisits that the night had are unknown");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What all readings of the documents share.
#[derive(Clone, Copy)]
struct Reading<'a> {
    request: &'a FingerprintRequest,
    documents: &'a Arc<Documents>,
    revisits: Revisits,
    urls: &'a FileUrls,
    work: CommandContext<'a>,
}

impl Reading<'_> {
    /// Runs tasks, and collects their rows and notes. Readings that are `replaced` by these do not count.
    async fn collect(
        self,
        tasks: Vec<Weighed<FingerprintTask>>,
        collecting: &mut Collecting<'_>,
        notes: &mut FileNote,
        replaced: &BTreeSet<FileReading>,
        mut ahead: Option<RemainingTime>,
    ) -> Result<()> {
        let Self { request, documents, urls, work, .. } = self;
        let input = &request.input;
        let mut batches = self.batches(tasks)?;
        while let Some(batch) = batches.try_next().await? {
            match batch {
                TaskBatch::Rows(rows) => {
                    let n_before = collecting.bad_rows().len();
                    collecting.push(&rows)?;
                    if let Some(ahead) = &mut ahead {
                        ahead.tell(collecting.n_rows(), work.progress);
                    }
                    let counts =
                        |reading: &FileReading| !replaced.contains(reading) && !notes.bad.contains_key(reading);
                    refuse_mostly_bad(collecting.bad_rows(), n_before, input.max_bad_rows, counts, self).await?;
                }
                TaskBatch::Notes(batch) => {
                    notes.add(&batch)?;
                    refuse_bad_files(&all_bad_files(documents, urls, notes), input.max_bad_files)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the specification of the tasks. Words go to the judge with the documents, unless they would have to travel.
    fn spec(self) -> Result<FingerprintSpec> {
        let Self { request, documents, revisits, work, .. } = self;
        let workers = work.engine.map(|engine| engine.workers()).transpose()?;
        Ok(FingerprintSpec {
            columns: documents.columns().clone(),
            keep_types: documents.keep_types().iter().map(ToString::to_string).collect(),
            profile: request.profile.clone(),
            analyzer_resources: request.analyzer_resources.clone(),
            max_doc_bytes: request.input.max_doc_bytes,
            passes_over_files: request.input.max_bad_files > 0,
            revisits,
            words: if workers.is_some() { SentWords::Marks } else { SentWords::Whole },
            memory_limit: workers.map_or(work.resources.memory_limit, |workers| Some(workers.memory_bytes)),
            threads: workers.map_or(work.resources.n_threads(), |workers| workers.threads),
        })
    }

    /// Returns what reads texts again whose words did not come with the documents. `tasks` are those whose documents count.
    fn texts_elsewhere(self, tasks: Vec<Weighed<FingerprintTask>>) -> Result<Option<TextsElsewhere>> {
        let CommandContext { storage, resources, engine, .. } = self.work;
        let Some(engine) = engine.filter(|_| self.request.profile.judge().is_some()) else { return Ok(None) };
        let (engine, storage, resources) = (Arc::clone(engine), storage.clone(), resources.clone());
        Ok(Some(TextsElsewhere { engine, storage, resources, spec: self.spec()?, tasks }))
    }

    /// Returns the batches of all tasks, in any order.
    fn batches(self, tasks: Vec<Weighed<FingerprintTask>>) -> Result<TaskBatches> {
        let Self { documents, work, .. } = self;
        let spec = self.spec()?;
        if let Some(engine) = work.engine {
            let n_tasks = tasks.len();
            let tasks = match documents.n_rows() {
                Some(n) => Weighed::sharing(tasks, n.saturating_mul(ROW_BYTES)),
                None => tasks,
            };
            let messages = engine.fingerprint(&spec, tasks, work.storage, work.progress);
            return received(messages, n_tasks, &Form::Batches);
        }
        let context = FingerprintContext::with_documents(&spec, Arc::clone(documents), work.progress.clone())?;
        let context = Arc::new(context);
        let threads = spec.threads;
        // Each task is spawned when it is polled, and is done before another one takes its place.
        let run = move |Weighed { task, .. }: Weighed<FingerprintTask>| fingerprint_task(&context, &task);
        Ok(futures::stream::iter(tasks).map(run).flatten_unordered(threads).boxed())
    }
}

/// Returns the tasks for ranges of the documents. `reading` says which reading of a file, of which it gets the position,
/// this is. The bytes of a file are shared equally by its ranges.
fn tasks_of(
    documents: &Documents,
    ranges: &[DocumentRange],
    reading: impl Fn(usize) -> FileReading,
) -> Result<Vec<Weighed<FingerprintTask>>> {
    let files: Vec<&InputFile> = documents.files().collect();
    let mut tasks = Vec::new();
    for of_file in ranges.chunk_by(|a, b| a.file == b.file) {
        let file = &of_file[0].file;
        let unknown = |_| Fault::internal("fingerprint", format!("no file {file}"));
        let at = files.binary_search_by_key(&file, |file| &file.url).map_err(unknown)?;
        let (bytes, reading) = (files[at].size / of_file.len() as u64, reading(at));
        tasks.extend(of_file.iter().map(|range| {
            let task = FingerprintTask { range: range.clone(), reading };
            Weighed { task, bytes }
        }));
    }
    Ok(tasks)
}

/// Returns the files whose spans did not join in the first reading. Those that are passed over need not join.
fn unjoined<'a>(documents: &'a Documents, notes: &FileNote) -> BTreeMap<FileReading, &'a String> {
    let files = documents.files().enumerate().map(|(at, file)| (FileReading::first(at), file));
    let unjoined = files.filter(|(reading, file)| {
        notes.spans.get(reading).is_some_and(|spans| {
            let spans = spans.iter().map(|(&start, &(end, seam))| (start..end, seam));
            !notes.bad.contains_key(reading) && !spans_join(file.size, spans)
        })
    });
    unjoined.map(|(reading, file)| (reading, &file.url)).collect()
}

/// Refuses rows that are no documents once there are far too many. `n_before` of them were there before; those of readings that
/// do not count are not counted.
async fn refuse_mostly_bad(
    bad: &[BadRow],
    n_before: usize,
    allowed: u64,
    counts: impl Fn(&FileReading) -> bool,
    reading: Reading<'_>,
) -> Result<()> {
    let too_many = allowed.saturating_add(BAD_ROWS_PAST_LIMIT);
    if bad.len() == n_before || bad.len() as u64 <= too_many {
        return Ok(());
    }
    let counted = |bad: &&BadRow| bad.reason.is_limited() && counts(&FileReading::from(bad.file));
    let all: Vec<&BadRow> = bad.iter().filter(counted).collect();
    match bad[n_before..].iter().find(counted) {
        Some(first) if all.len() as u64 > too_many => {
            let Reading { urls, documents, .. } = reading;
            let (said, remedy) = explained(first, urls, documents).await;
            let example = format!("stopped at {said}");
            Err(too_many_bad_rows(&all, allowed, (first, example, remedy), Seen::Part, urls))
        }
        _ => Ok(()),
    }
}

/// Fingerprints documents that are open.
///
/// # Errors
/// The input is bad, the profile cannot be used, or there are more documents than the memory limit allows.
pub async fn fingerprint_batch(
    request: &FingerprintRequest,
    documents: Documents,
    resources: &Resources,
    progress: &Progress,
) -> Result<Fingerprinted> {
    let work = CommandContext { storage: &Storage::default(), resources, progress, engine: None };
    fingerprint_documents(request, documents, None, None, work).await
}

fn warn(bad_files: &[BadFile], counts: &FingerprintCounts) {
    for BadFile { url, reason } in bad_files {
        tracing::warn!(file = url, reason, "cannot be read: passed over");
    }
    let (unchecked, all) = (counts.n_files_without_checksums, counts.n_files);
    if unchecked > 0 {
        tracing::warn!("no page checksums in {unchecked} of {all} files: damage to these may go unseen");
    }
}

fn counts(
    batch: &QueryBatch,
    bad_rows: &[&BadRow],
    n_passed_revisits: u64,
    documents: &Documents,
    notes: &FileNote,
    bad_files: &[BadFile],
) -> FingerprintCounts {
    let skipped = |reason| batch.skipped.iter().filter(|&s| s == Some(&reason)).count() as u64;
    let mut passed_records_by_reason: BTreeMap<String, u64> = BTreeMap::new();
    for ((_, reason), n) in &notes.passed {
        *passed_records_by_reason.entry(reason.clone()).or_default() += n;
    }
    if n_passed_revisits > 0 {
        *passed_records_by_reason.entry(PassedReason::Revisit.name().to_owned()).or_default() += n_passed_revisits;
    }
    let n_bad = |reason| batch.bad_rows.iter().filter(|bad| bad.reason == reason).count() as u64;
    FingerprintCounts {
        n_files: documents.files().count() as u64 - notes.bad.len() as u64,
        n_ignored_files: documents.ignored.len() as u64,
        n_unfinished_files: documents.ignored.iter().filter(|file| is_unfinished(file)).count() as u64,
        n_documents: batch.len() as u64,
        n_fingerprinted: batch.fingerprints.n_values(),
        n_too_short: skipped(SkipReason::TooShort),
        n_empty: skipped(SkipReason::Empty),
        n_null_text: skipped(SkipReason::NullText),
        n_repeated_ids: n_bad(BadReason::RepeatedId),
        n_revisits: batch.revisits.n_below(u64::from(batch.n_rows)),
        n_unknown_revisits: n_bad(BadReason::UnknownRevisit),
        n_bad_rows: bad_rows.len() as u64,
        bad_rows_by_reason: by_reason(bad_rows),
        n_passed_records: passed_records_by_reason.values().sum(),
        passed_records_by_reason,
        n_bad_files: bad_files.len() as u64,
        n_empty_files: documents.n_empty(),
        n_files_without_checksums: notes.unchecked.iter().filter(|reading| !notes.bad.contains_key(reading)).count()
            as u64,
    }
}

/// Returns the rows with a fingerprint, by (fingerprint, id).
pub(crate) fn fingerprint_order(batch: &QueryBatch) -> Vec<u32> {
    let mut order: Vec<(u64, u32)> =
        batch.rows().filter_map(|row| batch.fingerprints.get(row).map(|&f| (f, row))).collect();
    in_pool(|| order.par_sort_unstable());
    let mut order: Vec<u32> = order.into_iter().map(|(_, row)| row).collect();
    if batch.low_halves.n_values() > 0 {
        order.sort_by_key(|&row| (batch.fingerprints.get(row), batch.low_halves.get(row)));
    }
    order
}

/// Writes the documents without a fingerprint, by id.
pub fn write_skipped(batch: &QueryBatch, folder: &std::path::Path, name: &str) -> Result<Vec<StagedFile>> {
    let mut writer = DatasetWriter::new(folder, name, &SKIPPED, &[]);
    let skipped: Vec<(u32, SkipReason)> =
        batch.rows().filter_map(|row| batch.skipped.get(row).map(|&s| (row, s))).collect();
    for rows in skipped.chunks(BATCH_ROWS) {
        let ids = StringArray::from_iter_values(rows.iter().map(|&(row, _)| batch.id(row)));
        let reasons = StringArray::from_iter_values(rows.iter().map(|(_, reason)| reason.name()));
        let arrays: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(reasons)];
        writer.write(RecordBatch::try_new(Arc::clone(&SKIPPED), arrays).map_err(internal)?)?;
    }
    writer.finish()
}

/// Writes the rows that are not documents, by file and row. Those with a repeated id are among them.
pub fn write_quarantine(done: &Fingerprinted, folder: &std::path::Path, name: &str) -> Result<Vec<StagedFile>> {
    let mut writer = DatasetWriter::new(folder, name, &QUARANTINE, &[]);
    for rows in done.batch.bad_rows.chunks(BATCH_ROWS) {
        let urls: Vec<&str> = rows.iter().map(|bad| done.urls.of_row(bad)).collect();
        // No file has 2^31 row groups or 2^63 rows.
        let row_group = |(url, bad): (&&str, &BadRow)| {
            done.documents.row_group_of(url, bad.row).and_then(|n| i32::try_from(n).ok())
        };
        let unnumbered = |_| Fault::internal("quarantine", "a file of 2^63 rows");
        let numbers: Vec<i64> =
            rows.iter().map(|bad| i64::try_from(bad.row)).collect::<std::result::Result<_, _>>().map_err(unnumbered)?;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(&urls)),
            Arc::new(urls.iter().zip(rows).map(row_group).collect::<Int32Array>()),
            Arc::new(Int64Array::from(numbers)),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|bad| bad.reason.name()))),
            Arc::new(rows.iter().map(|bad| bad.id.as_deref()).collect::<StringArray>()),
        ];
        writer.write(RecordBatch::try_new(Arc::clone(&QUARANTINE), arrays).map_err(internal)?)?;
    }
    writer.finish()
}

pub(crate) fn internal(error: arrow::error::ArrowError) -> Fault {
    Fault::internal("write", error)
}
