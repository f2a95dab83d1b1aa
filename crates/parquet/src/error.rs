//! Errors of files and datasets.

use std::borrow::Cow;
use std::num::NonZeroU64;

use nearprint_storage::{ErrorKind, StorageError, foreign, one_line};

/// An error of a file or of a dataset. It names the file, and the column or row if it is about one.
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
            | Self::BadRow { .. } => ErrorKind::BadData,
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
