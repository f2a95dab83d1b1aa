//! Rows and files that are not documents: why they are set aside, and how many of them are allowed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keep_key::KeepKey;

/// The treatment of input that cannot be used. Up to these limits, rows and files are set aside; beyond them, the command
/// fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputPolicy {
    /// The number of rows that may fail to be documents.
    pub max_bad_rows: u64,
    /// The number of files that may be unreadable.
    pub max_bad_files: u64,
    /// The number of files that may be passed over although they hold documents by their names, in a format that is not read.
    pub max_ignored_files: u64,
    /// The size in bytes above which a text makes its row no document.
    pub max_doc_bytes: u64,
    /// The rule for rows of one id. `None` means the rule of the format: of an id that only WARC files have, the newest
    /// row stays; any other repeat is an error.
    pub on_duplicate_id: Option<DuplicateIds>,
    /// The largest share of the rows with an id that the rule may leave out, from 0 to 1.
    pub max_repeated_ids: f64,
    /// A place without any files is a night without documents. Otherwise that is an error.
    pub allow_empty: bool,
    /// The name of a file that must be in the folder of the documents, such as `_SUCCESS`. Without that file, the
    /// folder is not complete yet.
    pub require_marker: Option<String>,
}

impl Default for InputPolicy {
    fn default() -> Self {
        Self {
            max_bad_rows: 0,
            max_bad_files: 0,
            max_ignored_files: u64::MAX,
            max_doc_bytes: 64 << 20,
            on_duplicate_id: None,
            max_repeated_ids: MAX_REPEATED_IDS,
            allow_empty: false,
            require_marker: None,
        }
    }
}

/// The largest share of the rows with an id that a rule may leave out, unless the policy has another. Two crawls of one site
/// in a night leave out a half at most; a column that holds no ids leaves out nearly all.
pub const MAX_REPEATED_IDS: f64 = 0.5;

/// The rule for several rows of a night with one id: which of them is the document. The others are set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DuplicateIds {
    /// None: the command fails.
    Fail,
    /// The first row, in the order of file paths and rows.
    KeepFirst,
    /// The last row, in the order of file paths and rows.
    KeepLast,
    /// The newest row, by the time of a WARC record or by the column `newest_by`. A row without a value is the oldest. Of
    /// equally new rows, the first.
    KeepNewest,
    /// The row that comes first in the keep order. Of equal rows, the first.
    KeepBest,
}

/// The rule for rows with one id, and what it needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeats {
    /// The rule. `None` means the rule of the format, as in [`InputPolicy`].
    pub on_duplicate_id: Option<DuplicateIds>,
    /// The largest share of the rows with an id that the rule may leave out, from 0 to 1.
    pub max_repeated_ids: f64,
    /// The keys of the keep order, if the rule is [`DuplicateIds::KeepBest`]. Their columns are among those that are read.
    pub keep: Vec<KeepKey>,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { on_duplicate_id: None, max_repeated_ids: MAX_REPEATED_IDS, keep: Vec::new() }
    }
}

/// Numbers of rows, ascending, by the path or URL of their file.
pub type FileRows = BTreeMap<String, Vec<u64>>;

/// The reason for which a row is not a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadReason {
    /// The row has no id.
    NullId,
    /// A text, an id or a value is not UTF-8, or contains half a surrogate pair.
    InvalidUtf8,
    /// The line is not a JSON object.
    NotJson,
    /// A value does not have the type of its column.
    WrongType,
    /// The text is larger than `max_doc_bytes`; or its line is larger than three times that plus 1 MiB; or an id or a
    /// value of the keep order is larger than 64 KiB.
    TooLarge,
    /// Another row has this id, and the rule for such rows keeps that one. The input is not damaged: limits of bad rows do
    /// not count it.
    RepeatedId,
    /// The record of a WARC file is damaged.
    BrokenRecord,
    /// The body of a response is damaged or cut off, and its record does not say that it is truncated.
    BrokenBody,
    /// The WARC file ends within the record.
    CutOff,
    /// The record of a WARC file says that its page has the text of an earlier record, and nobody knows that text. The input
    /// is not damaged: limits of bad rows do not count it.
    UnknownRevisit,
}

impl BadReason {
    /// All reasons, in order.
    pub const ALL: [Self; 10] = [
        Self::NullId,
        Self::InvalidUtf8,
        Self::NotJson,
        Self::WrongType,
        Self::TooLarge,
        Self::RepeatedId,
        Self::BrokenRecord,
        Self::BrokenBody,
        Self::CutOff,
        Self::UnknownRevisit,
    ];

    /// Returns the name of the reason in datasets and summaries.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NullId => "null_id",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::NotJson => "not_json",
            Self::WrongType => "wrong_type",
            Self::TooLarge => "too_large",
            Self::RepeatedId => "repeated_id",
            Self::BrokenRecord => "broken_record",
            Self::BrokenBody => "broken_body",
            Self::CutOff => "cut_off",
            Self::UnknownRevisit => "unknown_revisit",
        }
    }

    /// Returns whether limits of bad rows count rows of this reason.
    #[must_use]
    pub fn is_limited(self) -> bool {
        !matches!(self, Self::RepeatedId | Self::UnknownRevisit)
    }

    /// Returns a number for columns. It is 0 for `None`.
    pub fn code(reason: Option<Self>) -> u8 {
        (1..).zip(Self::ALL).find(|(_, r)| Some(*r) == reason).map_or(0, |(code, _)| code)
    }

    /// Returns the reason for a number that [`code`](Self::code) returned.
    ///
    /// # Panics
    /// Panics if the number does not come from [`code`](Self::code), which is a defect.
    pub fn of_code(code: u8) -> Option<Self> {
        usize::from(code).checked_sub(1).map(|at| Self::ALL[at])
    }
}

/// A row that is not a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadRow {
    /// The number by which rows of the file are collected: the same order as that of the files.
    pub file: u32,
    /// The number of the row, counted from 1. For a text file it is the line; for a WARC file it is the place of the
    /// record in the file's bytes.
    pub row: u64,
    /// The reason.
    pub reason: BadReason,
    /// The id, if the row has one that can be read.
    pub id: Option<String>,
}

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct BadFile {
    /// The path or URL of the file.
    pub url: String,
    /// The fault of the file.
    pub reason: String,
}
