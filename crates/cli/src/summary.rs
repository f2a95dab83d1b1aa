//! The output of a command at its end: text for people, or one JSON line for programs. One value gives both.

use std::io::Write;

use serde_json::{Map, Value};

use crate::asked::Asked;
use crate::exit_code::{BUG, Failure, LOCAL_IO, USAGE};

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
    /// Makes a report from `text` for people and `value` for programs. The schema version, the command, the status, the
    /// elapsed milliseconds and the peak memory are added to `value`.
    pub fn new(
        command: &str,
        status: &str,
        value: &impl serde::Serialize,
        elapsed: std::time::Duration,
        text: String,
    ) -> Self {
        let mut json = Map::new();
        json.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
        json.insert("command".to_owned(), command.into());
        json.insert("status".to_owned(), status.into());
        let mut defect = None;
        match serde_json::to_value(value) {
            Ok(Value::Object(fields)) => json.extend(fields),
            other => defect = Some(format!("internal error: a summary of {other:?}: please report it")),
        }
        let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        json.insert("elapsed_ms".to_owned(), milliseconds.into());
        if let Some(bytes) = peak_rss_bytes() {
            json.insert("peak_rss_bytes".to_owned(), bytes.into());
        }
        let report = Self { text, json: Value::Object(json), exit_code: 0, next: None, failure: None };
        match defect {
            Some(what) => report.but(Failure::new(BUG, what)),
            None => report,
        }
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
    let mut summary = report.json.clone();
    if let Some(hint) = report.failure.as_ref().and_then(Failure::hint) {
        summary["hint"] = hint.into();
    }
    let text = if json { json_line(&summary) } else { report.text.clone() + &next };
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
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
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
pub fn print_failure(failure: &Failure, json: bool, asked: Option<Asked>) -> u8 {
    let message = failure.say();
    if json {
        let mut summary = serde_json::json!({
            "schema_version": SCHEMA_VERSION,
            "status": "failed",
            "exit_code": failure.code,
            "error": message,
        });
        if let Some(Asked { command, dt }) = asked {
            summary["command"] = command.into();
            if let Some(dt) = dt {
                summary["dt"] = dt.into();
            }
        }
        if let Some(hint) = failure.hint() {
            summary["hint"] = hint.into();
        }
        if let Some(requests) = failure.requests {
            summary["requests"] = serde_json::json!(requests);
        }
        let _ = write(&json_line(&summary));
    }
    failure.code
}

/// Prints a message of clap. The exit code is 64 for usage errors, and 0 for help and version, which are no errors. `hint` is the command line
/// that was meant.
pub fn of_clap(error: &clap::Error, json: bool, hint: Option<String>) -> u8 {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if json && !matches!(error.kind(), DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand) {
        return print_failure(&Failure { hint, ..usage_of_clap(error) }, true, None);
    }
    // If standard output is closed, printing help does not fail.
    let _ = error.print();
    if let Some(hint) = hint.filter(|_| error.exit_code() != 0) {
        let _ = writeln!(std::io::stderr(), "\nhint: {hint}");
    }
    if matches!(error.kind(), DisplayHelp | DisplayVersion) { 0 } else { USAGE }
}

/// Makes a failure from a message of clap about the arguments.
pub fn usage_of_clap(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let message = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    Failure::usage(message.trim_start_matches("error: "))
}
