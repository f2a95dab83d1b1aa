//! The command that a user may run after an error. It is offered on a line of its own, and works as it stands: it is
//! the command that failed with something added or corrected, or another one.

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

use crate::args::Cli;
use crate::command_line::command_line;
use crate::exit_code::Failure;
use crate::flags::only_switch;
use crate::job_keys::nearest;
use crate::place::may_hold_secrets;
use crate::remedy::Remedy;

/// Returns the command line that a failure of `command` calls for. `arguments` are those of the process.
pub fn of(failure: &Failure, command: &str, arguments: &[OsString]) -> Option<String> {
    let words = words(arguments)?;
    let remedy = failure
        .remedy
        .as_deref()
        .cloned()
        .or_else(|| by_switch(failure, command, &words))
        .or_else(|| by_code(failure.code));
    let hint = match remedy? {
        Remedy::Command(words) => words,
        Remedy::With(command, flags) => with(command, flags, &words)?,
        // What is added may not go with what is there, such as --max-bad-rows with --strict.
        Remedy::Again(more) => {
            Some(words.into_iter().chain(more).collect()).filter(|words: &Vec<String>| parses(words))?
        }
    };
    Some(command_line(hint))
}

fn parses(words: &[String]) -> bool {
    Cli::try_parse_from(std::iter::once("nearprint").chain(words.iter().map(String::as_str))).is_ok()
}

/// Returns the arguments after the name of the program, or `None` if they may hold secrets.
fn words(arguments: &[OsString]) -> Option<Vec<String>> {
    let words: Option<Vec<String>> = arguments.iter().skip(1).map(|word| word.to_str().map(str::to_owned)).collect();
    words.filter(|words| !words.iter().any(|word| may_hold_secrets(word)))
}

/// Returns a command with the flags that the failed one was given, or `None` if it was not given one of them.
fn with(command: &str, flags: &[&str], words: &[String]) -> Option<Vec<String>> {
    let value = |flag: &str| {
        let after = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1)).cloned();
        let within = || words.iter().find_map(|word| word.strip_prefix(flag)?.strip_prefix('=').map(str::to_owned));
        let short = || if flag == "--config" { after("-c") } else { None };
        after(flag).or_else(within).or_else(short)
    };
    let mut line = vec![command.to_owned()];
    for flag in flags {
        line.extend([(*flag).to_owned(), value(flag)?]);
    }
    Some(line)
}

/// Messages of the libraries name settings in backticks. If the only one is a flag without a value, and is not given yet,
/// it is what the command lacks.
fn by_switch(failure: &Failure, command: &str, words: &[String]) -> Option<Remedy> {
    let flag = only_switch(command, &failure.message).filter(|flag| !words.contains(flag))?;
    Some(Remedy::Again(vec![flag]))
}

fn by_code(code: u8) -> Option<Remedy> {
    matches!(code, 69 | 75 | 130 | 143).then(|| Remedy::Again(Vec::new()))
}

/// Other programs' words for commands, and slips that are too short to be like a name.
const SYNONYMS: [(&str, &str); 9] = [
    ("rn", "run"),
    ("dedup", "run"),
    ("dedupe", "run"),
    ("deduplicate", "run"),
    ("start", "run"),
    ("init", "store init"),
    ("why", "explain"),
    ("survivors", "filter"),
    ("gc", "store gc"),
];

/// Returns the command line that was meant by arguments that cannot be parsed: a command by its right name, and a job
/// file and a date by their flags. `None` if that cannot be parsed either.
pub fn of_arguments(arguments: &[OsString]) -> Option<String> {
    let typed = words(arguments)?;
    let corrected = with_flags(with_command(typed.clone()));
    (corrected != typed && parses(&corrected)).then(|| command_line(&corrected))
}

fn with_command(mut words: Vec<String>) -> Vec<String> {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let Some(at) = words.iter().position(|word| !word.starts_with('-')) else { return words };
    if names.contains(&words[at].as_str()) {
        return words;
    }
    let synonym = SYNONYMS.iter().find(|(word, _)| *word == words[at]).map(|(_, name)| *name);
    if let Some(name) = synonym.or_else(|| nearest(&words[at], names.into_iter())) {
        words.splice(at..=at, name.split(' ').map(str::to_owned));
    }
    words
}

/// Puts `--config` before a job file and `--dt` before a date that stand alone.
fn with_flags(words: Vec<String>) -> Vec<String> {
    let mut flagged: Vec<String> = Vec::new();
    for word in words {
        let follows_flag = flagged.last().is_some_and(|last| last.starts_with('-') && !last.contains('='));
        let is_date = word.len() == 10 && word.split('-').map(str::len).eq([4, 2, 2]);
        if !follows_flag && !word.starts_with('-') {
            flagged.extend(word.ends_with(".toml").then(|| "--config".to_owned()));
            flagged.extend(is_date.then(|| "--dt".to_owned()));
        }
        flagged.push(word);
    }
    flagged
}
