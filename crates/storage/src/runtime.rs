//! Work that blocks, beside the threads that others wait for; and what a panic said.

use crate::error::{StorageError, one_line};

/// Computes on a thread that may block. A panic there is an error of `stage`.
///
/// # Errors
/// The computation's, or an internal one.
pub async fn blocking<T, E>(
    stage: &'static str,
    compute: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StorageError> + Send + 'static,
{
    let joined = tokio::task::spawn_blocking(compute).await;
    joined.map_err(|e| E::from(StorageError::Internal { stage, reason: e.to_string() })).flatten()
}

/// What a panic said, on one line.
#[must_use]
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    one_line(said.unwrap_or("no message"))
}
