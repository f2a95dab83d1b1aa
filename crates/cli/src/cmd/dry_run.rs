//! `nearprint run --dry-run`.

use std::fmt::Write;

use nearprint_night::DryRun;

use super::{counted, in_bytes};

/// Formats what a run would do and, with `details`, how.
pub fn text(found: &DryRun, details: bool) -> String {
    let mut out = String::new();
    let would = if found.would_publish { "would be published" } else { "already published, nothing would be done" };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} {would}: {} (dry run: nothing was written)", found.dt, found.output);
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<10} {text}");
    };
    let n_documents = found.n_documents.map_or("rows: unknown before they are read".to_owned(), |n| counted(n, "row"));
    let size = in_bytes(as_f64(found.input_bytes));
    line("documents", format!("{} with {size}, {n_documents}", counted(found.n_files, "file")));
    if let Some(newest) = &found.newest_input {
        line("newest", format!("{newest}, when the newest of these files was written"));
    }
    line("store", format!("{} at commit {}", found.store, found.commit));
    let existing = counted(found.n_existing, "fingerprint");
    line("joined", format!("with {} of {existing}", counted(found.n_nights, "earlier night")));
    if let Some(join) = found.join.as_ref().filter(|_| details) {
        line("plan", join.clone());
    }
    if !found.writes.is_empty() {
        line("temporary", format!("{}, about", in_bytes(as_f64(found.spill_bytes))));
        line("writes", found.writes.join("\n             "));
    }
    if !found.forgotten.is_empty() {
        line("forgotten then", format!("{}: keep_nights", found.forgotten.join(", ")));
    }
    if !found.later_nights.is_empty() {
        line("stale then", format!("{}: nights after this one", found.later_nights.join(", ")));
    }
    out
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn as_f64(n: u64) -> f64 {
    n as f64
}
