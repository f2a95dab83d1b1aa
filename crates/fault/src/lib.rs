//! The error of all crates that read or write. A [`Fault`] says what kind of error it is, where it is, which setting it is
//! about, what is wrong and what to do, each in a field of its own. [`Words`] keep the names of settings apart from the text
//! around them, so that whoever shows a message decides how a setting is written: a library shows the key, a command its
//! flag. No message is ever read back.
//!
//! ```
//! use nearprint_fault::{ErrorKind, Fault, key, words};
//!
//! let remedy = words!["raise ", key("memory_limit")];
//! let fault = Fault::new(ErrorKind::LocalIo, "4 GiB are needed for the queries").remedy(remedy);
//! assert_eq!(fault.to_string(), "4 GiB are needed for the queries: raise `memory_limit`");
//! assert_eq!(fault.keys().collect::<Vec<_>>(), ["memory_limit"]);
//! let flags = |key: &str| Some(format!("--{}", key.replace('_', "-")));
//! assert_eq!(fault.words().named(flags), "4 GiB are needed for the queries: raise --memory-limit");
//! ```

/// Makes [`Words`] of texts, [keys](key()), [parts](Part) and other words.
#[macro_export]
macro_rules! words {
    ($($part:expr),* $(,)?) => {{
        let mut words = $crate::Words::default();
        $(words.extend($crate::Words::from($part));)*
        words
    }};
}

mod fault;
mod kind;
mod numbers;
mod said;
mod words;

pub use fault::{Fault, MissingInput, Place, Result};
pub use kind::ErrorKind;
pub use numbers::{and_more, counted, grouped, in_bytes, percent};
pub use said::{foreign, one_line, quoted};
pub use words::{Part, Words, key};
