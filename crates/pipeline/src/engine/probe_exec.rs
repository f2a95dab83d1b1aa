//! `ProbeExec`: the map phase; each partition probes the query tables with the fingerprints of one task.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;

use super::task_exec::Tasks;
use crate::error::Result;
use crate::tasks::{MapContext, MapTask, map_task};

#[derive(Debug)]
pub(crate) struct ProbeTasks {
    pub(crate) context: Arc<MapContext>,
    pub(crate) tasks: Vec<MapTask>,
}

impl Tasks for ProbeTasks {
    const NAME: &'static str = "ProbeExec";

    fn schema(&self) -> SchemaRef {
        self.context.schema()
    }

    fn n_tasks(&self) -> usize {
        self.tasks.len()
    }

    fn run(self: Arc<Self>, i: usize) -> BoxStream<'static, Result<RecordBatch>> {
        map_task(&self.context, &self.tasks[i])
    }
}
