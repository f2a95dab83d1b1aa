//! Reading Parquet files that are not trusted, and writing datasets whose bytes depend on their rows alone.
//!
//! [`ParquetFile`] reads datasets. It checks what a file claims before it takes memory for it, and so does
//! [`PagedRowGroup`], which reads the pages of one row group. [`DatasetWriter`] writes datasets, and [`publish()`]
//! publishes them.

mod columns;
mod delta;
mod error;
pub mod fingerprint_column;
mod guard;
mod kernel;
mod page_checksums;
mod page_index;
mod paged_batches;
mod pages;
mod parquet_file;
mod publish;
mod published;
pub mod schema;
pub mod sketch_column;
mod sorted_copy;
mod sought;
mod writer;

/// Functions for the fuzz targets. They do not belong to the interface.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::delta::decode_deltas;
}

pub use columns::{BATCH_ROWS, Columns, MAX_VALUE_BYTES, fixed, value};
pub use error::{BadColumn, ambiguous_column, column_type, missing_column, of_arrow, of_parquet};
pub use kernel::DeltaKernel;
pub use page_checksums::copy_with_checksums;
pub use paged_batches::PagedBatches;
pub use pages::{GroupState, PagedRowGroup, ReadLimits};
pub use parquet_file::{ParquetFile, Read, count, joined_row_groups, selection};
pub use publish::{is_sound, mend_files, publish, refuse_existing, upload, upload_new};
pub use published::{CHANGES, DELTA_LOG, DT, PUBLISHED, PublishedDataset, PublishedName, published_path};
pub use sorted_copy::{PagesRead, SortedCopy};
pub use sought::Sought;
pub use writer::{
    DatasetWriter, FILE_ROWS, FileRecord, INDEX_PAGE_ROWS, StagedFile, create_folder, is_part_name, writer_properties,
};
