//! Trials of the real `nearprint` command: faults, kills, races, bad input, loads. Each trial is a row of a matrix in docs/reliability.md.
#![allow(missing_docs, reason = "a test tool")]

pub mod row;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;

pub mod bad_input;
pub mod bombs;
pub mod craft;
pub mod folder;
pub mod measured;
pub mod mutants;
