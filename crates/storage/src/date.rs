//! The dates of nights.

use std::time::SystemTime;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};

/// Returns whether a text is an existing date of the form `YYYY-MM-DD`.
#[must_use]
pub fn is_date(text: &str) -> bool {
    let has_form = text.len() == 10
        && text.bytes().enumerate().all(|(at, b)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
    has_form && text.parse::<NaiveDate>().is_ok()
}

/// Returns a time in UTC, to the second: `2026-11-20T02:30:00Z`.
#[must_use]
pub fn utc(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}
