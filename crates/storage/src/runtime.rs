//! Blocking work on threads that nobody else waits for, and the text of a panic.

use nearprint_fault::{ErrorKind, Fault, foreign};
use tokio::task::JoinError;

/// Runs a computation on a thread that may block. A panic there becomes an error that names `stage`.
///
/// # Errors
/// The error of the computation, or [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if it panicked.
///
/// # Panics
/// Panics outside of a Tokio runtime.
pub async fn blocking<T, E>(
    stage: &'static str,
    compute: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Fault> + Send + 'static,
{
    of_task(stage, tokio::task::spawn_blocking(compute).await)
}

/// Returns the result of a task. A panic in it becomes an error that names `stage`.
///
/// # Errors
/// The error of the task, or [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if it panicked.
pub fn of_task<T, E: From<Fault>>(stage: &'static str, ended: Result<Result<T, E>, JoinError>) -> Result<T, E> {
    ended.map_err(|error| E::from(of_ended(stage, error))).flatten()
}

fn of_ended(stage: &'static str, error: JoinError) -> Fault {
    let said = error.to_string();
    let lacking = error.try_into_panic().ok().and_then(|panic| lack_of_threads(&*panic));
    lacking.unwrap_or_else(|| Fault::internal(stage, said))
}

/// Returns the message of a panic on one line.
#[must_use]
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    foreign(said.unwrap_or("no message"))
}

/// Returns the fault of a panic that comes of the system's limits: it gave no further thread. `None` for any other panic, which is
/// a defect of the code or of a file.
#[must_use]
pub fn lack_of_threads(panic: &(dyn std::any::Any + Send)) -> Option<Fault> {
    let text = panic_text(panic);
    let lacks = text.starts_with("OS can't spawn worker thread");
    let remedy = "allow this user more processes and threads (ulimit -u), or more memory";
    lacks.then(|| Fault::new(ErrorKind::LocalIo, format!("the system gives no further thread ({text})")).remedy(remedy))
}
