//! `nearprint check`.

use std::fmt::Write;

use nearprint_pipeline::{CheckReport, CheckRequest};
use nearprint_study::legible;

use super::{Outcome, Session, counted};
use crate::args::{CheckArgs, Global};
use crate::exit_code::BAD_DATA;
use crate::job_config::JobConfig;

pub(super) fn check(global: &Global, args: &CheckArgs) -> Outcome {
    let job = JobConfig::read_or_default(args.config.as_deref())?;
    let store = job.store(args.store.as_ref())?;
    let request = CheckRequest { store, output: job.output.clone(), dt: args.dt.clone() };
    let session = Session::new(&job, global);
    let found = session.block_on(|storage, _, progress| async move {
        nearprint_pipeline::check(&storage, &request, &progress).await
    })?;
    let status = match (found.problems.is_empty(), found.behind.is_empty()) {
        (false, _) => "damaged",
        (true, false) => "behind",
        (true, true) => "sound",
    };
    let mut report = session.report("check", status, &found, text(&found, status));
    report.exit_code = if found.problems.is_empty() { 0 } else { BAD_DATA };
    Ok(report)
}

fn text(found: &CheckReport, status: &str) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for problem in &found.problems {
        let _ = writeln!(out, "{}: {}", problem.file, problem.problem);
    }
    for dt in &found.behind {
        let _ = writeln!(
            out,
            "{dt}: not all tables have followed the store yet: the next run into their output completes it"
        );
    }
    for reference in &found.references {
        let _ = writeln!(
            out,
            "{}: reference of {}, up to its commit {}; not read",
            legible(&reference.store),
            counted(reference.n_nights, "night"),
            reference.commit
        );
    }
    if found.n_unreferenced_files > 0 {
        let _ = writeln!(
            out,
            "{} that no commit names: {}; `nearprint store gc` deletes what nobody needs",
            counted(found.n_unreferenced_files, "file"),
            counted(found.unreferenced_bytes, "byte")
        );
    }
    let n_problems = found.problems.len() as u64;
    let problems = if n_problems > 0 { format!(", {}", counted(n_problems, "problem")) } else { String::new() };
    let _ = writeln!(
        out,
        "{}: {status}{problems}; commit {}, {}, {}, {} read",
        found.store,
        found.commit,
        counted(found.n_nights, "night"),
        counted(found.n_files, "file"),
        counted(found.bytes, "byte")
    );
    out
}
