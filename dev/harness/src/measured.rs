//! Trials of single runs: their options, and rows that count named checks.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::row::Row;
use crate::{Common, Result};

/// The options of trials of bad input, security, flips and load.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Runs at a time of the trials that have thousands
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub jobs: usize,
    /// Part of the runs and sizes, such as 0.05
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Seed of what is drawn at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl Options {
    /// Returns whether a row is asked for: `B12` asks for `B12-jsonl` too.
    pub fn wants(&self, id: &str) -> bool {
        self.common.wants(id) || id.split_once('-').is_some_and(|(matrix_row, _)| self.common.wants(matrix_row))
    }

    /// The binary, from wherever it is run.
    pub fn nearprint(&self) -> Result<PathBuf> {
        let path = &self.common.nearprint;
        Ok(std::fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?)
    }

    /// A number of runs or a size at the scale asked for, at least 1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a scale")]
    pub fn scaled(&self, n: u64) -> u64 {
        ((n as f64 * self.scale) as u64).clamp(1, n.max(1))
    }

    /// A scratch folder that goes with the value.
    pub fn scratch(&self) -> Result<tempfile::TempDir> {
        self.common.scratch()
    }
}

/// The first characters of a text.
pub fn shortened(text: &str, n: usize) -> String {
    if text.chars().count() <= n { text.to_owned() } else { text.chars().take(n).chain(['…']).collect() }
}

/// Checks of one row: each has a name, and the first that fail are told with it.
#[derive(Debug)]
pub struct Checks {
    row: Row,
    failures: Vec<String>,
    notes: Vec<String>,
}

impl Checks {
    pub fn new(id: &str, trial: &str, required: &str) -> Self {
        Self { row: Row::new(id, trial, "local", required), failures: Vec::new(), notes: Vec::new() }
    }

    /// Counts one run; `Err` says what was wrong with it.
    pub fn count(&mut self, what: &str, outcome: std::result::Result<(), String>) {
        self.row.runs += 1;
        match outcome {
            Ok(()) => self.row.passed += 1,
            Err(why) => self.failures.push(format!("{what}: {why}")),
        }
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The row; it names the first failures.
    pub fn finish(mut self) -> Row {
        const SHOWN: usize = 4;
        let more = self.failures.len().saturating_sub(SHOWN);
        self.notes.extend(self.failures.into_iter().take(SHOWN).map(|f| format!("FAILED {}", shortened(&f, 400))));
        if more > 0 {
            self.notes.push(format!("and {more} more failures"));
        }
        self.row.observed = self.notes.join("; ");
        self.row
    }
}

/// The row of one trial. A trial that cannot go on has failed.
pub fn row(id: &str, trial: &str, required: &str, run: impl FnOnce(&mut Checks) -> Result<()>) -> Row {
    let mut checks = Checks::new(id, trial, required);
    if let Err(error) = run(&mut checks) {
        checks.count("the trial itself", Err(error.to_string()));
    }
    checks.finish()
}

/// Id, what is done, what is required, and how.
pub type Trial = (&'static str, &'static str, &'static str, fn(&Options, &mut Checks) -> Result<()>);

/// The rows that are asked for.
pub fn rows(options: &Options, trials: &[Trial]) -> Vec<Row> {
    let wanted = trials.iter().filter(|t| options.wants(t.0));
    wanted.map(|(id, trial, required, run)| row(id, trial, required, |checks| run(options, checks))).collect()
}

/// Does `work` for each number below `n` on some threads, and gives the results in order.
pub fn on_threads<T: Send>(threads: usize, n: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T>)>> = Mutex::new(Vec::with_capacity(n));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, n.max(1)) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        break;
                    }
                    let result = work(i);
                    if let Ok(mut done) = done.lock() {
                        done.push((i, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().map_err(|_| "a trial's thread panicked")?;
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Whole mebibytes.
pub fn mib(bytes: u64) -> u64 {
    bytes >> 20
}
