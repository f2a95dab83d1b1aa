//! The work of a run as tasks: small serialisable descriptions of what to read, and the functions that do it. A task is
//! deterministic and has no effect but its batches, so it can run anywhere, again, and in any order; the local run drives
//! exactly these, and another engine can. Where map tasks are of several parts, those that share a [`MapContext`] run part by part,
//! each once.

mod class_pairs;
mod existing_values;
mod fingerprint_task;
mod map_task;
mod pair_writer;

use std::ops::Range;

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use serde::{Deserialize, Serialize};

pub(crate) use class_pairs::ClassPairs;
pub(crate) use fingerprint_task::{FingerprintContext, append, fingerprint_task};
pub(crate) use map_task::{MapContext, Want, map_task};
pub(crate) use pair_writer::pair_schema;

use crate::error::{PipelineError, Result};

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
    pub(crate) fn part(&self) -> usize {
        match self {
            Self::Existing { part, .. } | Self::Itself { part, .. } => *part,
        }
    }
}

/// Batches that a producer sends from a task of its own, which stops when they are no longer wanted. A panic becomes an
/// error.
pub(crate) fn produce<F, P>(stage: &'static str, producer: P) -> BoxStream<'static, Result<RecordBatch>>
where
    F: Future<Output = Result<()>> + Send + 'static,
    P: FnOnce(Sender) -> F + Send + 'static,
{
    let started = async move {
        let (sender, receiver) = tokio::sync::mpsc::channel(2);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(producer(Sender { sender }));
        drain(stage, receiver, tasks)
    };
    futures::stream::once(started).flatten().boxed()
}

/// Where a producer sends its batches.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    sender: tokio::sync::mpsc::Sender<RecordBatch>,
}

impl Sender {
    /// From a thread that may block. Fails where nobody receives any more.
    pub(crate) fn send_blocking(&self, batch: RecordBatch) -> Result<()> {
        let closed = |_| PipelineError::TryAgain { reason: "the run was cancelled".to_owned() };
        self.sender.blocking_send(batch).map_err(closed)
    }
}

fn drain(
    stage: &'static str,
    receiver: tokio::sync::mpsc::Receiver<RecordBatch>,
    tasks: tokio::task::JoinSet<Result<()>>,
) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
    futures::stream::unfold((receiver, tasks), move |(mut receiver, mut tasks)| async move {
        if let Some(batch) = receiver.recv().await {
            return Some((Ok(batch), (receiver, tasks)));
        }
        let outcome = tasks.join_next().await?.map_err(|e| joined(stage, &e)).flatten();
        outcome.err().map(|error| (Err(error), (receiver, tasks)))
    })
}

fn joined(stage: &'static str, error: &tokio::task::JoinError) -> PipelineError {
    PipelineError::Internal { stage, reason: error.to_string() }
}
