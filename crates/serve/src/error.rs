//! The errors of the server and of its answers.

use std::net::SocketAddr;
use std::path::PathBuf;

use nearprint_explain::ExplainError;
use nearprint_lookup::LookupError;
use nearprint_storage::ErrorKind;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is reachable from other machines, and there is no token.
    #[error("`listen` {listen}: others can reach this address: give `token_file`, or listen on 127.0.0.1")]
    NoToken {
        /// The address.
        listen: SocketAddr,
    },
    /// The server cannot listen on the address.
    #[error("`listen` {listen}: {source}: choose another address or port")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The token file cannot be used.
    #[error("`token_file` {}: {reason}", file.display())]
    Token {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and the remedy.
        reason: &'static str,
    },
    /// The token file cannot be read.
    #[error("`token_file` {}: {source}", file.display())]
    TokenFile {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A question cannot be understood.
    #[error("{reason}")]
    Asked {
        /// What is wrong with it, and what to write instead.
        reason: String,
    },
    /// The texts of documents are needed, and the server does not know where they are.
    #[error("the server knows no documents: start it with `--config` and a job file that names them")]
    NoTexts,
    /// A document has no text where the job file looks for it.
    #[error("no such document in {dt}: '{}'; or its file in {documents} was moved or deleted", id.escape_debug())]
    NoSuchDocument {
        /// The id.
        id: String,
        /// The night.
        dt: String,
        /// The place that was searched.
        documents: String,
    },
    /// The store cannot answer.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The documents cannot be read or compared.
    #[error(transparent)]
    Explain(#[from] ExplainError),
    /// nearprint has a defect.
    #[error("internal error in {stage}: {reason}: please report it")]
    Internal {
        /// The stage that failed.
        stage: &'static str,
        /// The cause.
        reason: String,
    },
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, ServeError>;

impl ServeError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoToken { .. } | Self::Asked { .. } | Self::NoTexts => ErrorKind::Usage,
            Self::Token { .. } => ErrorKind::Config,
            Self::Listen { source, .. } | Self::TokenFile { source, .. } => kind_of(source),
            Self::NoSuchDocument { .. } => ErrorKind::InputMissing,
            Self::Lookup(error) => error.kind(),
            Self::Explain(error) => error.kind(),
            Self::Internal { .. } => ErrorKind::Bug,
        }
    }
}

fn kind_of(error: &std::io::Error) -> ErrorKind {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::IsADirectory => ErrorKind::InputMissing,
        std::io::ErrorKind::PermissionDenied => ErrorKind::Permission,
        _ => ErrorKind::LocalIo,
    }
}
