//! Columns and tables that come in through the PyCapsule interface.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, Float64Array, Int64Array, LargeBinaryArray,
    LargeStringArray, StructArray, UInt64Array,
};
use arrow::compute::{CastOptions, cast, cast_with_options, concat};
use arrow::datatypes::{DataType, Field, UInt64Type};
use arrow::error::ArrowError;
use nearprint_fingerprint::Sketch;
use nearprint_join::Column;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3_arrow::ffi::{ArrayIterator, ArrayReader};
use pyo3_arrow::input::AnyArray;

use crate::error::{Problem, Result};

/// A column, or a table with its columns, as a stream of arrays that is still to be read.
pub(crate) struct Input<'n> {
    /// The name of the argument, for messages.
    name: &'n str,
    arrays: Box<dyn ArrayReader + Send>,
}

/// A column of fingerprints or of sketches.
pub(crate) enum BitColumn {
    Fingerprints(UInt64Array),
    Sketches(FixedSizeBinaryArray),
}

/// The fingerprints of documents, and their sketches if there are any.
pub(crate) struct Fingerprints {
    pub(crate) fingerprints: Column<u64>,
    pub(crate) sketches: Option<Column<Sketch>>,
}

/// The bytes of a sketch.
pub(crate) const SKETCH_BYTES: i32 = 32;

/// The most rows of a join. One number is kept for no row.
const MAX_ROWS: usize = u32::MAX as usize - 1;

impl<'n> Input<'n> {
    /// Takes an argument that speaks the PyCapsule interface, or a list, a tuple, or what makes a list of itself, such as an
    /// array of NumPy.
    pub(crate) fn of(name: &'n str, argument: &Bound<'_, PyAny>) -> Result<Self> {
        let argument = &plain_column(argument)?;
        if argument.hasattr("__arrow_c_array__")? || argument.hasattr("__arrow_c_stream__")? {
            match argument.extract::<AnyArray>() {
                Ok(array) => return Ok(Self { name, arrays: array.into_reader()? }),
                // pandas needs pyarrow to speak the interface. Its columns make lists of themselves without it.
                Err(error) if !argument.hasattr("tolist")? => return Err(error.into()),
                Err(_) => {}
            }
        }
        let list = if let Ok(list) = argument.cast::<PyList>() {
            Some(list.clone())
        } else if let Ok(tuple) = argument.cast::<PyTuple>() {
            Some(tuple.to_list())
        } else if argument.hasattr("tolist")? {
            argument.call_method0("tolist")?.cast_into::<PyList>().ok()
        } else {
            None
        };
        let Some(list) = list else {
            let got = argument.get_type().name()?;
            return Err(Problem::Type(format!(
                "{name}: {got} is no column: give one of pyarrow, Polars, DuckDB or pandas, an array of NumPy, or a list"
            )));
        };
        let array = of_list(name, &list)?;
        let field = Arc::new(Field::new("", array.data_type().clone(), true));
        let arrays = ArrayIterator::new(std::iter::once(Ok::<_, ArrowError>(array)), field);
        Ok(Self { name, arrays: Box::new(arrays) })
    }

    /// Iterates over the rows of a table.
    pub(crate) fn tables(self) -> impl Iterator<Item = Result<StructArray>> {
        let name = self.name;
        self.arrays.map(move |array| {
            let array = array?;
            let no_table = || Problem::Type(format!("{name}: a column of {}, expected a table", array.data_type()));
            array.as_struct_opt().cloned().ok_or_else(no_table)
        })
    }

    /// Reads a whole column.
    pub(crate) fn whole(self) -> Result<ArrayRef> {
        let data_type = self.arrays.field().data_type().clone();
        let arrays = self.columns().collect::<Result<Vec<_>>>()?;
        joined(&arrays, &data_type)
    }

    /// Returns the name of the argument.
    pub(crate) fn name(&self) -> &'n str {
        self.name
    }

    /// Iterates over the arrays of the column. A table of one column counts as this column.
    pub(crate) fn columns(self) -> impl Iterator<Item = Result<ArrayRef>> {
        let name = self.name;
        self.arrays.map(move |array| only_column(name, array?))
    }

    /// Reads a column of fingerprints or of sketches.
    pub(crate) fn bits(self) -> Result<BitColumn> {
        let name = self.name;
        let field = self.arrays.field();
        let data_type = match field.data_type() {
            DataType::Struct(fields) if fields.len() == 1 => fields[0].data_type(),
            other => other,
        };
        if is_binary(data_type) {
            let arrays = self.columns().map(|array| sketches(name, &array?)).collect::<Result<Vec<_>>>()?;
            return Ok(BitColumn::Sketches(joined(&arrays, &SKETCH)?.as_fixed_size_binary().clone()));
        }
        let arrays = self.columns().map(|array| numbers(name, &array?)).collect::<Result<Vec<_>>>()?;
        Ok(BitColumn::Fingerprints(joined(&arrays, &DataType::UInt64)?.as_primitive().clone()))
    }

    /// Reads fingerprints without their sketches: from a table with the column `fingerprint`, or from the column alone.
    /// A column that came in one piece is not copied.
    pub(crate) fn only_fingerprints(self) -> Result<UInt64Array> {
        let name = self.name;
        let mut arrays = Vec::new();
        let mut n_rows = 0;
        for array in self.arrays {
            let (values, _) = fingerprint_columns(name, array?)?;
            n_rows += values.len();
            refuse_too_many(name, n_rows)?;
            arrays.push(numbers(name, &values)?);
        }
        Ok(joined(&arrays, &DataType::UInt64)?.as_primitive().clone())
    }

    /// Reads fingerprints, and sketches if there are any: from a table with the columns `fingerprint` and, if it has
    /// sketches, `sketch`, or from the column of fingerprints alone.
    pub(crate) fn fingerprints(self) -> Result<Fingerprints> {
        let name = self.name;
        // A table without rows may come without arrays.
        let field = self.arrays.field();
        let has_sketches = matches!(field.data_type(), DataType::Struct(fields) if fields.find(FINGERPRINT).is_some() && fields.find(SKETCH_COLUMN).is_some());
        let sketches_of_none = has_sketches.then(Column::default);
        let mut read = Fingerprints { fingerprints: Column::default(), sketches: sketches_of_none };
        let mut n_rows = 0;
        for array in self.arrays {
            let array = array?;
            n_rows += array.len();
            refuse_too_many(name, n_rows)?;
            let (values, wide) = fingerprint_columns(name, array)?;
            numbers(name, &values)?.as_primitive::<UInt64Type>().iter().for_each(|value| read.fingerprints.push(value));
            if let Some(wide) = wide {
                let column = read.sketches.get_or_insert_default();
                let wide = sketches(name, &wide)?;
                for bytes in wide.as_fixed_size_binary() {
                    column.push(bytes.map(Sketch::try_from).transpose().map_err(|e| refused(name, &e))?);
                }
            }
        }
        Ok(read)
    }
}

/// Returns a column in a form that can be read: that of a frame of pandas that has no other, since pandas would add its index; and the
/// list of one of Polars that has no value, for which Polars gives no Arrow that others read, in a frame too.
fn plain_column<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if argument.hasattr("iloc")? && argument.getattr("ndim")?.extract::<usize>()? == 2 {
        let (_, n_columns): (usize, usize) = argument.getattr("shape")?.extract()?;
        if n_columns == 1 {
            return argument.call_method1("squeeze", ("columns",));
        }
    }
    if argument.get_type().module()?.to_str()?.starts_with("polars.") && argument.hasattr("iter_columns")? {
        return argument.py().import("nearprint._frames")?.call_method1("readable", (argument,));
    }
    let is_null = argument.hasattr("to_list")?
        && argument.hasattr("dtype")?
        && argument.getattr("dtype")?.str()?.to_str().is_ok_and(|data_type| data_type == "Null");
    if is_null { argument.call_method0("to_list") } else { Ok(argument.clone()) }
}

/// Returns whether a value is one of pandas for what is missing.
fn is_na(value: &Bound<'_, PyAny>) -> bool {
    value.get_type().name().is_ok_and(|name| name == "NAType" || name == "NaTType")
}

/// Returns a value as one of Python, if it is one of NumPy.
fn plain(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let is_plain = value.is_none()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>();
    if is_plain || !value.hasattr("tolist")? { Ok(value) } else { value.call_method0("tolist") }
}

/// Returns a single integer of Python or NumPy as one of Python. Anything else, such as a bool or an array, is none.
pub(crate) fn integer<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>> {
    if value.is_instance_of::<PyBool>() || value.hasattr("__len__")? || !value.hasattr("__index__")? {
        return Ok(None);
    }
    Ok(Some(value.call_method0("__index__")?))
}

/// Makes a column of the values of a list, which have one type; integers beside floats are floats. `None`, NaN, and pandas' NA
/// are null.
fn of_list(name: &str, list: &Bound<'_, PyList>) -> Result<ArrayRef> {
    let values: Vec<Bound<'_, PyAny>> = list.iter().map(plain).collect::<PyResult<_>>()?;
    let is_nan = |value: &Bound<'_, PyAny>| value.cast_exact::<PyFloat>().is_ok_and(|value| value.value().is_nan());
    let is_null = |value: &Bound<'_, PyAny>| value.is_none() || is_nan(value);
    let type_of =
        |value: &Bound<'_, PyAny>| value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    let refused = |at: usize, value: &Bound<'_, PyAny>, expected: &str| {
        // A value of the expected type is refused for what it is.
        match expected {
            "str" if value.is_instance_of::<PyString>() => Problem::Value(format!(
                "{name}: value {at} has a lone surrogate, which UTF-8 has not: replace it, as with text.encode('utf-8', 'replace').decode()"
            )),
            "int" if value.is_exact_instance_of::<PyInt>() => Problem::Value(format!(
                "{name}: value {at} has more than 64 bits, or a sign that others of its size leave no room for"
            )),
            _ => {
                Problem::Type(format!("{name}: value {at} is of {}, expected {expected} as the others", type_of(value)))
            }
        }
    };
    macro_rules! column {
        ($expected:literal, $value:ty, $array:ty) => {{
            let mut column = Vec::<Option<$value>>::with_capacity(values.len());
            for (at, value) in values.iter().enumerate() {
                // A bool would be 0 or 1 among numbers.
                let is_other = $expected != "bool" && value.is_instance_of::<PyBool>();
                column.push(match value.extract::<$value>() {
                    _ if is_null(value) => None,
                    Ok(value) if !is_other => Some(value),
                    Err(_) if is_na(value) => None,
                    _ => return Err(refused(at, value, $expected)),
                });
            }
            Arc::new(column.into_iter().collect::<$array>()) as ArrayRef
        }};
    }
    let is_value = |value: &Bound<'_, PyAny>| !is_null(value) && !is_na(value);
    let Some((at, first)) = values.iter().enumerate().find(|(_, value)| is_value(value)) else {
        return Ok(arrow::array::new_null_array(&DataType::Null, values.len()));
    };
    Ok(if first.is_instance_of::<PyString>() {
        column!("str", String, LargeStringArray)
    } else if first.is_instance_of::<PyBytes>() {
        column!("bytes", Vec<u8>, LargeBinaryArray)
    } else if first.is_instance_of::<PyBool>() {
        column!("bool", bool, BooleanArray)
    } else if first.is_instance_of::<PyInt>() || first.is_instance_of::<PyFloat>() {
        // Fingerprints use all bits, and other numbers may be negative.
        let is_signed = |value: &Bound<'_, PyAny>| value.extract::<i64>().is_ok_and(|value| value < 0);
        if values.iter().any(|value| value.is_instance_of::<PyFloat>() && !is_nan(value)) {
            column!("float", f64, Float64Array)
        } else if values.iter().any(is_signed) {
            column!("int", i64, Int64Array)
        } else {
            column!("int", u64, UInt64Array)
        }
    } else {
        let got = type_of(first);
        return Err(Problem::Type(format!(
            "{name}: value {at} is of {got}, expected str, bytes, int, float or bool: make times texts, as with isoformat()"
        )));
    })
}

fn refuse_too_many(name: &str, n_rows: usize) -> Result<()> {
    if n_rows > MAX_ROWS {
        return Err(Problem::Value(format!("{name}: more than {MAX_ROWS} rows: join them in parts")));
    }
    Ok(())
}

/// Returns the fingerprints of a table or column, and the sketches if it is a table that has some.
fn fingerprint_columns(name: &str, array: ArrayRef) -> Result<(ArrayRef, Option<ArrayRef>)> {
    match array.as_struct_opt().and_then(|table| Some((table, of_table(table)?))) {
        None => Ok((only_column(name, array)?, None)),
        Some((table, columns)) => {
            refuse_null_rows(name, table)?;
            Ok(columns)
        }
    }
}

/// Returns the columns `fingerprint` and `sketch` of a table, or `None` if it has no column of the first name.
fn of_table(table: &StructArray) -> Option<(ArrayRef, Option<ArrayRef>)> {
    Some((table.column_by_name(FINGERPRINT)?.clone(), table.column_by_name(SKETCH_COLUMN).cloned()))
}

fn only_column(name: &str, array: ArrayRef) -> Result<ArrayRef> {
    let Some(table) = array.as_struct_opt() else { return Ok(array) };
    if table.num_columns() != 1 {
        let columns = table.column_names().join(", ");
        return Err(Problem::Value(format!("{name}: a table with the columns {columns}: choose one of them")));
    }
    refuse_null_rows(name, table)?;
    Ok(table.column(0).clone())
}

fn refuse_null_rows(name: &str, table: &StructArray) -> Result<()> {
    if table.null_count() > 0 {
        return Err(Problem::Value(format!("{name}: a column of structs with nulls: give a table or a plain column")));
    }
    Ok(())
}

fn refused(name: &str, error: &dyn std::fmt::Display) -> Problem {
    Problem::Value(format!("{name}: {error}"))
}

fn is_binary(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    matches!(data_type, FixedSizeBinary(_) | Binary | LargeBinary | BinaryView)
}

const FINGERPRINT: &str = "fingerprint";
const SKETCH_COLUMN: &str = "sketch";
const SKETCH: DataType = DataType::FixedSizeBinary(SKETCH_BYTES);

/// A value that does not fit the type is an error, and does not become null.
pub(crate) const EXACT: CastOptions<'static> = CastOptions { safe: false, format_options: FORMAT };
const FORMAT: arrow::util::display::FormatOptions<'static> = arrow::util::display::FormatOptions::new();

/// Returns integers as fingerprints. A negative number is an error.
pub(crate) fn numbers(name: &str, array: &ArrayRef) -> Result<ArrayRef> {
    let data_type = array.data_type();
    if !data_type.is_integer() && !data_type.is_null() {
        return Err(Problem::Type(format!(
            "{name}: a column of {data_type}, expected UInt64: fingerprints are integers"
        )));
    }
    let unsigned = |e: ArrowError| Problem::Value(format!("{name}: {e}: fingerprints are unsigned integers"));
    cast_with_options(array, &DataType::UInt64, &EXACT).map_err(unsigned)
}

/// Returns byte strings as sketches.
fn sketches(name: &str, array: &ArrayRef) -> Result<ArrayRef> {
    let expected =
        || format!("{name}: a column of {}, expected FixedSizeBinary(32): sketches have 32 bytes", array.data_type());
    let array = match array.data_type() {
        DataType::Null | DataType::FixedSizeBinary(SKETCH_BYTES) => array.clone(),
        DataType::FixedSizeBinary(_) => return Err(Problem::Value(expected())),
        data_type if is_binary(data_type) => cast(array, &DataType::LargeBinary)?,
        _ => return Err(Problem::Type(expected())),
    };
    cast_with_options(&array, &SKETCH, &EXACT).map_err(|e| Problem::Value(format!("{}: {e}", expected())))
}

/// Returns arrays of one type as one. Texts with offsets of 32 bits become large ones where these are too few.
pub(crate) fn joined(arrays: &[ArrayRef], data_type: &DataType) -> Result<ArrayRef> {
    if arrays.is_empty() {
        return Ok(arrow::array::new_empty_array(data_type));
    }
    let n_bytes: usize = arrays.iter().map(|array| array.get_buffer_memory_size()).sum();
    let large: Vec<ArrayRef>;
    let arrays = match data_type {
        DataType::Utf8 if i32::try_from(n_bytes).is_err() => {
            large =
                arrays.iter().map(|array| cast(array, &DataType::LargeUtf8)).collect::<std::result::Result<_, _>>()?;
            &large
        }
        _ => arrays,
    };
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    Ok(concat(&arrays)?)
}

/// Returns whether a column of this type without any value may have been one of texts: pandas makes it one of floats, or of categories
/// of these.
fn may_lack_texts(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => may_lack_texts(values),
        other => other.is_null() || other.is_floating(),
    }
}

/// A column of texts, checked.
pub(crate) struct Texts(ArrayRef);

impl Texts {
    pub(crate) fn of(name: &str, array: &ArrayRef) -> Result<Self> {
        let array = match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => array.clone(),
            DataType::Dictionary(_, values) if values.is_string() => cast(array, values)?,
            data_type if may_lack_texts(data_type) && array.logical_null_count() == array.len() => {
                arrow::array::new_null_array(&DataType::Utf8, array.len())
            }
            other => return Err(Problem::Type(format!("{name}: a column of {other}, expected strings"))),
        };
        // What comes from elsewhere may be no UTF-8, though its type says so. An empty slice may have offsets into
        // nothing, which no row needs.
        if !array.is_empty() {
            array.to_data().validate_full().map_err(|e| refused(name, &e))?;
        }
        Ok(Self(array))
    }

    /// Returns the text of each row.
    pub(crate) fn texts(&self) -> Vec<Option<&str>> {
        match self.0.data_type() {
            DataType::Utf8View => self.0.as_string_view().iter().collect(),
            DataType::LargeUtf8 => self.0.as_string::<i64>().iter().collect(),
            _ => self.0.as_string::<i32>().iter().collect(),
        }
    }
}
