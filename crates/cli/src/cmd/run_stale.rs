//! `nearprint run --stale`: the stale nights, in order of date.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use nearprint_fault::Fault;
use nearprint_night::{RunRequest, RunStatus, RunSummary, made_again};
use nearprint_pipeline::Resources;
use nearprint_storage::{Progress, Storage};
use nearprint_store::NightInfo;
use nearprint_tasks::Engine;
use schemars::JsonSchema;
use serde::Serialize;

use super::night_request::{held, job_of, lock_of, refuse_lock, request, run_night, stopped};
use super::night_text::line;
use super::stale_files::NightlyFiles;
use super::{Outcome, Report, Session, counted};
use crate::args::{Global, RunArgs};
use crate::beside::Beside;
use crate::command_line::command_line;
use crate::embedding::Embedding;

/// The nights that were made again, in order.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Done {
    /// The number of nights that were published again.
    n_published: u64,
    /// The summaries, in order of date. The last one may be that of a night that a breaker stopped.
    nights: Vec<RunSummary>,
    /// The nights that are stale still, those of other outputs among them.
    stale: Vec<String>,
}

/// A stale night.
struct StaleNight {
    dt: String,
    output: String,
    /// It is published in the output of the job.
    is_own: bool,
}

/// The findings of a dry run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WouldRun {
    /// The stale nights of the job's output, in order of date.
    stale: Vec<String>,
}

pub(super) fn run_stale(
    embedding: Embedding,
    global: &Global,
    args: &RunArgs,
    engine: Option<&Arc<dyn Engine>>,
    beside: &Beside,
) -> Outcome {
    let job = job_of(global, args)?;
    let request = request(&job, args, String::new())?;
    let (lock, wait) = lock_of(&job, args);
    let session = Session::within(embedding, &job, global);
    if args.dry_run {
        return would_run(&session, args, request, lock.as_deref());
    }
    let files = NightlyFiles::new(beside, &job, &request.store, args, session.meter());
    let engine = engine.cloned();
    let nightly = files.clone();
    let ended = session.block_on(|storage, resources, progress| async move {
        let _lock = held(lock, wait).await?;
        all(&storage, request, &resources, &progress, engine.as_ref(), &files).await
    });
    let (done, failed) = ended.inspect_err(|failure| nightly.leave_stopped(failure))?;
    let next = done.stale.is_empty().then(|| match &args.store {
        // A check by the job file would look at the store of that.
        Some(store) => command_line(["check", "--store", store.as_typed()]),
        None => command_line(["check", "--config", &*args.config.to_string_lossy()]),
    });
    let report = session.report("run", "done", &done, text(&done)).then(next);
    outcome(&session, report, failed, &done.nights)
}

/// Returns the report of nights that were made one after another. If one failed, or a breaker stopped the last one, the command
/// failed.
pub(super) fn outcome(
    session: &Session,
    report: Report,
    failed: Option<(String, Fault)>,
    nights: &[RunSummary],
) -> Outcome {
    let last = nights.last().filter(|night| night.status == RunStatus::Stopped);
    let failure = match (failed, last) {
        (Some((dt, error)), _) => session.failure(error).with(|fault| fault.within(format!("{dt}: "))),
        (None, Some(night)) => stopped(session.spent(), night),
        (None, None) => return Ok(report),
    };
    Ok(report.but(failure))
}

/// Says which nights would be run, unless one of them cannot be made again: then the run would end there.
fn would_run(session: &Session, args: &RunArgs, request: RunRequest, lock: Option<&Path>) -> Outcome {
    refuse_lock(lock)?;
    let stale = session.block_on(|storage, resources, _| async move {
        let found = stale(&storage, &request).await?;
        warn_of_others(&found);
        let stale: Vec<String> = found.into_iter().filter(|night| night.is_own).map(|night| night.dt).collect();
        for dt in &stale {
            let found = would_run_night(&storage, &request, &resources, dt).await;
            found.map_err(|error| error.within(format!("{dt}: ")))?;
        }
        Ok::<_, Fault>(stale)
    })?;
    let nights = counted(stale.len() as u64, "night");
    let text = match stale.as_slice() {
        [] => "No night of this output is stale (dry run)\n".to_owned(),
        stale => format!(
            "{nights} would be published again, and later ones that become stale thereby: {} (dry run: nothing was written)\n",
            stale.join(", ")
        ),
    };
    let config = args.config.to_string_lossy();
    let places = [("--store", &args.store), ("--output", &args.output)];
    let places = places.into_iter().filter_map(|(flag, place)| Some([flag, place.as_ref()?.as_typed()])).flatten();
    let next = (!stale.is_empty())
        .then(|| command_line(["run", "--config", &*config].into_iter().chain(places).chain(["--stale"])));
    let status = if stale.is_empty() { "none_stale" } else { "would_publish" };
    Ok(session.report("run", status, &WouldRun { stale }, text).then(next))
}

/// Finds what would end the run of a stale night before its work.
async fn would_run_night(
    storage: &Storage,
    request: &RunRequest,
    resources: &Resources,
    dt: &str,
) -> Result<(), Fault> {
    let again = made_again(storage, request, dt).await?;
    nearprint_night::dry_run(storage, &again, resources).await.map(drop)
}

/// Runs one stale night after another. A night that is replaced may make later ones stale, and the store says which.
async fn all(
    storage: &Storage,
    request: RunRequest,
    resources: &Resources,
    progress: &Progress,
    engine: Option<&Arc<dyn Engine>>,
    files: &NightlyFiles,
) -> Result<(Done, Option<(String, Fault)>), Fault> {
    let mut done = Done::default();
    let mut last = String::new();
    // An execution that made the last stale night again may have died before its tables followed.
    nearprint_night::complete_tables(storage, &request.store).await?;
    let mut found = stale(storage, &request).await?;
    warn_of_others(&found);
    loop {
        done.stale = found.iter().map(|night| night.dt.clone()).collect();
        let Some(next) = found.into_iter().find(|night| night.is_own && night.dt > last) else {
            return Ok((done, None));
        };
        let dt = next.dt;
        last.clone_from(&dt);
        tracing::info!(dt, "stale");
        match again(storage, &request, resources, progress, engine, files, &last).await {
            Err(error) => return Ok((done, Some((last, error)))),
            Ok((night, unwritten)) => {
                let stopped = night.status == RunStatus::Stopped;
                done.n_published += u64::from(!stopped);
                done.nights.push(night);
                if let Some(error) = unwritten {
                    done.stale = stale(storage, &request).await?.into_iter().map(|night| night.dt).collect();
                    return Ok((done, Some((last, error))));
                }
                if stopped {
                    return Ok((done, None));
                }
            }
        }
        found = stale(storage, &request).await?;
    }
}

/// Runs a stale night, and leaves its files. Returns its summary, and why one of its files is unwritten.
async fn again(
    storage: &Storage,
    request: &RunRequest,
    resources: &Resources,
    progress: &Progress,
    engine: Option<&Arc<dyn Engine>>,
    files: &NightlyFiles,
    dt: &str,
) -> Result<(RunSummary, Option<Fault>), Fault> {
    files.prepare(dt).await?;
    let made = match made_again(storage, request, dt).await {
        Ok(again) => run_night(storage, &again, resources, progress, engine).await,
        Err(error) => Err(error),
    };
    let unwritten = files.leave(storage, resources, made.as_ref()).await;
    made.map(|night| (night, unwritten))
}

/// Finds the stale nights, in order of date. Those of another output have other rules, and are left to the job that has them.
async fn stale(storage: &Storage, request: &RunRequest) -> Result<Vec<StaleNight>, Fault> {
    let info = nearprint_night::store_info(storage, &request.store).await?;
    let own = storage.folder(&request.output)?;
    let found = info.nights.into_iter().filter(|night| night.stale).map(|NightInfo { dt, output, .. }| {
        let is_own = storage.folder(&output)?.is_same_place(&own);
        Ok(StaleNight { dt, output, is_own })
    });
    found.collect()
}

fn warn_of_others(stale: &[StaleNight]) {
    for StaleNight { dt, output, .. } in stale.iter().filter(|night| !night.is_own) {
        tracing::warn!(dt, output, "stale, and published in another output: run `--stale` with its job file too");
    }
}

fn text(done: &Done) -> String {
    let mut out = String::new();
    for night in &done.nights {
        out.push_str(&line(night));
    }
    let _ = match done.stale.as_slice() {
        [] => writeln!(out, "{} published again; no night is stale", counted(done.n_published, "night")),
        stale => {
            writeln!(out, "{} published again; stale still: {}", counted(done.n_published, "night"), stale.join(", "))
        }
    };
    out
}
