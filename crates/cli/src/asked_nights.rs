//! Nights that are asked for by a word: `today` and `yesterday` in the time zone of the job, and `latest`, the newest night of
//! its store. They become dates before a command begins, so no command knows these words.

use chrono::{DateTime, Days, NaiveDate, Utc};
use tokio::runtime::Builder;

use crate::args::{AskedNights, Command};
use crate::exit_code::Failure;
use crate::job_config::JobConfig;

/// A word in place of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Today,
    Yesterday,
    Latest,
}

impl Word {
    fn of(text: &str) -> Option<Self> {
        match text {
            "today" => Some(Self::Today),
            "yesterday" => Some(Self::Yesterday),
            "latest" => Some(Self::Latest),
            _ => None,
        }
    }
}

/// The words of a command line, each with the date that it stood for.
pub type Settled = Vec<(String, String)>;

/// Writes dates in place of the words that a command has for its nights.
///
/// # Errors
/// A run asks for the latest night, or a command that names no store; the job file, or the store that the word needs, cannot be
/// read.
pub fn settle(command: &mut Command) -> Result<Settled, Failure> {
    let mut settled = Vec::new();
    let Some(AskedNights { config, store, dts, makes_a_night }) = command.asked_nights() else { return Ok(settled) };
    let asked: Vec<(&mut String, Word)> =
        dts.into_iter().filter_map(|dt| Word::of(dt).map(|word| (dt, word))).collect();
    if asked.is_empty() {
        return Ok(settled);
    }
    let job = JobConfig::read_or_default(config)?;
    let now = Utc::now();
    let zone = || job.time_zone().map_err(|failure| job.located(failure));
    for (dt, word) in asked {
        let date = match word {
            Word::Latest if makes_a_night => {
                let reason =
                    "--dt latest is the newest published night, and a run makes one: give its date, today or yesterday";
                return Err(Failure::usage(reason));
            }
            Word::Latest if config.is_none() && store.is_none() => {
                let reason = "latest is the newest night of a store: give --config FILE, or the date of the night";
                return Err(Failure::usage(reason));
            }
            Word::Latest => latest(&job, job.store(store)?)?,
            Word::Today => date_in(now, zone()?, 0)?,
            Word::Yesterday => date_in(now, zone()?, 1)?,
        };
        settled.push((std::mem::replace(dt, date.clone()), date));
    }
    Ok(settled)
}

/// Returns the date that it is at a time in a zone, or that it was some days before.
fn date_in(now: DateTime<Utc>, zone: chrono_tz::Tz, days_before: u64) -> Result<String, Failure> {
    let date: NaiveDate = now.with_timezone(&zone).date_naive();
    let date = date.checked_sub_days(Days::new(days_before));
    date.map(|date| date.to_string()).ok_or_else(|| Failure::bug("the clock is at the beginning of time"))
}

/// Returns the newest night of a store. The runtime is one of its own, because that of the command does not exist yet.
fn latest(job: &JobConfig, store: String) -> Result<String, Failure> {
    let storage = job.storage();
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(crate::exit_code::LOCAL_IO, format!("no runtime: {error}")))?;
    let found = runtime.block_on(nearprint_night::latest_night(&storage, &store));
    found.map_err(|fault| Failure::from(fault).seen_from(job.folder()))
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::date_in;
    use crate::time_zone::zone;

    #[test]
    fn the_day_is_that_of_the_zone() {
        let now: DateTime<Utc> = "2026-03-01T23:30:00Z".parse().unwrap();
        for (name, today, yesterday) in [
            ("UTC", "2026-03-01", "2026-02-28"),
            ("Asia/Shanghai", "2026-03-02", "2026-03-01"),
            ("America/New_York", "2026-03-01", "2026-02-28"),
            ("Pacific/Kiritimati", "2026-03-02", "2026-03-01"),
        ] {
            let zone = zone("time_zone", name).unwrap();
            assert_eq!([0, 1].map(|days| date_in(now, zone, days).unwrap()), [today, yesterday], "{name}");
        }
    }
}
