//! The tests of this crate, in one binary: linking takes longer than compiling them.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod messages;
mod parts;
mod progress;
mod spans;
mod support;
mod undecided;
mod words;
