//! Reports the results of a published night for a person to read: as values, as a page and as Markdown.

mod decisions;
mod hosts;
mod markdown;
mod night_report;
mod notable;
mod page;
mod read;

pub use self::hosts::{HostNight, HostNumbers, HostRecord};
pub use self::markdown::night_markdown;
pub use self::night_report::{Distributions, Example, NightReport, QuarantinedRow, ReportRequest};
pub use self::notable::{STALE, named_source, recrawled};
pub use self::page::night_page;
pub use self::read::report;
