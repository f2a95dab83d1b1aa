//! The tests of this crate, in one binary: linking takes longer than compiling them.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod agreement;
mod guard_agrees;
mod random;
mod sketch_column;
mod sorted_copy;
