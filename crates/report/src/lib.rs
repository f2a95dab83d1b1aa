//! Reports and pages on a night, or on a comparison of nights, and the differences between generations.

mod diff;
mod document;
mod night;
mod numbers;
pub mod page;

pub use diff::{
    Change, ChangeKind, ChangedDocument, Diff, DiffPlace, DiffRequest, DiffSide, DocumentsDiff, PairsDiff, diff,
};
pub use document::{DocumentRequest, ExplainedDocument, explain_document};
pub use night::{
    Distributions, Example, HostNight, HostNumbers, HostRecord, INDEX_NAME, LargeCluster, NightReport, Nights,
    PageLinks, QuarantinedRow, ReportRequest, STALE, named_source, night_markdown, night_page, night_page_name,
    nights_page, recrawled, report,
};
