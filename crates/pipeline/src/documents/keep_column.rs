//! Columns of the keep order, brought to one of three types: Int64 (integers, booleans, dates and times, the latter two in
//! microseconds), Float64 and Utf8.

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;

/// What a column of `data_type` is brought to; none where it has no order to keep by.
pub(super) fn keep_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        t if t.is_integer() => Some(DataType::Int64),
        DataType::Boolean | DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Some(DataType::Int64),
        t if t.is_floating() => Some(DataType::Float64),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::Utf8),
        _ => None,
    }
}

pub(super) fn to_keep_type(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    match array.data_type() {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let micros = cast_with_options(array, &DataType::Timestamp(TimeUnit::Microsecond, None), &strict)?;
            cast_with_options(&micros, target, &strict)
        }
        _ => cast_with_options(array, target, &strict),
    }
}

/// The type as a message names it.
pub(crate) fn keep_type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 => "string".to_owned(),
        DataType::Int64 => "integer".to_owned(),
        DataType::Float64 => "float".to_owned(),
        other => other.to_string(),
    }
}
