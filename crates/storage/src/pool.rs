//! The pool of threads on which tasks compute.

use std::cell::RefCell;
use std::sync::Arc;

use rayon::ThreadPool;

thread_local! {
    static POOL: RefCell<Option<Arc<ThreadPool>>> = const { RefCell::new(None) };
}

/// Makes the tasks of this thread compute in a pool, instead of that of the whole process. A runtime calls it when it
/// starts a thread: several runs of one process then have threads of their own.
pub fn use_pool(pool: Arc<ThreadPool>) {
    POOL.set(Some(pool));
}

/// Computes in the pool of this thread. `compute` waits for nothing but the threads of the pool and local disks.
pub fn in_pool<T: Send>(compute: impl FnOnce() -> T + Send) -> T {
    match POOL.with_borrow(Clone::clone) {
        Some(pool) => pool.install(compute),
        None => compute(),
    }
}
