//! Documents: rows of Parquet or JSONL files with an id, a text and, where asked for, keep-order columns.

mod jsonl;
mod keep_column;
mod pages;
mod parquet;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use ::arrow::array::{Array, ArrayRef, BinaryViewArray, StringArray};
use ::arrow::datatypes::DataType;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use crate::error::{PipelineError, Result};
use crate::locked::locked;
use crate::quarantine::{BadReason, InputPolicy};
use crate::run::check_date;
use crate::storage::{InputFile, Listing, Storage};
use crate::tasks::FingerprintTask;
use jsonl::JsonlFile;
pub(crate) use keep_column::keep_type_name;
pub(crate) use pages::ReadLimits;
use parquet::ParquetDocuments;

/// Which columns hold what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentColumns {
    /// Strings or integers, unique.
    pub id: String,
    /// Strings.
    pub text: String,
    /// Columns of the keep order.
    pub keep: Vec<String>,
    /// Takes binary columns of Parquet files for text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary_as_utf8: bool,
}

impl Default for DocumentColumns {
    fn default() -> Self {
        Self { id: "id".to_owned(), text: "text".to_owned(), keep: Vec::new(), binary_as_utf8: false }
    }
}

/// Rows of a file, in its order.
#[derive(Debug, Clone)]
pub(crate) struct DocumentBatch {
    /// Ids as text; null where a row has none, or none that can be used.
    pub ids: StringArray,
    /// Texts, not looked at yet: see [`text`](Self::text).
    pub texts: BinaryViewArray,
    /// One array for each keep-order column: Int64, Float64 or LargeUtf8.
    pub keep: Vec<ArrayRef>,
    /// Each row's number in the file, from 1; the line of a text file.
    pub rows: Vec<u64>,
    /// Why a row is no document, as far as that shows without its text.
    pub faults: Vec<Option<BadReason>>,
    /// Larger texts make their rows no documents.
    pub max_doc_bytes: u64,
}

impl DocumentBatch {
    fn empty() -> Self {
        Self {
            ids: StringArray::new_null(0),
            texts: BinaryViewArray::new_null(0),
            keep: Vec::new(),
            rows: Vec::new(),
            faults: Vec::new(),
            max_doc_bytes: 0,
        }
    }

    /// The text of a row, none where it is NULL.
    ///
    /// # Errors
    /// Why it can be none.
    pub(crate) fn text(&self, row: usize) -> std::result::Result<Option<&str>, BadReason> {
        if let Some(reason) = self.faults[row] {
            return Err(reason);
        }
        if self.texts.is_null(row) {
            return Ok(None);
        }
        let bytes = self.texts.value(row);
        if bytes.len() as u64 > self.max_doc_bytes {
            return Err(BadReason::TooLarge);
        }
        std::str::from_utf8(bytes).map(Some).map_err(|_| BadReason::InvalidUtf8)
    }
}

/// What all readers of a run share.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadContext {
    pub(crate) limits: ReadLimits,
    max_doc_bytes: u64,
    /// Files with a page that has no checksum.
    unchecked: Arc<Mutex<BTreeSet<String>>>,
}

impl ReadContext {
    /// A line may be longer than its text: escapes, and other columns.
    fn max_line_bytes(&self) -> u64 {
        self.max_doc_bytes.saturating_mul(3).saturating_add(1 << 20)
    }

    fn note_unchecked(&self, url: &str) {
        let mut files = locked(&self.unchecked);
        if !files.contains(url) {
            files.insert(url.to_owned());
        }
    }
}

/// Document files whose columns were checked against each other; nothing of their rows is read yet.
#[derive(Debug, Default)]
pub struct Documents {
    files: BTreeMap<String, DocumentFile>,
    columns: DocumentColumns,
    keep_types: Vec<DataType>,
    context: ReadContext,
    /// Files that are neither Parquet nor JSONL, passed over.
    pub ignored: Vec<String>,
    /// Files that cannot be read, and why, by path.
    pub(crate) bad: Vec<(InputFile, String)>,
}

#[derive(Debug)]
enum DocumentFile {
    Parquet(ParquetDocuments),
    Jsonl(JsonlFile),
}

/// Rows of a batch: enough to keep every core in work, few enough that long texts stay bounded.
const BATCH_ROWS: usize = 1024;

/// Row groups are joined into one task up to this many rows.
const TASK_ROWS: u64 = 200_000;

/// Ids and values of the keep order may be as long as this: they stay in memory.
pub(crate) const MAX_VALUE_BYTES: usize = 64 << 10;

/// Files whose footers or first lines are read at once.
const OPEN_AT_ONCE: usize = 16;

/// Footers that stay in memory; of more, each is read again when its turn comes.
const KEPT_FOOTER_BYTES: usize = 64 << 20;

impl Documents {
    /// Opens the files of a path, folder, glob or S3 prefix: reads every footer, or first line, and checks that columns are
    /// there and of one type.
    ///
    /// # Errors
    /// Naming file and column. Files that cannot be read are an error where there are more than `policy` allows.
    pub async fn open(
        storage: &Storage,
        pattern: &str,
        columns: DocumentColumns,
        policy: &InputPolicy,
    ) -> Result<Self> {
        if let Some(marker) = &policy.require_marker {
            require_marker(storage, pattern, marker).await?;
        }
        let Listing { files, unusable, .. } = match storage.listing(pattern, "documents").await {
            Err(PipelineError::InputMissing { .. }) if policy.allow_empty => Listing::default(),
            listed => listed?,
        };
        let mut documents = Self {
            columns,
            context: ReadContext { max_doc_bytes: policy.max_doc_bytes, ..ReadContext::default() },
            ..Self::default()
        };
        for (file, reason) in unusable {
            let error = PipelineError::bad_file(&file.url, reason);
            documents.set_aside(file, error, policy.max_bad_files)?;
        }
        let (none, one_file) = (files.is_empty(), files.len() == 1 && files[0].url == pattern);
        let known = documents.known(files, one_file)?;
        if known.is_empty() && !none {
            let remedy = "the files there are neither .parquet nor .jsonl[.gz|.zst]";
            return Err(PipelineError::InputMissing { what: "documents", url: pattern.to_owned(), remedy });
        }
        documents.open_files(known, policy.max_bad_files).await?;
        documents.keep_types = one_schema(&documents.files, &documents.columns)?;
        Ok(documents)
    }

    /// Files of a format that can be read; others are noted.
    fn known(&mut self, listed: Vec<InputFile>, one_file: bool) -> Result<Vec<(Format, InputFile)>> {
        let mut known = Vec::new();
        for file in listed {
            match Format::of(&file.url) {
                Some(format) => known.push((format, file)),
                None if one_file => {
                    return Err(PipelineError::bad_file(
                        file.url,
                        "its name ends neither in .parquet nor in .jsonl or .ndjson, .gz or .zst allowed",
                    ));
                }
                None => self.ignored.push(file.url),
            }
        }
        Ok(known)
    }

    async fn open_files(&mut self, known: Vec<(Format, InputFile)>, max_bad_files: u64) -> Result<()> {
        let (columns, context) = (self.columns.clone(), self.context.clone());
        let mut opened = futures::stream::iter(known)
            .map(|(format, file)| {
                let (columns, context) = (&columns, &context);
                async move { (file.clone(), DocumentFile::open(format, file, columns, context).await) }
            })
            .buffered(OPEN_AT_ONCE);
        let mut footer_bytes = 0;
        while let Some((file, outcome)) = opened.next().await {
            match outcome {
                Ok(mut opened) => {
                    footer_bytes += opened.footer_bytes();
                    if footer_bytes > KEPT_FOOTER_BYTES {
                        opened.drop_footer();
                    }
                    self.files.insert(file.url, opened);
                }
                Err(error) => self.set_aside(file, error, max_bad_files)?,
            }
        }
        Ok(())
    }

    /// Notes a file that cannot be read, as long as there may be more of them.
    fn set_aside(&mut self, file: InputFile, error: PipelineError, max_bad_files: u64) -> Result<()> {
        match error {
            PipelineError::BadFile { reason, .. } if (self.bad.len() as u64) < max_bad_files => {
                self.bad.push((file, reason));
                Ok(())
            }
            error => Err(too_many(error, &self.bad, max_bad_files)),
        }
    }

    /// Whether there is nothing to read, not even anything bad.
    pub(crate) fn is_without_files(&self) -> bool {
        self.files.is_empty() && self.bad.is_empty()
    }

    /// Reads within these limits.
    pub(crate) fn limit(&mut self, limits: ReadLimits) {
        self.context.limits = limits;
    }

    /// Files read so far that have pages without checksums.
    pub(crate) fn n_unchecked(&self) -> u64 {
        locked(&self.context.unchecked).len() as u64
    }

    /// Parquet files without rows.
    pub(crate) fn n_empty(&self) -> u64 {
        self.files.values().filter(|file| matches!(file, DocumentFile::Parquet(f) if f.n_rows() == 0)).count() as u64
    }

    /// The row group of a row of a file, by the file's position; none where files have none.
    pub(crate) fn row_group_of(&self, url: &str, row: u64) -> Option<u32> {
        match self.files.get(url)? {
            DocumentFile::Parquet(file) => file.row_group_of(row),
            DocumentFile::Jsonl(_) => None,
        }
    }

    /// The files that are read, by path.
    pub fn files(&self) -> impl Iterator<Item = &InputFile> {
        self.files.values().map(|f| match f {
            DocumentFile::Parquet(f) => f.file(),
            DocumentFile::Jsonl(f) => &f.file,
        })
    }

    /// Rows of all files; none where a JSONL file does not say.
    pub(crate) fn n_rows(&self) -> Option<u64> {
        self.files
            .values()
            .map(|f| match f {
                DocumentFile::Parquet(f) => Some(f.n_rows()),
                DocumentFile::Jsonl(_) => None,
            })
            .sum()
    }

    /// Type of each keep-order column.
    pub(crate) fn keep_types(&self) -> &[DataType] {
        &self.keep_types
    }

    /// The work, cut into tasks: row groups of Parquet files, whole JSONL files.
    #[must_use]
    pub fn tasks(&self) -> Vec<FingerprintTask> {
        let cut = self.files.iter().flat_map(|(url, file)| {
            match file {
                DocumentFile::Parquet(f) => f.row_group_ranges(TASK_ROWS),
                DocumentFile::Jsonl(_) => std::iter::once(0..1).collect(),
            }
            .into_iter()
            .map(move |row_groups| FingerprintTask { file: url.clone(), row_groups })
        });
        cut.collect()
    }

    /// The rows of a task, in file order.
    pub(crate) fn read(&self, task: &FingerprintTask) -> Result<BoxStream<'static, Result<DocumentBatch>>> {
        match self.files.get(&task.file) {
            Some(DocumentFile::Parquet(f)) => {
                Ok(f.read(task.row_groups.clone(), &self.columns, &self.keep_types, &self.context))
            }
            Some(DocumentFile::Jsonl(f)) => Ok(f.read(&self.columns, &self.keep_types, &self.context).boxed()),
            None => {
                Err(PipelineError::Internal { stage: "read", reason: format!("no file {} in this run", task.file) })
            }
        }
    }
}

/// A text and the file that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundText {
    /// None for NULL.
    pub(crate) text: Option<String>,
    pub(crate) file: String,
}

impl Documents {
    /// The texts of these ids, none for NULL; ids that are not there are left out. Reads no further than it must, and keeps no
    /// other texts.
    pub(crate) async fn texts_of(&self, wanted: BTreeSet<&str>) -> Result<BTreeMap<String, Option<String>>> {
        let found = self.look_for(wanted, self.tasks()).await?;
        Ok(found.into_iter().map(|(id, found)| (id, found.text)).collect())
    }

    /// The same, and of an id that several nights have, the text of the newest: the one that counts.
    pub(crate) async fn newest_texts_of(&self, wanted: BTreeSet<&str>) -> Result<BTreeMap<String, FoundText>> {
        let mut tasks = self.tasks();
        tasks.sort_by(|a, b| night_of(&b.file).cmp(&night_of(&a.file)));
        self.look_for(wanted, tasks).await
    }

    async fn look_for(
        &self,
        mut wanted: BTreeSet<&str>,
        tasks: Vec<FingerprintTask>,
    ) -> Result<BTreeMap<String, FoundText>> {
        let mut found = BTreeMap::new();
        for task in tasks {
            let mut batches = self.read(&task)?;
            while !wanted.is_empty()
                && let Some(batch) = batches.try_next().await?
            {
                for i in (0..batch.ids.len()).filter(|&i| batch.ids.is_valid(i)) {
                    if let Ok(text) = batch.text(i)
                        && wanted.remove(batch.ids.value(i))
                    {
                        let text = FoundText { text: text.map(str::to_owned), file: task.file.clone() };
                        found.insert(batch.ids.value(i).to_owned(), text);
                    }
                }
            }
        }
        Ok(found)
    }
}

/// What orders the nights of files: the date in a path, that of a folder `dt=` before others; the folder where there is no date.
fn night_of(url: &str) -> (Option<&str>, &str) {
    let date = |at: usize| url.get(at..at + 10).filter(|date| check_date(date).is_ok());
    let named = url.rmatch_indices("dt=").find_map(|(at, dt)| date(at + dt.len()));
    let folder = url.rsplit_once('/').map_or("", |(folder, _)| folder);
    match named.or_else(|| (0..url.len()).rev().find_map(date)) {
        Some(date) => (Some(date), ""),
        None => (None, folder),
    }
}

impl DocumentFile {
    async fn open(format: Format, file: InputFile, columns: &DocumentColumns, context: &ReadContext) -> Result<Self> {
        Ok(match format {
            Format::Parquet => Self::Parquet(ParquetDocuments::open(file, columns).await?),
            Format::Jsonl => Self::Jsonl(JsonlFile::open(file, columns, context).await?),
        })
    }

    fn footer_bytes(&self) -> usize {
        match self {
            Self::Parquet(file) => file.footer_bytes(),
            Self::Jsonl(_) => 0,
        }
    }

    fn drop_footer(&mut self) {
        if let Self::Parquet(file) = self {
            file.drop_footer();
        }
    }
}

/// The error of a file, or of all that cannot be read where some could have been passed over.
fn too_many(error: PipelineError, before: &[(InputFile, String)], allowed: u64) -> PipelineError {
    match (error, before.first()) {
        (PipelineError::BadFile { .. }, Some((first, reason))) => {
            PipelineError::TooManyBadFiles { allowed, example: format!("{}: {reason}", first.url) }
        }
        (error, _) => error,
    }
}

async fn require_marker(storage: &Storage, pattern: &str, marker: &str) -> Result<()> {
    if pattern.contains(['*', '?', '[']) {
        return Err(PipelineError::Config {
            key: "require_marker".to_owned(),
            reason: format!("the documents are a glob, {pattern}, and no folder that could hold {marker}"),
        });
    }
    match storage.folder(pattern)?.join(marker).find().await? {
        Some(_) => Ok(()),
        None => Err(PipelineError::InputMissing {
            what: "marker",
            url: format!("{}/{marker}", pattern.trim_end_matches('/')),
            remedy: "the folder is not complete yet; try again when it is, or change require_marker",
        }),
    }
}

/// Whether a file of this name is read where it lies in a folder of documents.
pub(crate) fn is_document_name(url: &str) -> bool {
    Format::of(url).is_some()
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Parquet,
    Jsonl,
}

impl Format {
    fn of(url: &str) -> Option<Self> {
        let name = url.rsplit('/').next().unwrap_or(url).to_ascii_lowercase();
        let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        match plain.rsplit_once('.')?.1 {
            "parquet" => Some(Self::Parquet),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

/// Every column has one type in all files, whole numbers and others taken for one; gives the keep-order columns'.
fn one_schema(files: &BTreeMap<String, DocumentFile>, columns: &DocumentColumns) -> Result<Vec<DataType>> {
    let mut first: BTreeMap<&str, (&str, DataType)> = BTreeMap::new();
    for (url, file) in files {
        let types = match file {
            DocumentFile::Parquet(f) => f.column_types(),
            DocumentFile::Jsonl(f) => &f.column_types,
        };
        for (column, data_type) in types {
            let (first_file, known) = first.entry(column).or_insert((url, data_type.clone()));
            *known = one_type(known, data_type).ok_or_else(|| PipelineError::SchemaDrift {
                file: url.clone(),
                column: column.clone(),
                got: keep_type_name(data_type),
                first_file: (*first_file).to_owned(),
                first: keep_type_name(known),
            })?;
        }
    }
    Ok(columns.keep.iter().map(|c| first.get(c.as_str()).map_or(DataType::LargeUtf8, |(_, t)| t.clone())).collect())
}

fn one_type(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        _ if a == b => Some(a.clone()),
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => Some(DataType::Float64),
        // A column of ids that the keep order names too.
        (DataType::Utf8, DataType::LargeUtf8) | (DataType::LargeUtf8, DataType::Utf8) => Some(DataType::LargeUtf8),
        _ => None,
    }
}
