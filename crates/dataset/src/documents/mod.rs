//! Documents: rows of Parquet or JSONL files with an id, a text and, if configured, keep-order columns.

mod batch;
mod delta_table;
mod filter;
mod foreign;
mod formats;
mod found;
mod hint;
mod jsonl;
mod jsonl_filter;
mod keep_column;
mod open;
mod pages;
mod parquet;
mod parquet_filter;
mod place;
mod reader;

#[cfg(fuzzing)]
pub use jsonl::id_and_text;

pub use batch::{DocumentBatch, DocumentColumns, Unchecked};
pub use filter::{Fate, Fates, FileFilter, FilterOutput, FilterTarget, RowCounts};
pub use formats::{FORMATS, endings, filter_file, is_document_name};
pub use keep_column::keep_type_name;
pub use open::{DocumentRange, DocumentRows, Documents, FoundText};
pub use pages::ReadLimits;
pub use place::{DocumentPlace, FileList};
pub use reader::{DocumentReader, Format};
