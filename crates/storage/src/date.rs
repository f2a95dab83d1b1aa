//! The dates of nights.

use std::time::SystemTime;

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat, Utc};

/// Returns whether a text is an existing date of the form `YYYY-MM-DD`, from year 1: Python, and table readers written in
/// Python, know no year before.
///
/// ```
/// use nearprint_storage::is_date;
///
/// assert!(is_date("2024-02-29") && is_date("0001-01-01"));
/// assert!(!is_date("2026-02-29") && !is_date("0000-01-01") && !is_date("2026-2-9"));
/// ```
#[must_use]
pub fn is_date(text: &str) -> bool {
    let has_form = text.len() == 10
        && text.bytes().enumerate().all(|(at, b)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
    has_form && text.parse::<NaiveDate>().is_ok_and(|date| date.year() > 0)
}

/// Returns the number of a date, which has the form `YYYY-MM-DD`: its days since 1970-01-01, as columns of dates have them.
/// `None` means that the text is no date.
///
/// ```
/// use nearprint_storage::{date_of_day, day_of_date};
///
/// assert_eq!(day_of_date("2026-11-20"), Some(20_777));
/// assert_eq!(date_of_day(20_777).as_deref(), Some("2026-11-20"));
/// ```
#[must_use]
pub fn day_of_date(date: &str) -> Option<i32> {
    Some(date.parse::<NaiveDate>().ok()?.to_epoch_days())
}

/// Returns the date with this number of days since 1970-01-01. `None` means that no date has it.
#[must_use]
pub fn date_of_day(day: i32) -> Option<String> {
    NaiveDate::from_epoch_days(day).map(|date| date.to_string())
}

/// Returns a time in UTC, to the second: `2026-11-20T02:30:00Z`.
#[must_use]
pub fn utc(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}
