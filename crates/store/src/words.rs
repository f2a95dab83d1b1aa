//! Words of the sketches of run files: 64 bits each, by which documents are found beside their fingerprints.

use std::ops::Range;

use nearprint_fault::Result;
use nearprint_fingerprint::Sketch;
use nearprint_parquet::ParquetFile;
use nearprint_parquet::schema::SKETCH;
use nearprint_parquet::sketch_column::{self, ReadCounts, SketchPages, Sketches};
use nearprint_storage::{bad_file, in_memory, row_number};

/// Words of the sketches of rows that follow each other.
#[derive(Debug)]
pub struct Words {
    /// For each word that was asked for, that of every row. What stands at the place of a row without a sketch is 0, and no word.
    pub values: Vec<Vec<u64>>,
    /// The rows without a sketch, counted from the first one, ascending.
    pub missing: Vec<u32>,
}

/// Reads the words with these numbers of all sketches of some row groups. The sketches are read once, however many of their words
/// are asked for.
///
/// # Errors
/// Those of [`sketch_column::read_all`].
///
/// # Panics
/// Panics if the file has no such row groups, if sketches have no such word, or if the pages are those of another file.
pub async fn words_of(
    parquet: &ParquetFile,
    pages: &SketchPages,
    row_groups: Range<usize>,
    which: &[u8],
    counts: &ReadCounts,
) -> Result<Words> {
    let n_rows = in_memory(parquet.rows_before(row_groups.end) - parquet.rows_before(row_groups.start));
    if !parquet.has_column(SKETCH) {
        return Ok(Words { values: vec![vec![0; n_rows]; which.len()], missing: (0..row_number(n_rows)).collect() });
    }
    let mut values: Vec<Vec<u64>> = which.iter().map(|_| Vec::with_capacity(n_rows)).collect();
    let (mut missing, mut n_read) = (Vec::new(), 0);
    let take = |sketches: Sketches<'_>| {
        let words = which.iter().zip(&mut values);
        match sketches {
            Sketches::All(sketches) => {
                for (&word, values) in words {
                    values.extend(sketches.iter().map(|bytes| Sketch(*bytes).word(word)));
                }
                n_read += sketches.len();
            }
            Sketches::Some(sketches) => {
                for (&word, values) in words {
                    values.extend(sketches.iter().map(|bytes| bytes.map_or(0, |bytes| Sketch(bytes).word(word))));
                }
                let without = (n_read..).zip(sketches).filter(|(_, sketch)| sketch.is_none());
                missing.extend(without.map(|(row, _)| row_number(row)));
                n_read += sketches.len();
            }
        }
    };
    sketch_column::read_all(parquet, pages, row_groups, counts, take).await?;
    if n_read == n_rows {
        return Ok(Words { values, missing });
    }
    Err(bad_file(&parquet.file.url, format!("gave {n_read} of {n_rows} sketches")))
}
