//! The ids of the query batch, by which a map task finds the place of an existing document among the new ones.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

use arrow::array::{Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use nearprint_fault::{Fault, Result};
use nearprint_join::partition_point;
use nearprint_parquet::Columns;
use nearprint_parquet::schema::DOC_ID;
use nearprint_storage::{locked, row_number};

use crate::batch::{QueryBatch, RowColumns};

/// The ids of the query batch, in their order.
#[derive(Debug)]
pub enum BatchIds {
    /// Those of a batch in memory.
    Held(Arc<QueryBatch>),
    /// Those in files.
    Stored(Box<StoredIds>),
}

impl BatchIds {
    /// Returns the first row whose id is not smaller than `id`, or the number of rows, and whether that row has this id.
    ///
    /// # Errors
    /// The ids cannot be read.
    pub(super) fn place_of(&self, id: &str) -> Result<(u32, bool)> {
        match self {
            Self::Held(batch) => {
                let row = batch.first_row_not_before(id);
                Ok((row, batch.has_id(row, id)))
            }
            Self::Stored(ids) => ids.place_of(id),
        }
    }
}

/// The ids of a batch in a file. The first one of each block is in memory.
#[derive(Debug)]
pub struct StoredIds {
    file: Mutex<FileReader<BufReader<File>>>,
    path: PathBuf,
    /// [`FIRST_IDS_AT_ONCE`] in each array but the last: those of a large batch would not fit one, whose offsets have 31 bits.
    first_ids: Vec<StringArray>,
}

/// The number of ids that are read at a time.
const BLOCK_IDS: u32 = 128;
/// The number of first ids of blocks in an array.
const FIRST_IDS_AT_ONCE: usize = 8192;

/// The bytes of a first id, its offset, and what the buffer of its array has grown beyond.
const FIRST_ID_BYTES: usize = 128;

/// The name of the file of the ids, and of that of the first ones of its blocks.
const IDS: &str = "ids.arrow";
const FIRST_IDS: &str = "first-ids.arrow";

static SCHEMA: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![Field::new(DOC_ID, DataType::Utf8, false)])));

impl StoredIds {
    /// Returns the bytes that the ids of `n_rows` documents take in memory, if they are of some 100 bytes each.
    #[must_use]
    pub fn memory_bytes(n_rows: usize) -> usize {
        n_rows.div_ceil(BLOCK_IDS as usize).saturating_mul(FIRST_ID_BYTES)
    }

    /// Writes the ids of a batch into a folder.
    ///
    /// # Errors
    /// The disk is full, or a file cannot be written.
    pub(super) fn write(batch: &QueryBatch, folder: &Path) -> Result<()> {
        let blocks = batch.rows().step_by(BLOCK_IDS as usize);
        let ids = blocks.clone().map(|start| start..batch.n_rows.min(start.saturating_add(BLOCK_IDS)));
        write_ids(batch, &folder.join(IDS), ids.map(Iterator::collect))?;
        let first: Vec<u32> = blocks.collect();
        write_ids(batch, &folder.join(FIRST_IDS), first.chunks(FIRST_IDS_AT_ONCE).map(<[u32]>::to_vec))
    }

    /// Opens the ids in a folder, which may be removed afterwards.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let first_ids = read(&folder.join(FIRST_IDS))?.collect::<std::result::Result<Vec<_>, _>>();
        let first_ids = first_ids.map_err(|e| failed(&folder.join(FIRST_IDS), e))?;
        let first_ids = first_ids.iter().map(|batch| ids_of(batch, FIRST_IDS).cloned()).collect::<Result<_>>()?;
        let path = folder.join(IDS);
        Ok(Self { file: Mutex::new(read(&path)?), path, first_ids })
    }

    fn place_of(&self, id: &str) -> Result<(u32, bool)> {
        // In the last array that begins with an id not after this one, the last such id begins the block.
        let n_not_after = self.first_ids.partition_point(|ids| ids.value(0) <= id);
        let Some(array) = n_not_after.checked_sub(1) else { return Ok((0, false)) };
        let block = row_number(array * FIRST_IDS_AT_ONCE) + first_not(&self.first_ids[array], |first| first <= id) - 1;
        let read = {
            let mut file = locked(&self.file);
            file.set_index(block as usize).map_err(|e| failed(&self.path, e))?;
            file.next().transpose().map_err(|e| failed(&self.path, e))?
        };
        let missing = || Fault::internal("map", format!("{} has no block {block}", self.path.display()));
        let batch = read.ok_or_else(missing)?;
        let ids = ids_of(&batch, IDS)?;
        let place = first_not(ids, |other| other < id);
        let is_same = place < row_number(ids.len()) && ids.value(place as usize) == id;
        Ok((block * BLOCK_IDS + place, is_same))
    }
}

/// Returns the position of the first id for which `is_before` does not hold, or the number of ids.
fn first_not(ids: &StringArray, is_before: impl Fn(&str) -> bool) -> u32 {
    partition_point(0..row_number(ids.len()), |at| is_before(ids.value(at as usize)))
}

fn write_ids(batch: &QueryBatch, path: &Path, blocks: impl Iterator<Item = Vec<u32>>) -> Result<()> {
    let file = File::create(path).map_err(Fault::io(path))?;
    let failed = |e| failed(path, e);
    let mut writer = FileWriter::try_new_buffered(file, &SCHEMA).map_err(failed)?;
    for rows in blocks {
        let ids = RowColumns { batch, rows: &rows }.ids();
        writer.write(&RecordBatch::try_new(Arc::clone(&SCHEMA), vec![ids]).map_err(failed)?).map_err(failed)?;
    }
    writer.finish().map_err(failed)
}

fn read(path: &Path) -> Result<FileReader<BufReader<File>>> {
    let file = File::open(path).map_err(Fault::io(path))?;
    FileReader::try_new_buffered(file, None).map_err(|e| failed(path, e))
}

fn ids_of<'a>(batch: &'a RecordBatch, file: &'a str) -> Result<&'a StringArray> {
    Columns { batch, file }.strings(DOC_ID)
}

/// The error of a file of Arrow's format. Only the system can fail here: nearprint has written the file.
pub(super) fn failed(path: &Path, error: ArrowError) -> Fault {
    match error {
        ArrowError::IoError(_, source) => Fault::io(path)(source),
        other => Fault::internal("map", format!("{}: {other}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
    use nearprint_fault::Result;

    use super::{BLOCK_IDS, BatchIds, FIRST_IDS_AT_ONCE, StoredIds};
    use crate::batch::{CollectPolicy, Collecting};

    #[test]
    fn an_id_has_the_same_place_among_ids_in_a_file_as_among_those_in_memory() -> Result<()> {
        let in_one_array = [0, 1, BLOCK_IDS - 1, BLOCK_IDS, BLOCK_IDS + 1, 5 * BLOCK_IDS + 7];
        let full = u32::try_from(FIRST_IDS_AT_ONCE).unwrap() * BLOCK_IDS;
        for n in in_one_array.into_iter().chain([full, full + 300]) {
            let ids: ArrayRef = Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("a{i:07}"))));
            let fingerprints: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..u64::from(n)));
            let (files, rows): (ArrayRef, ArrayRef) = (
                Arc::new(UInt32Array::from(vec![0; n as usize])),
                Arc::new(UInt64Array::from_iter_values(0..u64::from(n))),
            );
            let arrived = [("doc_id", ids), ("fingerprint", fingerprints), ("file", files), ("row", rows)];
            let mut collecting = Collecting::new(&[], None, usize::MAX);
            collecting.push(&RecordBatch::try_from_iter(arrived).unwrap())?;
            let batch = Arc::new(collecting.finish(&CollectPolicy::default(), |_| String::new())?);
            let folder = tempfile::tempdir().unwrap();
            StoredIds::write(&batch, folder.path())?;
            let (held, stored) = (BatchIds::Held(batch), BatchIds::Stored(Box::new(StoredIds::open(folder.path())?)));
            drop(folder);
            // Of many, those at the beginning and at the end, where the second array begins.
            let there = (0..n).filter(|i| i + 1000 > n || i % 4099 < 2);
            let there = there.flat_map(|i| ["", "0"].map(|more| format!("a{i:07}{more}")));
            for id in there.chain(["", "A", "b"].map(str::to_owned)) {
                assert_eq!(held.place_of(&id)?, stored.place_of(&id)?, "{id} of {n}");
            }
        }
        Ok(())
    }
}
