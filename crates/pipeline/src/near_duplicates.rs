//! The join inside DataFusion: map tasks under one reduce, as all pairs or as a spanning forest.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{UInt8Type, UInt16Type, UInt32Type};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::displayable;
use datafusion_physical_plan::streaming::StreamingTableExec;
use futures::TryStreamExt;
use nearprint_join::{Queries, QueryRows, Verifier, Workload};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::columns::Columns;
use crate::dataset::{DatasetWriter, StagedFile};
use crate::engine::{Engine, Resources, SpillStats, spill_stats};
use crate::error::{PipelineError, Result};
use crate::join_plan::{JoinPlan, existing_run};
use crate::operators::{ForestPass, ForestState, ProbeTasks, TaskExec};
use crate::progress::Progress;
use crate::query_batch::QueryBatch;
use crate::schema::PAIRS;
use crate::tasks::{Existing, ExistingFile, MapContext, MapTask, Want, blocking};

/// Which pairs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairsMode {
    /// A spanning forest: the same clusters, at most one pair fewer than documents and existing fingerprints.
    #[default]
    Forest,
    /// Every verified pair.
    All,
}

/// What the pairs of a join came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCounts {
    /// Rows written.
    pub n_pairs: u64,
    /// Of these, new documents with existing ones.
    pub n_new_existing: u64,
    /// Of these, new documents with each other.
    pub n_new_new: u64,
    /// Rows at each Hamming distance, from 0.
    pub by_distance: Vec<u64>,
}

/// The query batch with its tables, and what probes them.
pub(crate) struct NearDuplicates {
    pub(crate) batch: Arc<QueryBatch>,
    pub(crate) rows: Arc<QueryRows<u64>>,
    queries: Arc<Queries<u64>>,
    verifier: Verifier,
    existing: Arc<HashMap<String, ExistingFile>>,
    n_existing: u64,
    piece_rows: u64,
    pieces_under_way: usize,
    itself: bool,
    pub(crate) engine: Engine,
    progress: Progress,
}

/// Existing rows of one map task.
const TASK_ROWS: u64 = 4 << 20;
/// The batch's own values of one map task.
const TASK_VALUES: usize = 1 << 16;

impl NearDuplicates {
    /// Builds the tables. `itself` joins the batch with itself too.
    pub(crate) async fn new(
        batch: QueryBatch,
        existing: Existing,
        itself: bool,
        bits: u32,
        verifier: Verifier,
        resources: &Resources,
        progress: Progress,
    ) -> Result<Self> {
        let n_existing = existing.n_live_rows;
        let (own, threads, kernel) = (resources.clone(), resources.n_threads(), resources.join_kernel()?);
        let runs = existing.files.iter().map(|f| existing_run(&f.parquet, bits)).collect();
        progress.start("tables", "fingerprints", batch.len() as u64);
        let (batch, rows, queries, pieces, engine) = blocking("tables", move || {
            let rows = QueryRows::new(&batch.fingerprints, &batch.sketches)?;
            let held = batch.memory_bytes() + rows.memory_bytes();
            let workload = Workload {
                n_queries: rows.values().len(),
                existing: runs,
                piece_rows: 0,
                itself,
                memory_bytes: table_bytes(&own, held),
                threads,
                pieces_under_way: 0,
            };
            let plan = JoinPlan::choose(bits, u32::from(verifier.max_distance), &workload);
            tracing::info!(
                tables = plan.tables.tables().len(),
                kernel = kernel.name().name(),
                estimated_ns = plan.cost.ns_per_fingerprint,
                "join planned"
            );
            let counted_bytes = plan.counted_bytes;
            let queries = Queries::new(rows.values().to_vec(), plan.tables, kernel);
            let engine = Engine::new(&own, held + counted_bytes)?;
            Ok((batch, rows, queries, (plan.piece_rows as u64, plan.pieces_under_way), engine))
        })
        .await?;
        tracing::info!(bytes = queries.memory_bytes(), "query tables built");
        let existing = existing.files.into_iter().map(|f| (f.parquet.file.url.clone(), f)).collect();
        Ok(Self {
            batch: Arc::new(batch),
            rows: Arc::new(rows),
            queries: Arc::new(queries),
            verifier,
            existing: Arc::new(existing),
            n_existing,
            piece_rows: pieces.0,
            pieces_under_way: pieces.1,
            itself,
            engine,
            progress,
        })
    }

    /// The number of query tables.
    pub(crate) fn n_tables(&self) -> usize {
        self.queries.plan().tables().len()
    }

    /// The instructions in use.
    pub(crate) fn kernel(&self) -> &'static str {
        self.queries.kernel().name().name()
    }

    /// Existing fingerprints that will probe.
    pub(crate) fn n_existing(&self) -> u64 {
        self.n_existing
    }

    /// The map phase cut into tasks, in a fixed order.
    pub(crate) fn tasks(&self) -> Vec<MapTask> {
        let mut urls: Vec<&String> = self.existing.keys().collect();
        urls.sort_unstable();
        let existing = urls.into_iter().flat_map(|url| {
            let parquet = &self.existing[url].parquet;
            let ranges = parquet.row_group_ranges(0..parquet.n_row_groups(), TASK_ROWS);
            ranges.into_iter().map(move |row_groups| MapTask::Existing { file: url.clone(), row_groups })
        });
        let n = if self.itself { self.rows.values().len() } else { 0 };
        let itself = (0..n).step_by(TASK_VALUES).map(|at| MapTask::Itself { values: at..n.min(at + TASK_VALUES) });
        existing.chain(itself).collect()
    }

    fn reduced(&self, want: Want) -> Result<Arc<dyn ExecutionPlan>> {
        let own = if self.itself { self.rows.values().len() as u64 } else { 0 };
        self.progress.start(
            if want == Want::Forest { "join (forest)" } else { "join (all pairs)" },
            "fingerprints",
            self.n_existing() + own,
        );
        let context = MapContext {
            batch: Arc::clone(&self.batch),
            rows: Arc::clone(&self.rows),
            queries: Arc::clone(&self.queries),
            verifier: self.verifier,
            itself: self.itself,
            ids_are_names: !self.batch.numbered,
            want,
            files: Arc::clone(&self.existing),
            piece_rows: self.piece_rows,
            under_way: Semaphore::new(self.pieces_under_way),
            threads: Semaphore::new(self.engine.threads()),
            pieces: Mutex::default(),
            scratches: Mutex::default(),
            progress: self.progress.clone(),
        };
        let tasks = ProbeTasks { context: Arc::new(context), tasks: self.tasks() };
        self.engine.reduce(TaskExec::plan(tasks))
    }

    /// Writes every verified pair; more than `max_pairs` are an error.
    pub(crate) async fn write_all(
        &self,
        folder: &Path,
        max_pairs: u64,
    ) -> Result<(Vec<StagedFile>, PairCounts, SpillStats)> {
        let plan = self.reduced(Want::AllPairs)?;
        let (files, counts) = self.write(&plan, folder, max_pairs).await?;
        Ok((files, counts, spill_stats(&plan)))
    }

    /// Writes the spanning forest, and gives what decisions need.
    pub(crate) async fn write_forest(
        &self,
        folder: &Path,
    ) -> Result<(Vec<StagedFile>, PairCounts, SpillStats, Arc<Mutex<ForestState>>)> {
        let (reduced, state, sorted) = self.forest_plan()?;
        let (files, counts) = self.write(&sorted, folder, u64::MAX).await?;
        Ok((files, counts, spill_stats(&reduced).plus(spill_stats(&sorted)), state))
    }

    /// The forest pass alone, its pairs thrown away.
    pub(crate) async fn forest_state(&self) -> Result<(SpillStats, Arc<Mutex<ForestState>>)> {
        let (reduced, state, _) = self.forest_plan()?;
        let pass = Arc::new(ForestPass::sharing(Arc::clone(&reduced), Arc::clone(&state)));
        let stream =
            datafusion_physical_plan::streaming::PartitionStream::execute(pass.as_ref(), self.engine.context());
        let drained = stream.try_for_each(|_| futures::future::ready(Ok(()))).await;
        drained.map_err(|e| PipelineError::of_datafusion("forest", e))?;
        Ok((spill_stats(&reduced), state))
    }

    #[allow(clippy::type_complexity, reason = "the plan below the pass, its state, and the plan above it")]
    fn forest_plan(&self) -> Result<(Arc<dyn ExecutionPlan>, Arc<Mutex<ForestState>>, Arc<dyn ExecutionPlan>)> {
        let reduced = self.reduced(Want::Forest)?;
        let state = ForestState::new(Arc::clone(&self.batch), Arc::clone(&self.rows), self.engine.free_bytes);
        let pass = ForestPass::new(Arc::clone(&reduced), state);
        let (state, schema) = (Arc::clone(&pass.state), pass.pair_schema());
        let leaf = StreamingTableExec::try_new(schema, vec![Arc::new(pass)], None, [], false, None);
        let leaf = leaf.map_err(|e| PipelineError::of_datafusion("forest", e))?;
        Ok((reduced, state, self.engine.sort(Arc::new(leaf))?))
    }

    async fn write(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        folder: &Path,
        max_pairs: u64,
    ) -> Result<(Vec<StagedFile>, PairCounts)> {
        tracing::debug!(plan = %displayable(plan.as_ref()).one_line(), "reduce");
        let mut stream = self.engine.execute("reduce", Arc::clone(plan))?;
        let mut writer = DatasetWriter::new(folder, "pairs", &PAIRS, &[]);
        let mut counts = PairCounts::default();
        while let Some(rows) = stream.try_next().await.map_err(|e| PipelineError::of_datafusion("reduce", e))? {
            counts.add(&rows)?;
            if counts.n_pairs > max_pairs {
                return Err(PipelineError::TooManyPairs { max_pairs });
            }
            writer.write(self.as_pairs(&rows)?)?;
        }
        Ok((writer.finish()?, counts))
    }

    /// Rows of the reduce as rows of the pairs dataset.
    fn as_pairs(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let columns = Columns { batch: rows, file: "pairs" };
        let (a, b) = (columns.primitive::<UInt32Type>("a")?, columns.primitive::<UInt32Type>("b")?);
        let (new, id_b) = (columns.booleans("new")?, columns.strings("id_b")?);
        let id_a = a.values().iter().map(|&row| self.batch.id(row));
        let id_b = (0..rows.num_rows()).map(|i| if new.value(i) { self.batch.id(b.value(i)) } else { id_b.value(i) });
        let scopes = new.values().iter().map(|new| if new { "new_new" } else { "new_existing" });
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(id_a)),
            Arc::new(StringArray::from_iter_values(id_b)),
            Arc::new(columns.primitive::<UInt8Type>("distance")?.clone()),
            Arc::new(columns.primitive::<UInt16Type>("sketch_distance")?.clone()),
            Arc::new(StringArray::from_iter_values(scopes)),
        ];
        RecordBatch::try_new(Arc::clone(&PAIRS), arrays)
            .map_err(|e| PipelineError::Internal { stage: "pairs", reason: e.to_string() })
    }
}

/// Half of what the batch leaves goes to its tables.
fn table_bytes(resources: &Resources, held: usize) -> usize {
    resources.memory_limit.map_or(4 << 30, |limit| limit.saturating_sub(held) / 2)
}

impl PairCounts {
    fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let columns = Columns { batch: rows, file: "pairs" };
        let distances = columns.primitive::<UInt8Type>("distance")?;
        let n_new = columns.booleans("new")?.true_count() as u64;
        self.n_pairs += rows.num_rows() as u64;
        self.n_new_new += n_new;
        self.n_new_existing += rows.num_rows() as u64 - n_new;
        for &distance in distances.values() {
            let at = usize::from(distance);
            if self.by_distance.len() <= at {
                self.by_distance.resize(at + 1, 0);
            }
            self.by_distance[at] += 1;
        }
        Ok(())
    }
}
