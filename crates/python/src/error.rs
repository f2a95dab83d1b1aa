//! The exceptions of a call.

use nearprint_cli::{FailedNight, Failure};
use nearprint_fault::{Fault, Place};
use nearprint_night::FarAhead;
use nearprint_pipeline::TooManyBadRows;
use nearprint_tasks::RepeatedIds;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// The reason why a call has no result. It is made without the GIL, and becomes an exception with it.
pub(crate) enum Problem {
    /// An argument has a value that cannot be used: `ValueError`.
    Value(String),
    /// An argument has a type that cannot be used: `TypeError`.
    Type(String),
    /// An error of nearprint: `nearprint.Error`.
    Failed(Box<FailedNight>),
    /// An exception of Python code that the call ran, such as a reader of batches.
    Raised(PyErr),
}

/// The result of a call.
pub(crate) type Result<T> = std::result::Result<T, Problem>;

impl Problem {
    pub(crate) fn value(reason: impl ToString) -> Self {
        Self::Value(reason.to_string())
    }

    pub(crate) fn bug(reason: &str) -> Self {
        Failure::bug(reason).into()
    }

    /// Describes a panic: a defect, or a lack of threads.
    pub(crate) fn of_panic(panic: &(dyn std::any::Any + Send)) -> Self {
        let lacking = nearprint_storage::lack_of_threads(panic).map(|fault| Failure::from(fault).into());
        lacking.unwrap_or_else(|| Self::bug(&nearprint_storage::panic_text(panic)))
    }

    /// Makes the exception.
    pub(crate) fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Value(reason) => PyValueError::new_err(reason),
            Self::Type(reason) => PyTypeError::new_err(reason),
            Self::Failed(failed) => error(py, *failed).unwrap_or_else(|raised| raised),
            Self::Raised(raised) => raised,
        }
    }
}

/// Return the kind of errors for which the command ends with an exit code.
#[pyfunction]
pub(crate) fn kind_of(exit_code: u8) -> &'static str {
    Failure::new(exit_code, "").kind()
}

fn error(py: Python<'_>, FailedNight { failure, summary }: FailedNight) -> PyResult<PyErr> {
    let attributes = PyDict::new(py);
    attributes.set_item("kind", failure.kind())?;
    attributes.set_item("exit_code", failure.code)?;
    let Place { file, column, row, .. } = failure.fault.place().clone();
    attributes.set_item("file", file)?;
    attributes.set_item("column", column)?;
    attributes.set_item("row", row)?;
    attributes.set_item("about", about(py, &failure.fault)?)?;
    attributes.set_item("reason", failure.message_without_remedy())?;
    if let Some(summary) = summary {
        attributes.set_item("summary", from_json(py, &summary)?)?;
    }
    let class = py.import("nearprint._error")?.getattr("Error")?;
    Ok(PyErr::from_value(class.call((failure.message(),), Some(&attributes))?))
}

/// Returns what Python tells a fault by: "repeated_ids", "far_ahead", or for rows that cannot be used a dictionary of their number, whether
/// reading stopped at that, their numbers by reason, and the row and the reason of one of them.
fn about<'py>(py: Python<'py>, fault: &Fault) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(TooManyBadRows { n, is_stopped, by_reason, explained: (row, reason), .. }) = fault.matter() {
        let rows = PyDict::new(py);
        rows.set_item("n", n)?;
        rows.set_item("is_stopped", is_stopped)?;
        rows.set_item("by_reason", by_reason)?;
        rows.set_item("row", row)?;
        rows.set_item("reason", reason.name())?;
        return Ok(Some(rows.into_any()));
    }
    let name = match () {
        () if fault.matter::<RepeatedIds>().is_some() => "repeated_ids",
        () if fault.matter::<FarAhead>().is_some() => "far_ahead",
        () => return Ok(None),
    };
    Ok(Some(PyString::new(py, name).into_any()))
}

/// Returns the Python object that a JSON value stands for.
pub(crate) fn from_json<'py>(py: Python<'py>, value: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (value.to_string(),))
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(FailedNight { failure, summary: None }))
    }
}

impl From<Box<FailedNight>> for Problem {
    fn from(failed: Box<FailedNight>) -> Self {
        Self::Failed(failed)
    }
}

impl From<PyErr> for Problem {
    fn from(raised: PyErr) -> Self {
        Self::Raised(raised)
    }
}

impl From<arrow::error::ArrowError> for Problem {
    fn from(error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<PyErr>() {
                Ok(raised) => Self::Raised(*raised),
                Err(other) => Self::value(other),
            },
            other => Self::value(other),
        }
    }
}

impl From<nearprint_join::JoinError> for Problem {
    /// The sizes and distances that a join refuses are arguments of the call.
    fn from(error: nearprint_join::JoinError) -> Self {
        Self::value(error)
    }
}

impl From<nearprint_profile::ProfileError> for Problem {
    /// The profile that cannot be used is an argument of the call.
    fn from(error: nearprint_profile::ProfileError) -> Self {
        Self::value(error)
    }
}

/// Makes the problem of an error of a task.
pub(crate) fn failed(error: Fault) -> Problem {
    Failure::from(error).into()
}
