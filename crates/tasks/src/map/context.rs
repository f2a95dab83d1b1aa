//! What map tasks share, made of the query batch, the plan of the join and the existing files.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use nearprint_join::{MapScratch, QueryRows, Verifier};
use nearprint_storage::{Progress, blocking, locked};
use nearprint_store::ExistingFile;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::existing_values::ExistingValues;
use crate::batch::QueryBatch;
use crate::error::{Result, TaskError};
use crate::query_parts::QueryParts;

/// Probe the query tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapTask {
    /// With the existing fingerprints of some row groups of a file.
    Existing {
        /// Path or URL.
        file: String,
        /// Row groups.
        row_groups: Range<usize>,
        /// Of the queries, the part in whose tables they are looked for.
        part: usize,
    },
    /// With the queries' own distinct fingerprints. Of one part: pairs that stand in a range of the table that finds them. Of several:
    /// pairs of the part's values with those of a range that are larger. And the documents behind the values of the range that are
    /// the part's.
    Itself {
        /// Positions among all values, and, of one part, in each table; of several, all before the end of the part or all behind it.
        values: Range<usize>,
        /// The part.
        part: usize,
    },
}

impl MapTask {
    /// Of the queries, the part in whose tables it looks.
    #[must_use]
    pub fn part(&self) -> usize {
        match self {
            Self::Existing { part, .. } | Self::Itself { part, .. } => *part,
        }
    }
}

/// Which pairs a task reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// Every verified pair of documents.
    AllPairs,
    /// Those that the spanning forest and the decisions can need.
    Forest,
}

/// What all map tasks of a join share.
#[derive(Debug)]
pub struct MapContext {
    /// The query batch.
    pub batch: Arc<QueryBatch>,
    /// The documents behind each distinct fingerprint of the batch.
    pub rows: Arc<QueryRows>,
    /// The distinct fingerprints of the batch, and their tables.
    pub queries: Arc<QueryParts>,
    /// The largest distances of a pair.
    pub verifier: Verifier,
    /// The batch is joined with itself: it replaces existing documents of the same ids.
    pub itself: bool,
    /// Whether equal ids are one document; not so where row numbers stand in for the batch's.
    pub ids_are_names: bool,
    /// Which pairs tasks report.
    pub want: Want,
    /// Whether decisions need the pairs of classes, which leave as notes.
    pub notes_classes: bool,
    /// Files of existing fingerprints, by URL.
    pub files: Arc<HashMap<String, ExistingFile>>,
    /// Rows that are mapped together, at most.
    pub piece_rows: u64,
    /// Memory and threads of this process.
    pub room: Room,
    /// Counts the rows that were read.
    pub progress: Progress,
}

/// Memory and threads that the map tasks of one process share; nothing that they give depends on it.
#[derive(Debug)]
pub struct Room {
    /// Tasks that may be under way: more than threads, so that some wait for their input while others compute.
    pub under_way: Semaphore,
    /// Threads that may compute.
    pub threads: Semaphore,
    /// Memory of pieces that are done.
    pieces: Mutex<Vec<PieceMemory>>,
    /// Memory of threads that map nothing.
    scratches: Mutex<Vec<MapScratch<u64>>>,
}

/// Fingerprints of a piece, and room for those of the next one.
#[derive(Debug, Default)]
pub(super) struct PieceMemory {
    pub(super) values: ExistingValues,
    pub(super) room: Vec<u64>,
}

impl Room {
    /// Returns room for `threads` threads that compute, and `under_way` tasks.
    #[must_use]
    pub fn new(threads: usize, under_way: usize) -> Self {
        Self {
            under_way: Semaphore::new(under_way),
            threads: Semaphore::new(threads),
            pieces: Mutex::default(),
            scratches: Mutex::default(),
        }
    }

    /// Computes on one of the process's threads.
    pub(super) async fn compute<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let _permit = self.threads.acquire().await;
        blocking::<_, TaskError>("map", compute).await
    }

    /// Maps with memory that no other thread uses meanwhile.
    pub(super) fn map<T>(&self, map: impl FnOnce(&mut MapScratch<u64>) -> T) -> T {
        let mut scratch = locked(&self.scratches).pop().unwrap_or_default();
        let mapped = map(&mut scratch);
        locked(&self.scratches).push(scratch);
        mapped
    }

    /// Memory for a piece; [`keep_piece`](Self::keep_piece) gives it back.
    pub(super) fn take_piece(&self) -> PieceMemory {
        locked(&self.pieces).pop().unwrap_or_default()
    }

    pub(super) fn keep_piece(&self, done: PieceMemory) {
        locked(&self.pieces).push(done);
    }
}
