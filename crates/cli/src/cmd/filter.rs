//! `nearprint filter`.

use std::fmt::Write;

use nearprint_documents::FilterOutput;
use nearprint_night::{FilterCounts, FilterRequest, FilterSummary};

use super::{Outcome, Session, counted, grouped, if_exists, in_bytes};
use crate::args::{FilterArgs, Global};
use crate::job_config::JobConfig;

pub(super) fn filter(global: &Global, args: &FilterArgs) -> Outcome {
    let job = JobConfig::read(&args.config)?;
    let request = FilterRequest {
        dt: args.dt.clone(),
        to: args.to.clone(),
        store: job.store(None)?,
        documents: job.documents.clone(),
        output: job.folder().given(&args.output),
        columns: job.columns()?,
        max_doc_bytes: job.input()?.max_doc_bytes,
        what: if args.flag { FilterOutput::Flags } else { FilterOutput::Survivors },
        if_exists: if_exists(args.replace),
    };
    let session = Session::new(&job, global);
    let summary = session.block_on(|storage, resources, progress| async move {
        nearprint_night::filter(&storage, &request, &resources, &progress).await
    })?;
    let text = text(&summary);
    Ok(session.report("filter", "done", &summary, text))
}

fn text(summary: &FilterSummary) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for night in &summary.nights {
        let stale = if night.stale { " (stale)" } else { "" };
        let _ = writeln!(out, "{}{stale}: {}", night.output, line(&night.counts));
    }
    if summary.nights.len() > 1 {
        let _ = writeln!(out, "{}: {}", summary.output, line(&summary.counts));
    }
    out
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn line(counts: &FilterCounts) -> String {
    let rows = &counts.rows;
    let bad = if counts.n_bad_files > 0 {
        format!("; {} that the run passed over left out", counted(counts.n_bad_files, "file"))
    } else {
        String::new()
    };
    let forgotten = match rows.n_forgotten {
        0 => String::new(),
        n => format!(" + {} forgotten", grouped(n)),
    };
    format!(
        "{} = {} kept + {} dropped + {} skipped{forgotten} + {} in quarantine; {} read, {} written{bad}",
        counted(rows.n_rows, "row"),
        grouped(rows.n_keep),
        grouped(rows.n_drop),
        grouped(rows.n_skip),
        grouped(rows.n_quarantine),
        counted(counts.n_files, "file"),
        in_bytes(counts.bytes_written as f64)
    )
}
