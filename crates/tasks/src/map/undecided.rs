//! The pairs of classes that sketches leave to the judge. They leave the map tasks as notes.

use std::sync::{Arc, LazyLock, Mutex};

use arrow::array::{ArrayRef, RecordBatch, UInt8Array, UInt16Array, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt8Type, UInt16Type, UInt32Type};
use nearprint_fault::{Fault, Result, key, words};
use nearprint_join::{UndecidedPair, nearest_undecided};
use nearprint_parquet::Columns;
use nearprint_storage::locked;

/// The schema of the notes of map tasks that are undecided pairs.
static UNDECIDED: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |name: &str, data_type| Field::new(name, data_type, false);
    let fields = [
        field("sketch_distance", DataType::UInt16),
        field("distance", DataType::UInt8),
        field("a", DataType::UInt32),
        field("b", DataType::UInt32),
    ];
    Arc::new(Schema::new(fields.to_vec()))
});

/// Returns the schema of the notes of map tasks that are undecided pairs.
pub(crate) fn undecided_schema() -> SchemaRef {
    Arc::clone(&UNDECIDED)
}

/// The number of pairs that are held before those that the judge will not read are left out.
const PAIRS_HELD: usize = 1 << 20;

/// The undecided pairs of one mapper, before they are sent.
#[derive(Debug, Default)]
pub(super) struct OwnUndecided {
    pairs: Vec<UndecidedPair>,
    /// The number of pairs that were found.
    pub(super) n_found: u64,
}

impl OwnUndecided {
    /// Adds a pair. Returns notes if many pairs are held that may be read.
    pub(super) fn add(&mut self, pair: UndecidedPair, max_looks: u32) -> Result<Option<RecordBatch>> {
        self.n_found += 1;
        self.pairs.push(pair);
        if self.pairs.len() < PAIRS_HELD {
            return Ok(None);
        }
        nearest_undecided(&mut self.pairs, max_looks);
        if self.pairs.len() < PAIRS_HELD / 2 { Ok(None) } else { self.take(max_looks) }
    }

    /// Takes the pairs that are held and may be read. `None` means that there are none.
    pub(super) fn take(&mut self, max_looks: u32) -> Result<Option<RecordBatch>> {
        let mut pairs = std::mem::take(&mut self.pairs);
        nearest_undecided(&mut pairs, max_looks);
        if pairs.is_empty() {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt16Array::from_iter_values(pairs.iter().map(|pair| pair.sketch_distance))),
            Arc::new(UInt8Array::from_iter_values(pairs.iter().map(|pair| pair.distance))),
            Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.a))),
            Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.b))),
        ];
        let notes = RecordBatch::try_new(Arc::clone(&UNDECIDED), columns);
        notes.map(Some).map_err(|e| Fault::internal("map", e))
    }
}

/// The undecided pairs that the judge reads, from all mappers: of each class the nearest.
#[derive(Debug)]
pub struct Undecided {
    held: Mutex<Held>,
    max_looks: u32,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Held {
    pairs: Vec<UndecidedPair>,
    /// The number of pairs that were left when others were left out last.
    n_left: usize,
}

impl Undecided {
    /// Returns a collection without pairs, of which `max_looks` are read for each class. It refuses more than `max_bytes`
    /// bytes of them.
    #[must_use]
    pub fn new(max_looks: u32, max_bytes: usize) -> Self {
        Self { held: Mutex::default(), max_looks, max_bytes }
    }

    /// Adds the notes of a map task. Returns whether they are undecided pairs.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the pairs take more memory than is left.
    pub fn add(&self, notes: &RecordBatch) -> Result<bool> {
        if notes.schema() != *UNDECIDED {
            return Ok(false);
        }
        let columns = Columns { batch: notes, file: "undecided pairs" };
        let sketch_distances = columns.primitive::<UInt16Type>("sketch_distance")?.values();
        let distances = columns.primitive::<UInt8Type>("distance")?.values();
        let (a, b) = (columns.primitive::<UInt32Type>("a")?.values(), columns.primitive::<UInt32Type>("b")?.values());
        let mut held = locked(&self.held);
        held.pairs.extend((0..notes.num_rows()).map(|i| UndecidedPair {
            sketch_distance: sketch_distances[i],
            distance: distances[i],
            a: a[i],
            b: b[i],
        }));
        if held.pairs.len() > 2 * held.n_left + PAIRS_HELD || size_of_val(held.pairs.as_slice()) > self.max_bytes {
            nearest_undecided(&mut held.pairs, self.max_looks);
            held.n_left = held.pairs.len();
        }
        let bytes = size_of_val(held.pairs.as_slice());
        if bytes > self.max_bytes {
            let reason = format!(
                "the pairs that the judge reads take {bytes} bytes, {} are left of the memory limit",
                self.max_bytes
            );
            let lower = format!(" = {}", self.max_looks);
            let remedy = words!["raise ", key("memory_limit"), ", or lower ", key("judge.max_looks"), lower];
            return Err(Fault::resources(reason).remedy(remedy));
        }
        Ok(true)
    }

    /// Takes the pairs, the nearest first.
    #[must_use]
    pub fn take(&self) -> Vec<UndecidedPair> {
        let mut pairs = std::mem::take(&mut locked(&self.held).pairs);
        nearest_undecided(&mut pairs, self.max_looks);
        pairs
    }
}
