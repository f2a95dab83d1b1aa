//! Engines that run the tasks of a stage in other processes, from their descriptions.

use std::path::Path;

use nearprint_fault::Result;
use nearprint_storage::{Progress, Storage};

use crate::fingerprint_task::{FingerprintSpec, FingerprintTask};
use crate::map::MapTask;
use crate::messages::Messages;

/// A task and its weight. An engine gives its workers equal shares of the bytes of all tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed<T> {
    /// The task.
    pub task: T,
    /// The bytes that it reads, or a number in proportion to them.
    pub bytes: u64,
}

impl<T> Weighed<T> {
    /// Scales the bytes of tasks to a sum of about `bytes`. Each task keeps at least one.
    ///
    /// ```
    /// use nearprint_tasks::Weighed;
    ///
    /// let tasks = [4, 0, 8].map(|bytes| Weighed { task: "read", bytes });
    /// let scaled = Weighed::sharing(tasks.to_vec(), 600);
    /// assert_eq!(scaled.iter().map(|weighed| weighed.bytes).collect::<Vec<_>>(), [200, 1, 400]);
    /// ```
    #[must_use]
    pub fn sharing(tasks: Vec<Self>, bytes: u64) -> Vec<Self> {
        let all: u128 = tasks.iter().map(|weighed| u128::from(weighed.bytes)).sum();
        let share = |of: u64| u64::try_from(u128::from(of) * u128::from(bytes) / all.max(1)).unwrap_or(u64::MAX).max(1);
        tasks.into_iter().map(|Self { task, bytes }| Self { task, bytes: share(bytes) }).collect()
    }
}

/// The processes of an engine that run map tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// The number of tasks that run at once.
    pub n: usize,
    /// The number of threads of each task.
    pub threads: usize,
    /// The bytes that each process may take.
    pub memory_bytes: usize,
}

/// Runs tasks in other processes, from their descriptions and the specification that they share. A stage's tasks have the numbers
/// from 0 on, in the order of the list. Their batches come back as [messages](crate::messages_of). Tasks name files as the
/// storage finds them: with its settings for S3, and relative paths below its base.
pub trait Engine: Send + Sync + 'static {
    /// Makes the engine ready, which takes seconds the first time, and returns the processes that run tasks.
    ///
    /// # Errors
    /// The engine does not start.
    fn workers(&self) -> Result<Workers>;

    /// Runs fingerprint tasks. The messages, of the form [`Batches`](crate::Form::Batches), may come in any order. The bytes of
    /// the tasks are those of the rows that they return, as far as these are known. A night calls it again for the texts that
    /// its judge reads, while the messages of [`map`](Self::map) wait.
    fn fingerprint(
        &self,
        spec: &FingerprintSpec,
        tasks: Vec<Weighed<FingerprintTask>>,
        storage: &Storage,
        progress: &Progress,
    ) -> Messages;

    /// Runs all map tasks of a join whose specification is in a folder, as [`MapSpec`](crate::MapSpec) writes it. The
    /// messages, of the form [`Keys`](crate::Form::Keys), come in ascending order, each once.
    fn map(&self, folder: &Path, tasks: Vec<Weighed<MapTask>>, storage: &Storage, progress: &Progress) -> Messages;
}
