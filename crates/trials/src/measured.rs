//! The command under a time limit, with what it said, how it ended, and the most memory that it held.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::Value;
use wait4::Wait4;

use crate::row::Row;
use crate::{Common, Result};

/// What trials of bad input, security, flips and load take.
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
    /// Whether a row is asked for: `B12` asks for `B12-jsonl` too.
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

/// One run of the command.
#[derive(Debug, Clone)]
pub struct Done {
    /// Its exit code; 128 and the signal where one ended it.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub seconds: f64,
    pub peak_rss: u64,
    /// Whether the time limit ended it.
    pub hung: bool,
}

impl Done {
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The summary: the last line of standard output as JSON, else null.
    pub fn summary(&self) -> Value {
        self.out().lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or(Value::Null)
    }

    /// The line that reports a failure.
    pub fn error(&self) -> String {
        let said = self.err();
        said.lines().find(|l| l.starts_with("nearprint: error: ")).unwrap_or_default().to_owned()
    }

    /// Why the run is a defect whatever it was given: a panic, an abort, a fault, a hang.
    pub fn defect(&self) -> Option<String> {
        if self.hung {
            return Some(format!("hung for {:.0} s", self.seconds));
        }
        let panicked = self.err().contains("panicked at");
        (panicked || matches!(self.code, 70 | 101) || self.code > 130 && self.code != 143).then(|| self.brief())
    }

    /// Exit code and the end of what was said.
    pub fn brief(&self) -> String {
        let said = self.err();
        let error = self.error();
        let last = if error.is_empty() { said.lines().last().unwrap_or_default() } else { &error };
        format!("exit {} ({})", self.code, shortened(last.trim_start_matches("nearprint: error: "), 220))
    }
}

/// The first characters of a text.
pub fn shortened(text: &str, n: usize) -> String {
    if text.chars().count() <= n { text.to_owned() } else { text.chars().take(n).chain(['…']).collect() }
}

/// How a command is run.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    pub nearprint: &'a Path,
    pub folder: &'a Path,
    pub env: Vec<(String, String)>,
    pub limit_seconds: u64,
}

impl<'a> Call<'a> {
    pub fn new(nearprint: &'a Path, folder: &'a Path) -> Self {
        Self { nearprint, folder, env: Vec::new(), limit_seconds: 60 }
    }

    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit_seconds = seconds;
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it to its end. The most memory includes that of `timeout`, which is next to nothing.
    pub fn run(&self, args: &[&str]) -> Result<Done> {
        forget_own_peak();
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", &self.limit_seconds.to_string()]).arg(self.nearprint).args(args);
        command.envs(self.env.iter().map(|(k, v)| (k, v))).current_dir(self.folder);
        let begun = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr, used) = std::thread::scope(|scope| {
            let out = scope.spawn(|| all_of(out));
            let err = scope.spawn(|| all_of(err));
            let used = child.wait4();
            (out.join().unwrap_or_default(), err.join().unwrap_or_default(), used)
        });
        let used = used?;
        let seconds = begun.elapsed().as_secs_f64();
        let signal = std::os::unix::process::ExitStatusExt::signal(&used.status);
        let code = used.status.code().unwrap_or_else(|| 128 + signal.unwrap_or_default());
        let limit = std::time::Duration::from_secs(self.limit_seconds).as_secs_f64();
        let hung = code == 137 && seconds >= limit;
        Ok(Done { code, stdout, stderr, seconds, peak_rss: used.rusage.maxrss, hung })
    }
}

fn all_of(pipe: Option<impl Read>) -> Vec<u8> {
    let mut all = Vec::new();
    if let Some(mut pipe) = pipe {
        // What a killed child left unsaid is no failure of the trial.
        let _ = pipe.read_to_end(&mut all);
    }
    all
}

/// A child inherits the peak of the process that starts it, so this process forgets its own first.
fn forget_own_peak() {
    if let Ok(mut file) = File::options().write(true).open("/proc/self/clear_refs") {
        let _ = std::io::Write::write_all(&mut file, b"5");
    }
}

/// Checks of one row: each has a name, and the first that fail are told with it.
#[derive(Debug)]
pub struct Checks {
    row: Row,
    failures: Vec<String>,
    notes: Vec<String>,
}

impl Checks {
    pub fn new(id: &str, trial: impl Into<String>, required: impl Into<String>) -> Self {
        let row = Row {
            id: id.to_owned(),
            trial: trial.into(),
            backend: "local".to_owned(),
            runs: 0,
            passed: 0,
            required: required.into(),
            observed: String::new(),
        };
        Self { row, failures: Vec::new(), notes: Vec::new() }
    }

    pub fn backend(mut self, backend: &str) -> Self {
        backend.clone_into(&mut self.row.backend);
        self
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
