//! What a command says at its end: text for people, one JSON line for programs, from one value.

use serde_json::{Map, Value};

/// Raised when a field of a summary changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// The end of a command.
#[derive(Debug)]
pub struct Report {
    /// Lines for people.
    pub text: String,
    /// The JSON summary.
    pub json: Value,
    pub exit_code: u8,
}

impl Report {
    /// `text` for people, and `value` with the schema version, command and seconds added for programs.
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
        if let Ok(Value::Object(fields)) = serde_json::to_value(value) {
            json.extend(fields);
        }
        let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        json.insert("elapsed_ms".to_owned(), milliseconds.into());
        Self { text, json: Value::Object(json), exit_code: 0 }
    }
}

#[allow(clippy::print_stdout, reason = "this is where the command speaks")]
pub fn print(report: &Report, json: bool) {
    if json {
        println!("{}", without_controls(&report.json.to_string()));
    } else {
        print!("{}", report.text);
    }
}

/// JSON leaves U+007F to U+009F as they are, but a terminal obeys some of them. They can only stand inside strings.
fn without_controls(json: &str) -> String {
    let escaped = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    if json.contains(char::is_control) { json.chars().map(escaped).collect() } else { json.to_owned() }
}
