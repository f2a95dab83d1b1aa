//! Exit codes, which follow sysexits.h.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use nearprint_storage::{ErrorKind, Requests};
use nearprint_study::StudyError;

/// The reason why a command ends without success.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub message: String,
    /// The requests to object stores until then, if there were any.
    pub requests: Option<Requests>,
}

pub const USAGE: u8 = 64;
pub const BAD_DATA: u8 = 65;
pub const INPUT_MISSING: u8 = 66;
pub const BUG: u8 = 70;
pub const LOCAL_IO: u8 = 74;
pub const PERMISSION: u8 = 77;
pub const CONFIG: u8 = 78;

impl<E: Into<StudyError>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        Self::new(of_kind(error.kind()), error.to_string())
    }
}

fn of_kind(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Usage => USAGE,
        ErrorKind::BadData => BAD_DATA,
        ErrorKind::InputMissing => INPUT_MISSING,
        ErrorKind::StoreUnavailable => 69,
        ErrorKind::OutputExists => 73,
        ErrorKind::LocalIo => LOCAL_IO,
        ErrorKind::TryAgain => 75,
        ErrorKind::Permission => PERMISSION,
        ErrorKind::Config => CONFIG,
        _ => BUG,
    }
}

impl Failure {
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), requests: None }
    }

    pub fn config(message: impl Into<String>) -> Self {
        Self::new(CONFIG, message)
    }

    /// Describes a failure to read a file. `what` names the file, and the flag or key that gave it.
    pub fn reading(what: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound, PermissionDenied};
        let (code, remedy) = match error.kind() {
            NotFound | NotADirectory => (INPUT_MISSING, ""),
            IsADirectory => (INPUT_MISSING, ": name a file"),
            InvalidData => (BAD_DATA, ": save it as UTF-8"),
            PermissionDenied => (PERMISSION, ""),
            _ => (LOCAL_IO, ""),
        };
        Self::new(code, format!("{what}: {error}{remedy}"))
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    pub fn panicked() -> Self {
        let what = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self::new(BUG, format!("internal error: {what}: please report it"))
    }

    pub fn signalled(name: &str, code: u8) -> Self {
        Self::new(code, format!("stopped by {name} before the end: run it again"))
    }

    /// Writes the message to standard error as one line, and returns it.
    pub fn say(&self) -> String {
        let message: String = self.message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(std::io::stderr(), "nearprint: error: {message}");
        message
    }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Makes every panic leave its message for the single line that reports it, no matter where it is caught.
pub fn keep_panics_to_one_line() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        tracing::debug!(panic = text);
        *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }));
}
