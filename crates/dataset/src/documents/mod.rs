//! Documents: rows of Parquet or JSONL files, or pages of WARC or HTML files, with an id, a text and, if configured,
//! keep-order columns.

mod batch;
mod delta_table;
mod file_name;
mod filter;
mod foreign;
mod formats;
mod found;
mod hint;
mod html;
mod html_filter;
mod jsonl;
mod jsonl_fault;
mod jsonl_filter;
mod jsonl_lines;
mod keep_column;
mod open;
mod pages;
mod parquet;
mod parquet_filter;
mod passed;
mod place;
mod reader;
mod warc;
mod warc_file;
mod warc_filter;
mod warc_page;
mod web_pages;
mod web_root;
mod web_rows;

#[cfg(fuzzing)]
pub use jsonl_lines::id_and_text;

pub use batch::{DocumentBatch, DocumentColumns, ReadBytes, SpanRead, Unchecked};
pub use filter::{Fate, Fates, FileFilter, FilterOutput, FilterTarget, RowCounts};
pub use formats::{FORMATS, endings, filter_file, holds_one_document, is_document_name, left_out, row_place};
pub use html::page_text;
pub use jsonl_lines::{IdColumn, LineId};
pub use keep_column::keep_type_name;
pub use open::{DocumentRange, DocumentRows, Documents, FoundText};
pub use pages::ReadLimits;
pub use passed::{Passed, PassedReason};
pub use place::{DocumentPlace, FileList};
pub use reader::{DocumentReader, Format, RowFault};
pub use web_pages::{WarcId, WebPages};
pub use web_rows::url_host;
