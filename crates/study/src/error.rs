//! The errors of a study.

use nearprint_dataset::DatasetError;
use nearprint_pipeline::PipelineError;
use nearprint_profile::ProfileError;
use nearprint_storage::{ErrorKind, StorageError};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// No document has the given id.
    #[error("no document '{}' in {documents}: check the id, and `id_column`", id.escape_debug())]
    NoSuchDocument {
        /// The id.
        id: String,
        /// The place of the documents that were searched.
        documents: String,
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
    /// A place or a file cannot be used, or fingerprinting, the join, or the reading of a published night failed.
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
            Self::NoSuchDocument { .. } => ErrorKind::InputMissing,
            Self::Config { .. } => ErrorKind::Config,
            Self::Usage { .. } => ErrorKind::Usage,
            Self::TryAgain { .. } => ErrorKind::TryAgain,
            Self::Internal { .. } => ErrorKind::Bug,
            Self::Pipeline(error) => error.kind(),
        }
    }
}
