//! The existing fingerprints of a join, and the places of their documents.

use std::collections::HashMap;
use std::sync::Arc;

use nearprint_join::{Origin, RowSet};
use nearprint_parquet::ParquetFile;

/// All existing fingerprints of a join.
#[derive(Debug, Default)]
pub struct Existing {
    /// The files. Each fingerprint is in exactly one of them.
    pub files: Vec<ExistingFile>,
    /// The number of documents that take part, however their fingerprints are spread over the files.
    pub n_live_rows: u64,
}

impl Existing {
    /// Adds the existing fingerprints of another store.
    pub fn append(&mut self, other: Self) {
        debug_assert!(
            other.files.iter().all(|file| self.files.first().is_none_or(|own| own.origin != file.origin)),
            "the documents of a store are appended once"
        );
        self.files.extend(other.files);
        self.n_live_rows += other.n_live_rows;
    }

    /// Returns the bytes of the sets of rows that later nights have again or restore.
    #[must_use]
    pub fn row_sets_bytes(&self) -> usize {
        let of = |shadowed: &RowSet, restored: &RowSet| shadowed.memory_bytes() + restored.memory_bytes();
        // Files that cover the same runs share their list.
        let mut of_lists = HashMap::new();
        let of_files = self.files.iter().map(|file| match &file.documents {
            ExistingDocuments::Here { shadowed, restored } => of(shadowed, restored),
            ExistingDocuments::InRuns { runs } => {
                of_lists.insert(Arc::as_ptr(runs), runs);
                0
            }
        });
        let of_files: usize = of_files.sum();
        let runs = of_lists.into_values().flat_map(|runs| runs.iter().flatten());
        of_files + runs.map(|run| of(&run.shadowed, &run.restored)).sum::<usize>()
    }
}

/// A file of existing fingerprints.
#[derive(Debug)]
pub struct ExistingFile {
    /// The file.
    pub parquet: ParquetFile,
    /// The places of its documents.
    pub documents: ExistingDocuments,
    /// The store of its documents.
    pub origin: Origin,
    /// `Some` if the file has no `doc_id`: the number of rows in the files of the dataset before it. Row numbers then
    /// stand in for the ids. They equal no id of another dataset.
    pub numbered_from: Option<u64>,
}

/// The places of the documents to which the fingerprints of a file belong.
#[derive(Debug)]
pub enum ExistingDocuments {
    /// The documents are in the same rows of the same file.
    Here {
        /// The rows whose documents a later night has again.
        shadowed: Arc<RowSet>,
        /// The dropped rows that a later night restored: they are kept.
        restored: Arc<RowSet>,
    },
    /// The documents are in runs. Each row names its run by the run's position in this list.
    InRuns {
        /// The runs by position; `None` for a run that takes no part.
        runs: Arc<Vec<Option<RunFile>>>,
    },
}

/// The fingerprints of a run, together with their documents.
#[derive(Debug)]
pub struct RunFile {
    /// The file.
    pub parquet: ParquetFile,
    /// The rows whose documents a later night has again.
    pub shadowed: Arc<RowSet>,
    /// The dropped rows that a later night restored: they are kept.
    pub restored: Arc<RowSet>,
}

impl RunFile {
    /// Returns the number of rows that are not shadowed.
    pub fn n_live_rows(&self) -> u64 {
        let n = self.parquet.n_rows();
        n - self.shadowed.n_below(n)
    }
}

/// For each text hash, the first by (id, origin) of the kept existing documents with that short text.
#[derive(Debug, Default)]
pub struct ExistingShort(HashMap<[u8; 16], ShortDocument>);

/// A kept existing document with a short text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShortDocument {
    /// The id.
    pub id: String,
    /// The store of the document.
    pub origin: Origin,
}

impl ExistingShort {
    /// Returns the first document with a short text.
    #[must_use]
    pub fn get(&self, hash: &[u8; 16]) -> Option<&ShortDocument> {
        self.0.get(hash)
    }

    /// Adds a document, unless a known one with the same short text comes before it.
    pub fn offer(&mut self, hash: [u8; 16], id: &str, origin: Origin) {
        match self.0.get_mut(&hash) {
            Some(first) if (first.id.as_str(), first.origin) <= (id, origin) => {}
            Some(first) => *first = ShortDocument { id: id.to_owned(), origin },
            None => drop(self.0.insert(hash, ShortDocument { id: id.to_owned(), origin })),
        }
    }

    /// Adds the documents of other nights.
    pub fn append(&mut self, other: Self) {
        for (hash, ShortDocument { id, origin }) in other.0 {
            self.offer(hash, &id, origin);
        }
    }
}
