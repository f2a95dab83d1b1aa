//! `nearprint run`.

use std::fmt::Write;

use nearprint_pipeline::{RunCounts, RunRequest, RunSummary};

use super::{Outcome, Session, grouped};
use crate::args::{Global, RunArgs};
use crate::job_config::JobConfig;

pub(super) fn run(global: &Global, args: &RunArgs) -> Outcome {
    let job = JobConfig::read(&args.config)?.with_input_args(&args.input);
    let (keep, columns) = job.keep()?;
    let request = RunRequest {
        dt: args.dt.clone(),
        documents: job.required("documents", args.documents.as_ref().or(job.documents.as_ref()))?,
        store: job.required("store", args.store.as_ref().or(job.store.as_ref()))?,
        output: job.required("output", args.output.as_ref().or(job.output.as_ref()))?,
        columns,
        keep,
        profile: job.profile_config()?,
        analyzer_resources: job.analyzer_resources()?,
        input: job.input()?,
        pairs: args.pairs.map_or(job.pairs, Into::into),
        max_pairs: args.max_pairs.unwrap_or(job.max_pairs),
        clusters: job.clusters,
        late: args.late,
        replace: args.replace,
    };
    let session = Session::new(&job, global);
    let summary =
        session.block_on(nearprint_pipeline::run(&session.storage, &request, &session.resources, &session.progress))?;
    let text = text(&summary);
    Ok(session.report("run", summary.status, &summary, text))
}

/// The summary for people.
pub(super) fn text(summary: &RunSummary) -> String {
    let mut out = String::new();
    let status = summary.status.replace('_', " ");
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} {status}: {} (commit {})", summary.dt, summary.output, summary.commit);
    counts(&mut out, &summary.counts);
    if !summary.stale.is_empty() {
        let _ = writeln!(
            out,
            "  stale      {}: made without this night; run them with --replace",
            summary.stale.join(", ")
        );
    }
    out
}

fn counts(out: &mut String, counts: &RunCounts) {
    let documents = &counts.documents;
    let mut line = |name: &str, n: u64, note: String| {
        let _ = writeln!(out, "  {name:<10} {:>12}{note}", grouped(n));
    };
    line(
        "documents",
        documents.n_documents,
        format!("  files: {}, recrawled: {}", grouped(documents.n_files), grouped(counts.n_same_id)),
    );
    line("existing", counts.n_existing, "  fingerprints of earlier nights".to_owned());
    let pairs = &counts.pairs;
    line(
        "pairs",
        pairs.n_pairs,
        format!(
            "  {} with earlier nights, {} within this one",
            grouped(pairs.n_new_existing),
            grouped(pairs.n_new_new)
        ),
    );
    let decisions = &counts.decisions;
    let reasons = |prefix: &str| {
        let named = decisions.by_reason.iter().filter_map(|(name, n)| Some((name.strip_prefix(prefix)?, n)));
        let listed: Vec<String> = named.map(|(name, n)| format!("{} {name}", grouped(*n))).collect();
        if listed.is_empty() { String::new() } else { format!("  {}", listed.join(", ")) }
    };
    line("keep", decisions.n_keep, reasons("keep_"));
    line("drop", decisions.n_drop, reasons("drop_"));
    line("skip", decisions.n_skip, reasons("skip_"));
    if documents.n_too_short > 0 {
        let n_kept = decisions.by_reason.get("keep_too_short").copied().unwrap_or_default();
        let n_dropped = documents.n_too_short.saturating_sub(n_kept);
        let (kept, dropped) = (grouped(n_kept), grouped(n_dropped));
        let note = format!("  below the feature floor, compared as whole texts: {kept} kept, {dropped} dropped");
        line("short", documents.n_too_short, note);
    }
    line(
        "clusters",
        decisions.n_clusters,
        format!("  of two or more; the largest has {}", grouped(decisions.largest_cluster)),
    );
    if documents.n_bad_rows > 0 {
        let by_reason = documents.bad_rows_by_reason.iter().map(|(reason, n)| format!("{} {reason}", grouped(*n)));
        let note = format!("  rows that are no documents: {}", by_reason.collect::<Vec<_>>().join(", "));
        line("quarantine", documents.n_bad_rows, note);
    }
    if documents.n_bad_files > 0 {
        line("bad files", documents.n_bad_files, "  passed over; the manifest lists them".to_owned());
    }
}
