//! The tests of this crate, in one binary: linking takes longer than compiling them.
#![allow(clippy::cast_possible_truncation, clippy::panic, clippy::print_stderr, clippy::unwrap_used, reason = "tests")]

mod bodies;
mod mutations;
mod records;
mod samples;
