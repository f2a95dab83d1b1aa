//! The errors of a lookup.

use nearprint_join::JoinError;
use nearprint_parquet::DatasetError;
use nearprint_profile::ProfileError;
use nearprint_storage::{ErrorKind, StorageError};
use nearprint_store::StoreError;

/// An error of a lookup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// A query cannot be understood.
    #[error("{query}: {reason}")]
    Query {
        /// The query, or the part of it that is wrong.
        query: String,
        /// What is wrong with it, and what the user should write.
        reason: String,
    },
    /// A setting cannot be used with this profile or store.
    #[error("{key}: {reason}")]
    Config {
        /// The key or flag.
        key: &'static str,
        /// The fault of its value, and the remedy.
        reason: String,
    },
    /// The matches that an answer lists take more memory than there is for them.
    #[error(
        "the answer lists more than {n_matches} matches, which take more than {max_bytes} bytes: list fewer by \
         `max_matches`, or raise `memory_limit`"
    )]
    AnswerTooLarge {
        /// The matches that were found before memory ended.
        n_matches: usize,
        /// The bytes that they may take.
        max_bytes: usize,
    },
    /// An index contradicts itself.
    #[error("{reason}: write it anew with `store index`, after its files were deleted")]
    Damaged {
        /// What is wrong with it.
        reason: String,
    },
    /// The profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The distances cannot be used.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The store refused the lookup, or is damaged.
    #[error(transparent)]
    Store(StoreError),
    /// A file of the store cannot be read.
    #[error(transparent)]
    Dataset(DatasetError),
    /// A place cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, LookupError>;

impl From<DatasetError> for LookupError {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Storage(error) => Self::Storage(error),
            other => Self::Dataset(other),
        }
    }
}

impl From<StoreError> for LookupError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Dataset(error) => error.into(),
            StoreError::Storage(error) => Self::Storage(error),
            other => Self::Store(other),
        }
    }
}

impl LookupError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Query { .. } | Self::Profile(ProfileError::Width { .. }) | Self::Join(_) => ErrorKind::Usage,
            Self::Config { .. } | Self::Profile(_) => ErrorKind::Config,
            Self::Damaged { .. } => ErrorKind::BadData,
            Self::AnswerTooLarge { .. } => ErrorKind::LocalIo,
            Self::Store(error) => error.kind(),
            Self::Dataset(error) => error.kind(),
            Self::Storage(error) => error.kind(),
        }
    }
}
