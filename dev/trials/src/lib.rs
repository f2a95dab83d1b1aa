//! Trials of the real `nearprint` command: faults, kills, races, bad input, loads. Each trial is a row of a matrix in docs/reliability.md.
#![allow(missing_docs, reason = "a test tool")]

pub mod bad_input;
pub mod bombs;
pub mod canary;
pub mod craft;
pub mod faults;
pub mod flips;
pub mod kills;
pub mod loads;
pub mod mutants;
pub mod nights;
pub mod races;
pub mod security;
pub mod sequences;
pub mod serving;
pub mod table;
pub mod undisturbed;
pub mod web_pages;
