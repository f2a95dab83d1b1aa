//! Who runs the tasks of a stage: this process, or others from descriptions alone.

use std::path::Path;
use std::sync::Arc;

use futures::stream::BoxStream;

use super::fingerprint_task::{FingerprintContext, FingerprintSpec, FingerprintTask, fingerprint_task};
use super::map_context::{MapContext, MapTask};
use super::map_task::map_task;
use super::stream::TaskBatch;
use crate::error::Result;

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

    /// Runs a map task of the join whose specification is in a folder, as [`MapSpec`](super::MapSpec) has it.
    fn map(&self, folder: &Path, task: &MapTask) -> TaskBatches;
}

impl TaskRunner for Arc<MapContext> {
    fn map(&self, task: &MapTask) -> TaskBatches {
        map_task(self, task)
    }
}

/// The fingerprint tasks of one run.
pub(crate) enum FingerprintRunner {
    Here(Arc<FingerprintContext>),
    Elsewhere(Arc<dyn Elsewhere>, Box<FingerprintSpec>),
}

impl FingerprintRunner {
    pub(crate) fn run(&self, task: &FingerprintTask) -> TaskBatches {
        match self {
            Self::Here(context) => fingerprint_task(context, task),
            Self::Elsewhere(elsewhere, spec) => elsewhere.fingerprint(spec, task),
        }
    }
}
