//! `results.jsonl` as the tables of evidence/reliability.

use std::fmt::Write;
use std::path::PathBuf;

use nearprint_harness::Result;
use nearprint_harness::row::Row;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// File that the trials appended their rows to
    #[arg(long, value_name = "FILE")]
    pub results: PathBuf,
}

/// Headings, and how the ids below them start; the first that fits counts.
const SECTIONS: [(&str, &[&str]); 9] = [
    ("Killed at every step", &["F1", "F2", "K"]),
    ("Several at once", &["F24", "F25", "race"]),
    ("Faults", &["F"]),
    ("Bad input", &["B"]),
    ("Security", &["S"]),
    ("Canary of a secret", &["canary"]),
    ("Loads", &["L"]),
    ("Flipped bits", &["flip", "D"]),
    ("Others", &[""]),
];

/// The tables: of rows that were tried several times the last one.
pub fn markdown(args: &Args) -> Result<String> {
    let mut rows: Vec<Row> = Vec::new();
    for line in std::fs::read_to_string(&args.results)?.lines().filter(|l| !l.trim().is_empty()) {
        let row: Row = serde_json::from_str(line)?;
        let same = |r: &Row| (&r.id, &r.trial, &r.backend) == (&row.id, &row.trial, &row.backend);
        match rows.iter().position(same) {
            Some(at) => rows[at] = row,
            None => rows.push(row),
        }
    }
    rows.sort_by_key(|row| (number(&row.id), row.id.clone()));
    let green = rows.iter().filter(|r| r.is_green()).count();
    let skipped = rows.iter().filter(|r| r.runs == 0).count();
    let runs: u64 = rows.iter().map(|r| r.runs).sum();
    let mut text = format!(
        "{green} of {} rows green, {} red, {skipped} skipped; {runs} runs, points and rounds in all.\n",
        rows.len(),
        rows.len() - green - skipped
    );
    for (at, (title, _)) in SECTIONS.iter().enumerate() {
        let own: Vec<&Row> = rows.iter().filter(|row| section(&row.id) == at).collect();
        if own.is_empty() {
            continue;
        }
        write!(text, "\n### {title}\n\n| # | trial | on | required | passed | seen |\n|---|---|---|---|---|---|\n")?;
        for row in own {
            let mark = if row.is_green() { "" } else { "**" };
            let passed = format!("{mark}{}/{}{mark}", row.passed, row.runs);
            let cells = [&row.id, &row.trial, &row.backend, &row.required, &passed, &row.observed];
            writeln!(text, "| {} |", cells.map(|c| cell(c)).join(" | "))?;
        }
    }
    Ok(text)
}

/// `F1` is not the beginning of `F14`.
fn section(id: &str) -> usize {
    let fits = |start: &str| {
        let Some(rest) = id.strip_prefix(start) else { return false };
        !(start.ends_with(|c: char| c.is_ascii_digit()) && rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    SECTIONS.iter().position(|(_, starts)| starts.iter().any(|s| fits(s))).unwrap_or(SECTIONS.len() - 1)
}

fn number(id: &str) -> u64 {
    let digits: String = id.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

fn cell(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let short: String = line.chars().take(300).collect();
    short.replace('|', "\\|").replace('<', "&lt;")
}
