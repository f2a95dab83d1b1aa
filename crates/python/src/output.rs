//! Columns and tables that go out through the PyCapsule interface.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{
    DataType, Field, FieldRef, Int32Type, Int64Type, SchemaRef, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyTuple};
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::{ArrayIterator, ArrayReader, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule};

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

#[pymethods]
impl Array {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyTuple>> {
        to_array_pycapsules(py, Arc::clone(&self.field), &self.array, requested_schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_stream_pycapsule(py, reader(vec![Arc::clone(&self.array)], &self.field), requested_schema)
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
        to_stream_pycapsule(py, reader(vec![rows], &Arc::new(field)), requested_schema)
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

fn reader(arrays: Vec<ArrayRef>, field: &FieldRef) -> Box<dyn ArrayReader + Send> {
    let arrays = arrays.into_iter().map(Ok::<ArrayRef, ArrowError>);
    Box::new(ArrayIterator::new(arrays.collect::<Vec<_>>(), Arc::clone(field)))
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
