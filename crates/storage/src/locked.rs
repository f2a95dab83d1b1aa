//! Locks that stay usable after a thread has panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a thread panicked while it held the lock. That panic ends the command with an internal error
/// of its own, and the data behind the lock is still complete.
///
/// Invariant: nothing behind these locks is ever left half changed. Each holder makes one change that cannot fail in
/// the middle.
pub fn locked<T>(behind: &Mutex<T>) -> MutexGuard<'_, T> {
    behind.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::locked;

    #[test]
    fn a_lock_that_a_panic_poisoned_still_gives_all_that_is_behind_it() {
        let behind = Mutex::new(vec![1]);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                locked(&behind).push(2);
                let _held = locked(&behind);
                std::panic::resume_unwind(Box::new("a defect"));
            });
            holder.join().is_err()
        });
        assert!(panicked && behind.is_poisoned());
        locked(&behind).push(3);
        assert_eq!(*locked(&behind), [1, 2, 3]);
    }
}
