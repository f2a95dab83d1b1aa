//! `nearprint run`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use nearprint_documents::night_pattern;
use nearprint_explain::legible;
use nearprint_fault::Fault;
use nearprint_night::{NightSource, RunRequest, RunStatus, RunSummary, TextSource};
use nearprint_pipeline::{is_late, is_without_documents};
use nearprint_report::ReportRequest;
use nearprint_storage::{IfExists, OutputFile, Requests, Storage};
use nearprint_tasks::Engine;

use super::dry_run;
use super::night_request::{held, job_of, lock_of, refuse_lock, request, run_night};
use super::night_summary::report_of;
use super::night_text::text;
use super::report::{line, page_request, write_page};
use super::run_stale::run_stale;
use super::{Outcome, Session, grouped, text_source};
use crate::args::{Global, RunArgs};
use crate::beside::Beside;
use crate::command_line::command_line;
use crate::embedding::Embedding;
use crate::exit_code::{Failure, INPUT_MISSING};
use crate::job_config::JobConfig;

pub(super) fn run(
    embedding: Embedding,
    global: &Global,
    args: &RunArgs,
    engine: Option<&Arc<dyn Engine>>,
    beside: &Beside,
) -> Outcome {
    let Some(dt) = &args.dt else { return run_stale(embedding, global, args, engine, beside) };
    let job = job_of(global, args)?;
    let request = request(&job, args, dt.clone()).map_err(|failure| job.located(failure))?;
    let page = page(&job, args, &request)?;
    let (lock, lock_wait) = lock_of(&job, args);
    let session = Session::within(embedding, &job, global);
    let asked_code = Arc::new(AtomicU8::new(0));
    let asked = Arc::clone(&asked_code);
    let with_asked_code = |failure: Failure| match asked_code.load(Ordering::Relaxed) {
        0 => failure,
        code => Failure { code, ..failure },
    };
    let codes = (args.empty_exit_code, args.late_exit_code);
    if args.dry_run {
        let found = session.block_on(|storage, resources, _| async move {
            refuse_lock(lock.as_deref())?;
            let found = nearprint_night::dry_run(&storage, &request, &resources).await;
            asked.store(found.as_ref().err().map_or(0, |error| code_of(error, codes)), Ordering::Relaxed);
            found
        });
        let found = found.map_err(with_asked_code)?;
        let status = if found.would_publish { "would_publish" } else { "already_published" };
        return Ok(session.report("run", status, &found, dry_run::text(&found, global.verbose > 0)));
    }
    let (breakers, engine) = (request.breakers, engine.cloned());
    let done = session.block_on(|storage, resources, progress| async move {
        refuse_page(&storage, page.as_ref()).await?;
        let _lock = held(lock, lock_wait).await?;
        let done = run_night(&storage, &request, &resources, &progress, engine.as_ref()).await;
        asked.store(done.as_ref().err().map_or(0, |error| code_of(error, codes)), Ordering::Relaxed);
        let summary = done?;
        // A night that breakers stopped is not published: its page would be that of an earlier generation.
        let page = match &page {
            Some((html, request)) if summary.breakers.is_empty() => {
                Some(write_page(&storage, html, request, &resources).await)
            }
            _ => None,
        };
        Ok::<_, Fault>((summary, page))
    });
    let (summary, page) = done.map_err(with_asked_code)?;
    let mut text =
        text(&summary, &breakers, global.verbose > 0) + &session.requests().map(requests_line).unwrap_or_default();
    if let Some(Ok(page)) = &page {
        text += &line(page);
    }
    let (page, unwritten) = match page.transpose() {
        Ok(page) => (page, None),
        Err(error) => (None, Some(session.failure(error))),
    };
    let report = report_of(&summary, page, unwritten, session.spent(), text);
    Ok(report.then(next(args, &job, &summary)))
}

/// Returns the code that the user asks for after an error, of those for a night without documents and for a late crawl.
/// 0: none.
fn code_of(error: &Fault, (empty, late): (u8, u8)) -> u8 {
    match (is_without_documents(error), is_late(error)) {
        (true, _) if empty != INPUT_MISSING => empty,
        (_, true) => late,
        _ => 0,
    }
}

/// Returns the command that shows why two documents of a cluster that stopped a night are near-duplicates.
fn explained(args: &RunArgs, job: &JobConfig, summary: &RunSummary) -> Option<String> {
    let mut ids = summary.breakers.iter().find(|breaker| breaker.ids().count() > 1)?.ids();
    let (one, other) = (ids.next()?, ids.next()?);
    // A cut id names no document, and one with control characters is no word of a command line.
    let is_word = |id: &str| !id.ends_with(CUT) && legible(id) == id;
    if args.files_from.is_some() || !is_word(one) || !is_word(other) {
        return None;
    }
    let documents = match &args.documents {
        Some(given) => given.as_typed().to_owned(),
        None => job.folder().typed(job.documents.as_ref()?),
    };
    let documents = night_pattern(&documents, &summary.dt);
    let config = args.config.to_string_lossy();
    Some(command_line(["explain", "--config", &*config, "--documents", &documents, "--", one, other]))
}

/// The end of an id that evidence shortens.
const CUT: char = '…';

/// Returns the command that a user would run after a night.
fn next(args: &RunArgs, job: &JobConfig, summary: &RunSummary) -> Option<String> {
    let config_path = args.config.to_string_lossy();
    let (config, dt) = (["--config", &*config_path], ["--dt", summary.dt.as_str()]);
    let line = |command: &[&str]| Some(command_line(command.iter().chain(&config).chain(&dt)));
    match (&summary.status, &args.store, &args.documents) {
        (RunStatus::Stopped, ..) => explained(args, job, summary),
        // In the order in which people work: what is wrong first.
        (_, None, None) if !summary.stale.is_empty() => {
            Some(command_line(["run", "--config", &*config_path, "--stale"]))
        }
        // Commands that read the job file's places would look at others.
        (_, Some(store), _) => Some(command_line(["check", "--store", store.as_typed(), "--dt", &summary.dt])),
        (_, None, Some(_)) => line(&["check"]),
        (_, None, None) => line(&["report"]),
    }
}

/// Returns the place of the night's page, and the request for it.
fn page(job: &JobConfig, args: &RunArgs, run: &RunRequest) -> Result<Option<(String, ReportRequest)>, Failure> {
    let Some(html) = &args.report else {
        return Ok(None);
    };
    let documents = job.documents(args.documents.as_ref()).ok();
    let texts = TextSource { documents, ..text_source(job)? };
    let night = NightSource { dt: run.dt.clone(), store: run.store.clone(), texts };
    Ok(Some((job.folder().given(html), page_request(job, night)?)))
}

/// Refuses the place of a page before any work, if the page cannot be written there.
async fn refuse_page(storage: &Storage, page: Option<&(String, ReportRequest)>) -> Result<(), Fault> {
    match page {
        Some((html, _)) => OutputFile::try_new(storage, html, IfExists::Replace).await.map(drop),
        None => Ok(()),
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
