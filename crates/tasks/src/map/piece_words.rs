//! The words of a piece of existing documents: they stand in the order of the rows, and the rows of those that are near a query
//! are looked up.

use std::ops::Range;

use futures::{StreamExt, TryStreamExt, stream};
use nearprint_fault::Result;
use nearprint_fingerprint::Sketch;
use nearprint_parquet::ParquetFile;
use nearprint_parquet::fingerprint_column::FetchedColumn;
use nearprint_parquet::sketch_column::{self, SketchPages};
use nearprint_storage::{in_memory, row_number};

use super::counts::Fetched;
use super::existing_values::ExistingValues;

/// The words of the sketches of a file's row groups, row by row, with the fingerprints of these rows as they were read.
#[derive(Debug)]
pub(super) struct WordsOfFile {
    pub(super) words: Vec<u64>,
    /// The rows without a sketch, ascending. What stands at their places in `words` is no word.
    missing: Vec<u32>,
    pub(super) fingerprints: Vec<FetchedColumn>,
}

/// The rows whose sketches are read at once for their words, and the number of such readings at the same time.
const SKETCH_ROWS: u64 = 1 << 16;
const SKETCHES_AT_ONCE: usize = 4;

impl WordsOfFile {
    /// Reads the sketches of some row groups, and keeps a word of each.
    pub(super) async fn read(
        parquet: &ParquetFile,
        row_groups: &Range<usize>,
        word: u8,
        fingerprints: Vec<FetchedColumn>,
        fetched: &Fetched,
    ) -> Result<Self> {
        let (first, end) = (parquet.rows_before(row_groups.start), parquet.rows_before(row_groups.end));
        let pages = &SketchPages::of(parquet);
        let read = |start: u64| async move {
            let rows: Vec<u32> = (start..end.min(start + SKETCH_ROWS)).map(|row| row_number(in_memory(row))).collect();
            sketch_column::fetch_known(parquet, pages, &rows, &fetched.of_sketches).await
        };
        let starts = (first..end).step_by(in_memory(SKETCH_ROWS));
        let mut readings = stream::iter(starts.map(read)).buffered(SKETCHES_AT_ONCE);
        let (mut words, mut missing) = (Vec::with_capacity(in_memory(end - first)), Vec::new());
        while let Some(sketches) = readings.try_next().await? {
            for sketch in sketches {
                if sketch.is_none() {
                    missing.push(row_number(words.len()));
                }
                words.push(sketch.map_or(0, |bytes| Sketch(bytes).word(word)));
            }
        }
        Ok(Self { words, missing, fingerprints })
    }

    /// Returns those of `wanted`, which ascend, that are words of the rows of a range, with their rows.
    pub(super) fn rows_of(&self, wanted: &[u64], range: Range<usize>) -> ExistingValues {
        let is_there =
            |word: u64, row: u32| wanted.binary_search(&word).is_ok() && self.missing.binary_search(&row).is_err();
        let hashes = Hashes::of(wanted);
        let rows = row_number(range.start)..row_number(range.end);
        let found = rows.zip(&self.words[range]).filter(|&(row, &word)| hashes.may_have(word) && is_there(word, row));
        ExistingValues::of_rows(found.map(|(row, &word)| (word, row)).collect())
    }
}

/// A bitmap of hashes of some words, which passes over most of the others.
struct Hashes {
    bits: Vec<u64>,
    shift: u32,
}

impl Hashes {
    fn of(words: &[u64]) -> Self {
        let log_bits = (words.len().max(1).ilog2() + 5).max(6);
        let mut hashes = Self { bits: vec![0; 1 << (log_bits - 6)], shift: u64::BITS - log_bits };
        for &word in words {
            let hash = hashes.hash(word);
            hashes.bits[hash / 64] |= 1 << (hash % 64);
        }
        hashes
    }

    fn hash(&self, word: u64) -> usize {
        in_memory(word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift)
    }

    fn may_have(&self, word: u64) -> bool {
        let hash = self.hash(word);
        self.bits[hash / 64] >> (hash % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::WordsOfFile;

    #[test]
    fn the_rows_of_wanted_words_are_found_and_none_without_a_word() {
        let words: Vec<u64> =
            (0..3000u64).map(|i| (i % 700).wrapping_mul(0x0123_4567_89AB_CDEF)).chain([0, 0]).collect();
        let mut wanted: Vec<u64> = words.iter().step_by(7).copied().chain([0, 5, u64::MAX]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for (missing, range) in [(vec![], 0..3002), (vec![0, 7, 3001], 0..3002), (vec![14], 10..1500), (vec![], 9..9)] {
            let file = WordsOfFile { words: words.clone(), missing: missing.clone(), fingerprints: Vec::new() };
            let found = file.rows_of(&wanted, range.clone());
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
