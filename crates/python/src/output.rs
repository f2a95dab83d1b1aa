//! Columns and tables that go out through the PyCapsule interface.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::compute::{can_cast_types, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Field, FieldRef, Float64Type, Int32Type, Int64Type, SchemaRef, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyIterator, PyList, PyTuple};
use pyo3_arrow::PyField;
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::{ArrayIterator, ArrayReader, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule};

use crate::input::EXACT;

/// A column of results in Arrow's memory. Whatever takes Arrow arrays through the PyCapsule interface takes it:
/// pyarrow.array, polars.Series, pandas.Series.from_arrow.
#[pyclass(frozen, module = "nearprint")]
pub struct Array {
    array: ArrayRef,
    field: FieldRef,
}

impl Array {
    /// Makes a column of results.
    pub(crate) fn new(name: &str, array: ArrayRef) -> Self {
        let field = Arc::new(Field::new(name, array.data_type().clone(), true));
        Self { array, field }
    }
}

impl Array {
    /// Returns the values.
    pub(crate) fn array(&self) -> &ArrayRef {
        &self.array
    }
}

impl Table {
    /// Returns the rows.
    pub(crate) fn batch(&self) -> &RecordBatch {
        &self.batch
    }
}

/// The type of values of fixed width, their bytes, and a byte for each that says whether it is there.
type Buffers<'py> = (String, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Calls a function of the part of the package that knows the libraries of frames.
fn of_frames<'py>(py: Python<'py>, function: &str, result: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    py.import("nearprint._frames")?.call_method1(function, (result,))
}

#[pymethods]
impl Array {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyTuple>> {
        let (array, field) = as_requested(&self.array, &self.field, requested_schema)?;
        to_array_pycapsules(py, field, &array, None)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let (array, field) = as_requested(&self.array, &self.field, requested_schema)?;
        to_stream_pycapsule(py, reader(array, field), None)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(py, self.field.as_ref())
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<nearprint.Array of {} {}, {} null>",
            self.array.len(),
            self.array.data_type(),
            self.array.null_count()
        )
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_pylist(py)?.try_iter()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, row: isize) -> PyResult<Bound<'py, PyAny>> {
        let n = self.array.len();
        let at = if row < 0 { row.checked_add_unsigned(n) } else { Some(row) };
        let at = at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < n);
        let at = at.ok_or_else(|| PyIndexError::new_err(format!("row {row} of {n}")))?;
        let value = values(py, &self.array.slice(at, 1))?.pop();
        value.ok_or_else(|| PyIndexError::new_err(format!("row {row} of {n}")))
    }

    /// The values for NumPy: of their own type if none is missing, otherwise objects, with None where there is none.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _always_a_copy = copy;
        let py = slf.py();
        py.import("nearprint._frames")?.call_method1("to_numpy", (slf, dtype))
    }

    /// The values as bytes, and for each whether there is one; None for values that have no fixed width.
    fn _buffers<'py>(&self, py: Python<'py>) -> PyResult<Option<Buffers<'py>>> {
        let data_type = self.array.data_type();
        let Some(width) = data_type.primitive_width() else { return Ok(None) };
        let data = self.array.to_data();
        let Some(buffer) = data.buffers().first() else { return Ok(None) };
        let start = data.offset() * width;
        let Some(bytes) = buffer.as_slice().get(start..start + data.len() * width) else { return Ok(None) };
        let is_there: Vec<u8> = (0..self.array.len()).map(|row| u8::from(self.array.is_valid(row))).collect();
        Ok(Some((data_type.to_string().to_lowercase(), PyBytes::new(py, bytes), PyBytes::new(py, &is_there))))
    }

    /// Whether the values are texts.
    fn _is_text(&self) -> bool {
        self.array.data_type().is_string()
    }

    /// The column as a pandas Series: of nullable integers, such as UInt64, where it has integers.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of_frames(slf.py(), "to_pandas", slf.clone().into_any())
    }

    /// The column as a pyarrow Array.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of_frames(slf.py(), "to_arrow", slf.clone().into_any())
    }

    /// The column as a Polars Series.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of_frames(slf.py(), "to_polars", slf.clone().into_any())
    }

    /// The values as Python objects, None where there is none.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, values(py, &self.array)?)
    }
}

/// A table of results in Arrow's memory. Whatever takes tables through the PyCapsule interface takes it: pyarrow.table,
/// pyarrow.RecordBatchReader.from_stream, polars.DataFrame, pandas.DataFrame.from_arrow.
#[pyclass(frozen, module = "nearprint")]
pub struct Table {
    schema: SchemaRef,
    batch: RecordBatch,
}

impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batch }
    }
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let fields = DataType::Struct(self.schema.fields().clone());
        let field = Field::new("", fields, false).with_metadata(self.schema.metadata().clone());
        let rows: ArrayRef = Arc::new(StructArray::from(self.batch.clone()));
        let (rows, field) = as_requested(&rows, &Arc::new(field), requested_schema)?;
        to_stream_pycapsule(py, reader(rows, field), None)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(py, self.schema.as_ref())
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<nearprint.Table of {} rows: {}>", self.batch.num_rows(), self.column_names().join(", "))
    }

    /// The names of the columns, in their order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.to_pylist(py)?)?.try_iter()
    }

    /// A column by its name.
    fn __getitem__(&self, name: &str) -> PyResult<Array> {
        let missing =
            || PyKeyError::new_err(format!("no column '{name}', there are: {}", self.column_names().join(", ")));
        let column = self.batch.column_by_name(name).ok_or_else(missing)?;
        Ok(Array::new(name, Arc::clone(column)))
    }

    /// The table as a pandas DataFrame, with nullable integers.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of_frames(slf.py(), "to_pandas", slf.clone().into_any())
    }

    /// The table as a pyarrow Table.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of_frames(slf.py(), "to_arrow", slf.clone().into_any())
    }

    /// The table as a Polars DataFrame.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of_frames(slf.py(), "to_polars", slf.clone().into_any())
    }

    /// The rows as dictionaries.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows: Vec<Bound<'py, PyDict>> = (0..self.batch.num_rows()).map(|_| PyDict::new(py)).collect();
        for (field, column) in self.schema.fields().iter().zip(self.batch.columns()) {
            for (row, value) in rows.iter().zip(values(py, column)?) {
                row.set_item(field.name(), value)?;
            }
        }
        Ok(rows)
    }
}

/// Returns an array in the type that a consumer asks for, if it can be had, and otherwise in its own.
///
/// # Errors
/// Some value has no place in that type, or is another one there: none becomes null, and no fingerprint is rounded.
fn as_requested(
    array: &ArrayRef,
    field: &FieldRef,
    requested: Option<Bound<'_, PyCapsule>>,
) -> PyResult<(ArrayRef, FieldRef)> {
    let own = || (Arc::clone(array), Arc::clone(field));
    let Some(requested) = requested else { return Ok(own()) };
    let requested = PyField::from_arrow_pycapsule(&requested)?.into_inner();
    let (from, to) = (array.data_type(), requested.data_type());
    // Columns of a table are asked for by their names.
    let names = |of: &DataType| match of {
        DataType::Struct(fields) => fields.iter().map(|field| field.name().clone()).collect(),
        _ => Vec::new(),
    };
    if from == to || names(from) != names(to) || !can_cast_types(from, to) || !can_cast_types(to, from) {
        return Ok(own());
    }
    let refused = |reason: String| PyValueError::new_err(format!("{from} as {to}: {reason}"));
    let made = cast_with_options(array, to, &EXACT).map_err(|e| refused(e.to_string()))?;
    let back = cast_with_options(&made, from, &EXACT).map_err(|e| refused(e.to_string()))?;
    if &back != array {
        return Err(refused("some value would be another one".to_owned()));
    }
    let field = Field::new(field.name(), to.clone(), true).with_metadata(field.metadata().clone());
    Ok((made, Arc::new(field)))
}

fn reader(array: ArrayRef, field: FieldRef) -> Box<dyn ArrayReader + Send> {
    Box::new(ArrayIterator::new(std::iter::once(Ok::<_, ArrowError>(array)), field))
}

/// Returns the values of an array as Python objects. Keep columns of tasks may have other types, which stay in Arrow.
fn values<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Vec<Bound<'py, PyAny>>> {
    macro_rules! numbers {
        ($type:ty) => {
            array.as_primitive::<$type>().iter().map(|value| Ok(value.into_pyobject(py)?)).collect()
        };
    }
    match array.data_type() {
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Date32 => dates(py, array),
        DataType::Boolean => array.as_boolean().iter().map(|value| Ok(value.into_pyobject(py)?)).collect(),
        DataType::Utf8 => array.as_string::<i32>().iter().map(|value| Ok(value.into_pyobject(py)?)).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(|value| Ok(value.into_pyobject(py)?)).collect(),
        DataType::FixedSizeBinary(_) => {
            let bytes = |value: Option<&[u8]>| Ok(value.map(|value| PyBytes::new(py, value)).into_pyobject(py)?);
            array.as_fixed_size_binary().iter().map(bytes).collect()
        }
        other => Err(PyTypeError::new_err(format!("a column of {other}: read it with pyarrow.table"))),
    }
}

fn dates<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let date = py.import("datetime")?.getattr("date")?;
    // Python counts days from the first day of the year 1.
    const UNIX_EPOCH: i32 = 719_163;
    let value = |days: Option<i32>| match days {
        Some(days) => date.call_method1("fromordinal", (days + UNIX_EPOCH,)),
        None => Ok(py.None().into_bound(py)),
    };
    array.as_primitive::<Date32Type>().iter().map(value).collect()
}
