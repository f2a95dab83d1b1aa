//! The readings of a file.

use serde::{Deserialize, Serialize};

use nearprint_storage::row_number;

/// A reading of a file of documents. A file whose spans do not join is read again, and the rows and notes of the first
/// reading then count for nothing, whether they come before those of the second or after them.
///
/// Rows and notes carry the reading as one number. Its order is that of the files, then of the readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileReading(u32);

/// The number of times that a file may be read.
const READINGS: u32 = 2;

impl FileReading {
    /// Returns the first reading of the file at a position among the night's files.
    ///
    /// # Panics
    /// Panics if there are more readings of the files before it than a `u32` counts.
    #[must_use]
    pub fn first(file: usize) -> Self {
        Self(row_number(file * READINGS as usize))
    }

    /// Returns the second reading of the file at a position among the night's files.
    ///
    /// # Panics
    /// Panics if there are more readings of the files before it than a `u32` counts.
    #[must_use]
    pub fn again(file: usize) -> Self {
        Self(row_number(file * READINGS as usize + 1))
    }

    /// Returns the position of the file among the night's files.
    #[must_use]
    pub fn file(self) -> usize {
        (self.0 / READINGS) as usize
    }
}

impl From<u32> for FileReading {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl From<FileReading> for u32 {
    fn from(reading: FileReading) -> Self {
        reading.0
    }
}

#[cfg(test)]
mod tests {
    use super::FileReading;

    #[test]
    fn readings_are_in_the_order_of_their_files_and_numbers_keep_them_apart() {
        let all: Vec<FileReading> =
            (0..3).flat_map(|file| [FileReading::first(file), FileReading::again(file)]).collect();
        assert!(all.is_sorted_by(|a, b| a < b && u32::from(*a) < u32::from(*b)));
        for (i, &reading) in all.iter().enumerate() {
            assert_eq!(FileReading::from(u32::from(reading)), reading);
            assert_eq!(reading.file(), i / 2);
        }
    }
}
