//! Errors of documents and datasets.

use std::borrow::Cow;
use std::num::NonZeroU64;

use nearprint_storage::{ErrorKind, StorageError, foreign, one_line};

/// An error of a dataset or of documents. It names the file, and the column or row if it is about one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file is damaged, or is not what its name says.
    #[error("{file}: {reason}: restore the file or remove it from the input")]
    BadFile {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file or a table has a format, or uses features of one, that are not read.
    #[error("{file}: {reason}")]
    BadFormat {
        /// The file, or the folder of the table.
        file: String,
        /// The format or feature, and what the user should do.
        reason: String,
    },
    /// A line of a list of documents cannot be used.
    #[error("{list}: line {line}: {source}")]
    Listed {
        /// The list.
        list: String,
        /// The number of the line, counted from 1.
        line: u64,
        /// What is wrong with the place that the line names.
        source: Box<DatasetError>,
    },
    /// A list of documents names none.
    #[error("no documents: {list} has no lines: write the paths or URLs of files into it, one a line")]
    EmptyList {
        /// The list.
        list: String,
    },
    /// There is nothing at the place of the documents.
    #[error("no documents at {url}: check the path; nothing was read or written")]
    DocumentsMissing {
        /// The place.
        url: String,
    },
    /// All files at the place of the documents are still being written, by their names.
    #[error("no documents at {url} yet: by their names, these files are still being written: {there}")]
    NoDocuments {
        /// The place.
        url: String,
        /// The names of the first files that are there.
        there: String,
    },
    /// No file at the place of the documents has a format that can be read.
    #[error("no documents at {url}: no file there ends in {endings}; there are: {there}: rename or convert them")]
    OtherFiles {
        /// The place.
        url: String,
        /// The endings that files of a known format have.
        endings: String,
        /// The names of the first files that are there.
        there: String,
    },
    /// The marker that must lie beside the documents is missing.
    #[error("no marker at {url}: the folder is not complete yet; try again when it is, or change require_marker")]
    NoMarker {
        /// The place where the marker should be.
        url: String,
    },
    /// A file lacks a column.
    #[error("{file}: no column '{column}'{} (it has {}): {remedy}", in_line(*line), present.join(", "))]
    MissingColumn {
        /// The file.
        file: String,
        /// The column.
        column: Box<str>,
        /// For JSON lines, the number of the line that lacks it, counted from 1: the first object of the file.
        line: Option<NonZeroU64>,
        /// The columns that the file has.
        present: Vec<String>,
        /// What the user should do.
        remedy: Cow<'static, str>,
    },
    /// A column has a type that cannot be read for its purpose.
    #[error("{file}: column '{column}' is {got}, expected {expected}: cast it or name another column")]
    ColumnType {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// The column's type.
        got: String,
        /// The types that can be read.
        expected: &'static str,
    },
    /// Two files have different types for a column.
    #[error("column '{column}' is {got} in {file} but {first} in {first_file}: write the files with one schema")]
    SchemaDrift {
        /// The later file, in the order of paths.
        file: String,
        /// The column.
        column: Box<str>,
        /// The column's type in the later file.
        got: Box<str>,
        /// The first file.
        first_file: String,
        /// The column's type in the first file.
        first: Box<str>,
    },
    /// A row cannot be used.
    #[error("{file}: row {row}: {reason}")]
    BadRow {
        /// The file.
        file: String,
        /// The number of the row, counted from 1. For a text file it is the line.
        row: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// More files cannot be read than are allowed.
    #[error(
        "more than {allowed} files cannot be read; first: {example}: restore or remove them, or raise max_bad_files to pass them over"
    )]
    TooManyBadFiles {
        /// The number of files that are allowed.
        allowed: u64,
        /// The first of these files, and what is wrong with it.
        example: String,
    },
    /// No file can be read, however many may be passed over.
    #[error(
        "none of the files can be read ({n}); first: {example}: fetch them again; max_bad_files passes over some files of a night, not all"
    )]
    AllFilesBad {
        /// The number of files.
        n: u64,
        /// The first of these files, and what is wrong with it.
        example: String,
    },
    /// The log of a published table is damaged.
    #[error("{file}: {reason}")]
    Table {
        /// The file of the log.
        file: String,
        /// What is wrong with it, and what the user should do.
        reason: String,
    },
    /// A setting has a value that cannot be used.
    #[error("{key}: {reason}")]
    Config {
        /// The key or flag of the setting.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// nearprint has a defect.
    #[error("internal error in {stage}: {reason}: please report it")]
    Internal {
        /// The stage that failed.
        stage: &'static str,
        /// The cause.
        reason: String,
    },
    /// A place failed or cannot be used.
    #[error(transparent)]
    Storage(StorageError),
}

/// Says in which line of a file a column is missing.
fn in_line(line: Option<NonZeroU64>) -> String {
    match line.map(NonZeroU64::get) {
        None => String::new(),
        Some(1) => " in the first line".to_owned(),
        Some(line) => format!(" in line {line}, its first object"),
    }
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, DatasetError>;

impl From<StorageError> for DatasetError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::BadFile { file, reason } => Self::BadFile { file, reason },
            other => Self::Storage(other),
        }
    }
}

impl DatasetError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::BadFile { .. }
            | Self::BadFormat { .. }
            | Self::MissingColumn { .. }
            | Self::ColumnType { .. }
            | Self::SchemaDrift { .. }
            | Self::BadRow { .. }
            | Self::OtherFiles { .. }
            | Self::TooManyBadFiles { .. }
            | Self::AllFilesBad { .. }
            | Self::Table { .. } => ErrorKind::BadData,
            Self::DocumentsMissing { .. }
            | Self::EmptyList { .. }
            | Self::NoDocuments { .. }
            | Self::NoMarker { .. } => ErrorKind::InputMissing,
            Self::Listed { source, .. } => source.kind(),
            Self::Config { .. } => ErrorKind::Config,
            Self::Internal { .. } => ErrorKind::Bug,
            Self::Storage(error) => error.kind(),
        }
    }

    /// Creates the error of a file that is damaged, or is not what its name says.
    pub fn bad_file(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::BadFile { file: file.into(), reason: one_line(&reason.to_string()) }
    }

    /// Creates the error of a file whose format is not read. `reason` says what the user should do.
    pub fn bad_format(file: impl Into<String>, reason: String) -> Self {
        Self::BadFormat { file: file.into(), reason }
    }

    /// Returns a function that wraps an I/O error on a local file.
    pub fn io(path: impl Into<std::path::PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let of_storage = StorageError::io(path);
        |source| of_storage(source).into()
    }

    /// Converts an error that the `parquet` crate reports about a file. An error of the place below keeps its kind.
    pub fn of_parquet(file: &str, error: parquet::errors::ParquetError) -> Self {
        let parquet::errors::ParquetError::External(inner) = error else {
            return Self::bad_file(file, foreign(&error));
        };
        let inner = match inner.downcast::<Self>() {
            Ok(own) => return *own,
            Err(other) => other,
        };
        match inner.downcast::<StorageError>() {
            Ok(of_storage) => (*of_storage).into(),
            Err(other) => Self::bad_file(file, foreign(&other)),
        }
    }

    /// Converts an error that the `arrow` crate reports about a file, like [`of_parquet`](Self::of_parquet).
    pub fn of_arrow(file: &str, error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<parquet::errors::ParquetError>() {
                Ok(parquet) => Self::of_parquet(file, *parquet),
                Err(other) => Self::bad_file(file, foreign(&other)),
            },
            other => Self::bad_file(file, foreign(&other)),
        }
    }
}
