//! The types of keep-order columns, and their conversion to one of three: Int64 (integers, booleans, and dates and times in
//! microseconds), Float64 or LargeUtf8. LargeUtf8 is used because one array holds all values of a night, and offsets of
//! 32 bits may not be able to count their bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimeUnit};
use arrow::error::ArrowError;

use crate::quarantine::BadReason;

/// The type of dates and times, whatever their unit is.
pub const TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Returns the type that a column of `data_type` must have in all files of a night, or `None` if it has no order to keep by. Numbers
/// are no times: nobody knows their unit.
pub fn keep_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        t if t.is_integer() => Some(DataType::Int64),
        DataType::Boolean => Some(DataType::Boolean),
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Some(TIME),
        t if t.is_floating() => Some(DataType::Float64),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::LargeUtf8),
        _ => None,
    }
}

/// Returns the type to which a column of such a type is converted.
pub fn converted_type(keep_type: &DataType) -> DataType {
    match keep_type {
        DataType::Boolean | DataType::Timestamp(..) => DataType::Int64,
        other => other.clone(),
    }
}

/// Converts a column to the type that [`converted_type`] gives, or to a wider one. NaN is NULL, which comes last in any order,
/// and -0.0 is 0.0. A value that does not fit makes its row no document: a number above 2^63 - 1, or a time that microseconds cannot count.
///
/// # Errors
/// None: all columns that have a type to keep by can be converted.
pub fn to_keep_type(
    array: &ArrayRef,
    target: &DataType,
    faults: &mut [Option<BadReason>],
) -> Result<ArrayRef, ArrowError> {
    let converted = match array.data_type() {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let micros = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
            cast(&micros, target)?
        }
        _ => cast(array, target)?,
    };
    if converted.null_count() > array.null_count() {
        for (row, fault) in faults.iter_mut().enumerate() {
            if converted.is_null(row) && array.is_valid(row) {
                fault.get_or_insert(BadReason::WrongType);
            }
        }
    }
    Ok(match converted.as_primitive_opt::<Float64Type>() {
        Some(numbers) => {
            let number = |number: f64| (!number.is_nan()).then_some(number + 0.0);
            Arc::new(numbers.iter().map(|value| value.and_then(number)).collect::<Float64Array>())
        }
        None => converted,
    })
}

/// Returns the name of a type for messages.
pub fn keep_type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => "string".to_owned(),
        DataType::Int64 => "integer".to_owned(),
        DataType::Float64 => "float".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Timestamp(..) => "date or time".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, AsArray, Float64Array, Int64Array, LargeStringArray, StringArray, StringViewArray,
        TimestampSecondArray, UInt64Array,
    };
    use arrow::datatypes::{DataType, Float64Type, Int64Type};

    use super::{keep_type, keep_type_name, to_keep_type};
    use crate::quarantine::BadReason;

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
            let kept = to_keep_type(&file, &DataType::LargeUtf8, &mut [None; 3]).unwrap();
            assert_eq!(kept.as_any().downcast_ref::<LargeStringArray>(), Some(&LargeStringArray::from_iter(texts)));
        }
        assert_eq!(keep_type_name(&DataType::LargeUtf8), "string");
    }

    #[test]
    fn a_value_that_does_not_fit_makes_its_row_no_document_and_not_a_number_is_null() {
        let numbers: ArrayRef = Arc::new(UInt64Array::from(vec![Some(1), None, Some(u64::MAX)]));
        let mut faults = [None; 3];
        let kept = to_keep_type(&numbers, &DataType::Int64, &mut faults).unwrap();
        assert_eq!(kept.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(1), None, None]));
        assert_eq!(faults, [None, None, Some(BadReason::WrongType)]);
        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, i64::MAX]));
        let mut faults = [None; 2];
        to_keep_type(&seconds, &DataType::Int64, &mut faults).unwrap();
        assert_eq!(faults, [None, Some(BadReason::WrongType)]);
        let scores: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, 0.5, -0.0]));
        let kept = to_keep_type(&scores, &DataType::Float64, &mut [None; 3]).unwrap();
        assert_eq!(kept.as_primitive::<Float64Type>(), &Float64Array::from(vec![None, Some(0.5), Some(0.0)]));
    }
}
