//! Typed columns of a batch, or an error that names the file and column.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, RecordBatch, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{ArrowPrimitiveType, DataType};

use crate::error::{DatasetError, Result};

/// Rows of a batch that a dataset or a task hands on.
pub const BATCH_ROWS: usize = 8192;

/// Ids and values of the keep order may be as long as this: they stay in memory.
pub const MAX_VALUE_BYTES: usize = 64 << 10;

/// A batch and the file that errors are to name.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// The batch.
    pub batch: &'a RecordBatch,
    /// The file.
    pub file: &'a str,
}

impl<'a> Columns<'a> {
    /// A column of numbers.
    ///
    /// # Errors
    /// A column that is missing, or of another type.
    pub fn primitive<T: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a PrimitiveArray<T>> {
        let array = self.get(name)?;
        array.as_primitive_opt::<T>().ok_or_else(|| self.wrong_type(name, array))
    }

    /// A column of strings.
    ///
    /// # Errors
    /// A column that is missing, or of another type.
    pub fn strings(&self, name: &str) -> Result<&'a StringArray> {
        let array = self.get(name)?;
        array.as_string_opt::<i32>().ok_or_else(|| self.wrong_type(name, array))
    }

    /// Document ids as text; integers are written out.
    pub fn ids(&self, name: &str) -> Result<StringArray> {
        let array = self.get(name)?;
        if !array.data_type().is_integer() {
            let ids = self.strings(name)?;
            self.refuse_long(name, ids)?;
            return Ok(ids.clone());
        }
        let text = cast(array, &DataType::Utf8).map_err(|e| DatasetError::of_arrow(self.file, e))?;
        Ok(text.as_string::<i32>().clone())
    }

    /// Pairs repeat the ids of a batch, whose bytes are counted by 32 bits.
    fn refuse_long(&self, name: &str, ids: &StringArray) -> Result<()> {
        let longest = ids.offsets().lengths().max().filter(|&bytes| bytes > MAX_VALUE_BYTES);
        longest.map_or(Ok(()), |bytes| {
            let reason = format!("column '{name}' has an id of {bytes} bytes, more than {MAX_VALUE_BYTES}");
            Err(DatasetError::bad_file(self.file, reason))
        })
    }

    /// A column of booleans.
    ///
    /// # Errors
    /// A column that is missing, or of another type.
    pub fn booleans(&self, name: &str) -> Result<&'a BooleanArray> {
        let array = self.get(name)?;
        array.as_boolean_opt().ok_or_else(|| self.wrong_type(name, array))
    }

    /// A column of byte strings.
    ///
    /// # Errors
    /// A column that is missing, or of another type.
    pub fn binaries(&self, name: &str) -> Result<&'a BinaryArray> {
        let array = self.get(name)?;
        array.as_binary_opt::<i32>().ok_or_else(|| self.wrong_type(name, array))
    }

    /// A column of values of `N` bytes; none where the batch lacks it.
    pub fn bytes<const N: usize>(&self, name: &str) -> Result<Option<&'a FixedSizeBinaryArray>> {
        let Some(array) = self.batch.column_by_name(name) else {
            return Ok(None);
        };
        let values = array.as_fixed_size_binary_opt().filter(|values| values.value_size() == N);
        values.map(Some).ok_or_else(|| self.wrong_type(name, array))
    }

    /// A column of any type.
    ///
    /// # Errors
    /// A column that is missing.
    pub fn get(&self, name: &str) -> Result<&'a ArrayRef> {
        self.batch.column_by_name(name).ok_or_else(|| DatasetError::MissingColumn {
            file: self.file.to_owned(),
            column: name.to_owned(),
            present: self.batch.schema().fields().iter().map(|f| f.name().clone()).collect(),
            remedy: "restore the file",
        })
    }

    fn wrong_type(&self, name: &str, array: &ArrayRef) -> DatasetError {
        DatasetError::ColumnType {
            file: self.file.to_owned(),
            column: name.to_owned(),
            got: array.data_type().to_string(),
            expected: "of the type that docs/store-format.md gives",
        }
    }
}

/// The bytes at a row; none where null or absent.
///
/// Invariant: the values have `N` bytes, as [`Columns::bytes`] made sure.
pub fn fixed<const N: usize>(array: Option<&FixedSizeBinaryArray>, row: usize) -> Option<[u8; N]> {
    let array = array.filter(|a| a.is_valid(row))?;
    debug_assert_eq!(array.value_size(), N, "a column was not looked at before its values are");
    array.value(row).try_into().ok()
}
