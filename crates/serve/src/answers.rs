//! The questions of a server to the store behind it.

use async_trait::async_trait;
use nearprint_explain::Explanation;
use nearprint_fault::Result;
use nearprint_lookup::{Answer, JsonQuery, State, Taken, Turn};
use serde::Deserialize;

/// One side of a comparison: a text, or a document of the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Side {
    /// The text.
    pub text: Option<String>,
    /// The id of the document, instead of a text.
    pub id: Option<String>,
    /// The night of the document.
    pub dt: Option<String>,
}

/// A store that answers. Many requests use it at the same time.
#[async_trait]
pub trait Answers: Send + Sync + 'static {
    /// Returns the documents near a text or a fingerprint, and the memory that the answer takes, which is taken when its
    /// turn has come.
    async fn answer(&self, asked: JsonQuery, turn: Turn) -> Result<(Answer, Taken)>;

    /// Explains what differs between two sides.
    async fn explain(&self, a: Side, b: Side) -> Result<Explanation>;

    /// Goes on to the newest commit, and returns whether there was a new one. If it fails, the former state stays.
    async fn refresh(&self) -> Result<bool>;

    /// Returns the state that answers come from.
    fn state(&self) -> State;

    /// Returns whether the texts of documents can be read, which comparisons need.
    fn has_texts(&self) -> bool;
}
