//! Faults of places, and what a caller may tell them by.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::StatusCode;
use nearprint_fault::{ErrorKind, Fault, Part, Result, Words, foreign, one_line, words};

use crate::redact::redact;
use crate::runtime::{lack_of_threads, panic_text};

/// Tells the fault of a file that cannot be read as what it should be. Such a file may be passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// The file is damaged, or is not what its name says.
    Damaged,
    /// Its format, or a feature of it, is not read.
    Format,
}

/// Tells the fault of a request to an object store. It says nothing about the content of a file, unless the file is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedRequest;

/// The reason why there are no credentials. The message never holds a secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(pub String);

/// Makes the fault of a file that is damaged, or is not what its name says, by what another library says of it.
pub fn bad_file(file: impl Into<String>, reason: impl ToString) -> Fault {
    damaged_file(file, one_line(&reason.to_string()))
}

/// Makes the fault of a file that is damaged, or is not what its name says.
pub fn damaged_file(file: impl Into<String>, reason: impl Into<Words>) -> Fault {
    Fault::bad_data(file, reason).remedy("restore the file or remove it from the input").about(Unreadable::Damaged)
}

/// Calls a reader. If it panics, that becomes an error of the file.
///
/// # Errors
/// The error of `read`, or [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if it panicked.
pub fn caught<T>(file: &str, read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| Err(panicked(file, &*panic)))
}

/// Makes the fault of a file on which its reader panicked, unless the system gave it no thread.
pub fn panicked(file: &str, panic: &(dyn Any + Send)) -> Fault {
    let damaged = || bad_file(file, format!("the reader failed on it ({})", panic_text(panic)));
    lack_of_threads(panic).unwrap_or_else(damaged)
}

/// Makes the fault of a file or table whose format, or a feature of it, is not read. The reason says what the user should do.
pub fn bad_format(file: impl Into<String>, reason: impl Into<Words>) -> Fault {
    Fault::bad_data(file, reason).about(Unreadable::Format)
}

/// Returns a function that makes the fault of a request to an object store. `action` is the verb for the message: read,
/// write, list …
pub(crate) fn request(action: &'static str, url: impl Into<String>) -> impl FnOnce(object_store::Error) -> Fault {
    let url = url.into();
    move |source| {
        let why = redact(&innermost(&source));
        Fault::new(store_kind(&source), words![format!("cannot {action} "), Part::Place, format!(": {why}")])
            .at(url)
            .because(source)
            .about(FailedRequest)
    }
}

/// Returns whether valid credentials, or this user, lack the permission. Credentials that are missing, wrong or expired are
/// another matter: the same request may pass later.
pub(crate) fn is_forbidden(fault: &Fault) -> bool {
    let is_denied = |error: &std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
    match fault.cause::<object_store::Error>() {
        Some(object_store::Error::Generic { store: "LocalFileSystem", source }) => {
            io_cause(source.as_ref()).is_some_and(is_denied)
        }
        Some(source) => innermost(source).contains("AccessDenied"),
        None => fault.cause().is_some_and(is_denied),
    }
}

/// Returns whether a place refuses to say what it has, and would refuse it again: to this user, or to anybody.
pub(crate) fn is_refused(fault: &Fault) -> bool {
    use object_store::Error as E;
    let refuses = |source: &E| match source {
        // No request can name an object that is there.
        E::InvalidPath { .. } | E::NotSupported { .. } | E::NotImplemented { .. } => true,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => true,
        source => is_refusal(source),
    };
    is_forbidden(fault) || fault.cause().is_some_and(refuses)
}

/// Returns whether a server refused a request for good. Only the texts of a generic error have its answer.
fn is_refusal(error: &object_store::Error) -> bool {
    let refused = |error: &dyn std::error::Error| {
        let text = error.to_string();
        let (_, answer) = text.split_once("status code: ")?;
        let status = StatusCode::from_bytes(answer.get(..3)?.as_bytes()).ok()?;
        let is_error = status.is_client_error() || status.is_server_error();
        Some(is_error && !may_pass(status, element(answer, "Code")))
    };
    std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source())
        .find_map(refused)
        .unwrap_or(false)
}

/// Codes of errors that pass, whatever the status.
pub(crate) const PASSING: [&str; 5] =
    ["InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "OperationAborted"];

/// Returns whether a request that a server answered with the status of an error, and perhaps a code, may succeed later.
pub(crate) fn may_pass(status: StatusCode, code: Option<&str>) -> bool {
    match status {
        StatusCode::NOT_IMPLEMENTED => false,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => true,
        status => status.is_server_error() || code.is_some_and(|code| PASSING.contains(&code)),
    }
}

/// Returns the kind of an error of an object store.
fn store_kind(source: &object_store::Error) -> ErrorKind {
    use object_store::Error as E;
    match source {
        E::NotFound { .. } => ErrorKind::InputMissing,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => ErrorKind::Permission,
        // Of conditional requests alone: who sends one reads the answer. To others a server says so that is busy with a place.
        E::AlreadyExists { .. } | E::Precondition { .. } => ErrorKind::StoreUnavailable,
        E::UnknownConfigurationKey { .. } | E::NotSupported { .. } | E::InvalidPath { .. } => ErrorKind::Config,
        E::Generic { store: "LocalFileSystem", source } => {
            io_cause(source.as_ref()).map_or(ErrorKind::LocalIo, |cause| ErrorKind::of_io(cause.kind()))
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
/// The content is not UTF-8.
pub fn utf8<'a>(file: &str, content: &'a [u8]) -> Result<&'a str> {
    let not_utf8 = |e: std::str::Utf8Error| {
        let line = 1 + content[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        let reason = words![Part::Place, format!(": line {line} is not UTF-8")];
        Fault::bad_data(file, reason).row(line as u64).remedy("save it as UTF-8")
    };
    let text = std::str::from_utf8(content).map_err(not_utf8)?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}
