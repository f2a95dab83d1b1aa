//! The summary of a night for people.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use nearprint_explain::legible;
use nearprint_fault::percent;
use nearprint_night::{Breakers, JoinedReference, RunCounts, RunStatus, RunSummary};
use nearprint_report::recrawled;

use super::notices::noticed;
use super::{counted, grouped};

/// Formats the summary for people: what was done, and what they should look at. With `details`, how good the keep order was.
pub(super) fn text(summary: &RunSummary, breakers: &Breakers, details: bool) -> String {
    let mut out = String::new();
    let status = summary.status.name().replace('_', " ");
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} {status}: {} (commit {})", summary.dt, summary.output, summary.commit);
    if summary.status == RunStatus::AlreadyPublished {
        let _ = writeln!(out, "  the counts are those of its publication; what was forgotten since is still counted");
    }
    counts(&mut out, &summary.counts, &summary.references);
    if details {
        keep_bound(&mut out, &summary.counts);
    }
    if summary.n_mended_files > 0 {
        let n = grouped(summary.n_mended_files);
        let _ = writeln!(out, "  mended     {n:>12}  files of the night that were damaged or gone");
    }
    if !summary.forgotten.is_empty() {
        let _ = writeln!(out, "  forgotten  {}: older than keep_nights", summary.forgotten.join(", "));
    }
    let noticed = noticed(summary, breakers);
    if !noticed.is_empty() {
        let _ = writeln!(out, "\nLook at");
    }
    for notice in noticed {
        let _ = writeln!(out, "  {notice}");
    }
    out
}

/// Formats the line of a night among others.
pub(super) fn line(night: &RunSummary) -> String {
    let (decisions, status) = (&night.counts.decisions, night.status.name().replace('_', " "));
    format!(
        "{} {status}: {} kept, {} dropped, {} skipped (commit {})\n",
        night.dt, decisions.n_keep, decisions.n_drop, decisions.n_skip, night.commit
    )
}

/// Writes a number and what it counts.
fn row(out: &mut String, name: &str, n: u64, note: impl Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "  {name:<10} {:>12}{note}", grouped(n));
}

/// Writes a number that is not 0 and what it counts.
fn row_of_some(out: &mut String, name: &str, n: u64, note: impl Display) {
    if n > 0 {
        row(out, name, n, note);
    }
}

fn counts(out: &mut String, counts: &RunCounts, references: &[JoinedReference]) {
    let documents = &counts.documents;
    row(out, "documents", documents.n_documents, format!("  in {}", counted(documents.n_files, "file")));
    let states = if counts.n_same_id == 1 { "its earlier state" } else { "their earlier states" };
    let but = if counts.n_stubs() > 0 { ", but for stubs" } else { "" };
    let by_text = [recrawled(counts), format!("in place of {states}{but}")].into_iter().filter(|text| !text.is_empty());
    row_of_some(out, "recrawled", counts.n_same_id, format!("  {}", by_text.collect::<Vec<_>>().join(", ")));
    let of_nights = match (counts.n_same_id, counts.n_stubs()) {
        (0, _) => "documents of earlier nights",
        (_, 0) => "documents that only earlier nights have",
        // A stub leaves its page as it was.
        _ => "documents that only earlier nights have, or that are stubs now",
    };
    let of_references = if references.is_empty() { "" } else { ", and those of references" };
    if counts.n_existing > 0 || !references.is_empty() {
        let note = format!("  {of_nights}{of_references}, compared with these");
        row(out, "earlier", counts.n_existing, note);
    }
    for JoinedReference { store, commit, n_nights, n_existing, .. } in references {
        let note = format!("  of these from {}, {} at commit {commit}", legible(store), counted(*n_nights, "night"));
        row(out, "reference", *n_existing, note);
    }
    let pairs = &counts.pairs;
    let (earlier, within) = (grouped(pairs.n_new_existing), grouped(pairs.n_new_new));
    row(out, "pairs", pairs.n_pairs, format!("  {earlier} with earlier nights, {within} within this one"));
    if let Some(judge) = counts.judge.filter(|judge| judge.n_undecided > 0) {
        let (read, undecided) = (counted(judge.n_read, "pair"), grouped(judge.n_undecided));
        let note = format!("  alike, of {read} whose texts were read; sketches left {undecided} undecided");
        row(out, "judged", judge.n_edited + judge.n_contained, note);
    }
    let decisions = &counts.decisions;
    let reasons = |prefix: &str| {
        let named = decisions.by_reason.iter().filter_map(|(name, n)| Some((name.strip_prefix(prefix)?, n)));
        let listed: Vec<String> = named.map(|(name, n)| format!("{} {name}", grouped(*n))).collect();
        if listed.is_empty() { String::new() } else { format!("  {}", listed.join(", ")) }
    };
    row(out, "keep", decisions.n_keep, reasons("keep_"));
    let dropped = reasons("drop_");
    let share = match decisions.n_drop {
        0 => String::new(),
        n => format!("{}; {} of the documents", dropped, percent(share_of(n, documents.n_documents))),
    };
    row(out, "drop", decisions.n_drop, share);
    row(out, "skip", decisions.n_skip, reasons("skip_"));
    let note = "  earlier kept documents in fuller ones of this night";
    row_of_some(out, "superseded", decisions.n_superseded, note);
    // A reason without documents is not listed.
    let n_kept = decisions.by_reason.get("keep_too_short").copied().unwrap_or_default();
    let (kept, dropped) = (grouped(n_kept), grouped(documents.n_too_short.saturating_sub(n_kept)));
    let note = format!("  below the feature floor, compared as whole texts: {kept} kept, {dropped} dropped");
    row_of_some(out, "short", documents.n_too_short, note);
    let largest = match decisions.largest_cluster {
        0 => String::new(),
        n => format!("; the largest has {}", grouped(n)),
    };
    row(out, "clusters", decisions.n_clusters, format!("  within this night, of two or more{largest}"));
    inputs(out, counts);
}

/// Writes what else the inputs had: revisits, and what is no document.
fn inputs(out: &mut String, counts: &RunCounts) {
    let documents = &counts.documents;
    let listed = |by_reason: &BTreeMap<String, u64>| {
        let named = by_reason.iter().map(|(reason, n)| format!("{} {reason}", grouped(*n)));
        named.collect::<Vec<_>>().join(", ")
    };
    let note = format!("  records that are no documents: {}", listed(&documents.passed_records_by_reason));
    row_of_some(out, "passed over", documents.n_passed_records, note);
    let rows = if documents.n_repeated_ids == 1 { "row that repeats" } else { "rows that repeat" };
    let note = format!("  {rows} the id of another one, left out by on_duplicate_id");
    row_of_some(out, "repeated", documents.n_repeated_ids, note);
    let note = "  documents by revisit records, with texts of other records";
    row_of_some(out, "revisits", documents.n_revisits, note);
    let note = "  revisit records whose texts are unknown; the dataset quarantine lists them";
    row_of_some(out, "unknown", documents.n_unknown_revisits, note);
    let note = format!("  rows that are no documents: {}", listed(&documents.bad_rows_by_reason));
    row_of_some(out, "quarantine", documents.n_bad_rows, note);
    row_of_some(out, "bad files", documents.n_bad_files, "  passed over; the manifest lists them");
}

/// Says how many documents any keep order could keep, and what other rules would drop.
fn keep_bound(out: &mut String, counts: &RunCounts) {
    let Some(star) = counts.decisions.star else { return };
    let in_vain = match star.n_kept_in_vain {
        0 => String::new(),
        n => format!("; {} of the kept may be dropped for another kept one", grouped(n)),
    };
    let _ = writeln!(
        out,
        "  could keep {:>12}  at most, in any keep order, if none may be dropped for another one{in_vain}; clusters = \"component\" \
         would drop {} more",
        grouped(star.n_keep_bound),
        grouped(star.n_kept_beyond_component)
    );
}

#[allow(clippy::cast_precision_loss, reason = "a share of documents")]
fn share_of(n: u64, all: u64) -> f64 {
    n as f64 / all.max(1) as f64
}
