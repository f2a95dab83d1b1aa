//! The errors of a study.

use nearprint_dataset::DatasetError;
use nearprint_pipeline::PipelineError;
use nearprint_profile::ProfileError;
use nearprint_storage::{ErrorKind, StorageError, one_line};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A required input is missing.
    #[error("no {what} at {url}: {remedy}")]
    InputMissing {
        /// The kind of input that is missing.
        what: &'static str,
        /// The place of the input.
        url: String,
        /// The remedy for the user.
        remedy: &'static str,
    },
    /// No document has the given id.
    #[error("no document '{}' in {documents}: check the id, and --id-column", id.escape_debug())]
    NoSuchDocument {
        /// The id.
        id: String,
        /// The place of the documents that were searched.
        documents: String,
    },
    /// A sheet cannot be read.
    #[error("{file}: {reason}: restore the file or remove it from the input")]
    BadFile {
        /// The file.
        file: String,
        /// The defect of the file.
        reason: String,
    },
    /// A file lacks a column.
    #[error("{file}: no column '{column}' (it has {}): {remedy}", present.join(", "))]
    MissingColumn {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// The columns of the file.
        present: Vec<String>,
        /// The remedy for the user.
        remedy: &'static str,
    },
    /// A row cannot be used.
    #[error("{file}: row {row}: {reason}")]
    BadRow {
        /// The file.
        file: String,
        /// The row, counted from 1. In a text file, it is the line.
        row: u64,
        /// The defect of the row.
        reason: String,
    },
    /// The configuration is invalid.
    #[error("{key}: {reason}")]
    Config {
        /// The key or flag.
        key: String,
        /// The defect of the value, and the remedy.
        reason: String,
    },
    /// The request has no answer.
    #[error("{reason}")]
    Usage {
        /// The problem with the request, and the remedy.
        reason: String,
    },
    /// An input changed in the meantime. The next try may succeed.
    #[error("{reason}: try again")]
    TryAgain {
        /// A description of the change.
        reason: String,
    },
    /// nearprint has a defect.
    #[error("internal error in {stage}: {reason}: please report it")]
    Internal {
        /// The stage that failed.
        stage: &'static str,
        /// The message of the stage.
        reason: String,
    },
    /// Fingerprinting, the join, or the reading of a published night failed.
    #[error(transparent)]
    Pipeline(Box<PipelineError>),
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, StudyError>;

impl From<PipelineError> for StudyError {
    fn from(error: PipelineError) -> Self {
        Self::Pipeline(Box::new(error))
    }
}

impl From<DatasetError> for StudyError {
    fn from(error: DatasetError) -> Self {
        PipelineError::from(error).into()
    }
}

impl From<StorageError> for StudyError {
    fn from(error: StorageError) -> Self {
        PipelineError::from(error).into()
    }
}

impl From<ProfileError> for StudyError {
    fn from(error: ProfileError) -> Self {
        PipelineError::from(error).into()
    }
}

impl From<nearprint_join::JoinError> for StudyError {
    fn from(error: nearprint_join::JoinError) -> Self {
        PipelineError::from(error).into()
    }
}

impl StudyError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InputMissing { .. } | Self::NoSuchDocument { .. } => ErrorKind::InputMissing,
            Self::BadFile { .. } | Self::MissingColumn { .. } | Self::BadRow { .. } => ErrorKind::BadData,
            Self::Config { .. } => ErrorKind::Config,
            Self::Usage { .. } => ErrorKind::Usage,
            Self::TryAgain { .. } => ErrorKind::TryAgain,
            Self::Internal { .. } => ErrorKind::Bug,
            Self::Pipeline(error) => error.kind(),
        }
    }

    pub(crate) fn bad_file(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::BadFile { file: file.into(), reason: one_line(&reason.to_string()) }
    }
}
