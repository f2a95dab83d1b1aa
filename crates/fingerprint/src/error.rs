//! The errors of the crate: a hash that does not fit the fingerprint, and a failure to read a sketch back from bytes.

use thiserror::Error;

use crate::feature_hash::FeatureHash;

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

    /// The feature hash reproduces a published program, and this build has no such hashes.
    #[error(
        "the feature hash {feature_hash:?} is not in this build: build with the cargo feature `published`, or use another hash"
    )]
    NotBuilt {
        /// The configured hash.
        feature_hash: FeatureHash,
    },

    /// The feature hash cannot fill a fingerprint of this width.
    #[error(
        "the feature hash {feature_hash:?} has no {bits} bits: use a fingerprint of {widths:?} bits, or another hash"
    )]
    Width {
        /// The configured hash.
        feature_hash: FeatureHash,
        /// The number of bits of the fingerprint.
        bits: u32,
        /// The widths that the hash can fill.
        widths: &'static [u32],
    },
}
