//! What can go wrong with a store.

use nearprint_dataset::DatasetError;
use nearprint_storage::{ErrorKind, StorageError, one_line};

/// An error of a store. Each names the object it is about, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No store, or no night of it.
    #[error("no {what} at {url}: {remedy}")]
    InputMissing {
        /// What was looked for.
        what: &'static str,
        /// Where.
        url: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A file of a store or a published night that is not what the store's commit says.
    #[error("{file}: {reason}: the store is damaged; restore the file, or publish the night anew with --replace")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A commit that is not what a release wrote: all else hangs on it.
    #[error("{file}: {reason}: the store is damaged; restore this commit from a backup")]
    DamagedCommit {
        /// The commit.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A store or output that was written for another purpose or with other settings.
    #[error("{url}: {reason}")]
    Refused {
        /// The store or output.
        url: String,
        /// What it holds, and what to do.
        reason: String,
    },
    /// Something with other content stands where a result goes.
    #[error("{url}: {reason}")]
    OutputExists {
        /// The place.
        url: String,
        /// What is there, and what to do.
        reason: String,
    },
    /// Another run changed the store meanwhile, or an input changed; the next try may succeed.
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
    /// A file of the store.
    #[error(transparent)]
    Dataset(DatasetError),
    /// A place.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, StoreError>;

impl From<DatasetError> for StoreError {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Storage(error) => Self::Storage(error),
            other => Self::Dataset(other),
        }
    }
}

impl StoreError {
    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InputMissing { .. } => ErrorKind::InputMissing,
            Self::Damaged { .. } | Self::DamagedCommit { .. } => ErrorKind::BadData,
            Self::Refused { .. } => ErrorKind::Config,
            Self::OutputExists { .. } => ErrorKind::OutputExists,
            Self::TryAgain { .. } => ErrorKind::TryAgain,
            Self::Internal { .. } => ErrorKind::Bug,
            Self::Dataset(error) => error.kind(),
            Self::Storage(error) => error.kind(),
        }
    }

    /// A file that is not what the store's commit says.
    pub fn damaged(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::Damaged { file: file.into(), reason: one_line(&reason.to_string()) }
    }

    /// Whether it is about what a file holds, and not about a place that does not answer or a state that passes.
    #[must_use]
    pub fn is_about_content(&self) -> bool {
        match self {
            Self::Storage(StorageError::ObjectStore { .. }) => self.kind() == ErrorKind::InputMissing,
            _ => self.kind() != ErrorKind::TryAgain,
        }
    }

    /// The file that is damaged, and what is wrong with it.
    #[must_use]
    pub fn file_and_reason(&self) -> Option<(&str, &str)> {
        match self {
            Self::Damaged { file, reason }
            | Self::DamagedCommit { file, reason }
            | Self::Dataset(DatasetError::BadFile { file, reason })
            | Self::Storage(StorageError::BadFile { file, reason }) => Some((file, reason)),
            _ => None,
        }
    }
}
