//! One document's answer: which documents of a store are near a text or a fingerprint? The answer is exact: it has every
//! document within the limits, and no other.
//!
//! A [`Lookup`] holds the state of a store at one commit. Documents that a later night has again, and documents of
//! nights that were replaced, dropped or forgotten, never show.

mod answer;
mod counts;
mod documents;
mod error;
mod lookup;
mod near;
mod nights;
mod query;

pub use answer::{Answer, Decision, Match, State};
pub use error::{LookupError, Result};
pub use lookup::Lookup;
pub use query::{LookupOptions, LookupProfile, Query, parse_sketch};
