//! What can go wrong in a study.

use nearprint_dataset::DatasetError;
use nearprint_pipeline::PipelineError;
use nearprint_profile::ProfileError;
use nearprint_storage::{ErrorKind, StorageError, one_line};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// No input at a place that must have some.
    #[error("no {what} at {url}: {remedy}")]
    InputMissing {
        /// What was looked for.
        what: &'static str,
        /// Where.
        url: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A document that was asked for by its id.
    #[error("no document '{}' in {documents}: check the id, and --id-column", id.escape_debug())]
    NoSuchDocument {
        /// The id.
        id: String,
        /// Where it was looked for.
        documents: String,
    },
    /// A sheet that cannot be read.
    #[error("{file}: {reason}: restore the file or remove it from the input")]
    BadFile {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
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
    /// A configuration that cannot be run.
    #[error("{key}: {reason}")]
    Config {
        /// The key or flag.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A request that has no answer.
    #[error("{reason}")]
    Usage {
        /// What was asked, and what to do.
        reason: String,
    },
    /// An input changed meanwhile; the next try may succeed.
    #[error("{reason}: try again")]
    TryAgain {
        /// What happened.
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
    /// Fingerprinting, the join, or a published night.
    #[error(transparent)]
    Pipeline(Box<PipelineError>),
}

/// The crate's result.
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
    /// What kind of error it is.
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
