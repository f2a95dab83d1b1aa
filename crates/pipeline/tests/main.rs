//! The tests of this crate, in one binary: linking takes longer than compiling them.
#![allow(clippy::cast_possible_truncation, clippy::panic, clippy::print_stdout, clippy::unwrap_used, reason = "tests")]

mod cluster_plan;
mod damaged_input;
#[path = "../../parquet/tests/random/mod.rs"]
mod random;
