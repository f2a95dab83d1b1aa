//! The dates of nights.

use chrono::NaiveDate;

/// Returns whether a text is an existing date of the form `YYYY-MM-DD`.
#[must_use]
pub fn is_date(text: &str) -> bool {
    let has_form = text.len() == 10
        && text.bytes().enumerate().all(|(at, b)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
    has_form && text.parse::<NaiveDate>().is_ok()
}
