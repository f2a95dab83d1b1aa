//! A row of a result table: one fault, on one kind of store, over some seeds.

use serde::{Deserialize, Serialize};

/// One line of `results.jsonl`; docs/reliability.md is made from these lines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// As `F9`, `B3`, `S1`, `L4`, `K-local`, …
    pub id: String,
    /// What was done to the command.
    pub trial: String,
    /// `local`, `rgw`, `moto` or empty.
    pub backend: String,
    /// Seeds, points or rounds that ran.
    pub runs: u64,
    /// Runs that did what is required.
    pub passed: u64,
    /// What is required.
    pub required: String,
    /// What was seen: exit codes, figures, the first failure.
    pub observed: String,
}
