//! Bad rows and files: which of them limits count, and what an error says of those beyond the limits.

use std::collections::BTreeMap;

use nearprint_documents::{BadFile, BadReason, BadRow, Documents, RowFault, row_place, too_many_bad_files};
use nearprint_fault::{ErrorKind, Fault, Result, counted};
use nearprint_tasks::{FileNote, FileReading};

use crate::error::TooManyBadRows;

/// The URLs of the files of documents, by position.
#[derive(Debug)]
pub(super) struct FileUrls(pub(super) Vec<String>);

impl FileUrls {
    pub(super) fn of(&self, reading: FileReading) -> &str {
        &self.0[reading.file()]
    }

    /// Returns the URL of the file of a row that is no document.
    pub(super) fn of_row(&self, bad: &BadRow) -> &str {
        self.of(FileReading::from(bad.file))
    }
}

/// Returns all files that cannot be read, by path: those that could not be opened, and those that could not be read to
/// their end.
pub(super) fn all_bad_files(documents: &Documents, urls: &FileUrls, notes: &FileNote) -> Vec<BadFile> {
    let opened = documents.bad.iter().map(|(file, reason)| (file.url.clone(), reason.clone()));
    let read = notes.bad.iter().map(|(&reading, reason)| (urls.of(reading).to_owned(), reason.clone()));
    let mut all: Vec<BadFile> = opened.chain(read).map(|(url, reason)| BadFile { url, reason }).collect();
    all.sort();
    all
}

/// Returns the rows that are not documents, without those that limits do not count.
pub(super) fn limited(rows: &[BadRow]) -> Vec<&BadRow> {
    rows.iter().filter(|bad| bad.reason.is_limited()).collect()
}

pub(super) fn refuse_bad_files(all: &[BadFile], allowed: u64) -> Result<()> {
    match all.first() {
        Some(first) if all.len() as u64 > allowed => {
            let example = format!("{}: {}", first.url, first.reason);
            Err(too_many_bad_files(allowed, &example))
        }
        _ => Ok(()),
    }
}

/// Refuses input of which no file can be read, however many files may be passed over.
pub(super) fn refuse_nothing_read(bad: &[BadFile], n_read: u64) -> Result<()> {
    match bad.first() {
        Some(first) if n_read == 0 => {
            let example = format!("{}: {}", first.url, first.reason);
            let reason = format!("none of the files can be read ({}); first: {example}", bad.len());
            let remedy = "fetch them again; max_bad_files passes over some files of a night, not all";
            Err(Fault::new(ErrorKind::BadData, reason).remedy(remedy))
        }
        _ => Ok(()),
    }
}

pub(super) async fn refuse_bad_rows(
    bad: &[&BadRow],
    n_documents: usize,
    allowed: u64,
    urls: &FileUrls,
    documents: &Documents,
) -> Result<()> {
    match bad.first() {
        Some(first) if bad.len() as u64 > allowed => {
            let (said, remedy) = explained(first, urls, documents).await;
            let example = format!("first: {said}");
            Err(too_many_bad_rows(
                bad,
                allowed,
                (first, example, remedy),
                if n_documents == 0 { Seen::NoDocument } else { Seen::All },
                urls,
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the place of a row that is no document and what is wrong with it, and the remedy if one is known.
pub(super) async fn explained(bad: &BadRow, urls: &FileUrls, documents: &Documents) -> (String, Option<String>) {
    let place = place_of(bad, urls);
    match documents.explain(urls.of_row(bad), bad.row, bad.reason).await {
        Some(RowFault { what, remedy }) => (format!("{place}: {what}"), Some(remedy)),
        None => (place, None),
    }
}

/// Returns the place of a row that is no document, and the reason.
fn place_of(bad: &BadRow, urls: &FileUrls) -> String {
    let place = row_place(urls.of_row(bad), bad.row);
    format!("{place}: {}", bad.reason.name())
}

/// The number of rows that an error about bad rows lists.
const LISTED_BAD_ROWS: usize = 10;

/// What was read when there were too many bad rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Reading stopped, and there may be more.
    Part,
    /// All rows, and some are documents.
    All,
    /// All rows, and none is a document.
    NoDocument,
}

pub(super) fn too_many_bad_rows(
    bad: &[&BadRow],
    allowed: u64,
    (explained, example, mending): (&BadRow, String, Option<String>),
    seen: Seen,
    urls: &FileUrls,
) -> Fault {
    let has = |reason| bad.iter().any(|bad| bad.reason == reason);
    let (is_cut_off, is_broken) = (has(BadReason::CutOff), has(BadReason::BrokenRecord));
    let remedy = if is_cut_off {
        "the file was cut off, fetch it again"
    } else if is_broken {
        "the file is damaged, fetch it again"
    } else {
        mending.as_deref().unwrap_or("mend the rows")
    };
    let remedy = format!("{remedy}, or raise max_bad_rows to quarantine them");
    let is_damage = is_cut_off || is_broken || seen == Seen::NoDocument;
    let examples = bad.iter().take(LISTED_BAD_ROWS).map(|bad| place_of(bad, urls)).collect();
    let (n, by_reason) = (bad.len() as u64, by_reason(bad));
    let named: Vec<String> = by_reason.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    let reasons = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
    let reason = format!("{} cannot be used, {allowed} allowed{reasons}; {example}", counted(n, "row"));
    let (is_stopped, explained) = (seen == Seen::Part, (explained.row, explained.reason));
    let matter = TooManyBadRows { n, is_stopped, by_reason, examples, explained, is_damage };
    Fault::new(ErrorKind::BadData, reason).remedy(remedy).about(matter)
}

pub(super) fn by_reason(bad: &[&BadRow]) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for bad in bad {
        *counted.entry(bad.reason.name().to_owned()).or_default() += 1;
    }
    counted
}
