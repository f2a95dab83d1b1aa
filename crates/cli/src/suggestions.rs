//! Slips of the hand in arguments, and what was probably meant: flags that were left out, a date in another form, names that
//! are like one that is known.

use chrono::NaiveDate;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

use crate::args::Cli;
use crate::job_config::JobConfig;
use crate::job_keys::nearest;
use crate::place::may_hold_secrets;

/// The most slips of one command line that are looked for.
const MOST_SLIPS: usize = 4;

/// The similarity from which a flag or a value is taken for a slip of another one.
const ALIKE: f64 = 0.7;

/// Returns the arguments that were meant by others that cannot be parsed. If only the command can be told, they ask for its
/// help.
pub fn meant(typed: &[String]) -> Option<Vec<String>> {
    let mut words = with_flags(typed.to_vec());
    for _ in 0..MOST_SLIPS {
        match parse(&words) {
            Ok(_) => return (words != typed).then_some(words),
            Err(error) => match suggested(&error, &words).or_else(|| with_documents(&error, &words)) {
                Some(better) => words = better,
                None => break,
            },
        }
    }
    (words.first() != typed.first()).then(|| help_of(&words)).flatten()
}

/// Returns the arguments that show the help of the command with which `words` begin.
fn help_of(words: &[String]) -> Option<Vec<String>> {
    let mut command = Cli::command();
    let mut names = Vec::new();
    for word in words {
        let Some(below) = command.find_subcommand(word).cloned() else { break };
        command = below;
        names.push(word.clone());
    }
    (!names.is_empty()).then(|| names.into_iter().chain(["--help".to_owned()]).collect())
}

/// Returns the arguments with the values that were meant: a night in another form than 2026-11-20, or a name that is like
/// that of a profile. `None` if there is no such value.
pub fn values_meant(words: &[String]) -> Option<Vec<String>> {
    let at = (1..words.len()).find_map(|at| Some((at, value_meant(&words[at - 1], &words[at])?)));
    let (at, value) = at?;
    let mut words = words.to_vec();
    words[at] = value;
    Some(words)
}

/// Returns whether the arguments are those of a command.
pub fn parse(words: &[String]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("nearprint").chain(words.iter().map(String::as_str)))
}

fn value_meant(flag: &str, value: &str) -> Option<String> {
    let meant = match flag {
        "--dt" | "--date" => date(value)?,
        "--profile" => nearest(value, nearprint_profile::profiles().map(|profile| profile.0))?.to_owned(),
        _ => return None,
    };
    (meant != value).then_some(meant)
}

/// Returns the day that 20261120, 2026/11/20 or 2026-2-3 means.
fn date(text: &str) -> Option<String> {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = match text.len() {
        8 if digits(text) => vec![&text[..4], &text[4..6], &text[6..]],
        _ => text.split(['-', '/', '.']).collect(),
    };
    let [year, month, day] = parts.as_slice() else { return None };
    if year.len() != 4 || !parts.iter().all(|part| digits(part)) {
        return None;
    }
    let day = NaiveDate::from_ymd_opt(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
    Some(day.format("%Y-%m-%d").to_string())
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

/// Puts a name that is known in the place of one that is like it: of a flag, of a value, or of a command of `store`.
fn suggested(error: &clap::Error, words: &[String]) -> Option<Vec<String>> {
    let names = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(name)) => vec![name.clone()],
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    };
    let kinds = [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    ];
    let (wrong, right) =
        kinds.map(|(wrong, right)| (names(wrong), names(right))).into_iter().find(|(_, right)| !right.is_empty())?;
    let wrong = wrong.first()?;
    // clap also suggests names that are hardly alike.
    let alike = right.iter().map(|name| (strsim::normalized_damerau_levenshtein(wrong, name), name));
    let (_, right) = alike.filter(|(score, _)| *score >= ALIKE).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let at = words.iter().position(|word| word == wrong)?;
    let mut words = words.to_vec();
    words[at].clone_from(right);
    Some(words)
}

/// Adds the documents of the job file, which commands about any documents do not take from there.
fn with_documents(error: &clap::Error, words: &[String]) -> Option<Vec<String>> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    missing.iter().find(|missing| missing.contains("--documents"))?;
    let at = words.iter().position(|word| word == "--config" || word == "-c")?;
    let job = JobConfig::read(words.get(at + 1)?.as_ref()).ok()?;
    let documents = job.folder().typed(job.documents.as_ref()?);
    let is_plain = !documents.contains('{') && !may_hold_secrets(&documents);
    is_plain.then(|| words.iter().cloned().chain(["--documents".to_owned(), documents]).collect())
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn a_date_in_another_form_is_a_day_that_there_is() {
        for text in ["20261105", "2026/11/05", "2026-11-5", "2026.11.5"] {
            assert_eq!(date(text).as_deref(), Some("2026-11-05"), "{text}");
        }
        for text in ["20261131", "5/11/2026", "2026-11", "today", "", "2026-é-5", "20261105T"] {
            assert_eq!(date(text), None, "{text}");
        }
    }
}
