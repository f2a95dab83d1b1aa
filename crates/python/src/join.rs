//! Distances and pairs of fingerprints.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, Int32Array, Int64Array, RecordBatch};
use nearprint_fingerprint::Sketch;
use nearprint_join::{Column, HammingJoin, NearPair, QueryRows, Verifier};
use nearprint_profile::{JoinConfig, by_name};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::{Cancelled, Integer, interruptible, pool, threads_of};
use crate::error::{Problem, Result};
use crate::input::{BitColumn, Fingerprints, Input, integer};
use crate::output::{Array, Table};

/// The bits of the fingerprints in a column.
pub(crate) const BITS: u32 = 64;

/// Return the Hamming distance: the number of bits in which two fingerprints or two sketches differ.
///
/// Args:
///     a, b: two integers of 0 to 128 bits; two byte strings of one length; or columns of fingerprints (integers) or of
///         sketches (32 bytes) with as many rows. One of them may be a single value instead.
///
/// Returns:
///     An integer, or for columns an Int32 array, null where a row of either is null.
///
/// Raises:
///     ValueError: a value is negative or too large, or the lengths differ.
///     TypeError: the types cannot be compared.
///
/// >>> import nearprint, pyarrow as pa
/// >>> nearprint.hamming(0b1111, 0b0001)
/// 3
/// >>> nearprint.hamming(pa.array([0b1111, None, 0], pa.uint64()), 1).to_pylist()
/// [3, None, 1]
#[pyfunction]
pub(crate) fn hamming<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let sides = Side::of("a", a).and_then(|a| Ok((a, Side::of("b", b)?))).map_err(|e| e.raised(py))?;
    match sides {
        (Side::Number(a), Side::Number(b)) => Ok((a ^ b).count_ones().into_pyobject(py)?.into_any()),
        (Side::Bytes(a), Side::Bytes(b)) => {
            let distance = of_bytes(&a, &b).map_err(|e| e.raised(py))?;
            Ok(distance.into_pyobject(py)?.into_any())
        }
        (a, b) => {
            let distances = interruptible(py, move |_| {
                let (a, b) = (a.read()?, b.read()?);
                let distances: Int32Array = between(&a, &b)?;
                Ok(Arc::new(distances) as ArrayRef)
            })?;
            Ok(Bound::new(py, Array::new("distance", distances))?.into_any())
        }
    }
}

/// One of the arguments of `hamming`.
enum Side {
    Number(u128),
    Bytes(Vec<u8>),
    Unread(Box<Input<'static>>),
    Column(BitColumn),
}

impl Side {
    fn of(name: &'static str, argument: &Bound<'_, PyAny>) -> Result<Self> {
        if let Some(number) = integer(argument)? {
            let range = |_| Problem::Value(format!("{name}: a fingerprint has 0 to 128 bits and no sign"));
            return number.extract::<u128>().map(Self::Number).map_err(range);
        }
        if let Ok(bytes) = argument.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.as_bytes().to_vec()));
        }
        Ok(Self::Unread(Box::new(Input::of(name, argument)?)))
    }

    fn read(self) -> Result<Self> {
        match self {
            Self::Unread(input) => Ok(Self::Column(input.bits()?)),
            other => Ok(other),
        }
    }
}

/// Returns the distances of two columns row by row, or of a column and one value.
fn between(a: &Side, b: &Side) -> Result<Int32Array> {
    use BitColumn::{Fingerprints, Sketches};
    use Side::{Bytes, Number};
    match (a, b) {
        (Side::Column(Fingerprints(a)), Side::Column(Fingerprints(b))) => {
            refuse_other_length(a.len(), b.len())?;
            Ok(a.iter().zip(b).map(|(a, b)| Some(of_numbers(a?, b?))).collect())
        }
        (Side::Column(Sketches(a)), Side::Column(Sketches(b))) => {
            refuse_other_length(a.len(), b.len())?;
            a.iter().zip(b).map(|(a, b)| a.zip(b).map(|(a, b)| of_bytes(a, b)).transpose()).collect()
        }
        (Side::Column(Fingerprints(column)), Number(value)) | (Number(value), Side::Column(Fingerprints(column))) => {
            let wide = |_| Problem::value("a fingerprint of more than 64 bits cannot be compared with a column");
            let value = u64::try_from(*value).map_err(wide)?;
            Ok(column.iter().map(|other| Some(of_numbers(other?, value))).collect())
        }
        (Side::Column(Sketches(column)), Bytes(value)) | (Bytes(value), Side::Column(Sketches(column))) => {
            column.iter().map(|other| other.map(|other| of_bytes(other, value)).transpose()).collect()
        }
        _ => Err(Problem::Type(
            "fingerprints (integers) compare with fingerprints, sketches (bytes) with sketches".to_owned(),
        )),
    }
}

fn of_numbers(a: u64, b: u64) -> i32 {
    (a ^ b).count_ones().cast_signed()
}

fn of_bytes(a: &[u8], b: &[u8]) -> Result<i32> {
    if a.len() != b.len() {
        return Err(Problem::Value(format!(
            "{} bytes and {} bytes: compare byte strings of one length",
            a.len(),
            b.len()
        )));
    }
    let distance: u32 = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
    i32::try_from(distance).map_err(|_| Problem::value("byte strings with more than 2^31 - 1 different bits"))
}

fn refuse_other_length(a: usize, b: usize) -> Result<()> {
    if a == b { Ok(()) } else { Err(Problem::Value(format!("a has {a} rows and b has {b}: give as many"))) }
}

/// Return every pair of fingerprints of a column that differ in at most k bits.
///
/// The join is exact: no pair is missing, whatever the fingerprints are. Ctrl-C returns at once; the work ends after the
/// four million fingerprints in hand.
///
/// Args:
///     column: n fingerprints as integers of at most 64 bits. A null is in no pair. Of a table, the column `fingerprint`.
///     k: the largest distance, 0 to 63.
///     threads: the most threads, all cores by default.
///
/// Returns:
///     A table with the columns `a` and `b` (Int64: rows of `column` from 0, a < b) and `distance` (Int32), in ascending
///     order of a and b.
///
/// Raises:
///     ValueError: k or `threads` is out of range, a fingerprint is negative, or there are 2^32 - 1 rows or more.
///     TypeError: the column has no integers.
///
/// >>> import nearprint, pyarrow as pa
/// >>> column = pa.array([0b0000, 0b0111, 0xFFFF_FFFF, None, 0b0001], pa.uint64())
/// >>> nearprint.pairs_within(column, 2).to_pylist()
/// [{'a': 0, 'b': 4, 'distance': 1}, {'a': 1, 'b': 4, 'distance': 2}]
#[pyfunction]
#[pyo3(signature = (column, k, *, threads=None))]
pub(crate) fn pairs_within(
    py: Python<'_>,
    column: &Bound<'_, PyAny>,
    k: Integer,
    threads: Option<Integer>,
) -> PyResult<Table> {
    let verifier = verifier("k", k.0, None).map_err(|e| e.raised(py))?;
    let threads = threads.map(threads_of).transpose().map_err(|e| e.raised(py))?;
    let input = Input::of("column", column).map_err(|e| e.raised(py))?;
    interruptible(py, move |cancelled| {
        let column = input.only_fingerprints()?;
        let join = join_of(&verifier, cancelled);
        let pairs = pool(threads)?.install(|| {
            if column.null_count() == 0 {
                return join.within(column.values());
            }
            let (rows, values): (Vec<u32>, Vec<u64>) =
                (0..).zip(&column).filter_map(|(row, v)| Some((row, v?))).unzip();
            let row = |position: u32| rows[position as usize];
            let pairs = join.within(&values)?.into_iter();
            Ok(pairs.map(|pair| NearPair { a: row(pair.a), b: row(pair.b), ..pair }).collect())
        })?;
        let columns = ["a", "b", "distance"].into_iter().zip(columns(&pairs));
        Ok(RecordBatch::try_from_iter(columns)?.into())
    })
}

/// Return every pair of a query and an existing fingerprint within the distances.
///
/// Args:
///     queries, existing: tables with a column `fingerprint` (integers of at most 64 bits) and, if there are sketches, a
///         column `sketch` (32 bytes); or columns of fingerprints alone.
///     max_distance: the largest distance of two fingerprints, 0 to 63; that of the profile "default" if None.
///     max_sketch_distance: the largest distance of two sketches, 0 to 255. If None, that of the profile "default" where
///         both tables have sketches, and sketches are not compared otherwise. If sketches are compared, a row without a
///         sketch is in no pair.
///     threads: the most threads, all cores by default.
///
/// Returns:
///     A table with the columns `query` and `existing` (Int64: rows from 0), `distance` (Int32) and `sketch_distance`
///     (Int32, null if sketches are not compared), in ascending order of query and existing.
///
/// Raises:
///     ValueError: a distance or `threads` is out of range, a fingerprint is negative, `max_sketch_distance` is given and a
///         table has no sketches, or there are 2^32 - 1 rows or more.
///     TypeError: a column has another type.
///
/// >>> import nearprint, pyarrow as pa
/// >>> tonight, before = pa.array([0b0000, 0xFF], pa.uint64()), pa.array([0b0111, 0b0001], pa.uint64())
/// >>> nearprint.join(tonight, before, max_distance=1).to_pylist()
/// [{'query': 0, 'existing': 1, 'distance': 1, 'sketch_distance': None}]
#[pyfunction]
#[pyo3(signature = (queries, existing, max_distance=None, max_sketch_distance=None, *, threads=None))]
pub(crate) fn join(
    py: Python<'_>,
    queries: &Bound<'_, PyAny>,
    existing: &Bound<'_, PyAny>,
    max_distance: Option<Integer>,
    max_sketch_distance: Option<Integer>,
    threads: Option<Integer>,
) -> PyResult<Table> {
    let threads = threads.map(threads_of).transpose().map_err(|e| e.raised(py))?;
    let default = by_name("default").map_err(|e| Problem::from(e).raised(py))?.join;
    let max_distance = max_distance.map_or(default.max_distance.into(), |limit| limit.0);
    let max_sketch_distance = max_sketch_distance.map(|limit| limit.0);
    verifier("max_distance", max_distance, max_sketch_distance).map_err(|e| e.raised(py))?;
    let inputs = Input::of("queries", queries).and_then(|q| Ok((q, Input::of("existing", existing)?)));
    let (queries, existing) = inputs.map_err(|e| e.raised(py))?;
    interruptible(py, move |cancelled| {
        let (queries, existing) = (queries.fingerprints()?, existing.fingerprints()?);
        let both = queries.sketches.is_some() && existing.sketches.is_some();
        if max_sketch_distance.is_some() && !both {
            let side = if queries.sketches.is_some() { "existing" } else { "queries" };
            let without = format!("{side}: no column 'sketch': add it, or leave max_sketch_distance out");
            return Err(Problem::Value(without));
        }
        let sketch_limit = max_sketch_distance.or(default.max_sketch_distance.map(i64::from)).filter(|_| both);
        let verifier = verifier("max_distance", max_distance, sketch_limit)?;
        let mut found = pool(threads)?.install(|| {
            let mut found = Vec::new();
            let (queries, existing) = (grouped(queries, both)?, grouped(existing, both)?);
            join_of(&verifier, cancelled).rows_between(queries, existing, &verifier, BITS, |pair, sketches| {
                found.push((pair, sketches));
            })?;
            Ok::<_, Problem>(found)
        })?;
        found.sort_unstable();
        let pairs: Vec<NearPair> = found.iter().map(|(pair, _)| *pair).collect();
        let [a, b, distance] = columns(&pairs);
        let sketches: Int32Array = found.into_iter().map(|(_, sketches)| sketches.map(i32::from)).collect();
        let columns = [("query", a, false), ("existing", b, false), ("distance", distance, false)];
        let columns = columns.into_iter().chain([("sketch_distance", Arc::new(sketches) as ArrayRef, true)]);
        Ok(RecordBatch::try_from_iter_with_nullable(columns)?.into())
    })
}

fn grouped(side: Fingerprints, with_sketches: bool) -> Result<(QueryRows, Vec<u64>)> {
    // A column without values stands for none.
    let sketches: Column<Sketch> = side.sketches.filter(|_| with_sketches).unwrap_or_default();
    Ok(QueryRows::group(side.fingerprints, Arc::new(sketches))?)
}

fn join_of(verifier: &Verifier, cancelled: &Cancelled) -> HammingJoin {
    HammingJoin::new(verifier.max_distance.into()).stopped_by(cancelled.flag())
}

/// Returns the largest distance of values of so many bits, which the caller has given by this name.
pub(crate) fn limit(name: &str, value: i64, bits: u32) -> Result<u32> {
    let refused = || Problem::Value(format!("{name} is {value}: use 0 to {}", bits - 1));
    u32::try_from(value).ok().filter(|&limit| limit < bits).ok_or_else(refused)
}

/// Returns the limits of a join. `name` is that of the argument with the largest distance.
fn verifier(name: &str, max_distance: i64, max_sketch_distance: Option<i64>) -> Result<Verifier> {
    let max_distance = limit(name, max_distance, BITS)?;
    let max_sketch_distance = max_sketch_distance.map(|d| limit("max_sketch_distance", d, Sketch::BITS)).transpose()?;
    Ok(JoinConfig { max_distance, max_sketch_distance, earlier: None }.verifier(BITS)?)
}

/// Returns the columns of pairs.
fn columns(pairs: &[NearPair]) -> [ArrayRef; 3] {
    [
        Arc::new(Int64Array::from_iter_values(pairs.iter().map(|pair| pair.a.into()))),
        Arc::new(Int64Array::from_iter_values(pairs.iter().map(|pair| pair.b.into()))),
        Arc::new(Int32Array::from_iter_values(pairs.iter().map(|pair| pair.distance.into()))),
    ]
}
