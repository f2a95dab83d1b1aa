//! The progress of a stage. It is counted here, and the caller shows it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::locked::locked;

/// Returns the name of a stage for people. The variant in brackets, as of `join (forest)`, is for the times of stages.
#[must_use]
pub fn for_people(stage: &str) -> &str {
    stage.split(" (").next().unwrap_or(stage)
}

/// The counter of a stage. Clones share one count.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    counter: Arc<Counter>,
}

#[derive(Debug, Default)]
struct Counter {
    stage: std::sync::Mutex<Stage>,
    done: AtomicU64,
    total: AtomicU64,
    /// The milliseconds that the stages after this one are expected to take; 0 if it is unknown.
    after: AtomicU64,
    /// The stages in their order, and when each started.
    started: std::sync::Mutex<Vec<(&'static str, Instant)>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Stage {
    name: &'static str,
    unit: &'static str,
    step: u32,
    n_steps: u32,
}

/// The state of a stage at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The name of the stage.
    pub stage: &'static str,
    /// The name of the things that are counted.
    pub unit: &'static str,
    /// The number of the stage, counted from 1. It is 0 before the first stage.
    pub step: u32,
    /// The number of stages of the work; 0 if it is unknown.
    pub n_steps: u32,
    /// The number that is done.
    pub done: u64,
    /// The number in total; 0 if it is unknown.
    pub total: u64,
    /// The time that the stages after this one are expected to take; zero if it is unknown.
    pub after: Duration,
}

impl Progress {
    /// Begins work of `n_steps` stages. The next stage is the first one.
    pub fn begin(&self, n_steps: u32) {
        *locked(&self.counter.stage) = Stage { n_steps, ..Stage::default() };
    }

    /// Says that nothing is counted until the next stage starts, so that nothing is shown.
    pub fn pause(&self) {
        self.begin(0);
    }

    /// Starts a stage of `total` units and resets the count. The total is 0 if it is unknown.
    pub fn start(&self, stage: &'static str, unit: &'static str, total: u64) {
        {
            let mut now = locked(&self.counter.stage);
            *now = Stage { name: stage, unit, step: now.step + 1, n_steps: now.n_steps };
        }
        self.counter.done.store(0, Ordering::Relaxed);
        self.counter.total.store(total, Ordering::Relaxed);
        self.counter.after.store(0, Ordering::Relaxed);
        locked(&self.counter.started).push((stage, Instant::now()));
        let stage = for_people(stage);
        match total {
            0 => tracing::info!("{stage} ({unit})"),
            _ => tracing::info!(total, "{stage} ({unit})"),
        }
    }

    /// Returns how long each stage took, by name. A stage lasts until the next one starts, the last one until now. The
    /// times of stages of one name are added.
    #[must_use]
    pub fn durations(&self) -> BTreeMap<&'static str, Duration> {
        let started = locked(&self.counter.started);
        let ends = started.iter().skip(1).map(|(_, start)| *start).chain([Instant::now()]);
        let mut durations = BTreeMap::new();
        for ((stage, start), end) in started.iter().zip(ends) {
            *durations.entry(*stage).or_default() += end.duration_since(*start);
        }
        durations
    }

    /// Adds `n` to the number that is done.
    pub fn advance(&self, n: u64) {
        self.counter.done.fetch_add(n, Ordering::Relaxed);
    }

    /// Says how long the stages after this one are expected to take.
    pub fn expect_after(&self, expected: Duration) {
        // More than the 584 million years of 2^64 milliseconds is as long as that.
        let millis = u64::try_from(expected.as_millis()).unwrap_or(u64::MAX);
        self.counter.after.store(millis, Ordering::Relaxed);
    }

    /// Returns the state of the current stage.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let Stage { name: stage, unit, step, n_steps } = *locked(&self.counter.stage);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (done, total) = (load(&self.counter.done), load(&self.counter.total));
        // What is read a second time counts once.
        let done = if total > 0 { done.min(total) } else { done };
        let after = Duration::from_millis(load(&self.counter.after));
        Snapshot { stage, unit, step, n_steps, done, total, after }
    }
}
