//! Fingerprints and sketches of texts.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, UInt64Array};
use nearprint_fingerprint::Sketch;
use nearprint_profile::{JoinConfig, Outcome, ProfileConfig, TextFingerprinter, by_name};
use nearprint_tokenize::Resources;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use rayon::prelude::*;

use crate::call::{Cancelled, Integer, interruptible, pool, threads_of};
use crate::error::{Problem, Result};
use crate::input::{Input, SKETCH_BYTES, Texts};
use crate::output::Array;

/// Return the SimHash fingerprint of a text, or of each text of a column.
///
/// Args:
///     text: a string, or a column of strings of n rows: of pyarrow, Polars, DuckDB, pandas or NumPy, or a list. A table of
///         one column counts as the column.
///     profile: the name of a profile, as in a job file.
///     threads: the most threads, all cores by default. A single string takes one.
///
/// Returns:
///     For a string an integer, of as many bits as the profile has (64 in "default"), or None if the text is empty or has
///     fewer distinct features than the floor (10 for Chinese, 8 for other text). For a column a UInt64 array of n rows,
///     null where a string gives None and where the text is null. For a Series of pandas a Series of UInt64.
///
/// Raises:
///     ValueError: there is no such profile, `threads` is out of range, or a text is not UTF-8.
///     TypeError: `text` is neither a string nor a column of strings.
///
/// >>> import nearprint
/// >>> nearprint.fingerprint("too short") is None
/// True
/// >>> import pyarrow as pa
/// >>> line = "The quick brown fox jumps over the lazy dog near the old river bank."
/// >>> column = nearprint.fingerprint(pa.array([line, None, "too short"]))
/// >>> column.to_pylist() == [nearprint.fingerprint(line), None, None]
/// True
/// >>> pa.array(column).type
/// DataType(uint64)
#[pyfunction]
#[pyo3(signature = (text, profile="default", *, threads=None))]
pub(crate) fn fingerprint<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyAny>,
    profile: &str,
    threads: Option<Integer>,
) -> PyResult<Bound<'py, PyAny>> {
    let threads = threads.map(threads_of).transpose().map_err(|e| e.raised(py))?;
    let fingerprinter = without_sketches(profile).and_then(fingerprinter).map_err(|e| e.raised(py))?;
    if let Ok(text) = text.cast::<PyString>() {
        let outcome = of_text(py, &fingerprinter, text.to_str()?)?;
        return Ok(value(&outcome).into_pyobject(py)?);
    }
    if fingerprinter.config().bits > 64 {
        let wide = format!("profile '{profile}' has fingerprints of more than 64 bits: give one text at a time");
        return Err(Problem::Value(wide).raised(py));
    }
    let input = Input::of("text", text).map_err(|e| e.raised(py))?;
    let fingerprints = interruptible(py, move |cancelled| {
        let mut fingerprints: Vec<Option<u64>> = Vec::new();
        of_column(input, &fingerprinter, threads, cancelled, &mut fingerprints, |outcome| match outcome {
            Outcome::Fingerprinted { fingerprint, .. } => Some(fingerprint),
            Outcome::Empty | Outcome::TooShort { .. } => None,
        })?;
        Ok(Arc::new(UInt64Array::from(fingerprints)) as ArrayRef)
    })?;
    like(text, Array::new("fingerprint", fingerprints))
}

/// Return the sketch of a text, or of each text of a column: 256 bits that verify a pair of near fingerprints.
///
/// Args:
///     text: a string, or a column of strings of n rows.
///     profile: the name of a profile that makes sketches, as "default" does.
///     threads: the most threads, all cores by default.
///
/// Returns:
///     For a string 32 bytes, or None where `fingerprint` gives None. For a column a FixedSizeBinary(32) array of n rows.
///     Two texts of Jaccard similarity J differ in about (1 - J) / 2 of the bits.
///
/// Raises:
///     ValueError: there is no such profile, or it makes no sketches, `threads` is out of range, or a text is not UTF-8.
///     TypeError: `text` is neither a string nor a column of strings.
///
/// >>> import nearprint
/// >>> len(nearprint.sketch("The quick brown fox jumps over the lazy dog near the old river bank."))
/// 32
#[pyfunction]
#[pyo3(signature = (text, profile="default", *, threads=None))]
pub(crate) fn sketch<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyAny>,
    profile: &str,
    threads: Option<Integer>,
) -> PyResult<Bound<'py, PyAny>> {
    let threads = threads.map(threads_of).transpose().map_err(|e| e.raised(py))?;
    let fingerprinter = by_name(profile).map_err(Problem::from).and_then(fingerprinter).map_err(|e| e.raised(py))?;
    if fingerprinter.config().sketch.is_none() {
        let none = format!("profile '{profile}' makes no sketches: use another, such as default");
        return Err(Problem::Value(none).raised(py));
    }
    if let Ok(text) = text.cast::<PyString>() {
        let outcome = of_text(py, &fingerprinter, text.to_str()?)?;
        return Ok(sketch_of(outcome).map(|sketch| PyBytes::new(py, &sketch.0)).into_pyobject(py)?);
    }
    let input = Input::of("text", text).map_err(|e| e.raised(py))?;
    let sketches = interruptible(py, move |cancelled| {
        let mut sketches: Vec<Option<Sketch>> = Vec::new();
        of_column(input, &fingerprinter, threads, cancelled, &mut sketches, sketch_of)?;
        let bytes = sketches.iter().map(|sketch| sketch.as_ref().map(|sketch| sketch.0.as_slice()));
        Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, SKETCH_BYTES)?) as ArrayRef)
    })?;
    like(text, Array::new("sketch", sketches))
}

/// Returns a column of results in the form of a given one: for a column of pandas as one of pandas.
fn like<'py>(given: &Bound<'py, PyAny>, column: Array) -> PyResult<Bound<'py, PyAny>> {
    let column = Bound::new(given.py(), column)?.into_any();
    given.py().import("nearprint._frames")?.call_method1("like", (given, column))
}

fn fingerprinter(profile: ProfileConfig) -> Result<TextFingerprinter> {
    Ok(TextFingerprinter::try_new(profile, &Resources::default())?)
}

/// Returns a named profile without its sketches, which take about half of the time of a text. Fingerprints are the same.
fn without_sketches(profile: &str) -> Result<ProfileConfig> {
    let mut config = by_name(profile)?;
    config.sketch = None;
    config.join = JoinConfig { max_sketch_distance: None, earlier: None, ..config.join };
    Ok(config)
}

fn of_text(py: Python<'_>, fingerprinter: &TextFingerprinter, text: &str) -> PyResult<Outcome> {
    py.detach(|| outcome(fingerprinter, text)).map_err(|e| e.raised(py))
}

fn outcome(fingerprinter: &TextFingerprinter, text: &str) -> Result<Outcome> {
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| fingerprinter.fingerprint(text)));
    done.map(|text| text.outcome).map_err(|panic| Problem::of_panic(&*panic))
}

fn value(outcome: &Outcome) -> Option<u128> {
    match *outcome {
        Outcome::Fingerprinted { fingerprint, low_half: Some(low), .. } => {
            Some(u128::from(fingerprint) << 64 | u128::from(low))
        }
        Outcome::Fingerprinted { fingerprint, .. } => Some(fingerprint.into()),
        Outcome::Empty | Outcome::TooShort { .. } => None,
    }
}

fn sketch_of(outcome: Outcome) -> Option<Sketch> {
    match outcome {
        Outcome::Fingerprinted { sketch, .. } => sketch,
        Outcome::Empty | Outcome::TooShort { .. } => None,
    }
}

/// Fingerprints a column array by array, each by all threads of the call, and appends what `of` takes of each text.
fn of_column<T: Send>(
    input: Input<'_>,
    fingerprinter: &TextFingerprinter,
    threads: Option<usize>,
    cancelled: &Cancelled,
    into: &mut Vec<Option<T>>,
    of: impl Fn(Outcome) -> Option<T> + Sync,
) -> Result<()> {
    let (pool, name) = (pool(threads)?, input.name());
    for array in input.columns() {
        let texts = Texts::of(name, &array?)?;
        let of_row = |text: Option<&str>| match text {
            Some(text) if !cancelled.is_set() => Ok(of(outcome(fingerprinter, text)?)),
            _ => Ok(None),
        };
        let texts = texts.texts();
        into.extend(pool.install(|| texts.into_par_iter().map(of_row).collect::<Result<Vec<Option<T>>>>())?);
        if cancelled.is_set() {
            break;
        }
    }
    Ok(())
}
