//! The request of a night, from the job file and the arguments, and what every execution of it shares.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nearprint_documents::{DocumentPlace, FileList, TableVersions};
use nearprint_fault::{ErrorKind, Fault, Words, key, words};
use nearprint_night::{MigrationRequest, RunRequest, RunSummary, TrippedBreaker, run, run_on_engine};
use nearprint_pipeline::Resources;
use nearprint_storage::{Progress, RunLock, Storage};
use nearprint_store::Writers;
use nearprint_tasks::Engine;

use crate::args::{BreakerArgs, Global, MigrateArgs, RunArgs};
use crate::documents::place;
use crate::exit_code::{BAD_DATA, Failure, Spent};
use crate::job_config::JobConfig;
use crate::watch;

/// Reads the job of a run, with what its command line says of input and roots.
pub(super) fn job_of(global: &Global, args: &RunArgs) -> Result<JobConfig, Failure> {
    let job = JobConfig::read(&args.config)?.with_input_args(&args.input).with_roots(&args.roots);
    watch::refuse_unusable(&job, args, global.summary_file.as_deref())?;
    Ok(job)
}

/// Returns the lock that a run takes, and how long it waits for it.
pub(super) fn lock_of(job: &JobConfig, args: &RunArgs) -> (Option<PathBuf>, Duration) {
    let lock = args.lock_file.clone().or_else(|| job.lock.clone());
    (lock, Duration::from_secs(args.lock_wait.unwrap_or(job.lock_wait)))
}

/// Returns the failure of a night that breakers stopped.
pub(super) fn stopped(spent: Spent, summary: &RunSummary) -> Failure {
    let why = Words::joined(summary.breakers.iter().map(TrippedBreaker::message), "; ");
    let message = words!["stopped before publishing: ", why];
    Failure { spent: Some(Box::new(spent)), ..Failure::new(BAD_DATA, message) }
}

/// Returns the request of a night. What the command line says goes before the job file.
pub(super) fn request(job: &JobConfig, args: &RunArgs, dt: String) -> Result<RunRequest, Failure> {
    let places = Places {
        documents: documents(job, args)?,
        store: job.store(args.store.as_ref())?,
        references: job.references(&args.references)?,
        output: job.output(args.output.as_ref())?,
    };
    let of_job = of_job(job, places, &args.breakers, &args.config, dt)?;
    Ok(RunRequest {
        pairs: args.pairs.map_or(of_job.pairs, Into::into),
        max_pairs: args.max_pairs.unwrap_or(of_job.max_pairs),
        late: args.late,
        future: args.future,
        replace: args.replace,
        writers: if args.single_writer { Writers::One } else { of_job.writers },
        create_store: args.create_store || of_job.create_store,
        ..of_job
    })
}

/// Returns the requests of a migration. What the command line says goes before the job file.
pub(super) fn migration_request(job: &JobConfig, args: &MigrateArgs) -> Result<MigrationRequest, Failure> {
    let documents = of_manifests(job)?;
    let (store, references, output) = (job.store(None)?, job.references(&[])?, job.output(None)?);
    let places = Places { documents, store, references, output };
    let of_job = of_job(job, places, &args.breakers, &args.config, String::new())?;
    Ok(MigrationRequest {
        run: RunRequest { create_store: args.create_store || of_job.create_store, ..of_job },
        from: job.folder().given(&args.from),
        since: args.since.clone(),
    })
}

/// The places of a night.
struct Places {
    documents: DocumentPlace,
    store: String,
    references: Vec<String>,
    output: String,
}

/// Returns the request of a night as the job file has it.
fn of_job(
    job: &JobConfig,
    places: Places,
    breakers: &BreakerArgs,
    config: &Path,
    dt: String,
) -> Result<RunRequest, Failure> {
    let Places { documents, store, references, output } = places;
    let (keep, columns) = job.keep()?;
    let (profile, analyzer_resources) = job.analyzed()?;
    Ok(RunRequest {
        references,
        columns,
        keep,
        source_column: job.source_column.clone(),
        analyzer_resources,
        input: job.input()?,
        pairs: job.pairs,
        max_pairs: job.max_pairs,
        clusters: job.clusters,
        max_lost_share: job.max_lost_share,
        stubs: job.stubs,
        keep_nights: job.keep_nights,
        writers: job.writers(),
        breakers: job.breakers(breakers),
        preflight: job.preflight(),
        create_store: job.create_store,
        job_file: Some(config.to_owned()),
        ..RunRequest::new(dt, documents, store, output, profile)
    })
}

/// Returns the place of the documents of nights that manifests name the files of.
fn of_manifests(job: &JobConfig) -> Result<DocumentPlace, Failure> {
    Ok(match &job.documents {
        Some(_) => DocumentPlace::from(job.documents(None)?),
        // The nights of such a job have lists of their own.
        None => DocumentPlace::List(FileList::parse("the manifests of the nights", "")),
    })
}

/// Returns the place of the documents. A list, or a path on the command line, goes before that of the job file.
fn documents(job: &JobConfig, args: &RunArgs) -> Result<DocumentPlace, Failure> {
    if args.stale && job.documents.is_none() {
        return of_manifests(job);
    }
    let version = args.documents_version.or(job.documents_version.filter(|_| args.documents.is_none()));
    if args.files_from.is_none() {
        let versions = TableVersions { version, since: args.documents_since };
        return Ok(DocumentPlace::Pattern { pattern: job.documents(args.documents.as_ref())?, versions });
    }
    let place = place(job.folder(), None, args.files_from.as_deref(), version)?;
    place.ok_or_else(|| Failure::usage("give --documents or --files-from"))
}

/// Runs a night, on an engine if there is one.
pub(super) async fn run_night(
    storage: &Storage,
    request: &RunRequest,
    resources: &Resources,
    progress: &Progress,
    engine: Option<&Arc<dyn Engine>>,
) -> Result<RunSummary, Fault> {
    match engine {
        None => run(storage, request, resources, progress).await,
        Some(engine) => run_on_engine(storage, request, resources, progress, engine).await,
    }
}

pub(super) async fn held(lock: Option<PathBuf>, wait: Duration) -> Result<Option<RunLock>, Fault> {
    match lock {
        Some(path) => RunLock::acquire(&path, wait).await.map(Some).map_err(of_lock),
        None => Ok(None),
    }
}

/// Refuses a lock that no run could take, whoever holds it now. Nothing is written.
pub(super) fn refuse_lock(lock: Option<&Path>) -> Result<(), Fault> {
    lock.map_or(Ok(()), |path| RunLock::refuse_forbidden(path).map_err(of_lock))
}

/// Names the setting that an error is about, unless another run holds the lock.
fn of_lock(error: Fault) -> Fault {
    if error.kind() == ErrorKind::TryAgain { error } else { error.within(words![key("lock"), ": "]) }
}
