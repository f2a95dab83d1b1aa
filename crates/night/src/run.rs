//! The nightly run: it turns the documents of a date into pairs, decisions, and the store's next commit.

use std::sync::Arc;

use nearprint_delta::TableLog;
use nearprint_fault::{Fault, Result, key, words};
use nearprint_parquet::CHANGES;
use nearprint_pipeline::{CommandContext, Resources};
use nearprint_profile::ALGORITHM_VERSION;
use nearprint_storage::{Progress, Storage, blocking, remove_dead};
use nearprint_store::maintain::end_dead_removals;
use nearprint_store::{Night, RECORDS, Store, probe_conditional_put};
use nearprint_tasks::Engine;

use super::changes::roll_others_forward;
use super::manifest::Manifest;
use super::plan::{Plan, moved, plan, refuse_forgotten, refuse_future, refuse_late, refuse_republishing};
use super::preflight;
use super::publish::{Attempt, of_staged, publish, still_published};
use super::published::{already_published, manifest_of};
use super::request::RunRequest;
use super::stage::Staging;
use super::summary::RunSummary;
use super::tables::{have_night, newest_set_there, roll_forward};

/// The number of attempts of a run. A run that lost the race for a commit joins again against the new state.
const MAX_ATTEMPTS: usize = 5;

/// Runs a night.
///
/// ```
/// use nearprint_night::{RunRequest, RunStatus, run};
/// use nearprint_pipeline::Resources;
/// use nearprint_storage::{Progress, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents").to_owned();
/// # let [store, output] = ["store", "results"].map(|name| temp.path().join(name).display().to_string());
/// // The documents are "crawl", if the night's files are in crawl/dt=2026-11-19.
/// let profile = nearprint_profile::by_name("default")?;
/// let request = RunRequest::new("2026-11-19", documents, store, output, profile);
/// let request = RunRequest { create_store: true, ..request };
/// let (storage, resources, progress) = (Storage::default(), Resources::default(), Progress::default());
/// let night = run(&storage, &request, &resources, &progress).await?;
/// assert_eq!((night.status, night.commit), (RunStatus::Published, 1));
/// assert_eq!(night.counts.decisions.n_keep + night.counts.decisions.n_drop, 155);
///
/// let again = run(&storage, &request, &resources, &progress).await?;
/// assert_eq!(again.status, RunStatus::AlreadyPublished);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The input is bad, the night is published with other content, or the store has another configuration. Nothing of a
/// run that fails is visible.
pub async fn run(
    storage: &Storage,
    request: &RunRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<RunSummary> {
    run_with(CommandContext { storage, resources, progress, engine: None }, request).await
}

/// Runs a night whose tasks an engine runs. The query batch, the forest and the decisions stay here.
///
/// # Errors
/// Any error of [`run`] occurs, or a task of the engine fails.
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the night has more documents than the memory limit
/// holds, before any work if their number is known.
pub async fn run_on_engine(
    storage: &Storage,
    request: &RunRequest,
    resources: &Resources,
    progress: &Progress,
    engine: &Arc<dyn Engine>,
) -> Result<RunSummary> {
    run_with(CommandContext { storage, resources, progress, engine: Some(engine) }, request).await
}

async fn run_with(work: CommandContext<'_>, request: &RunRequest) -> Result<RunSummary> {
    let (storage, resources) = (work.storage, work.resources);
    request.check(storage, &resources.temp_parent())?;
    remove_dead(&resources.temp_parent(), &request.local_places(storage));
    let mut written = None;
    for _ in 0..MAX_ATTEMPTS {
        match attempt(work, request, written.as_ref()).await? {
            Attempt::Done(summary) => return Ok(*summary),
            Attempt::Outdated => {}
            Attempt::LostRace { generation } => written = Some(generation),
        }
        tracing::warn!("another run committed meanwhile: joining again");
    }
    Err(Fault::try_again(format!("other runs committed {MAX_ATTEMPTS} times meanwhile")))
}

/// Makes the night from the state that the store has now. `written` is the generation that an earlier attempt of this run
/// has written, if one has.
async fn attempt(work: CommandContext<'_>, request: &RunRequest, written: Option<&String>) -> Result<Attempt> {
    let (storage, resources) = (work.storage, work.resources);
    let plan = plan(storage, request).await?;
    let tables = roll_forward(storage, plan.store.folder(), &plan.output, None).await?;
    roll_others_forward(storage, &plan.store, &plan.output).await;
    match course(storage, request, &plan, &tables, written).await? {
        Course::AlreadyPublished => return published_already(storage, plan, request).await,
        // Another run may have published the night since the store was opened.
        Course::UnknownNight if Store::open(plan.store.folder()).await?.night(&request.dt).is_some() => {
            return Ok(Attempt::Outdated);
        }
        Course::UnknownNight => return Err(unknown_night(&plan)),
        Course::Publish => {}
    }
    refuse_before_work(storage, request, &plan, resources).await?;
    if let Some(night) = plan.store.night(&request.dt) {
        warn_of_forgotten(storage, &plan.store, night).await;
    }
    preflight::refuse_unwritable(plan.store.folder(), &plan.output, &request.dt).await?;
    plan.store.probe_conditional_put(request.writers).await?;
    probe_conditional_put(&plan.output.join(RECORDS), request.writers).await?;
    if end_dead_removals(&plan.store).await? {
        return Ok(Attempt::Outdated);
    }
    if let Some(engine) = work.engine.cloned() {
        // A manager of a cluster waits some minutes for the engine, and the documents may take longer to list.
        blocking("engine", move || engine.workers()).await?;
    }
    execute(work, request, plan).await
}

/// Completes a night that is published from the same inputs and configuration, in the same place.
async fn published_already(storage: &Storage, plan: Plan, request: &RunRequest) -> Result<Attempt> {
    preflight::tidy_output(&plan.output, &request.dt).await;
    let published = plan.store.night(&request.dt).ok_or_else(|| internal("a published night is gone"))?;
    plan.store.tidy(published).await;
    let Some(store) = still_published(&plan.store, published).await? else {
        return Ok(Attempt::Outdated);
    };
    let summary = already_published(storage, &store, published).await?;
    Ok(Attempt::Done(Box::new(RunSummary { newest_input: plan.newest_input, ..summary })))
}

fn internal(reason: &str) -> Fault {
    Fault::internal("run", reason)
}

/// What comes next for a night, by what is published.
pub(crate) enum Course {
    /// The night is published from the same inputs and configuration, in the same place.
    AlreadyPublished,
    /// The night is published here and the store does not know it: another store made it, or this one was put back to an
    /// earlier state. It is [refused](unknown_night), unless the store has the night by now.
    UnknownNight,
    /// The night is made and published.
    Publish,
}

/// Decides what a run does with a night. `written` is the generation that this execution has written, if it has.
pub(crate) async fn course(
    storage: &Storage,
    request: &RunRequest,
    plan: &Plan,
    tables: &[TableLog],
    written: Option<&String>,
) -> Result<Course> {
    match plan.store.night(&request.dt) {
        Some(published) if published.request == plan.digest => {
            let is_here = storage.folder(published.output_root())?.is_same_place(&plan.output);
            // With `replace`, a run makes a night again even from the same inputs, which mends damaged files. Once it
            // has written this very generation, a commit of another run that did the same is as good as its own.
            let has_written = written == Some(&published.gen_digest) && published.overruled.is_empty();
            if is_here && (!request.replace || has_written) {
                return Ok(Course::AlreadyPublished);
            }
            if !request.replace {
                return Err(moved(published, plan));
            }
        }
        Some(published) => refuse_republishing(storage, plan, published, request).await?,
        None => {
            refuse_future(plan, request)?;
            refuse_forgotten(&plan.store, request)?;
            refuse_late(&plan.store, request)?;
            if !request.replace && have_night(tables, &request.dt) {
                return Ok(Course::UnknownNight);
            }
        }
    }
    Ok(Course::Publish)
}

/// Refuses a night before its work, as far as nothing has to be written for it.
pub(crate) async fn refuse_before_work(
    storage: &Storage,
    request: &RunRequest,
    plan: &Plan,
    resources: &Resources,
) -> Result<()> {
    refuse_forgotten(&plan.store, request)?;
    resources.refuse_forbidden_temp()?;
    if request.preflight {
        preflight::refuse_full(&resources.temp_parent(), plan)?;
    }
    // A night that is published may only be mended, and adds no set then.
    if plan.store.night(&request.dt).is_none() {
        let log = TableLog::open(&plan.output, &CHANGES).await?;
        newest_set_there(storage, &plan.store, &plan.output, &log).await?;
    }
    Ok(())
}

/// Says that documents of a published night that is made anew were forgotten. A manifest that cannot be read says nothing.
async fn warn_of_forgotten(storage: &Storage, store: &Store, night: &Night) {
    if let Ok(manifest) = manifest_of(storage, store, night).await
        && manifest.n_forgotten() > 0
    {
        tracing::warn!(
            dt = night.dt,
            n = manifest.n_forgotten(),
            "documents of it were forgotten by their ids: its inputs may have them still, so forget them again"
        );
    }
}

pub(crate) fn unknown_night(plan: &Plan) -> Fault {
    let reason = words![
        format!(
            "a night is published here that {} does not know: check the place of the store, name another output, or publish anew with ",
            plan.store.folder().url()
        ),
        key("replace")
    ];
    Fault::output_exists(plan.output.url().to_owned(), reason)
}

async fn execute(work: CommandContext<'_>, request: &RunRequest, mut plan: Plan) -> Result<Attempt> {
    let ignored_inputs = plan.documents.ignored.clone();
    let html_root = plan.documents.html_root().map(str::to_owned);
    let documents = std::mem::take(&mut plan.documents);
    let temp = work.resources.temp_dir()?;
    let mut staged = Staging::new(work, request, &plan, temp.path())?.stage(documents).await?;
    let counted = (&staged.counts, staged.hosts.as_slice(), request.input.allow_empty);
    staged.measured.compare(work.storage, &plan.store, &request.dt, &request.breakers, counted).await;
    let tripped = request.breakers.tripped(&staged.measured);
    if !tripped.is_empty() {
        let summary = of_staged(request.dt.clone(), &plan, staged);
        return Ok(Attempt::Done(Box::new(RunSummary { breakers: tripped, ..summary })));
    }
    let manifest = Manifest {
        version: 1,
        nearprint: env!("CARGO_PKG_VERSION").to_owned(),
        algorithm: ALGORITHM_VERSION,
        dt: request.dt.clone(),
        config_digest: plan.config_digest.clone(),
        inputs: std::mem::take(&mut plan.inputs),
        html_root,
        max_doc_bytes: Some(request.input.max_doc_bytes),
        ignored_inputs,
        bad_files: staged.bad_files.clone(),
        joined: plan.joined.clone(),
        references: staged.references.clone(),
        forgotten_runs: plan.store.forgotten().map(|forgotten| forgotten.runs.clone()),
        counts: staged.counts.clone(),
        forgotten: None,
        files: staged.files.iter().map(|f| f.record.clone()).collect(),
    };
    publish(work.storage, request, &plan, staged, &manifest, work.progress).await
}
