//! The request of a night, from the job file and the arguments, and what every execution of it shares.

use std::path::PathBuf;
use std::time::Duration;

use nearprint_documents::DocumentPlace;
use nearprint_fault::{Fault, Words, words};
use nearprint_night::{RunRequest, RunSummary, TrippedBreaker};
use nearprint_storage::RunLock;
use nearprint_store::Writers;

use super::Session;
use crate::args::RunArgs;
use crate::documents::place;
use crate::exit_code::{BAD_DATA, Failure};
use crate::job_config::JobConfig;

/// Returns the failure of a night that breakers stopped.
pub(super) fn stopped(session: &Session, summary: &RunSummary) -> Failure {
    let why = Words::joined(summary.breakers.iter().map(TrippedBreaker::message), "; ");
    let message = words!["stopped before publishing: ", why];
    Failure { spent: Some(Box::new(session.spent())), ..Failure::new(BAD_DATA, message) }
}

/// Returns the request of a night. What the command line says goes before the job file.
pub(super) fn request(job: &JobConfig, args: &RunArgs, dt: String) -> Result<RunRequest, Failure> {
    let (keep, columns) = job.keep()?;
    let (documents, store) = (documents(job, args)?, job.store(args.store.as_ref())?);
    let (references, output) = (job.references(&args.references)?, job.output(args.output.as_ref())?);
    let profile = job.profile_config()?;
    Ok(RunRequest {
        references,
        columns,
        keep,
        source_column: job.source_column.clone(),
        analyzer_resources: job.analyzer_resources()?,
        input: job.input()?,
        pairs: args.pairs.map_or(job.pairs, Into::into),
        max_pairs: args.max_pairs.unwrap_or(job.max_pairs),
        clusters: job.clusters,
        max_lost_share: job.max_lost_share,
        late: args.late,
        future: args.future,
        replace: args.replace,
        keep_nights: job.keep_nights,
        writers: if args.single_writer { Writers::One } else { job.writers() },
        breakers: job.breakers(&args.breakers),
        preflight: job.preflight(),
        create_store: args.create_store || job.create_store,
        job_file: Some(args.config.clone()),
        ..RunRequest::new(dt, documents, store, output, profile)
    })
}

/// Returns the place of the documents. A list, or a path on the command line, goes before that of the job file.
fn documents(job: &JobConfig, args: &RunArgs) -> Result<DocumentPlace, Failure> {
    let version = args.documents_version.or(job.documents_version.filter(|_| args.documents.is_none()));
    if args.files_from.is_none() {
        return Ok(DocumentPlace::Pattern { pattern: job.documents(args.documents.as_ref())?, version });
    }
    let place = place(job.folder(), None, args.files_from.as_deref(), version)?;
    place.ok_or_else(|| Failure::usage("give --documents or --files-from"))
}

pub(super) async fn held(lock: Option<PathBuf>, wait: Duration) -> Result<Option<RunLock>, Fault> {
    match lock {
        Some(path) => Ok(Some(RunLock::acquire(&path, wait).await?)),
        None => Ok(None),
    }
}
