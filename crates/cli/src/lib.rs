//! The `nearprint` command. It parses the arguments, validates the job, does the work, prints a report and returns an
//! exit code.

mod args;
mod asked;
mod bytes;
mod cmd;
mod command_line;
mod documents;
mod error_place;
mod exit_code;
mod flags;
mod hint;
mod host;
mod job_config;
mod job_keys;
mod place;
mod progress;
mod summary;

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;

use clap::Parser;
use serde_json::Value;

use args::{Cli, Command};

pub use bytes::Bytes;
pub use cmd::Engine;
pub use error_place::ErrorPlace;
pub use exit_code::{Failure, kind_named};
pub use host::Stop;

/// Runs the command with `arguments`, of which the first is the name of the program. The command reports its work on
/// standard output and standard error. The exit code is one of those that docs/operations.md lists. Call this function
/// only in a process of its own, because it sets the panic hook, the log and the thread pool.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run_with(arguments, None)
}

/// As [`run`], but an engine, if there is one, runs the tasks of a night.
pub fn run_with(arguments: impl IntoIterator<Item = OsString>, elsewhere: Option<&Engine>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let json = arguments.iter().any(|argument| argument == "--json");
            return summary::of_clap(&error, json, hint::of_arguments(&arguments));
        }
    };
    let json = cli.global.json;
    let asked = cli.command.asked();
    if let Err(failure) = progress::init_logging(&cli.global) {
        return summary::print_failure(&failure, json, Some(asked));
    }
    exit_code::keep_panics_to_one_line();
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| cmd::dispatch(cli, elsewhere)));
    let outcome = outcome.unwrap_or_else(|_| Err(Failure::panicked()));
    let hinted = |failure: Failure| Failure { hint: hint::of(&failure, asked.command, &arguments), ..failure };
    match outcome {
        Ok(report) => {
            let failure = report.failure.map(hinted);
            summary::print(&summary::Report { failure, ..report }, json)
        }
        Err(failure) => {
            let failure = hinted(failure);
            let message = flags::with_flags(asked.command, &failure.message);
            summary::print_failure(&Failure { message, ..failure }, json, Some(asked.clone()))
        }
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
/// Whatever makes the command fail, a breaker that stopped the night, or `stop`.
pub fn night(
    arguments: impl IntoIterator<Item = OsString>,
    stop: &Stop,
    elsewhere: Option<&Engine>,
) -> Result<Value, Box<FailedNight>> {
    let failed = |failure| Box::new(FailedNight { failure, summary: None });
    let command = ["nearprint", "run"].map(OsString::from);
    let cli = Cli::try_parse_from(command.into_iter().chain(arguments));
    let cli = cli.map_err(|error| failed(summary::usage_of_clap(&error)))?;
    let Command::Run(args) = cli.command else {
        return Err(failed(Failure::bug("a night that is another command")));
    };
    let report = cmd::night(&cli.global, &args, stop, elsewhere).map_err(failed)?;
    match report.failure {
        Some(failure) => Err(Box::new(FailedNight { failure, summary: Some(report.json) })),
        None => Ok(report.json),
    }
}
