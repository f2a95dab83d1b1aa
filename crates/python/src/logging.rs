//! Log lines of the library, handed over to Python's `logging`.
//!
//! Threads that work only note their lines: none of them waits for the interpreter. The thread that waits for a call hands
//! them over.

use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use nearprint_storage::locked;
use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// The most lines that wait. A call hands them over twenty times a second, so more only come if nobody calls.
const MOST_LINES: usize = 10_000;

struct Line {
    level: Level,
    text: String,
}

static LINES: Mutex<VecDeque<Line>> = Mutex::new(VecDeque::new());
/// The number of lines that had no room.
static N_LOST: AtomicU64 = AtomicU64::new(0);

/// Begins to note lines, in a process that goes on after its calls. A process that is the command's writes its own.
pub(crate) fn note() {
    static NOTED: OnceLock<()> = OnceLock::new();
    // Whoever has set another subscriber before gets the lines there.
    NOTED.get_or_init(|| drop(tracing_subscriber::registry().with(Notes.with_filter(LevelFilter::INFO)).try_init()));
}

struct Notes;

impl<S: Subscriber> Layer<S> for Notes {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        // Logs of other libraries may hold keys and headers of requests.
        if !metadata.target().starts_with("nearprint") {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let mut lines = locked(&LINES);
        if lines.len() == MOST_LINES {
            lines.pop_front();
            N_LOST.fetch_add(1, Ordering::Relaxed);
        }
        lines.push_back(Line { level: *metadata.level(), text: format!("{}{}", text.message, text.fields) });
    }
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// Hands the lines that wait to the logger `nearprint`, one after another: if a handler raises, the others wait on.
pub(crate) fn hand_over(py: Python<'_>) -> PyResult<()> {
    if locked(&LINES).is_empty() {
        return Ok(());
    }
    let logger = py.import("logging")?.call_method1("getLogger", ("nearprint",))?;
    let log = |level: u8, text: &str| logger.call_method1("log", (level, "%s", text)).map(drop);
    let n_lost = N_LOST.swap(0, Ordering::Relaxed);
    if n_lost > 0 {
        log(WARNING, &format!("{n_lost} log lines had no room, because no call handed them over"))?;
    }
    let next = || locked(&LINES).pop_front();
    while let Some(line) = next() {
        let level = match line.level {
            Level::ERROR => ERROR,
            Level::WARN => WARNING,
            _ => INFO,
        };
        log(level, &line.text)?;
    }
    Ok(())
}

/// Python's levels.
const ERROR: u8 = 40;
const WARNING: u8 = 30;
const INFO: u8 = 20;
