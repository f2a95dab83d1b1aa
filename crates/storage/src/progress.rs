//! How far a stage is: counted here, shown by whoever runs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::locked::locked;

/// A stage's counter; clones count together.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    counter: Arc<Counter>,
}

#[derive(Debug, Default)]
struct Counter {
    stage: std::sync::Mutex<(&'static str, &'static str)>,
    done: AtomicU64,
    total: AtomicU64,
}

/// Where a stage stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub stage: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// Done so far.
    pub done: u64,
    /// All there is; 0 where that is not known.
    pub total: u64,
}

impl Progress {
    /// Starts a stage.
    pub fn start(&self, stage: &'static str, unit: &'static str, total: u64) {
        *locked(&self.counter.stage) = (stage, unit);
        self.counter.done.store(0, Ordering::Relaxed);
        self.counter.total.store(total, Ordering::Relaxed);
        tracing::info!(total, "{stage} ({unit})");
    }

    /// Counts `n` more as done.
    pub fn advance(&self, n: u64) {
        self.counter.done.fetch_add(n, Ordering::Relaxed);
    }

    /// Where the current stage stands.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (stage, unit) = *locked(&self.counter.stage);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot { stage, unit, done: load(&self.counter.done), total: load(&self.counter.total) }
    }
}
