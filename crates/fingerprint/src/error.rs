//! What can go wrong: only reading a sketch back from bytes.

use thiserror::Error;

/// An error of this crate.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FingerprintError {
    /// A sketch was read from a byte string of another length.
    #[error("a sketch has 32 bytes, got {got}: is the column a sketch column?")]
    SketchLength {
        /// The length that was found, in bytes.
        got: usize,
    },
}
