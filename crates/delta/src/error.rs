//! The error of this crate.

use nearprint_parquet::DatasetError;
use nearprint_storage::{ErrorKind, StorageError};

/// An error of the log of a table. It names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// The log of a published table is damaged.
    #[error("{file}: {reason}")]
    Table {
        /// The file of the log.
        file: String,
        /// What is wrong with it, and what the user should do.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, DeltaError>;

impl From<StorageError> for DeltaError {
    fn from(error: StorageError) -> Self {
        DatasetError::from(error).into()
    }
}

impl DeltaError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Table { .. } => ErrorKind::BadData,
            Self::Dataset(error) => error.kind(),
        }
    }
}
