//! Typed columns of a batch, or an error that names the file and column.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, RecordBatch, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{ArrowPrimitiveType, DataType};

use crate::documents::MAX_VALUE_BYTES;
use crate::error::{PipelineError, Result};

/// A batch and the file that errors are to name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub(crate) batch: &'a RecordBatch,
    pub(crate) file: &'a str,
}

impl<'a> Columns<'a> {
    pub(crate) fn primitive<T: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a PrimitiveArray<T>> {
        let array = self.get(name)?;
        array.as_primitive_opt::<T>().ok_or_else(|| self.wrong_type(name, array))
    }

    pub(crate) fn strings(&self, name: &str) -> Result<&'a StringArray> {
        let array = self.get(name)?;
        array.as_string_opt::<i32>().ok_or_else(|| self.wrong_type(name, array))
    }

    /// Document ids as text; integers are written out.
    pub(crate) fn ids(&self, name: &str) -> Result<StringArray> {
        let array = self.get(name)?;
        if !array.data_type().is_integer() {
            let ids = self.strings(name)?;
            self.refuse_long(name, ids)?;
            return Ok(ids.clone());
        }
        let text = cast(array, &DataType::Utf8).map_err(|e| PipelineError::of_arrow(self.file, e))?;
        Ok(text.as_string::<i32>().clone())
    }

    /// Pairs repeat the ids of a batch, whose bytes are counted by 32 bits.
    fn refuse_long(&self, name: &str, ids: &StringArray) -> Result<()> {
        let longest = ids.offsets().lengths().max().filter(|&bytes| bytes > MAX_VALUE_BYTES);
        longest.map_or(Ok(()), |bytes| {
            let reason = format!("column '{name}' has an id of {bytes} bytes, more than {MAX_VALUE_BYTES}");
            Err(PipelineError::bad_file(self.file, reason))
        })
    }

    pub(crate) fn booleans(&self, name: &str) -> Result<&'a BooleanArray> {
        let array = self.get(name)?;
        array.as_boolean_opt().ok_or_else(|| self.wrong_type(name, array))
    }

    pub(crate) fn binaries(&self, name: &str) -> Result<&'a BinaryArray> {
        let array = self.get(name)?;
        array.as_binary_opt::<i32>().ok_or_else(|| self.wrong_type(name, array))
    }

    /// A column of values of `N` bytes; none where the batch lacks it.
    pub(crate) fn bytes<const N: usize>(&self, name: &str) -> Result<Option<&'a FixedSizeBinaryArray>> {
        let Some(array) = self.batch.column_by_name(name) else {
            return Ok(None);
        };
        let values = array.as_fixed_size_binary_opt().filter(|values| values.value_size() == N);
        values.map(Some).ok_or_else(|| self.wrong_type(name, array))
    }

    pub(crate) fn get(&self, name: &str) -> Result<&'a ArrayRef> {
        self.batch.column_by_name(name).ok_or_else(|| PipelineError::MissingColumn {
            file: self.file.to_owned(),
            column: name.to_owned(),
            present: self.batch.schema().fields().iter().map(|f| f.name().clone()).collect(),
            remedy: "restore the file",
        })
    }

    fn wrong_type(&self, name: &str, array: &ArrayRef) -> PipelineError {
        PipelineError::ColumnType {
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
pub(crate) fn fixed<const N: usize>(array: Option<&FixedSizeBinaryArray>, row: usize) -> Option<[u8; N]> {
    let array = array.filter(|a| a.is_valid(row))?;
    debug_assert_eq!(array.value_size(), N, "a column was not looked at before its values are");
    array.value(row).try_into().ok()
}
