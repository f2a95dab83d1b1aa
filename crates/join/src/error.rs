//! What can go wrong in a join.

/// Why a table plan, or a join, cannot be made.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The plan asks for fingerprints wider than the type that holds them, or of no bits.
    #[error("fingerprints of {bits} bits do not fit a {type_bits}-bit value: use 1 to {type_bits} bits")]
    Bits {
        /// Bits asked for.
        bits: u32,
        /// Bits of the type.
        type_bits: u32,
    },
    /// A plan must have more blocks than bits that may differ, and no more blocks than bits.
    #[error("{blocks} blocks cannot cover max_distance {max_distance} on {bits} bits: use {} to {bits} blocks", max_distance + 1)]
    Blocks {
        /// Blocks asked for.
        blocks: u32,
        /// The largest distance that counts.
        max_distance: u32,
        /// Bits to cut into blocks.
        bits: u32,
    },
    /// More rows than a 32-bit row number can name.
    #[error("{rows} query rows are more than one batch holds ({}): split the night's documents", u32::MAX)]
    TooManyRows {
        /// Rows given.
        rows: usize,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, JoinError>;
