//! The `nearprint` command. It parses the arguments, validates the job, does the work, prints a report and returns an
//! exit code.

mod args;
mod asked_nights;
mod beside;
mod bytes;
mod cmd;
mod command_line;
mod documents;
mod embedding;
mod exit_code;
mod finding;
mod flags;
mod hint;
mod invocation;
mod job_config;
mod job_folder;
mod job_keys;
mod metrics;
mod place;
mod progress;
mod refused_arguments;
mod remedy;
mod schema;
mod suggestions;
mod summary;
mod time_zone;
mod watch;

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use args::{Cli, Command, Global, RunArgs};
use beside::Beside;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use cmd::Outcome;
use invocation::Invocation;
use metrics::Metrics;
use nearprint_tasks::Engine;
use serde_json::Value;
use summary::SummaryFile;

pub use bytes::Bytes;
pub use embedding::Handle;
pub use exit_code::{Failure, Spent};

/// Runs the command with `arguments`, of which the first is the name of the program. The command reports its work on
/// standard output and standard error. The exit code is one of those that docs/troubleshooting.md lists. Call this function
/// only in a process of its own, because it sets the panic hook, the log and the thread pool.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run_with(arguments, None)
}

/// As [`run`], but an engine, if there is one, runs the tasks of a night.
pub fn run_with(arguments: impl IntoIterator<Item = OsString>, engine: Option<&Arc<dyn Engine>>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let (matches, mut cli) = match parsed(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => return summary::of_clap(&error, &arguments),
    };
    let settled = asked_nights::settle(&mut cli.command);
    let beside = beside(&matches, &mut cli);
    let (global, asked) = (cli.global.clone(), cli.command.asked());
    let run = match &cli.command {
        // Metrics are of nights that are made.
        Command::Run(args) if args.dt.is_some() && !args.dry_run => Some(args.clone()),
        _ => None,
    };
    if let Err(failure) = progress::init_logging(&global) {
        return summary::print_failure(&failure, global.json, Some(&asked));
    }
    exit_code::keep_panics_to_one_line();
    let outcome = watched(&beside, &global, &asked, run.as_deref(), || {
        let dispatch = || settled.and_then(|words| cmd::dispatch(cli, &words, engine, &beside));
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(dispatch));
        let hinted = |failure: Failure| {
            let hint = hint::of(&failure, &asked.command, &arguments, engine.is_some());
            Failure { hint, ..failure }.shown_by(&asked.command, flags::named)
        };
        let outcome = outcome.unwrap_or_else(|panic| Err(Failure::panicked(Some(&*panic)))).map_err(hinted);
        outcome.map(|report| report.hinted(hinted))
    });
    match outcome {
        Ok(report) => summary::print(&report, global.json),
        Err(failure) => summary::print_failure(&failure, global.json, Some(&asked)),
    }
}

/// Refuses arguments that a program has beside those of the command, as [`run`] refuses its own, and returns the exit code.
/// `arguments` begin with the name of the program.
pub fn refuse(arguments: impl IntoIterator<Item = OsString>, reason: &str) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let failure = Failure::usage(reason.to_owned());
    summary::refused(&failure, &arguments, || failure.say())
}

/// Parses arguments, of which the first is the name of the program.
fn parsed(arguments: &[OsString]) -> Result<(ArgMatches, Cli), clap::Error> {
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(arguments)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    Ok((matches, cli))
}

/// Returns the files that a command is to write beside its results. Those that the job file of a run names for its night, which
/// is settled, get the places of their flags.
fn beside(arguments: &ArgMatches, cli: &mut Cli) -> Beside {
    let files = watch::files_of(cli);
    watch::give(cli, &files);
    Beside::of(arguments, &files)
}

/// Does the work of a command, and leaves its summary and its metrics where the options ask for them. Files that must not be
/// written are refused before anything else.
fn watched(
    beside: &Beside,
    global: &Global,
    asked: &Invocation,
    run: Option<&RunArgs>,
    work: impl FnOnce() -> Outcome,
) -> Outcome {
    // The files of stale nights are checked before each of them.
    let beside = &asked.dt.as_deref().map_or_else(|| beside.clone(), |dt| beside.of_night(dt));
    beside.refuse_summary()?;
    let file = global.summary_file.as_deref().map(SummaryFile::prepare).transpose()?;
    let mut metrics = None;
    let outcome = beside.refuse_others().and_then(|()| {
        let asked = run.and_then(|args| Some((args.metrics_file.as_deref()?, &args.config)));
        metrics = asked.map(|(file, config)| Metrics::prepare(file, config)).transpose()?;
        work()
    });
    let summary = match &outcome {
        Ok(report) => report.json.clone(),
        Err(failure) => summary::of_failure(failure, Some(asked)),
    };
    let written = file.map_or(Ok(()), |file| file.write(&summary));
    if let Some(metrics) = metrics {
        metrics.write(&summary);
    }
    match (outcome, written) {
        (Ok(report), Err(unwritten)) if report.exit_code() == 0 => Ok(report.but(unwritten)),
        (outcome, Err(unwritten)) => {
            tracing::warn!("no summary file: {}", unwritten.line());
            outcome
        }
        (outcome, Ok(())) => outcome,
    }
}

/// A night that failed.
#[derive(Debug)]
pub struct FailedNight {
    /// The failure.
    pub failure: Failure,
    /// The summary, if the night was stopped by a breaker.
    pub summary: Option<Value>,
}

/// Runs a night for a program that goes on afterwards. `arguments` are those of the command after `run`. The result is
/// the summary that the command prints with `--json`. Nothing is printed and no handler of signals is set; log lines go
/// to the program's own subscriber. Several nights may run at once, each on threads of its own. An engine, if there is
/// one, runs the tasks.
///
/// # Errors
/// Whatever makes the command fail, a breaker that stopped the night, or `handle`, which stops it.
pub fn night(
    arguments: impl IntoIterator<Item = OsString>,
    handle: &Handle,
    engine: Option<&Arc<dyn Engine>>,
) -> Result<Value, Box<FailedNight>> {
    let failed = |failure| Box::new(FailedNight { failure, summary: None });
    let command = ["nearprint", "run"].map(OsString::from);
    let arguments: Vec<OsString> = command.into_iter().chain(arguments).collect();
    let (matches, mut cli) = parsed(&arguments).map_err(|error| failed(summary::usage_of_clap(&error)))?;
    let settled = asked_nights::settle(&mut cli.command);
    let beside = beside(&matches, &mut cli);
    let Command::Run(args) = cli.command else {
        return Err(failed(Failure::bug("a night that is another command")));
    };
    let asked = Invocation { command: "run".to_owned(), dt: args.dt.clone() };
    let report = watched(&beside, &cli.global, &asked, Some(&args), || {
        settled?;
        cmd::night(&cli.global, &args, handle, engine, &beside)
    })
    .map_err(failed)?;
    match report.failure {
        Some(failure) => Err(Box::new(FailedNight { failure, summary: Some(report.json) })),
        None => Ok(report.json),
    }
}
