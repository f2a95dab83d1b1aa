//! Filtering on two threads: one reads and computes, the other writes.

use nearprint_fault::Result;
use nearprint_storage::blocking;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::filter::RowCounts;

/// Passes what `read` sends on to `write`, at most `n_ahead` pieces before they are written, and returns the counts.
///
/// # Errors
/// That of `write`, or else that of `read`: if a file cannot be written, whoever reads only knows that nobody takes its
/// pieces.
pub async fn piped<T, R>(
    n_ahead: usize,
    read: impl FnOnce(Sender<T>) -> R + Send + 'static,
    write: impl FnOnce(Receiver<T>) -> Result<()> + Send + 'static,
) -> Result<RowCounts>
where
    T: Send + 'static,
    R: Future<Output = Result<RowCounts>>,
{
    let (sender, receiver) = channel(n_ahead);
    let written = blocking("writing", move || write(receiver));
    // What is read is parsed on a thread of its own, because that computes for a long time.
    let read = blocking("filtering", move || Handle::current().block_on(read(sender)));
    let (counts, written) = tokio::join!(read, written);
    written.and(counts)
}
