//! The flags of a command, for messages of the libraries, which name settings by their keys.

use clap::CommandFactory;

use crate::args::Cli;

/// Writes each key in backticks as the flag by which `command` takes it: `` `spill_dir` `` becomes `--spill-dir`, and
/// `` `breakers.max_cluster` `` becomes `breakers.max_cluster or --max-cluster`. A key without a flag stays as it is,
/// since the user gave it in a job file.
pub fn with_flags(command: &str, message: &str) -> String {
    let mut parsed = Cli::command();
    parsed.build();
    let parsed = command.split(' ').fold(&parsed, |at, name| at.find_subcommand(name).unwrap_or(at));
    let is_flag = |flag: &str| parsed.get_arguments().any(|argument| argument.get_long() == Some(flag));
    let mut text = String::new();
    let mut rest = message;
    while let Some((before, quoted, after)) = next_quoted(rest) {
        text.push_str(before);
        let flag = quoted.rsplit('.').next().unwrap_or(quoted).replace('_', "-");
        if !is_key(quoted) || !is_flag(&flag) {
            // The second backtick may begin the next key.
            text.push('`');
            text.push_str(quoted);
            rest = &rest[before.len() + 1 + quoted.len()..];
            continue;
        }
        if quoted.contains('.') {
            text.push_str(quoted);
            text.push_str(" or ");
        }
        text.push_str("--");
        text.push_str(&flag);
        rest = after;
    }
    text + rest
}

/// Returns the flag without a value that a message names by its key in backticks, if `command` takes it and the message
/// names no other flag.
pub fn only_switch(command: &str, message: &str) -> Option<String> {
    let mut parsed = Cli::command();
    parsed.build();
    let parsed = command.split(' ').fold(&parsed, |at, name| at.find_subcommand(name).unwrap_or(at));
    let keys = message.split('`').filter(|key| is_key(key)).map(|key| key.replace('_', "-"));
    let named = keys.filter_map(|key| parsed.get_arguments().find(|argument| argument.get_long() == Some(&*key)));
    let mut named: Vec<_> = named.map(|argument| (argument.get_long(), argument.get_action().takes_values())).collect();
    named.dedup();
    match named.as_slice() {
        [(Some(flag), false)] => Some(format!("--{flag}")),
        _ => None,
    }
}

/// Returns whether a flag of `command`, such as `--dt`, is followed by a value.
pub fn takes_value(command: &str, flag: &str) -> bool {
    let mut parsed = Cli::command();
    parsed.build();
    let parsed = command.split(' ').fold(&parsed, |at, name| at.find_subcommand(name).unwrap_or(at));
    let is_it = |argument: &&clap::Arg| {
        let aliases = argument.get_all_aliases().into_iter().flatten();
        argument.get_long().into_iter().chain(aliases).any(|name| flag.strip_prefix("--") == Some(name))
    };
    parsed.get_arguments().find(is_it).is_some_and(|argument| argument.get_action().takes_values())
}

/// Returns the text before the first backtick, between the first two, and after them.
fn next_quoted(text: &str) -> Option<(&str, &str, &str)> {
    let (before, from) = text.split_once('`')?;
    let (quoted, after) = from.split_once('`')?;
    Some((before, quoted, after))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::with_flags;

    #[test]
    fn a_key_becomes_the_flag_of_the_command_that_has_it() {
        let message = "raise `memory_limit` or name another `spill_dir`";
        assert_eq!(with_flags("join", message), "raise --memory-limit or name another --spill-dir");
        assert_eq!(with_flags("run", "raise `breakers.max_cluster`"), "raise breakers.max_cluster or --max-cluster");
        assert_eq!(with_flags("store gc", "say `dry_run`"), "say --dry-run");
    }

    #[test]
    fn other_words_in_backticks_stay_as_they_are() {
        for message in ["check `keep`", "run `nearprint store init`", "a ` alone", "`x` `y`", "``", ""] {
            assert_eq!(with_flags("run", message), message);
        }
        assert_eq!(with_flags("join", "an odd ` and `replace`"), "an odd ` and --replace");
    }
}
