//! Engines that run the tasks of a stage in other processes, from their descriptions.

use std::path::Path;

use nearprint_fault::Result;
use nearprint_storage::{Progress, Storage};

use crate::fingerprint_task::{FingerprintSpec, FingerprintTask};
use crate::map::MapTask;
use crate::messages::Messages;

/// A task, and the bytes that it reads, about. An engine gives its workers equal shares of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed<T> {
    /// The task.
    pub task: T,
    /// The bytes.
    pub bytes: u64,
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

    /// Runs all fingerprint tasks of a run. The messages, of the form [`Batches`](crate::Form::Batches), may come in any
    /// order.
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
