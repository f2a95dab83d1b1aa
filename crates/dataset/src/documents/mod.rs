//! Documents: rows of Parquet or JSONL files with an id, a text and, if configured, keep-order columns.

mod batch;
mod formats;
mod jsonl;
mod keep_column;
mod open;
mod pages;
mod parquet;
mod reader;

#[cfg(fuzzing)]
pub use jsonl::id_and_text;

pub use batch::{DocumentBatch, DocumentColumns, Unchecked};
pub use formats::{FORMATS, endings, is_document_name};
pub use keep_column::keep_type_name;
pub use open::{DocumentRange, DocumentRows, Documents, FoundText};
pub use pages::ReadLimits;
pub use reader::{DocumentReader, Format};
