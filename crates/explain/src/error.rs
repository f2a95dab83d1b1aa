//! The error of this crate.

use nearprint_documents::DocumentsError;
use nearprint_profile::ProfileError;
use nearprint_storage::ErrorKind;

/// An error of an explanation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// There are fewer than two texts.
    #[error("give two texts or more to compare")]
    TooFewTexts,
    /// The profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The texts cannot be read.
    #[error(transparent)]
    Documents(#[from] DocumentsError),
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, ExplainError>;

impl ExplainError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooFewTexts | Self::Profile(ProfileError::Width { .. }) => ErrorKind::Usage,
            Self::Profile(_) => ErrorKind::Config,
            Self::Documents(error) => error.kind(),
        }
    }
}
