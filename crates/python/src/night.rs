//! The nightly run, the command, and the settings of profiles.

use std::ffi::OsString;
use std::time::Duration;

use nearprint_cli::{Bytes, Handle, night};
use nearprint_profile::by_name;
use nearprint_storage::stage_for_people;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

use crate::call::watched;
use crate::engine::of_argument;
use crate::error::{Problem, from_json};
use crate::logging;

/// The time that a night may take to end after it was stopped. It takes half a second if a thread is still computing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a night. `arguments` are those of the command after `run`. `engine`, if there is one, runs the tasks. `progress`, if
/// there is one, is called now and then with the number of the step, that of all steps, the name of the step, what is done, the
/// total, and what is counted.
#[pyfunction]
#[pyo3(signature = (arguments, engine=None, progress=None))]
pub(crate) fn run<'py>(
    py: Python<'py>,
    arguments: Vec<OsString>,
    engine: Option<Bound<'py, PyAny>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let engine = of_argument(engine.as_ref());
    let (handle, progress) = (Handle::default(), progress.map(Bound::unbind));
    let (stopped, seen, told) = (handle.clone(), handle.clone(), handle);
    logging::note();
    let mut look = |py: Python<'_>| {
        logging::hand_over(py)?;
        if let (Some(progress), Some(now)) = (&progress, seen.progress()) {
            let stage = stage_for_people(now.stage);
            progress.call1(py, (now.step, now.n_steps, stage, now.done, now.total, now.unit))?;
        }
        Ok(())
    };
    let work = move || Ok(night(arguments, &told, engine.as_ref())?);
    let summary = watched(py, PATIENCE, move || stopped.stop(), &mut look, work);
    // The night has ended, well or not: what the caller's functions raise now takes nothing back.
    let raised = if summary.is_ok() { look(py) } else { logging::hand_over(py) }.err();
    match (summary, raised) {
        (Ok(summary), None) => from_json(py, &summary),
        (Ok(_), Some(raised)) => Err(raised),
        (Err(failed), None) => Err(failed),
        // Ctrl-C, or what ends the program, is no other error of a handler.
        (Err(failed), Some(raised)) if !raised.is_instance_of::<PyException>(py) => {
            raised.set_cause(py, Some(failed));
            Err(raised)
        }
        (Err(failed), Some(raised)) => {
            raised.write_unraisable(py, None);
            Err(failed)
        }
    }
}

/// Runs the command. `arguments` begin with the name of the program. `engine`, if there is one, runs the tasks of `run`.
#[pyfunction]
#[pyo3(signature = (arguments, engine=None))]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, engine: Option<Bound<'_, PyAny>>) -> PyResult<u8> {
    let engine = of_argument(engine.as_ref());
    Ok(py.detach(|| nearprint_cli::run_with(arguments, engine.as_ref())))
}

/// Refuses arguments as the command does, and returns its exit code. `arguments` begin with the name of the program.
#[pyfunction]
pub(crate) fn refuse(py: Python<'_>, arguments: Vec<OsString>, reason: &str) -> u8 {
    py.detach(|| nearprint_cli::refuse(arguments, reason))
}

/// Returns the bytes of a size such as 4GiB, as the command reads it.
#[pyfunction]
pub(crate) fn bytes_of(text: &str) -> PyResult<usize> {
    text.parse::<Bytes>().map(|bytes| bytes.0).map_err(PyValueError::new_err)
}

/// Return all settings of a named profile, as the specification of fingerprint tasks has them.
///
/// Raises:
///     ValueError: there is no such profile; the message lists those that there are.
///
/// >>> import nearprint
/// >>> nearprint.profile("default")["bits"]
/// 64
#[pyfunction]
#[pyo3(signature = (name="default"))]
pub(crate) fn profile<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let profile = by_name(name).map_err(|e| Problem::from(e).raised(py))?;
    let json = serde_json::to_value(&profile).map_err(|e| Problem::bug(&e.to_string()).raised(py))?;
    from_json(py, &json)
}
