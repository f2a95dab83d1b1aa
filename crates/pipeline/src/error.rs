//! What can go wrong between the documents and the published night.

use std::path::PathBuf;

use nearprint_dataset::DatasetError;
use nearprint_profile::ProfileError;
use nearprint_storage::{ErrorKind, StorageError, one_line};
use nearprint_store::StoreError;
use nearprint_tasks::TaskError;

/// An error of a night's work. Each names the file, column, row or key it is about and what to do; [`kind`](Self::kind) says what an
/// operator's scheduler should make of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// The place that nights lie in.
    #[error(
        "no documents at {url}: there is no such place at all: check `documents`, and whether its disk is mounted; nothing was read or \
         written"
    )]
    NightsMissing {
        /// Where it was looked for.
        url: String,
    },
    /// A night that has no documents, though there is a place for nights.
    #[error("no documents at {url}: {there}: run it again when the crawl has arrived; nothing was read or written")]
    NightMissing {
        /// Where they were looked for.
        url: String,
        /// What is there instead.
        there: String,
    },
    /// More unusable rows than allowed.
    #[error(
        "{n} rows cannot be used, {allowed} allowed; {example}: mend the rows or raise max_bad_rows to quarantine them"
    )]
    TooManyBadRows {
        /// Unusable rows.
        n: u64,
        /// The limit.
        allowed: u64,
        /// File, row and reason of the first, or of one of the first.
        example: String,
    },
    /// More pairs than allowed.
    #[error("more than {max_pairs} pairs: raise max_pairs, lower max_distance, or write a forest")]
    TooManyPairs {
        /// The limit.
        max_pairs: u64,
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
    /// A configuration that cannot be run.
    #[error("{key}: {reason}")]
    Config {
        /// The key or flag.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A request that contradicts the state of the store.
    #[error("{reason}")]
    Usage {
        /// What was asked, and what to do.
        reason: String,
    },
    /// Another run changed the store meanwhile, or an input changed; the next try may succeed.
    #[error("{reason}: try again")]
    TryAgain {
        /// What happened.
        reason: String,
    },
    /// The memory limit is too small, or spilling failed.
    #[error("{reason}: raise --memory-limit or free space in --spill-dir")]
    Resources {
        /// Who asked for how much.
        reason: String,
    },
    /// Too little room on the disk of the temporary files.
    #[error(
        "{}: {needed} bytes are needed for temporary files, {free} are free: free some, name another --spill-dir, or set preflight = false in [resources]",
        path.display()
    )]
    NoSpace {
        /// The spill folder.
        path: PathBuf,
        /// Bytes, about.
        needed: u64,
        /// Bytes.
        free: u64,
    },
    /// The spill files of the reduce would grow past what they may take.
    #[error("{stage}: the spill files reach --max-spill: raise it, or --memory-limit and --reduce-memory")]
    SpillLimit {
        /// The stage that spilled.
        stage: &'static str,
    },
    /// Another error of this list, as several tasks that share it tell it.
    #[error("{message}")]
    Told {
        /// Its kind.
        kind: ErrorKind,
        /// What it says.
        message: String,
    },
    /// A defect of nearprint.
    #[error("internal error in {stage}: {reason}: please report it")]
    Internal {
        /// The stage that failed.
        stage: &'static str,
        /// What it said.
        reason: String,
    },
    /// A profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The join.
    #[error(transparent)]
    Join(#[from] nearprint_join::JoinError),
    /// Documents and datasets.
    #[error(transparent)]
    Dataset(DatasetError),
    /// A task, or the query batch.
    #[error(transparent)]
    Task(TaskError),
    /// The store.
    #[error(transparent)]
    Store(StoreError),
    /// A place.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<DatasetError> for PipelineError {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Storage(error) => Self::Storage(error),
            other => Self::Dataset(other),
        }
    }
}

impl From<StoreError> for PipelineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Dataset(error) => Self::Dataset(error),
            StoreError::Storage(error) => Self::Storage(error),
            other => Self::Store(other),
        }
    }
}

impl From<TaskError> for PipelineError {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Dataset(error) => Self::Dataset(error),
            TaskError::Storage(error) => Self::Storage(error),
            other => Self::Task(other),
        }
    }
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, PipelineError>;

impl PipelineError {
    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NightsMissing { .. } | Self::NightMissing { .. } => ErrorKind::InputMissing,
            Self::TooManyBadRows { .. } | Self::TooManyPairs { .. } => ErrorKind::BadData,
            Self::Refused { .. } | Self::Config { .. } => ErrorKind::Config,
            Self::OutputExists { .. } => ErrorKind::OutputExists,
            Self::Usage { .. } | Self::Join(_) | Self::Profile(ProfileError::Width { .. }) => ErrorKind::Usage,
            Self::Profile(_) => ErrorKind::Config,
            Self::TryAgain { .. } => ErrorKind::TryAgain,
            Self::Resources { .. } | Self::NoSpace { .. } | Self::SpillLimit { .. } => ErrorKind::LocalIo,
            Self::Told { kind, .. } => *kind,
            Self::Internal { .. } => ErrorKind::Bug,
            Self::Dataset(error) => error.kind(),
            Self::Task(error) => error.kind(),
            Self::Store(error) => error.kind(),
            Self::Storage(error) => error.kind(),
        }
    }

    /// Whether there are no documents to read, which a scheduler may take for a night on which nothing was crawled.
    #[must_use]
    pub fn is_without_documents(&self) -> bool {
        let none = |error: &DatasetError| {
            matches!(error, DatasetError::DocumentsMissing { .. } | DatasetError::NoDocuments { .. })
        };
        matches!(self, Self::NightMissing { .. }) || matches!(self, Self::Dataset(error) if none(error))
    }

    /// For the way through DataFusion; [`of_datafusion`](Self::of_datafusion) takes it out again.
    pub(crate) fn into_datafusion(self) -> datafusion_common::DataFusionError {
        datafusion_common::DataFusionError::External(Box::new(self))
    }

    pub(crate) fn of_datafusion(stage: &'static str, error: datafusion_common::DataFusionError) -> Self {
        use datafusion_common::DataFusionError as D;
        // The only trace of the limit is the name of DataFusion's own setting for it.
        if error.to_string().contains("max_temp_directory_size") {
            return Self::SpillLimit { stage };
        }
        match error {
            D::ArrowError(inner, _) => match *inner {
                arrow::error::ArrowError::IoError(_, source) => {
                    Self::Storage(StorageError::Io { path: "spill file".into(), source })
                }
                other => Self::Internal { stage, reason: one_line(&other.to_string()) },
            },
            D::External(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Internal { stage, reason: one_line(&other.to_string()) },
            },
            D::Context(_, inner) | D::Diagnostic(_, inner) => Self::of_datafusion(stage, *inner),
            D::Shared(inner) => match std::sync::Arc::try_unwrap(inner) {
                Ok(inner) => Self::of_datafusion(stage, inner),
                Err(shared) => Self::of_shared(stage, &shared),
            },
            D::ResourcesExhausted(reason) => Self::Resources { reason: format!("{stage}: {}", one_line(&reason)) },
            D::IoError(source) => Self::Storage(StorageError::Io { path: "spill file".into(), source }),
            other => Self::Internal { stage, reason: one_line(&other.to_string()) },
        }
    }

    /// One of our own errors, somewhere in one that several tasks hold: told anew.
    fn of_shared(stage: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(cause) = next {
            if let Some(own) = cause.downcast_ref::<Self>() {
                return Self::Told { kind: own.kind(), message: own.to_string() };
            }
            next = cause.source();
        }
        Self::Internal { stage, reason: one_line(&error.to_string()) }
    }
}
