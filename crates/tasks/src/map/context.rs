//! The state that map tasks share, made from the query batch, the plan of the join and the existing files.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use nearprint_fault::{Fault, Result};
use nearprint_join::{LossLimit, MapScratch, QueryRows, TogetherScratch, Verifier};
use nearprint_parquet::sketch_column::READ_ALL_BYTES;
use nearprint_storage::{Progress, blocking, in_pool, locked};
use nearprint_store::ExistingFile;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::batch_ids::BatchIds;
use super::batch_parts::PlacesInBatch;
use crate::query_slices::QuerySlices;

/// A task that probes the query tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapTask {
    /// Probes with the values of a piece of the existing documents in one or several keys, by all threads together.
    Existing {
        /// The row groups of the piece, each at most once.
        piece: Vec<FileRowGroups>,
        /// The slices of the queries in whose tables the task looks: one, or one of each word, which are then read together.
        slices: Range<usize>,
        /// The part of the batch whose queries these are. A batch that is whole has the part 0.
        part: usize,
    },
    /// Probes with the queries' own distinct fingerprints. If their key has one slice, the task finds the pairs that stand in
    /// a range of the table that finds them. If there are several slices, it finds the pairs of the slice's values with
    /// larger values in a range. In both cases, it also pairs the documents behind each value of the range that belongs
    /// to the slice.
    Itself {
        /// Positions among all values. If there is one slice, they are positions in each table too. If there are several
        /// slices, either all of them are before the end of the slice or all are behind it.
        values: Range<usize>,
        /// The slice of the queries in whose tables the task looks.
        slice: usize,
        /// The part of the batch whose queries these are.
        part: usize,
        /// A later part of the batch, whose values come after those of the first one: positions count on into it. `None` means
        /// that the part is joined with itself.
        other: Option<usize>,
    },
}

impl MapTask {
    /// Returns the part of the batch whose queries the task has, and the one that is joined with it.
    #[must_use]
    pub fn parts(&self) -> (usize, Option<usize>) {
        match self {
            Self::Existing { part, .. } => (*part, None),
            Self::Itself { part, other, .. } => (*part, *other),
        }
    }

    /// Returns the slices of the queries in whose tables the task looks.
    #[must_use]
    pub fn slices(&self) -> Range<usize> {
        match self {
            Self::Existing { slices, .. } => slices.clone(),
            Self::Itself { slice, .. } => *slice..slice + 1,
        }
    }
}

/// Some row groups of a file of existing documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRowGroups {
    /// The path or URL of the file.
    pub file: String,
    /// The row groups.
    pub row_groups: Range<usize>,
}

/// The pairs that a task reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// Every verified pair of documents.
    AllPairs,
    /// The pairs that the spanning forest and the decisions can need.
    Forest,
}

/// The state that all map tasks of a join share.
#[derive(Debug)]
pub struct MapContext {
    /// The ids of the query batch.
    pub ids: Arc<BatchIds>,
    /// The documents behind each distinct fingerprint of the batch, or of the part of it that this process holds.
    pub rows: Arc<QueryRows>,
    /// The numbers that the rows and classes of the part have in the batch.
    pub places: Arc<PlacesInBatch>,
    /// The fingerprint of each class. Empty if no word is a key.
    pub class_fingerprints: Arc<Vec<u64>>,
    /// Their distinct values in each key, and the tables.
    pub queries: Arc<QuerySlices>,
    /// The largest distances of a pair with an existing document.
    pub verifier: Verifier,
    /// The same for two documents of the batch: a judge may have their texts.
    pub own_verifier: Verifier,
    /// The number of undecided pairs of a class that the judge reads.
    pub max_looks: u32,
    /// The largest lost share with which a document is dropped. It decides which kept existing documents the forest's
    /// candidates name.
    pub loss: LossLimit,
    /// The batch is joined with itself. It then replaces existing documents that have the same ids.
    pub itself: bool,
    /// Equal ids mean one document. They do not if row numbers stand in for the ids of the batch.
    pub ids_are_names: bool,
    /// The pairs that tasks report.
    pub want: Want,
    /// Decisions need the pairs of classes, which leave the tasks as notes.
    pub notes_classes: bool,
    /// Files of existing fingerprints, and of the sketches whose words are keys, by URL.
    pub files: Arc<HashMap<String, ExistingFile>>,
    /// Memory and threads of this process.
    pub room: Arc<Room>,
    /// Counts the rows that were read.
    pub progress: Progress,
}

/// The number of pairs of fingerprints that a task holds before the documents behind them are looked at.
pub(super) const PAIRS_HELD: usize = 1 << 19;

/// Memory and threads that the map tasks of one process share. The output of the tasks does not depend on them.
#[derive(Debug)]
pub struct Room {
    /// Permits for pieces that are in memory: one is mapped, while others are decoded or wait for their documents.
    pub under_way: Semaphore,
    /// A permit for each KiB of columns that are read before their piece is under way.
    ahead: Arc<Semaphore>,
    ahead_permits: u32,
    /// Permits for those who read the sketches of a piece. Each holds some of them meanwhile.
    pub(super) readers: Semaphore,
    /// Permits for threads that compute.
    pub threads: Semaphore,
    /// The permit of the piece that all threads map together.
    together: Semaphore,
    /// The memory of fingerprints that are mapped.
    values: Mutex<Vec<Vec<u64>>>,
    /// The scratch memory that no thread uses now.
    scratches: Mutex<Vec<MapScratch<u64>>>,
    /// The scratch memory of the piece that all threads map together.
    shared: Mutex<TogetherScratch<u64>>,
}

/// The most readers of the sketches of pieces.
const MAX_READERS: usize = 8;

fn n_readers(threads: usize) -> usize {
    threads.clamp(1, MAX_READERS)
}

impl Room {
    /// Returns the bytes that are held, at about the most, while `threads` threads read the sketches of pieces.
    #[must_use]
    pub fn reading_bytes(threads: usize) -> usize {
        n_readers(threads).saturating_mul(READ_ALL_BYTES)
    }

    /// Returns room for `threads` threads that compute, `under_way` tasks, and `read_ahead_bytes` of columns that wait
    /// for their task's turn. In any case, the columns of one task are read ahead.
    #[must_use]
    pub fn new(threads: usize, under_way: usize, read_ahead_bytes: usize) -> Arc<Self> {
        // More room than there are permits is as good as none: a permit is a KiB.
        let ahead_permits = u32::try_from(read_ahead_bytes >> 10).unwrap_or(u32::MAX).max(1);
        Arc::new(Self {
            under_way: Semaphore::new(under_way),
            ahead: Arc::new(Semaphore::new(ahead_permits as usize)),
            ahead_permits,
            readers: Semaphore::new(n_readers(threads)),
            threads: Semaphore::new(threads),
            together: Semaphore::new(1),
            values: Mutex::default(),
            scratches: Mutex::default(),
            shared: Mutex::default(),
        })
    }

    /// Computes on one of the process's threads.
    pub(super) async fn compute<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let _permit = self.threads.acquire().await;
        blocking::<_, Fault>("map", compute).await
    }

    /// Waits until `n_bytes` of columns may be read ahead. A task with more than there is room for is alone.
    pub(super) async fn read_ahead(&self, n_bytes: u64) -> Option<OwnedSemaphorePermit> {
        // What is larger than the room takes all of it.
        let n = u32::try_from(n_bytes >> 10).unwrap_or(u32::MAX).clamp(1, self.ahead_permits);
        // The semaphore is never closed.
        Arc::clone(&self.ahead).acquire_many_owned(n).await.ok()
    }

    /// Maps with scratch memory that no other thread uses meanwhile.
    pub(super) fn map<T>(&self, map: impl FnOnce(&mut MapScratch<u64>) -> T) -> T {
        // A thread that finds no memory kept takes new memory.
        let mut scratch = locked(&self.scratches).pop().unwrap_or_default();
        let mapped = map(&mut scratch);
        locked(&self.scratches).push(scratch);
        mapped
    }

    /// Maps one piece at a time, by all threads together.
    pub(super) async fn map_together<T: Send + 'static>(
        self: &Arc<Self>,
        map: impl FnOnce(&mut TogetherScratch<u64>) -> T + Send + 'static,
    ) -> Result<T> {
        let _permit = self.together.acquire().await;
        let own = Arc::clone(self);
        self.compute(move || Ok(in_pool(|| map(&mut locked(&own.shared))))).await
    }

    /// Takes memory for `n` fingerprints, which may still hold others. [`keep_values`](Self::keep_values) gives it back.
    pub(super) fn take_values(&self, n: usize) -> Vec<u64> {
        let mut kept = locked(&self.values);
        let fits = (0..kept.len()).filter(|&i| kept[i].capacity() >= n).min_by_key(|&i| kept[i].capacity());
        fits.map_or_else(Vec::new, |i| kept.swap_remove(i))
    }

    /// Keeps the memory of a piece's fingerprints in place of that of an earlier piece.
    pub(super) fn keep_values(&self, done: Vec<Vec<u64>>) {
        *locked(&self.values) = done;
    }
}
