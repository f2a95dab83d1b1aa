//! The files that a job's nights leave beside their results, as the job file names them. They stand in for the flags of `run`, so that
//! every rule for these flags holds for them.

use std::ffi::OsString;

use crate::args::{Cli, Command, RunArgs};
use crate::beside::job;
use crate::job_config::WatchConfig;

/// Returns the flags that the job file of a run adds to its command line. What is wrong in other places of the file does not keep
/// its files from being written; a file that is no job file adds no flag, and the run says why.
pub fn flags_of(cli: &Cli) -> Vec<OsString> {
    let Command::Run(args) = &cli.command else { return Vec::new() };
    let RunArgs { dt: Some(dt), dry_run: false, config, .. } = args.as_ref() else { return Vec::new() };
    let Some(job) = job(config) else { return Vec::new() };
    let WatchConfig { metrics_file, report, summary_file } = &job.watch;
    let asked = [
        ("--metrics-file", metrics_file, args.metrics_file.is_some()),
        ("--report", report, args.report.is_some()),
        ("--summary-file", summary_file, cli.global.summary_file.is_some()),
    ];
    let flag = |(name, place, is_given): (&str, &Option<String>, bool)| {
        let place = job.folder().typed(&place.as_ref().filter(|_| !is_given)?.replace("{dt}", dt));
        Some(OsString::from(format!("{name}={place}")))
    };
    asked.into_iter().filter_map(flag).collect()
}
