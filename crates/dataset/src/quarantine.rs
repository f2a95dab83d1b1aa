//! What is no document: which rows and files are set aside, how many may be, and why.

use serde::{Deserialize, Serialize};

/// Which rows and files are set aside instead of failing the run, and how many may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputPolicy {
    /// Rows that are no documents, at most.
    pub max_bad_rows: u64,
    /// Files that cannot be read, at most.
    pub max_bad_files: u64,
    /// Bytes of a text; a larger one makes its row no document.
    pub max_doc_bytes: u64,
    /// What becomes of rows whose id an earlier row has.
    pub on_duplicate_id: DuplicateIds,
    /// Whether no file at all is a night without documents rather than an error.
    pub allow_empty: bool,
    /// A file that must stand in the documents' folder, such as `_SUCCESS`: without it the folder is not complete yet.
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

/// What becomes of rows whose id an earlier row of the night has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DuplicateIds {
    /// The run fails.
    #[default]
    Fail,
    /// The first row in the order of file paths and rows is the document; the others are none.
    KeepFirst,
}

/// Why a row is no document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadReason {
    /// It has no id.
    NullId,
    /// Bytes that are no UTF-8 stand where text should, or half a surrogate pair.
    InvalidUtf8,
    /// The line is no JSON object.
    NotJson,
    /// A value is of another type than its column.
    WrongType,
    /// The text is larger than `max_doc_bytes`, its line than three times that, or an id or value of the keep order than
    /// 64 KiB.
    TooLarge,
    /// An earlier row has this id.
    RepeatedId,
}

impl BadReason {
    /// All, in order.
    pub const ALL: [Self; 6] =
        [Self::NullId, Self::InvalidUtf8, Self::NotJson, Self::WrongType, Self::TooLarge, Self::RepeatedId];

    /// As datasets and summaries name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NullId => "null_id",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::NotJson => "not_json",
            Self::WrongType => "wrong_type",
            Self::TooLarge => "too_large",
            Self::RepeatedId => "repeated_id",
        }
    }

    /// A number for columns; 0 stands for none.
    pub fn code(reason: Option<Self>) -> u8 {
        (1..).zip(Self::ALL).find(|(_, r)| Some(*r) == reason).map_or(0, |(code, _)| code)
    }

    /// The reason with a number that [`code`](Self::code) gave; another number is a defect, and a panic.
    pub fn of_code(code: u8) -> Option<Self> {
        usize::from(code).checked_sub(1).map(|at| Self::ALL[at])
    }
}

/// A row that is no document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadRow {
    /// Position of the file among the night's files.
    pub file: u32,
    /// Row from 1, or line.
    pub row: u64,
    /// What is wrong with it.
    pub reason: BadReason,
    /// Its id, as far as it has one.
    pub id: Option<String>,
}

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BadFile {
    /// Its path or URL.
    pub url: String,
    /// What is wrong with it.
    pub reason: String,
}
