//! Reports the results of a published night for a person to read: as values, as a page and as Markdown.

mod decisions;
mod hosts;
mod index;
mod links;
mod markdown;
mod night_report;
mod notable;
mod page;
mod read;
mod weakest;

pub use self::hosts::{HostNight, HostNumbers, HostRecord};
pub use self::index::{Nights, nights_page};
pub use self::links::{INDEX_NAME, night_page_name};
pub use self::markdown::night_markdown;
pub use self::night_report::{Distributions, Example, LargeCluster, NightReport, QuarantinedRow, ReportRequest};
pub use self::notable::{STALE, named_source, recrawled};
pub use self::page::{PageLinks, night_page};
pub use self::read::report;
