//! The command that a user may run after an error. It is offered on a line of its own, and works as it stands: it is
//! the command that failed with something added or corrected, or another one.

use std::ffi::OsString;
use std::path::Path;

use crate::command_line::command_line;
use crate::exit_code::{CONFIG, Failure, USAGE};
use crate::flags::{only_switch, takes_value};
use crate::job_folder::is_number;
use crate::place::may_hold_secrets;
use crate::remedy::Remedy;
use crate::suggestions;

/// Returns the command line that a failure of `command` calls for. `arguments` are those of the process. A night whose tasks
/// an engine runs was begun by another program, whose line is not known.
pub fn of(failure: &Failure, command: &str, arguments: &[OsString], has_engine: bool) -> Option<String> {
    let words = words(arguments)?;
    let remedy = failure
        .remedy
        .as_deref()
        .cloned()
        .or_else(|| by_switch(failure, command, &words))
        .or_else(|| by_value(failure.code, &words))
        .or_else(|| by_code(failure.code));
    let hint = match remedy? {
        Remedy::Command(words) => words,
        Remedy::Of(command, place) => command.split(' ').map(str::to_owned).chain([place]).collect(),
        Remedy::With(command, flags) => with(command, flags, &words)?,
        Remedy::Instead(wrong, right) => instead(&wrong, &right, words)?,
        Remedy::InPlaceOf(flags, word) => {
            let mut line = without(flags, command, words);
            line.push(word.to_owned());
            Some(line).filter(|line| suggestions::parse(line).is_ok())?
        }
        // What is added may not go with what is there, such as --max-bad-rows with --strict.
        Remedy::Again(more) => Some(words.into_iter().chain(more).collect())
            .filter(|words: &Vec<String>| suggestions::parse(words).is_ok())?,
    };
    let is_known = !has_engine || hint.first().is_none_or(|command| command != "run");
    let is_repeatable = !hint.iter().any(|word| is_number(Path::new(word)));
    (is_known && is_repeatable).then(|| command_line(hint))
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
    let mut line: Vec<String> = command.split(' ').map(str::to_owned).collect();
    for flag in flags {
        line.extend([(*flag).to_owned(), value(flag)?]);
    }
    Some(line)
}

/// Returns the words without some flags of the command and their values.
fn without(flags: &[&str], command: &str, words: Vec<String>) -> Vec<String> {
    let mut left = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        if !flags.contains(&name) {
            left.push(word);
        } else if value.is_none() && takes_value(command, name) {
            drop(words.next());
        }
    }
    left
}

/// Returns the words with one of them replaced, whether it stands alone or after a flag and `=`. `None` if there is none.
fn instead(wrong: &str, right: &str, mut words: Vec<String>) -> Option<Vec<String>> {
    let is_wrong = |word: &String| word == wrong || word.strip_suffix(wrong).is_some_and(|flag| flag.ends_with('='));
    let word = words.iter_mut().find(|word| is_wrong(word))?;
    *word = word[..word.len() - wrong.len()].to_owned() + right;
    Some(words)
}

/// The flag that publishes a night at which somebody should look first. It is never a hint.
const UNSEEN: &str = "--no-breakers";

/// Messages name settings by their keys. If the only one is a flag without a value, and is not given yet, it is what the
/// command lacks.
fn by_switch(failure: &Failure, command: &str, words: &[String]) -> Option<Remedy> {
    let flag = only_switch(command, failure.fault.keys()).filter(|flag| flag != UNSEEN && !words.contains(flag))?;
    Some(Remedy::Again(vec![flag]))
}

/// A value that is refused, and is like another one.
fn by_value(code: u8, words: &[String]) -> Option<Remedy> {
    matches!(code, USAGE | CONFIG).then(|| suggestions::values_meant(words)).flatten().map(Remedy::Command)
}

fn by_code(code: u8) -> Option<Remedy> {
    matches!(code, 69 | 75 | 129 | 130 | 143).then(|| Remedy::Again(Vec::new()))
}

/// Returns the command line that was meant by arguments that cannot be parsed.
pub fn of_arguments(arguments: &[OsString]) -> Option<String> {
    suggestions::meant(&words(arguments)?).map(command_line)
}
