//! Shows progress, as a line that moves on a terminal and as log lines elsewhere.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nearprint_storage::{Progress, Snapshot, stage_for_people};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

use crate::args::{Global, LogFormat};
use crate::exit_code::Failure;

/// The variable whose value replaces the filter of log lines.
const LOG_VARIABLE: &str = "NEARPRINT_LOG";

/// Sends logs to standard error. On a terminal, the line of the progress replaces the log lines of level `info`.
///
/// # Errors
/// `NEARPRINT_LOG` has a value that is no filter.
pub fn init_logging(global: &Global) -> Result<(), Failure> {
    let terminal = std::io::stderr().is_terminal();
    let level = match (global.quiet, global.verbose, terminal) {
        (true, ..) | (_, 0, true) => "warn",
        (_, 0, false) => "warn,nearprint=info,nearprint_pipeline=info",
        (_, 1, _) => "warn,nearprint=debug,nearprint_pipeline=debug",
        _ => "debug",
    };
    let filter = asked_filter()?.unwrap_or_else(|| EnvFilter::new(level));
    // The logs of these crates contain keys, headers and server responses.
    let silent = ["aws_config", "aws_runtime", "aws_smithy_runtime", "aws_smithy_runtime_api", "aws_sigv4", "h2"];
    let directives: Vec<Directive> = silent.iter().filter_map(|name| format!("{name}=off").parse().ok()).collect();
    assert_eq!(directives.len(), silent.len(), "one that is no directive would not silence what logs keys");
    let filter = directives.into_iter().fold(filter, EnvFilter::add_directive);
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A log that cannot be written, on a full disk or behind a reader that is gone, ends no night.
    let subscriber = subscriber.log_internal_errors(false);
    // A second initialisation is only possible in tests.
    let _ = match global.log_format {
        LogFormat::Text => subscriber.with_ansi(terminal && !no_color()).try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).with_span_list(false).try_init(),
    };
    Ok(())
}

/// Returns whether the user asks programs for output without colour, by a value of `NO_COLOR` that is not empty.
fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Returns the filter that the user asks for by `NEARPRINT_LOG`, if it is set and not empty.
fn asked_filter() -> Result<Option<EnvFilter>, Failure> {
    let Some(text) = std::env::var_os(LOG_VARIABLE).filter(|text| !text.is_empty()) else { return Ok(None) };
    let text = text.to_string_lossy();
    let refused = |reason: &str| {
        Failure::usage(format!(
            "{LOG_VARIABLE}='{text}': {reason}: write a level (error, warn, info, debug, trace, off), or CRATE=LEVEL, \
             separated by commas"
        ))
    };
    // A word alone would be a filter for a crate of that name, and would silence everything else.
    let is_level = |word: &str| word.parse::<tracing::level_filters::LevelFilter>().is_ok();
    if let Some(word) = text.split(',').map(str::trim).find(|part| !part.contains('=') && !is_level(part)) {
        return Err(refused(&format!("'{word}' is no level")));
    }
    EnvFilter::builder().parse(&text).map(Some).map_err(|error| refused(&error.to_string()))
}

/// Shows `progress` until the future is dropped.
pub async fn show(progress: Progress) {
    if std::io::stderr().is_terminal() { draw(progress).await } else { log(progress).await }
}

async fn draw(progress: Progress) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style =
        |template: &str| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let clear = ClearOnDrop(bar.clone());
    let (started, mut pace) = (Instant::now(), Pace::default());
    loop {
        let now = progress.snapshot();
        if now.stage.is_empty() {
            bar.finish_and_clear();
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        pace.see(started.elapsed(), now);
        bar.set_style(style(if now.total > 0 { "{spinner} {msg} {wide_bar}" } else { "{spinner} {msg}" }));
        bar.set_message(pace.line());
        // It is drawn again from here on.
        if bar.is_finished() {
            bar.reset();
        }
        if now.total > 0 {
            bar.set_length(now.total);
        }
        bar.set_position(now.done.min(now.total));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let _ = &clear;
    }
}

struct ClearOnDrop(ProgressBar);

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

async fn log(progress: Progress) {
    let (started, mut pace, mut logged) = (Instant::now(), Pace::default(), Logged::default());
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (at, now) = (started.elapsed(), progress.snapshot());
        pace.see(at, now);
        if logged.is_due(at, now) {
            tracing::info!("{}", pace.line());
        }
    }
}

/// The least time between two log lines of the progress.
const LOG_LEAST: Duration = Duration::from_secs(30);
/// The time after which a log line follows in any case.
const LOG_MOST: Duration = Duration::from_secs(300);

/// The last log line of the progress, or the beginning of the stage, which has a line of its own.
#[derive(Debug, Default)]
struct Logged {
    at: Duration,
    step: (u32, &'static str),
    tenths: u64,
}

impl Logged {
    /// Returns whether a line is due: after each tenth of the stage, and after five minutes, but never within 30 seconds.
    /// Work without stages has no lines.
    fn is_due(&mut self, at: Duration, now: Snapshot) -> bool {
        let step = (now.step, now.stage);
        let tenths = (10 * now.done).checked_div(now.total).unwrap_or(0);
        if step != self.step {
            *self = Self { at, step, tenths: 0 };
            return false;
        }
        let since = at.saturating_sub(self.at);
        let due = !now.stage.is_empty() && (since >= LOG_MOST || (since >= LOG_LEAST && tenths > self.tenths));
        if due {
            *self = Self { at, step, tenths };
        }
        due
    }
}

/// The least expected time after a stage that is shown.
const LEAST_AFTER: Duration = Duration::from_secs(1);
/// The time over which a rate is taken.
const RATE_OVER: Duration = Duration::from_secs(15);

/// The rate of a stage, from what was seen of it lately.
#[derive(Debug, Default)]
struct Pace {
    seen: VecDeque<(Duration, Snapshot)>,
}

impl Pace {
    /// Takes in the state at a time since the start.
    fn see(&mut self, at: Duration, now: Snapshot) {
        let is_other = |(_, last): &(Duration, Snapshot)| (last.step, last.stage) != (now.step, now.stage);
        if self.seen.back().is_some_and(is_other) {
            self.seen.clear();
        }
        self.seen.push_back((at, now));
        // One that is older than the time stays, so that a stage that moves seldom has a rate.
        while self.seen.get(1).is_some_and(|(second, _)| *second + RATE_OVER < at) {
            self.seen.pop_front();
        }
    }

    /// Returns the units that are done in a second, or `None` if nothing is.
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    fn rate(&self) -> Option<f64> {
        let ((from, first), (to, last)) = self.seen.front().zip(self.seen.back())?;
        let seconds = to.saturating_sub(*from).as_secs_f64();
        let done = last.done.saturating_sub(first.done);
        (done > 0 && seconds > 0.0).then(|| done as f64 / seconds)
    }

    /// Describes the stage: step, name, share, rate, time left, and the time left of the whole work, as far as they are
    /// known.
    fn line(&self) -> String {
        let Some((_, now)) = self.seen.back().filter(|(_, now)| !now.stage.is_empty()) else { return String::new() };
        let step = match now.n_steps {
            n if n >= now.step => format!("step {} of {n}: ", now.step),
            _ => String::new(),
        };
        let mut parts = vec![format!("{step}{}", stage_for_people(now.stage))];
        if now.total > 0 {
            parts.push(format!("{} %", (100 * u128::from(now.done.min(now.total))) / u128::from(now.total)));
        } else if now.done > 0 {
            parts.push(short(now.done));
        }
        if let Some(rate) = self.rate() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is positive")]
            parts.push(format!("{}{}/s", short(rate.ceil() as u64), if now.unit == "bytes" { "B" } else { "" }));
            #[allow(clippy::cast_precision_loss, reason = "for people")]
            let seconds = now.total.saturating_sub(now.done) as f64 / rate;
            if now.total > 0 {
                let whole = match now.after {
                    after if after < LEAST_AFTER => String::new(),
                    after => format!(", in all about {}", time(seconds + after.as_secs_f64())),
                };
                parts.push(format!("{} left{whole}", time(seconds)));
            }
        }
        parts.join("  ")
    }
}

/// Formats 1234567 as `1.2M`.
#[allow(clippy::cast_precision_loss, reason = "for people")]
fn short(n: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let unit = UNITS.into_iter().find(|(size, _)| n >= *size);
    unit.map_or_else(|| n.to_string(), |(size, name)| format!("{:.1}{name}", n as f64 / size as f64))
}

/// Formats a time with one unit or two: `12 s`, `3 min`, `2:05 h`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time is positive")]
pub fn time(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        n @ 0..100 => format!("{n} s"),
        n @ 100..6000 => format!("{} min", n.div_ceil(60)),
        n if n < 36_000 => format!("{}:{:02} h", n / 3600, n % 3600 / 60),
        n if n < 360_000 => format!("{} h", n.div_ceil(3600)),
        _ => "days".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(step: u32, done: u64, total: u64) -> Snapshot {
        let progress = Progress::default();
        progress.begin(7);
        for _ in 0..step {
            progress.start("join (all pairs)", "fingerprints", total);
        }
        progress.advance(done);
        progress.snapshot()
    }

    fn line(seen: &[(u64, Snapshot)]) -> String {
        let mut pace = Pace::default();
        seen.iter().for_each(|(second, now)| pace.see(Duration::from_secs(*second), *now));
        pace.line()
    }

    #[test]
    fn a_stage_shows_step_share_rate_and_time_left() {
        let shown = line(&[(0, at(3, 0, 400_000)), (4, at(3, 100_000, 400_000))]);
        assert_eq!(shown, "step 3 of 7: join  25 %  25.0k/s  12 s left");
        let shown = line(&[(0, at(3, 0, 0)), (2, at(3, 3_000, 0))]);
        assert_eq!(shown, "step 3 of 7: join  3.0k  1.5k/s");
        assert_eq!(line(&[(0, at(3, 0, 0))]), "step 3 of 7: join");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds_and_of_this_stage() {
        let slow = line(&[(0, at(3, 0, 9_000)), (100, at(3, 8_000, 9_000)), (120, at(3, 8_020, 9_000))]);
        assert!(slow.ends_with("1/s  17 min left"), "{slow}");
        let next = line(&[(0, at(3, 0, 9_000)), (9, at(3, 9_000, 9_000)), (10, at(4, 0, 5_000))]);
        assert_eq!(next, "step 4 of 7: join  0 %");
    }

    #[test]
    fn a_stage_with_much_to_come_after_it_shows_the_time_left_of_all() {
        let expecting = |after| Snapshot { after, ..at(1, 100_000, 400_000) };
        let shown = |after| line(&[(0, at(1, 0, 400_000)), (4, expecting(after))]);
        assert!(shown(Duration::from_secs(600)).ends_with("25.0k/s  12 s left, in all about 11 min"));
        assert!(shown(Duration::from_millis(900)).ends_with("25.0k/s  12 s left"));
    }

    #[test]
    fn the_longest_line_fits_sixty_columns_and_eighty_where_it_shows_the_time_of_all() {
        let n = 999_900_000_000;
        for (total, left) in [(90 * n, "25 h left"), (35 * n, "9:43 h left")] {
            let longest = line(&[(0, at(7, 0, total)), (1, at(7, n / 1000, total))]);
            assert!(longest.ends_with(&format!("999.9M/s  {left}")), "{longest}");
            assert!(longest.chars().count() <= 57, "{longest}");
        }
        let first = |done| {
            let progress = Progress::default();
            progress.begin(8);
            progress.start("fingerprint", "bytes", 35 * n);
            progress.advance(done);
            progress.expect_after(Duration::from_secs(35_000));
            progress.snapshot()
        };
        let longest = line(&[(0, first(0)), (1, first(n / 1000))]);
        assert!(longest.ends_with("999.9MB/s  9:43 h left, in all about 20 h"), "{longest}");
        assert!(longest.chars().count() <= 77, "{longest}");
    }

    #[test]
    fn log_lines_follow_tenths_but_not_within_half_a_minute() {
        let mut logged = Logged::default();
        let mut due = |second: u64, now: Snapshot| logged.is_due(Duration::from_secs(second), now);
        assert!(!due(0, at(3, 0, 1_000)));
        assert!(!due(20, at(3, 500, 1_000)), "within 30 seconds");
        assert!(due(30, at(3, 510, 1_000)));
        assert!(!due(70, at(3, 590, 1_000)), "the same tenth");
        assert!(due(71, at(3, 600, 1_000)));
        assert!(!due(370, at(3, 600, 1_000)));
        assert!(due(371, at(3, 600, 1_000)), "five minutes");
        assert!(!due(372, at(4, 100, 1_000)), "the stage has its own line");
        let mut logged = Logged::default();
        let mut due = |second: u64| logged.is_due(Duration::from_secs(second), Progress::default().snapshot());
        assert!((0..4000).all(|second| !due(second)), "a server has no stages");
    }
}
