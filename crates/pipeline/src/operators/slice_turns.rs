//! The order of a join's slices: only the tables of one turn are held at a time, those of a slice or of the slices of all words.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// The turns of the slices. The tasks of a slice begin when those of the slice before it are done, so that only the tables of one
/// turn are held. Slices that are mapped at once have the turn of the first of them.
#[derive(Debug)]
pub(crate) struct SliceTurns {
    /// The number of tasks of each slice that are not done.
    left: Vec<AtomicUsize>,
    current: watch::Sender<usize>,
}

impl SliceTurns {
    /// Returns the turns of `n_slices` slices. `tasks` has the slice of each task. A slice without tasks has no turn.
    pub(crate) fn new(n_slices: usize, tasks: impl Iterator<Item = usize>) -> Self {
        let left: Vec<AtomicUsize> = (0..n_slices).map(|_| AtomicUsize::new(0)).collect();
        for slice in tasks {
            left[slice].fetch_add(1, Ordering::Relaxed);
        }
        let turns = Self { left, current: watch::Sender::new(0) };
        turns.begin(0);
        turns
    }

    /// Gives the turn to the first slice from this one on that has tasks left.
    fn begin(&self, slice: usize) {
        let has_tasks = |&slice: &usize| self.left[slice].load(Ordering::Acquire) > 0;
        let n_slices = self.left.len();
        self.current.send_replace((slice..n_slices).find(has_tasks).unwrap_or(n_slices));
    }

    /// Waits for the turn of a slice. Each of its tasks asks once, and holds the turn until it is done.
    pub(crate) async fn of(self: &Arc<Self>, slice: usize) -> Turn {
        // The turn may have passed, too: a task that runs again then builds its tables again.
        let come = self.current.subscribe().wait_for(|&current| current >= slice).await.is_ok();
        debug_assert!(come, "the sender lives as long as what waits for it");
        Turn { turns: Arc::clone(self), slice }
    }
}

/// A task of a slice that is not done.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<SliceTurns>,
    slice: usize,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.turns.left[self.slice].fetch_sub(1, Ordering::AcqRel) == 1 {
            self.turns.begin(self.slice + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::SliceTurns;

    #[tokio::test]
    async fn slices_without_tasks_hold_no_others_up() {
        let turns = Arc::new(SliceTurns::new(5, [1, 1, 3].into_iter()));
        let first = (turns.of(1).await, turns.of(1).await);
        let waiting = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { drop(turns.of(3).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "a slice waits for those before it");
        drop(first);
        assert!(waiting.await.is_ok());
    }
}
