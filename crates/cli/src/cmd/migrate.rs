//! `nearprint store migrate`: the nights of an old store, made again in the store of a new job, in order of date.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use nearprint_fault::Fault;
use nearprint_night::{Migration, MigrationState, RunStatus, RunSummary};
use nearprint_pipeline::Resources;
use nearprint_storage::{Progress, Storage};
use nearprint_tasks::Engine;
use schemars::JsonSchema;
use serde::Serialize;

use super::night_request::{held, migration_request, run_night};
use super::night_text::line;
use super::run_stale::outcome;
use super::{Outcome, Session, counted};
use crate::args::{Global, MigrateArgs};
use crate::command_line::command_line;
use crate::job_config::JobConfig;

/// The summary of `store migrate`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Migrated {
    #[serde(flatten)]
    state: MigrationState,
    /// The number of nights that this execution made.
    n_published: u64,
    /// Their summaries, in order of date. The last one may be that of a night that a breaker stopped.
    nights: Vec<RunSummary>,
}

pub(super) fn migrate(global: &Global, args: &MigrateArgs, engine: Option<&Arc<dyn Engine>>) -> Outcome {
    let job = JobConfig::read(&args.config)?.with_input_args(&args.input);
    let request = migration_request(&job, args).map_err(|failure| job.located(failure))?;
    let session = Session::new(&job, global);
    let (lock, wait) = (job.lock.clone(), Duration::from_secs(job.lock_wait));
    let (engine, dry_run) = (engine.cloned(), args.dry_run);
    let (done, failed) = session.block_on(|storage, resources, progress| async move {
        let _lock = if dry_run { None } else { held(lock, wait).await? };
        let migration = Migration::open(&storage, &request, &resources, &progress).await?;
        if dry_run {
            return Ok((Migrated { state: migration.state, n_published: 0, nights: Vec::new() }, None));
        }
        all(&storage, migration, &resources, &progress, engine.as_ref()).await
    })?;
    let status = match done.state.remaining.is_empty() {
        true if done.n_published == 0 => "already_migrated",
        false if dry_run => "would_migrate",
        _ => "migrated",
    };
    let (config, stale) = (args.config.to_string_lossy(), done.state.stale.is_empty());
    let next = match (dry_run, failed.is_some() || !done.state.remaining.is_empty()) {
        (true, _) | (_, true) => None,
        (false, false) if stale => Some(command_line(["check", "--config", &*config])),
        (false, false) => Some(command_line(["run", "--config", &*config, "--stale"])),
    };
    let report = session.report("store migrate", status, &done, text(&done, dry_run)).then(next);
    outcome(&session, report, failed, &done.nights)
}

/// Makes one night after another. A night that fails ends it, and is returned with its error.
async fn all(
    storage: &Storage,
    migration: Migration,
    resources: &Resources,
    progress: &Progress,
    engine: Option<&Arc<dyn Engine>>,
) -> Result<(Migrated, Option<(String, Fault)>), Fault> {
    migration.complete().await?;
    let mut done = Migrated { state: migration.state.clone(), n_published: 0, nights: Vec::new() };
    let n_nights = migration.state.remaining.len();
    for (position, dt) in (1..).zip(&migration.state.remaining) {
        tracing::info!(dt, "night {position} of {n_nights}");
        let made = match migration.night(dt).await {
            Ok(request) => run_night(storage, &request, resources, progress, engine).await,
            Err(error) => Err(error),
        };
        let night = match made {
            Ok(night) => night,
            Err(error) => return Ok((done, Some((dt.clone(), error)))),
        };
        let is_stopped = night.status == RunStatus::Stopped;
        done.nights.push(night);
        if is_stopped {
            break;
        }
        done.n_published += 1;
        done.state.remaining.remove(0);
        match migration.n_lost_revisits(dt).await {
            Ok(n) => done.state.n_lost_revisits += n,
            Err(error) => return Ok((done, Some((dt.clone(), error)))),
        }
    }
    Ok((done, None))
}

fn text(done: &Migrated, dry_run: bool) -> String {
    let state = &done.state;
    let mut out: String = done.nights.iter().map(line).collect();
    let made = if dry_run {
        format!("{} would be made (dry run: nothing was written)", counted(state.remaining.len() as u64, "night"))
    } else {
        format!("{} made", counted(done.n_published, "night"))
    };
    // Writing to a string cannot fail.
    let there = match state.n_there {
        0 => String::new(),
        n => format!(", {} there before", counted(n, "night")),
    };
    let _ = write!(out, "{}: {made}{there}", state.store);
    let _ = match state.remaining.as_slice() {
        [] => writeln!(out, "; all nights of {} are done", state.from),
        [dt] => writeln!(out, "; remaining: {dt}"),
        [first, .., last] => {
            writeln!(out, "; remaining: {}, {first} to {last}", counted(state.remaining.len() as u64, "night"))
        }
    };
    let mut note = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<10} {text}");
    };
    if let Some(before) = &state.forgotten_before {
        note("forgotten", format!("the old store has forgotten all nights before {before}, so they are not made"));
    }
    if state.n_forgotten_nights > 0 {
        let nights = counted(state.n_forgotten_nights, "night");
        note("forgotten", format!("{nights} of the old store that the new one has forgotten by age"));
    }
    if state.n_left_out > 0 {
        note("left out", format!("{} before --since", counted(state.n_left_out, "night")));
    }
    if state.n_forgotten_documents > 0 {
        let documents = counted(state.n_forgotten_documents, "document");
        note(
            "documents",
            format!(
                "{documents} that the old store forgot by id may be in the inputs: forget them in the new store too"
            ),
        );
    }
    if state.n_lost_revisits > 0 {
        let pages = counted(state.n_lost_revisits, "page");
        note(
            "revisits",
            format!(
                "the new nights lack {pages} of the old ones: by the WARC files, their texts are those of earlier nights, which the \
                 new store does not have; delete neither the old store nor its results"
            ),
        );
    }
    if !state.stale.is_empty() {
        note("stale", format!("{}: made with other earlier nights", state.stale.join(", ")));
    }
    out
}
