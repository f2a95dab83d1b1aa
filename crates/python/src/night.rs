//! The nightly run, the command, and the settings of profiles.

use std::ffi::OsString;
use std::time::Duration;

use nearprint_cli::{Bytes, Stop, night};
use nearprint_profile::by_name;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::stoppable;
use crate::engine::of_argument;
use crate::error::{Problem, from_json};

/// The time that a night may take to end after it was stopped. It takes half a second if a thread is still computing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a night. `arguments` are those of the command after `run`. `engine`, if there is one, runs the tasks.
#[pyfunction]
#[pyo3(signature = (arguments, engine=None))]
pub(crate) fn run<'py>(
    py: Python<'py>,
    arguments: Vec<OsString>,
    engine: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let engine = of_argument(engine.as_ref());
    let stop = Stop::default();
    let told = stop.clone();
    let summary = stoppable(py, PATIENCE, move || stop.stop(), move || Ok(night(arguments, &told, engine.as_ref())?))?;
    from_json(py, &summary)
}

/// Runs the command. `arguments` begin with the name of the program. `engine`, if there is one, runs the tasks of `run`.
#[pyfunction]
#[pyo3(signature = (arguments, engine=None))]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, engine: Option<Bound<'_, PyAny>>) -> PyResult<u8> {
    let engine = of_argument(engine.as_ref());
    Ok(py.detach(|| nearprint_cli::run_with(arguments, engine.as_ref())))
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
