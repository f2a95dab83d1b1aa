//! `FingerprintExec`: documents in, fingerprinted documents out.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;

use super::task_exec::Tasks;
use crate::error::Result;
use crate::tasks::{FingerprintContext, fingerprint_task};
use nearprint_dataset::DocumentRange;

#[derive(Debug)]
pub(crate) struct FingerprintTasks {
    pub(crate) context: Arc<FingerprintContext>,
    pub(crate) tasks: Vec<DocumentRange>,
}

impl Tasks for FingerprintTasks {
    const NAME: &'static str = "FingerprintExec";

    fn schema(&self) -> SchemaRef {
        self.context.schema()
    }

    fn n_tasks(&self) -> usize {
        self.tasks.len()
    }

    fn run(self: Arc<Self>, i: usize) -> BoxStream<'static, Result<RecordBatch>> {
        fingerprint_task(&self.context, &self.tasks[i])
    }
}
