//! What a caller may tell the faults of documents by.

use nearprint_fault::Fault;

/// Tells the fault of documents that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// There is nothing at the place of the documents.
    Missing,
    /// A list of documents names none.
    EmptyList,
    /// All files at the place are still being written, by their names.
    Unfinished,
    /// The marker that must lie beside the documents is missing.
    NoMarker,
    /// A night has no documents, though there is a place for nights.
    NoNight,
    /// The place of the nights is missing.
    NoNights,
    /// A table has no files, or none in the partition that was asked for.
    NoPartition,
}

impl Absent {
    /// Returns whether there are no documents to read. A scheduler may take this for a night on which nothing was crawled.
    #[must_use]
    pub fn is_empty_night(self) -> bool {
        matches!(self, Self::Missing | Self::EmptyList | Self::Unfinished | Self::NoNight | Self::NoPartition)
    }
}

/// Makes the fault of a place where there is nothing.
pub(crate) fn documents_missing(url: impl Into<String>) -> Fault {
    Fault::input_missing("documents", url, "check the path; nothing was read or written").about(Absent::Missing)
}
