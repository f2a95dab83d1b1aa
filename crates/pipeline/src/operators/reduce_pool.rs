//! The memory of the reduce: a part for rows, which spill, and a part for the merges that spilling needs.

use std::fmt::{Display, Formatter};

use datafusion_common::Result as DataFusionResult;
use datafusion_execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// A memory pool with two sides. A sort that has filled its pool with rows must merge them to spill them, and its merge
/// cannot spill. In one pool, the rows of several sorts leave no memory for the merges, and a run that only had to
/// spill fails. So each side has its own memory.
#[derive(Debug)]
pub(crate) struct ReducePool {
    rows: FairSpillPool,
    merges: GreedyMemoryPool,
    bytes: usize,
}

impl ReducePool {
    pub(crate) fn new(bytes: usize) -> Self {
        // A merge holds its rows in a sortable form, which is about as large as the memory that a sort reserves for
        // them.
        let rows = bytes / 5 * 2;
        Self { rows: FairSpillPool::new(rows), merges: GreedyMemoryPool::new(bytes - rows), bytes }
    }

    fn side(&self, consumer: &MemoryConsumer) -> &dyn MemoryPool {
        if consumer.can_spill() { &self.rows } else { &self.merges }
    }
}

impl Display for ReducePool {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "reduce pool of {} bytes", self.bytes)
    }
}

impl MemoryPool for ReducePool {
    fn name(&self) -> &str {
        "reduce"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.side(consumer).register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.side(consumer).unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.side(reservation.consumer()).grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.side(reservation.consumer()).shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionResult<()> {
        self.side(reservation.consumer()).try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.rows.reserved() + self.merges.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes)
    }
}
