//! Faults of files and datasets, and what a caller may tell them by.

use std::num::NonZeroU64;

use nearprint_fault::{Fault, Words, foreign};
use nearprint_storage::bad_file;

/// Tells the fault of a column. Its [place](Fault::place) has the file and the column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadColumn {
    /// The file lacks it.
    Missing {
        /// The columns that the file has.
        present: Vec<String>,
    },
    /// It has a type that cannot be read for its purpose.
    Type,
    /// The file has several of this name.
    Ambiguous,
}

/// Makes the fault of a file that lacks a column. For JSON lines, `line` is the number of the line that lacks it, counted
/// from 1: the first object of the file.
pub fn missing_column(
    file: impl Into<String>,
    column: impl Into<String>,
    line: Option<NonZeroU64>,
    present: Vec<String>,
    remedy: impl Into<Words>,
) -> Fault {
    let column = column.into();
    let there = if present.is_empty() { "no column".to_owned() } else { present.join(", ") };
    let reason = format!("no column '{column}'{} (it has {there})", in_line(line));
    Fault::bad_data(file, reason).column(column).remedy(remedy).about(BadColumn::Missing { present })
}

/// Makes the fault of a column of the type `got`.
pub fn column_type(
    file: impl Into<String>,
    column: impl Into<String>,
    got: impl std::fmt::Display,
    expected: &str,
) -> Fault {
    let column = column.into();
    let reason = format!("column '{column}' is {got}, expected {expected}");
    Fault::bad_data(file, reason).column(column).remedy("cast it or name another column").about(BadColumn::Type)
}

/// Makes the fault of a column whose name several columns of a file have: readers differ in which one they take.
pub fn ambiguous_column(file: impl Into<String>, column: impl Into<String>) -> Fault {
    let column = column.into();
    let reason = format!("several columns have the name '{column}'");
    Fault::bad_data(file, reason).column(column).remedy("write the file with one of them").about(BadColumn::Ambiguous)
}

/// Says in which line of a file a column is missing.
fn in_line(line: Option<NonZeroU64>) -> String {
    match line.map(NonZeroU64::get) {
        None => String::new(),
        Some(1) => " in the first line".to_owned(),
        Some(line) => format!(" in line {line}, its first object"),
    }
}

/// Converts an error that the `parquet` crate reports about a file. A fault of the place below stays as it is.
pub fn of_parquet(file: &str, error: parquet::errors::ParquetError) -> Fault {
    let parquet::errors::ParquetError::External(inner) = error else {
        return bad_file(file, foreign(&error));
    };
    match inner.downcast::<Fault>() {
        Ok(own) => *own,
        Err(other) => bad_file(file, foreign(&other)),
    }
}

/// Converts an error that the `arrow` crate reports about a file, like [`of_parquet`].
pub fn of_arrow(file: &str, error: arrow::error::ArrowError) -> Fault {
    match error {
        arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<parquet::errors::ParquetError>() {
            Ok(parquet) => of_parquet(file, *parquet),
            Err(other) => bad_file(file, foreign(&other)),
        },
        other => bad_file(file, foreign(&other)),
    }
}
