//! The documents of a night. The columns of their files are checked against each other.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::datatypes::DataType;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{ErrorKind, Fault, Part, Result, key, words};
use nearprint_parquet::{BadColumn, ReadLimits};
use nearprint_storage::{DeletedRows, InputFile, Storage, Unreadable, bad_file};
use serde::{Deserialize, Serialize};

use super::batch::{DocumentBatch, DocumentColumns, ReadBytes, ReadContext, SpanRead, Unchecked};
use super::found::{FoundFiles, FoundTable, KnownFiles};
use super::keep_column::{converted_type, keep_type_name};
use super::passed::Passed;
use super::passed_over;
use super::place::DocumentPlace;
use super::reader::{DocumentReader, Format, RowFault};
use super::web_pages::Revisits;
use crate::error::Absent;
use crate::formats::{has_fetch_times, holds_one_document};
use crate::quarantine::{BadReason, FileRows, InputPolicy};

/// Some row groups of a document file, or the whole file if its format has no row groups. Those of a packed WARC file are
/// equal stretches of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentRange {
    /// The path or URL of the file.
    pub file: String,
    /// The version of the file that was listed.
    pub version: String,
    /// The row groups.
    pub row_groups: Range<usize>,
    /// The rows of the file that do not count, because its table has deleted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_rows: Option<DeletedRows>,
}

/// The rows of a [`DocumentRange`].
pub struct DocumentRows {
    /// The rows in batches, in file order.
    pub batches: BoxStream<'static, Result<DocumentBatch>>,
    /// Set if pages without checksums were read so far.
    pub unchecked: Unchecked,
    /// The records that were passed over so far because they are no documents.
    pub passed: Passed,
    /// The bytes that were read so far, if the file's rows are unknown.
    pub read_bytes: ReadBytes,
    /// The span of the file that was read, if it must join others.
    pub span: SpanRead,
}

/// Document files whose columns were checked against each other. Their documents have not been read yet.
///
/// ```
/// use futures::TryStreamExt;
/// use nearprint_documents::{DocumentColumns, Documents, InputPolicy};
/// use nearprint_storage::Storage;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let pattern = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents/dt=2026-11-19");
/// let (storage, columns) = (Storage::default(), DocumentColumns::default());
/// let documents = Documents::open(&storage, &pattern.into(), columns, &InputPolicy::default()).await?;
/// let mut n_texts = 0;
/// for range in documents.ranges() {
///     let mut batches = documents.read(&range).batches;
///     while let Some(batch) = batches.try_next().await? {
///         n_texts += (0..batch.rows.len()).filter(|&row| matches!(batch.text(row), Ok(Some(_)))).count();
///     }
/// }
/// assert_eq!((documents.n_rows(), n_texts), (Some(155), 155));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Documents {
    files: BTreeMap<String, Box<dyn DocumentReader>>,
    pub(super) columns: DocumentColumns,
    keep_types: Vec<DataType>,
    context: ReadContext,
    /// The storage that opens files when they are read, if they were not opened before.
    storage: Storage,
    /// Rows that are no documents because another row has their id.
    left_out: FileRows,
    /// Files that were passed over because their names have none of the [`endings`](crate::endings).
    pub ignored: Vec<String>,
    /// Files that cannot be read, each with the reason, by path.
    pub bad: Vec<(InputFile, String)>,
    /// The place is that of a table, which has no files there.
    pub lacks_partition: bool,
}

/// The number of rows up to which row groups are joined into one task.
const TASK_ROWS: u64 = 200_000;

/// The number of files whose footers or first lines are read at once.
const OPEN_AT_ONCE: usize = 16;

/// The total size of the footers that stay in memory. Beyond it, a footer is read again when its turn comes.
const KEPT_FOOTER_BYTES: usize = 64 << 20;

impl Documents {
    /// Opens the files at a place. This reads the footer of every Parquet file and the first lines of every JSONL file,
    /// and checks that the columns exist and have one type.
    ///
    /// # Errors
    /// An error that names the file and the column. Files that cannot be read are an error only if there are more of
    /// them than `policy` allows. It is an error too if there are no documents, unless `policy` allows that, or if the
    /// marker that `policy` requires is missing.
    pub async fn open(
        storage: &Storage,
        place: &DocumentPlace,
        columns: DocumentColumns,
        policy: &InputPolicy,
    ) -> Result<Self> {
        if let Some(marker) = &policy.require_marker {
            require_marker(storage, place, marker).await?;
        }
        let (found, lacks_partition) = match place.find(storage).await {
            Err(error) if policy.allow_empty => match error.matter() {
                Some(Absent::Missing | Absent::EmptyList) => (FoundFiles::default(), false),
                Some(Absent::NoPartition) => (FoundFiles::default(), true),
                _ => return Err(error),
            },
            found => (found?, false),
        };
        let opened = Self::of_found(storage, place, found, columns, policy).await?;
        Ok(Self { lacks_partition, ..opened })
    }

    /// Opens the inputs of a night that a manifest names, as [`open`](Self::open) opens those that it finds at `place`. No
    /// marker is looked for, and there may be no files.
    ///
    /// # Errors
    /// An error that names the file and the column. Files that cannot be read are an error only if there are more of
    /// them than `policy` allows.
    pub async fn open_known(
        storage: &Storage,
        place: &DocumentPlace,
        known: KnownFiles,
        mut columns: DocumentColumns,
        policy: &InputPolicy,
    ) -> Result<Self> {
        let KnownFiles { files, unusable, ignored, html_root } = known;
        columns.web.root = html_root;
        let found = FoundFiles::new(files, unusable);
        let opened = Self::of_found(storage, place, found, columns, policy).await?;
        Ok(Self { ignored, ..opened })
    }

    async fn of_found(
        storage: &Storage,
        place: &DocumentPlace,
        found: FoundFiles,
        columns: DocumentColumns,
        policy: &InputPolicy,
    ) -> Result<Self> {
        let mut documents = Self { columns, context: ReadContext::new(policy.max_doc_bytes), ..Self::default() };
        documents.columns.web.set_root(storage, place)?;
        for (file, reason) in found.unusable.into_values() {
            let error = bad_file(&file.url, reason);
            documents.set_aside(file, error, policy.max_bad_files)?;
        }
        refuse_ignored(found.files.values(), policy.max_ignored_files).await?;
        let known = documents.known(found.files.into_values());
        let opened = documents.open_files(known, policy.max_bad_files).await;
        opened.map_err(|error| of_partition_column(error, found.table.as_ref()))?;
        documents.keep_types = one_schema(&documents.files, &documents.columns)?;
        Ok(documents)
    }

    /// Opens files that are known already. Files whose names have none of the [`endings`](crate::endings) are passed over.
    ///
    /// # Errors
    /// An error that names the file and the column: a file cannot be read, or the columns do not exist or have not one
    /// type.
    pub async fn of_files(files: Vec<InputFile>, columns: DocumentColumns, max_doc_bytes: u64) -> Result<Self> {
        let mut documents = Self { columns, context: ReadContext::new(max_doc_bytes), ..Self::default() };
        let known = documents.known(files.into_iter());
        documents.open_files(known, 0).await?;
        documents.keep_types = one_schema(&documents.files, &documents.columns)?;
        Ok(documents)
    }

    /// Opens the first file at a place, by path, and checks its columns. Returns its path or URL, or `None` if no file there
    /// has a known format.
    ///
    /// # Errors
    /// There are no files, or the first one cannot be read or lacks a column. The error names it, and the column.
    pub async fn of_first_file(
        storage: &Storage,
        place: &DocumentPlace,
        columns: DocumentColumns,
        max_doc_bytes: u64,
    ) -> Result<Option<String>> {
        let found = place.find(storage).await?;
        let Some(first) = found.files.into_values().find(|file| Format::of(&file.url).is_some()) else {
            return Ok(None);
        };
        let opened = Self::of_files(vec![first], columns, max_doc_bytes).await;
        let documents = opened.map_err(|error| of_partition_column(error, found.table.as_ref()))?;
        Ok(documents.files().next().map(|file| file.url.clone()))
    }

    /// Returns documents without files. [`read`](Self::read) opens the files one by one.
    #[must_use]
    pub fn unopened(
        storage: &Storage,
        columns: DocumentColumns,
        keep_types: Vec<DataType>,
        max_doc_bytes: u64,
    ) -> Self {
        let context = ReadContext::new(max_doc_bytes);
        Self { columns, keep_types, context, storage: storage.clone(), ..Self::default() }
    }

    /// Returns the files whose format can be read and notes the others.
    fn known(&mut self, listed: impl Iterator<Item = InputFile>) -> Vec<(Format, InputFile)> {
        let mut known = Vec::new();
        for file in listed {
            match Format::of(&file.url) {
                Some(format) => known.push((format, file)),
                None => self.ignored.push(file.url),
            }
        }
        known
    }

    async fn open_files(&mut self, known: Vec<(Format, InputFile)>, max_bad_files: u64) -> Result<()> {
        let (columns, context) = (self.columns.clone(), self.context.clone());
        let mut opened = futures::stream::iter(known)
            .map(|(format, file)| {
                let (columns, context) = (&columns, &context);
                async move { (file.clone(), (format.open)(file, columns.clone(), context.clone()).await) }
            })
            .buffered(OPEN_AT_ONCE);
        let mut held_bytes = 0;
        while let Some((file, outcome)) = opened.next().await {
            match outcome {
                Ok(mut opened) => {
                    held_bytes += opened.held_bytes();
                    if held_bytes > KEPT_FOOTER_BYTES {
                        opened.release();
                    }
                    self.files.insert(file.url, opened);
                }
                Err(error) => self.set_aside(file, error, max_bad_files)?,
            }
        }
        Ok(())
    }

    /// Notes a file that cannot be read. If too many of them are noted already, that is an error.
    fn set_aside(&mut self, file: InputFile, error: Fault, max_bad_files: u64) -> Result<()> {
        if error.matter::<Unreadable>().is_some() && (self.bad.len() as u64) < max_bad_files {
            self.bad.push((file, error.reason_in_file()));
            return Ok(());
        }
        Err(too_many(error, &self.bad, max_bad_files))
    }

    /// Returns whether there are neither files to read nor files that cannot be read.
    pub fn is_without_files(&self) -> bool {
        self.files.is_empty() && self.bad.is_empty()
    }

    /// Leaves out rows that the rule for repeated ids has left out: they are read with a fault.
    pub fn leave_out(&mut self, rows: FileRows) {
        self.left_out = rows;
    }

    /// Sets what becomes of revisit records. Otherwise they are passed over.
    pub fn treat_revisits(&mut self, revisits: Revisits) {
        self.context.revisits = revisits;
    }

    /// Sets the limits of the readers' memory.
    pub fn limit(&mut self, limits: ReadLimits) {
        self.context.limits = limits;
    }

    /// Returns the number of files that are known to have no rows.
    pub fn n_empty(&self) -> u64 {
        self.files.values().filter(|file| file.n_rows() == Some(0)).count() as u64
    }

    /// Returns the row group, counted from 0, of a row, counted from 1; `None` if the file is unknown or has no row
    /// groups.
    pub fn row_group_of(&self, url: &str, row: u64) -> Option<u32> {
        self.files.get(url)?.row_group_of(row)
    }

    /// Returns what is wrong with a row, counted from 1, that is no document for this reason. The row is read again.
    /// `None` if the reason says all, or if the file is unknown.
    pub async fn explain(&self, url: &str, row: u64, reason: BadReason) -> Option<RowFault> {
        self.files.get(url)?.explain(row, reason, &self.columns, &self.context).await
    }

    /// Returns the files that are read, by path.
    pub fn files(&self) -> impl Iterator<Item = &InputFile> {
        self.files.values().map(|reader| reader.file())
    }

    /// Returns the number of rows of all files, or `None` if a file does not know it.
    pub fn n_rows(&self) -> Option<u64> {
        self.files.values().map(|reader| reader.n_rows()).sum()
    }

    /// Returns the number of bytes of all files that can be read.
    pub fn n_bytes(&self) -> u64 {
        self.files().map(|file| file.size).sum()
    }

    /// Returns the bytes of a range: its file's, or an equal part of them; 0 if the file is unknown.
    pub fn bytes_of(&self, range: &DocumentRange) -> u64 {
        let Some(reader) = self.files.get(&range.file) else { return 0 };
        let ranges = reader.ranges_to_join(TASK_ROWS);
        let n_ranges = if ranges.contains(&range.row_groups) { ranges.len() } else { 1 };
        reader.file().size / n_ranges as u64
    }

    /// Returns the columns, with the folder below which pages have their ids.
    pub fn columns(&self) -> &DocumentColumns {
        &self.columns
    }

    /// Returns the folder below which the paths of HTML files are their documents' ids, if there are such files. It is empty
    /// if their whole paths are.
    #[must_use]
    pub fn html_root(&self) -> Option<&str> {
        let has_html = self.files().any(|file| holds_one_document(&file.url));
        self.columns.web.root.as_deref().filter(|_| has_html)
    }

    /// Returns the type of each keep-order column, and of `newest_by`.
    pub fn keep_types(&self) -> &[DataType] {
        &self.keep_types
    }

    /// Cuts the files into ranges that can be read independently, by path.
    #[must_use]
    pub fn ranges(&self) -> Vec<DocumentRange> {
        self.cut(|reader| reader.row_group_ranges(TASK_ROWS))
    }

    /// Cuts the files into ranges, by path, like [`ranges`](Self::ranges), but also those that can only be cut where
    /// records seem to begin. Whether all ranges of such a file are its rows, their [`SpanRead`]s tell together:
    /// [`spans_join`](nearprint_warc::spans_join). If they are not, the file must be read again by its `ranges`.
    #[must_use]
    pub fn ranges_to_join(&self) -> Vec<DocumentRange> {
        self.cut(|reader| reader.ranges_to_join(TASK_ROWS))
    }

    fn cut(&self, ranges: impl Fn(&dyn DocumentReader) -> Vec<Range<usize>>) -> Vec<DocumentRange> {
        let mut cut = Vec::new();
        for (url, reader) in &self.files {
            for row_groups in ranges(reader.as_ref()) {
                let InputFile { version, deleted_rows, .. } = reader.file();
                cut.push(DocumentRange {
                    file: url.clone(),
                    version: version.clone(),
                    row_groups,
                    deleted_rows: deleted_rows.clone(),
                });
            }
        }
        cut
    }

    /// Returns the rows of a range. If the file is not open yet, it is opened now; it is an error if its version is
    /// another one. Errors are items of the stream.
    ///
    /// # Panics
    /// Panics if the file has no such row groups.
    #[must_use]
    pub fn read(&self, range: &DocumentRange) -> DocumentRows {
        let context = self.context.reporting_anew();
        let ReadContext { unchecked, passed, read_bytes, span, .. } = context.clone();
        let left_out = self.left_out.get(&range.file).cloned();
        let rows = |batches: BoxStream<'static, Result<DocumentBatch>>| {
            let batches = match left_out {
                Some(left_out) => {
                    let leave_out = move |mut batch: DocumentBatch| {
                        batch.leave_out(&left_out);
                        batch
                    };
                    batches.map_ok(leave_out).boxed()
                }
                None => batches,
            };
            DocumentRows { batches, unchecked, passed, read_bytes, span }
        };
        if let Some(reader) = self.files.get(&range.file) {
            return rows(reader.read(range.row_groups.clone(), &self.columns, &self.keep_types, &context));
        }
        let (storage, range) = (self.storage.clone(), range.clone());
        let (columns, keep_types) = (self.columns.clone(), self.keep_types.clone());
        let opened = async move {
            let reader = open_version(&storage, &range, &columns, &context).await?;
            Ok::<_, Fault>(reader.read(range.row_groups, &columns, &keep_types, &context))
        };
        rows(futures::stream::once(opened).try_flatten().boxed())
    }
}

/// Opens a file, if its version is still the one that was listed.
async fn open_version(
    storage: &Storage,
    range: &DocumentRange,
    columns: &DocumentColumns,
    context: &ReadContext,
) -> Result<Box<dyn DocumentReader>> {
    let file = storage.input(&range.file)?.version(&range.version).await?;
    let format = Format::required(&range.file)?;
    (format.open)(file.without(range.deleted_rows.clone()), columns.clone(), context.clone()).await
}

/// Makes the fault of more files that cannot be read than are allowed. The example is the first of them, and its reason.
pub fn too_many_bad_files(allowed: u64, example: &str) -> Fault {
    let reason = format!("more than {allowed} files cannot be read; first: {example}");
    Fault::new(ErrorKind::BadData, reason).remedy(words![
        "restore or remove them, or raise ",
        key("max_bad_files"),
        " to pass them over"
    ])
}

/// Refuses files that are passed over although they hold documents by their names, or of which nobody can know what they hold, if
/// there are more of them than are allowed.
async fn refuse_ignored(files: impl Iterator<Item = &InputFile>, allowed: u64) -> Result<()> {
    if allowed == u64::MAX {
        return Ok(());
    }
    let others: Vec<InputFile> = files.filter(|file| Format::of(&file.url).is_none()).cloned().collect();
    let looks = futures::stream::iter(others).map(|file| async move {
        let format = passed_over::foreign(&file).await.transpose()?;
        Some((file.url, format))
    });
    let foreign: Vec<_> = looks.buffered(OPEN_AT_ONCE).filter_map(std::future::ready).collect().await;
    let n_foreign = foreign.len() as u64;
    match foreign.into_iter().next().filter(|_| n_foreign > allowed) {
        None => Ok(()),
        Some((_, Err(unread))) => {
            let remedy =
                words!["nobody knows whether it holds documents: pass over it with ", key("max_ignored_files")];
            Err(unread.remedy(remedy))
        }
        Some((url, Ok(format))) => {
            let remedy = words![
                format.reason(&url),
                "; or pass over such files with a ",
                key("max_ignored_files"),
                format!(" of {n_foreign}")
            ];
            Err(Fault::bad_data(url, words![Part::Place, " would be passed over, and its texts lost"]).remedy(remedy))
        }
    }
}

/// Returns the error of a file. If some bad files were allowed and there are more of them now, the error says that and
/// names the first.
fn too_many(error: Fault, before: &[(InputFile, String)], allowed: u64) -> Fault {
    match (error.matter::<Unreadable>(), before.first()) {
        (Some(_), Some((first, reason))) => too_many_bad_files(allowed, &format!("{}: {reason}", first.url)),
        (Some(Unreadable::Damaged), None) => error.remedy(words![
            "restore the file, remove it from the input, or raise ",
            key("max_bad_files"),
            " to pass it over"
        ]),
        _ => error,
    }
}

/// Makes the error of a missing column say that the column is one of the table's partitions.
fn of_partition_column(error: Fault, table: Option<&FoundTable>) -> Fault {
    let is_missing = matches!(error.matter(), Some(BadColumn::Missing { .. }));
    let missing = error.place().column.as_ref().filter(|_| is_missing);
    match table.filter(|table| missing.is_some_and(|column| table.partition_columns.contains(column))) {
        Some(table) => error.remedy(format!(
            "it is a partition column of the Delta table {}, whose values are not in the files: name a column that is",
            table.url
        )),
        None => error,
    }
}

async fn require_marker(storage: &Storage, place: &DocumentPlace, marker: &str) -> Result<()> {
    let refused = |what: &str| {
        let reason = format!("the documents are {what}, and no folder that could hold {marker}");
        Fault::config("require_marker", reason)
    };
    let pattern = match place {
        DocumentPlace::Pattern { pattern, .. } if !pattern.contains(['*', '?', '[']) => pattern,
        DocumentPlace::Pattern { pattern, .. } => return Err(refused(&format!("a glob, {pattern}"))),
        DocumentPlace::List(_) => return Err(refused(&format!("a list, {}", place.name()))),
    };
    match storage.input(pattern)?.join(marker).find().await? {
        Some(_) => Ok(()),
        None => {
            let url = format!("{}/{marker}", pattern.trim_end_matches('/'));
            let remedy = "the folder is not complete yet; try again when it is, or change require_marker";
            Err(Fault::input_missing("marker", url, remedy).about(Absent::NoMarker))
        }
    }
}

/// Checks that each column has one type in all files, and returns the types of the keep-order columns. A column may
/// have whole numbers in one file and others in another. Numbers do not compare with the times of records.
fn one_schema(files: &BTreeMap<String, Box<dyn DocumentReader>>, columns: &DocumentColumns) -> Result<Vec<DataType>> {
    let mut first: BTreeMap<&str, (&str, DataType)> = BTreeMap::new();
    for (url, file) in files {
        for (column, data_type) in file.column_types() {
            let (first_file, known) = first.entry(column).or_insert((url, data_type.clone()));
            *known = one_type(known, data_type).ok_or_else(|| {
                let (got, first) = (keep_type_name(data_type), keep_type_name(known));
                let reason = words![
                    format!("column '{column}' is {got} in "),
                    Part::Place,
                    format!(" but {first} in {first_file}")
                ];
                Fault::bad_data(url, reason).column(column).remedy("write the files with one schema")
            })?;
        }
    }
    let newest_by = columns.newest_by.as_ref().and_then(|column| Some((column, first.get(column.as_str())?)));
    if let Some((column, (numbers, DataType::Int64 | DataType::Float64 | DataType::Boolean))) = newest_by
        && let Some(records) = files.keys().find(|url| has_fetch_times(url))
    {
        let reason = words![
            format!("column '{column}' has no times in "),
            Part::Place,
            format!(", and nothing says how its values compare with the times of the records in {records}")
        ];
        let remedy = "write times, or texts such as 2026-11-20T03:00:00Z";
        return Err(Fault::bad_data(*numbers, reason).column(column).remedy(remedy));
    }
    let type_of = |column: &String| first.get(column.as_str()).map_or(DataType::LargeUtf8, |(_, t)| converted_type(t));
    Ok(columns.kept().map(type_of).collect())
}

fn one_type(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        _ if a == b => Some(a.clone()),
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => Some(DataType::Float64),
        // The keep order may name the column of ids too.
        (DataType::Utf8, DataType::LargeUtf8) | (DataType::LargeUtf8, DataType::Utf8) => Some(DataType::LargeUtf8),
        _ => None,
    }
}
