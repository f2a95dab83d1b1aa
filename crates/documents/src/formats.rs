//! The formats of document files.

use nearprint_fault::Result;
use nearprint_storage::{InputFile, bad_file};
use nearprint_warc::Packing;

use super::file_name::ending;
use super::filter::{FileFilter, FilterTarget, RowCounts};
use super::reader::{Format, Rows};
use super::{html, html_filter, jsonl, jsonl_filter, parquet, parquet_filter, wacz, warc, warc_file, warc_filter};

/// All formats. Messages and the help text take the names and endings from here.
pub const FORMATS: &[Format] = &[
    Format {
        name: "Parquet",
        endings: &["parquet"],
        open: parquet::open,
        filter: parquet_filter::filter,
        rows: Rows::Counted,
    },
    Format {
        name: "JSONL",
        endings: &["jsonl", "ndjson", "json"],
        open: jsonl::open,
        filter: jsonl_filter::filter,
        rows: Rows::Counted,
    },
    Format {
        name: "WARC",
        endings: warc_file::ENDINGS,
        open: warc::open,
        filter: warc_filter::filter,
        rows: Rows::AtBytes,
    },
    Format { name: "WACZ", endings: &[wacz::ENDING], open: wacz::open, filter: wacz::filter, rows: Rows::AtBytes },
    Format { name: "HTML", endings: &["html", "htm"], open: html::open, filter: html_filter::filter, rows: Rows::One },
];

impl Format {
    /// Returns the format of a file, according to its name.
    pub fn of(url: &str) -> Option<Self> {
        let ending = ending(url)?;
        FORMATS.iter().find(|format| format.endings.contains(&&*ending)).copied()
    }

    /// Returns the format of a file that must have one.
    ///
    /// # Errors
    /// The name of the file has none of the [`endings`].
    pub(crate) fn required(url: &str) -> Result<Self> {
        Self::of(url).ok_or_else(|| bad_file(url, format!("its name does not end in {}", endings())))
    }
}

/// Returns whether a file of this name is read if it lies in a folder of documents.
#[must_use]
pub fn is_document_name(url: &str) -> bool {
    Format::of(url).is_some()
}

/// Returns whether a file of this name is a document as a whole.
#[must_use]
pub fn holds_one_document(url: &str) -> bool {
    Format::of(url).is_some_and(|format| format.rows == Rows::One)
}

/// Returns whether a file of this name says of each of its rows when it was fetched.
#[must_use]
pub fn has_fetch_times(url: &str) -> bool {
    Format::of(url).is_some_and(|format| format.rows == Rows::AtBytes)
}

/// Returns the name of the file that a filter writes for a file of this name: it has the same name and format, but the
/// survivors of a WACZ are a WARC file.
#[must_use]
pub fn filtered_name(name: &str) -> String {
    match Format::of(name) {
        Some(Format { name: "WACZ", .. }) => format!("{name}.warc.gz"),
        _ => name.to_owned(),
    }
}

/// Returns the place of a row in a file for messages. The rows of WARC files are numbered by their place in the bytes.
#[must_use]
pub fn row_place(url: &str, row: u64) -> String {
    match Format::of(url) {
        Some(Format { rows: Rows::AtBytes, .. }) => format!("{url} byte {}", row.saturating_sub(1)),
        _ => format!("{url} row {row}"),
    }
}

/// Returns the counts of a file that is one document, if that is not kept: nothing of the file is written, so no place
/// needs to be made for it.
///
/// # Errors
/// Flags are wanted, or the file has more rows in quarantine than its one.
pub fn left_out(file: &InputFile, filter: &FileFilter) -> Result<Option<RowCounts>> {
    if holds_one_document(&file.url) { html_filter::left_out(file, filter) } else { Ok(None) }
}

/// Returns whether a filter writes a file of this name of which it keeps nothing. Of web pages it does not: an HTML file is
/// its page, and a packed WARC file without a record could not be read.
#[must_use]
pub fn is_written_empty(url: &str) -> bool {
    Format::of(url).is_some_and(|format| format.rows == Rows::Counted)
}

/// Returns the endings of document files, for messages: `.parquet, .jsonl or .ndjson (.gz or .zst
/// allowed after all but .parquet)`.
#[must_use]
pub fn endings() -> String {
    let all: Vec<String> =
        FORMATS.iter().flat_map(|format| format.endings).map(|ending| format!(".{ending}")).collect();
    let packed = Packing::PACKED.map(|packing| format!(".{}", packing.ending()));
    let (last, first) = all.split_last().map_or((String::new(), &all[..0]), |(last, first)| (last.clone(), first));
    let packed = packed.join(" or ");
    format!("{} or {last} ({packed} allowed after all but .parquet and .{})", first.join(", "), wacz::ENDING)
}

/// Writes what a filter lets through of a document file, in the format of the file (of a WACZ, as a WARC file) and in the
/// order of its rows. The memory that this takes does not grow with the file: it grows with its largest row group by a
/// byte a row.
///
/// ```
/// use std::sync::Arc;
///
/// use nearprint_documents::{DocumentColumns, Fate, Fates, FileFilter, FilterOutput, FilterTarget};
/// use nearprint_parquet::ReadLimits;
/// use nearprint_documents::filter_file;
/// use nearprint_storage::Storage;
///
/// #[derive(Debug)]
/// struct DropB;
/// impl Fates for DropB {
///     fn of(&self, id: &str) -> Fate {
///         if id == "b" { Fate::Drop } else { Fate::Keep }
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let [from, to] = ["pages.jsonl", "kept.jsonl"].map(|name| temp.path().join(name));
/// std::fs::write(&from, "{\"id\": \"a\", \"n\": [1, 2]}\n{\"id\": \"b\"}\n")?;
/// let filter = FileFilter {
///     columns: DocumentColumns::default(),
///     output: FilterOutput::Survivors,
///     fates: Arc::new(DropB),
///     quarantined: Vec::new(),
///     limits: ReadLimits::default(),
///     max_doc_bytes: 1 << 20,
/// };
/// let file = Storage::default().folder(&from.display().to_string())?.file().await?;
/// let target = FilterTarget { file: std::fs::File::create(&to)?, name: to.display().to_string() };
/// let counts = filter_file(file, filter, target).await?;
/// assert_eq!((counts.n_rows, counts.n_keep, counts.n_drop), (2, 1, 1));
/// assert_eq!(std::fs::read_to_string(&to)?, "{\"id\": \"a\", \"n\": [1, 2]}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The file cannot be read, the target cannot be written, or a row has no id although it is not among those that are no
/// documents.
pub async fn filter_file(file: InputFile, filter: FileFilter, target: FilterTarget) -> Result<RowCounts> {
    let format = Format::required(&file.url)?;
    (format.filter)(file, filter, target).await
}
