//! The `nearprint` command. It parses the arguments, validates the job, does the work, prints a report and returns an
//! exit code.

mod args;
mod asked;
mod bytes;
mod cmd;
mod documents;
mod exit_code;
mod flags;
mod job_config;
mod place;
mod progress;
mod summary;

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use exit_code::Failure;

/// Runs the command with `arguments`, of which the first is the name of the program. The command reports its work on
/// standard output and standard error. The exit code is one of those that docs/operations.md lists. Call this function
/// only in a process of its own, because it sets the panic hook, the log and the thread pool.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return summary::of_clap(&error),
    };
    let json = cli.global.json;
    let asked = cli.command.asked();
    progress::init_logging(cli.global.verbose);
    exit_code::keep_panics_to_one_line();
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| cmd::dispatch(cli)));
    let outcome = outcome.unwrap_or_else(|_| Err(Failure::panicked()));
    match outcome {
        Ok(report) => summary::print(&report, json),
        Err(failure) => {
            let message = flags::with_flags(asked.command, &failure.message);
            summary::print_failure(&Failure { message, ..failure }, json, Some(asked))
        }
    }
}
