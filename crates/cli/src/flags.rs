//! The flags of a command, for messages of the libraries, which name settings by their keys.

use clap::CommandFactory;

use crate::args::Cli;

/// Returns how a key is named for a user of `command`: by the flag that sets it, such as `--spill-dir` for `spill_dir`. A key
/// of a section is named with its flag: `breakers.max_cluster or --max-cluster`. A key without a flag has no other name, since
/// the user gave it in a job file.
pub fn named(command: &str, key: &str) -> Option<String> {
    let flag = key.rsplit('.').next().unwrap_or(key).replace('_', "-");
    of(command).get_arguments().find(|argument| argument.get_long() == Some(&*flag))?;
    Some(if key.contains('.') { format!("{key} or --{flag}") } else { format!("--{flag}") })
}

/// Returns the flag without a value of a key, if it is the only one of these keys that `command` takes.
pub fn only_switch<'a>(command: &str, keys: impl Iterator<Item = &'a str>) -> Option<String> {
    let parsed = of(command);
    let keys = keys.map(|key| key.replace('_', "-"));
    let named = keys.filter_map(|key| parsed.get_arguments().find(|argument| argument.get_long() == Some(&*key)));
    let mut named: Vec<_> = named.map(|argument| (argument.get_long(), argument.get_action().takes_values())).collect();
    named.dedup();
    match named.as_slice() {
        [(Some(flag), false)] => Some(format!("--{flag}")),
        _ => None,
    }
}

/// Returns the parser of a command, such as `store gc`.
fn of(command: &str) -> clap::Command {
    let mut parsed = Cli::command();
    parsed.build();
    command.split(' ').fold(&parsed, |at, name| at.find_subcommand(name).unwrap_or(at)).clone()
}

/// Returns whether a flag of `command`, such as `--dt`, is followed by a value.
pub fn takes_value(command: &str, flag: &str) -> bool {
    let is_it = |argument: &&clap::Arg| long_names(argument).any(|name| flag.strip_prefix("--") == Some(name));
    of(command).get_arguments().find(is_it).is_some_and(|argument| argument.get_action().takes_values())
}

/// Returns the names of a flag with two hyphens, which are left out.
pub fn long_names(argument: &clap::Arg) -> impl Iterator<Item = &str> {
    argument.get_long().into_iter().chain(argument.get_all_aliases().into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use nearprint_fault::{Words, key, words};

    use super::named;

    fn shown(command: &str, words: Words) -> String {
        words.named(|key| named(command, key))
    }

    #[test]
    fn a_key_becomes_the_flag_of_the_command_that_has_it() {
        let message = words!["raise ", key("memory_limit"), " or name another ", key("spill_dir")];
        assert_eq!(shown("join", message), "raise --memory-limit or name another --spill-dir");
        let message = words!["raise ", key("breakers.max_cluster")];
        assert_eq!(shown("run", message), "raise breakers.max_cluster or --max-cluster");
        assert_eq!(shown("store gc", words!["say ", key("dry_run")]), "say --dry-run");
    }

    #[test]
    fn other_words_stay_as_they_are() {
        assert_eq!(shown("run", words!["check ", key("keep")]), "check `keep`");
        for message in ["run `nearprint store init`", "use `words` or `pairs`", "a ` alone", "``", ""] {
            assert_eq!(shown("run", message.into()), message);
        }
    }
}
