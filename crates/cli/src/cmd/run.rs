//! `nearprint run`.

use std::fmt::Write;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nearprint_dataset::DocumentPlace;
use nearprint_pipeline::{
    Breakers, JoinedReference, PipelineError, RunCounts, RunRequest, RunStatus, RunSummary, run_elsewhere,
};
use nearprint_storage::{Requests, Roots, RunLock};
use nearprint_store::Writers;
use nearprint_study::{ReportRequest, legible, percent};

use super::dry_run;
use super::notices::noticed;
use super::report::{line, page_request, write_page};
use super::run_stale::run_stale;
use super::{Engine, Outcome, Session, counted, grouped};
use crate::args::{Global, RunArgs};
use crate::command_line::command_line;
use crate::documents::place;
use crate::exit_code::{BAD_DATA, Failure};
use crate::flags::with_flags;
use crate::host::Host;
use crate::job_config::JobConfig;

pub(super) fn run(host: Host, global: &Global, args: &RunArgs, elsewhere: Option<&Engine>) -> Outcome {
    let Some(dt) = &args.dt else { return run_stale(host, global, args, elsewhere) };
    let job = JobConfig::read(&args.config)?.with_input_args(&args.input);
    let request = request(&job, args, dt.clone())?;
    let page = page(&job, args, &request)?;
    let lock = args.lock_file.clone().or_else(|| job.lock.clone());
    let lock_wait = Duration::from_secs(args.lock_wait.unwrap_or(job.lock_wait));
    let session = Session::within(host, &job, global);
    if let Some((html, _)) = &page {
        let read = job.files_read(Some(&args.config));
        session.refuse_overwriting(("report", html), &request.documents, &read)?;
    }
    let no_documents = Arc::new(AtomicBool::new(false));
    let found_none = Arc::clone(&no_documents);
    let of_empty = |failure: Failure| match no_documents.load(Ordering::Relaxed) {
        true => Failure { code: args.empty_exit_code, ..failure },
        false => failure,
    };
    let is_empty = |error: Option<&PipelineError>| error.is_some_and(PipelineError::is_without_documents);
    if args.dry_run {
        let found = session.block_on(|storage, resources, _| async move {
            let found = nearprint_pipeline::dry_run(&storage, &request, &resources).await;
            found_none.store(is_empty(found.as_ref().err()), Ordering::Relaxed);
            found
        });
        let found = found.map_err(of_empty)?;
        let status = if found.would_publish { "would_publish" } else { "already_published" };
        return Ok(session.report("run", status, &found, dry_run::text(&found)));
    }
    let (breakers, elsewhere) = (request.breakers, elsewhere.cloned());
    let done = session.block_on(|storage, resources, progress| async move {
        let _lock = held(lock, lock_wait).await?;
        let done = match &elsewhere {
            None => nearprint_pipeline::run(&storage, &request, &resources, &progress).await,
            Some(engine) => run_elsewhere(&storage, &request, &resources, &progress, engine).await,
        };
        found_none.store(is_empty(done.as_ref().err()), Ordering::Relaxed);
        let summary = done?;
        // A night that breakers stopped is not published: its page would be that of an earlier generation.
        let page = match &page {
            Some((html, request)) if summary.breakers.is_empty() => Some(write_page(&storage, html, request).await),
            _ => None,
        };
        Ok::<_, PipelineError>((summary, page))
    });
    let (summary, page) = done.map_err(of_empty)?;
    let mut text = text(&summary, &breakers) + &session.requests().map(requests_line).unwrap_or_default();
    if let Some(Ok(page)) = &page {
        text += &line(page);
    }
    let mut report = session.report("run", summary.status.name(), &summary, text).then(next(args, &summary));
    match page {
        Some(Ok(page)) => report.json["page"] = serde_json::json!(page),
        // The night is published, and the next try finds it so.
        Some(Err(error)) => {
            let failure = session.failure(error);
            let message = format!("the night is published, but not its page: {}", failure.message);
            return Ok(report.but(Failure { message, requests: session.requests().map(Box::new), ..failure }));
        }
        None => {}
    }
    if summary.breakers.is_empty() {
        return Ok(report);
    }
    let mut report = report.but(stopped(&session, &summary));
    report.json["status"] = summary.status.name().into();
    Ok(report)
}

/// Returns the failure of a night that breakers stopped.
pub(super) fn stopped(session: &Session, summary: &RunSummary) -> Failure {
    let why: Vec<String> = summary.breakers.iter().map(|breaker| with_flags("run", &breaker.message())).collect();
    let message = format!("stopped before publishing: {}", why.join("; "));
    Failure { requests: session.requests().map(Box::new), ..Failure::new(BAD_DATA, message) }
}

/// Returns the request of a night. What the command line says goes before the job file.
pub(super) fn request(job: &JobConfig, args: &RunArgs, dt: String) -> Result<RunRequest, Failure> {
    let (keep, columns) = job.keep()?;
    Ok(RunRequest {
        dt,
        documents: documents(job, args)?,
        store: job.required("store", args.store.as_ref().or(job.store.as_ref()))?,
        references: if args.references.is_empty() { job.references.clone() } else { args.references.clone() },
        output: job.required("output", args.output.as_ref().or(job.output.as_ref()))?,
        columns,
        keep,
        source_column: job.source_column.clone(),
        profile: job.profile_config()?,
        analyzer_resources: job.analyzer_resources()?,
        input: job.input()?,
        pairs: args.pairs.map_or(job.pairs, Into::into),
        max_pairs: args.max_pairs.unwrap_or(job.max_pairs),
        clusters: job.clusters,
        max_lost_share: job.max_lost_share,
        late: args.late,
        replace: args.replace,
        keep_nights: job.keep_nights,
        writers: if args.single_writer { Writers::One } else { job.writers() },
        breakers: job.breakers(&args.breakers),
        roots: Roots(if args.roots.is_empty() { job.roots.clone() } else { args.roots.clone() }),
        preflight: job.preflight(),
        create_store: args.create_store || job.create_store,
        job_file: Some(args.config.clone()),
    })
}

/// Returns the command that a user would run after a night.
fn next(args: &RunArgs, summary: &RunSummary) -> Option<String> {
    let config_path = args.config.to_string_lossy();
    let (config, dt) = (["--config", &*config_path], ["--dt", summary.dt.as_str()]);
    let line = |command: &[&str]| Some(command_line(command.iter().chain(&config).chain(&dt)));
    match (&summary.status, &args.store, &args.documents) {
        (RunStatus::Stopped, ..) => None,
        // In the order in which people work: what is wrong first.
        (_, None, None) if !summary.stale.is_empty() => {
            Some(command_line(["run", "--config", &*config_path, "--stale"]))
        }
        // Commands that read the job file's places would look at others.
        (_, Some(store), _) => Some(command_line(["check", "--store", store, "--dt", &summary.dt])),
        (_, None, Some(_)) => line(&["check"]),
        (_, None, None) => line(&["report"]),
    }
}

/// Returns the place of the night's page, and the request for it.
fn page(job: &JobConfig, args: &RunArgs, run: &RunRequest) -> Result<Option<(String, ReportRequest)>, Failure> {
    let Some(html) = &args.report else {
        return Ok(None);
    };
    // The report looks for texts where the documents of all nights are. Files of a list may be anywhere.
    let documents = args.documents.as_ref().or(job.documents.as_ref()).map_or("", String::as_str);
    let request = page_request(job, &run.dt, &run.store, documents)?;
    Ok(Some((html.clone(), request)))
}

/// Returns the place of the documents. A list, or a path on the command line, goes before that of the job file.
fn documents(job: &JobConfig, args: &RunArgs) -> Result<DocumentPlace, Failure> {
    let version = args.documents_version.or(job.documents_version.filter(|_| args.documents.is_none()));
    let pattern = args.documents.as_ref().or(job.documents.as_ref());
    match place(pattern, args.files_from.as_deref(), version)? {
        Some(place) => Ok(place),
        None => Ok(job.required("documents", None)?.into()),
    }
}

pub(super) async fn held(lock: Option<PathBuf>, wait: Duration) -> Result<Option<RunLock>, PipelineError> {
    match lock {
        Some(path) => Ok(Some(RunLock::acquire(&path, wait).await?)),
        None => Ok(None),
    }
}

fn requests_line(requests: Requests) -> String {
    let Requests { get, head, list, put, delete, post, retries, .. } = requests;
    let kinds = format!("GET {get}, HEAD {head}, LIST {list}, PUT {put}, DELETE {delete}, POST {post}");
    format!(
        "  {:<10} {:>12}  to object stores: {kinds}; {retries} tried again\n",
        "requests",
        grouped(requests.total())
    )
}

/// Formats the summary for people.
pub(super) fn text(summary: &RunSummary, breakers: &Breakers) -> String {
    let mut out = String::new();
    let status = summary.status.name().replace('_', " ");
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} {status}: {} (commit {})", summary.dt, summary.output, summary.commit);
    counts(&mut out, &summary.counts, &summary.references);
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

fn counts(out: &mut String, counts: &RunCounts, references: &[JoinedReference]) {
    let documents = &counts.documents;
    let mut line = |name: &str, n: u64, note: String| {
        let _ = writeln!(out, "  {name:<10} {:>12}{note}", grouped(n));
    };
    line(
        "documents",
        documents.n_documents,
        format!("  files: {}, recrawled: {}", grouped(documents.n_files), grouped(counts.n_same_id)),
    );
    let of = if references.is_empty() { "" } else { " and references" };
    line("existing", counts.n_existing, format!("  fingerprints of earlier nights{of}"));
    for JoinedReference { store, commit, n_nights, n_existing, .. } in references {
        let note = format!("  of these from {}, {} at commit {commit}", legible(store), counted(*n_nights, "night"));
        line("reference", *n_existing, note);
    }
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
    if decisions.n_superseded > 0 {
        let note = "  earlier kept documents in fuller ones of this night";
        line("superseded", decisions.n_superseded, note.to_owned());
    }
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
    if let Some(star) = decisions.star {
        let share =
            decisions.kept_of_bound().map_or(String::new(), |share| format!("; {} of it are kept", percent(share)));
        let in_vain = match star.n_kept_in_vain {
            0 => String::new(),
            n => format!(", and {} in vain", grouped(n)),
        };
        let more = grouped(star.n_kept_beyond_component);
        let note = format!("  at most in any keep order{share}{in_vain}; component clusters would drop {more} more");
        line("keep bound", star.n_keep_bound, note);
    }
    if documents.n_passed_records > 0 {
        let by_reason =
            documents.passed_records_by_reason.iter().map(|(reason, n)| format!("{} {reason}", grouped(*n)));
        let note = format!("  records that are no documents: {}", by_reason.collect::<Vec<_>>().join(", "));
        line("passed over", documents.n_passed_records, note);
    }
    if documents.n_bad_rows > 0 {
        let by_reason = documents.bad_rows_by_reason.iter().map(|(reason, n)| format!("{} {reason}", grouped(*n)));
        let note = format!("  rows that are no documents: {}", by_reason.collect::<Vec<_>>().join(", "));
        line("quarantine", documents.n_bad_rows, note);
    }
    if documents.n_bad_files > 0 {
        line("bad files", documents.n_bad_files, "  passed over; the manifest lists them".to_owned());
    }
}
