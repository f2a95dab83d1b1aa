//! The pairs of classes that the star rule decides by. They bypass the reduce, because the rule needs no order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use arrow::array::{ArrayRef, RecordBatch, UInt8Array, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt8Type, UInt32Type};
use nearprint_fault::{Fault, Result};
use nearprint_join::{ClassNeighbours, JudgedPairs, LossLimit, QueryRows};
use nearprint_parquet::Columns;
use nearprint_storage::locked;

/// The schema of the notes of map tasks: verified pairs of different classes, and their distances.
static CLASS_PAIRS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |name: &str, data_type| Field::new(name, data_type, false);
    let fields = [field("a", DataType::UInt32), field("b", DataType::UInt32), field("distance", DataType::UInt8)];
    Arc::new(Schema::new(fields.to_vec()))
});

/// Returns the schema of the notes of map tasks that are pairs of classes.
pub(crate) fn class_pair_schema() -> SchemaRef {
    Arc::clone(&CLASS_PAIRS)
}

/// Verified pairs of different classes, each once, from all mappers.
#[derive(Debug)]
pub struct ClassPairs {
    batches: Mutex<Vec<RecordBatch>>,
    n_pairs: AtomicUsize,
    max_bytes: usize,
}

/// The pairs of one mapper, before they are sent.
#[derive(Debug, Default)]
pub(super) struct OwnClassPairs {
    a: Vec<u32>,
    b: Vec<u32>,
    distances: Vec<u8>,
}

/// The number of pairs in a batch.
const BATCH_PAIRS: usize = 1 << 16;

/// The bytes of a pair in a batch, and in the index of neighbours.
const PAIR_BYTES: usize = 9 + 10;

impl OwnClassPairs {
    /// Adds a pair. Returns the batch if it is full.
    pub(super) fn add(&mut self, a: u32, b: u32, distance: u8) -> Result<Option<RecordBatch>> {
        debug_assert!(a != b, "a class makes no pair with itself");
        self.a.push(a);
        self.b.push(b);
        self.distances.push(distance);
        if self.a.len() < BATCH_PAIRS { Ok(None) } else { self.take() }
    }

    /// Takes the pairs that are held. `None` means that there are none.
    pub(super) fn take(&mut self) -> Result<Option<RecordBatch>> {
        let Self { a, b, distances } = std::mem::take(self);
        if a.is_empty() {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> =
            vec![Arc::new(UInt32Array::from(a)), Arc::new(UInt32Array::from(b)), Arc::new(UInt8Array::from(distances))];
        let batch = RecordBatch::try_new(Arc::clone(&CLASS_PAIRS), columns);
        batch.map(Some).map_err(|e| Fault::internal("map", e))
    }
}

impl ClassPairs {
    /// Returns a collection without pairs, which refuses more than `max_bytes` bytes of them.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { batches: Mutex::default(), n_pairs: AtomicUsize::new(0), max_bytes }
    }

    /// Returns the bytes that the pairs take once they are indexed.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.n_pairs.load(Ordering::Relaxed).saturating_mul(PAIR_BYTES)
    }

    /// Adds the notes of a map task.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the pairs take more memory than is left.
    pub fn add(&self, notes: RecordBatch) -> Result<()> {
        let n_pairs = self.n_pairs.fetch_add(notes.num_rows(), Ordering::Relaxed) + notes.num_rows();
        if self.memory_bytes() > self.max_bytes {
            let reason = format!(
                "the star rule over more than {n_pairs} pairs takes more than the {} bytes that are left",
                self.max_bytes
            );
            return Err(Fault::resources(reason));
        }
        locked(&self.batches).push(notes);
        Ok(())
    }

    /// Returns the pairs, by class, in the directions in which a class may be dropped for the other.
    ///
    /// # Errors
    /// The notes do not have the columns of a map task's pairs.
    pub fn neighbours(&self, rows: &QueryRows, judged: &JudgedPairs, loss: LossLimit) -> Result<ClassNeighbours> {
        self.directed(rows, |class, keeper| judged.may_drop(rows, loss, class, keeper))
    }

    /// Takes the pairs of which one class, at least, may be dropped for the other, by class and in both directions.
    ///
    /// # Errors
    /// The notes do not have the columns of a map task's pairs.
    pub fn take_rivals(&self, rows: &QueryRows, judged: &JudgedPairs, loss: LossLimit) -> Result<ClassNeighbours> {
        let may_drop = |class, keeper| judged.may_drop(rows, loss, class, keeper);
        let found = self.directed(rows, |a, b| may_drop(a, b) || may_drop(b, a));
        locked(&self.batches).clear();
        found
    }

    fn directed(&self, rows: &QueryRows, is_wanted: impl Fn(u32, u32) -> bool) -> Result<ClassNeighbours> {
        let batches = locked(&self.batches);
        let mut columns = Vec::with_capacity(batches.len());
        for batch in &*batches {
            let found = Columns { batch, file: "pairs of classes" };
            let (a, b) = (found.primitive::<UInt32Type>("a")?, found.primitive::<UInt32Type>("b")?);
            columns.push((a.values(), b.values(), found.primitive::<UInt8Type>("distance")?.values()));
        }
        let pairs = || {
            columns.iter().flat_map(|(a, b, distances)| {
                a.iter().zip(b.iter()).zip(distances.iter()).map(|((&a, &b), &distance)| (a, b, distance))
            })
        };
        Ok(ClassNeighbours::new(rows.n_classes(), pairs, is_wanted))
    }
}
