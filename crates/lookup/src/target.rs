//! The target of a query.

use nearprint_fault::Result;
use nearprint_fingerprint::Sketch;
use nearprint_profile::Outcome;

use crate::error::bad_query;
use crate::nights::TextHash;
use crate::query::{LookupProfile, Query};

/// The rows that a query looks for.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// Documents with a near fingerprint.
    Near(Fingerprinted),
    /// Short documents with the same normalised text.
    Same(TextHash),
    /// Nothing: its text is empty.
    Nothing,
}

/// A fingerprint, and what is known of its text.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprinted {
    pub fingerprint: u64,
    pub sketch: Option<Sketch>,
    pub text_hash: Option<TextHash>,
}

impl Target {
    /// Returns what a query looks for.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the fingerprint has more bits than the profile's.
    pub fn of(profile: &LookupProfile, query: &Query) -> Result<Self> {
        Ok(match query {
            Query::Fingerprint { fingerprint, sketch } => {
                refuse_too_wide(profile.config().bits, *fingerprint)?;
                Self::Near(Fingerprinted { fingerprint: *fingerprint, sketch: *sketch, text_hash: None })
            }
            Query::Text(text) => match profile.outcome(text) {
                Outcome::Empty => Self::Nothing,
                Outcome::TooShort { text_hash } => Self::Same(text_hash),
                Outcome::Fingerprinted { fingerprint, sketch, text_hash, .. } => {
                    Self::Near(Fingerprinted { fingerprint, sketch, text_hash: Some(text_hash) })
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
