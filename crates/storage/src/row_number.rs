//! Numbers of rows and values in 32 bits, and sizes of files as lengths in memory.

/// Files and row groups are as long as 64 bits say, and so may be what is in memory.
const _: () = assert!(usize::BITS >= 64, "nearprint needs a machine of 64 bits");

/// The number of a row, or how many rows there are.
///
/// # Panics
/// Past 2^32 − 1. A batch and a run have fewer rows, which collecting the one and reading the other make sure of, and a piece of a
/// dataset has a few million: a larger number would name another row, and so it ends the run with an internal error.
#[allow(clippy::cast_possible_truncation, reason = "asserted")]
pub fn row_number(n: usize) -> u32 {
    assert!(n <= u32::MAX as usize, "row {n} has no number of 32 bits, and all rows were counted before");
    n as u32
}

/// A length in a file as one in memory.
#[allow(clippy::cast_possible_truncation, reason = "asserted above for the machine as such")]
pub const fn in_memory(n: u64) -> usize {
    n as usize
}

#[cfg(test)]
mod tests {
    use super::row_number;

    #[test]
    fn the_largest_row_number_is_itself_and_no_larger_one_is_taken_for_it() {
        assert_eq!(row_number(0xFFFF_FFFF), u32::MAX);
        assert!(std::panic::catch_unwind(|| row_number(0x1_0000_0000)).is_err());
    }
}
