//! How new rows are, by the column that tells the newest of rows with one id: as numbers that only compare.

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;
use chrono::Utc;

use crate::quarantine::BadReason;

/// Converts values of one of the types of keep-order columns. A text is a time in the form of ISO 8601; a row with another text
/// gets a fault.
///
/// # Errors
/// The values have another type.
pub fn newness(values: &ArrayRef, faults: &mut [Option<BadReason>]) -> Result<Int64Array, ArrowError> {
    match values.data_type() {
        DataType::Float64 => {
            let number = |value: f64| (!value.is_nan()).then(|| ascending(value));
            Ok(values.as_primitive::<Float64Type>().iter().map(|value| value.and_then(number)).collect())
        }
        DataType::LargeUtf8 => {
            let texts = values.as_string::<i64>().iter().zip(faults);
            let time = |(text, fault): (Option<&str>, &mut Option<BadReason>)| {
                let micros = micros(text?);
                if micros.is_none() {
                    fault.get_or_insert(BadReason::WrongType);
                }
                micros
            };
            Ok(texts.map(time).collect())
        }
        _ => Ok(cast(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone()),
    }
}

/// Returns the time of a text in the form of ISO 8601, in microseconds since 1970. A time without a zone is one of UTC.
pub fn micros(text: &str) -> Option<i64> {
    Some(string_to_datetime(&Utc, text).ok()?.timestamp_micros())
}

/// Returns whole numbers in the order of floats.
fn ascending(value: f64) -> i64 {
    // Zero has a sign, and is one number.
    let bits = (value + 0.0).to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, Float64Array, LargeStringArray};

    use super::newness;
    use crate::quarantine::BadReason;

    #[test]
    fn numbers_of_floats_stand_in_their_order_and_a_value_that_is_none_is_null() {
        let ascending = [f64::NEG_INFINITY, -2.5, -1e-300, 0.0, 1e-300, 1.0, 1.5, 1.763e9, 1.8e18, f64::INFINITY];
        let values: ArrayRef = Arc::new(Float64Array::from(ascending.to_vec()));
        let found = newness(&values, &mut [None; 10]).unwrap();
        assert!(found.values().is_sorted_by(|a, b| a < b), "{found:?}");
        let values: ArrayRef = Arc::new(Float64Array::from(vec![Some(-0.0), Some(0.0), Some(f64::NAN), None]));
        let found = newness(&values, &mut [None; 4]).unwrap();
        assert_eq!(found.value(0), found.value(1));
        assert!(found.is_null(2) && found.is_null(3));
    }

    #[test]
    fn texts_are_times_with_or_without_a_zone_and_any_other_text_is_a_fault_of_its_row() {
        let texts = ["2026-11-20T03:00:00Z", "2026-11-20T11:00:00+08:00", "2026-11-20 03:00:00", "2026-11-20"];
        let texts = texts.into_iter().map(Some).chain([None, Some("yesterday")]);
        let (values, mut faults): (ArrayRef, _) = (Arc::new(LargeStringArray::from_iter(texts)), vec![None; 6]);
        let found = newness(&values, &mut faults).unwrap();
        let hour = 3_600_000_000;
        assert_eq!(
            (found.value(1), found.value(2), found.value(3)),
            (found.value(0), found.value(0), found.value(0) - 3 * hour)
        );
        assert!(found.is_null(4) && found.is_null(5));
        assert_eq!(faults, [None, None, None, None, None, Some(BadReason::WrongType)]);
    }
}
