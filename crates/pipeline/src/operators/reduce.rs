//! The reduce phase as DataFusion plans: they sort, drop repeated rows and merge, within a memory limit and with
//! spilling.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result as DataFusionResult};
use datafusion_execution::config::SessionConfig;
use datafusion_execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::expressions::col;
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::execution_plan::execute_stream;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, Partitioning};
use nearprint_fault::Result;
use nearprint_parquet::BATCH_ROWS;
use nearprint_storage::TempFolder;
use schemars::JsonSchema;
use serde::Serialize;

use super::reduce_pool::ReducePool;
use crate::error::of_datafusion;
use crate::resources::Resources;

/// Runs plans within the resources. The spill folder is removed when the runner is dropped.
#[derive(Debug)]
pub(crate) struct PlanRunner {
    context: Arc<TaskContext>,
    threads: usize,
    pub(crate) temp: TempFolder,
}

/// The data that a run's reduce spilled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpillStats {
    /// The number of spills.
    pub n_spills: usize,
    /// The number of bytes that were written to the spill folder.
    pub spilled_bytes: usize,
    /// The number of rows that were spilled.
    pub spilled_rows: usize,
}

/// The bytes of a batch of pairs with URLs for ids, in a merge.
const MERGED_BATCH_BYTES: usize = 2 << 20;

/// The bytes that a sort sets aside to merge spilled runs, if the limit allows.
const MERGE_BYTES: usize = 10 << 20;

impl PlanRunner {
    /// Returns a runner whose reduce takes at most `reduce_bytes` before it spills, or less if the resources say so.
    pub(crate) fn new(resources: &Resources, reduce_bytes: usize) -> Result<Self> {
        let temp = resources.temp_dir()?;
        let reduce_bytes = reduce_bytes.min(resources.reduce_bytes());
        let pool: Arc<dyn MemoryPool> = Arc::new(ReducePool::new(reduce_bytes));
        let threads = resources.n_threads();
        // DataFusion has a limit of its own unless it is given one.
        let disk = DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![temp.path().to_path_buf()]))
            .with_max_temp_directory_size(resources.max_spill.unwrap_or(u64::MAX));
        // Threads sort, one merge follows, and the forest's own sort may follow that. Each leaves the others their
        // share.
        let fan_in = reduce_bytes / (threads + 2) / MERGED_BATCH_BYTES;
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(pool)
            .with_disk_manager_builder(disk)
            .with_max_spill_merge_fan_in(fan_in.max(2))
            .build_arc();
        let context = task_context(runtime.map_err(|e| of_datafusion("engine", e))?, threads, reduce_bytes);
        Ok(Self { context, threads, temp })
    }

    pub(crate) fn context(&self) -> Arc<TaskContext> {
        Arc::clone(&self.context)
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn execute(
        &self,
        stage: &'static str,
        plan: Arc<dyn ExecutionPlan>,
    ) -> Result<SendableRecordBatchStream> {
        execute_stream(plan, self.context()).map_err(|e| of_datafusion(stage, e))
    }

    /// Returns the reduce: an external sort by all columns, in their order, then the distinct rows, as one ordered
    /// stream. Because its input is sorted, the distinct step needs no memory of its own.
    pub(crate) fn reduce(&self, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let reduced = self.sorted(input).and_then(|sorted| {
            let schema = sorted.schema();
            let named = all_columns(&schema)?.zip(schema.fields()).map(|(by, field)| (by.expr, field.name().clone()));
            let by = PhysicalGroupBy::new_single(named.collect());
            let distinct = AggregateExec::try_new(AggregateMode::Single, by, Vec::new(), Vec::new(), sorted, schema)?;
            Ok(Arc::new(distinct) as Arc<dyn ExecutionPlan>)
        });
        reduced.map_err(|e| of_datafusion("reduce", e))
    }

    /// Returns an external sort by all columns, in their order.
    pub(crate) fn sort(&self, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        self.sorted(input).map_err(|e| of_datafusion("sort", e))
    }

    /// Returns the rows of two plans that are sorted by all columns, in their order.
    pub(crate) fn merged(
        &self,
        rows: Arc<dyn ExecutionPlan>,
        others: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let merged = UnionExec::try_new(vec![rows, others]).and_then(|both| {
            let order = by_all_columns(&both.schema())?;
            Ok(Arc::new(SortPreservingMergeExec::new(order, both)) as Arc<dyn ExecutionPlan>)
        });
        merged.map_err(|e| of_datafusion("reduce", e))
    }

    fn sorted(&self, input: Arc<dyn ExecutionPlan>) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let order = by_all_columns(&input.schema())?;
        let partitions = input.properties().output_partitioning().partition_count();
        let input: Arc<dyn ExecutionPlan> = match (partitions, self.threads) {
            (0 | 1, _) => input,
            (_, 1) => Arc::new(CoalescePartitionsExec::new(input)),
            (_, threads) => Arc::new(RepartitionExec::try_new(input, Partitioning::RoundRobinBatch(threads))?),
        };
        let sorted = SortExec::new(order.clone(), input).with_preserve_partitioning(true);
        Ok(Arc::new(SortPreservingMergeExec::new(order, Arc::new(sorted))))
    }
}

fn by_all_columns(schema: &SchemaRef) -> DataFusionResult<LexOrdering> {
    let none = || DataFusionError::Internal("a dataset without columns".to_owned());
    LexOrdering::new(all_columns(schema)?).ok_or_else(none)
}

fn all_columns(schema: &SchemaRef) -> DataFusionResult<impl Iterator<Item = PhysicalSortExpr>> {
    let ascending = SortOptions { descending: false, nulls_first: true };
    let columns: Vec<_> = schema.fields().iter().map(|f| col(f.name(), schema)).collect::<DataFusionResult<_>>()?;
    Ok(columns.into_iter().map(move |c| PhysicalSortExpr::new(c, ascending)))
}

fn task_context(runtime: Arc<RuntimeEnv>, threads: usize, reduce_bytes: usize) -> Arc<TaskContext> {
    let merge_bytes = MERGE_BYTES.min(reduce_bytes / 8);
    let config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_target_partitions(threads)
        .with_sort_spill_reservation_bytes(merge_bytes);
    Arc::new(TaskContext::default().with_session_config(config).with_runtime(runtime))
}

/// Sums the spills of the nodes of a plan.
pub(crate) fn spill_stats(plan: &Arc<dyn ExecutionPlan>) -> SpillStats {
    let own = plan.metrics().map_or(SpillStats::default(), |m| SpillStats {
        n_spills: m.spill_count().unwrap_or(0),
        spilled_bytes: m.spilled_bytes().unwrap_or(0),
        spilled_rows: m.spilled_rows().unwrap_or(0),
    });
    plan.children().into_iter().map(spill_stats).fold(own, SpillStats::plus)
}

impl SpillStats {
    /// Adds the statistics of another sort.
    pub fn plus(self, other: Self) -> Self {
        Self {
            n_spills: self.n_spills + other.n_spills,
            spilled_bytes: self.spilled_bytes + other.spilled_bytes,
            spilled_rows: self.spilled_rows + other.spilled_rows,
        }
    }
}
