//! The errors of a join.

use nearprint_fault::Fault;

/// The reason why a table plan or a join cannot be made.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The plan asks for fingerprints that are wider than the type that holds them, or that have no bits.
    #[error("fingerprints of {bits} bits do not fit a {type_bits}-bit value: use 1 to {type_bits} bits")]
    Bits {
        /// The number of bits that the plan asks for.
        bits: u32,
        /// The number of bits of the type.
        type_bits: u32,
    },
    /// The distance is so large that any two fingerprints are within it.
    #[error("max_distance {max_distance} is not below the fingerprints' {bits} bits: use a smaller one")]
    Distance {
        /// The distance.
        max_distance: u32,
        /// The number of bits of a fingerprint.
        bits: u32,
    },
    /// The blocks of a plan allow too few differing bits to find every pair, or there are more blocks than bits.
    #[error(
        "tables that allow {prefix_distances:?} differing bits cannot cover max_distance {max_distance} on {bits} bits: \
         use at most {bits} tables, and numbers whose sum plus their count is more than max_distance"
    )]
    Tables {
        /// The number of differing bits that each block allows.
        prefix_distances: Vec<u32>,
        /// The largest distance that counts.
        max_distance: u32,
        /// The number of bits that are cut into blocks.
        bits: u32,
    },
    /// The processor lacks the instructions of a kernel.
    #[error("this processor cannot run the kernel '{name}': leave the choice to the program, or use scalar")]
    Kernel {
        /// The kernel's name.
        name: &'static str,
    },
    /// No kernel has this name.
    #[error("no kernel '{name}': use {}", known.join(", "))]
    NoKernel {
        /// The name.
        name: String,
        /// The names of all kernels.
        known: Vec<&'static str>,
    },
    /// A pair contains a row that has no fingerprint.
    #[error("row {row} is in a pair and has no fingerprint: give the pairs of these very rows")]
    NoFingerprint {
        /// The row.
        row: u32,
    },
    /// The flag of [`HammingJoin::stopped_by`](crate::HammingJoin::stopped_by) was set before the join ended.
    #[error("the join was stopped before its end: start it again")]
    Stopped,
    /// There are more rows than a 32-bit row number can name.
    #[error("{rows} query rows are more than one batch holds ({}): split the night's documents", u32::MAX)]
    TooManyRows {
        /// The number of rows given.
        rows: usize,
    },
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, JoinError>;

impl From<JoinError> for Fault {
    /// The sizes and distances that a join refuses are those of the request.
    fn from(error: JoinError) -> Self {
        Self::usage(error.to_string()).because(error)
    }
}
