//! Errors of a store.

use nearprint_delta::DeltaError;
use nearprint_parquet::DatasetError;
use nearprint_storage::{ErrorKind, StorageError, one_line};

/// An error of a store. It names the object that it is about, and says what the user should do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file of the store or of a published night does not agree with the store's commit.
    #[error(
        "{file}: {reason}: the store is damaged; restore the file, or publish the night anew with `nearprint run --replace`"
    )]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A commit is not what a release wrote. Everything else depends on commits.
    #[error("{file}: {reason}: the store is damaged; restore this commit from a backup")]
    DamagedCommit {
        /// The file of the commit or of one of its pages.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A store or an output was written for another purpose, or with other settings.
    #[error("{url}: {reason}")]
    Refused {
        /// The store or output.
        url: String,
        /// What it holds, and what the user should do.
        reason: String,
    },
    /// A list of ids, one a line, may mean an id with line breaks, or only the ids that are its lines.
    #[error(
        "{store}: {dt} has the id {}, which stands in a list of lines as other ids, all of which the list has: nothing was forgotten; give the list as JSON lines, such as {{\"id\": {}}}, in a file whose name ends in .jsonl",
        escaped(id),
        escaped(id)
    )]
    AmbiguousId {
        /// The store.
        store: String,
        /// A night that has the id.
        dt: String,
        /// The id.
        id: String,
    },
    /// A place is no store, but an output, into which a store publishes.
    #[error("{url} is no store: it is an output, the results of the store {}: name that store", store.as_deref().unwrap_or(identity))]
    IsOutput {
        /// The place.
        url: String,
        /// The identity of the store that publishes there.
        identity: String,
        /// The place of this store, if it lies beside the output.
        store: Option<String>,
    },
    /// The place for a result holds other content already.
    #[error("{url}: {reason}")]
    OutputExists {
        /// The place of the result.
        url: String,
        /// What is there, and what the user should do.
        reason: String,
    },
    /// Another execution changed the store, or an input changed. The next try may succeed.
    #[error("{reason}: try again")]
    TryAgain {
        /// What happened.
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
    /// The log of a table is damaged.
    #[error(transparent)]
    Delta(DeltaError),
    /// A file of the store cannot be read or written.
    #[error(transparent)]
    Dataset(DatasetError),
    /// A place failed or cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Returns a text as JSON writes it: quoted, with its line breaks escaped.
fn escaped(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, StoreError>;

impl From<DatasetError> for StoreError {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Storage(error) => Self::Storage(error),
            other => Self::Dataset(other),
        }
    }
}

impl From<DeltaError> for StoreError {
    fn from(error: DeltaError) -> Self {
        match error {
            DeltaError::Dataset(error) => error.into(),
            other => Self::Delta(other),
        }
    }
}

impl StoreError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged { .. } | Self::DamagedCommit { .. } => ErrorKind::BadData,
            Self::Refused { .. } => ErrorKind::Config,
            Self::AmbiguousId { .. } => ErrorKind::Usage,
            Self::IsOutput { .. } => ErrorKind::InputMissing,
            Self::OutputExists { .. } => ErrorKind::OutputExists,
            Self::TryAgain { .. } => ErrorKind::TryAgain,
            Self::Internal { .. } => ErrorKind::Bug,
            Self::Delta(error) => error.kind(),
            Self::Dataset(error) => error.kind(),
            Self::Storage(error) => error.kind(),
        }
    }

    /// Creates the error of a file that does not agree with the store's commit.
    pub fn damaged(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::Damaged { file: file.into(), reason: one_line(&reason.to_string()) }
    }

    /// Returns whether the error is about the content of a file or its absence. An I/O error of a local file counts
    /// too. An error is not about content if an object store does not answer, or if the state will pass.
    #[must_use]
    pub fn is_about_content(&self) -> bool {
        match self {
            Self::Storage(StorageError::ObjectStore { .. }) => self.kind() == ErrorKind::InputMissing,
            _ => self.kind() != ErrorKind::TryAgain,
        }
    }

    /// Returns the damaged file and what is wrong with it, if the error is about one.
    #[must_use]
    pub fn file_and_reason(&self) -> Option<(String, String)> {
        match self {
            Self::Damaged { file, reason }
            | Self::DamagedCommit { file, reason }
            | Self::Delta(DeltaError::Table { file, reason })
            | Self::Dataset(DatasetError::BadFile { file, reason }) => Some((file.clone(), reason.clone())),
            Self::Storage(error) => error.place_and_reason(),
            _ => None,
        }
    }
}
