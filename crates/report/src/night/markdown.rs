//! The report on a night as Markdown, for chats and for the summaries of continuous integration: small tables, no HTML.

use std::fmt::Write;

use super::night_report::NightReport;
use super::notable::{bytes_saved, dropped_share, notable, reasons, recrawled};
use nearprint_explain::{legible, shown_id};
use nearprint_fault::{and_more, counted, grouped, in_bytes, percent};

/// Formats the report as Markdown. Ids and names are escaped, so that they are shown and make no markup and no mention.
#[must_use]
pub fn night_markdown(night: &NightReport) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "### Night {}\n\n| | | |\n|---|---:|---|", night.summary.dt);
    for (name, value, note) in figures(night) {
        let _ = writeln!(out, "| {name} | {value} | {} |", escaped(&note));
    }
    for line in notable(night) {
        let _ = write!(out, "\n- {}", escaped(&line));
    }
    let _ = writeln!(out);
    weakest(&mut out, night);
    if !night.largest_clusters.is_empty() {
        let _ = writeln!(out, "\n| largest clusters | documents |\n|---|---:|");
    }
    for (id, n) in &night.largest_clusters {
        let _ = writeln!(out, "| {} | {} |", code(id), grouped(*n));
    }
    if !night.summary.counts.sources.is_empty() {
        let names = "| sources that lost most | near-duplicates | of compared documents |";
        let _ = writeln!(out, "\n{names}\n|---|---:|---:|");
    }
    for source in &night.summary.counts.sources {
        let (n_near, n) = (grouped(source.n_near), grouped(source.n_documents));
        let _ = writeln!(out, "| {} | {n_near} | {n} |", code(&source.source));
    }
    out
}

fn weakest(out: &mut String, night: &NightReport) {
    let mut near = night.examples.iter().filter(|example| example.is_near()).peekable();
    if near.peek().is_some() {
        let _ = writeln!(out, "\n| weakest drops | kept instead | distance | lost |\n|---|---|---:|---:|");
    }
    for example in near {
        let distance = example.distance.map_or("?".to_owned(), |distance| distance.to_string());
        let lost = example.lost_share.map_or("unknown".to_owned(), percent);
        let (dropped, kept) = (code(&example.doc_id), code(&example.canonical_id));
        let more = and_more(example.n_alike);
        let _ = writeln!(out, "| {dropped}{more} | {kept} | {distance} | {lost} |");
    }
}

/// Returns the figures of the night: name, value, note.
pub(super) fn figures(night: &NightReport) -> Vec<(&'static str, String, String)> {
    let (counts, record) = (&night.summary.counts, &night.history.night);
    let decisions = &counts.decisions;
    let of_documents = |n: u64| dropped_share(n, counts.documents.n_documents).map_or(String::new(), percent);
    let with = |share: String, rest: String| {
        [share, rest].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(": ")
    };
    #[allow(clippy::cast_precision_loss, reason = "for people to read")]
    let input = in_bytes(record.input_bytes as f64);
    let mut figures =
        vec![("Documents", grouped(counts.documents.n_documents), format!("in {}", counted(record.n_inputs, "file")))];
    if counts.n_same_id > 0 {
        figures.push(("Recrawled", grouped(counts.n_same_id), recrawled(counts)));
    }
    figures.extend([
        ("Kept", grouped(decisions.n_keep), with(of_documents(decisions.n_keep), reasons(night, "keep_"))),
        ("Dropped", grouped(decisions.n_drop), with(of_documents(decisions.n_drop), reasons(night, "drop_"))),
        ("Skipped", grouped(decisions.n_skip), reasons(night, "skip_")),
        ("Saved, about", in_bytes(bytes_saved(night)), format!("of {input}: the share of dropped documents")),
    ]);
    figures
}

/// Escapes what Markdown, HTML or a chat would take for markup or a mention.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in legible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            // A word joiner after it keeps a chat from mentioning people.
            '@' => out.push_str("@\u{2060}"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '>' | '#' | '|' | '~' | '!' | '$' => {
                out.extend(['\\', c]);
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns an id as code in a table's cell: nothing in it is markup, a link or a mention, and it can be copied.
///
/// A bar ends the cell unless a backslash precedes it, and two backslashes are one. So a bar after a backslash is shown as
/// a wide one.
fn code(id: &str) -> String {
    let id = shown_id(id).replace("\\|", "\\\u{ff5c}").replace('|', "\\|");
    let longest = id.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if id.starts_with('`') || id.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{id}{pad}{fence}")
}
