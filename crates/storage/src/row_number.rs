//! Row numbers in 32 bits, and file sizes as lengths in memory.

/// Sizes of files and row groups have 64 bits, so lengths in memory must have as many.
const _: () = assert!(usize::BITS >= 64, "nearprint needs a machine of 64 bits");

/// Converts the number of a row, or a count of rows, to 32 bits.
///
/// # Panics
/// Panics if `n` is larger than 2^32 − 1, because the result would name another row. The panic ends the command with an
/// internal error. It is a defect if that happens: a query batch and a run are known to have fewer rows, because
/// collecting the one and reading the other checks that, and existing fingerprints are mapped a few million at once.
#[allow(clippy::cast_possible_truncation, reason = "asserted")]
pub fn row_number(n: usize) -> u32 {
    assert!(n <= u32::MAX as usize, "row {n} has no number of 32 bits, and all rows were counted before");
    n as u32
}

/// Converts a length in a file to a length in memory.
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
