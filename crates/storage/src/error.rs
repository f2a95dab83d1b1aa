//! What can go wrong with a place, and what a scheduler should make of an error.

use std::path::PathBuf;

use crate::redact::redact;

/// An error of a place on disk or S3.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
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
    /// Something stands where a file could, and cannot be read as one.
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
    /// A place that cannot be named so, or lies where it must not.
    #[error("{reason}")]
    Usage {
        /// What was asked, and what to do.
        reason: String,
    },
    /// What is there changed meanwhile, or is held by another; the next try may succeed.
    #[error("{reason}: try again")]
    TryAgain {
        /// What happened.
        reason: String,
    },
    /// An object store did not do what was asked.
    #[error("cannot {action} {url}: {}", redact(&innermost(source)))]
    ObjectStore {
        /// Read, write, list …
        action: &'static str,
        /// The object.
        url: String,
        /// Why.
        source: object_store::Error,
    },
    /// A local file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A defect of nearprint.
    #[error("internal error in {stage}: {reason}: please report it")]
    Internal {
        /// The stage that failed.
        stage: &'static str,
        /// What it said.
        reason: String,
    },
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
pub type Result<T> = std::result::Result<T, StorageError>;

/// What keeps credentials from being had; the message holds none.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(pub String);

impl StorageError {
    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InputMissing { .. } => ErrorKind::InputMissing,
            Self::BadFile { .. } | Self::Table { .. } | Self::NotUtf8 { .. } => ErrorKind::BadData,
            Self::OutputExists { .. } => ErrorKind::OutputExists,
            Self::Config { .. } => ErrorKind::Config,
            Self::Usage { .. } => ErrorKind::Usage,
            Self::TryAgain { .. } => ErrorKind::TryAgain,
            Self::ObjectStore { source, .. } => store_kind(source),
            Self::Io { source, .. } => io_kind(source.kind()),
            Self::Internal { .. } => ErrorKind::Bug,
        }
    }

    pub(crate) fn bad_file(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::BadFile { file: file.into(), reason: one_line(&reason.to_string()) }
    }

    /// The error of a local file.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }

    pub(crate) fn store(action: &'static str, url: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let url = url.into();
        move |source| Self::ObjectStore { action, url, source }
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

/// The content of an XML element.
pub(crate) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
}

/// The text of a file, without a byte order mark.
///
/// # Errors
/// [`StorageError::NotUtf8`].
pub fn utf8<'a>(file: &str, content: &'a [u8]) -> Result<&'a str> {
    let not_utf8 = |e: std::str::Utf8Error| {
        let line = 1 + content[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        StorageError::NotUtf8 { file: file.to_owned(), line }
    };
    let text = std::str::from_utf8(content).map_err(not_utf8)?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The text with each run of white space as one blank.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
