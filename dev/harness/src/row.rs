//! A row of a result table: one fault, on one kind of store, over some seeds.

use serde::{Deserialize, Serialize};

/// One line of `results.jsonl`; evidence/reliability is made from these lines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// As `F9`, `B3`, `S1`, `L4`, `K-local`, …
    pub id: String,
    /// The trial: what was done to the command.
    pub trial: String,
    /// `local`, `rgw`, `moto` or empty.
    pub backend: String,
    /// Seeds, points or rounds that ran; 0 where the trial was skipped.
    pub runs: u64,
    /// Runs that did what is required.
    pub passed: u64,
    /// The requirement.
    pub required: String,
    /// The observation: exit codes, figures, the first failure.
    pub observed: String,
}

impl Row {
    pub fn new(id: &str, trial: &str, backend: &str, required: &str) -> Self {
        Self {
            id: id.to_owned(),
            trial: trial.to_owned(),
            backend: backend.to_owned(),
            runs: 0,
            passed: 0,
            required: required.to_owned(),
            observed: String::new(),
        }
    }

    /// A trial that did not run is not green.
    pub fn is_green(&self) -> bool {
        self.runs > 0 && self.passed == self.runs
    }
}

/// Counts the runs of a row, and what was seen in them.
#[derive(Debug, Clone)]
pub struct Tally {
    row: Row,
    seen: Vec<(String, u64)>,
    /// Kinds of failures: how they end, how many, the first.
    failures: Vec<(String, u64, String)>,
}

impl Tally {
    pub fn new(id: &str, trial: &str, backend: &str, required: &str) -> Self {
        Self { row: Row::new(id, trial, backend, required), seen: Vec::new(), failures: Vec::new() }
    }

    /// One run: what was seen in short (equal ones are counted together), or why it is not what is required.
    pub fn add<E: std::fmt::Display>(&mut self, seen: Result<String, E>) {
        self.row.runs += 1;
        match seen {
            Ok(seen) => {
                self.row.passed += 1;
                match self.seen.iter_mut().find(|(known, _)| *known == seen) {
                    Some((_, n)) => *n += 1,
                    None => self.seen.push((seen, 1)),
                }
            }
            Err(error) => {
                let error = error.to_string();
                let kind: String = error.rsplit(": ").next().unwrap_or_default().chars().take(30).collect();
                match self.failures.iter_mut().find(|(known, ..)| *known == kind) {
                    Some((_, n, _)) => *n += 1,
                    None => self.failures.push((kind, 1, error)),
                }
            }
        }
    }

    pub fn row(mut self) -> Row {
        self.seen.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut parts: Vec<String> = self.seen.iter().take(4).map(|(seen, n)| format!("{n} × {seen}")).collect();
        if self.seen.len() > 4 {
            parts.push(format!("{} other outcomes", self.seen.len() - 4));
        }
        self.failures.sort_by_key(|(_, n, _)| std::cmp::Reverse(*n));
        parts.extend(self.failures.iter().take(3).map(|(_, n, first)| format!("{n} FAILED, such as: {first}")));
        self.row.observed = parts.join("; ");
        self.row
    }

    /// A trial that cannot run here.
    pub fn skipped(mut self, why: &str) -> Row {
        self.row.observed = format!("skipped: {why}");
        self.row
    }
}
