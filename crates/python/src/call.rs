//! Long calls: they run without the GIL, and Ctrl-C ends them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use nearprint_cli::Failure;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use rayon::ThreadPool;

use crate::error::{Problem, Result};

/// The time between two looks for signals.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A flag that says whether a call is no longer wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the flag, for work that looks at it itself.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does `work` on a thread of its own, and waits for it without the GIL. If a handler of a signal raises an exception
/// meanwhile, as that of Ctrl-C does, the call raises it at once. The work is then told, and its result is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Cancelled) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let cancelled = Cancelled::default();
    let told = cancelled.clone();
    stoppable(py, Duration::ZERO, move || cancelled.set(), move || work(&told))
}

/// As [`interruptible`], for work that `stop` stops. Before the call raises the exception, it waits for at most `patience`
/// until the work has ended.
pub(crate) fn stoppable<T: Send + 'static>(
    py: Python<'_>,
    patience: Duration,
    stop: impl FnOnce(),
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    watched(py, patience, stop, |_| Ok(()), work)
}

/// As [`stoppable`]. `look` is called now and then while the work goes on; an exception of it ends the call too.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    patience: Duration,
    stop: impl FnOnce(),
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    let work = move || {
        let done = std::panic::catch_unwind(AssertUnwindSafe(work));
        let done = done.unwrap_or_else(|panic| Err(Problem::of_panic(&*panic)));
        // After an exception nobody waits for the result any more.
        let _ = sender.send(done);
    };
    let thread = std::thread::Builder::new().name("nearprint".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(work).map_err(|e| no_threads(&e).raised(py))?;
    loop {
        let done;
        (receiver, done) = py.detach(move || {
            let done = receiver.recv_timeout(LOOK);
            (receiver, done)
        });
        match done {
            Ok(done) => return done.map_err(|problem| problem.raised(py)),
            Err(RecvTimeoutError::Disconnected) => return Err(Problem::bug("a thread ended early").raised(py)),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals().and_then(|()| look(py)) {
                    stop();
                    let _ = py.detach(move || receiver.recv_timeout(patience));
                    return Err(raised);
                }
            }
        }
    }
}

/// The stack of a thread that works, which is as large as that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// An integer argument, which may be one of NumPy. One beyond 64 bits is out of each range, and counts as the largest or the
/// smallest of 64 bits, which are so too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Integer(pub(crate) i64);

impl FromPyObject<'_, '_> for Integer {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract::<i64>() {
            Err(raised) if raised.is_instance_of::<PyOverflowError>(value.py()) => {
                Ok(Self(if value.lt(0)? { i64::MIN } else { i64::MAX }))
            }
            other => other.map(Self),
        }
    }
}

/// Returns the most threads of a call, which the caller has given.
pub(crate) fn threads_of(Integer(n): Integer) -> Result<usize> {
    let in_range = u16::try_from(n).ok().filter(|&n| n > 0);
    in_range.map(usize::from).ok_or_else(|| Problem::value(format!("threads is {n}: use 1 to {}", u16::MAX)))
}

/// Makes the pool of one call.
pub(crate) fn pool(threads: Option<usize>) -> Result<ThreadPool> {
    if threads == Some(0) {
        return Err(Problem::value("threads must be at least 1"));
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build().map_err(|e| no_threads(&e))
}

pub(crate) fn no_threads(error: &dyn std::fmt::Display) -> Problem {
    Failure::new(LOCAL_IO, format!("cannot start threads: {error}")).into()
}

/// The exit code for a machine that lacks memory, threads or room, or whose disks fail.
pub(crate) const LOCAL_IO: u8 = 74;
