//! The pairs of classes that the star rule decides by. They bypass the reduce, because the rule needs no order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use arrow::array::{ArrayRef, RecordBatch, UInt8Array, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt8Type, UInt32Type};
use nearprint_fault::{Fault, Result};
use nearprint_join::{ClassNeighbours, JudgedPairs, LossLimit, QueryRows};
use nearprint_parquet::Columns;
use nearprint_storage::{in_pool, locked};
use rayon::prelude::*;

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

/// The bytes of a pair in a batch, of its directions, and in the index of neighbours.
const PAIR_BYTES: usize = 9 + 1 + 10;

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

    /// Takes the pairs, and determines in which directions a class of each may be dropped for the other. All threads look at
    /// the texts' numbers of features and at their sketches, which lie all over the memory.
    ///
    /// # Errors
    /// The notes do not have the columns of a map task's pairs.
    pub fn take(&self, rows: &QueryRows, judged: &JudgedPairs, loss: LossLimit) -> Result<DirectedPairs> {
        let batches = std::mem::take(&mut *locked(&self.batches));
        let directed = |notes| Directed::of(&notes, |class, keeper| judged.may_drop(rows, loss, class, keeper));
        let batches = in_pool(|| batches.into_par_iter().map(directed).collect::<Result<Vec<_>>>())?;
        Ok(DirectedPairs { n_classes: rows.n_classes(), batches })
    }
}

/// Verified pairs of different classes, and the directions in which one class of each may be dropped for the other.
#[derive(Debug)]
pub struct DirectedPairs {
    n_classes: usize,
    batches: Vec<Directed>,
}

/// A batch of such pairs.
#[derive(Debug)]
struct Directed {
    a: ScalarBuffer<u32>,
    b: ScalarBuffer<u32>,
    distances: ScalarBuffer<u8>,
    /// Of each pair: [`A_FOR_B`], [`B_FOR_A`], both or neither.
    directions: Vec<u8>,
}

/// The first class of a pair may be dropped for the second.
const A_FOR_B: u8 = 1;
/// The second class of a pair may be dropped for the first.
const B_FOR_A: u8 = 2;

impl Directed {
    /// `may_drop` returns whether a class, named first, may be dropped for another.
    fn of(notes: &RecordBatch, may_drop: impl Fn(u32, u32) -> bool) -> Result<Self> {
        let columns = Columns { batch: notes, file: "pairs of classes" };
        let (a, b) = (columns.primitive::<UInt32Type>("a")?.values(), columns.primitive::<UInt32Type>("b")?.values());
        let distances = columns.primitive::<UInt8Type>("distance")?.values().clone();
        let direction = |drops: bool, direction| if drops { direction } else { 0 };
        let both = |(&a, &b)| direction(may_drop(a, b), A_FOR_B) | direction(may_drop(b, a), B_FOR_A);
        let directions = a.iter().zip(b).map(both).collect();
        Ok(Self { a: a.clone(), b: b.clone(), distances, directions })
    }

    /// Returns (class, other class, distance) of each pair from its first class to its second if it has a direction of `a_to_b`,
    /// and from its second to its first if it has one of `b_to_a`.
    fn pairs(&self, a_to_b: u8, b_to_a: u8) -> impl Iterator<Item = (u32, u32, u8)> {
        let pairs = self.a.iter().zip(&self.b).zip(self.distances.iter().zip(&self.directions));
        pairs.flat_map(move |((&a, &b), (&distance, &directions))| {
            let forward = (directions & a_to_b != 0).then_some((a, b, distance));
            let backward = (directions & b_to_a != 0).then_some((b, a, distance));
            forward.into_iter().chain(backward)
        })
    }
}

impl DirectedPairs {
    /// Returns the pairs, by class, in the directions in which a class may be dropped for the other.
    #[must_use]
    pub fn neighbours(&self) -> ClassNeighbours {
        ClassNeighbours::new(self.n_classes, || self.batches.iter().flat_map(|batch| batch.pairs(A_FOR_B, B_FOR_A)))
    }

    /// Returns the pairs of which one class, at least, may be dropped for the other, by class and in both directions.
    #[must_use]
    pub fn rivals(self) -> ClassNeighbours {
        let any = A_FOR_B | B_FOR_A;
        ClassNeighbours::new(self.n_classes, || self.batches.iter().flat_map(|batch| batch.pairs(any, any)))
    }
}

#[cfg(test)]
mod tests {
    use nearprint_fault::Result;

    use super::{A_FOR_B, B_FOR_A, Directed, OwnClassPairs};

    #[test]
    fn a_pair_has_the_directions_in_which_a_class_may_be_dropped_and_a_rival_needs_only_one() -> Result<()> {
        let mut own = OwnClassPairs::default();
        for (a, b, distance) in [(0, 1, 3), (2, 3, 4), (4, 5, 5), (6, 7, 6)] {
            own.add(a, b, distance)?;
        }
        let notes = own.take()?.unwrap();
        // 0 may be dropped for 1, 3 for 2, each of 4 and 5 for the other, and neither of 6 and 7.
        let allowed = [(0, 1), (3, 2), (4, 5), (5, 4)];
        let directed = Directed::of(&notes, |class, keeper| allowed.contains(&(class, keeper)))?;
        let neighbours: Vec<_> = directed.pairs(A_FOR_B, B_FOR_A).collect();
        assert_eq!(neighbours, [(0, 1, 3), (3, 2, 4), (4, 5, 5), (5, 4, 5)]);
        let any = A_FOR_B | B_FOR_A;
        let rivals: Vec<_> = directed.pairs(any, any).collect();
        assert_eq!(rivals, [(0, 1, 3), (1, 0, 3), (2, 3, 4), (3, 2, 4), (4, 5, 5), (5, 4, 5)]);
        Ok(())
    }
}
