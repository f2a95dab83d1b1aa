//! The summary of a night that was run.

use nearprint_night::RunSummary;
use schemars::JsonSchema;
use serde::Serialize;

use super::night_request::stopped;
use super::report::Page;
use crate::exit_code::{Failure, Spent};
use crate::summary::Report;

/// The summary of `run`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Ran<'a> {
    #[serde(flatten)]
    night: &'a RunSummary,
    /// The page that `--report` wrote. Left out without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<Page>,
}

/// Returns the report of a night with its page, or with the reason why that is unwritten.
pub(super) fn report_of(
    night: &RunSummary,
    page: Option<Page>,
    unwritten: Option<Failure>,
    spent: Spent,
    text: String,
) -> Report {
    let report = Report::new("run", night.status.name(), &Ran { night, page }, spent.clone(), text);
    // The night is published, and the next try finds it so.
    if let Some(failure) = unwritten {
        let failure = failure.with(|fault| fault.within("the night is published, but not its page: "));
        return report.but(Failure { spent: Some(Box::new(spent)), ..failure });
    }
    if night.breakers.is_empty() {
        return report;
    }
    let mut report = report.but(stopped(spent, night));
    report.json["status"] = night.status.name().into();
    report
}
