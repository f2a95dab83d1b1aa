//! Faults of a lookup, and what a caller may tell them by.

use nearprint_fault::{ErrorKind, Fault};

/// Tells the fault of what was asked, whatever the store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadQuestion {
    /// A query cannot be understood.
    Query,
    /// A setting cannot be used with this profile or store.
    Setting,
    /// The matches that an answer lists take more memory than there is for them.
    TooLarge,
}

/// Makes the fault of a query, or a part of it, that cannot be understood. The reason says what to write.
pub(crate) fn bad_query(query: impl Into<String>, reason: impl std::fmt::Display) -> Fault {
    Fault::usage(format!("{}: {reason}", query.into())).about(BadQuestion::Query)
}

/// Makes the fault of a query by an id that no night of the store has.
pub(crate) fn unknown_document(id: &str) -> Fault {
    Fault::new(ErrorKind::InputMissing, format!("no night of the store has the document '{}'", id.escape_debug()))
        .remedy("check the id; `nearprint explain ID --config FILE` names ids that are like it")
        .about(BadQuestion::Query)
}

/// Makes the fault of an index that contradicts itself.
pub(crate) fn damaged_index(reason: String) -> Fault {
    Fault::new(ErrorKind::BadData, reason).remedy("write it anew with `store index`, after its files were deleted")
}
