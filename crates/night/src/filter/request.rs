//! What is asked of `filter`, and what it says.

use nearprint_documents::{FilterOutput, RowCounts, TextFormat, all_nights};
use nearprint_fault::{Fault, Result, key, words};
use nearprint_pipeline::not_published;
use nearprint_storage::{Folder, IfExists, Storage};
use nearprint_store::{Night, Store};
use schemars::JsonSchema;
use serde::Serialize;

use crate::request::check_date;
use crate::texts::TextSource;

/// The name of the empty file that is written last.
pub(super) const SUCCESS: &str = "_SUCCESS";

/// The folder of the ids to take away, below the output. Readers of the documents pass over names that begin so.
pub(super) const REMOVED: &str = "_removed";

/// The folder of the documents that are not written because their input is gone.
pub(super) const GONE: &str = "_gone";

/// The documents to write, and their place.
#[derive(Debug, Clone)]
pub struct FilterRequest {
    /// The nights, and what is taken of them.
    pub selection: Selection,
    /// The store.
    pub store: String,
    /// How the documents are read. Below their place, files keep their paths.
    pub source: TextSource,
    /// The folder to write to. A night's files lie in `dt=<date>` below it.
    pub output: String,
    /// The form of the files that are written.
    pub what: FilterOutput,
    /// The format of the texts that are written in place of files like those of the documents.
    pub texts: Option<TextFormat>,
    /// Says whether files that exist are replaced.
    pub if_exists: IfExists,
}

/// What is taken of which nights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// What each night decided to keep.
    Nights {
        /// The first night.
        dt: String,
        /// The last night. `None` means that there is one night only, which must be published.
        to: Option<String>,
    },
    /// The corpus: of each document its newest state, if that is to be kept.
    Corpus {
        /// The last night. `None` means the newest one.
        to: Option<String>,
        /// Documents are listed and not written if the input files of their night are gone or have changed, or if no night
        /// of the store has a record with their text. Otherwise that is an error.
        allow_gone: bool,
    },
    /// What a night changes in the corpus: the documents to add, and the ids to take away before.
    New {
        /// The night, which must be published.
        dt: String,
        /// Documents of earlier nights that the night restores are listed and not written if the input files of their
        /// night are gone or have changed, or if no night of the store has a record with their text. Otherwise that is an
        /// error.
        allow_gone: bool,
    },
}

/// The summary of the `filter` command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilterSummary {
    /// The folder that was written to.
    pub output: String,
    /// The counts of all nights together.
    #[serde(flatten)]
    pub counts: FilterCounts,
    /// The number of rows that are written though a later one of the nights keeps the same document. It is 0 with
    /// `--corpus` and `--new`.
    pub n_repeated: u64,
    /// `--new`: the number of ids to take away from the corpus, which are in the folder `_removed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_removed: Option<u64>,
    /// `--new`, `--allow-gone`: the number of documents that are not written, because the input of their night is gone or has
    /// changed, or no night of the store has a record with their text. They are in the folder `_gone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_gone: Option<u64>,
    /// `--new`: the night before it. What is taken away and added follows on the corpus after that night.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// `--new`: the date before which the store has forgotten all nights. Documents that only those had are not in the
    /// corpus any more, and are not among the ids to take away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgotten_before: Option<String>,
    /// The nights of which files were read, by date.
    pub nights: Vec<FilteredNight>,
}

/// A night that was filtered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilteredNight {
    /// The night.
    pub dt: String,
    /// The digest of the generation whose decisions were read.
    pub generation: String,
    /// The folder of the night's files.
    pub output: String,
    /// True if nights before it were added, replaced or dropped after it was decided.
    pub stale: bool,
    /// The counts of the night.
    #[serde(flatten)]
    pub counts: FilterCounts,
}

/// The counts of a night or of all nights: rows by what became of them, files and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilterCounts {
    /// The rows of the files that were read.
    #[serde(flatten)]
    pub rows: RowCounts,
    /// The number of files that were read.
    pub n_files: u64,
    /// The number of files that the run passed over because they cannot be read. They are not in the output.
    pub n_bad_files: u64,
    /// The bytes of the files that were read.
    pub bytes_read: u64,
    /// The bytes of the files that were written.
    pub bytes_written: u64,
}

impl FilterCounts {
    pub(super) fn add(&mut self, more: Self) {
        self.rows += more.rows;
        self.n_files += more.n_files;
        self.n_bad_files += more.n_bad_files;
        self.bytes_read += more.bytes_read;
        self.bytes_written += more.bytes_written;
    }
}

impl Selection {
    pub(super) fn check(&self) -> Result<()> {
        let check_to = |to| check_date("to", to);
        match self {
            Self::Nights { dt, to } => {
                check_date("dt", dt)?;
                to.as_deref().map_or(Ok(()), check_to)
            }
            Self::Corpus { to, .. } => to.as_deref().map_or(Ok(()), check_to),
            Self::New { dt, .. } => check_date("dt", dt),
        }
    }

    /// Returns whether documents whose texts are gone are listed. Otherwise they are an error.
    pub(super) fn allows_gone(&self) -> bool {
        matches!(self, Self::Corpus { allow_gone: true, .. } | Self::New { allow_gone: true, .. })
    }

    pub(super) fn is_of_nights(&self) -> bool {
        matches!(self, Self::Nights { .. })
    }

    pub(super) fn previous(&self, nights: &[&Night]) -> Option<String> {
        let before = nights.len().checked_sub(2).and_then(|before| nights.get(before));
        before.filter(|_| matches!(self, Self::New { .. })).map(|night| night.dt.clone())
    }

    pub(super) fn forgotten_before(&self, store: &Store) -> Option<String> {
        store.forgotten().filter(|_| matches!(self, Self::New { .. })).map(|forgotten| forgotten.before.clone())
    }

    /// Returns the nights that take part, by date.
    pub(super) fn nights<'a>(&self, store: &'a Store) -> Result<Vec<&'a Night>> {
        let (first, last) = match self {
            Self::Nights { dt, to } => (Some(dt), Some(to.as_ref().unwrap_or(dt))),
            Self::Corpus { to, .. } => (None, to.as_ref()),
            Self::New { dt, .. } => (None, Some(dt)),
        };
        if let (Some(first), Some(last)) = (first, last)
            && last < first
        {
            let reason = words![
                key("to"),
                format!(" {last} is before "),
                key("dt"),
                format!(" {first}: write the earlier night first")
            ];
            return Err(Fault::usage(reason));
        }
        let is_wanted =
            |night: &&Night| first.is_none_or(|first| *first <= night.dt) && last.is_none_or(|last| night.dt <= *last);
        let mut found: Vec<&Night> = store.nights().iter().filter(is_wanted).collect();
        found.sort_by(|a, b| a.dt.cmp(&b.dt));
        let is_there = match self {
            Self::New { dt, .. } => found.last().is_some_and(|night| night.dt == *dt),
            _ => !found.is_empty(),
        };
        if is_there { Ok(found) } else { Err(not_published(store, &self.dates())) }
    }

    fn dates(&self) -> String {
        match self {
            Self::Nights { dt, to: Some(to) } => format!("{dt} to {to}"),
            Self::Corpus { to: Some(to), .. } => format!("up to {to}"),
            Self::Corpus { to: None, .. } => "of any date".to_owned(),
            Self::Nights { dt, to: None } | Self::New { dt, .. } => dt.clone(),
        }
    }
}

impl FilterRequest {
    /// Refuses an output that lies in the store, among the results or among the documents, or in which one of these
    /// lies.
    pub(super) fn refuse_overlaps(&self, storage: &Storage, store: &Store, output: &Folder) -> Result<()> {
        output.refuse_file_in_its_way()?;
        let refused = |what: &str, url: &str| {
            let reason = words![
                key("output"),
                format!(
                    " {} and {what} {} lie in one another: name an output of its own",
                    nearprint_storage::redact(&self.output),
                    nearprint_storage::redact(url)
                )
            ];
            Err(Fault::usage(reason))
        };
        if output.overlaps(store.folder()) {
            return refused("the store", &self.store);
        }
        for night in store.nights() {
            let results = night.output_root();
            if output.overlaps(&storage.folder(results)?) {
                return refused("the results", results);
            }
        }
        if let Some(documents) = &self.source.documents {
            let documents = all_nights(documents);
            if storage.reaches(&documents, output)? || output.contains(&storage.base_of(&documents)?) {
                return refused("the documents", &documents);
            }
        }
        Ok(())
    }
}
