//! The errors of profiles that cannot be used.

use nearprint_fault::{ErrorKind, Fault};

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// A key of a profile has a value that cannot be used.
    #[error("{key}: {reason}")]
    Config {
        /// The key.
        key: String,
        /// The fault of its value, and the remedy.
        reason: String,
    },
    /// A named profile has no fingerprints of this width.
    #[error("bits {bits}: profile '{name}' has fingerprints of {} bits: choose from these", .widths.iter().map(u32::to_string).collect::<Vec<_>>().join(" or "))]
    Width {
        /// The profile.
        name: String,
        /// The width that was asked for.
        bits: u32,
        /// The widths that it has.
        widths: &'static [u32],
    },
    /// A tokenizer cannot be made from its configuration and files.
    #[error(transparent)]
    Tokenize(#[from] nearprint_tokenize::TokenizeError),
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, ProfileError>;

impl From<ProfileError> for Fault {
    fn from(error: ProfileError) -> Self {
        let fault = match &error {
            ProfileError::Config { key, reason } => Self::config(key, reason.clone()),
            ProfileError::Width { .. } => Self::usage(error.to_string()),
            ProfileError::Tokenize(refused) => {
                let fault = Self::new(ErrorKind::Config, error.to_string());
                match refused.key() {
                    Some(key) => fault.key(key),
                    None => fault,
                }
            }
        };
        fault.because(error)
    }
}
