//! The token that requests carry.

use std::fmt;
use std::path::Path;

use nearprint_fault::{ErrorKind, Fault, Result, key, words};
use subtle::ConstantTimeEq;

/// A token. It is never shown.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// The shortest token. One that a person makes up is guessed too soon.
const MIN_BYTES: usize = 16;

impl Token {
    /// Reads a token from a file. White space around it does not count.
    ///
    /// # Errors
    /// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the file cannot be read,
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if its content is no token: fewer than 16
    /// characters, or others than visible ASCII.
    pub fn read(file: &Path) -> Result<Self> {
        let named = |what: &dyn fmt::Display| words![key("token_file"), format!(" {}: {what}", file.display())];
        let failed = |source: std::io::Error| Fault::new(kind_of(&source), named(&source)).because(source);
        let token = std::fs::read(file).map_err(failed)?.trim_ascii().to_owned();
        let refused = |reason: &str| Err(Fault::new(ErrorKind::Config, named(&reason)));
        if token.len() < MIN_BYTES {
            return refused("a token has at least 16 characters: make one with `openssl rand -hex 32`");
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return refused(
                "a token is one word of ASCII letters, digits and signs: make one with `openssl rand -hex 32`",
            );
        }
        Ok(Self(token))
    }

    /// Returns whether the value of an `Authorization` header carries this token. The time that this takes tells
    /// nothing about the token but its length.
    pub(crate) fn is_in(&self, authorization: &[u8]) -> bool {
        let (scheme, token) = authorization.split_at(authorization.len().min(SCHEME.len()));
        scheme.eq_ignore_ascii_case(SCHEME) && bool::from(token.ct_eq(&self.0))
    }
}

/// Returns the kind of an error of something that an option of the server names.
pub(crate) fn kind_of(error: &std::io::Error) -> ErrorKind {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::IsADirectory => ErrorKind::InputMissing,
        std::io::ErrorKind::PermissionDenied => ErrorKind::Permission,
        _ => ErrorKind::LocalIo,
    }
}

const SCHEME: &[u8] = b"Bearer ";

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
