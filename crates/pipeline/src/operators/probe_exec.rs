//! `ProbeExec`: the map phase. Each of its partitions probes the query tables with the fingerprints of one task.
//! `RemoteExec`: the map phase and its reduce, of which an engine elsewhere returns the rows.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::Result;
use nearprint_parquet::Columns;
use nearprint_storage::{Progress, Storage, locked};
use nearprint_tasks::{
    ClassPairs, Engine, Form, MapContext, MapCounts, MapTask, TaskBatch, Undecided, Want, Weighed, map_task,
    pair_schema, received,
};
use tokio::sync::watch;

use super::slice_turns::SliceTurns;
use super::task_exec::Tasks;
use crate::error::too_many_pairs;

/// The results of map tasks besides rows, and the limit of their rows.
pub(crate) struct Notes {
    /// The destination of the pairs of classes.
    pub(crate) class_pairs: Arc<ClassPairs>,
    /// The most pairs of new documents that all tasks together may find, if all pairs are asked for. Each pair is found
    /// once. `n_new_pairs` counts the pairs that were found.
    pub(crate) max_new_pairs: u64,
    pub(crate) n_new_pairs: AtomicU64,
    /// The counts of all tasks that are done.
    pub(crate) counts: Arc<Mutex<MapCounts>>,
    /// The destination of the pairs that the judge decides, and what tells it that there are no more.
    pub(crate) undecided: Arc<Undecided>,
    pub(crate) told: watch::Sender<bool>,
    /// The number of map tasks that have more to tell.
    pub(crate) n_telling: AtomicUsize,
}

/// The map tasks of a join, which run here.
pub(crate) struct ProbeTasks {
    pub(crate) tasks: Vec<MapTask>,
    pub(crate) context: Arc<MapContext>,
    pub(crate) turns: Arc<SliceTurns>,
    pub(crate) notes: Arc<Notes>,
    /// The text that EXPLAIN shows about the tables.
    pub(crate) tables: String,
}

impl Display for ProbeTasks {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, tasks={}", self.tables, self.tasks.len())
    }
}

impl Tasks for ProbeTasks {
    const NAME: &'static str = "ProbeExec";

    fn schema(&self) -> SchemaRef {
        pair_schema(self.context.want)
    }

    fn n_tasks(&self) -> usize {
        self.tasks.len()
    }

    fn run(self: Arc<Self>, i: usize) -> BoxStream<'static, Result<RecordBatch>> {
        let own = Arc::clone(&self);
        let started = async move {
            let turn = own.turns.of(own.tasks[i].slices().start).await;
            map_task(&own.context, &own.tasks[i]).map(move |batch| {
                let _until_done = &turn;
                batch
            })
        };
        let batches = futures::stream::once(started).flatten();
        let notes = Arc::clone(&self.notes);
        let rows = batches.try_filter_map(move |batch| futures::future::ready(self.notes.take(batch)));
        rows.chain(at_end(move || notes.task_told())).boxed()
    }
}

/// Returns a stream without items that does something when it is reached.
fn at_end<T: Send + 'static>(done: impl FnOnce() + Send + 'static) -> BoxStream<'static, T> {
    let ended = async move { done() };
    futures::stream::once(ended).filter_map(|()| futures::future::ready(None)).boxed()
}

/// The map tasks of a join, which run elsewhere. Their rows come back distinct and sorted.
pub(crate) struct RemoteTasks {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) tasks: Vec<Weighed<MapTask>>,
    /// The folder of the specification.
    pub(crate) folder: PathBuf,
    pub(crate) storage: Storage,
    pub(crate) progress: Progress,
    pub(crate) want: Want,
    pub(crate) notes: Arc<Notes>,
    /// The text that EXPLAIN shows about the tables.
    pub(crate) tables: String,
}

impl Display for RemoteTasks {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, tasks={}", self.tables, self.tasks.len())
    }
}

impl Tasks for RemoteTasks {
    const NAME: &'static str = "RemoteExec";

    fn schema(&self) -> SchemaRef {
        pair_schema(self.want)
    }

    /// All tasks are one here: their rows come as one stream.
    fn n_tasks(&self) -> usize {
        usize::from(!self.tasks.is_empty())
    }

    fn run(self: Arc<Self>, _: usize) -> BoxStream<'static, Result<RecordBatch>> {
        let folder = self.folder.clone();
        let messages = self.engine.map(&self.folder, self.tasks.clone(), &self.storage, &self.progress);
        match received(messages, self.tasks.len(), &Form::Keys(self.schema())) {
            Ok(batches) => {
                let notes = Arc::clone(&self.notes);
                let rows = batches.try_filter_map(move |batch| {
                    // What is undecided comes before the first row.
                    if matches!(batch, TaskBatch::Rows(_)) {
                        self.notes.all_told();
                    }
                    futures::future::ready(self.notes.take(batch))
                });
                let done = move || {
                    notes.all_told();
                    // The workers have it all. What cannot be removed goes with the folder around it.
                    tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder));
                };
                rows.chain(at_end(done)).boxed()
            }
            Err(error) => futures::stream::once(futures::future::ready(Err(error))).boxed(),
        }
    }
}

impl Notes {
    /// Notes that a map task has told all that it has.
    fn task_told(&self) {
        if self.n_telling.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_told();
        }
    }

    /// Tells the judge that nothing more is undecided.
    fn all_told(&self) {
        self.told.send_replace(true);
    }

    /// Takes a batch of a task. Rows go on to the reduce. Notes do not.
    pub(crate) fn take(&self, batch: TaskBatch) -> Result<Option<RecordBatch>> {
        let rows = match batch {
            TaskBatch::Notes(notes) => {
                match MapCounts::of(&notes)? {
                    Some(counts) => *locked(&self.counts) += counts,
                    None if self.undecided.add(&notes)? => {}
                    None => self.class_pairs.add(notes)?,
                }
                return Ok(None);
            }
            TaskBatch::Rows(rows) => rows,
        };
        let n_new = Columns { batch: &rows, file: "pairs" }.booleans("new")?.true_count() as u64;
        if self.n_new_pairs.fetch_add(n_new, Ordering::Relaxed) + n_new > self.max_new_pairs {
            return Err(too_many_pairs(self.max_new_pairs));
        }
        Ok(Some(rows))
    }
}
