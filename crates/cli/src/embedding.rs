//! The program in which a command runs.

use std::sync::{Arc, OnceLock};

use nearprint_storage::{Progress, Snapshot};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::exit_code::Failure;

/// What another program holds of a night that runs for it: it stops the night, and sees how far it is. Clones are of the
/// same night.
#[derive(Debug, Clone, Default)]
pub struct Handle(Arc<Held>);

#[derive(Debug, Default)]
struct Held {
    stopped: Notify,
    progress: OnceLock<Progress>,
}

impl Handle {
    /// Stops the night at the next point where it waits. A night that has not begun stops as soon as it begins.
    pub fn stop(&self) {
        self.0.stopped.notify_one();
    }

    /// Returns how far the night is; `None` before its first step.
    #[must_use]
    pub fn progress(&self) -> Option<Snapshot> {
        self.0.progress.get().map(Progress::snapshot).filter(|now| !now.stage.is_empty())
    }
}

/// The program in which a command runs.
#[derive(Debug, Clone)]
pub enum Embedding {
    /// The process exists for the command: the command owns its threads, its signals and its standard error.
    Process,
    /// The command is one call of a program that goes on afterwards.
    Program(Handle),
}

impl Embedding {
    /// Shows the progress until the future is dropped.
    pub async fn show(&self, progress: Progress) {
        match self {
            Self::Process => crate::progress::show(progress).await,
            Self::Program(Handle(held)) => {
                held.progress.get_or_init(|| progress);
                std::future::pending().await
            }
        }
    }

    /// Waits until the command is to stop, and returns the reason.
    pub async fn stopped(&self) -> Failure {
        match self {
            Self::Process => signalled().await,
            Self::Program(Handle(held)) => {
                held.stopped.notified().await;
                Failure::signalled("the program", 130)
            }
        }
    }
}

/// The number of the signal for a file that is larger than the system allows, on Linux and macOS.
const SIGXFSZ: i32 = 25;

async fn signalled() -> Failure {
    // Caught, it ends nothing: the write fails, which has a message and a code.
    let _ = signal(SignalKind::from_raw(SIGXFSZ));
    let (Ok(interrupt), Ok(terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        return std::future::pending().await;
    };
    // nohup ignores it for its command.
    let hangup = if ignores_hangup() { None } else { signal(SignalKind::hangup()).ok() };
    tokio::select! {
        () = received(Some(interrupt)) => Failure::signalled("SIGINT", 130),
        () = received(Some(terminate)) => Failure::signalled("SIGTERM", 143),
        () = received(hangup) => Failure::signalled("SIGHUP", 129),
    }
}

async fn received(signal: Option<Signal>) {
    match signal {
        Some(mut signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Returns whether the process was started with SIGHUP, signal 1, ignored. Where the system does not say it, it is taken for so.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask & 1 != 0)
}
