//! `nearprint idf`.

use nearprint_measure::IdfRequest;
use nearprint_storage::LocalFile;

use super::{Outcome, Session, counted, if_exists};
use crate::args::{Global, IdfBuildArgs, IdfCommand};
use crate::job_config::JobConfig;

pub(super) fn idf(global: &Global, command: &IdfCommand) -> Outcome {
    match command {
        IdfCommand::Build(args) => build(global, args),
    }
}

fn build(global: &Global, args: &IdfBuildArgs) -> Outcome {
    let mut job = JobConfig::read_or_default(args.profile.config.as_deref())?.with_profile_args(&args.profile)?;
    // The job file may name the table that this command is about to make.
    job.idf = None;
    let session = Session::new(&job, global);
    let documents = args.documents.place(job.folder())?;
    let output = LocalFile::try_new(&args.output, if_exists(args.replace))?;
    let (repeats, columns) = job.repeats()?;
    let request = IdfRequest {
        documents,
        columns,
        repeats,
        profile: job.fingerprint_profile(None)?,
        analyzer_resources: job.analyzer_resources()?,
        min_documents: args.min_documents,
    };
    let (summary, table) = session.block_on(|storage, resources, progress| async move {
        nearprint_measure::build_idf(&storage, &request, &resources, &progress).await
    })?;
    output.write(table.as_bytes())?;
    let left_out = match summary.n_repeated_ids {
        0 => String::new(),
        n => format!("; {} with the id of another one left out", counted(n, "row")),
    };
    let text = format!(
        "{}: {} of {}{left_out}\n",
        args.output.display(),
        counted(summary.n_features, "token"),
        counted(summary.n_documents, "document")
    );
    Ok(session.report("idf build", "done", &summary, text))
}
