//! The tasks of a night, for engines that run Python: a specification and descriptions in, Arrow batches out.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::BinaryArray;
use futures::StreamExt;
use futures::stream::BoxStream;
use nearprint_storage::{S3Config, Storage, locked, use_pool};
use nearprint_tasks::{
    FingerprintContext as Fingerprinting, Form, LoadedJoin, MapSpec, Messages, TaskBatch, messages_of,
};
use pyo3::prelude::*;
use serde_json::from_str;
use tokio::runtime::{Builder, Runtime};

use crate::call::{Integer, LOOK, no_threads, pool, stoppable, threads_of};
use crate::error::{Problem, Result, failed};
use crate::output::{Array, Table};

type Stream<T> = BoxStream<'static, nearprint_fault::Result<T>>;

/// The items of a stream that are still to come.
enum Items<T> {
    Waiting(Stream<T>),
    /// A thread waits for the next one.
    Busy,
    Ended,
}

/// The threads on which the tasks of a context run. They end without anybody waiting for them.
struct Threads(Option<Runtime>);

impl Threads {
    fn start(n: usize) -> Result<Arc<Self>> {
        let pool = Arc::new(pool(Some(n))?);
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(n).on_thread_start(move || use_pool(Arc::clone(&pool)));
        let runtime = runtime.enable_all().build().map_err(|e| no_threads(&e))?;
        Ok(Arc::new(Self(Some(runtime))))
    }

    /// Waits for the next item of a stream, and looks for signals meanwhile. After an error, or the end, there are no more.
    fn next<T: Send>(&self, py: Python<'_>, stream: &Mutex<Items<T>>) -> PyResult<Option<T>> {
        // The lock is not held while this thread waits.
        let there = std::mem::replace(&mut *locked(stream), Items::Busy);
        let mut items = match there {
            Items::Waiting(items) => items,
            Items::Busy => return Err(Problem::value("another thread waits for the next batch").raised(py)),
            Items::Ended => {
                *locked(stream) = Items::Ended;
                return Ok(None);
            }
        };
        let next = self.next_of(py, &mut items);
        *locked(stream) = if matches!(next, Ok(Some(_))) { Items::Waiting(items) } else { Items::Ended };
        next
    }

    fn next_of<T: Send>(&self, py: Python<'_>, items: &mut Stream<T>) -> PyResult<Option<T>> {
        loop {
            let next = py.detach(|| self.block_on(async { tokio::time::timeout(LOOK, items.next()).await }));
            match next.map_err(|e| e.raised(py))? {
                Err(_) => py.check_signals()?,
                Ok(item) => return item.transpose().map_err(|e| failed(e).raised(py)),
            }
        }
    }

    fn block_on<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let runtime = self.0.as_ref().ok_or_else(|| Problem::bug("threads that ended"))?;
        Ok(runtime.block_on(work))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The state that the fingerprint tasks of a run share: FingerprintContext(spec, *, s3=None, base=None).
///
/// `spec` is the specification as JSON; its `threads` are those of the context. `s3` is the section [s3] of a job as JSON.
/// Relative paths lie below `base`, or the working folder if it is None.
/// Raises ValueError if the specification cannot be read, and Error if its profile cannot be used.
#[pyclass(frozen, module = "nearprint")]
pub struct FingerprintContext {
    context: Arc<Fingerprinting>,
    threads: Arc<Threads>,
    n: usize,
}

#[pymethods]
impl FingerprintContext {
    #[new]
    #[pyo3(signature = (spec, *, s3=None, base=None))]
    fn new(py: Python<'_>, spec: &str, s3: Option<&str>, base: Option<PathBuf>) -> PyResult<Self> {
        let made = || {
            let spec: nearprint_tasks::FingerprintSpec = described("spec", spec)?;
            let threads = Threads::start(spec.threads)?;
            let context = Fingerprinting::try_new(&spec, &storage(s3, base)?).map_err(failed)?;
            Ok(Self { context: Arc::new(context), threads, n: spec.threads })
        };
        py.detach(made).map_err(|e: Problem| e.raised(py))
    }
}

/// The state that the map tasks of a join share: MapContext(folder, *, threads=1, s3=None, base=None).
///
/// `folder` has the specification and the query batch, whose files stay open; it may be removed afterwards. A part of the batch is
/// loaded when a task needs it. `s3` is the section [s3] of a job as JSON. Relative paths of other files lie below `base`, or the working folder if it is None.
/// Raises ValueError if `threads` is not within 1 and 65,535, and Error if a file of the folder cannot be read.
#[pyclass(frozen, module = "nearprint")]
pub struct MapContext {
    join: Arc<LoadedJoin>,
    threads: Arc<Threads>,
    n: usize,
}

#[pymethods]
impl MapContext {
    #[new]
    #[pyo3(signature = (folder, *, threads=Integer(1), s3=None, base=None))]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        threads: Integer,
        s3: Option<String>,
        base: Option<PathBuf>,
    ) -> PyResult<Self> {
        let made = move || {
            let threads = threads_of(threads)?;
            let (storage, runtime) = (storage(s3.as_deref(), base)?, Threads::start(threads)?);
            let loaded = runtime.block_on(MapSpec::load(&storage, &folder, threads))?;
            Ok(Self { join: Arc::new(loaded.map_err(failed)?), threads: runtime, n: threads })
        };
        stoppable(py, Duration::ZERO, || (), made)
    }
}

/// Return the batches of a fingerprint task: the fingerprinted documents of a range of a file, in its order.
///
/// Args:
///     context: what the tasks of a run share.
///     task: the description of the task, as JSON.
///
/// Returns:
///     An iterator over pairs of a kind and a Table: ("rows", fingerprinted documents, or texts and their words if the
///     specification asks for those), ("notes", files that could not be read). No work starts before the first is asked for, and dropping the iterator stops it. The batches depend only on
///     the specification, the task and the file.
///
/// Raises:
///     ValueError: the description cannot be read.
///     Error: the iterator raises it if the file cannot be read, or has changed since it was listed ("try_again").
#[pyfunction]
pub(crate) fn fingerprint_task(py: Python<'_>, context: &FingerprintContext, task: &str) -> PyResult<TaskBatches> {
    let task = described("task", task).map_err(|e| e.raised(py))?;
    let batches = nearprint_tasks::fingerprint_task(&context.context, &task);
    Ok(TaskBatches { threads: Arc::clone(&context.threads), batches: Mutex::new(Items::Waiting(batches)) })
}

/// Return the batches of a map task: pairs of documents, each at most once, in no particular order.
///
/// A context holds one part of the batch and the tables of one key at a time: a task that needs others waits until the iterators of the
/// tasks before it have ended, or are dropped.
///
/// Args:
///     context: what the map tasks of a join share.
///     task: the description of the task, as JSON. The files that it names are opened.
///
/// Returns:
///     An iterator over pairs of a kind and a Table: ("rows", pairs), ("notes", counts and pairs of classes).
///
/// Raises:
///     ValueError: the description cannot be read.
///     Error: the iterator raises it if a file cannot be read, or has changed since it was listed ("try_again").
#[pyfunction]
pub(crate) fn map_task(py: Python<'_>, context: &MapContext, task: &str) -> PyResult<TaskBatches> {
    let task = described("task", task).map_err(|e| e.raised(py))?;
    let batches = context.join.run(task);
    Ok(TaskBatches { threads: Arc::clone(&context.threads), batches: Mutex::new(Items::Waiting(batches)) })
}

/// The batches of a task, as pairs of a kind ("rows" or "notes") and a Table. An exception ends them.
#[pyclass(frozen, module = "nearprint")]
pub struct TaskBatches {
    threads: Arc<Threads>,
    batches: Mutex<Items<TaskBatch>>,
}

#[pymethods]
impl TaskBatches {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(&'static str, Table)>> {
        Ok(self.threads.next(py, &self.batches)?.map(|batch| match batch {
            TaskBatch::Rows(batch) => ("rows", batch.into()),
            TaskBatch::Notes(batch) => ("notes", batch.into()),
        }))
    }
}

/// The columns of messages of some tasks: `nearprint.Array`s of binary values. An exception ends them.
#[pyclass(frozen, module = "nearprint")]
pub struct TaskMessages {
    threads: Arc<Threads>,
    messages: Mutex<Items<BinaryArray>>,
}

#[pymethods]
impl TaskMessages {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Array>> {
        let next = self.threads.next(py, &self.messages)?;
        Ok(next.map(|array| Array::new("message", Arc::new(array))))
    }
}

/// Return the messages of fingerprint tasks, each as a pair of its number and its description, for an engine to move.
#[pyfunction]
pub(crate) fn fingerprint_messages(
    py: Python<'_>,
    context: &FingerprintContext,
    tasks: Vec<(u32, String)>,
) -> PyResult<TaskMessages> {
    let (own, at_once) = (Arc::clone(&context.context), context.n);
    let run = move |task| nearprint_tasks::fingerprint_task(&own, &task);
    let messages = messages(tasks, Form::Batches, at_once, run).map_err(|e| e.raised(py))?;
    Ok(TaskMessages { threads: Arc::clone(&context.threads), messages: Mutex::new(Items::Waiting(messages)) })
}

/// Return the messages of map tasks, each as a pair of its number and its description, for an engine to sort, make
/// distinct and move.
#[pyfunction]
pub(crate) fn map_messages(py: Python<'_>, context: &MapContext, tasks: Vec<(u32, String)>) -> PyResult<TaskMessages> {
    let join = Arc::clone(&context.join);
    let form = Form::Keys(join.pair_schema());
    // While a piece is mapped, the columns of the next one are read. Tasks that need one thread run on all of them.
    let messages = messages(tasks, form, context.n.max(2), move |task| join.run(task)).map_err(|e| e.raised(py))?;
    Ok(TaskMessages { threads: Arc::clone(&context.threads), messages: Mutex::new(Items::Waiting(messages)) })
}

/// Returns the messages of tasks, of which so many are under way at once.
fn messages<T: serde::de::DeserializeOwned + Send + 'static>(
    tasks: Vec<(u32, String)>,
    form: Form,
    at_once: usize,
    run: impl Fn(T) -> nearprint_tasks::TaskBatches + Send + 'static,
) -> Result<Messages> {
    let tasks = tasks.iter().map(|(number, task)| Ok((*number, described::<T>("tasks", task)?)));
    let tasks = tasks.collect::<Result<Vec<_>>>()?;
    let sent = move |(number, task)| messages_of(number, run(task), form.clone());
    Ok(futures::stream::iter(tasks).map(sent).flatten_unordered(at_once).boxed())
}

fn described<T: serde::de::DeserializeOwned>(name: &str, json: &str) -> Result<T> {
    from_str(json).map_err(|e| Problem::Value(format!("{name}: {e}: give the JSON that nearprint wrote")))
}

/// Returns the places that tasks read, with the settings `[s3]` of a job as JSON.
fn storage(s3: Option<&str>, base: Option<PathBuf>) -> Result<Storage> {
    let s3 = s3.map(|json| described::<S3Config>("s3", json)).transpose()?;
    // Without settings, those of the environment hold; without a base, the folder of the process.
    Ok(Storage::new(s3.unwrap_or_default()).below(base.unwrap_or_default()))
}
