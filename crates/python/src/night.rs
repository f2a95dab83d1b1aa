//! The nightly run, the command, and the settings of profiles.

use std::ffi::OsString;
use std::time::Duration;

use nearprint_cli::{Stop, night};
use nearprint_profile::by_name;
use pyo3::prelude::*;

use crate::call::stoppable;
use crate::error::{Problem, from_json};

/// The time that a night may take to end after it was stopped. It takes half a second if a thread is still computing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a night. `arguments` are those of the command after `run`.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<Bound<'_, PyAny>> {
    let stop = Stop::default();
    let told = stop.clone();
    let summary = stoppable(py, PATIENCE, move || stop.stop(), move || Ok(night(arguments, &told)?))?;
    from_json(py, &summary)
}

/// Runs the command. `arguments` begin with the name of the program.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| nearprint_cli::run(arguments))
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
