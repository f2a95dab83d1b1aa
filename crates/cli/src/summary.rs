//! The output of a command at its end: text for people, or one JSON line for programs. One value gives both.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nearprint_storage::{IfExists, LocalFile, Requests};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::beside::Beside;
use crate::exit_code::{BadRows, Failure, LOCAL_IO, Spent, USAGE};
use crate::finding::FindingKeys;
use crate::hint;
use crate::invocation::Invocation;
use crate::job_folder::is_number;
use crate::refused_arguments::RefusedArguments;

/// The version of the summaries. It is raised when a field changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// The keys with which the summary of a command begins.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Head {
    /// The version of the summaries. It is raised if a key changes its meaning, not if a key is added.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    schema_version: u32,
    /// The command, without its flags.
    command: String,
    /// What the command came to.
    status: String,
}

impl Head {
    /// Begins the summary of a command.
    pub fn new(command: &str, status: &str) -> Self {
        Self { schema_version: SCHEMA_VERSION, command: command.to_owned(), status: status.to_owned() }
    }
}

/// The keys of a summary that say how a command ended, and how a user may go on.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(extend("dependentRequired" = serde_json::json!({ "error": ["exit_code"], "hint": ["error"] })))]
pub struct Ending {
    /// The exit code, if it is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    exit_code: Option<u8>,
    /// What went wrong, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// A command that works as it stands, and mends the error or shows more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^nearprint "))]
    hint: Option<String>,
    /// The command that a user may run next.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The keys of a summary that say what a command spent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpentKeys {
    /// The milliseconds that the command took.
    elapsed_ms: u64,
    /// The most memory that the process held, where the system says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_rss_bytes: Option<u64>,
    /// The requests to object stores. Left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Requests>,
    /// The milliseconds of each stage, by its name. Left out by commands without stages.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    stage_ms: BTreeMap<&'static str, u64>,
}

impl From<&Spent> for SpentKeys {
    fn from(spent: &Spent) -> Self {
        // A command does not take the 584 million years of 2^64 milliseconds.
        let milliseconds = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            elapsed_ms: milliseconds(&spent.elapsed),
            peak_rss_bytes: spent.peak_rss_bytes,
            requests: spent.requests,
            stage_ms: spent.stages.iter().map(|(name, time)| (*name, milliseconds(time))).collect(),
        }
    }
}

/// The summary of a command that failed before it had results.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailureSummary {
    /// The version of the summaries. It is raised if a key changes its meaning, not if a key is added.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    schema_version: u32,
    /// The status of every failure.
    #[schemars(extend("const" = FAILED))]
    status: &'static str,
    /// The exit code.
    #[schemars(range(min = 1))]
    exit_code: u8,
    /// What went wrong, in one line.
    error: String,
    /// The command, without its flags.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The night, if the command was given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    dt: Option<String>,
    /// A command that works as it stands, and mends the error or shows more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^nearprint "))]
    hint: Option<String>,
    /// The faults of the job file, in order, if these are the failure.
    #[serde(skip_serializing_if = "<[FindingKeys]>::is_empty")]
    #[schemars(length(min = 1))]
    findings: Box<[FindingKeys]>,
    #[serde(flatten)]
    bad_rows: Option<BadRows>,
    #[serde(flatten)]
    spent: Option<SpentKeys>,
}

/// The status of a command that failed.
const FAILED: &str = "failed";

/// The outcome of a command.
#[derive(Debug)]
pub struct Report {
    /// The lines for people.
    pub text: String,
    /// The JSON summary.
    pub json: Value,
    exit_code: u8,
    /// The command that the user may run next.
    pub next: Option<String>,
    /// The failure of a step after the work itself was done.
    pub failure: Option<Failure>,
}

impl Report {
    /// Makes a report from `text` for people and `value` for programs. The schema version, the command, the status and
    /// what was spent are added to `value`.
    pub fn new(command: &str, status: &str, value: &impl Serialize, spent: Spent, text: String) -> Self {
        let mut json = Value::default();
        let added = add(&mut json, &Head::new(command, status)).and_then(|()| add(&mut json, value));
        let added = added.and_then(|()| add(&mut json, &SpentKeys::from(&spent)));
        let report = Self { text, json, exit_code: 0, next: None, failure: None };
        match added {
            Err(defect) => report.but(defect),
            Ok(()) => report,
        }
    }

    /// Returns the same report with the hint that `hinted` gives to its failure, if it has one.
    pub fn hinted(mut self, hinted: impl FnOnce(Failure) -> Failure) -> Self {
        self.failure = self.failure.map(hinted);
        let error = self.failure.as_ref().map(Failure::message);
        let hint = self.failure.as_ref().and_then(Failure::hint);
        self.with(&Ending { error, hint, ..Ending::default() })
    }

    /// Returns the same report with the command that the user may run next.
    pub fn then(self, next: Option<String>) -> Self {
        let next = next.filter(|line| !line.split(' ').any(|word| is_number(Path::new(word))));
        let ending = Ending { next: next.clone(), ..Ending::default() };
        Self { next, ..self.with(&ending) }
    }

    /// Returns the same report, marked as that of a command that failed in the end.
    pub fn but(mut self, failure: Failure) -> Self {
        self.json["status"] = FAILED.into();
        let report = self.ended_with(failure.code);
        let error = Some(failure.message());
        Self { failure: Some(failure), ..report.with(&Ending { error, ..Ending::default() }) }
    }

    /// Returns the exit code. The summary has it too, unless it is 0.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Returns the same report with an exit code that is not 0.
    pub fn ended_with(self, exit_code: u8) -> Self {
        let ending = Ending { exit_code: Some(exit_code), ..Ending::default() };
        Self { exit_code, ..self.with(&ending) }
    }

    fn with(mut self, ending: &Ending) -> Self {
        match add(&mut self.json, ending) {
            Ok(()) => self,
            Err(defect) => Self { exit_code: defect.code, failure: Some(defect), ..self },
        }
    }
}

/// Adds the fields of a value to a summary.
fn add(json: &mut Value, value: &impl Serialize) -> Result<(), Failure> {
    match (serde_json::to_value(value), &mut *json) {
        (Ok(fields @ Value::Object(_)), Value::Null) => *json = fields,
        (Ok(Value::Object(fields)), Value::Object(json)) => json.extend(fields),
        (other, _) => return Err(Failure::bug(&format!("a summary of {other:?}"))),
    }
    Ok(())
}

/// Returns the peak memory of the process. It is `None` if the system does not report it the way Linux does.
pub fn peak_rss_bytes() -> Option<u64> {
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
    let summary = FailureSummary {
        schema_version: SCHEMA_VERSION,
        status: FAILED,
        exit_code: failure.code,
        error: failure.line(),
        command: asked.map(|asked| asked.command.clone()),
        dt: asked.and_then(|asked| asked.dt.clone()),
        hint: failure.hint(),
        findings: failure.findings(),
        bad_rows: failure.bad_rows.as_deref().cloned(),
        spent: failure.spent.as_deref().map(SpentKeys::from),
    };
    serde_json::json!(summary)
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
    let failure = Failure { hint, ..usage_of_clap(error) };
    refused(&failure, arguments, || {
        let _ = error.print();
        if let Some(hint) = failure.hint() {
            let _ = writeln!(std::io::stderr(), "\nhint: {hint}");
        }
    })
}

/// Reports that arguments are refused, and returns the exit code. The summary has what can be read of them; `say` tells people.
pub fn refused(failure: &Failure, arguments: &[OsString], say: impl FnOnce()) -> u8 {
    let refused = RefusedArguments::of(arguments);
    let is_json = |path: &&PathBuf| path.extension() == Some("json".as_ref());
    if let Some(path) = refused.summary_file.as_ref().filter(is_json) {
        let summary = of_failure(failure, refused.asked.as_ref());
        let refused = Beside::of_refused(arguments).refuse_summary_at(path);
        if let Err(unwritten) = refused.and_then(|()| SummaryFile::prepare(path)).and_then(|file| file.write(&summary))
        {
            unwritten.say();
        }
    }
    if arguments.iter().any(|argument| argument == "--json") {
        return print_failure(failure, true, refused.asked.as_ref());
    }
    say();
    failure.code
}

/// Makes a failure from a message of clap about the arguments.
pub fn usage_of_clap(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let message = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    Failure::usage(message.trim_start_matches("error: ").to_owned())
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
