//! `nearprint filter`.

use std::fmt::Write;

use nearprint_documents::FilterOutput;
use nearprint_night::{FilterCounts, FilterRequest, FilterSummary, Selection};

use super::{Outcome, Session, counted, grouped, if_exists, in_bytes, text_source};
use crate::args::{FilterArgs, Global, TextForm};
use crate::command_line::command_line;
use crate::job_config::JobConfig;

pub(super) fn filter(global: &Global, args: &FilterArgs) -> Outcome {
    let job = JobConfig::read(&args.config)?;
    let request = FilterRequest {
        selection: selection(args),
        store: job.store(None)?,
        source: text_source(&job)?,
        output: job.folder().given(&args.output),
        what: if args.flag { FilterOutput::Flags } else { FilterOutput::Survivors },
        texts: args.texts.map(TextForm::format),
        if_exists: if_exists(args.replace),
    };
    let session = Session::new(&job, global);
    let summary = session.block_on(|storage, resources, progress| async move {
        nearprint_night::filter(&storage, &request, &resources, &progress).await
    })?;
    let text = text(args, &summary);
    Ok(session.report("filter", "done", &summary, text))
}

fn selection(args: &FilterArgs) -> Selection {
    match &args.dt {
        Some(dt) if args.new => Selection::New { dt: dt.clone(), allow_gone: args.allow_gone },
        Some(dt) if !args.corpus => Selection::Nights { dt: dt.clone(), to: args.to.clone() },
        // Without a date, it is the whole corpus.
        to => Selection::Corpus { to: to.clone(), allow_gone: args.allow_gone },
    }
}

fn text(args: &FilterArgs, summary: &FilterSummary) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for night in &summary.nights {
        let stale = if night.stale { " (stale)" } else { "" };
        let _ = writeln!(out, "{}{stale}: {}", night.output, line(&night.counts));
    }
    if summary.nights.len() != 1 {
        let _ = writeln!(out, "{}: {}", summary.output, line(&summary.counts));
    }
    if let Some(n) = summary.n_removed {
        let _ = writeln!(out, "{}/_removed: {} to take away before", summary.output, counted(n, "id"));
    }
    if let Some(n) = summary.n_gone.filter(|&n| n > 0) {
        let gone = counted(n, "document");
        let _ =
            writeln!(out, "{}/_gone: {gone} not written, because the input with their texts is gone", summary.output);
    }
    if let Some(before) = &summary.forgotten_before {
        let _ = writeln!(
            out,
            "the store has forgotten the nights before {before}: documents that only they had left the corpus, and are in no list; \
             take it whole with --corpus from time to time"
        );
    }
    if summary.n_repeated > 0 {
        let _ = writeln!(
            out,
            "hint: {} written more than once, because several nights keep the same document: {} --corpus writes each document once, \
             --new what a night changes",
            counted(summary.n_repeated, "row"),
            command_line(["filter", "--config", &args.config.display().to_string()])
        );
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
    let others = [(rows.n_replaced, "replaced"), (rows.n_unchanged, "unchanged"), (rows.n_forgotten, "forgotten")];
    let others = others.into_iter().filter(|&(n, _)| n > 0).map(|(n, what)| format!(" + {} {what}", grouped(n)));
    let others: String = others.collect();
    format!(
        "{} = {} kept + {} dropped + {} skipped{others} + {} in quarantine; {} read, {} written{bad}",
        counted(rows.n_rows, "row"),
        grouped(rows.n_keep),
        grouped(rows.n_drop),
        grouped(rows.n_skip),
        grouped(rows.n_quarantine),
        counted(counts.n_files, "file"),
        in_bytes(counts.bytes_written as f64)
    )
}
