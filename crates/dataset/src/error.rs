//! What can be wrong with documents and datasets.

use nearprint_storage::{ErrorKind, StorageError, one_line};

/// An error of a dataset or of documents. Each names the file, and the column or row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file that is not what its name says, or is damaged.
    #[error("{file}: {reason}: restore the file or remove it from the input")]
    BadFile {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing at the place of the documents.
    #[error("no documents at {url}: check the path; nothing was read or written")]
    DocumentsMissing {
        /// Where.
        url: String,
    },
    /// No file of a format that is read as documents.
    #[error("no documents at {url}: no file there ends in {endings}")]
    NoDocuments {
        /// Where.
        url: String,
        /// The endings of such files.
        endings: String,
    },
    /// A file that must be beside the documents is missing.
    #[error("no marker at {url}: the folder is not complete yet; try again when it is, or change require_marker")]
    NoMarker {
        /// Where it should be.
        url: String,
    },
    /// A column that a file lacks.
    #[error("{file}: no column '{column}' (it has {}): {remedy}", present.join(", "))]
    MissingColumn {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// The columns there.
        present: Vec<String>,
        /// What to do.
        remedy: &'static str,
    },
    /// A column of a type that cannot be read as what it should hold.
    #[error("{file}: column '{column}' is {got}, expected {expected}: cast it or name another column")]
    ColumnType {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// Its type.
        got: String,
        /// The types that can be read.
        expected: &'static str,
    },
    /// Two files disagree in the type of a column.
    #[error("column '{column}' is {got} in {file} but {first} in {first_file}: write the files with one schema")]
    SchemaDrift {
        /// The later file, in the order of paths.
        file: String,
        /// The column.
        column: Box<str>,
        /// Its type there.
        got: Box<str>,
        /// The first file.
        first_file: String,
        /// The type there.
        first: Box<str>,
    },
    /// A row that cannot be used.
    #[error("{file}: row {row}: {reason}")]
    BadRow {
        /// The file.
        file: String,
        /// The row, counted from 1; the line of a text file.
        row: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// More files that cannot be read than allowed.
    #[error(
        "more than {allowed} files cannot be read; first: {example}: restore or remove them, or raise max_bad_files to pass them over"
    )]
    TooManyBadFiles {
        /// The limit.
        allowed: u64,
        /// The first and what is wrong with it.
        example: String,
    },
    /// A configuration that cannot be run.
    #[error("{key}: {reason}")]
    Config {
        /// The key or flag.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A defect of nearprint.
    #[error("internal error in {stage}: {reason}: please report it")]
    Internal {
        /// The stage that failed.
        stage: &'static str,
        /// What it said.
        reason: String,
    },
    /// A place.
    #[error(transparent)]
    Storage(StorageError),
}

/// The crate's result.
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
    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::BadFile { .. }
            | Self::MissingColumn { .. }
            | Self::ColumnType { .. }
            | Self::SchemaDrift { .. }
            | Self::BadRow { .. }
            | Self::TooManyBadFiles { .. } => ErrorKind::BadData,
            Self::DocumentsMissing { .. } | Self::NoDocuments { .. } | Self::NoMarker { .. } => ErrorKind::InputMissing,
            Self::Config { .. } => ErrorKind::Config,
            Self::Internal { .. } => ErrorKind::Bug,
            Self::Storage(error) => error.kind(),
        }
    }

    /// A file that is not what its name says, or is damaged.
    pub fn bad_file(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::BadFile { file: file.into(), reason: one_line(&reason.to_string()) }
    }

    /// The error of a local file.
    pub fn io(path: impl Into<std::path::PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let of_storage = StorageError::io(path);
        |source| of_storage(source).into()
    }

    /// An error that Parquet reports about a file; one of the place beneath keeps its own kind.
    pub fn of_parquet(file: &str, error: parquet::errors::ParquetError) -> Self {
        let parquet::errors::ParquetError::External(inner) = error else {
            return Self::bad_file(file, error);
        };
        let inner = match inner.downcast::<Self>() {
            Ok(own) => return *own,
            Err(other) => other,
        };
        match inner.downcast::<StorageError>() {
            Ok(of_storage) => (*of_storage).into(),
            Err(other) => Self::bad_file(file, other),
        }
    }

    /// The same of Arrow.
    pub fn of_arrow(file: &str, error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<parquet::errors::ParquetError>() {
                Ok(parquet) => Self::of_parquet(file, *parquet),
                Err(other) => Self::bad_file(file, other),
            },
            other => Self::bad_file(file, other),
        }
    }
}
