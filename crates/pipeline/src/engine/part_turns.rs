//! The order of a join's parts: the tables of only one part of the queries are held at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// The turns of the parts. The tasks of a part begin when those of the part before it are done, so that only one part's
/// tables are held.
#[derive(Debug)]
pub(crate) struct PartTurns {
    /// The number of tasks of each part that are not done.
    left: Vec<AtomicUsize>,
    current: watch::Sender<usize>,
}

impl PartTurns {
    /// Returns the turns of `n_parts` parts. `tasks` has the part of each task, and each part has some tasks.
    pub(crate) fn new(n_parts: usize, tasks: impl Iterator<Item = usize>) -> Self {
        let left: Vec<AtomicUsize> = (0..n_parts).map(|_| AtomicUsize::new(0)).collect();
        for part in tasks {
            left[part].fetch_add(1, Ordering::Relaxed);
        }
        Self { left, current: watch::Sender::new(0) }
    }

    /// Waits for the turn of a part. Each of its tasks asks once, and holds the turn until it is done.
    pub(crate) async fn of(self: &Arc<Self>, part: usize) -> Turn {
        // The turn may have passed, too: a task that runs again then builds its tables again.
        let come = self.current.subscribe().wait_for(|&current| current >= part).await.is_ok();
        debug_assert!(come, "the sender lives as long as what waits for it");
        Turn { turns: Arc::clone(self), part }
    }
}

/// A task of a part that is not done.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<PartTurns>,
    part: usize,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.turns.left[self.part].fetch_sub(1, Ordering::AcqRel) == 1 {
            self.turns.current.send_replace(self.part + 1);
        }
    }
}
