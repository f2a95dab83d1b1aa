//! `nearprint review`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal as _, Write as _};

use console::{Term, measure_text_width};
use nearprint_explain::shown_id;
use nearprint_fault::{ErrorKind, Fault, Result, Words, key, words};
use nearprint_measure::{
    Answer, Answers, NightEstimate, ReviewEstimate, ReviewRequest, ReviewedPair, draw_review, estimate_review,
};
use nearprint_night::published_generations;
use nearprint_storage::{Storage, blocking};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Outcome, Session, cell, counted, grouped, name_flags, night_source, warnings};
use crate::args::{Global, ReviewArgs};
use crate::exit_code::Failure;
use crate::job_config::JobConfig;

/// The summary of `review`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Reviewed {
    /// The table of pairs and answers.
    answers: String,
    /// The night that was looked at. Left out without `--dt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    dt: Option<String>,
    /// The number of pairs that were drawn now. 0 if the table had those of the night.
    n_drawn: u64,
    /// The number of drawn pairs of which a text was not found.
    n_without_texts: u64,
    /// The number of answers that were given now.
    n_answered: u64,
    /// The number of pairs of all nights that have no answer.
    n_open: u64,
    /// Warnings to read before relying on the figures.
    warnings: Vec<Words>,
    /// What the answers say of the nights.
    #[serde(flatten)]
    estimate: ReviewEstimate,
}

pub(super) fn review(global: &Global, args: &ReviewArgs) -> Outcome {
    let job = JobConfig::read(&args.config)?;
    let url = job.folder().given(&args.answers);
    let request = args
        .dt
        .as_ref()
        .map(|dt| {
            Ok::<_, Failure>(ReviewRequest {
                night: night_source(&job, dt)?,
                profile: job.profile_config()?,
                analyzer_resources: job.analyzer_resources()?,
                n_sample: args.sample.unwrap_or(SAMPLE),
                seed: args.seed.unwrap_or_default(),
            })
        })
        .transpose()?;
    let asks_for_a_draw = args.sample.is_some() || args.seed.is_some();
    // A table of answers alone needs no store.
    let store = job.store.is_some().then(|| job.store(None)).transpose()?;
    let session = Session::new(&job, global);
    let mut done = session.block_on(move |storage, resources, progress| async move {
        let mut answers = Answers::read(&storage, &url).await?;
        if request.is_none() && answers.pairs.is_empty() {
            let remedy = words!["check the path, or draw pairs of a night with ", key("dt")];
            return Err(Fault::input_missing("reviewed pairs", url, remedy));
        }
        let mut done = Reviewed {
            answers: url,
            dt: request.as_ref().map(|request| request.night.dt.clone()),
            n_drawn: 0,
            n_without_texts: 0,
            n_answered: 0,
            n_open: 0,
            warnings: Vec::new(),
            estimate: ReviewEstimate { nights: Vec::new(), months: Vec::new() },
        };
        if answers.n_repeated > 0 {
            let n = answers.n_repeated;
            done.warnings.push(format!("rows that repeat the pair of another row: {n}; each pair counts once").into());
        }
        let published = match &store {
            Some(store) => published(&storage, store).await?,
            None => BTreeMap::new(),
        };
        if let Some(request) = request {
            let drawn = draw_review(&storage, &request, &answers, &resources, &progress).await?;
            progress.pause();
            if drawn.was_drawn && asks_for_a_draw {
                let dt = request.night.dt.clone();
                let (sample, seed, answers) = (key("sample"), key("seed"), key("answers"));
                let nothing = words!["pairs of ", dt, " were drawn before: ", sample, " and ", seed, " change nothing"];
                done.warnings.push(words![nothing, "; for another draw, give another file as ", answers]);
            }
            (done.n_drawn, done.n_without_texts) = (drawn.pairs.len() as u64, drawn.n_without_texts);
            if !drawn.pairs.is_empty() {
                answers.pairs.extend(drawn.pairs);
                answers.write(&storage).await?;
            }
            // What a program has on its standard input is for something else.
            if std::io::stdin().is_terminal() {
                done.n_answered = ask(&storage, &mut answers, &request.night.dt, &drawn.generation).await?;
            }
        }
        done.n_open = answers.pairs.iter().filter(|pair| pair.answer.is_none()).count() as u64;
        let is_former = |pair: &&ReviewedPair| published.get(&pair.dt).is_some_and(|now| *now != pair.generation);
        let n_former = answers.pairs.iter().filter(is_former).filter(|pair| pair.answer.is_some()).count() as u64;
        if n_former > 0 {
            let are = if n_former == 1 { "is" } else { "are" };
            let former =
                format!("{} {are} about former generations of nights, and not counted", counted(n_former, "answer"));
            done.warnings.push(former.into());
        }
        done.estimate = estimate_review(&answers.pairs, &published);
        Ok::<_, Fault>(done)
    })?;
    name_flags("review", &mut done.warnings);
    let text = text(&done);
    Ok(session.report("review", "done", &done, text))
}

/// Returns the generations of the nights of a store. A store that is gone has none.
async fn published(storage: &Storage, store: &str) -> Result<BTreeMap<String, String>> {
    match published_generations(storage, store).await {
        Err(error) if error.kind() == ErrorKind::InputMissing => Ok(BTreeMap::new()),
        published => published,
    }
}

/// The number of pairs that are drawn of a night, unless the user says another.
const SAMPLE: usize = 60;

/// What somebody typed.
enum Key {
    Answer(Answer),
    Back,
    Stop,
    Unknown,
}

impl Key {
    fn of(line: &str) -> Self {
        match line.trim().to_ascii_lowercase().as_str() {
            "s" | "same" => Self::Answer(Answer::Same),
            "n" | "not" => Self::Answer(Answer::Different),
            "k" | "skip" => Self::Answer(Answer::Skipped),
            "b" | "back" => Self::Back,
            "q" | "quit" => Self::Stop,
            _ => Self::Unknown,
        }
    }
}

/// Shows the pairs of a night without an answer one after another, and reads the answers, a line each, up to the end of
/// standard input. Each answer is written at once. Returns the number of answers.
async fn ask(storage: &Storage, answers: &mut Answers, dt: &str, generation: &str) -> Result<u64> {
    let is_open = |pair: &ReviewedPair| pair.dt == dt && pair.generation == generation && pair.answer.is_none();
    let open: Vec<usize> = (0..answers.pairs.len()).filter(|&at| is_open(&answers.pairs[at])).collect();
    let (mut at, mut n_answered) = (0, 0);
    while let Some(&number) = open.get(at) {
        let shown = format!("\n{} of {}\n{}", at + 1, open.len(), side_by_side(&answers.pairs[number], width()));
        let Some(line) = blocking("review", move || read_line(&shown)).await? else { break };
        match Key::of(&line) {
            Key::Answer(answer) => {
                n_answered += u64::from(answers.pairs[number].answer.is_none());
                answers.pairs[number].answer = Some(answer);
                answers.write(storage).await?;
                at += 1;
            }
            Key::Back => at = at.saturating_sub(1),
            Key::Stop => break,
            Key::Unknown => {}
        }
    }
    Ok(n_answered)
}

const QUESTION: &str = "same (s), not the same (n), skip (k), back (b), stop (q)? ";

/// Shows a pair on standard error, and reads a line of standard input. `None`: there is no more.
fn read_line(shown: &str) -> Result<Option<String>> {
    // A signal is told of on standard error while this waits, so nothing holds it then.
    let say = |text: &str| {
        let mut error = std::io::stderr().lock();
        write!(error, "{text}").and_then(|()| error.flush()).map_err(Fault::io("standard error"))
    };
    say(&format!("{shown}{QUESTION}"))?;
    let mut line = String::new();
    let n = std::io::stdin().lock().read_line(&mut line).map_err(Fault::io("standard input"))?;
    if n == 0 {
        // The report begins on a line of its own.
        say("\n")?;
    }
    Ok((n > 0).then_some(line))
}

/// The width of a table where there is no terminal.
const NO_TERMINAL: u16 = 120;
/// The least width of a column.
const LEAST: usize = 20;

fn width() -> usize {
    usize::from(Term::stderr().size_checked().map_or(NO_TERMINAL, |(_, columns)| columns))
}

/// Returns the two texts of a pair beside each other, in columns that fit the width together.
fn side_by_side(pair: &ReviewedPair, width: usize) -> String {
    let column = (width.saturating_sub(3) / 2).max(LEAST);
    let [mut left, mut right] = [Vec::new(), Vec::new()];
    left.extend(wrapped(&shown_id(&pair.doc_id), column));
    right.extend(wrapped(&format!("{}  {}", shown_id(&pair.other_id), pair.other_dt), column));
    let n_head = left.len().max(right.len());
    left.resize(n_head, String::new());
    right.resize(n_head, String::new());
    left.push("-".repeat(column));
    right.push("-".repeat(column));
    left.extend(wrapped(&pair.text, column));
    right.extend(wrapped(&pair.other_text, column));
    let mut out = format!("{}\n", what(pair));
    for at in 0..left.len().max(right.len()) {
        let cell = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
        let (left, right) = (cell(&left), cell(&right));
        let room = " ".repeat(column.saturating_sub(measure_text_width(&left)));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", format!("{left}{room} | {right}").trim_end());
    }
    out
}

fn what(pair: &ReviewedPair) -> String {
    let of = |name: &str, value: Option<String>| value.map_or(String::new(), |value| format!("; {name} {value}"));
    let decided = if pair.is_drop { "the first was dropped for the second" } else { "both were kept" };
    format!(
        "{decided}{}{}{}",
        of("distance", pair.distance.map(|distance| distance.to_string())),
        of("sketch", pair.sketch_distance.map(|distance| distance.to_string())),
        of("lost share", pair.lost_share.map(|share| format!("{share:.3}")))
    )
}

/// Cuts a text into lines of at most a width, between words where that is possible. A wide character takes two columns.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_inclusive(' ') {
        if measure_text_width(&line) + measure_text_width(word.trim_end()) > width && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            let shown = c.to_string();
            if measure_text_width(&line) + measure_text_width(&shown) > width && c != ' ' {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

fn text(done: &Reviewed) -> String {
    let mut out =
        format!("{}: {} now, {} open\n", done.answers, counted(done.n_answered, "answer"), grouped(done.n_open));
    // Writing to a string cannot fail.
    if done.n_drawn > 0 {
        let _ = writeln!(out, "{} drawn of {}", counted(done.n_drawn, "pair"), done.dt.as_deref().unwrap_or_default());
    }
    if done.n_without_texts > 0 {
        let _ = writeln!(
            out,
            "{} not drawn: the file with a text is gone or has changed, or its night was replaced",
            counted(done.n_without_texts, "pair")
        );
    }
    warnings(&mut out, &done.warnings);
    let nights = &done.estimate.nights;
    if nights.is_empty() {
        let _ = writeln!(out, "No answers yet");
        return out;
    }
    let _ = writeln!(
        out,
        "\n{:<12} {:>6} {:>6}  {:<24} {:<24}",
        "night", "same", "not", "precision [95 %]", "recall [95 %]"
    );
    nights.iter().for_each(|night| row(&mut out, night));
    let _ = writeln!(
        out,
        "\n{:<12} {:>6} {:>6}  {:<24} {:<24}",
        "month", "same", "not", "precision [95 %]", "recall [95 %]"
    );
    done.estimate.months.iter().for_each(|month| row(&mut out, month));
    let shown = done.dt.as_ref().and_then(|dt| nights.iter().find(|night| night.dt == *dt));
    if let Some(night) = shown {
        let _ = writeln!(out, "\n{:<36} {:>10} {:>6} {:>6}  same [95 %]", night.dt, "pairs", "same", "not");
        for stratum in &night.strata {
            let (n, same, not) = (grouped(stratum.n_stratum), stratum.n_same, stratum.n_different);
            let share = cell(stratum.same, stratum.same_ci);
            let _ = writeln!(out, "{:<36} {n:>10} {same:>6} {not:>6}  {share}", stratum.name);
        }
    }
    out
}

fn row(out: &mut String, night: &NightEstimate) {
    let (precision, recall) = (cell(night.precision, night.precision_ci), cell(night.recall, night.recall_ci));
    let (name, same, not) = (&night.dt, grouped(night.n_same), grouped(night.n_different));
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{name:<12} {same:>6} {not:>6}  {precision:<24} {recall:<24}");
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_break_between_words_and_wide_characters_take_two_columns() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("北京的天气很好", 6), ["北京的", "天气很", "好"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
