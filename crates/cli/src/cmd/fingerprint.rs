//! `nearprint fingerprint`.

use nearprint_pipeline::FingerprintRequest;

use super::{Outcome, Session, counted, grouped, if_exists};
use crate::args::{FingerprintArgs, Global};
use crate::job_config::JobConfig;

pub(super) fn fingerprint(global: &Global, args: &FingerprintArgs) -> Outcome {
    let job = JobConfig::read_or_default(args.profile.config.as_deref())?.with_profile_args(&args.profile)?;
    let job = job.with_input_args(&args.input);
    let (repeats, columns) = job.repeats()?;
    let request = FingerprintRequest {
        documents: args.documents.place(job.folder())?,
        columns,
        keep: repeats.keep,
        source: None,
        profile: job.fingerprint_profile(args.bits)?,
        analyzer_resources: job.analyzer_resources()?,
        input: job.input()?,
    };
    let session = Session::new(&job, global);
    let (output, replace) = (job.folder().given(&args.output), if_exists(args.replace));
    let summary = session.block_on(|storage, resources, progress| async move {
        nearprint_pipeline::fingerprint(&storage, &request, &output, replace, &resources, &progress).await
    })?;
    let counts = &summary.counts;
    let text = format!(
        "{}: {} of {} ({} too short, {} empty, {} without text)\n",
        summary.output,
        counted(counts.n_fingerprinted, "fingerprint"),
        counted(counts.n_documents, "document"),
        grouped(counts.n_too_short),
        grouped(counts.n_empty),
        grouped(counts.n_null_text)
    );
    Ok(session.report("fingerprint", "done", &summary, text))
}
