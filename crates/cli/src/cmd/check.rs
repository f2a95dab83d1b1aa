//! `nearprint check`.

use std::collections::BTreeSet;
use std::fmt::Write;

use nearprint_explain::legible;
use nearprint_night::{CheckReport, CheckRequest};
use nearprint_store::maintain::{Damaged, StoreProblem};

use super::{Outcome, Session, counted, grouped};
use crate::args::{CheckArgs, Global};
use crate::command_line::command_line;
use crate::exit_code::BAD_DATA;
use crate::job_config::JobConfig;

pub(super) fn check(global: &Global, args: &CheckArgs) -> Outcome {
    let job = JobConfig::read_or_default(args.config.as_deref())?;
    let store = job.store(args.store.as_ref())?;
    let request = CheckRequest { store, output: job.output.clone(), dt: args.dt.clone() };
    let session = Session::new(&job, global);
    let found = session
        .block_on(|storage, _, progress| async move { nearprint_night::check(&storage, &request, &progress).await })?;
    let status = match (found.problems.is_empty(), found.behind.is_empty()) {
        (false, _) => "damaged",
        (true, false) => "behind",
        (true, true) => "sound",
    };
    // A run by the job file mends the job's own store, and no other.
    let config = args.config.as_ref().filter(|_| args.store.is_none());
    let next = config.and_then(|config| next(&found, &config.to_string_lossy()));
    let report = session.report("check", status, &found, text(&found, status)).then(next);
    Ok(if found.problems.is_empty() { report } else { report.ended_with(BAD_DATA) })
}

/// Returns the command that mends what was found, if one does.
fn next(found: &CheckReport, config: &str) -> Option<String> {
    let mut damaged = found.problems.iter().filter_map(|problem| problem.of.night());
    // No night is published before the table of changes is mended.
    let is_stopped = found.problems.iter().any(|problem| problem.of == Damaged::Changes);
    match damaged.next() {
        _ if is_stopped => None,
        Some(dt) => Some(command_line(["run", "--config", config, "--dt", dt, "--replace"])),
        None if !found.problems.is_empty() || found.stale.is_empty() => None,
        _ => Some(command_line(["run", "--config", config, "--stale"])),
    }
}

fn text(found: &CheckReport, status: &str) -> String {
    let mut out = problems(&found.problems, &found.stale);
    // Writing to a string cannot fail.
    for dt in &found.behind {
        let _ = writeln!(
            out,
            "{dt}: not all tables have followed the store yet: the next run into their output completes it"
        );
    }
    if !found.stale.is_empty() {
        let _ = writeln!(
            out,
            "{}: stale: nights before were added, replaced or dropped since; `nearprint run --config FILE --stale` makes \
             those of its output anew",
            found.stale.join(", ")
        );
    }
    for reference in &found.references {
        let _ = writeln!(
            out,
            "{}: reference, with which {} joined, up to its commit {}; not read",
            legible(&reference.store),
            match reference.n_nights {
                1 => "1 night was".to_owned(),
                n => format!("{} nights were", grouped(n)),
            },
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
    let is_store_sound = status == "damaged" && !found.problems.iter().any(|problem| problem.of.is_of_store());
    let _ = writeln!(
        out,
        "{}: {}; commit {}, {}, {}, {} read",
        found.store,
        if is_store_sound { "the store itself is sound" } else { status },
        found.commit,
        found.dt.as_ref().map_or_else(|| counted(found.n_nights, "night"), |dt| format!("the night {dt}")),
        counted(found.n_files, "file"),
        counted(found.bytes, "byte")
    );
    out
}

/// Lists problems, what is damaged, and how each of it is repaired. `stale` are the nights that are stale as well.
pub(super) fn problems(problems: &[StoreProblem], stale: &[String]) -> String {
    let mut out = String::new();
    for problem in problems {
        let _ = writeln!(out, "{}: {}", problem.file, problem.problem);
    }
    for of in problems.iter().map(|problem| &problem.of).collect::<BTreeSet<_>>() {
        let n = problems.iter().filter(|problem| problem.of == *of).count() as u64;
        let _ = writeln!(out, "damaged: {}, {}: {}", named(of), counted(n, "problem"), repair(of, stale));
    }
    out
}

fn named(of: &Damaged) -> String {
    match of {
        Damaged::Commit => "the commits of the store".to_owned(),
        Damaged::Identity => "identities".to_owned(),
        Damaged::RunFiles { dt } => format!("the files of {dt} in the store"),
        Damaged::Segment => "segments of the store".to_owned(),
        Damaged::Index => "indexes of the store".to_owned(),
        Damaged::Results { dt } => format!("the results of {dt}"),
        Damaged::Table => "logs of tables".to_owned(),
        Damaged::Changes => "the table `changes`".to_owned(),
    }
}

fn repair(of: &Damaged, stale: &[String]) -> String {
    match of {
        Damaged::Commit => "restore them from a backup: nothing else records the state of the store".to_owned(),
        Damaged::Identity => "copy `_store.json` of the store to its outputs, or that of an output to the store".to_owned(),
        Damaged::RunFiles { dt } | Damaged::Results { dt } if stale.contains(dt) => {
            format!(
                "the night is stale too, so `nearprint run --config FILE --dt {dt} --replace` makes it anew from the nights before it; \
                 if a breaker stops that, look at what it names, then add --no-breakers"
            )
        }
        Damaged::RunFiles { dt } | Damaged::Results { dt } => {
            format!("`nearprint run --config FILE --dt {dt} --replace` writes the damaged files again")
        }
        Damaged::Segment => "delete these files, and run `nearprint store compact STORE`".to_owned(),
        Damaged::Index => "delete these files, and run `nearprint store index STORE`".to_owned(),
        Damaged::Table => {
            "delete a checkpoint that is named; else move the table's `_delta_log` away; then run any date again, which \
             writes what is missing"
                .to_owned()
        }
        Damaged::Changes => {
            "delete a checkpoint that is named; else restore the files from a backup, or move the folder `changes` away: whoever \
             follows it then begins anew with the corpus"
                .to_owned()
        }
    }
}
