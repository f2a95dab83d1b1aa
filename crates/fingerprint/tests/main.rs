//! The tests of this crate, in one binary: linking takes longer than compiling them.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod feature_hash;
mod golden;
mod judge;
mod laws;
mod peers;
mod texts;
