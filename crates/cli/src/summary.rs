//! The output of a command at its end: text for people, or one JSON line for programs. One value gives both.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nearprint_storage::{IfExists, LocalFile};
use serde_json::{Map, Value};

use crate::beside::Beside;
use crate::exit_code::{BUG, Failure, LOCAL_IO, Spent, USAGE};
use crate::hint;
use crate::invocation::Invocation;
use crate::refused_arguments::RefusedArguments;

/// The version of the summaries. It is raised when a field changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// The outcome of a command.
#[derive(Debug)]
pub struct Report {
    /// The lines for people.
    pub text: String,
    /// The JSON summary.
    pub json: Value,
    pub exit_code: u8,
    /// The command that the user may run next.
    pub next: Option<String>,
    /// The failure of a step after the work itself was done.
    pub failure: Option<Failure>,
}

impl Report {
    /// Makes a report from `text` for people and `value` for programs. The schema version, the command, the status and
    /// what was spent are added to `value`.
    pub fn new(command: &str, status: &str, value: &impl serde::Serialize, spent: Spent, text: String) -> Self {
        let mut json = Map::new();
        json.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
        json.insert("command".to_owned(), command.into());
        json.insert("status".to_owned(), status.into());
        let mut defect = None;
        match serde_json::to_value(value) {
            Ok(Value::Object(fields)) => json.extend(fields),
            other => defect = Some(format!("internal error: a summary of {other:?}: please report it")),
        }
        add_spent(&mut json, &spent);
        let report = Self { text, json: Value::Object(json), exit_code: 0, next: None, failure: None };
        match defect {
            Some(what) => report.but(Failure::new(BUG, what)),
            None => report,
        }
    }

    /// Returns the same report with the hint that `hinted` gives to its failure, if it has one.
    pub fn hinted(mut self, hinted: impl FnOnce(Failure) -> Failure) -> Self {
        self.failure = self.failure.map(hinted);
        if let Some(hint) = self.failure.as_ref().and_then(Failure::hint) {
            self.json["hint"] = hint.into();
        }
        self
    }

    /// Returns the same report with the command that the user may run next.
    pub fn then(mut self, next: Option<String>) -> Self {
        if let Some(next) = &next {
            self.json["next"] = next.as_str().into();
        }
        Self { next, ..self }
    }

    /// Returns the same report, marked as that of a command that failed in the end.
    pub fn but(mut self, failure: Failure) -> Self {
        self.exit_code = failure.code;
        self.json["status"] = "failed".into();
        self.json["exit_code"] = failure.code.into();
        self.json["error"] = failure.message.as_str().into();
        Self { failure: Some(failure), ..self }
    }
}

/// Adds what a command spent to its summary.
fn add_spent(json: &mut Map<String, Value>, spent: &Spent) {
    // A command does not take the 584 million years of 2^64 milliseconds.
    let milliseconds = |time: &Duration| Value::from(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    json.insert("elapsed_ms".to_owned(), milliseconds(&spent.elapsed));
    if let Some(bytes) = peak_rss_bytes() {
        json.insert("peak_rss_bytes".to_owned(), bytes.into());
    }
    if let Some(requests) = &spent.requests {
        json.insert("requests".to_owned(), serde_json::json!(requests));
    }
    if !spent.stages.is_empty() {
        let stages: Map<_, _> =
            spent.stages.iter().map(|(name, time)| ((*name).to_owned(), milliseconds(time))).collect();
        json.insert("stage_ms".to_owned(), stages.into());
    }
}

/// Returns the peak memory of the process. It is `None` if the system does not report it the way Linux does.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<u64>().ok()? * 1024)
}

/// Prints the report. If the reader has gone away, that is no failure, and the exit code stays as it is. Any other
/// failure to write is reported, and the exit code is 74.
pub fn print(report: &Report, json: bool) -> u8 {
    if let Some(failure) = &report.failure {
        failure.say();
    }
    let next = report.next.as_ref().map(|next| format!("\nNext: {next}\n")).unwrap_or_default();
    let text = if json { json_line(&report.json) } else { report.text.clone() + &next };
    match write(&text) {
        Ok(()) => report.exit_code,
        Err(error) => print_failure(&Failure::new(LOCAL_IO, format!("standard output: {error}")), false, None),
    }
}

/// Returns one line of JSON with its line break.
pub fn json_line(json: &Value) -> String {
    without_controls(&json.to_string()) + "\n"
}

/// Writes to standard output. If the reader has gone away, that is no error.
pub fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Writes a line of an answer to standard output at once. Returns `false` if the reader has gone away.
pub fn write_line(line: &str) -> std::io::Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true),
    }
}

/// Escapes the control characters that JSON leaves as they are. A terminal obeys some of U+007F to U+009F. These
/// characters can occur only inside strings.
fn without_controls(json: &str) -> String {
    let escaped = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    if json.contains(char::is_control) { json.chars().map(escaped).collect() } else { json.to_owned() }
}

/// Prints the failure as one line on standard error. With `json`, the summary follows on standard output, so that it is
/// the last line of the two streams together. If neither stream can be written to, only the exit code reports the
/// failure.
pub fn print_failure(failure: &Failure, json: bool, asked: Option<&Invocation>) -> u8 {
    failure.say();
    if json {
        let _ = write(&json_line(&of_failure(failure, asked)));
    }
    failure.code
}

/// Returns the summary of a command that failed.
pub fn of_failure(failure: &Failure, asked: Option<&Invocation>) -> Value {
    let mut summary = serde_json::json!({
        "schema_version": SCHEMA_VERSION,
        "status": "failed",
        "exit_code": failure.code,
        "error": failure.line(),
    });
    if let Some(Invocation { command, dt }) = asked {
        summary["command"] = command.as_str().into();
        if let Some(dt) = dt {
            summary["dt"] = dt.as_str().into();
        }
    }
    if let Some(hint) = failure.hint() {
        summary["hint"] = hint.into();
    }
    if !failure.faults.is_empty() {
        summary["findings"] = serde_json::json!(failure.faults);
    }
    if let Some(bad) = &failure.bad_rows {
        summary["bad_rows_by_reason"] = serde_json::json!(bad.bad_rows_by_reason);
        summary["examples"] = serde_json::json!(bad.examples);
    }
    if let (Some(spent), Some(fields)) = (&failure.spent, summary.as_object_mut()) {
        add_spent(fields, spent);
    }
    summary
}

/// Prints a message of clap, and returns the exit code: 64 for usage errors, and 0 for help and version, which are no
/// errors. The summary of a usage error has what can be read of the arguments.
pub fn of_clap(error: &clap::Error, arguments: &[OsString]) -> u8 {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(error.kind(), DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand) {
        // If standard output is closed, printing help does not fail.
        let _ = error.print();
        return if error.kind() == DisplayHelpOnMissingArgumentOrSubcommand { USAGE } else { 0 };
    }
    let hint = hint::of_arguments(arguments);
    let (refused, failure) = (RefusedArguments::of(arguments), Failure { hint, ..usage_of_clap(error) });
    let is_json = |path: &&PathBuf| path.extension() == Some("json".as_ref());
    if let Some(path) = refused.summary_file.as_ref().filter(is_json) {
        let summary = of_failure(&failure, refused.asked.as_ref());
        let refused = Beside::of(arguments).refuse_summary_at(path);
        if let Err(unwritten) = refused.and_then(|()| SummaryFile::prepare(path)).and_then(|file| file.write(&summary))
        {
            unwritten.say();
        }
    }
    if arguments.iter().any(|argument| argument == "--json") {
        return print_failure(&failure, true, refused.asked.as_ref());
    }
    let _ = error.print();
    if let Some(hint) = failure.hint() {
        let _ = writeln!(std::io::stderr(), "\nhint: {hint}");
    }
    USAGE
}

/// Makes a failure from a message of clap about the arguments.
pub fn usage_of_clap(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let message = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    Failure::usage(message.trim_start_matches("error: "))
}

/// The file that `--summary-file` names.
#[derive(Debug)]
pub struct SummaryFile(LocalFile);

impl SummaryFile {
    /// Checks that the file can be written, and deletes the summary of an earlier command, which would otherwise be taken
    /// for that of a command that is killed.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        let file = LocalFile::try_new(path, IfExists::Replace)?;
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::reading(&format!("--summary-file {}", path.display()), &error))
            }
            _ => Ok(Self(file)),
        }
    }

    /// Writes the line that `--json` prints. Readers see the whole file or none.
    pub fn write(&self, summary: &Value) -> Result<(), Failure> {
        Ok(self.0.write(json_line(summary).as_bytes())?)
    }
}
