//! Documents: rows of Parquet or JSONL files, or pages of WARC, WACZ or HTML files, with an id, a text and, if configured,
//! keep-order columns.
//!
//! [`Documents`] reads those of a place, in any of the [`FORMATS`], and [`filter_file`] copies those of a file that a
//! filter lets through. What a file claims is checked before memory is taken for it.

mod batch;
mod column_ids;
mod delta_table;
mod error;
mod file_name;
mod filter;
mod foreign;
mod formats;
mod found;
mod found_texts;
mod hint;
mod html;
mod html_filter;
mod iceberg_table;
mod jsonl;
mod jsonl_fault;
mod jsonl_filter;
mod jsonl_lines;
mod keep_column;
mod keep_key;
mod nested;
mod newest;
mod night_folders;
mod night_place;
mod open;
mod parquet;
mod parquet_filter;
mod passed;
mod passed_over;
mod piped;
mod place;
mod quarantine;
mod reader;
mod table_files;
mod texts;
mod wacz;
mod warc;
mod warc_file;
mod warc_filter;
mod warc_page;
mod web_pages;
mod web_root;
mod web_rows;

/// Functions for the fuzz targets. They do not belong to the interface.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::jsonl_lines::id_and_text;
}

pub use self::parquet::id_texts;
pub use batch::{DocumentBatch, DocumentColumns, ReadBytes, RevisitColumns, SpanRead, Unchecked};
pub use error::Absent;
pub use filter::{Fate, Fates, FileFilter, FilterOutput, FilterTarget, RowCounts};
pub use formats::{
    FORMATS, endings, filter_file, filtered_name, has_fetch_times, holds_one_document, is_document_name,
    is_written_empty, left_out, row_place,
};
pub use found::KnownFiles;
pub use found_texts::FoundText;
pub use html::page_text;
pub use jsonl_lines::{IdColumn, LineId};
pub use keep_key::{KeepKey, LENGTH};
pub use nearprint_warc::{Seam, spans_join};
pub use night_folders::NightFolders;
pub use night_place::{Digits, NightPlace, all_nights, files_of_all_nights, layout_of};
pub use open::too_many_bad_files;
pub use open::{DocumentRange, DocumentRows, Documents};
pub use passed::{Passed, PassedReason};
pub use place::{DocumentPlace, FileList, first_names, is_unfinished, night_pattern};
pub use quarantine::{BadFile, BadReason, BadRow, DuplicateIds, FileRows, InputPolicy, MAX_REPEATED_IDS, Repeats};
pub use reader::{DocumentReader, Format, RowFault};
pub use table_files::TableVersions;
pub use texts::{TextFormat, write_texts};
pub use web_pages::{Revisits, WarcId, WebPages};
pub use web_rows::url_host;
