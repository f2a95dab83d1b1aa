//! Errors of places, and how a scheduler should react to them.

use std::path::PathBuf;

use crate::redact::redact;
use crate::table_format::TableFormat;

/// An error of a place on disk or S3.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// A place that must have input has none.
    #[error("no {what} at {url}: {remedy}")]
    InputMissing {
        /// The kind of input that was expected.
        what: &'static str,
        /// The place that was listed.
        url: String,
        /// What the user should do.
        remedy: &'static str,
    },
    /// Something that looks like a file cannot be read as one.
    #[error("{file}: {reason}: restore the file or remove it from the input")]
    BadFile {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder belongs to a table, whose Parquet files hold more rows than the table does.
    #[error(
        "{url} is {format} table: rows that it removed still stand in its files, so these are not read as they are: {}",
        format.remedy()
    )]
    Table {
        /// The folder of the table.
        url: String,
        /// The format of the table.
        format: TableFormat,
    },
    /// A text file is not encoded as UTF-8.
    #[error("{file}: line {line} is not UTF-8: save it as UTF-8")]
    NotUtf8 {
        /// The file.
        file: String,
        /// The first line that is not UTF-8, counted from 1.
        line: usize,
    },
    /// The place for a result holds other content already.
    #[error("{url}: {reason}")]
    OutputExists {
        /// The place of the result.
        url: String,
        /// What is there, and what the user should do.
        reason: String,
    },
    /// A setting has a value that cannot be used.
    #[error("{key}: {reason}")]
    Config {
        /// The key or flag of the setting.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A place is named in a way that is not supported, or lies where it must not.
    #[error("{reason}")]
    Usage {
        /// What was asked for, and what the user should do.
        reason: String,
    },
    /// Something changed in the meantime, or another process holds it. The next try may succeed.
    #[error("{reason}: try again")]
    TryAgain {
        /// What happened.
        reason: String,
    },
    /// A request to an object store failed.
    #[error("cannot {action} {url}: {}", redact(&innermost(source)))]
    ObjectStore {
        /// The verb for the message: read, write, list …
        action: &'static str,
        /// The object or prefix that the request was about.
        url: String,
        /// The cause.
        source: object_store::Error,
    },
    /// An operation on a local file failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// nearprint has a defect.
    #[error("internal error in {stage}: {reason}: please report it")]
    Internal {
        /// The stage that failed.
        stage: &'static str,
        /// The cause.
        reason: String,
    },
}

/// The class of an error, which tells a scheduler how to react. Each kind has an exit code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The command line is wrong, or the state of the store forbids the request.
    Usage,
    /// The input cannot be used.
    BadData,
    /// The input does not exist.
    InputMissing,
    /// An object store does not answer.
    StoreUnavailable,
    /// nearprint has a defect.
    Bug,
    /// The output exists with other content.
    OutputExists,
    /// Local files, the disk or memory failed.
    LocalIo,
    /// The cause will pass.
    TryAgain,
    /// Permission or credentials are missing.
    Permission,
    /// The job file is wrong, or the store does not fit it.
    Config,
}

/// The kinds and their names.
const NAMES: [(ErrorKind, &str); 10] = [
    (ErrorKind::Usage, "usage"),
    (ErrorKind::BadData, "bad_data"),
    (ErrorKind::InputMissing, "input_missing"),
    (ErrorKind::StoreUnavailable, "store_unavailable"),
    (ErrorKind::Bug, "bug"),
    (ErrorKind::OutputExists, "output_exists"),
    (ErrorKind::LocalIo, "local_io"),
    (ErrorKind::TryAgain, "try_again"),
    (ErrorKind::Permission, "permission"),
    (ErrorKind::Config, "config"),
];

impl ErrorKind {
    /// Returns the name that programs read, such as `bad_data`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|known| known.0 == self).map_or("bug", |known| known.1)
    }

    /// Returns the kind that has a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|known| known.1 == name).map(|known| known.0)
    }
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, StorageError>;

/// The reason why there are no credentials. The message never holds a secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(pub String);

impl StorageError {
    /// Returns the kind of the error.
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

    /// Returns whether valid credentials, or this user, lack the permission. Credentials that are missing, wrong or
    /// expired are another matter: the same request may pass later.
    pub(crate) fn is_forbidden(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
            Self::ObjectStore { source: object_store::Error::Generic { store: "LocalFileSystem", source }, .. } => {
                io_cause(source.as_ref()).is_some_and(|cause| cause.kind() == std::io::ErrorKind::PermissionDenied)
            }
            Self::ObjectStore { source, .. } => innermost(source).contains("AccessDenied"),
            _ => false,
        }
    }

    /// Returns the place of an error that is about the content of a file or its absence, and what is wrong there. The
    /// reason does not repeat the place.
    #[must_use]
    pub fn place_and_reason(&self) -> Option<(String, String)> {
        match self {
            Self::BadFile { file, reason } => Some((file.clone(), reason.clone())),
            Self::ObjectStore { action, url, source } => match self.kind() {
                ErrorKind::InputMissing => Some((url.clone(), "it is gone".to_owned())),
                _ => Some((url.clone(), format!("cannot {action} it: {}", redact(&innermost(source))))),
            },
            Self::Io { path, source } => Some((path.display().to_string(), one_line(&source.to_string()))),
            _ => None,
        }
    }

    pub(crate) fn bad_file(file: impl Into<String>, reason: impl ToString) -> Self {
        Self::BadFile { file: file.into(), reason: one_line(&reason.to_string()) }
    }

    /// Returns a function that wraps an I/O error on `path`.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }

    pub(crate) fn store(action: &'static str, url: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let url = url.into();
        move |source| Self::ObjectStore { action, url, source }
    }
}

/// Classifies an I/O error. If a file stands in the place of a folder, or a folder in the place of a file, another try
/// would fail in the same way, so that is a usage error.
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

/// Classifies an error by its text. object_store reports refusals of a LIST, and those that servers answer with 400, as
/// generic errors, so only the text tells them apart.
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

/// The remedy for each error code with which a server may refuse a request.
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

/// Describes an error with all its causes on one line, without repeating what an outer message already says. If an S3
/// server sent XML, the description is its code and message.
fn innermost(error: &object_store::Error) -> String {
    if let object_store::Error::Generic { store: "LocalFileSystem", source } = error
        && let Some(cause) = io_cause(source.as_ref())
    {
        return foreign(cause);
    }
    let mut text = foreign(error);
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let said = foreign(cause);
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

/// Returns the content of an XML element.
pub(crate) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
}

/// Decodes the content of a text file, without its byte order mark.
///
/// # Errors
/// [`StorageError::NotUtf8`] if the content is not UTF-8.
pub fn utf8<'a>(file: &str, content: &'a [u8]) -> Result<&'a str> {
    let not_utf8 = |e: std::str::Utf8Error| {
        let line = 1 + content[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        StorageError::NotUtf8 { file: file.to_owned(), line }
    };
    let text = std::str::from_utf8(content).map_err(not_utf8)?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Returns what another library says, on one line and without backticks. In messages of nearprint a key stands in
/// backticks, and the command shows it as the flag that sets it; a field that a parser names is no such key.
#[must_use]
pub fn foreign(said: &(impl std::fmt::Display + ?Sized)) -> String {
    one_line(&said.to_string()).replace('`', "'")
}

/// Replaces every stretch of white space in a text with one blank.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
