//! The places that a job may access.

/// The places that a job may access, whoever names a place: a key, a line of a list, a link, or the log of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots {
    /// The places in which everything must lie that is read, and the store and the output. If the list is empty, a job
    /// may name any place, but the log of a table may name files of the table's own place only.
    pub roots: Vec<String>,
    /// More places in which files may lie that the log of a table names, such as those of a clone.
    pub clone_roots: Vec<String>,
}
