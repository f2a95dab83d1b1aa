//! Conversion of keep-order columns to one of three types: Int64 (integers, booleans, and dates and times in
//! microseconds), Float64 or LargeUtf8. LargeUtf8 is used because one array holds all values of a night, and offsets of
//! 32 bits may not be able to count their bytes.

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;

/// Returns the type to which a column of `data_type` is converted, or `None` if the column has no order to keep by.
pub fn keep_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        t if t.is_integer() => Some(DataType::Int64),
        DataType::Boolean | DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Some(DataType::Int64),
        t if t.is_floating() => Some(DataType::Float64),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::LargeUtf8),
        _ => None,
    }
}

/// Converts a column to the type that [`keep_type`] gives, or to a wider one.
///
/// # Errors
/// A value cannot be converted.
pub fn to_keep_type(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    match array.data_type() {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let micros = cast_with_options(array, &DataType::Timestamp(TimeUnit::Microsecond, None), &strict)?;
            cast_with_options(&micros, target, &strict)
        }
        _ => cast_with_options(array, target, &strict),
    }
}

/// Returns the name of a type for messages.
pub fn keep_type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => "string".to_owned(),
        DataType::Int64 => "integer".to_owned(),
        DataType::Float64 => "float".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, LargeStringArray, StringArray, StringViewArray};
    use arrow::datatypes::DataType;

    use super::{keep_type, keep_type_name, to_keep_type};

    #[test]
    fn texts_of_a_night_are_counted_by_64_bits_whatever_counts_those_of_a_file() {
        let texts = [Some("b"), None, Some("a")];
        let files: [ArrayRef; 3] = [
            Arc::new(StringArray::from_iter(texts)),
            Arc::new(LargeStringArray::from_iter(texts)),
            Arc::new(StringViewArray::from_iter(texts)),
        ];
        for file in files {
            assert_eq!(keep_type(file.data_type()), Some(DataType::LargeUtf8));
            let kept = to_keep_type(&file, &DataType::LargeUtf8).unwrap();
            assert_eq!(kept.as_any().downcast_ref::<LargeStringArray>(), Some(&LargeStringArray::from_iter(texts)));
        }
        assert_eq!(keep_type_name(&DataType::LargeUtf8), "string");
    }
}
