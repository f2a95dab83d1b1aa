//! One document's answer: which documents of a store are near a text or a fingerprint? The answer is exact: it has every
//! document within the limits, and no other.
//!
//! A [`Lookup`] holds the state of a store at one commit. Documents that a later night has again, and documents of
//! nights that were replaced, dropped or forgotten, never show.

mod answer;
mod answering;
mod batch;
mod budget;
mod counts;
mod documents;
mod error;
mod lookup;
mod matching;
mod near;
mod nearest;
mod nights;
mod query;
mod shared;
mod stored;
mod tables;
mod target;

/// Threads share lookups, and tasks that answer queries move from thread to thread.
const _: () = {
    const fn is_send<T: Send>(_: &T) {}
    const fn of_answer<'a>(lookup: &'a Lookup, query: &'a Query) -> impl FnOnce() {
        move || is_send(&lookup.answer(query))
    }
    let _ = of_answer;
};

pub use answer::{Answer, Decision, Match, ReadForAnswer, State, StoredDocument};
pub use budget::{Taken, Turn, Turns};
pub use error::BadQuestion;
pub use lookup::Lookup;
pub use query::{FingerprintText, JsonQuery, LookupOptions, LookupProfile, Query, WhenJoined, parse_sketch};
pub use shared::SharedLookup;
