//! The tasks of a night, for engines that run Python: a specification and descriptions in, Arrow batches out.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use nearprint_storage::{S3Config, Storage, locked};
use nearprint_tasks::{FingerprintContext as Fingerprinting, MapContext as Mapping, MapSpec, TaskBatch, use_pool};
use pyo3::prelude::*;
use serde_json::from_str;
use tokio::runtime::{Builder, Runtime};

use crate::call::{LOOK, no_threads, pool, stoppable};
use crate::error::{Problem, Result, failed};
use crate::output::Table;

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

/// What the fingerprint tasks of a run share: FingerprintContext(spec, *, s3=None).
///
/// `spec` is the specification as JSON; its `threads` are those of the context. `s3` is the section [s3] of a job as JSON.
/// Raises ValueError if the specification cannot be read, and Error if its profile cannot be used.
#[pyclass(frozen, module = "nearprint")]
pub struct FingerprintContext {
    context: Arc<Fingerprinting>,
    threads: Arc<Threads>,
}

#[pymethods]
impl FingerprintContext {
    #[new]
    #[pyo3(signature = (spec, *, s3=None))]
    fn new(py: Python<'_>, spec: &str, s3: Option<&str>) -> PyResult<Self> {
        let made = || {
            let spec: nearprint_tasks::FingerprintSpec = described("spec", spec)?;
            let threads = Threads::start(spec.threads)?;
            let context = Fingerprinting::try_new(&spec, &storage(s3)?).map_err(failed)?;
            Ok(Self { context: Arc::new(context), threads })
        };
        py.detach(made).map_err(|e: Problem| e.raised(py))
    }
}

/// What the map tasks of a join share: MapContext(folder, tasks, *, threads=1, s3=None).
///
/// `folder` has the specification and the query batch, which are loaded once. `tasks` are the descriptions, as JSON, of
/// the tasks that this context will run: only the files that they name are opened. `s3` is the section [s3] of a job as
/// JSON. Raises ValueError if a description cannot be read, and Error if a file cannot, or has changed ("try_again").
#[pyclass(frozen, module = "nearprint")]
pub struct MapContext {
    context: Arc<Mapping>,
    threads: Arc<Threads>,
}

#[pymethods]
impl MapContext {
    #[new]
    #[pyo3(signature = (folder, tasks, *, threads=1, s3=None))]
    fn new(py: Python<'_>, folder: PathBuf, tasks: Vec<String>, threads: usize, s3: Option<String>) -> PyResult<Self> {
        let made = move || {
            let tasks = tasks.iter().map(|task| described("tasks", task)).collect::<Result<Vec<_>>>()?;
            let (storage, runtime) = (storage(s3.as_deref())?, Threads::start(threads)?);
            let opened = runtime.block_on(MapSpec::open(&storage, &folder, &tasks, threads))?;
            Ok(Self { context: opened.map_err(failed)?, threads: runtime })
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
///     An iterator over pairs of a kind and a Table: ("rows", fingerprinted documents), ("notes", files that could not be
///     read). No work starts before the first is asked for, and dropping the iterator stops it. The batches depend only on
///     the specification, the task and the file.
///
/// Raises:
///     ValueError: the description cannot be read.
///     Error: the iterator raises it if the file cannot be read, or has changed since it was listed ("try_again").
#[pyfunction]
pub(crate) fn fingerprint_task(py: Python<'_>, context: &FingerprintContext, task: &str) -> PyResult<TaskBatches> {
    let task = described("task", task).map_err(|e| e.raised(py))?;
    let batches = nearprint_tasks::fingerprint_task(&context.context, &task);
    Ok(TaskBatches { threads: Arc::clone(&context.threads), batches: Mutex::new(Some(batches)) })
}

/// Return the batches of a map task: pairs of documents, each at most once, in no particular order.
///
/// Args:
///     context: what the map tasks of a join share.
///     task: the description of the task, as JSON: one of those that the context was opened with.
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
    let batches = nearprint_tasks::map_task(&context.context, &task);
    Ok(TaskBatches { threads: Arc::clone(&context.threads), batches: Mutex::new(Some(batches)) })
}

/// The batches of a task, as pairs of a kind ("rows" or "notes") and a Table. An exception ends them.
#[pyclass(frozen, module = "nearprint")]
pub struct TaskBatches {
    threads: Arc<Threads>,
    /// `None` after the end, and while a thread waits for the next batch.
    batches: Mutex<Option<nearprint_tasks::TaskBatches>>,
}

#[pymethods]
impl TaskBatches {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(&'static str, Table)>> {
        let Some(mut batches) = locked(&self.batches).take() else { return Ok(None) };
        loop {
            let next = py.detach(|| self.threads.block_on(async { tokio::time::timeout(LOOK, batches.next()).await }));
            match next.map_err(|e| e.raised(py))? {
                Err(_) => py.check_signals()?,
                Ok(None) => return Ok(None),
                Ok(Some(batch)) => {
                    let (kind, batch) = match batch.map_err(|e| failed(e).raised(py))? {
                        TaskBatch::Rows(batch) => ("rows", batch),
                        TaskBatch::Notes(batch) => ("notes", batch),
                    };
                    *locked(&self.batches) = Some(batches);
                    return Ok(Some((kind, batch.into())));
                }
            }
        }
    }
}

fn described<T: serde::de::DeserializeOwned>(name: &str, json: &str) -> Result<T> {
    from_str(json).map_err(|e| Problem::Value(format!("{name}: {e}: give the JSON that nearprint wrote")))
}

/// Returns the places that tasks read, with the settings `[s3]` of a job as JSON.
fn storage(s3: Option<&str>) -> Result<Storage> {
    Ok(Storage::new(s3.map(|json| described::<S3Config>("s3", json)).transpose()?.unwrap_or_default()))
}
