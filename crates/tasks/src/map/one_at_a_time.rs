//! A value that tasks share, of which there is one at a time.

use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use tokio::sync::{Mutex, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// One value at a time, for all tasks that need it at once. A task that needs another one waits until nobody has this one.
#[derive(Debug)]
pub(super) struct OneAtATime<T> {
    value: Arc<RwLock<Option<T>>>,
    /// Whoever holds this may replace the value. The lock of the value would let several that replace it in one after another, so
    /// each would wait for the end of the one before, although both need the same value.
    replacing: Mutex<()>,
}

/// The value, for as long as a task has it.
pub(super) type Held<T> = OwnedRwLockReadGuard<Option<T>, T>;

impl<T> Default for OneAtATime<T> {
    fn default() -> Self {
        Self { value: Arc::default(), replacing: Mutex::default() }
    }
}

impl<T> OneAtATime<T> {
    /// Returns the value if `is_it`. Otherwise waits until nobody has it, and replaces it by what `next` makes of it.
    ///
    /// # Errors
    /// Those of `next`, after which there is no value.
    pub(super) async fn get<F: Future<Output = Result<T>>>(
        &self,
        is_it: impl Fn(&T) -> bool,
        next: impl FnOnce(Option<T>) -> F,
    ) -> Result<Held<T>> {
        if let Some(held) = self.if_it(&is_it).await {
            return Ok(held);
        }
        let _replacing = self.replacing.lock().await;
        if let Some(held) = self.if_it(&is_it).await {
            return Ok(held);
        }
        let mut value = Arc::clone(&self.value).write_owned().await;
        let before = value.take();
        *value = Some(next(before).await?);
        let held = OwnedRwLockWriteGuard::downgrade(value);
        OwnedRwLockReadGuard::try_map(held, Option::as_ref)
            .map_err(|_| Fault::internal("map", "a value that tasks share is gone before the first of them has it"))
    }

    async fn if_it(&self, is_it: impl Fn(&T) -> bool) -> Option<Held<T>> {
        let value = Arc::clone(&self.value).read_owned().await;
        OwnedRwLockReadGuard::try_map(value, |value| value.as_ref().filter(|value| is_it(value))).ok()
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
        let first = shared.get(|_| false, |_| async { Ok(0) }).await.unwrap();
        let all_have_it = Arc::new(Barrier::new(3));
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let (shared, n_made, all_have_it) =
                    (Arc::clone(&shared), Arc::clone(&n_made), Arc::clone(&all_have_it));
                tokio::spawn(async move {
                    let make = |before| async move {
                        assert_eq!(before, Some(0));
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
}
