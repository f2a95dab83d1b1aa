//! Engines that are driven from Python: an object with methods runs the tasks of a night elsewhere.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::{AsArray, BinaryArray};
use futures::StreamExt;
use nearprint_fault::{ErrorKind, Fault, Place};
use nearprint_storage::{Progress as Counter, Storage, locked};
use nearprint_tasks::{Engine, FingerprintSpec, FingerprintTask, MapTask, Messages, Weighed, Workers};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use serde::Serialize;
use tokio::sync::mpsc::{Sender, channel};

use crate::input::Input;

/// An object that runs the tasks of a night, as `nearprint.spark` has one. `workers()` returns the number of processes,
/// the threads of each and the bytes of each. `fingerprint(spec, tasks, s3, base, progress)` and `map(folder, tasks, s3,
/// base, progress)` return iterators over columns of messages; `tasks` are pairs of a description and its weight in bytes, and
/// `base` is the folder below which their relative paths lie. `fingerprint` is called again while the iterator of `map` waits.
pub(crate) struct PythonEngine {
    engine: Arc<Py<PyAny>>,
    workers: Mutex<Option<Workers>>,
}

/// The threads that are in Python for an engine, or about to be. Python must not end before them: a thread that comes back
/// from a call into an interpreter that is gone ends the process with a signal.
static IN_PYTHON: AtomicUsize = AtomicUsize::new(0);

/// A thread that is in Python, until this is dropped.
struct InPython;

impl InPython {
    fn enter() -> Self {
        IN_PYTHON.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for InPython {
    fn drop(&mut self) {
        IN_PYTHON.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns the number of threads that are in Python for engines.
#[pyfunction]
pub(crate) fn engine_threads() -> usize {
    IN_PYTHON.load(Ordering::SeqCst)
}

impl PythonEngine {
    fn of(engine: &Bound<'_, PyAny>) -> Arc<dyn Engine> {
        Arc::new(Self { engine: Arc::new(engine.clone().unbind()), workers: Mutex::default() })
    }

    /// Asks for the workers, for which the engine starts.
    fn started(&self) -> Result<Workers, Fault> {
        let _here = InPython::enter();
        Python::attach(|py| {
            let asked = self.engine.bind(py).call_method0("workers").and_then(|workers| workers.extract());
            let (n, threads, memory_bytes) = asked.map_err(|raised| failed(py, &raised))?;
            Ok(Workers { n, threads, memory_bytes })
        })
    }

    /// Calls a method, which returns an iterator, and passes on what it iterates over.
    fn messages(&self, method: &'static str, call: Call) -> Messages {
        let engine = Arc::clone(&self.engine);
        let started = async move {
            let (sender, receiver) = channel(2);
            // The iterator waits for the engine. It stays on one thread, which the program's own threads do not wait for.
            let here = InPython::enter();
            let spawned = std::thread::Builder::new().name("nearprint-engine".to_owned()).spawn(move || {
                let _here = here;
                let sent = Python::attach(|py| iterate(py, engine.bind(py), method, call, &sender));
                if let Err(error) = sent {
                    // After the end of the stage nobody waits for the error any more.
                    let _ = sender.blocking_send(Err(error));
                }
            });
            let failed = spawned.err().map(|e| internal(&e));
            let sent = futures::stream::unfold(receiver, |mut receiver| async move {
                let item = receiver.recv().await?;
                Some((item, receiver))
            });
            futures::stream::iter(failed.map(Err)).chain(sent)
        };
        futures::stream::once(started).flatten().boxed()
    }
}

/// The arguments of a method.
struct Call {
    /// The specification as JSON, or the path of its folder.
    spec: String,
    tasks: Vec<(String, u64)>,
    s3: String,
    /// The whole path of the folder below which relative paths lie.
    base: PathBuf,
    progress: Progress,
}

impl Call {
    fn of<T: Serialize>(
        spec: String,
        tasks: Vec<Weighed<T>>,
        storage: &Storage,
        progress: &Counter,
    ) -> Result<Self, Fault> {
        let described = |task: Weighed<T>| Ok::<_, Fault>((json(&task.task)?, task.bytes));
        let tasks = tasks.into_iter().map(described).collect::<Result<_, _>>()?;
        let step = progress.snapshot().step;
        let progress = Progress { counter: progress.clone(), step, done: Mutex::new(0) };
        let base = match storage.base() {
            base if base.as_os_str().is_empty() => std::env::current_dir(),
            base => std::path::absolute(base),
        };
        Ok(Self {
            spec,
            tasks,
            s3: json(&storage.s3().with_environment())?,
            base: base.map_err(|e| internal(&e))?,
            progress,
        })
    }
}

fn json<T: Serialize>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|e| internal(&e))
}

fn internal(error: &dyn std::fmt::Display) -> Fault {
    Fault::internal("engine", error)
}

fn iterate(
    py: Python<'_>,
    engine: &Bound<'_, PyAny>,
    method: &str,
    call: Call,
    sender: &Sender<Result<BinaryArray, Fault>>,
) -> Result<(), Fault> {
    let raised = |e: PyErr| failed(py, &e);
    let Call { spec, tasks, s3, base, progress } = call;
    let returned = engine.call_method1(method, (spec, tasks, s3, base, progress)).map_err(raised)?;
    for item in PyIterator::from_object(&returned).map_err(raised)? {
        let arrays = columns(&item.map_err(raised)?).map_err(|e| failed(py, &e))?;
        for array in arrays {
            if py.detach(|| sender.blocking_send(Ok(array)).is_err()) {
                // The stage has ended early: a generator learns it by being closed.
                return returned.call_method0("close").map(|_| ()).map_err(raised);
            }
        }
    }
    Ok(())
}

fn columns(item: &Bound<'_, PyAny>) -> PyResult<Vec<BinaryArray>> {
    let py = item.py();
    let input = Input::of("messages", item).map_err(|e| e.raised(py))?;
    let arrays = input.columns().map(|array| {
        let array = array.map_err(|e| e.raised(py))?;
        let binary = array.as_binary_opt::<i32>().cloned();
        binary.ok_or_else(|| pyo3::exceptions::PyTypeError::new_err("messages: expected a column of Binary"))
    });
    arrays.collect()
}

/// Returns the error that an engine's exception stands for. An exception that is no `nearprint.Error` is a defect.
fn failed(py: Python<'_>, raised: &PyErr) -> Fault {
    let value = raised.value(py);
    let attribute = |name: &str| value.getattr(name).ok();
    let text = |name: &str| attribute(name).and_then(|value| value.extract::<String>().ok());
    let Some(kind) = text("kind").as_deref().and_then(ErrorKind::named) else {
        return Fault::internal("engine", raised);
    };
    let mut place = Place::default();
    (place.file, place.column) = (text("file"), text("column"));
    place.row = attribute("row").and_then(|value| value.extract().ok());
    Fault::told(kind, value.to_string(), place)
}

impl Engine for PythonEngine {
    fn workers(&self) -> Result<Workers, Fault> {
        let mut known = locked(&self.workers);
        let workers = match *known {
            Some(workers) => workers,
            None => self.started()?,
        };
        *known = Some(workers);
        Ok(workers)
    }

    fn fingerprint(
        &self,
        spec: &FingerprintSpec,
        tasks: Vec<Weighed<FingerprintTask>>,
        storage: &Storage,
        progress: &Counter,
    ) -> Messages {
        match json(spec).and_then(|spec| Call::of(spec, tasks, storage, progress)) {
            Ok(call) => self.messages("fingerprint", call),
            Err(error) => once(error),
        }
    }

    fn map(&self, folder: &Path, tasks: Vec<Weighed<MapTask>>, storage: &Storage, progress: &Counter) -> Messages {
        match Call::of(folder.display().to_string(), tasks, storage, progress) {
            Ok(call) => self.messages("map", call),
            Err(error) => once(error),
        }
    }
}

fn once(error: Fault) -> Messages {
    futures::stream::once(futures::future::ready(Err(error))).boxed()
}

/// The progress of a stage, which an engine reports.
#[pyclass(frozen, module = "nearprint")]
pub struct Progress {
    counter: Counter,
    /// The number of the stage.
    step: u32,
    done: Mutex<u64>,
}

#[pymethods]
impl Progress {
    /// Log a warning.
    #[staticmethod]
    fn warn(text: &str) {
        tracing::warn!("{text}");
    }

    /// Report that a share of the stage's work is done. A smaller share than before changes nothing, and neither does a report
    /// after the next stage has begun.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of a count, for people"
    )]
    fn reach(&self, share: f64) {
        let stage = self.counter.snapshot();
        if stage.step != self.step {
            return;
        }
        let reached = (stage.total as f64 * share.clamp(0.0, 1.0)) as u64;
        let mut done = locked(&self.done);
        self.counter.advance(reached.saturating_sub(*done));
        *done = reached.max(*done);
    }
}

/// Returns the engine of an argument that may be None.
pub(crate) fn of_argument(engine: Option<&Bound<'_, PyAny>>) -> Option<Arc<dyn Engine>> {
    engine.map(PythonEngine::of)
}
