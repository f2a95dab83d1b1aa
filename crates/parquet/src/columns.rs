//! Typed columns of a batch. Errors name the file and the column.

use arrow::array::{
    Array, ArrayAccessor, ArrayRef, AsArray, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    RecordBatch, StringArray, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Field};
use nearprint_fault::{Fault, Result};
use nearprint_storage::bad_file;

use crate::error::{column_type, missing_column, of_arrow};

/// Rows of a batch that a dataset or a task produces.
pub const BATCH_ROWS: usize = 8192;

/// The largest size of an id or of a value of the keep order. The size is limited because these values stay in memory.
pub const MAX_VALUE_BYTES: usize = 64 << 10;

/// A batch, together with the file that errors name.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// The batch.
    pub batch: &'a RecordBatch,
    /// The file.
    pub file: &'a str,
}

impl<'a> Columns<'a> {
    /// Returns a column of numbers.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData).
    pub fn primitive<T: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a PrimitiveArray<T>> {
        let array = self.get(name)?;
        array.as_primitive_opt::<T>().ok_or_else(|| self.wrong_type(name, array))
    }

    /// Returns a column of strings.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData).
    pub fn strings(&self, name: &str) -> Result<&'a StringArray> {
        let array = self.get(name)?;
        array.as_string_opt::<i32>().ok_or_else(|| self.wrong_type(name, array))
    }

    /// Returns document ids as text. Integers are written in decimal.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if an id is longer than
    /// [`MAX_VALUE_BYTES`].
    pub fn ids(&self, name: &str) -> Result<StringArray> {
        let array = self.get(name)?;
        if !array.data_type().is_integer() {
            let ids = self.strings(name)?;
            self.refuse_long(name, ids)?;
            return Ok(ids.clone());
        }
        let text = cast(array, &DataType::Utf8).map_err(|e| of_arrow(self.file, e))?;
        Ok(text.as_string::<i32>().clone())
    }

    /// Refuses ids that are too long. Batches of pairs repeat the ids, and offsets of 32 bits count the bytes of a
    /// batch.
    fn refuse_long(&self, name: &str, ids: &StringArray) -> Result<()> {
        let longest = ids.offsets().lengths().max().filter(|&bytes| bytes > MAX_VALUE_BYTES);
        longest.map_or(Ok(()), |bytes| {
            let reason = format!("column '{name}' has an id of {bytes} bytes, more than {MAX_VALUE_BYTES}");
            Err(bad_file(self.file, reason))
        })
    }

    /// Returns a column of booleans.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData).
    pub fn booleans(&self, name: &str) -> Result<&'a BooleanArray> {
        let array = self.get(name)?;
        array.as_boolean_opt().ok_or_else(|| self.wrong_type(name, array))
    }

    /// Returns a column of byte strings.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData).
    pub fn binaries(&self, name: &str) -> Result<&'a BinaryArray> {
        let array = self.get(name)?;
        array.as_binary_opt::<i32>().ok_or_else(|| self.wrong_type(name, array))
    }

    /// Returns a column whose values have `N` bytes each, or `None` if the batch has no such column.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the values are of another type or length.
    pub fn bytes<const N: usize>(&self, name: &str) -> Result<Option<&'a FixedSizeBinaryArray>> {
        let Some(array) = self.batch.column_by_name(name) else {
            return Ok(None);
        };
        let values = array.as_fixed_size_binary_opt().filter(|values| values.value_size() == N);
        values.map(Some).ok_or_else(|| self.wrong_type(name, array))
    }

    /// Returns what `read`, such as [`strings`](Self::strings), returns for a column, or `None` if the batch has no such column.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn optional<T>(&self, name: &str, read: impl FnOnce(&Self, &str) -> Result<T>) -> Result<Option<T>> {
        self.batch.column_by_name(name).map(|_| read(self, name)).transpose()
    }

    /// Returns a column of any type.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData).
    pub fn get(&self, name: &str) -> Result<&'a ArrayRef> {
        self.batch.column_by_name(name).ok_or_else(|| {
            missing_column(
                self.file,
                name,
                None,
                self.batch.schema().fields().iter().map(|f| f.name().clone()).collect(),
                "restore the file",
            )
        })
    }

    /// Returns a column of a dataset. If the batch lacks it and it is nullable, each value is NULL: earlier releases wrote
    /// files without it.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData).
    pub fn get_or_null(&self, field: &Field) -> Result<ArrayRef> {
        if field.is_nullable() && self.batch.column_by_name(field.name()).is_none() {
            return Ok(new_null_array(field.data_type(), self.batch.num_rows()));
        }
        self.get(field.name()).cloned()
    }

    fn wrong_type(&self, name: &str, array: &ArrayRef) -> Fault {
        column_type(
            self.file.to_owned(),
            name.to_owned(),
            array.data_type().to_string(),
            "of the type that docs/store-format.md gives",
        )
    }
}

/// Returns the value at a row, or `None` if it is NULL.
///
/// # Panics
/// Panics if `row` is out of bounds.
pub fn value<A: ArrayAccessor>(array: A, row: usize) -> Option<A::Item> {
    array.is_valid(row).then(|| array.value(row))
}

/// Returns the bytes at a row, or `None` if the value is NULL or there is no array.
///
/// Invariant: the values have `N` bytes, which [`Columns::bytes`] has checked.
///
/// # Panics
/// Panics if `row` is out of bounds; debug builds also panic if the invariant does not hold.
pub fn fixed<const N: usize>(array: Option<&FixedSizeBinaryArray>, row: usize) -> Option<[u8; N]> {
    let array = array.filter(|a| a.is_valid(row))?;
    debug_assert_eq!(array.value_size(), N, "a column was not looked at before its values are");
    array.value(row).try_into().ok()
}
