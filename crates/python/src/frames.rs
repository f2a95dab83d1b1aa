//! Tables of frames on their way to a night and back: documents as a Parquet file, results in the order of the documents.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow::array::{
    Array as _, ArrayRef, AsArray, BooleanArray, LargeStringArray, RecordBatch, RecordBatchReader as _, StructArray,
    UInt32Array,
};
use arrow::compute::{cast, cast_with_options, filter_record_batch, take_record_batch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use nearprint_documents::id_texts;
use nearprint_parquet::copy_with_checksums;
use nearprint_storage::{TempFolder as Folder, locked};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use pyo3::prelude::*;

use crate::call::{LOCAL_IO, interruptible};
use crate::error::{Problem, Result, failed};
use crate::input::{EXACT, Input, Texts, joined};
use crate::output::{Array, Table};

/// A folder for one night, beside what the night spills: `with TempFolder(parent) as path`. It is removed at the end, and by a later
/// night if this process dies. Raises Error if the folder cannot be created.
#[pyclass(frozen, module = "nearprint")]
pub struct TempFolder(Mutex<Option<Folder>>);

#[pymethods]
impl TempFolder {
    #[new]
    fn new(py: Python<'_>, parent: PathBuf) -> PyResult<Self> {
        let folder = py.detach(|| Folder::try_new(&parent)).map_err(|e| failed(e).raised(py))?;
        Ok(Self(Mutex::new(Some(folder))))
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<PathBuf> {
        let removed = || Problem::bug("a folder that is removed").raised(py);
        locked(&self.0).as_ref().map(|folder| folder.path().to_path_buf()).ok_or_else(removed)
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _raised: Py<PyAny>, _traceback: Py<PyAny>) {
        let folder = locked(&self.0).take();
        py.detach(|| drop(folder));
    }
}

/// The bytes of a row group, in memory.
const ROW_GROUP_BYTES: usize = 64 << 20;
/// The number of rows after which the writer looks whether a row group is full.
const STEP_ROWS: usize = 1024;

/// Writes columns of a table as a Parquet file, and returns the number of rows. `ids` is the name of a column that is added
/// before them: the numbers of the rows, whose order as texts is that of the numbers; or None.
#[pyfunction]
#[pyo3(signature = (table, columns, path, ids=None))]
pub(crate) fn write_columns(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    columns: Vec<String>,
    path: PathBuf,
    ids: Option<String>,
) -> PyResult<usize> {
    let input = Input::of("frame", table).map_err(|e| e.raised(py))?;
    interruptible(py, move |cancelled| {
        let (mut writer, mut n_rows) = (None::<ArrowWriter<File>>, 0);
        let unchecked = path.with_extension("unchecked");
        for array in input.tables() {
            let batch = chosen(&array?, &columns)?;
            let batch = match &ids {
                Some(name) => numbered(name, n_rows, &batch)?,
                None => batch,
            };
            n_rows += batch.num_rows();
            let writer = match &mut writer {
                Some(writer) => writer,
                None => writer.insert(create(&unchecked, &batch.schema())?),
            };
            for at in (0..batch.num_rows()).step_by(STEP_ROWS) {
                let rows = batch.slice(at, STEP_ROWS.min(batch.num_rows() - at));
                writer.write(&rows).map_err(|e| at_path(&unchecked, &e))?;
                if writer.in_progress_size() >= ROW_GROUP_BYTES {
                    writer.flush().map_err(|e| at_path(&unchecked, &e))?;
                }
            }
            if cancelled.is_set() {
                break;
            }
        }
        if let Some(writer) = writer {
            add_checksums(writer, &unchecked, &path)?;
        }
        Ok(n_rows)
    })
}

fn create(path: &Path, schema: &SchemaRef) -> Result<ArrowWriter<File>> {
    let file = File::options().read(true).write(true).create_new(true).open(path).map_err(|e| at_path(path, &e))?;
    ArrowWriter::try_new(file, Arc::clone(schema), Some(properties())).map_err(|e| at_path(path, &e))
}

/// Ends a file, and moves it to `path` with checksums of its pages, which a night looks for.
fn add_checksums(writer: ArrowWriter<File>, unchecked: &Path, path: &Path) -> Result<()> {
    let written = writer.into_inner().map_err(|e| at_path(unchecked, &e))?;
    let file = File::create_new(path).map_err(|e| at_path(path, &e))?;
    let sink = BufWriter::with_capacity(1 << 20, file);
    let sink = copy_with_checksums(&written, sink, properties()).map_err(|e| at_path(path, &e))?;
    sink.into_inner().map_err(|e| at_path(path, &e))?;
    std::fs::remove_file(unchecked).map_err(|e| at_path(unchecked, &e))
}

/// Returns the properties of a file that is read once, and soon.
fn properties() -> WriterProperties {
    let builder = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED);
    builder.set_dictionary_enabled(false).build()
}

fn at_path(path: &Path, error: &dyn std::fmt::Display) -> Problem {
    nearprint_cli::Failure::new(LOCAL_IO, format!("{}: {error}", path.display())).into()
}

/// Returns the columns of these names.
fn chosen(table: &StructArray, columns: &[String]) -> Result<RecordBatch> {
    let column = |name: &String| {
        let missing = || {
            let there = table.column_names().join(", ");
            Problem::value(format!("frame: no column '{name}', it has: {there}"))
        };
        let array = written_out(table.column_by_name(name).ok_or_else(missing)?)?;
        if array.data_type().is_string() {
            Texts::of("frame", &array)?;
        }
        Ok((Field::new(name, array.data_type().clone(), true), array))
    };
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
        columns.iter().map(column).collect::<Result<Vec<_>>>()?.into_iter().unzip();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// Returns a column as a file of documents may have it.
fn written_out(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values)?,
        DataType::Null => cast(array, &DataType::Utf8)?,
        _ => Arc::clone(array),
    })
}

/// Returns the table with a column of the numbers of its rows before the others. As texts they have one length.
fn numbered(name: &str, first: usize, batch: &RecordBatch) -> Result<RecordBatch> {
    let numbers = (first..first + batch.num_rows()).map(|row| format!("{row:012}"));
    let numbers: ArrayRef = Arc::new(arrow::array::StringArray::from_iter_values(numbers));
    let mut fields = vec![Arc::new(Field::new(name, DataType::Utf8, false))];
    fields.extend(batch.schema().fields().iter().cloned());
    let columns = std::iter::once(numbers).chain(batch.columns().iter().cloned()).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Reads columns of Parquet files, one file after another.
#[pyfunction]
pub(crate) fn read_columns(py: Python<'_>, paths: Vec<PathBuf>, columns: Vec<String>) -> PyResult<Table> {
    interruptible(py, move |_| {
        let (mut batches, mut schema) = (Vec::new(), Arc::new(Schema::empty()));
        for path in &paths {
            let file = File::open(path).map_err(|e| at_path(path, &e))?;
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| at_path(path, &e))?;
            let names = columns.iter().map(String::as_str);
            let mask = parquet::arrow::ProjectionMask::columns(reader.parquet_schema(), names);
            let reader = reader.with_projection(mask).build().map_err(|e| at_path(path, &e))?;
            let order = columns.iter().map(|name| reader.schema().index_of(name));
            let order: Vec<usize> = order.collect::<std::result::Result<_, _>>()?;
            schema = Arc::new(reader.schema().project(&order)?);
            for batch in reader {
                batches.push(batch?.project(&order)?);
            }
        }
        let fields = schema.fields().iter().enumerate();
        let columns = fields.clone().map(|(at, field)| {
            let arrays: Vec<ArrayRef> =
                batches.iter().map(|batch: &RecordBatch| Arc::clone(batch.column(at))).collect();
            joined(&arrays, field.data_type())
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        // A column of many texts is one of large texts.
        let fields = fields
            .zip(&columns)
            .map(|((_, field), column)| field.as_ref().clone().with_data_type(column.data_type().clone()));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        Ok(Table::from(RecordBatch::try_new(schema, columns)?))
    })
}

/// Returns the rows of a table by the ids of its first column, one for each of `ids`, in their order. An id that the table
/// does not have is an error.
#[pyfunction]
pub(crate) fn rows_of(py: Python<'_>, table: &Bound<'_, Table>, ids: &Bound<'_, PyAny>) -> PyResult<Table> {
    let batch = table.get().batch().clone();
    let ids = Input::of("ids", ids).map_err(|e| e.raised(py))?;
    interruptible(py, move |_| {
        let known = Texts::of("ids", batch.column(0))?;
        let rows: HashMap<&str, u32> =
            known.texts().into_iter().zip(0..).filter_map(|(id, row)| Some((id?, row))).collect();
        let mut found = Vec::with_capacity(batch.num_rows());
        for array in ids.columns() {
            for id in &id_texts(&written_out(&array?)?)? {
                let row = id.and_then(|id| rows.get(id).copied());
                found.push(row.ok_or_else(|| Problem::bug(&format!("no decision about {id:?}")))?);
            }
        }
        Ok(Table::from(take_record_batch(&batch, &UInt32Array::from(found))?))
    })
}

/// Returns the rows whose value in a column of integers is above a number.
#[pyfunction]
pub(crate) fn rows_above(table: &Bound<'_, Table>, column: &str, least: i64) -> PyResult<Table> {
    let py = table.py();
    let batch = table.get().batch();
    let filtered = || {
        let missing = || Problem::bug(&format!("no column {column}"));
        let values = batch.column_by_name(column).ok_or_else(missing)?.as_primitive::<Int64Type>();
        let above: BooleanArray = values.iter().map(|value| Some(value.is_some_and(|value| value > least))).collect();
        Ok::<_, Problem>(Table::from(filter_record_batch(batch, &above)?))
    };
    filtered().map_err(|e| e.raised(py))
}

/// Makes a table of columns, each with its name.
#[pyfunction]
pub(crate) fn table_of(columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Table> {
    let mut arrays = Vec::with_capacity(columns.len());
    for (name, column) in &columns {
        let py = column.py();
        let argument = format!("column '{name}'");
        let input = Input::of(&argument, column).map_err(|e| e.raised(py))?;
        let of_column = input.whole().map_err(|e| e.raised(py))?;
        arrays.push((name.clone(), of_column, true));
    }
    let made = RecordBatch::try_from_iter_with_nullable(arrays);
    made.map(Table::from).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
}

/// Returns 64-bit integers of the texts of a column, all of which are such numbers or None.
#[pyfunction]
pub(crate) fn integers_of(column: &Bound<'_, Array>, unsigned: bool) -> PyResult<Array> {
    let py = column.py();
    let texts = column.get().array();
    let integers = if unsigned { DataType::UInt64 } else { DataType::Int64 };
    let numbers = cast_with_options(texts, &integers, &EXACT).map_err(|e| Problem::from(e).raised(py))?;
    Ok(Array::new("id", numbers))
}

/// Returns ids, of which those whose value in `of` is `own` are numbers of rows: these without their leading zeros.
#[pyfunction]
#[pyo3(signature = (ids, of, own))]
pub(crate) fn unpadded(ids: &Bound<'_, Array>, of: &Bound<'_, Array>, own: Option<&str>) -> PyResult<Array> {
    let py = ids.py();
    let texts = |column: &Bound<'_, Array>| cast(column.get().array(), &DataType::LargeUtf8).map_err(Problem::from);
    let (ids, of) = texts(ids).and_then(|ids| Ok((ids, texts(of)?))).map_err(|e| e.raised(py))?;
    let shorter = |id: &'_ str| match id.trim_start_matches('0') {
        "" => "0".to_owned(),
        number => number.to_owned(),
    };
    let id = |(id, of): (Option<&str>, Option<&str>)| id.map(|id| if of == own { shorter(id) } else { id.to_owned() });
    let made: LargeStringArray = ids.as_string::<i64>().iter().zip(of.as_string::<i64>()).map(id).collect();
    Ok(Array::new("id", Arc::new(made)))
}
