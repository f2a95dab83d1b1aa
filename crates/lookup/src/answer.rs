//! The answer of a lookup.

use nearprint_parquet::schema::{DROP, KEEP, SKIP};
use schemars::JsonSchema;
use serde::Serialize;

/// The documents of a store that match a query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Answer {
    /// The fingerprint of the query in hex, or `None` if the query is a text that has none.
    pub fingerprint: Option<String>,
    /// True if the query is a text below the floor of features. Such a text matches equal texts only.
    pub short: bool,
    /// The reason why the query has no fingerprint: `too_short` or `empty`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The document of the store that is the query, if it is one. It is no match of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<StoredDocument>,
    /// The number of matches, including those that are not listed.
    pub n_matches: u64,
    /// The matches by (distance, sketch distance, night, id), as many as the options allow.
    pub matches: Vec<Match>,
    /// The pages and bytes that were read for the answer; `None` if it was looked up together with others.
    #[serde(flatten)]
    pub read: Option<ReadForAnswer>,
}

/// A document of the store in its newest state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoredDocument {
    /// The id.
    pub id: String,
    /// The newest night that has it.
    pub dt: String,
    /// The decision of that night about it.
    pub decision: Decision,
    /// The document that represents it, if it was dropped.
    pub canonical_id: Option<String>,
    /// The reference store that has that document, as the job names it; `None` if it is the document's own store.
    pub reference: Option<String>,
}

/// The pages and bytes that were read for an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReadForAnswer {
    /// The number of pages of fingerprints, places and sketches in which the answer was looked up.
    pub pages_read: u64,
    /// The bytes that were read, without those that stayed in memory from earlier queries.
    pub bytes_read: u64,
}

/// A document that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Match {
    /// The document.
    pub id: String,
    /// Its night.
    pub dt: String,
    /// The Hamming distance of the fingerprints; 0 between equal short texts.
    pub distance: u32,
    /// The distance of the sketches, or `None` if one of them is missing.
    pub sketch_distance: Option<u32>,
    /// The decision of its night about the document.
    pub decision: Decision,
    /// The document that represents it, if it was dropped.
    pub canonical_id: Option<String>,
    /// The reference store that has that document, as the job names it; `None` if it is the document's own store.
    pub reference: Option<String>,
    /// True if the normalised texts are equal, by their hashes. A query without a text has no hash.
    pub exact: bool,
}

/// The decision of a night about a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The document was kept.
    Keep,
    /// Another document represents it.
    Drop,
    /// It has no text. No match is such a document.
    Skip,
}

impl Decision {
    /// Returns the word that tables and summaries use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => KEEP,
            Self::Drop => DROP,
            Self::Skip => SKIP,
        }
    }
}

/// The state of a store that a lookup answers from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct State {
    /// The store.
    pub store: String,
    /// The number of the commit.
    pub commit: u64,
    /// The number of nights.
    pub n_nights: u64,
    /// The number of documents with a fingerprint that no later night has again.
    pub n_live_rows: u64,
    /// The number of documents with a fingerprint in nights that an index covers.
    pub n_indexed_rows: u64,
    /// The number of documents with a fingerprint in the other nights, which are scanned.
    pub n_scanned_rows: u64,
    /// The number of documents below the feature floor.
    pub n_short: u64,
}
