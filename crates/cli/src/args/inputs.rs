//! Where documents are, and how they are read.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use nearprint_documents::{DocumentPlace, DuplicateIds};

use super::file_names::local_path;
use crate::bytes::Bytes;
use crate::documents;
use crate::exit_code::Failure;
use crate::job_folder::JobFolder;
use crate::place::{Given, place};

/// The treatment of bad rows and files, instead of the job file's.
#[derive(Debug, Clone, Args)]
pub struct InputArgs {
    /// Most rows that may be quarantined because they are no documents; more fail the run
    #[arg(long, value_name = "N")]
    pub max_bad_rows: Option<u64>,
    /// Most unreadable files that may be passed over; more fail the run
    #[arg(long, value_name = "N")]
    pub max_bad_files: Option<u64>,
    /// Most files in formats that are not read, such as CSV, that may be passed over; more fail the run
    #[arg(long, value_name = "N")]
    pub max_ignored_files: Option<u64>,
    /// Quarantine rows with larger texts, such as 64MiB
    #[arg(long, value_name = "BYTES")]
    pub max_doc_bytes: Option<Bytes>,
    /// Which of several rows with one id stays
    #[arg(long, value_name = "RULE")]
    pub on_duplicate_id: Option<OnDuplicateId>,
    /// Largest share of the rows with an id that the rule may leave out; more fail the run
    #[arg(long, value_name = "SHARE")]
    pub max_repeated_ids: Option<f64>,
    /// Read binary columns of Parquet files as UTF-8
    #[arg(long)]
    pub binary_as_utf8: bool,
    /// Allow no bad row, no bad file and no file in a format that is not read, regardless of the job file
    #[arg(long, conflicts_with_all = ["max_bad_rows", "max_bad_files", "max_ignored_files"])]
    pub strict: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum OnDuplicateId {
    /// None: fail the run
    Fail,
    /// The first row, in the order of file paths and rows
    #[value(name = "keep_first", alias = "keep-first")]
    KeepFirst,
    /// The last row, in the order of file paths and rows
    #[value(name = "keep_last", alias = "keep-last")]
    KeepLast,
    /// The newest row, by the time of a WARC record or the column newest_by
    #[value(name = "keep_newest", alias = "keep-newest")]
    KeepNewest,
    /// The row that comes first in the keep order
    #[value(name = "keep_best", alias = "keep-best")]
    KeepBest,
}

impl From<OnDuplicateId> for DuplicateIds {
    fn from(rule: OnDuplicateId) -> Self {
        match rule {
            OnDuplicateId::Fail => Self::Fail,
            OnDuplicateId::KeepFirst => Self::KeepFirst,
            OnDuplicateId::KeepLast => Self::KeepLast,
            OnDuplicateId::KeepNewest => Self::KeepNewest,
            OnDuplicateId::KeepBest => Self::KeepBest,
        }
    }
}

/// The place of the documents.
#[derive(Debug, Clone, Args)]
pub struct DocumentsArgs {
    /// Documents: file, folder, glob, s3:// prefix, Delta or Iceberg table
    #[arg(long, value_name = "PATH", value_parser = place, required_unless_present = "files_from")]
    pub documents: Option<Given>,
    /// Read the documents' paths or URLs from FILE, one a line; `-`: standard input
    #[arg(long, value_name = "FILE", value_parser = local_path(), conflicts_with = "documents")]
    pub files_from: Option<PathBuf>,
    /// Version of the Delta table, or snapshot of the Iceberg table, that --documents names [default: the newest]
    #[arg(long, value_name = "N", requires = "documents", conflicts_with = "files_from")]
    pub documents_version: Option<u64>,
}

impl DocumentsArgs {
    /// Returns the place of the documents, as the storage of a job in `folder` finds it.
    pub fn place(&self, folder: &JobFolder) -> Result<DocumentPlace, Failure> {
        let documents = self.documents.as_ref().map(|place| folder.given(place));
        let place = documents::place(folder, documents, self.files_from.as_deref(), self.documents_version)?;
        place.ok_or_else(|| Failure::usage("give --documents or --files-from"))
    }
}
