//! The files that a job's nights leave beside their results, as the job file names them. They stand in for the flags of `run`, so that
//! every rule for these flags holds for them.

use std::path::PathBuf;

use crate::args::{Cli, Command, RunArgs};
use crate::beside::job;
use crate::job_config::watch::{WatchFile, Watched};
use crate::place::Given;

/// The night whose files are checked where no night is named.
pub const ANY_NIGHT: &str = "2000-01-01";

/// Returns the files that the job file of a run names and its command line does not. What is wrong in other places of the file does
/// not keep its files from being written; a file that is no job file names none, and the run says why.
pub fn files_of(cli: &Cli) -> Vec<WatchFile> {
    let Command::Run(args) = &cli.command else { return Vec::new() };
    let is_given = |watched: Watched| match watched {
        Watched::Metrics => args.metrics_file.is_some(),
        Watched::Page => args.report.is_some(),
        Watched::Summary => cli.global.summary_file.is_some(),
    };
    let files = job(&args.config).map(|job| job.watch_files()).unwrap_or_default();
    files.into_iter().filter(|file| !is_given(file.watched)).collect()
}

/// Puts the files in the place of the flags of a run that makes its night.
pub fn give(cli: &mut Cli, files: &[WatchFile]) {
    let Command::Run(args) = &mut cli.command else { return };
    let RunArgs { dt: Some(dt), dry_run: false, .. } = &**args else { return };
    let dt = dt.clone();
    for file in files {
        let place = file.of_night(&dt);
        match file.watched {
            Watched::Metrics => args.metrics_file = Some(PathBuf::from(place)),
            Watched::Page => args.report = Some(Given::of_job(place)),
            Watched::Summary => cli.global.summary_file = Some(PathBuf::from(place)),
        }
    }
}
