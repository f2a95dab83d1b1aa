//! The existing fingerprints of a join, and where their documents are.

use std::sync::Arc;

use nearprint_dataset::ParquetFile;
use nearprint_join::RowSet;

/// All existing fingerprints of a join.
#[derive(Debug, Default)]
pub struct Existing {
    /// The files; each fingerprint is in one of them.
    pub files: Vec<ExistingFile>,
    /// Documents that take part, however their fingerprints are spread over files.
    pub n_live_rows: u64,
}

/// A file of existing fingerprints.
#[derive(Debug)]
pub struct ExistingFile {
    /// The file.
    pub parquet: ParquetFile,
    /// Where its documents are.
    pub documents: ExistingDocuments,
    /// Where the file has no `doc_id`: rows of the dataset before it. Row numbers stand in, which equal no other id.
    pub numbered_from: Option<u64>,
}

/// Where the documents of a file's fingerprints are.
#[derive(Debug)]
pub enum ExistingDocuments {
    /// Beside them, in the same rows.
    Here {
        /// Rows whose documents a later night has again.
        shadowed: RowSet,
    },
    /// In the runs that the rows name by their position here; none where a run takes no part.
    InRuns {
        /// The runs, by position.
        runs: Arc<Vec<Option<RunFile>>>,
    },
}

/// The fingerprints of a run, with their documents.
#[derive(Debug)]
pub struct RunFile {
    /// The file.
    pub parquet: ParquetFile,
    /// Rows whose documents a later night has again.
    pub shadowed: RowSet,
}

impl RunFile {
    /// Rows that are not shadowed.
    pub fn n_live_rows(&self) -> u64 {
        let n = self.parquet.n_rows();
        n - self.shadowed.n_below(n)
    }
}
