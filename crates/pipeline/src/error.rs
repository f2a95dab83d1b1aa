//! Errors between the documents and the published night.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nearprint_delta::DeltaError;
use nearprint_documents::DocumentsError;
use nearprint_parquet::DatasetError;
use nearprint_profile::ProfileError;
use nearprint_storage::{ErrorKind, StorageError, foreign};
use nearprint_store::{Store, StoreError};
use nearprint_tasks::TaskError;

/// An error of a night's work. Its message names the file, column, row or key that it is about, and says what the user
/// should do. [`kind`](Self::kind) tells an operator's scheduler how to treat it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// The place of the nights is missing.
    #[error(
        "no documents at {url}: there is no such place at all: check its name, and whether its disk is mounted; nothing was read or \
         written"
    )]
    NightsMissing {
        /// The place where the nights were expected.
        url: String,
    },
    /// A night has no documents, though there is a place for nights.
    #[error("no documents at {url}: {there}: run it again when the crawl has arrived; nothing was read or written")]
    NightMissing {
        /// The place where the documents were expected.
        url: String,
        /// The content of the place of nights instead.
        there: String,
    },
    /// A night is not published.
    #[error(
        "no published night {dt} in {store} ({}): check the date, or run the night first; `nearprint store info` lists all nights",
        newest_of(newest)
    )]
    NightNotPublished {
        /// The store.
        store: String,
        /// The night, or the nights from one to another.
        dt: String,
        /// The newest nights of the store.
        newest: Vec<String>,
    },
    /// More rows are unusable than allowed.
    #[error(
        "{} cannot be used, {allowed} allowed{}; {example}: {remedy}, or raise max_bad_rows to quarantine them",
        rows(*n), reasons(by_reason)
    )]
    TooManyBadRows {
        /// The number of unusable rows.
        n: u64,
        /// The limit.
        allowed: u64,
        /// The file, row and reason of the first unusable row, or of one of the first.
        example: String,
        /// The numbers of the unusable rows by reason.
        by_reason: BTreeMap<String, u64>,
        /// Files, rows and reasons of the first unusable rows.
        examples: Vec<String>,
        /// What the user should do.
        remedy: Box<str>,
        /// Whether files are damaged, or no row at all can be used. Then more allowed rows are no remedy.
        is_damage: bool,
    },
    /// There are more pairs than allowed.
    #[error("more than {max_pairs} pairs: raise max_pairs, lower max_distance, or write a forest")]
    TooManyPairs {
        /// The limit.
        max_pairs: u64,
    },
    /// Something with other content stands at the place of a result.
    #[error("{url}: {reason}")]
    OutputExists {
        /// The place.
        url: String,
        /// Its content, and the action that the user should take.
        reason: String,
    },
    /// A night is published from the same inputs and configuration, and from other earlier nights than there are now.
    #[error(
        "{output}: {dt} is published from other earlier nights than there are now, so it is stale: `nearprint run --config FILE --stale` makes all stale nights anew, and `replace` this one"
    )]
    StaleNight {
        /// The root of the results.
        output: String,
        /// The night.
        dt: String,
    },
    /// The configuration cannot be run.
    #[error("{key}: {reason}")]
    Config {
        /// The key or flag.
        key: String,
        /// The fault of its value.
        reason: String,
    },
    /// The request contradicts the state of the store.
    #[error("{reason}")]
    Usage {
        /// The request, and the action that the user should take.
        reason: String,
    },
    /// Another run changed the store meanwhile, or an input changed. The next try may succeed.
    #[error("{reason}: try again")]
    TryAgain {
        /// The event that made the run fail.
        reason: String,
    },
    /// An input file is not the one that a published night was made from.
    #[error("{url}: {reason}: restore the file, or publish the night again with `nearprint run --replace`")]
    InputChanged {
        /// The file.
        url: String,
        /// The difference.
        reason: String,
    },
    /// The rows of a night's files are not those that the night decided about.
    #[error("{dt}: {reason}")]
    DoesNotAddUp {
        /// The night.
        dt: String,
        /// The numbers, and what the user should do.
        reason: String,
    },
    /// The memory limit is too small.
    #[error("{reason}: raise `memory_limit`")]
    Resources {
        /// The memory that is needed, and its purpose.
        reason: String,
    },
    /// The sorts of the reduce have less memory than they need at least.
    #[error("{stage}: the sorts need more memory than they may take: raise `reduce_memory`")]
    ReduceMemory {
        /// The stage that sorts.
        stage: &'static str,
    },
    /// A disk has too little room for what a night writes there.
    #[error(
        "{}: {needed} bytes are needed for {what}, {free} are free: free some, name another {keys}, or set preflight = false in [resources]",
        path.display()
    )]
    NoSpace {
        /// A folder on the disk.
        path: PathBuf,
        /// What the night writes there.
        what: String,
        /// The keys that name the places of it.
        keys: String,
        /// The number of bytes that are needed, about.
        needed: u64,
        /// The number of bytes that are free.
        free: u64,
    },
    /// The spill files of the reduce would grow past their limit.
    #[error("{stage}: the spill files reach `max_spill`: raise it, or `memory_limit` and `reduce_memory`")]
    SpillLimit {
        /// The stage that spilled.
        stage: &'static str,
    },
    /// Another error of this list. Several tasks share it, so only its kind and message are passed on.
    #[error("{message}")]
    Told {
        /// The kind of the error.
        kind: ErrorKind,
        /// The message of the error.
        message: String,
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
    Join(#[from] nearprint_join::JoinError),
    /// The documents at a place cannot be used.
    #[error(transparent)]
    Documents(DocumentsError),
    /// The log of a published table is damaged.
    #[error(transparent)]
    Delta(DeltaError),
    /// A document file or a dataset cannot be read.
    #[error(transparent)]
    Dataset(DatasetError),
    /// A task, or the query batch, failed.
    #[error(transparent)]
    Task(Box<TaskError>),
    /// The store refused a request, or is damaged.
    #[error(transparent)]
    Store(StoreError),
    /// A place cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

fn rows(n: u64) -> String {
    if n == 1 { "1 row".to_owned() } else { format!("{n} rows") }
}

fn reasons(by_reason: &BTreeMap<String, u64>) -> String {
    let named: Vec<String> = by_reason.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// The number of nights that a message names.
const NAMED_NIGHTS: usize = 3;

fn newest_of(newest: &[String]) -> String {
    if newest.is_empty() { "it has no night".to_owned() } else { format!("its newest: {}", newest.join(", ")) }
}

impl From<DatasetError> for PipelineError {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Storage(error) => Self::Storage(error),
            other => Self::Dataset(other),
        }
    }
}

impl From<DeltaError> for PipelineError {
    fn from(error: DeltaError) -> Self {
        match error {
            DeltaError::Dataset(error) => error.into(),
            other => Self::Delta(other),
        }
    }
}

impl From<DocumentsError> for PipelineError {
    fn from(error: DocumentsError) -> Self {
        match error {
            DocumentsError::Dataset(error) => error.into(),
            other => Self::Documents(other),
        }
    }
}

impl From<StoreError> for PipelineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Delta(error) => error.into(),
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
            other => Self::Task(Box::new(other)),
        }
    }
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, PipelineError>;

impl PipelineError {
    /// Makes the error of a night that a store does not have.
    pub fn not_published(store: &Store, dt: &str) -> Self {
        let newest = store.nights().iter().rev().take(NAMED_NIGHTS).map(|night| night.dt.clone()).collect();
        Self::NightNotPublished { store: store.folder().url().to_owned(), dt: dt.to_owned(), newest }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NightsMissing { .. } | Self::NightMissing { .. } | Self::NightNotPublished { .. } => {
                ErrorKind::InputMissing
            }
            Self::TooManyBadRows { .. }
            | Self::TooManyPairs { .. }
            | Self::InputChanged { .. }
            | Self::DoesNotAddUp { .. } => ErrorKind::BadData,
            Self::Config { .. } => ErrorKind::Config,
            Self::OutputExists { .. } | Self::StaleNight { .. } => ErrorKind::OutputExists,
            Self::Usage { .. } | Self::Join(_) | Self::Profile(ProfileError::Width { .. }) => ErrorKind::Usage,
            Self::Profile(_) => ErrorKind::Config,
            Self::TryAgain { .. } => ErrorKind::TryAgain,
            Self::Resources { .. } | Self::ReduceMemory { .. } | Self::NoSpace { .. } | Self::SpillLimit { .. } => {
                ErrorKind::LocalIo
            }
            Self::Told { kind, .. } => *kind,
            Self::Internal { .. } => ErrorKind::Bug,
            Self::Documents(error) => error.kind(),
            Self::Delta(error) => error.kind(),
            Self::Dataset(error) => error.kind(),
            Self::Task(error) => error.kind(),
            Self::Store(error) => error.kind(),
            Self::Storage(error) => error.kind(),
        }
    }

    /// Returns whether there are no documents to read. A scheduler may take this for a night on which nothing was
    /// crawled.
    #[must_use]
    pub fn is_without_documents(&self) -> bool {
        let none = |error: &DocumentsError| {
            matches!(
                error,
                DocumentsError::DocumentsMissing { .. }
                    | DocumentsError::EmptyList { .. }
                    | DocumentsError::NoDocuments { .. }
            )
        };
        matches!(self, Self::NightMissing { .. }) || matches!(self, Self::Documents(error) if none(error))
    }

    /// Returns whether the night's documents are not there yet: there are none, or a file that marks them as complete is
    /// missing. The same run may succeed later.
    #[must_use]
    pub fn is_late(&self) -> bool {
        match self {
            Self::Documents(DocumentsError::NoMarker { .. }) => true,
            // An object store has no empty folders: before the first crawl, the place of nights is not there.
            Self::NightsMissing { url } => url.contains("://"),
            _ => self.is_without_documents(),
        }
    }

    /// Wraps the error for the way through DataFusion. [`of_datafusion`](Self::of_datafusion) unwraps it.
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
                other => Self::Internal { stage, reason: foreign(&other) },
            },
            D::External(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Internal { stage, reason: foreign(&other) },
            },
            D::Context(_, inner) | D::Diagnostic(_, inner) => Self::of_datafusion(stage, *inner),
            D::Shared(inner) => match std::sync::Arc::try_unwrap(inner) {
                Ok(inner) => Self::of_datafusion(stage, inner),
                Err(shared) => Self::of_shared(stage, &shared),
            },
            D::ResourcesExhausted(reason) => {
                tracing::debug!(reason, "sort");
                Self::ReduceMemory { stage }
            }
            D::IoError(source) => Self::Storage(StorageError::Io { path: "spill file".into(), source }),
            other => Self::Internal { stage, reason: foreign(&other) },
        }
    }

    /// Builds an error from one that several tasks hold. If one of our own errors is among its causes, its kind and
    /// message are kept.
    fn of_shared(stage: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(cause) = next {
            if let Some(own) = cause.downcast_ref::<Self>() {
                return Self::Told { kind: own.kind(), message: own.to_string() };
            }
            next = cause.source();
        }
        Self::Internal { stage, reason: foreign(error) }
    }
}
