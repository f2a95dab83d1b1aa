//! `nearprint idf`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use nearprint_pipeline::IdfRequest;

use super::{Outcome, Session, grouped};
use crate::args::{Global, IdfBuildArgs, IdfCommand};
use crate::exit_code::Failure;
use crate::job_config::JobConfig;

pub(super) fn idf(global: &Global, command: &IdfCommand) -> Outcome {
    match command {
        IdfCommand::Build(args) => build(global, args),
    }
}

fn build(global: &Global, args: &IdfBuildArgs) -> Outcome {
    let mut job = JobConfig::read_or_default(args.profile.config.as_deref())?.with_profile_args(&args.profile)?;
    // It may name the table that is to be made.
    job.idf = None;
    let exists = format!("{} exists: name another file, or replace it with --replace", args.output.display());
    if args.output.exists() && !args.replace {
        return Err(Failure { code: 73, message: exists });
    }
    let (_, mut columns) = job.keep()?;
    // Only ids and texts are read.
    columns.keep.clear();
    let request = IdfRequest {
        documents: args.documents.clone(),
        columns,
        profile: job.profile_config()?,
        analyzer_resources: job.analyzer_resources()?,
        min_documents: args.min_documents,
    };
    let session = Session::new(&job, global);
    let work = nearprint_pipeline::build_idf(&session.storage, &request, &session.progress);
    let (summary, table) = session.block_on(work)?;
    write_whole(&args.output, &table)
        .map_err(|e| Failure { code: 74, message: format!("{}: {e}", args.output.display()) })?;
    let text = format!(
        "{}: {} tokens of {} documents\n",
        args.output.display(),
        grouped(summary.n_features),
        grouped(summary.n_documents)
    );
    Ok(session.report("idf build", "done", &summary, text))
}

/// All of the file or none of it: written beside its place and renamed.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let mut file = File::create(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&part, path)
}
