//! Faults of a store, and what a caller may tell them by.

use nearprint_fault::{ErrorKind, Fault, one_line};
use nearprint_storage::{FailedRequest, Unreadable};

use crate::names::{INDEXES, RUNS, SEGMENTS, is_digest};

/// Tells the fault of something that does not agree with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// A file of the store or of a published night does not agree with the store's commit.
    File,
    /// A commit is not what a release wrote. Everything else depends on commits.
    Commit,
}

/// Tells the fault of a place that is no store, but an output, into which a store publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsOutput {
    /// The place of this store, if it lies beside the output.
    pub store: Option<String>,
}

/// Tells the fault of a night that a store, or its results, do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchNight {
    /// The store, if the fault is about one by its own name.
    pub store: Option<String>,
}

/// Makes the fault of a change to the store that others were faster than again and again.
pub fn others_committed(attempts: usize) -> Fault {
    Fault::try_again(format!("others committed {attempts} times meanwhile"))
}

/// The repair of a file of a night.
const REPAIR: &str = "the store is damaged; restore the file, or publish the night anew with `nearprint run --replace`";

/// The repair of a table of an index.
pub(crate) const INDEX_REPAIR: &str = "delete this file, and run `nearprint store index`";

/// Makes the fault of a file that does not agree with the store's commit.
pub fn damaged(file: impl Into<String>, reason: impl ToString) -> Fault {
    Fault::bad_data(file, one_line(&reason.to_string())).remedy(REPAIR).about(Damage::File)
}

/// Returns the fault with the repair of a store's file, if it is about one, by its place, that is damaged: readers know no other
/// files than inputs.
#[must_use]
pub fn with_repair(fault: Fault) -> Fault {
    let file = fault.place().file.as_deref().filter(|_| fault.matter() == Some(&Unreadable::Damaged));
    let names: Vec<&str> = file.map_or_else(Vec::new, |file| file.rsplit('/').collect());
    let repair = match names.as_slice() {
        [part, _, digest, RUNS, ..] if is_part(part) && is_digest(digest) => REPAIR,
        [part, _, digest, INDEXES, ..] if is_part(part) && is_digest(digest) => INDEX_REPAIR,
        [part, digest, SEGMENTS, ..] if is_part(part) && is_digest(digest) => {
            "delete this file, and run `nearprint store compact`"
        }
        _ => return fault,
    };
    fault.remedy(repair)
}

fn is_part(name: &str) -> bool {
    name.starts_with("part-") && name.ends_with(".parquet")
}

/// Makes the fault of a commit, or a page of one, that is not what a release wrote.
pub fn damaged_commit(file: impl Into<String>, reason: impl ToString) -> Fault {
    let remedy = "the store is damaged; restore this commit from a backup";
    Fault::bad_data(file, one_line(&reason.to_string())).remedy(remedy).about(Damage::Commit)
}

/// Returns whether a fault is about the content of a file or its absence. An I/O error of a local file counts too. A fault is
/// not about content if an object store does not answer, or if the state will pass.
#[must_use]
pub fn is_about_content(fault: &Fault) -> bool {
    match fault.matter::<FailedRequest>() {
        Some(FailedRequest) => fault.kind() == ErrorKind::InputMissing,
        None => fault.kind() != ErrorKind::TryAgain,
    }
}

/// Returns the damaged file and what is wrong with it, if the fault is about one.
#[must_use]
pub fn file_and_reason(fault: &Fault) -> Option<(String, String)> {
    let file = fault.place().file.clone()?;
    let is_io = fault.cause::<std::io::Error>().is_some();
    match fault.matter::<FailedRequest>() {
        Some(FailedRequest) if fault.kind() == ErrorKind::InputMissing => Some((file, "it is gone".to_owned())),
        None if !is_io && fault.kind() != ErrorKind::BadData => None,
        _ => Some((file, one_line(&fault.reason_in_file()))),
    }
}
