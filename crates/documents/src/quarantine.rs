//! Rows and files that are not documents: why they are set aside, and how many of them are allowed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The treatment of input that cannot be used. Up to these limits, rows and files are set aside; beyond them, the command
/// fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputPolicy {
    /// The number of rows that may fail to be documents.
    pub max_bad_rows: u64,
    /// The number of files that may be unreadable.
    pub max_bad_files: u64,
    /// The size in bytes above which a text makes its row no document.
    pub max_doc_bytes: u64,
    /// The treatment of rows whose id an earlier row has.
    pub on_duplicate_id: DuplicateIds,
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
            max_doc_bytes: 64 << 20,
            on_duplicate_id: DuplicateIds::Fail,
            allow_empty: false,
            require_marker: None,
        }
    }
}

/// The treatment of rows whose id an earlier row of the night has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DuplicateIds {
    /// The command fails.
    #[default]
    Fail,
    /// The first row, in the order of file paths and rows, is the document. The other rows are set aside.
    KeepFirst,
}

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
    /// An earlier row has this id.
    RepeatedId,
    /// The record of a WARC file is damaged.
    BrokenRecord,
    /// The body of a response is damaged or cut off, and its record does not say that it is truncated.
    BrokenBody,
    /// The WARC file ends within the record.
    CutOff,
}

impl BadReason {
    /// All reasons, in order.
    pub const ALL: [Self; 9] = [
        Self::NullId,
        Self::InvalidUtf8,
        Self::NotJson,
        Self::WrongType,
        Self::TooLarge,
        Self::RepeatedId,
        Self::BrokenRecord,
        Self::BrokenBody,
        Self::CutOff,
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
        }
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
