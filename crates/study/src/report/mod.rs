//! Reports the results of a published night for a person to read: as values, as a page and as Markdown.

mod decisions;
mod markdown;
mod night;
mod notable;
mod page;
mod read;

pub use self::markdown::night_markdown;
pub use self::night::{Distributions, Example, NightReport, QuarantinedRow, ReportRequest};
pub use self::notable::STALE;
pub use self::page::night_page;
pub use self::read::report;
