//! The batches of a task, which a producer sends.

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use nearprint_fault::{Fault, Result};

/// The output of a task.
#[derive(Debug, Clone)]
pub enum TaskBatch {
    /// Rows of the output: fingerprinted documents, or pairs.
    Rows(RecordBatch),
    /// Notes for the caller, in columns of their own: files that cannot be read, pairs of classes, or counts.
    Notes(RecordBatch),
}

/// The batches of a task. No work starts before they are polled.
pub type TaskBatches = BoxStream<'static, Result<TaskBatch>>;

/// Returns the batches that a producer sends from an asynchronous task of its own. That task stops when the batches are
/// no longer wanted. A panic becomes an error.
pub(crate) fn produce<F, P>(stage: &'static str, producer: P) -> TaskBatches
where
    F: Future<Output = Result<()>> + Send + 'static,
    P: FnOnce(Sender) -> F + Send + 'static,
{
    let started = async move {
        let (sender, receiver) = tokio::sync::mpsc::channel(2);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(producer(Sender { sender }));
        drain(stage, receiver, tasks)
    };
    futures::stream::once(started).flatten().boxed()
}

/// The channel to which a producer sends its batches.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    sender: tokio::sync::mpsc::Sender<TaskBatch>,
}

impl Sender {
    /// Sends a batch.
    ///
    /// # Errors
    /// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if nobody receives batches any more.
    pub(crate) async fn send(&self, batch: TaskBatch) -> Result<()> {
        self.sender.send(batch).await.map_err(|_| cancelled())
    }

    /// Sends a batch from a thread that may block.
    ///
    /// # Errors
    /// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if nobody receives batches any more.
    pub(crate) fn send_blocking(&self, batch: TaskBatch) -> Result<()> {
        self.sender.blocking_send(batch).map_err(|_| cancelled())
    }
}

fn cancelled() -> Fault {
    Fault::try_again("the run was cancelled".to_owned())
}

fn drain(
    stage: &'static str,
    receiver: tokio::sync::mpsc::Receiver<TaskBatch>,
    tasks: tokio::task::JoinSet<Result<()>>,
) -> impl Stream<Item = Result<TaskBatch>> + Send + 'static {
    futures::stream::unfold((receiver, tasks), move |(mut receiver, mut tasks)| async move {
        if let Some(batch) = receiver.recv().await {
            return Some((Ok(batch), (receiver, tasks)));
        }
        let joined = |e: tokio::task::JoinError| Fault::internal(stage, e);
        let outcome = tasks.join_next().await?.map_err(joined).flatten();
        outcome.err().map(|error| (Err(error), (receiver, tasks)))
    })
}
