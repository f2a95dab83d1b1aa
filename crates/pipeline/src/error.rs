//! What can go wrong between the documents and the published night.

use std::path::PathBuf;

use crate::storage::{CredentialsError, redact};

/// An error of the edge tier. Each names the file, column, row or key it is about and what to do; [`kind`](Self::kind)
/// says what an operator's scheduler should make of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
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
    /// A document that was asked for by its id.
    #[error("no document '{}' in {documents}: check the id, and --id-column", id.escape_debug())]
    NoSuchDocument {
        /// The id.
        id: String,
        /// Where it was looked for.
        documents: String,
    },
    /// A file that is not what its name says, or is damaged.
    #[error("{file}: {reason}: restore the file or remove it from the input")]
    BadFile {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder whose Parquet files are only part of what it is.
    #[error(
        "{url} is {format} table: rows that it removed still stand in its files, so these are not read as they are: write the rows \
         that count to Parquet files in a folder outside of it, and name that"
    )]
    Table {
        /// The table.
        url: String,
        /// Which, with its article.
        format: &'static str,
    },
    /// A text file in another encoding.
    #[error("{file}: line {line} is not UTF-8: save it as UTF-8")]
    NotUtf8 {
        /// The file.
        file: String,
        /// The first line that is not, from 1.
        line: usize,
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
    /// A column of a type that cannot be read as what it should hold.
    #[error("{file}: column '{column}' is {got}, expected {expected}: cast it or name another column")]
    ColumnType {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// Its type.
        got: String,
        /// The types that can be read.
        expected: &'static str,
    },
    /// Two files disagree in the type of a column.
    #[error("column '{column}' is {got} in {file} but {first} in {first_file}: write the files with one schema")]
    SchemaDrift {
        /// The later file, in the order of paths.
        file: String,
        /// The column.
        column: String,
        /// Its type there.
        got: String,
        /// The first file.
        first_file: String,
        /// The type there.
        first: String,
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
    /// More files that cannot be read than allowed.
    #[error(
        "more than {allowed} files cannot be read; first: {example}: restore or remove them, or raise max_bad_files to pass them over"
    )]
    TooManyBadFiles {
        /// The limit.
        allowed: u64,
        /// The first and what is wrong with it.
        example: String,
    },
    /// A document id that stands in several rows.
    #[error("{n} rows repeat a document id: {examples}: make ids unique, or set on_duplicate_id = \"keep_first\"")]
    RepeatedIds {
        /// Repeated rows.
        n: u64,
        /// Ids, each with two places it is at.
        examples: String,
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
    /// An object store did not do what was asked.
    #[error("cannot {action} {url}: {}", redact(&innermost(source)))]
    Store {
        /// Read, write, list …
        action: &'static str,
        /// The object.
        url: String,
        /// Why.
        source: object_store::Error,
    },
    /// A local file, or the memory or disk that a stage may use.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
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
    /// The configuration of tokenizers.
    #[error(transparent)]
    Tokenize(#[from] nearprint_tokenize::TokenizeError),
    /// The join.
    #[error(transparent)]
    Join(#[from] nearprint_join::JoinError),
}

/// What a scheduler should make of an error; each has an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The command line, or a request that the store's state forbids.
    Usage,
    /// Input that cannot be used.
    BadData,
    /// Input that is not there.
    InputMissing,
    /// A store that does not answer.
    StoreUnavailable,
    /// A defect.
    Bug,
    /// Output that exists with other content.
    OutputExists,
    /// Local files, disk or memory.
    LocalIo,
    /// A passing state.
    TryAgain,
    /// Permission or credentials.
    Permission,
    /// The job file, or a store that does not fit it.
    Config,
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, PipelineError>;

impl PipelineError {
    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InputMissing { .. }
            | Self::NightsMissing { .. }
            | Self::NightMissing { .. }
            | Self::NoSuchDocument { .. } => ErrorKind::InputMissing,
            Self::BadFile { .. }
            | Self::Table { .. }
            | Self::NotUtf8 { .. }
            | Self::Damaged { .. }
            | Self::DamagedCommit { .. }
            | Self::MissingColumn { .. }
            | Self::ColumnType { .. }
            | Self::SchemaDrift { .. }
            | Self::BadRow { .. }
            | Self::TooManyBadRows { .. }
            | Self::TooManyBadFiles { .. }
            | Self::RepeatedIds { .. }
            | Self::TooManyPairs { .. } => ErrorKind::BadData,
            Self::Refused { .. } | Self::Config { .. } | Self::Tokenize(_) => ErrorKind::Config,
            Self::OutputExists { .. } => ErrorKind::OutputExists,
            Self::Usage { .. } | Self::Join(_) => ErrorKind::Usage,
            Self::TryAgain { .. } => ErrorKind::TryAgain,
            Self::Store { source, .. } => store_kind(source),
            Self::Io { source, .. } => io_kind(source.kind()),
            Self::Resources { .. } | Self::NoSpace { .. } | Self::SpillLimit { .. } => ErrorKind::LocalIo,
            Self::Told { kind, .. } => *kind,
            Self::Internal { .. } => ErrorKind::Bug,
        }
    }

    pub(crate) fn bad_file(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::BadFile { file: file.into(), reason: one_line(&reason.to_string()) }
    }

    pub(crate) fn damaged(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::Damaged { file: file.into(), reason: one_line(&reason.to_string()) }
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }

    pub(crate) fn store(action: &'static str, url: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let url = url.into();
        move |source| Self::Store { action, url, source }
    }

    /// An error that Parquet or Arrow reports about a file; one of the store beneath keeps its own kind.
    pub(crate) fn of_parquet(file: &str, error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::bad_file(file, other),
            },
            other => Self::bad_file(file, other),
        }
    }

    pub(crate) fn of_arrow(file: &str, error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<parquet::errors::ParquetError>() {
                Ok(parquet) => Self::of_parquet(file, *parquet),
                Err(other) => Self::bad_file(file, other),
            },
            other => Self::bad_file(file, other),
        }
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
                arrow::error::ArrowError::IoError(_, source) => Self::Io { path: "spill file".into(), source },
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
            D::IoError(source) => Self::Io { path: "spill file".into(), source },
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

/// Where a file stands for a folder, or a folder for a file, another try ends the same way.
fn io_kind(kind: std::io::ErrorKind) -> ErrorKind {
    match kind {
        std::io::ErrorKind::PermissionDenied => ErrorKind::Permission,
        std::io::ErrorKind::NotADirectory | std::io::ErrorKind::IsADirectory => ErrorKind::Usage,
        _ => ErrorKind::LocalIo,
    }
}

fn store_kind(source: &object_store::Error) -> ErrorKind {
    use object_store::Error as E;
    match source {
        E::NotFound { .. } => ErrorKind::InputMissing,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => ErrorKind::Permission,
        E::AlreadyExists { .. } | E::Precondition { .. } => ErrorKind::OutputExists,
        E::UnknownConfigurationKey { .. } | E::NotSupported { .. } | E::InvalidPath { .. } => ErrorKind::Config,
        E::Generic { store: "LocalFileSystem", source } => {
            io_cause(source.as_ref()).map_or(ErrorKind::LocalIo, |cause| io_kind(cause.kind()))
        }
        other => told_kind(&innermost(other)),
    }
}

/// object_store gives refusals of a LIST, and those that servers answer with 400, as generic errors: only their text tells them
/// apart.
fn told_kind(text: &str) -> ErrorKind {
    const DENIED: [&str; 8] = [
        "AccessDenied",
        "SignatureDoesNotMatch",
        "InvalidAccessKeyId",
        "InvalidToken",
        "QuotaExceeded",
        "RequestTimeTooSkewed",
        "ExpiredToken",
        "403 Forbidden",
    ];
    const OTHER_REGION: [&str; 3] =
        ["AuthorizationHeaderMalformed", "PermanentRedirect", "incorrectly configured region"];
    if text.contains("NoSuchBucket") {
        ErrorKind::InputMissing
    } else if OTHER_REGION.iter().any(|sign| text.contains(sign)) {
        ErrorKind::Config
    } else if DENIED.iter().any(|sign| text.contains(sign)) {
        ErrorKind::Permission
    } else {
        ErrorKind::StoreUnavailable
    }
}

/// What to do about a refusal, by the code that a server gives.
const REMEDIES: [(&str, &str); 10] = [
    ("AuthorizationHeaderMalformed", "the bucket is in another region: set region under [s3]"),
    ("PermanentRedirect", "the bucket is in another region: set region under [s3]"),
    ("NoSuchBucket", "there is no such bucket: create it or mend the name"),
    ("InvalidAccessKeyId", "the server does not know this key: use another"),
    ("SignatureDoesNotMatch", "the secret is not that of the key: set it anew"),
    ("QuotaExceeded", "the quota is used up: raise it or delete something"),
    ("RequestTimeTooSkewed", "the clock of this machine is wrong: set it"),
    ("ExpiredToken", "the credentials have expired: renew them"),
    ("TokenRefreshRequired", "the credentials have expired: renew them"),
    ("AccessDenied", "no permission: grant it to these credentials"),
];

fn io_cause<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a std::io::Error> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            return Some(io);
        }
        next = cause.source();
    }
    None
}

/// The whole chain of causes in one line, without repeating what an outer message already says; of an S3 server's XML the
/// code and message.
fn innermost(error: &object_store::Error) -> String {
    if let object_store::Error::Generic { store: "LocalFileSystem", source } = error
        && let Some(cause) = io_cause(source.as_ref())
    {
        return one_line(&cause.to_string());
    }
    let mut text = one_line(&error.to_string());
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let said = one_line(&cause.to_string());
        if cause.is::<CredentialsError>() {
            return said;
        }
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    let Some(code) = element(&text, "Code") else { return text };
    let message = element(&text, "Message").filter(|message| !message.is_empty());
    let message = message.map(|message| format!(" ({message})")).unwrap_or_default();
    match REMEDIES.iter().find(|(known, _)| code == *known) {
        Some((_, remedy)) => format!("{code}{message}: {remedy}"),
        None => format!("{code}{message}"),
    }
}

pub(crate) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
}

/// The text of a file, without a byte order mark.
///
/// # Errors
/// [`PipelineError::NotUtf8`].
pub fn utf8<'a>(file: &str, content: &'a [u8]) -> Result<&'a str> {
    let not_utf8 = |e: std::str::Utf8Error| {
        let line = 1 + content[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        PipelineError::NotUtf8 { file: file.to_owned(), line }
    };
    let text = std::str::from_utf8(content).map_err(not_utf8)?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
