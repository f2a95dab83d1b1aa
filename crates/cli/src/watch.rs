//! The files that a job's nights leave beside their results, as the job file names them. They stand in for the flags of `run`, so that
//! every rule for these flags holds for them.

use std::path::{Path, PathBuf};

use nearprint_fault::Fault;

use crate::args::{Cli, Command, RunArgs};
use crate::beside::job_and_faults;
use crate::exit_code::Failure;
use crate::job_config::JobConfig;
use crate::job_config::watch::{WatchFile, Watched};
use crate::place::Given;

/// The night whose files are checked where no night is named.
pub const ANY_NIGHT: &str = "2000-01-01";

/// Returns the files that the job file of a run names and its command line does not. If something is wrong in other places of the
/// job file, they take the place of earlier ones only: what is guarded may be unknown. A file that is no job file names none, and
/// the run says why.
pub fn files_of(cli: &Cli) -> Vec<WatchFile> {
    let Command::Run(args) = &cli.command else { return Vec::new() };
    let Some((job, is_at_fault)) = job_and_faults(&args.config) else { return Vec::new() };
    let of_night = |file: &WatchFile| file.of_night(args.dt.as_deref()?);
    let takes_place = |file: &WatchFile| of_night(file).is_some_and(|place| Path::new(&place).is_file());
    let has_flag = |file: &WatchFile| is_given(file.watched, args, cli.global.summary_file.as_deref());
    let is_left = |file: &WatchFile| !has_flag(file) && (!is_at_fault || takes_place(file));
    job.watch_files().into_iter().filter(is_left).collect()
}

/// Returns whether the command line names a file.
fn is_given(watched: Watched, args: &RunArgs, summary_file: Option<&Path>) -> bool {
    match watched {
        Watched::Metrics => args.metrics_file.is_some(),
        Watched::Page => args.report.is_some(),
        Watched::Summary => summary_file.is_some(),
    }
}

/// Refuses values of the job file that can be those of no file of a night, unless a flag goes before them.
pub fn refuse_unusable(job: &JobConfig, args: &RunArgs, summary_file: Option<&Path>) -> Result<(), Failure> {
    let unusable = job.unusable_watch_files().into_iter().find(|(watched, _)| !is_given(*watched, args, summary_file));
    unusable.map_or(Ok(()), |(watched, reason)| Err(job.located(Fault::config(watched.key(), reason).into())))
}

/// Puts the files in the place of the flags of a run that makes its night.
pub fn give(cli: &mut Cli, files: &[WatchFile]) {
    let Command::Run(args) = &mut cli.command else { return };
    let RunArgs { dt: Some(dt), dry_run: false, .. } = &**args else { return };
    let dt = dt.clone();
    for file in files {
        // A night that is none leaves no file of its own.
        let Some(place) = file.of_night(&dt) else { continue };
        match file.watched {
            Watched::Metrics => args.metrics_file = Some(PathBuf::from(place)),
            Watched::Page => args.report = Some(Given::of_job(place)),
            Watched::Summary => cli.global.summary_file = Some(PathBuf::from(place)),
        }
    }
}
