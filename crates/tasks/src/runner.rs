//! Runners of the tasks of a stage: this process, or others that have only the descriptions.

use std::path::Path;
use std::sync::Arc;

use futures::stream::BoxStream;

use crate::error::Result;
use crate::fingerprint_task::{FingerprintContext, FingerprintSpec, FingerprintTask, fingerprint_task};
use crate::map::map_task;
use crate::map::{MapContext, MapTask};
use crate::stream::TaskBatch;

/// The batches of a task. No work starts before they are polled.
pub type TaskBatches = BoxStream<'static, Result<TaskBatch>>;

/// Runs the map tasks of one join.
pub trait TaskRunner: Send + Sync + 'static {
    /// Runs a task.
    fn map(&self, task: &MapTask) -> TaskBatches;
}

/// Runs tasks elsewhere, from their descriptions and the specification that they share.
pub trait Elsewhere: Send + Sync + 'static {
    /// Runs a fingerprint task.
    fn fingerprint(&self, spec: &FingerprintSpec, task: &FingerprintTask) -> TaskBatches;

    /// Runs a map task of a join whose specification is in a folder, as [`MapSpec`](crate::MapSpec) writes it.
    fn map(&self, folder: &Path, task: &MapTask) -> TaskBatches;
}

impl TaskRunner for Arc<MapContext> {
    fn map(&self, task: &MapTask) -> TaskBatches {
        map_task(self, task)
    }
}

/// The runner of the fingerprint tasks of one run.
pub enum FingerprintRunner {
    /// This process runs them.
    Here(Arc<FingerprintContext>),
    /// Something else runs them, from their specification.
    Elsewhere(Arc<dyn Elsewhere>, Box<FingerprintSpec>),
}

impl FingerprintRunner {
    /// Runs a task.
    pub fn run(&self, task: &FingerprintTask) -> TaskBatches {
        match self {
            Self::Here(context) => fingerprint_task(context, task),
            Self::Elsewhere(elsewhere, spec) => elsewhere.fingerprint(spec, task),
        }
    }
}
