//! The target of a query.

use std::collections::HashMap;

use nearprint_fault::Result;
use nearprint_fingerprint::Sketch;
use nearprint_profile::Outcome;

use crate::error::{bad_query, unknown_document};
use crate::near::Near;
use crate::nights::TextHash;
use crate::query::{LookupProfile, Query};

/// The rows that a query looks for.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// Documents with a near fingerprint.
    Near(Fingerprinted),
    /// Short documents with the same normalised text.
    Same {
        /// The hash of the text.
        text_hash: TextHash,
        /// The document that is the query, if it is one of the store.
        itself: Option<Itself>,
    },
    /// Nothing: its text is empty.
    Nothing,
}

/// A fingerprint, and what is known of its text.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprinted {
    pub fingerprint: u64,
    pub sketch: Option<Sketch>,
    pub text_hash: Option<TextHash>,
    /// The document that is the query, if it is one of the store.
    pub itself: Option<Itself>,
}

/// The row of a document that is itself the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Itself {
    /// The position of the night.
    pub night: usize,
    /// The row of its fingerprints, or of its short texts.
    pub row: u32,
}

impl Fingerprinted {
    /// Returns whether a row is that of the query itself.
    pub fn is_itself(&self, near: &Near) -> bool {
        self.itself == Some(Itself { night: near.night, row: near.row })
    }
}

impl Target {
    /// Returns what a query looks for. `stored` has the documents that are queries, as far as the store has them.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the fingerprint has more bits than the profile's;
    /// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the store does not have the document.
    pub fn of(profile: &LookupProfile, query: &Query, stored: &HashMap<String, Self>) -> Result<Self> {
        Ok(match query {
            Query::Document(id) => *stored.get(id).ok_or_else(|| unknown_document(id))?,
            Query::Fingerprint { fingerprint, sketch } => {
                refuse_too_wide(profile.config().bits, *fingerprint)?;
                Self::Near(Fingerprinted { fingerprint: *fingerprint, sketch: *sketch, text_hash: None, itself: None })
            }
            Query::Text(text) => match profile.outcome(text) {
                Outcome::Empty => Self::Nothing,
                Outcome::TooShort { text_hash } => Self::Same { text_hash, itself: None },
                Outcome::Fingerprinted { fingerprint, sketch, text_hash, .. } => {
                    Self::Near(Fingerprinted { fingerprint, sketch, text_hash: Some(text_hash), itself: None })
                }
            },
        })
    }
}

fn refuse_too_wide(bits: u32, fingerprint: u64) -> Result<()> {
    if bits == u64::BITS || fingerprint >> bits == 0 {
        return Ok(());
    }
    let reason = format!("the fingerprints of this profile have {bits} bits");
    Err(bad_query(format!("fingerprint {fingerprint:x}"), reason))
}
