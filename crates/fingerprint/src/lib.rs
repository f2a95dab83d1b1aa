//! Turns weighted features into SimHash fingerprints, and tokens into sketches.
//!
//! ```text
//! (feature bytes, weight) ─► feature_hash ─► one vote a bit ─► fingerprint   32, 64 or 128 bits, compared by hamming_distance
//! (token hashes, counts, order)            ─► least hashes   ─► sketch        256 bits, compared by Sketch::distance
//! ```
//!
//! The crate does no I/O, starts no threads and knows nothing of text. A feature is any byte string; its weight is a
//! fixed-point integer in units of 1/65536, so that sums are exact and the order of features, threads or machines
//! cannot change a bit.
//!
//! A text without features has no meaningful fingerprint, and a text with few features collides with others like it.
//! Callers must not pass texts below their floor of distinct features to this crate.
//!
//! ```
//! use nearprint_fingerprint::{FingerprintConfig, hamming_distance, simhash};
//!
//! let config = FingerprintConfig::default();
//! let fingerprint = |text: &str| -> u64 {
//!     simhash(text.split(' ').map(|word| (word.as_bytes(), 1 << 16)), &config)
//! };
//! let a = fingerprint("the quick brown fox jumps over the lazy dog");
//! let b = fingerprint("over the lazy dog the quick brown fox jumps");
//! assert_eq!(hamming_distance(a, b), 0);
//! ```

mod bit_rule;
mod error;
mod feature_hash;
mod fingerprint;
mod judge;
pub mod naive;
mod simhash;
mod sketch;
mod votes;

pub use bit_rule::BitRule;
pub use error::FingerprintError;
pub use feature_hash::FeatureHash;
pub use fingerprint::{Fingerprint, hamming_distance};
pub use judge::{Alike, Judge, JudgeConfig, MAX_COMPARED, Measures, TextWords, Verdict};
pub use simhash::{FingerprintConfig, simhash, simhash_of_hashes};
pub use sketch::{DistinctHashes, MAX_OCCURRENCE, Sketch, sketch, sketch_and_count, sketch_elements, token_hash};
