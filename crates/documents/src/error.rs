//! Errors of documents.

use nearprint_parquet::DatasetError;
use nearprint_storage::{ErrorKind, StorageError};

/// An error of the documents at a place. It names the place, or the file, and the column or row if it is about one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentsError {
    /// A line of a list of documents cannot be used.
    #[error("{list}: line {line}: {source}")]
    Listed {
        /// The list.
        list: String,
        /// The number of the line, counted from 1.
        line: u64,
        /// What is wrong with the place that the line names.
        source: Box<DocumentsError>,
    },
    /// A list of documents names none.
    #[error("no documents: {list} has no lines: write the paths or URLs of files into it, one a line")]
    EmptyList {
        /// The list.
        list: String,
    },
    /// There is nothing at the place of the documents.
    #[error("no documents at {url}: check the path; nothing was read or written")]
    DocumentsMissing {
        /// The place.
        url: String,
    },
    /// All files at the place of the documents are still being written, by their names.
    #[error("no documents at {url} yet: by their names, these files are still being written: {there}")]
    NoDocuments {
        /// The place.
        url: String,
        /// The names of the first files that are there.
        there: String,
    },
    /// No file at the place of the documents has a format that can be read.
    #[error("no documents at {url}: no file there ends in {endings}; there are: {there}: rename or convert them")]
    OtherFiles {
        /// The place.
        url: String,
        /// The endings that files of a known format have.
        endings: String,
        /// The names of the first files that are there.
        there: String,
    },
    /// The marker that must lie beside the documents is missing.
    #[error("no marker at {url}: the folder is not complete yet; try again when it is, or change require_marker")]
    NoMarker {
        /// The place where the marker should be.
        url: String,
    },
    /// Two files have different types for a column.
    #[error("column '{column}' is {got} in {file} but {first} in {first_file}: write the files with one schema")]
    SchemaDrift {
        /// The later file, in the order of paths.
        file: String,
        /// The column.
        column: Box<str>,
        /// The column's type in the later file.
        got: Box<str>,
        /// The first file.
        first_file: String,
        /// The column's type in the first file.
        first: Box<str>,
    },
    /// More files cannot be read than are allowed.
    #[error(
        "more than {allowed} files cannot be read; first: {example}: restore or remove them, or raise max_bad_files to pass them over"
    )]
    TooManyBadFiles {
        /// The number of files that are allowed.
        allowed: u64,
        /// The first of these files, and what is wrong with it.
        example: String,
    },
    /// No file can be read, however many may be passed over.
    #[error(
        "none of the files can be read ({n}); first: {example}: fetch them again; max_bad_files passes over some files of a night, not all"
    )]
    AllFilesBad {
        /// The number of files.
        n: u64,
        /// The first of these files, and what is wrong with it.
        example: String,
    },
    /// No document has the given id.
    #[error("no document '{}' in {documents}: check the id, and `id_column`", id.escape_debug())]
    NoSuchDocument {
        /// The id.
        id: String,
        /// The place of the documents that were searched.
        documents: String,
    },
    /// A file cannot be read or used.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

/// The result of this crate's functions that look for documents. What reads a file gives the error of the file.
pub type Result<T> = std::result::Result<T, DocumentsError>;

impl From<StorageError> for DocumentsError {
    fn from(error: StorageError) -> Self {
        DatasetError::from(error).into()
    }
}

impl DocumentsError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::SchemaDrift { .. }
            | Self::OtherFiles { .. }
            | Self::TooManyBadFiles { .. }
            | Self::AllFilesBad { .. } => ErrorKind::BadData,
            Self::DocumentsMissing { .. }
            | Self::EmptyList { .. }
            | Self::NoDocuments { .. }
            | Self::NoMarker { .. }
            | Self::NoSuchDocument { .. } => ErrorKind::InputMissing,
            Self::Listed { source, .. } => source.kind(),
            Self::Dataset(error) => error.kind(),
        }
    }
}
