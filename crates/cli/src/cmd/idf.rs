//! `nearprint idf`.

use nearprint_measure::IdfRequest;
use nearprint_storage::LocalFile;

use super::{Outcome, Session, grouped, if_exists};
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
    let request = IdfRequest {
        documents,
        columns: job.columns()?,
        profile: job.fingerprint_profile(None)?,
        analyzer_resources: job.analyzer_resources()?,
        min_documents: args.min_documents,
    };
    let (summary, table) = session.block_on(|storage, _, progress| async move {
        nearprint_measure::build_idf(&storage, &request, &progress).await
    })?;
    output.write(table.as_bytes())?;
    let text = format!(
        "{}: {} tokens of {} documents\n",
        args.output.display(),
        grouped(summary.n_features),
        grouped(summary.n_documents)
    );
    Ok(session.report("idf build", "done", &summary, text))
}
