//! The program in which a command runs.

use std::sync::Arc;

use nearprint_storage::Progress;
use tokio::sync::Notify;

use crate::exit_code::Failure;

/// Stops a night that runs for another program. Clones stop the same night.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Notify>);

impl Stop {
    /// Stops the night at the next point where it waits. A night that has not begun stops as soon as it begins.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

/// The program in which a command runs.
#[derive(Debug, Clone)]
pub enum Embedding {
    /// The process exists for the command: the command owns its threads, its signals and its standard error.
    Process,
    /// The command is one call of a program that goes on afterwards.
    Program(Stop),
}

impl Embedding {
    /// Shows the progress until the future is dropped.
    pub async fn show(&self, progress: Progress) {
        match self {
            Self::Process => crate::progress::show(progress).await,
            Self::Program(_) => std::future::pending().await,
        }
    }

    /// Waits until the command is to stop, and returns the reason.
    pub async fn stopped(&self) -> Failure {
        match self {
            Self::Process => signalled().await,
            Self::Program(Stop(stopped)) => {
                stopped.notified().await;
                Failure::signalled("the program", 130)
            }
        }
    }
}

async fn signalled() -> Failure {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => Failure::signalled("SIGINT", 130),
        _ = terminate.recv() => Failure::signalled("SIGTERM", 143),
    }
}
