//! `nearprint diff`.

use std::fmt::Write;

use nearprint_explain::{legible, shown_id};
use nearprint_report::{Change, ChangeKind, ChangedDocument, Diff, DiffPlace, DiffRequest, DiffSide};

use super::{Outcome, Session, grouped};
use crate::args::{DiffArgs, GivenGeneration, Global};
use crate::job_config::JobConfig;

pub(super) fn diff(global: &Global, args: &DiffArgs) -> Outcome {
    let job = JobConfig::read_or_default(args.config.as_deref())?;
    let given = |place: &GivenGeneration| DiffPlace {
        output: job.folder().given(&place.output),
        generation: place.generation.clone(),
    };
    let a = match &args.a {
        Some(place) => given(place),
        None => DiffPlace { output: job.output(None)?, generation: None },
    };
    let request = DiffRequest { dt: args.dt.clone(), a, b: args.b.as_ref().map(given), n_examples: args.examples };
    let session = Session::new(&job, global);
    let diff = session
        .block_on(|storage, _, progress| async move { nearprint_report::diff(&storage, &request, &progress).await })?;
    let status = if diff.is_same() { "same" } else { "different" };
    let text = if args.md { markdown(&diff) } else { text(&diff) };
    Ok(session.report("diff", status, &diff, text))
}

fn text(diff: &Diff) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for (name, side) in [("A", &diff.a), ("B", &diff.b)] {
        let _ = writeln!(out, "{name}  {}", of_side(side));
    }
    let _ = writeln!(out, "{}", made_from(diff));
    for (n, what) in kinds(diff) {
        let _ = writeln!(out, "{:>12}  {what}", grouped(n));
    }
    for change in &diff.documents.changes {
        let _ = writeln!(out, "\n{}: {}{}", heading(change), grouped(change.n), cut(change.n, change.examples.len()));
        for example in &change.examples {
            let _ = writeln!(out, "  {}", document(change, example));
        }
    }
    for (name, n, pairs) in pairs(diff) {
        if n > 0 {
            let _ = writeln!(out, "\n{name}: {}{}", grouped(n), cut(n, pairs.len()));
        }
        for (a, b) in pairs {
            let _ = writeln!(out, "  {}  {}", shown_id(a), shown_id(b));
        }
    }
    out
}

fn markdown(diff: &Diff) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# What changed in the night {}\n", diff.dt);
    for (name, side) in [("A", &diff.a), ("B", &diff.b)] {
        let _ = writeln!(out, "- **{name}**: {}", escaped(&of_side(side)));
    }
    let _ = writeln!(out, "\n{}\n\n| documents and pairs | number |\n|---|---:|", made_from(diff));
    for (n, what) in kinds(diff) {
        let _ = writeln!(out, "| {what} | {} |", grouped(n));
    }
    if !diff.documents.changes.is_empty() {
        let _ = writeln!(out, "\n| change | documents | examples |\n|---|---:|---|");
    }
    for change in &diff.documents.changes {
        let examples: Vec<String> = change.examples.iter().map(|example| escaped(&document(change, example))).collect();
        let cut = cut(change.n, change.examples.len());
        let _ = writeln!(out, "| {} | {} | {}{cut} |", heading(change), grouped(change.n), examples.join("<br>"));
    }
    for (name, n, pairs) in pairs(diff) {
        if n > 0 {
            let _ = writeln!(out, "\n{name}: {}{}\n", grouped(n), cut(n, pairs.len()));
        }
        for (a, b) in pairs {
            let _ = writeln!(out, "- {} and {}", escaped(&shown_id(a)), escaped(&shown_id(b)));
        }
    }
    out
}

fn of_side(side: &DiffSide) -> String {
    format!(
        "{} generation {} (nearprint {}): {} kept, {} dropped, {} skipped, {} pairs",
        legible(&side.output),
        side.generation.get(..12).unwrap_or(&side.generation),
        legible(&side.release),
        grouped(side.n_keep),
        grouped(side.n_drop),
        grouped(side.n_skip),
        grouped(side.n_pairs)
    )
}

fn made_from(diff: &Diff) -> String {
    match &diff.made_from_other[..] {
        [] => "Made from the same inputs and earlier nights by the same release; other settings may differ.".to_owned(),
        other => format!("Made from other {}.", other.join(", ").replace('_', " ")),
    }
}

/// Returns the number of documents and pairs for each thing that may have happened to them.
fn kinds(diff: &Diff) -> [(u64, &'static str); 11] {
    let (documents, pairs) = (&diff.documents, &diff.pairs);
    [
        (documents.n_same, "documents are the same"),
        (documents.n_decision, "documents have another decision"),
        (documents.n_reason, "documents have the same decision for another reason"),
        (documents.n_canonical, "documents have another canonical document only"),
        (documents.n_details, "documents have another distance, cluster, lost share, family or history only"),
        (documents.n_only_a, "documents are in A only"),
        (documents.n_only_b, "documents are in B only"),
        (pairs.n_same, "pairs are the same"),
        (pairs.n_details, "pairs have another distance, scope or reason"),
        (pairs.n_only_a, "pairs are in A only"),
        (pairs.n_only_b, "pairs are in B only"),
    ]
}

fn heading(change: &Change) -> String {
    // The side that lacks the document is not named.
    let [from, to] = [&change.from, &change.to].map(|side| side.as_deref().map(legible).unwrap_or_default());
    match change.kind {
        ChangeKind::Decision | ChangeKind::Reason => format!("{from} → {to}"),
        ChangeKind::Canonical => format!("{from}, another canonical document"),
        ChangeKind::Details => format!("{from}, another distance, cluster, lost share, family or history"),
        ChangeKind::OnlyA => format!("{from}, in A only"),
        ChangeKind::OnlyB => format!("{to}, in B only"),
    }
}

fn document(change: &Change, example: &ChangedDocument) -> String {
    let id = shown_id(&example.doc_id);
    // No document represents a stub, and none a document without text.
    let nobody = |decided: &Option<String>| match decided {
        Some(decided) if decided.starts_with("keep ") => "itself",
        _ => "no document",
    };
    let canonical = |id: &Option<String>, decided: &Option<String>| {
        id.as_deref().map_or_else(|| nobody(decided).to_owned(), shown_id)
    };
    match (change.kind, &example.canonical_a, &example.canonical_b) {
        (ChangeKind::OnlyA | ChangeKind::OnlyB, a, b) => match a.as_deref().or(b.as_deref()) {
            Some(canonical) => format!("{id} (represented by {})", shown_id(canonical)),
            None => id,
        },
        (_, a, b) if a == b => id,
        (_, a, b) => {
            let (a, b) = (canonical(a, &change.from), canonical(b, &change.to));
            format!("{id} (represented by {a}, then by {b})")
        }
    }
}

/// Says that there are more than the examples.
fn cut(n: u64, n_examples: usize) -> String {
    match n_examples as u64 {
        n_examples if n_examples >= n || n_examples == 0 => String::new(),
        n_examples => format!(" (the first {})", grouped(n_examples)),
    }
}

/// A heading, the number of pairs, and the first of them.
type ListedPairs<'a> = (&'static str, u64, &'a [(String, String)]);

fn pairs(diff: &Diff) -> [ListedPairs<'_>; 2] {
    let pairs = &diff.pairs;
    [("Pairs in A only", pairs.n_only_a, &pairs.examples_a), ("Pairs in B only", pairs.n_only_b, &pairs.examples_b)]
}

/// Escapes characters that mean something in Markdown or in its tables.
fn escaped(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' | '~') {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}
