//! `nearprint explain` with one id: what each night decided about a document.

use std::fmt::Write;

use nearprint_explain::{legible, shown_id};
use nearprint_fault::percent;
use nearprint_night::{DocumentHistory, DocumentNight, Representative, Standing};
use nearprint_parquet::schema::{DROP, KEEP};
use nearprint_pipeline::{STUB, is_near_duplicate};
use nearprint_report::{DocumentRequest, ExplainedDocument, explain_document as explained};

use super::pair_text::diff;
use super::{Outcome, Session, counted, grouped, text_source};
use crate::args::{ExplainArgs, Global};
use crate::command_line::command_line;
use crate::exit_code::Failure;
use crate::job_config::JobConfig;

pub(super) fn explain_document(global: &Global, args: &ExplainArgs, job: &JobConfig, id: &str) -> Outcome {
    let Some(config) = args.profile.config.as_ref() else {
        return Err(Failure::usage("one id is looked up in the nights of a job: give --config, or two ids"));
    };
    if args.documents.is_some() || args.files_from.is_some() {
        let reason = "one id is looked up in the nights of the job, and its text in their documents: leave --documents and \
                      --files-from out, or give two ids";
        return Err(Failure::usage(reason));
    }
    let request = DocumentRequest {
        store: job.store(None)?,
        id: id.to_owned(),
        n_examples: args.examples,
        texts: text_source(job)?,
        profile: job.profile_config()?,
        analyzer_resources: job.analyzer_resources()?,
    };
    let session = Session::new(job, global);
    let found =
        session.block_on(|storage, resources, _| async move { explained(&storage, &request, &resources).await })?;
    let (night, history) = (newest(&found.history)?, &found.history);
    let representative = history.representative.as_ref();
    let next = representative.filter(|_| found.is_left_out && job.documents.is_some()).map(|representative| {
        command_line(["explain", &history.id, &representative.id, "--config", &*config.to_string_lossy()])
    });
    Ok(session.report("explain", became(night), &found, text(&found, night)).then(next))
}

fn newest(history: &DocumentHistory) -> Result<&DocumentNight, Failure> {
    history.newest_state().ok_or_else(|| Failure::bug("a document without a night"))
}

/// Returns the word for what became of a document in a night.
fn became(night: &DocumentNight) -> &'static str {
    match night.decision.as_str() {
        KEEP => "kept",
        DROP => "dropped",
        _ => "skipped",
    }
}

// Writing to a string cannot fail.
fn text(found: &ExplainedDocument, newest: &DocumentNight) -> String {
    let history = &found.history;
    let mut out = String::new();
    let reason = newest.reason.as_ref().map_or(String::new(), |reason| format!(" ({})", reason.replace('_', " ")));
    let _ = writeln!(
        out,
        "{}: {} on {}{reason}",
        shown_id(&history.id),
        became(newest),
        newest.decided_again_on.as_ref().unwrap_or(&newest.dt)
    );
    let forgotten = history.forgotten_before.as_ref();
    let forgotten = forgotten.map_or(String::new(), |before| format!("; nights before {before} are forgotten"));
    let _ = writeln!(
        out,
        "  in {} of {} of {} (commit {}){forgotten}; first seen on {}, its text is that of {}",
        grouped(history.nights.len() as u64),
        counted(history.n_nights, "night"),
        history.store,
        history.commit,
        history.first_seen,
        history.last_changed
    );
    let _ = writeln!(out, "\n  night       decision         text     represented by");
    for night in &history.nights {
        line(&mut out, night);
    }
    if let Some(representative) = &history.representative {
        let _ = writeln!(out, "\n{}", standing(representative));
    } else if newest.reason.as_deref() == Some(STUB) {
        let _ = writeln!(out, "\nNo night has it with a text of its own: see the dataset stubs");
    } else if newest.decision == DROP {
        let _ = writeln!(out, "\nThe document that represented it was forgotten");
    }
    represents(&mut out, history);
    match (&found.pair, &found.not_compared) {
        (Some(pair), _) => diff(&mut out, pair, ["this one", "the one that represents it"]),
        (None, Some(reason)) => drop(writeln!(out, "The texts were not compared: {}", legible(reason))),
        (None, None) => {}
    }
    out
}

fn line(out: &mut String, night: &DocumentNight) {
    let decided = night.reason.as_ref().map_or("", String::as_str).replace('_', " ");
    let by = night.canonical_id.as_ref().map_or(String::new(), |id| {
        let store = night.reference.as_ref().map_or(String::new(), |store| format!(" of reference {}", legible(store)));
        let distance = night.distance.map(|distance| format!("distance {distance}"));
        let lost = night.lost_share.filter(|_| is_near_duplicate(&decided));
        let lost = lost.map(|share| format!("loses {} of it", percent(share)));
        let how: Vec<String> = distance.into_iter().chain(lost).collect();
        let how = if how.is_empty() { String::new() } else { format!("  ({})", how.join(", ")) };
        format!("{}{store}{how}", shown_id(id))
    });
    let stale = if night.stale { "  stale" } else { "" };
    let again = night.decided_again_on.as_ref().map_or(String::new(), |dt| format!("  decided again on {dt}"));
    let line = format!("  {}  {:<5} {:<10} {:<8} {by}{again}{stale}", night.dt, night.decision, decided, night.recrawl);
    let _ = writeln!(out, "{}", line.trim_end());
    if let Some(reason) = &night.unread {
        let _ = writeln!(out, "              {}", legible(reason));
    }
}

/// Says what became of the document that represents another one.
fn standing(of: &Representative) -> String {
    let (id, dt) = (shown_id(&of.id), of.dt.as_deref().unwrap_or("-"));
    let changed = of.then.as_ref().is_some_and(|then| then.text_changed);
    let text = if changed { ", but its text has changed since" } else { "" };
    match of.standing {
        Standing::Kept => format!("{id} stands: {dt} kept it{text}"),
        Standing::Dropped => {
            let by = of.canonical_id.as_ref().map_or(String::new(), |id| format!(" for {}", shown_id(id)));
            format!("{id} stands no more: {dt} dropped it{by}{text}")
        }
        Standing::Empty => format!("{id} stands no more: it has no text on {dt}"),
        Standing::Gone => format!("{id} stands no more: no night has it"),
        Standing::InReference => {
            let store = of.reference.as_deref().map_or(String::new(), legible);
            format!("{id} is a document of the reference store {store}, which was not read")
        }
    }
}

fn represents(out: &mut String, history: &DocumentHistory) {
    if let Some(reason) = &history.not_counted {
        let _ = writeln!(out, "\nThe documents that it represents were not counted: {}", legible(reason));
    }
    let Some(represents) = history.represents.as_ref().filter(|of| of.n_documents > 0) else { return };
    let _ = writeln!(out, "\nIt represents {}", counted(represents.n_documents, "document"));
    for id in &represents.examples {
        let _ = writeln!(out, "  {}", shown_id(id));
    }
    let more = represents.n_documents - represents.examples.len() as u64;
    if more > 0 {
        let _ = writeln!(out, "  and {} more: --examples N", grouped(more));
    }
}
