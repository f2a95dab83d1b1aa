//! The words of a piece of existing documents: they stand in the order of the rows, and the rows of those that are near a query
//! are looked up.

use std::ops::Range;

use nearprint_fault::Result;
use nearprint_join::places_of;
use nearprint_parquet::ParquetFile;
use nearprint_parquet::fingerprint_column::FetchedColumn;
use nearprint_parquet::sketch_column::SketchPages;
use nearprint_storage::row_number;
use nearprint_store::{Words, words_of};

use super::counts::Fetched;
use super::existing_values::ExistingValues;

/// Words of the sketches of some row groups of a file, with the fingerprints of their rows as they were read.
#[derive(Debug)]
pub(super) struct WordsOfRows {
    /// For each word that was asked for, that of every row.
    words: Vec<Vec<u64>>,
    /// The rows without a sketch, ascending. What stands at their places in `words` is no word.
    missing: Vec<u32>,
    pub(super) fingerprints: Vec<FetchedColumn>,
}

impl WordsOfRows {
    /// Reads the sketches of some row groups, and keeps some words of each.
    pub(super) async fn read(
        parquet: &ParquetFile,
        row_groups: Range<usize>,
        words: &[u8],
        fingerprints: Vec<FetchedColumn>,
        fetched: &Fetched,
    ) -> Result<Self> {
        let pages = SketchPages::of(parquet);
        let Words { values, missing } = words_of(parquet, &pages, row_groups, words, &fetched.of_sketches).await?;
        Ok(Self { words: values, missing, fingerprints })
    }

    /// Returns the `nth` of the words that were asked for, row by row.
    pub(super) fn nth(&self, nth: usize) -> &[u64] {
        &self.words[nth]
    }

    /// Returns those of `wanted`, which ascend, that are the `nth` words of the rows of a range, with their rows.
    pub(super) fn rows_of(&self, nth: usize, wanted: &[u64], range: Range<usize>) -> ExistingValues {
        let first = row_number(range.start);
        let found = places_of(&self.words[nth][range], wanted).into_iter().map(|(word, place)| (word, first + place));
        ExistingValues::of_rows(found.filter(|(_, row)| self.missing.binary_search(row).is_err()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::WordsOfRows;

    #[test]
    fn the_rows_of_wanted_words_are_found_and_none_without_a_word() {
        let words: Vec<u64> =
            (0..3000u64).map(|i| (i % 700).wrapping_mul(0x0123_4567_89AB_CDEF)).chain([0, 0]).collect();
        let mut wanted: Vec<u64> = words.iter().step_by(7).copied().chain([0, 5, u64::MAX]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for (missing, range) in [(vec![], 0..3002), (vec![0, 7, 3001], 0..3002), (vec![14], 10..1500), (vec![], 9..9)] {
            let (others, missing) = (vec![7; words.len()], missing.clone());
            let of_rows =
                WordsOfRows { words: vec![others, words.clone()], missing: missing.clone(), fingerprints: Vec::new() };
            let found = of_rows.rows_of(1, &wanted, range.clone());
            let mut listed = Vec::new();
            for (v, &value) in (0..).zip(found.values()) {
                listed.extend(found.rows(v, &(0..usize::MAX)).map(|row| (value, row)));
            }
            let rows = (0..).zip(&words).skip(range.start).take(range.len());
            let expected = rows.filter(|(row, word)| wanted.contains(word) && !missing.contains(row));
            let mut expected: Vec<(u64, u32)> = expected.map(|(row, &word)| (word, row)).collect();
            expected.sort_unstable();
            assert_eq!(listed, expected);
        }
    }
}
