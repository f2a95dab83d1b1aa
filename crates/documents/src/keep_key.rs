//! The keys of the keep order.

use arrow::array::ArrayRef;
use arrow::compute::{SortColumn, SortOptions};
use nearprint_fault::{Fault, Result};

/// One key of the keep order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepKey {
    /// A column of the documents, or `length`: the number of characters of the normalised text.
    pub column: String,
    /// Larger values come first.
    pub descending: bool,
}

/// The name of the built-in keep key.
pub const LENGTH: &str = "length";

impl KeepKey {
    /// Returns the values of the key as a column to sort by. Values that are NULL come last.
    #[must_use]
    pub fn sorting(&self, values: ArrayRef) -> SortColumn {
        SortColumn { values, options: Some(SortOptions { descending: self.descending, nulls_first: false }) }
    }

    /// Parses `column asc` or `column desc`. `column` alone means ascending.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the text is anything else.
    pub fn parse(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [column] | [column, "asc"] => Ok(Self { column: column.to_owned(), descending: false }),
            [column, "desc"] => Ok(Self { column: column.to_owned(), descending: true }),
            _ => Err(Fault::config(
                "keep",
                format!("'{text}' is not 'column', which means 'column asc', nor 'column asc' or 'column desc'"),
            )),
        }
    }
}
