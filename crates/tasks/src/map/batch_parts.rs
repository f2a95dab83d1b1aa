//! The parts of a query batch. A worker of an engine holds one part at a time, or two while it joins them with each other, so its
//! memory does not bound the batch.
//!
//! A part has the rows of a range of the distinct fingerprints. Within a process, the rows and classes of its part are numbered
//! from 0 on, in the order that they have in the batch; what leaves the process has the numbers of the batch.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Schema, UInt32Type, UInt64Type};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::Sketch;
use nearprint_join::{Column, QueryRows};
use nearprint_parquet::schema::{FINGERPRINT, N_FEATURES, SKETCH, SKETCH_BYTES};
use nearprint_parquet::{BATCH_ROWS, Columns, fixed, value};
use nearprint_storage::in_pool;
use serde::{Deserialize, Serialize};

use super::batch_ids::failed;
use crate::batch::{QueryBatch, ROW, RowColumns};

/// The numbers that the rows and classes of one or two parts have in the batch.
#[derive(Debug, Default)]
pub struct PlacesInBatch {
    /// The row of the batch of each row, ascending. Empty if the rows are those of the batch.
    rows: Vec<u32>,
    /// The first class of each part, and its number in the batch. Empty if the classes are those of the batch.
    classes: Vec<(u32, u32)>,
}

impl PlacesInBatch {
    /// Returns the row of the batch that a row is.
    pub(super) fn row(&self, row: u32) -> u32 {
        if self.rows.is_empty() { row } else { self.rows[row as usize] }
    }

    /// Returns the class of the batch that a class is.
    pub(super) fn class(&self, class: u32) -> u32 {
        let part = self.classes.iter().rev().find(|(first, _)| *first <= class);
        part.map_or(class, |(first, in_batch)| class - first + in_batch)
    }
}

/// A part, as the specification of a join has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PartSpec {
    /// The places of its rows among the record batches of the file.
    batches: Range<usize>,
    n_rows: usize,
    n_values: usize,
    /// The number of the first class in the batch, and the number of classes.
    first_class: u32,
    n_classes: u32,
}

const PARTS: &str = "parts.arrow";

/// Writes the parts of a batch into a folder: the rows of each range of values, in the order of the batch.
///
/// # Errors
/// The disk is full, or the file cannot be written.
pub(super) fn write(
    batch: &QueryBatch,
    rows: &QueryRows,
    parts: &[Range<u32>],
    folder: &Path,
) -> Result<Vec<PartSpec>> {
    let mut fields = vec![Field::new(ROW, DataType::UInt32, false), Field::new(FINGERPRINT, DataType::UInt64, false)];
    let (has_sketches, has_features) = (batch.sketches.n_values() > 0, batch.n_features.n_values() > 0);
    fields.extend(has_sketches.then(|| Field::new(SKETCH, DataType::FixedSizeBinary(SKETCH_BYTES), true)));
    fields.extend(has_features.then(|| Field::new(N_FEATURES, DataType::UInt32, true)));
    let (schema, path) = (Arc::new(Schema::new(fields)), folder.join(PARTS));
    let wrong = |e| failed(&path, e);
    let file = File::create(&path).map_err(Fault::io(&path))?;
    let mut writer = FileWriter::try_new_buffered(file, &schema).map_err(wrong)?;
    let (mut written, mut n_batches) = (Vec::with_capacity(parts.len()), 0);
    for values in parts {
        let mut of_part = rows.rows_of(values.clone()).to_vec();
        of_part.sort_unstable();
        for some in of_part.chunks(BATCH_ROWS) {
            let columns = RowColumns { batch, rows: some };
            let mut arrays: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(some.to_vec())), columns.fingerprints()];
            if has_sketches {
                arrays.push(columns.sketches()?);
            }
            if has_features {
                arrays.push(columns.n_features());
            }
            writer.write(&RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(wrong)?).map_err(wrong)?;
        }
        let end = n_batches + of_part.len().div_ceil(BATCH_ROWS);
        let classes = rows.classes_of_values(values.clone());
        written.push(PartSpec {
            batches: n_batches..end,
            n_rows: of_part.len(),
            n_values: values.len(),
            first_class: classes.start,
            n_classes: classes.end - classes.start,
        });
        n_batches = end;
    }
    writer.finish().map_err(wrong)?;
    Ok(written)
}

/// The open file of the parts.
#[derive(Debug)]
pub(super) struct StoredParts {
    parts: Vec<PartSpec>,
    path: PathBuf,
    file: File,
}

/// One part, or two, in memory.
#[derive(Debug)]
pub(super) struct LoadedParts {
    pub(super) rows: QueryRows,
    /// The distinct fingerprints, ascending.
    pub(super) values: Vec<u64>,
    /// The number of values of the first part. Those of the second one come after them.
    pub(super) n_first_values: usize,
    pub(super) places: PlacesInBatch,
}

impl StoredParts {
    /// Opens the parts in a folder, which may be removed afterwards.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open(parts: Vec<PartSpec>, folder: &Path) -> Result<Self> {
        let path = folder.join(PARTS);
        let file = File::open(&path).map_err(Fault::io(&path))?;
        Ok(Self { parts, path, file })
    }

    /// Loads a part, and another one that comes after it in the batch if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or there is no such part.
    pub(super) fn load(&self, number: usize, other: Option<usize>) -> Result<LoadedParts> {
        debug_assert!(
            other.is_none_or(|other| other > number),
            "the values of the other part come after those of the first"
        );
        let unknown = |number: usize| Fault::internal("map", format!("there is no part {number} of the batch"));
        let part = |number: usize| self.parts.get(number).ok_or_else(|| unknown(number));
        let parts = [Some(number), other].into_iter().flatten().map(part).collect::<Result<Vec<_>>>()?;
        let n_rows = parts.iter().map(|part| part.n_rows).sum();
        let (mut rows, mut fingerprints) = (Vec::with_capacity(n_rows), Column::with_capacity(n_rows));
        let (mut sketches, mut n_features) = (Column::with_capacity(n_rows), Column::with_capacity(n_rows));
        let open = |part: &&PartSpec| Cursor::open(&self.path, &self.file, part.batches.clone());
        let mut cursors = parts.iter().map(open).collect::<Result<Vec<_>>>()?;
        // The rows of both parts, in the order of the batch.
        while let Some(next) =
            cursors.iter_mut().filter(|cursor| cursor.row().is_some()).min_by_key(|cursor| cursor.row())
        {
            rows.extend(next.row());
            fingerprints.push(next.fingerprints.get(next.at).copied());
            sketches.push(fixed(next.sketches.as_ref(), next.at).map(Sketch));
            n_features.push(next.n_features.as_ref().and_then(|of| value(of, next.at)));
            next.advance()?;
        }
        if rows.len() != n_rows {
            return Err(Fault::internal("map", format!("part {number} of the batch has not all its rows")));
        }
        let grouped = in_pool(|| QueryRows::group_counted(fingerprints, Arc::new(sketches), Arc::new(n_features)));
        let (grouped, values) = grouped?;
        let (mut classes, mut n_classes) = (Vec::new(), 0);
        for part in &parts {
            classes.push((n_classes, part.first_class));
            n_classes += part.n_classes;
        }
        debug_assert_eq!(n_classes as usize, grouped.n_classes(), "a class is in one part");
        let n_values: usize = parts.iter().map(|part| part.n_values).sum();
        debug_assert_eq!(n_values, values.len(), "a value is in one part");
        Ok(LoadedParts {
            rows: grouped,
            values,
            n_first_values: parts[0].n_values,
            places: PlacesInBatch { rows, classes },
        })
    }
}

/// A file that is read at a position of this reader alone, whoever else reads it.
struct Positioned<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Positioned<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let moved = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = moved.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// The rows of a part, one after another.
struct Cursor<'a> {
    file: FileReader<BufReader<Positioned<'a>>>,
    path: &'a Path,
    /// The number of record batches that are still to be read.
    n_left: usize,
    rows: ScalarBuffer<u32>,
    fingerprints: ScalarBuffer<u64>,
    sketches: Option<FixedSizeBinaryArray>,
    n_features: Option<UInt32Array>,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn open(path: &'a Path, file: &'a File, batches: Range<usize>) -> Result<Self> {
        let mut file = FileReader::try_new_buffered(Positioned { file, at: 0 }, None).map_err(|e| failed(path, e))?;
        if !batches.is_empty() {
            file.set_index(batches.start).map_err(|e| failed(path, e))?;
        }
        let (rows, fingerprints) = (ScalarBuffer::default(), ScalarBuffer::default());
        let n_left = batches.len();
        let mut cursor = Self { file, path, n_left, rows, fingerprints, sketches: None, n_features: None, at: 0 };
        cursor.read()?;
        Ok(cursor)
    }

    /// Returns the row of the batch at which the cursor is.
    fn row(&self) -> Option<u32> {
        self.rows.get(self.at).copied()
    }

    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at < self.rows.len() { Ok(()) } else { self.read() }
    }

    /// Reads the next rows. At the end there are none.
    fn read(&mut self) -> Result<()> {
        (self.at, self.rows) = (0, ScalarBuffer::default());
        let next = if self.n_left == 0 { None } else { self.file.next() };
        let Some(batch) = next.transpose().map_err(|e| failed(self.path, e))? else { return Ok(()) };
        self.n_left -= 1;
        let columns = Columns { batch: &batch, file: "part of the batch" };
        self.rows = columns.primitive::<UInt32Type>(ROW)?.values().clone();
        self.fingerprints = columns.primitive::<UInt64Type>(FINGERPRINT)?.values().clone();
        self.sketches = columns.bytes::<{ SKETCH_BYTES as usize }>(SKETCH)?.cloned();
        self.n_features = columns.optional(N_FEATURES, Columns::primitive::<UInt32Type>)?.cloned();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::PlacesInBatch;

    #[test]
    fn rows_and_classes_of_two_parts_have_the_numbers_of_the_batch() {
        let whole = PlacesInBatch::default();
        assert_eq!((whole.row(7), whole.class(9)), (7, 9));
        let two = PlacesInBatch { rows: vec![3, 4, 9], classes: vec![(0, 10), (2, 50)] };
        assert_eq!([0, 1, 2].map(|row| two.row(row)), [3, 4, 9]);
        assert_eq!([0, 1, 2, 3].map(|class| two.class(class)), [10, 11, 50, 51]);
    }
}
