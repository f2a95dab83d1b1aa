//! Errors of tasks and of the query batch.

use std::fmt::Display;

use nearprint_join::JoinError;
use nearprint_parquet::DatasetError;
use nearprint_profile::ProfileError;
use nearprint_storage::{ErrorKind, StorageError};

/// An error of a task or of the query batch. It names the file, column or key that it is about, and says what the user
/// should do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// Several rows have the same document id.
    #[error(
        "{} a document id: {examples}: make ids unique, or keep the first row of each id with on_duplicate_id = \
         \"keep_first\" and a max_bad_rows of at least {n}",
        if *.n == 1 { "1 row repeats".to_owned() } else { format!("{} rows repeat", .n) }
    )]
    RepeatedIds {
        /// The number of repeated rows.
        n: u64,
        /// Some of the ids, each with two of its places.
        examples: String,
    },
    /// A dataset was written with other settings, or for another purpose.
    #[error("{url}: {reason}")]
    Refused {
        /// A file of the dataset.
        url: String,
        /// The content of the dataset, and the action that the user should take.
        reason: String,
    },
    /// A key of the configuration has a value that cannot be used.
    #[error("{key}: {reason}")]
    Config {
        /// The key.
        key: String,
        /// The fault of the value.
        reason: String,
    },
    /// The memory limit is too small.
    #[error("{reason}: raise `memory_limit`")]
    Resources {
        /// The memory that is needed, and its purpose.
        reason: String,
    },
    /// The result is no longer wanted.
    #[error("{reason}: try again")]
    TryAgain {
        /// The reason why the task stopped.
        reason: String,
    },
    /// A task failed elsewhere, or the engine that runs tasks did.
    #[error("{message}")]
    Elsewhere {
        /// The kind of the error.
        kind: ErrorKind,
        /// The message of the error, which says what the user should do.
        message: String,
        /// The file that it is about, as far as it is about one.
        file: Option<String>,
        /// The column.
        column: Option<String>,
        /// The row, counted from 1.
        row: Option<u64>,
    },
    /// nearprint has a defect.
    #[error("internal error in {stage}: {reason}: please report it")]
    Internal {
        /// The stage that failed.
        stage: &'static str,
        /// The message of the failure.
        reason: String,
    },
    /// The profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The join refused its input.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Documents or a dataset cannot be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A place cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, TaskError>;

impl TaskError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::RepeatedIds { .. } => ErrorKind::BadData,
            Self::Refused { .. } | Self::Config { .. } => ErrorKind::Config,
            Self::Resources { .. } => ErrorKind::LocalIo,
            Self::TryAgain { .. } => ErrorKind::TryAgain,
            Self::Elsewhere { kind, .. } => *kind,
            Self::Internal { .. } => ErrorKind::Bug,
            Self::Join(_) | Self::Profile(ProfileError::Width { .. }) => ErrorKind::Usage,
            Self::Profile(_) => ErrorKind::Config,
            Self::Dataset(error) => error.kind(),
            Self::Storage(error) => error.kind(),
        }
    }

    /// Creates the error of a defect that a stage found.
    pub(crate) fn internal(stage: &'static str, reason: impl Display) -> Self {
        Self::Internal { stage, reason: reason.to_string() }
    }
}
