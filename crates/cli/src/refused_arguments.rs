//! Arguments that clap refused, as far as they can be read: their summary names the command and the night.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, CommandFactory};

use crate::args::Cli;
use crate::invocation::Invocation;

/// The part that can be read of arguments that clap refused.
#[derive(Debug)]
pub struct RefusedArguments {
    /// The command, if the arguments name one.
    pub asked: Option<Invocation>,
    /// The value of `--summary-file`, if it has one.
    pub summary_file: Option<PathBuf>,
}

impl RefusedArguments {
    /// Reads arguments, of which the first is the name of the program, as far as they can be read.
    pub fn of(arguments: &[OsString]) -> Self {
        let matches = Cli::command().ignore_errors(true).try_get_matches_from(arguments);
        // Arguments that cannot be read at all name no command.
        let names = matches.as_ref().map(names).unwrap_or_default();
        let dt = value(arguments, "--dt").and_then(|dt| dt.into_string().ok());
        let asked = (!names.is_empty()).then(|| Invocation { command: names.join(" "), dt });
        Self { asked, summary_file: value(arguments, "--summary-file").map(PathBuf::from) }
    }
}

/// Returns the names of the nested commands.
fn names(mut matches: &ArgMatches) -> Vec<&str> {
    let mut names = Vec::new();
    while let Some((name, below)) = matches.subcommand() {
        names.push(name);
        matches = below;
    }
    names
}

/// Returns the first value of a flag. clap forgets what stands behind the argument that it refuses.
fn value(arguments: &[OsString], flag: &str) -> Option<OsString> {
    values_of(arguments, flag).next()
}

/// Returns the values of a flag, such as `--store` or `-c`, wherever it stands. A short one may stand behind `-v` and `-q` in one word.
pub fn values_of<'a>(arguments: &'a [OsString], flag: &str) -> impl Iterator<Item = OsString> + use<'a> {
    let (is_long, flag) = (flag.starts_with("--"), flag.to_owned());
    arguments.iter().enumerate().filter_map(move |(at, argument)| {
        let next = || arguments.get(at + 1).cloned();
        if *argument == *flag {
            return next();
        }
        let text = argument.to_str()?;
        if is_long {
            return text.strip_prefix(&flag)?.strip_prefix('=').map(OsString::from);
        }
        let rest = text.strip_prefix('-')?.trim_start_matches(['v', 'q']).strip_prefix(&flag[1..])?;
        match rest.strip_prefix('=').unwrap_or(rest) {
            "" => next(),
            value => Some(value.into()),
        }
    })
}
