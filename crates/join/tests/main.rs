//! The tests of this crate, in one binary: linking takes longer than compiling them.
#![allow(
    clippy::cast_possible_truncation,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod data;
mod kernels;
mod lookup;
mod lost_share;
mod map_reduce;
mod pairs;
mod rows;
mod seomoz;
mod star_bound;
mod table_plan;
