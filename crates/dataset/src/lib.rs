//! Reading Parquet files that are not trusted, and writing datasets whose bytes depend on their rows alone.
//!
//! [`ParquetFile`] reads datasets. [`Documents`] reads the documents of a crawl, in any of the [`FORMATS`]. Both check
//! what a file claims before they take memory for it. [`DatasetWriter`] writes datasets, and [`publish()`] publishes
//! them. [`TableLog`] is the log of a dataset that nights publish as a Delta Lake table.

mod columns;
mod date;
mod delta;
mod delta_log;
mod documents;
mod error;
pub mod fingerprint_column;
mod guard;
mod kernel;
mod page_checksums;
mod page_index;
mod parquet_file;
mod publish;
mod published;
mod quarantine;
pub mod schema;
pub mod sketch_column;
mod sorted_copy;
mod table_log;
mod writer;

/// Functions for the fuzz targets. They do not belong to the interface.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::delta::decode_deltas;
    pub use crate::documents::id_and_text;
}

pub use columns::{BATCH_ROWS, Columns, MAX_VALUE_BYTES, fixed};
pub use date::{is_date, utc};
pub use delta_log::version_of;
pub use documents::{
    DocumentBatch, DocumentColumns, DocumentPlace, DocumentRange, DocumentReader, DocumentRows, Documents, FORMATS,
    Fate, Fates, FileFilter, FileList, FilterOutput, FilterTarget, Format, FoundText, IdColumn, LineId, Passed,
    PassedReason, ReadBytes, ReadLimits, RowCounts, RowFault, SpanRead, Unchecked, WarcId, WebPages, endings,
    filter_file, holds_one_document, is_document_name, keep_type_name, left_out, page_text, row_place, url_host,
};
pub use error::{DatasetError, Result};
pub use nearprint_html::HtmlText;
pub use nearprint_warc::{Seam, spans_join};
pub use parquet_file::{ParquetFile, Read, count, selection};
pub use publish::{is_sound, mend_files, publish, refuse_existing, upload, upload_new};
pub use published::{DELTA_LOG, DT, PUBLISHED, PublishedDataset, PublishedName, published_path};
pub use quarantine::{BadFile, BadReason, BadRow, DuplicateIds, InputPolicy};
pub use sorted_copy::{PagesRead, SortedCopy};
pub use table_log::{RemovedFile, TableChange, TableFile, TableLog};
pub use writer::{
    DatasetWriter, FILE_ROWS, FileRecord, INDEX_PAGE_ROWS, StagedFile, create_folder, is_part_name, writer_properties,
};
