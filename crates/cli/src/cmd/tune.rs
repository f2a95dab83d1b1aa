//! `nearprint tune`.

use std::fmt::Write;

use nearprint_documents::DocumentPlace;
use nearprint_measure::{
    Estimate, LabelEstimate, LabelsRequest, Recommendation, SheetRequest, SheetSummary, draw_sheet,
    estimate_from_labels,
};

use super::{Outcome, Session, cell, counted, documents, grouped, if_exists, name_flags, refuse_beyond, warnings};
use crate::args::{Global, ProfileArgs, TuneArgs};
use crate::command_line::command_line;
use crate::documents::place;
use crate::exit_code::Failure;
use crate::job_config::JobConfig;
use crate::place::Given;

pub(super) fn tune(global: &Global, args: &TuneArgs) -> Outcome {
    let job = JobConfig::read_or_default(args.profile.config.as_deref())?.with_profile_args(&args.profile)?;
    let session = Session::new(&job, global);
    let given = |place: &Given| job.folder().given(place);
    let documents = args.documents.as_ref().map(given);
    let documents = place(job.folder(), documents, args.files_from.as_deref(), args.documents_version)?;
    match (args.labels.as_ref().map(given), documents, args.sheet.as_ref().map(given)) {
        (Some(labels), ..) => estimate(&session, &job, labels),
        (None, Some(documents), Some(sheet)) => draw(&session, &job, args, documents, sheet),
        _ => Err(Failure::usage(
            "give --documents or --files-from, and --sheet, to draw a sheet, or --labels to read one back",
        )),
    }
}

fn draw(session: &Session, job: &JobConfig, args: &TuneArgs, documents: DocumentPlace, sheet: String) -> Outcome {
    let html = args.html.as_ref().map(|place| job.folder().given(place));
    let (repeats, columns) = job.repeats()?;
    let profile = job.profile_config()?;
    refuse_beyond(profile.bits, args.max_distance)?;
    let request = SheetRequest {
        documents,
        columns,
        repeats,
        profile,
        analyzer_resources: job.analyzer_resources()?,
        sheet,
        html,
        if_exists: if_exists(args.replace),
        per_distance: args.per_distance,
        max_distance: args.max_distance,
    };
    let summary = session.block_on(|storage, resources, progress| async move {
        draw_sheet(&storage, &request, &resources, &progress).await
    })?;
    let text = drawn(&summary, &args.profile);
    Ok(session.report("tune", "drawn", &summary, text))
}

fn drawn(summary: &SheetSummary, profile: &ProfileArgs) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}: {} of {} of {}\n{}",
        summary.sheet,
        grouped(summary.n_sampled),
        counted(summary.n_pairs, "pair"),
        counted(summary.n_texts, "distinct text"),
        documents(&summary.documents)
    );
    if summary.n_pairs == 0 {
        let _ = writeln!(out, "No pairs to label: {}", why_no_pairs(summary));
        return out;
    }
    if let Some(html) = &summary.html {
        let _ = writeln!(out, "{html}: the same pairs to read");
    }
    let _ = writeln!(out, "distance     pairs  on the sheet");
    for row in &summary.strata {
        let _ = writeln!(out, "{:>8} {:>9} {:>13}", row.distance, grouped(row.n_pairs), grouped(row.n_sampled));
    }
    let words = ["tune", "--labels", &summary.sheet].map(str::to_owned);
    let next = command_line(words.into_iter().chain(profile.of_fingerprints()));
    let _ = writeln!(out, "Write pos, neg or gray into the column 'label', then: {next}");
    out
}

fn why_no_pairs(summary: &SheetSummary) -> &'static str {
    if summary.documents.n_fingerprinted == 0 {
        "no document has a fingerprint; give longer texts, or lower tokenize.min_features"
    } else {
        "no two texts are within --max-distance; give more documents, or a larger one"
    }
}

fn estimate(session: &Session, job: &JobConfig, labels: String) -> Outcome {
    let request = LabelsRequest {
        labels,
        profile: job.profile_config()?,
        analyzer_resources: job.analyzer_resources()?,
        html_text: job.html_text().clone(),
    };
    let mut estimate =
        session.block_on(|storage, _, _| async move { estimate_from_labels(&storage, &request).await })?;
    name_flags("tune", &mut estimate.warnings);
    if let Some(found) = &mut estimate.recommendation {
        name_flags("tune", &mut found.too_few);
    }
    let text = estimated(&estimate);
    Ok(session.report("tune", "estimated", &estimate, text))
}

fn estimated(estimate: &LabelEstimate) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} rows: {} pos, {} neg, {} gray, {} without a label",
        grouped(estimate.n_rows),
        grouped(estimate.n_positive),
        grouped(estimate.n_negative),
        grouped(estimate.n_gray),
        grouped(estimate.n_unlabelled)
    );
    warnings(&mut out, &estimate.warnings);
    let last = estimate.sheet_max_distance;
    let own = &estimate.own;
    let sketch = own.max_sketch_distance.map_or(String::new(), |d| format!(", sketches within {d}"));
    let _ = writeln!(
        out,
        "Estimates for all pairs up to distance {last}{sketch}; recall is relative to the positive ones of these; in brackets 95 % \
         intervals"
    );
    let rows = estimate.by_max_distance.iter();
    table(&mut out, "max_distance", rows.map(|r| (r.max_distance.to_string(), r, r.max_distance == own.max_distance)));
    if !estimate.by_max_sketch_distance.is_empty() {
        let _ = writeln!(out, "\nAt distance {}, by distance of the sketches", own.max_distance);
        let name = |d: Option<u16>| d.map_or("not compared".to_owned(), |d| d.to_string());
        let rows = estimate.by_max_sketch_distance.iter();
        let rows = rows.map(|r| (name(r.max_sketch_distance), r, r.max_sketch_distance == own.max_sketch_distance));
        table(&mut out, "max_sketch_distance", rows);
    }
    match &estimate.recommendation {
        Some(found) => recommendation(&mut out, found, own.max_distance <= last),
        None => drop(writeln!(out, "\nNo recommendation: label some rows pos or neg first")),
    }
    out
}

/// Writes a table from rows of a name, an estimate, and whether the estimate is the profile's own.
fn table<'a>(out: &mut String, name: &str, rows: impl Iterator<Item = (String, &'a Estimate, bool)>) {
    let _ = writeln!(
        out,
        "{name:>19}  {:<19}  {:<19}  {:<19}  {:>9} {:>7}",
        "precision", "recall", "f1", "pairs", "labels"
    );
    for (name, e, own) in rows {
        let _ = writeln!(
            out,
            "{name:>19}  {:<19}  {:<19}  {:<19}  {:>9.0} {:>7}{}",
            cell(e.precision, e.ci.precision),
            cell(e.recall, e.ci.recall),
            cell(e.f1, e.ci.f1),
            e.n_pairs,
            e.n_labels,
            if own { " <- the profile's" } else { "" }
        );
    }
}

fn recommendation(out: &mut String, found: &Recommendation, own_is_known: bool) {
    let best = &found.best;
    let sketch = best.max_sketch_distance.map_or(String::new(), |d| format!(", max_sketch_distance = {d}"));
    let own = if found.is_own { " (the profile's own)" } else { "" };
    let _ = writeln!(
        out,
        "\nHighest F1: max_distance = {}{sketch}{own}, {}, resting on {} labels",
        best.max_distance,
        best.f1.map_or_else(|| "unknown".to_owned(), |f1| format!("{f1:.3}")),
        best.n_labels
    );
    if !found.is_own && own_is_known {
        let told =
            if found.better_than_own >= 0.95 { "" } else { ": not told apart by these labels, so keep the profile's" };
        let share = 100.0 * found.better_than_own;
        let _ = writeln!(out, "Better than the profile's own in {share:.0} % of the draws{told}");
    }
    if !found.enough_labels {
        let _ = writeln!(out, "Too few labels to go by:");
    }
    for reason in &found.too_few {
        let _ = writeln!(out, "  {reason}");
    }
}
