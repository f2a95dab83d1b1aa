//! `ProbeExec`: the map phase. Each of its partitions probes the query tables with the fingerprints of one task.

use std::fmt::{Display, Formatter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use nearprint_dataset::Columns;
use nearprint_storage::locked;
use nearprint_tasks::{ClassPairs, MapCounts, MapTask, TaskBatch, TaskRunner, Want, pair_schema};

use super::part_turns::PartTurns;
use super::task_exec::Tasks;
use crate::error::{PipelineError, Result};

/// The map tasks of a join, and the destinations of their notes.
pub(crate) struct ProbeTasks {
    pub(crate) tasks: Vec<MapTask>,
    pub(crate) runner: Arc<dyn TaskRunner>,
    pub(crate) turns: Arc<PartTurns>,
    pub(crate) want: Want,
    /// The destination of the pairs of classes.
    pub(crate) class_pairs: Arc<ClassPairs>,
    /// The most pairs of new documents that all tasks together may find, if all pairs are asked for. Each pair is found
    /// once. `n_new_pairs` counts the pairs that were found.
    pub(crate) max_new_pairs: u64,
    pub(crate) n_new_pairs: AtomicU64,
    /// The text that EXPLAIN shows about the tables.
    pub(crate) tables: String,
    /// The counts of all tasks that are done.
    pub(crate) counts: Arc<Mutex<MapCounts>>,
}

impl std::fmt::Debug for ProbeTasks {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl Display for ProbeTasks {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, tasks={}", self.tables, self.tasks.len())
    }
}

impl Tasks for ProbeTasks {
    const NAME: &'static str = "ProbeExec";

    fn schema(&self) -> SchemaRef {
        pair_schema(self.want)
    }

    fn n_tasks(&self) -> usize {
        self.tasks.len()
    }

    fn run(self: Arc<Self>, i: usize) -> BoxStream<'static, Result<RecordBatch>> {
        let own = Arc::clone(&self);
        let started = async move {
            let turn = own.turns.of(own.tasks[i].part()).await;
            own.runner.map(&own.tasks[i]).map(move |batch| {
                let _until_done = &turn;
                batch.map_err(PipelineError::from)
            })
        };
        let batches = futures::stream::once(started).flatten();
        batches.try_filter_map(move |batch| futures::future::ready(self.take(batch))).boxed()
    }
}

impl ProbeTasks {
    /// Takes a batch of a task. Rows go on to the reduce. Notes do not.
    fn take(&self, batch: TaskBatch) -> Result<Option<RecordBatch>> {
        let rows = match batch {
            TaskBatch::Notes(notes) => {
                match MapCounts::of(&notes)? {
                    Some(counts) => *locked(&self.counts) += counts,
                    None => self.class_pairs.add(notes)?,
                }
                return Ok(None);
            }
            TaskBatch::Rows(rows) => rows,
        };
        let n_new = Columns { batch: &rows, file: "pairs" }.booleans("new")?.true_count() as u64;
        if self.n_new_pairs.fetch_add(n_new, Ordering::Relaxed) + n_new > self.max_new_pairs {
            return Err(PipelineError::TooManyPairs { max_pairs: self.max_new_pairs });
        }
        Ok(Some(rows))
    }
}
