//! A leaf of the plan whose partitions are tasks.

use std::fmt::{Debug, Display, Formatter};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result as DataFusionResult};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::Result;

use crate::error::into_datafusion;

/// Tasks of one kind.
pub(crate) trait Tasks: Display + Send + Sync + 'static {
    /// The name of the plan node.
    const NAME: &'static str;

    fn schema(&self) -> SchemaRef;

    fn n_tasks(&self) -> usize;

    /// Returns the batches of task `i`. A task starts no work before it is polled.
    fn run(self: Arc<Self>, i: usize) -> BoxStream<'static, Result<RecordBatch>>;
}

/// A plan node that runs task i as partition i, and nothing more.
pub(crate) struct TaskExec<T> {
    tasks: Arc<T>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl<T: Tasks> TaskExec<T> {
    /// Returns the plan that runs `tasks`. Plans have at least one partition, so no tasks become an empty plan.
    pub(crate) fn plan(tasks: T) -> Arc<dyn ExecutionPlan> {
        if tasks.n_tasks() == 0 {
            return Arc::new(EmptyExec::new(tasks.schema()));
        }
        Arc::new(Self::new(Arc::new(tasks)))
    }

    fn new(tasks: Arc<T>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(tasks.schema()),
            Partitioning::UnknownPartitioning(tasks.n_tasks()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Self { tasks, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl<T: Tasks> Debug for TaskExec<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", T::NAME, self.tasks)
    }
}

impl<T: Tasks> DisplayAs for TaskExec<T> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", T::NAME, self.tasks)
    }
}

impl<T: Tasks> ExecutionPlan for TaskExec<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DataFusionResult<TreeNodeRecursion>,
    ) -> DataFusionResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        if partition >= self.tasks.n_tasks() {
            return Err(DataFusionError::Internal(format!("{} has no partition {partition}", T::NAME)));
        }
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = Arc::clone(&self.tasks).run(partition);
        let batches = batches.map_ok(move |batch| batch.record_output(&metrics)).map_err(into_datafusion);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.tasks.schema(), batches.boxed())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
