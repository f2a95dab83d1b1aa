//! A value that tasks share, of which there is one at a time.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use nearprint_fault::Result;
use nearprint_storage::locked;
use tokio::sync::Notify;

/// One value at a time, for all tasks that need it at once. A task that needs another one waits until nobody has this one.
#[derive(Debug)]
pub(super) struct OneAtATime<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    /// Tells all that wait that the state may be one in which they can go on.
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    value: Option<Arc<T>>,
    n_held: usize,
    /// A task makes the next value. Nobody has one meanwhile.
    is_being_made: bool,
}

/// The value, for as long as a task has it.
#[derive(Debug)]
pub(super) struct Held<T> {
    // Dropped before the other field, so that it is given up before the next one takes memory.
    value: Arc<T>,
    _holding: Holding<T>,
}

/// One of those that count as holders.
#[derive(Debug)]
struct Holding<T>(Arc<Shared<T>>);

/// The turn of the task that makes the next value. Without a value at its end, another task has the turn.
struct Making<'a, T>(&'a Shared<T>);

impl<T> Default for OneAtATime<T> {
    fn default() -> Self {
        let state = State { value: None, n_held: 0, is_being_made: false };
        Self(Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }))
    }
}

impl<T> OneAtATime<T> {
    /// Returns the value if `is_it`. Otherwise waits until nobody has it, and replaces it by what `next` makes of it. Whenever
    /// there is another value, all that wait for it have it at once.
    ///
    /// # Errors
    /// Those of `next`, after which there is no value.
    pub(super) async fn get<F: Future<Output = Result<T>>>(
        &self,
        is_it: impl Fn(&T) -> bool,
        next: impl FnOnce(Option<Arc<T>>) -> F,
    ) -> Result<Held<T>> {
        let shared = &self.0;
        let before = loop {
            // A change between the look and the wait is not missed.
            let mut changed = std::pin::pin!(shared.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = locked(&shared.state);
                if let Some(value) = state.value.as_ref().filter(|value| is_it(value)).map(Arc::clone) {
                    state.n_held += 1;
                    return Ok(Held { value, _holding: Holding(Arc::clone(shared)) });
                }
                if state.n_held == 0 && !state.is_being_made {
                    state.is_being_made = true;
                    break state.value.take();
                }
            }
            changed.await;
        };
        let _turn = Making(shared);
        let value = Arc::new(next(before).await?);
        let mut state = locked(&shared.state);
        (state.value, state.n_held) = (Some(Arc::clone(&value)), 1);
        Ok(Held { value, _holding: Holding(Arc::clone(shared)) })
    }
}

impl<T> Drop for Making<'_, T> {
    fn drop(&mut self) {
        locked(&self.0.state).is_being_made = false;
        self.0.changed.notify_waiters();
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for Holding<T> {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        state.n_held -= 1;
        if state.n_held == 0 {
            self.0.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use nearprint_fault::Fault;
    use tokio::sync::Barrier;
    use tokio::time::timeout;

    use super::OneAtATime;

    /// Far longer than a test takes that does not wait for ever.
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn tasks_that_wait_for_the_same_value_have_it_at_once() {
        let (shared, n_made) = (Arc::new(OneAtATime::default()), Arc::new(AtomicUsize::new(0)));
        let first = shared.get(|_| false, |_: Option<Arc<i32>>| async { Ok(0) }).await.unwrap();
        let all_have_it = Arc::new(Barrier::new(3));
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let (shared, n_made, all_have_it) =
                    (Arc::clone(&shared), Arc::clone(&n_made), Arc::clone(&all_have_it));
                tokio::spawn(async move {
                    let make = |before: Option<Arc<i32>>| async move {
                        assert_eq!(before.as_deref(), Some(&0));
                        n_made.fetch_add(1, Ordering::Relaxed);
                        Ok(1)
                    };
                    let held = shared.get(|&value| value == 1, make).await.unwrap();
                    all_have_it.wait().await;
                    *held
                })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(first);
        for task in tasks {
            assert_eq!(timeout(LONG, task).await.unwrap().unwrap(), 1);
        }
        assert_eq!(n_made.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_next_value_is_made_when_nobody_has_the_one_before() {
        let (shared, n_users) = (Arc::new(OneAtATime::default()), Arc::new(AtomicUsize::new(0)));
        let tasks = (0..60).map(|i| {
            let (shared, n_users) = (Arc::clone(&shared), Arc::clone(&n_users));
            tokio::spawn(async move {
                let seen = Arc::clone(&n_users);
                let make = |_| async move {
                    assert_eq!(seen.load(Ordering::SeqCst), 0);
                    if i == 30 { Err(Fault::internal("test", "made no value")) } else { Ok(i % 3) }
                };
                let Ok(held) = shared.get(|&value| value == i % 3, make).await else {
                    assert_eq!(i, 30);
                    return;
                };
                n_users.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                assert_eq!(*held, i % 3);
                n_users.fetch_sub(1, Ordering::SeqCst);
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            timeout(LONG, task).await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_task_whose_value_is_there_does_not_wait_behind_one_that_needs_another() {
        let (shared, n_made) = (Arc::new(OneAtATime::default()), Arc::new(AtomicUsize::new(0)));
        let first = shared.get(|_| false, |_| async { Ok(0) }).await.unwrap();
        let both = Arc::new(Barrier::new(2));
        let tasks = [1, 2, 1].map(|wanted| {
            let (shared, n_made, both) = (Arc::clone(&shared), Arc::clone(&n_made), Arc::clone(&both));
            tokio::spawn(async move {
                let make = |_| async {
                    n_made.fetch_add(1, Ordering::Relaxed);
                    Ok(wanted)
                };
                let held = shared.get(|&value| value == wanted, make).await.unwrap();
                if wanted == 1 {
                    both.wait().await;
                }
                assert_eq!(*held, wanted);
            })
        });
        tokio::task::yield_now().await;
        drop(first);
        for task in tasks {
            timeout(LONG, task).await.unwrap().unwrap();
        }
        assert_eq!(n_made.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_task_that_is_cancelled_while_it_makes_its_value_leaves_the_turn_to_others() {
        let shared = Arc::new(OneAtATime::default());
        let never = Arc::clone(&shared);
        let cancelled = tokio::spawn(async move { never.get(|_| false, |_| std::future::pending()).await.map(drop) });
        tokio::task::yield_now().await;
        cancelled.abort();
        let held = timeout(LONG, shared.get(|&value| value == 1, |_| async { Ok(1) })).await.unwrap().unwrap();
        assert_eq!(*held, 1);
    }
}
