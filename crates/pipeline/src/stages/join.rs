//! The join inside DataFusion: map tasks under one reduce, as all pairs or as a spanning forest.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{Int32Type, UInt8Type, UInt16Type, UInt32Type};
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion_physical_plan::{ExecutionPlan, displayable};
use futures::TryStreamExt;
use nearprint_join::{Forest, Gathered, LossLimit, Origin, QueryRows, SELF_ROWS, Verifier, Workload};
use serde::{Deserialize, Serialize};

use crate::cluster_plan::{most_piece_rows, table_bytes};
use crate::context::CommandContext;
use crate::engine::forest_pass::{ForestPass, ForestState};
use crate::engine::part_turns::PartTurns;
use crate::engine::probe_exec::{ElsewhereTasks, Notes, ProbeTasks};
use crate::engine::reduce::{Engine, SpillStats, spill_stats};
use crate::engine::task_exec::TaskExec;
use crate::error::{PipelineError, Result};
use crate::join_plan::{JoinPlan, OWN_ROWS, existing_run};
use crate::resources::Resources;
use crate::stages::decide::{ClusterRule, Decisions, Found};
use crate::stages::existing::ReferenceNames;
use nearprint_parquet::schema::{FINGERPRINT, PAIRS};
use nearprint_parquet::{Columns, DatasetWriter, StagedFile, create_folder};
use nearprint_storage::{Progress, Storage, blocking, in_memory, in_pool, locked};
use nearprint_store::{Existing, ExistingFile};
use nearprint_tasks::{
    ClassPairs, Elsewhere, FileSlice, MapContext, MapCounts, MapSpec, MapTask, QueryBatch, QueryParts, Room, Want,
    Weighed,
};

/// The pairs that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairsMode {
    /// A spanning forest. It has the same clusters, and fewer pairs than there are documents and existing fingerprints.
    #[default]
    Forest,
    /// Every verified pair.
    All,
}

/// The counts of a join's pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCounts {
    /// The number of rows that were written.
    pub n_pairs: u64,
    /// The number of these pairs that are of a new document and an existing one.
    pub n_new_existing: u64,
    /// The number of these pairs that are of two new documents.
    pub n_new_new: u64,
    /// The number of rows at each Hamming distance, from 0.
    pub by_distance: Vec<u64>,
}

/// The query batch with its tables, and the existing files that probe them.
pub struct NearDuplicates {
    pub(crate) batch: Arc<QueryBatch>,
    pub(crate) rows: Arc<QueryRows>,
    queries: Arc<QueryParts>,
    verifier: Verifier,
    existing: Arc<HashMap<String, ExistingFile>>,
    references: ReferenceNames,
    n_existing: u64,
    piece_rows: u64,
    pieces_under_way: usize,
    read_ahead_bytes: usize,
    itself: bool,
    /// The rule by which decisions follow from the forest pass. `None` means that there are no decisions.
    decides: Option<ClusterRule>,
    /// The largest lost share with which the rule drops a document.
    loss: LossLimit,
    /// The bytes for the data that the forest pass gathers.
    forest_bytes: usize,
    pub(crate) engine: Engine,
    progress: Progress,
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// The threads that map at once, here or elsewhere.
    map_threads: usize,
    storage: Storage,
    /// The counts of the newest map phase.
    counts: Arc<Mutex<MapCounts>>,
}

/// The plan below a forest pass, the pass, and the destination of its pairs of classes.
type Forested = (Reduced, Arc<ForestPass>, Arc<ClassPairs>);

/// A map phase under its reduce.
struct Reduced {
    plan: Arc<dyn ExecutionPlan>,
    /// The description of the tables that are probed.
    tables: String,
    counts: Arc<Mutex<MapCounts>>,
}

impl Reduced {
    /// Logs the counts of the map phase, once it is over.
    fn log(&self) {
        let MapCounts { n_rows, n_candidates, n_sketches, n_sketch_pages, .. } = *locked(&self.counts);
        let n_pairs = self.plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0);
        tracing::debug!(
            "ProbeExec: {}, rows={n_rows}, candidates={n_candidates}, sketches={n_sketches}, \
             sketch_pages={n_sketch_pages}, pairs={n_pairs}",
            self.tables
        );
    }
}

/// Returns a plan on one line, from its result down to its input.
fn text_of(plan: &Arc<dyn ExecutionPlan>) -> String {
    let lines = displayable(plan.as_ref()).indent(false).to_string();
    lines.lines().map(str::trim).collect::<Vec<_>>().join(" <- ")
}

/// Returns the folder for the specification of a pass.
fn spec_folder(engine: &Engine, want: Want) -> PathBuf {
    engine.temp.path().join(match want {
        Want::AllPairs => "spec-all",
        Want::Forest => "spec-forest",
    })
}

/// The existing fingerprints to join with a batch, and the settings of the join.
pub struct Join {
    /// The existing fingerprints.
    pub existing: Existing,
    /// The names of the reference stores.
    pub references: ReferenceNames,
    /// Whether the batch is joined with itself too.
    pub itself: bool,
    /// The bits of a fingerprint.
    pub bits: u32,
    /// What makes a pair of two documents with near fingerprints.
    pub verifier: Verifier,
    /// The rule by which decisions follow. `None` means that only pairs are asked for.
    pub decides: Option<ClusterRule>,
    /// The largest lost share with which the rule drops a document.
    pub loss: LossLimit,
    /// The bytes that the caller holds meanwhile.
    pub held_bytes: usize,
}

/// The most bytes of existing fingerprints that are read before their piece is decoded, and their largest share of the
/// memory limit. Pieces of small distances have few bytes, and a distant bucket takes long to begin an answer.
const READ_AHEAD_BYTES: usize = 64 << 20;
const READ_AHEAD_SHARE: usize = 16;

/// The most rows in a slice of a piece. The documents behind pairs are fetched slice by slice.
const SLICE_ROWS: u64 = 1 << 22;

/// Refuses more documents than the driver of an engine can hold, before any work. What each document takes at least is
/// its fingerprint, the hash of its text, its place in the groups and in the forest, and its decision.
pub fn refuse_beyond_driver(n_documents: Option<u64>, resources: &Resources) -> Result<()> {
    let n = in_memory(n_documents.unwrap_or(0));
    let bytes = n.saturating_mul(LEAST_DOCUMENT_BYTES)
        + QueryRows::grouping_bytes::<u64>(n)
        + Forest::bytes_of(n, true)
        + Decisions::bytes_of(n);
    refuse_over(
        &format!("{n} documents of one night, which the driver holds, and their decisions"),
        bytes,
        resources.counted_bytes(),
    )
}

/// The bytes of a fingerprint and of the hash of a text.
const LEAST_DOCUMENT_BYTES: usize = 8 + 16;

impl NearDuplicates {
    /// Plans the join, and builds the tables.
    pub async fn new(batch: QueryBatch, join: Join, work: CommandContext<'_>) -> Result<Self> {
        let (resources, progress) = (work.resources, work.progress.clone());
        let Join { existing, references, itself, bits, verifier, decides, loss, held_bytes } = join;
        let n_existing = existing.n_live_rows;
        let (own, kernel) = (resources.clone(), resources.join_kernel()?);
        let runs = existing.files.iter().map(|f| existing_run(&f.parquet, bits)).collect();
        progress.start("tables", "fingerprints", 0);
        let read_ahead_bytes = READ_AHEAD_BYTES.min(own.counted_bytes() / READ_AHEAD_SHARE);
        let workers = work.elsewhere.map(|elsewhere| elsewhere.workers());
        let (batch, rows, queries, plan, forest_bytes, engine) = blocking("tables", move || {
            let (batch, rows, values) = group(batch, decides, &own)?;
            let held = held_bytes + batch.memory_bytes() + rows.memory_bytes() + read_ahead_bytes;
            let mut left = Budget::new(&own, held, batch.len(), decides)?;
            let (memory_bytes, threads) = match workers {
                None => (left.for_tables(), own.n_threads()),
                Some(workers) => {
                    let held = batch.memory_bytes() + rows.memory_bytes();
                    (table_bytes("worker_memory", workers.memory_bytes, held)?, workers.threads)
                }
            };
            let workload = Workload {
                n_queries: values.len(),
                existing: runs,
                piece_rows: workers.map_or(0, |workers| most_piece_rows(n_existing, workers.n as u64)),
                itself,
                memory_bytes,
                threads,
                pieces_under_way: 0,
            };
            let plan = JoinPlan::choose(bits, u32::from(verifier.max_distance), &workload)?;
            tracing::debug!(
                tables = plan.tables.tables().len(),
                parts = plan.n_parts,
                kernel = kernel.name().name(),
                estimated_ns = plan.cost.ns_per_fingerprint,
                "join planned"
            );
            let queries = if workers.is_some() {
                QueryParts::unbuilt(values, plan.tables.clone(), plan.n_parts, kernel)
            } else {
                left.take(plan.counted_bytes);
                QueryParts::try_new(values, plan.tables.clone(), plan.n_parts, kernel)?
            };
            let engine = Engine::new(&own, left.for_reduce(&own))?;
            Ok::<_, PipelineError>((batch, rows, queries, plan, left.for_forest(&own), engine))
        })
        .await?;
        let existing = existing.files.into_iter().map(|f| (f.parquet.file.url.clone(), f)).collect();
        Ok(Self {
            batch: Arc::new(batch),
            rows: Arc::new(rows),
            queries: Arc::new(queries),
            verifier,
            existing: Arc::new(existing),
            references,
            n_existing,
            piece_rows: plan.piece_rows as u64,
            pieces_under_way: plan.pieces_under_way,
            read_ahead_bytes,
            itself,
            decides,
            loss,
            forest_bytes,
            engine,
            progress,
            elsewhere: work.elsewhere.cloned(),
            map_threads: workers.map_or(resources.n_threads(), |workers| workers.n * workers.threads),
            storage: work.storage.clone(),
            counts: Arc::default(),
        })
    }

    /// Returns what the newest map phase has looked at.
    pub(crate) fn map_counts(&self) -> MapCounts {
        *locked(&self.counts)
    }

    /// Returns the number of query tables.
    pub fn n_tables(&self) -> usize {
        self.queries.plan().tables().len()
    }

    /// Returns the number of parts of the queries that are joined one after another.
    pub fn n_parts(&self) -> usize {
        self.queries.n_parts()
    }

    /// Returns the instructions in use.
    pub(crate) fn kernel(&self) -> &'static str {
        self.queries.kernel().name().name()
    }

    /// Returns the number of existing fingerprints that will probe.
    pub fn n_existing(&self) -> u64 {
        self.n_existing
    }

    /// Returns the tasks of the map phase in a fixed order, part by part.
    pub(crate) fn tasks(&self) -> Vec<MapTask> {
        let mut urls: Vec<&String> = self.existing.keys().collect();
        urls.sort_unstable();
        let pieces = self.pieces(&urls);
        let existing =
            |part: usize| pieces.iter().map(move |slices| MapTask::Existing { slices: slices.clone(), part });
        let itself = |part: usize| {
            let ranges = if self.itself { self.own_ranges(part) } else { Vec::new() };
            ranges.into_iter().map(move |values| MapTask::Itself { values, part })
        };
        (0..self.queries.n_parts()).flat_map(|part| existing(part).chain(itself(part))).collect()
    }

    /// Cuts the existing files into pieces of about `piece_rows`, by whole row groups.
    fn pieces(&self, urls: &[&String]) -> Vec<Vec<FileSlice>> {
        let mut pieces: Vec<Vec<FileSlice>> = Vec::new();
        let (mut n_rows, mut slice_rows) = (u64::MAX, 0);
        for &url in urls {
            let parquet = &self.existing[url].parquet;
            for group in 0..parquet.n_row_groups() {
                let rows = parquet.row_group_rows(group);
                if n_rows >= self.piece_rows {
                    pieces.push(Vec::new());
                    n_rows = 0;
                }
                n_rows += rows;
                if let Some(piece) = pieces.last_mut() {
                    let starts = slice_rows + rows > SLICE_ROWS;
                    match piece.last_mut().filter(|slice| !starts && slice.file == *url) {
                        Some(slice) => (slice.row_groups.end, slice_rows) = (group + 1, slice_rows + rows),
                        None => {
                            piece.push(FileSlice { file: url.clone(), row_groups: group..group + 1 });
                            slice_rows = rows;
                        }
                    }
                }
            }
        }
        pieces
    }

    /// Returns the ranges of values that a part is joined with, its own and those after it, cut for all threads.
    fn own_ranges(&self, part: usize) -> Vec<Range<usize>> {
        let (part, all) = (self.queries.part(part), self.queries.n_values());
        let rows = match self.queries.n_parts() {
            1 => SELF_ROWS,
            _ => ((all - part.start) / self.map_threads).clamp(SELF_ROWS, OWN_ROWS),
        };
        let cut = |range: Range<usize>| range.clone().step_by(rows).map(move |at| at..range.end.min(at + rows));
        cut(part.clone()).chain(cut(part.end..all)).collect()
    }

    /// Returns the number of fingerprints that all tasks map.
    fn n_mapped(&self, tasks: &[MapTask]) -> u64 {
        let own = tasks.iter().map(|task| match task {
            MapTask::Itself { values, .. } => values.len() as u64,
            MapTask::Existing { .. } => 0,
        });
        self.n_existing * self.n_parts() as u64 + own.sum::<u64>()
    }

    /// Returns the map phase under the reduce. It fails after more than `max_new_pairs` pairs of new documents. If
    /// `notes_classes`, pairs of classes go to `class_pairs`.
    fn reduced(
        &self,
        want: Want,
        max_new_pairs: u64,
        class_pairs: Arc<ClassPairs>,
        notes_classes: bool,
    ) -> Result<Reduced> {
        let tasks = self.tasks();
        let counts = Arc::clone(&self.counts);
        *locked(&counts) = MapCounts::default();
        self.progress.start(
            if want == Want::Forest { "join (forest)" } else { "join (all pairs)" },
            "fingerprints",
            self.n_mapped(&tasks),
        );
        let context = MapContext {
            batch: Arc::clone(&self.batch),
            rows: Arc::clone(&self.rows),
            queries: Arc::clone(&self.queries),
            verifier: self.verifier,
            loss: self.loss,
            itself: self.itself,
            ids_are_names: !self.batch.is_numbered(),
            want,
            notes_classes,
            files: Arc::clone(&self.existing),
            room: Room::new(self.engine.threads(), self.pieces_under_way, self.read_ahead_bytes),
            progress: self.progress.clone(),
        };
        let notes = Notes { class_pairs, max_new_pairs, n_new_pairs: AtomicU64::new(0), counts: Arc::clone(&counts) };
        let tables = self.tables_in_words();
        let (tables, plan) = match &self.elsewhere {
            None => {
                let turns = PartTurns::new(self.n_parts(), tasks.iter().map(MapTask::part));
                let probes = ProbeTasks { tasks, context: Arc::new(context), turns: Arc::new(turns), notes, tables };
                (probes.to_string(), self.engine.reduce(TaskExec::plan(probes))?)
            }
            Some(elsewhere) => {
                let folder = spec_folder(&self.engine, want);
                create_folder(&folder)?;
                MapSpec::write(&context, &folder)?;
                let (elsewhere, tasks) = (Arc::clone(elsewhere), self.weighed(tasks));
                let (storage, progress) = (self.storage.clone(), self.progress.clone());
                let sent = ElsewhereTasks { elsewhere, tasks, folder, storage, progress, want, notes, tables };
                (sent.to_string(), TaskExec::plan(sent))
            }
        };
        tracing::debug!(plan = text_of(&plan), "reduce");
        Ok(Reduced { plan, tables, counts })
    }

    /// Returns tasks with the bytes of fingerprints that they read.
    fn weighed(&self, tasks: Vec<MapTask>) -> Vec<Weighed<MapTask>> {
        let bytes_of = |slice: &FileSlice| {
            let parquet = &self.existing[&slice.file].parquet;
            let chunk =
                |group| parquet.column_chunk(group, FINGERPRINT).map(|chunk| chunk.compressed_size().unsigned_abs());
            slice.row_groups.clone().filter_map(chunk).sum::<u64>()
        };
        let weighed = |task: MapTask| {
            let bytes = match &task {
                MapTask::Existing { slices, .. } => slices.iter().map(bytes_of).sum(),
                MapTask::Itself { values, .. } => 8 * values.len() as u64,
            };
            Weighed { task, bytes }
        };
        tasks.into_iter().map(weighed).collect()
    }

    /// Describes the tables for plans in logs, as in `bits=64, k=3, tables=4, parts=1`.
    fn tables_in_words(&self) -> String {
        let plan = self.queries.plan();
        let (bits, k, tables) = (plan.bits(), plan.max_distance(), plan.tables().len());
        format!("bits={bits}, k={k}, tables={tables}, parts={}", self.n_parts())
    }

    /// Writes every verified pair. More than `max_pairs` pairs are an error.
    pub async fn write_all(&self, folder: &Path, max_pairs: u64) -> Result<(Vec<StagedFile>, PairCounts, SpillStats)> {
        let plan = self.reduced(Want::AllPairs, max_pairs, Arc::new(ClassPairs::new(0)), false)?;
        let (files, counts) = self.write(&plan.plan, folder, max_pairs).await?;
        plan.log();
        Ok((files, counts, spill_stats(&plan.plan)))
    }

    /// Writes the spanning forest, and returns the data that decisions need, if there are decisions.
    pub async fn write_forest(
        &self,
        folder: &Path,
    ) -> Result<(Vec<StagedFile>, PairCounts, SpillStats, Option<Found>)> {
        let (reduced, pass, class_pairs) = self.forest_pass()?;
        let (state, schema) = (Arc::clone(&pass.state), pass.pair_schema());
        let leaf = StreamingTableExec::try_new(schema, vec![pass], None, [], false, None);
        let leaf = leaf.map_err(|e| PipelineError::of_datafusion("forest", e))?;
        let sorted = self.engine.sort(Arc::new(leaf))?;
        let (files, counts) = self.write(&sorted, folder, u64::MAX).await?;
        reduced.log();
        let spill = spill_stats(&reduced.plan).plus(spill_stats(&sorted));
        let gathered = self.gathered(locked(&state).finish(), class_pairs);
        Ok((files, counts, spill, gathered))
    }

    /// Runs the forest pass alone, and drops its pairs.
    pub async fn forest_state(&self) -> Result<(SpillStats, Option<Found>)> {
        let (reduced, pass, class_pairs) = self.forest_pass()?;
        let drained = pass.execute(self.engine.context()).try_for_each(|_| futures::future::ready(Ok(()))).await;
        drained.map_err(|e| PipelineError::of_datafusion("forest", e))?;
        let gathered = self.gathered(locked(&pass.state).finish(), class_pairs);
        reduced.log();
        Ok((spill_stats(&reduced.plan), gathered))
    }

    fn gathered(&self, gathered: Option<Gathered>, class_pairs: Arc<ClassPairs>) -> Option<Found> {
        let rule = self.decides?;
        gathered.map(|gathered| Found { rule, loss: self.loss, gathered, class_pairs })
    }

    /// Returns the plan below the forest pass, the pass, and the destination of its pairs of classes.
    fn forest_pass(&self) -> Result<Forested> {
        let class_pairs = Arc::new(ClassPairs::new(self.forest_bytes));
        let by_star = self.decides == Some(ClusterRule::Star);
        let reduced = self.reduced(Want::Forest, u64::MAX, Arc::clone(&class_pairs), by_star)?;
        let n_rows = self.batch.rows().end;
        let forest = Forest::new(Arc::clone(&self.rows), n_rows);
        let forest = match self.decides {
            Some(rule) => forest.gathering(n_rows, rule.into(), self.loss),
            None => forest,
        };
        let (batch, max_bytes) = (Arc::clone(&self.batch), self.forest_bytes);
        let state = ForestState { forest, batch, class_pairs: Arc::clone(&class_pairs), max_bytes };
        let pass = ForestPass::new(Arc::clone(&reduced.plan), Arc::new(Mutex::new(state)));
        Ok((reduced, Arc::new(pass), class_pairs))
    }

    /// Returns the batch and its rows, and drops everything else.
    pub fn into_batch(self) -> (Arc<QueryBatch>, Arc<QueryRows>) {
        (self.batch, self.rows)
    }

    async fn write(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        folder: &Path,
        max_pairs: u64,
    ) -> Result<(Vec<StagedFile>, PairCounts)> {
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

    /// Returns rows of the reduce as rows of the pairs dataset.
    fn as_pairs(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let columns = Columns { batch: rows, file: "pairs" };
        let (a, b) = (columns.primitive::<UInt32Type>("a")?, columns.primitive::<UInt32Type>("b")?);
        let (new, id_b) = (columns.booleans("new")?, columns.strings("id_b")?);
        let id_a = a.values().iter().map(|&row| self.batch.id(row));
        let id_b = (0..rows.num_rows())
            .map(|i| if new.value(i) { self.batch.id(b.value(i)) } else { Cow::Borrowed(id_b.value(i)) });
        let stores = columns.primitive::<UInt8Type>("store_b")?.values();
        let references = stores.iter().map(|&store| self.references.of(Origin::from(store)));
        let scopes = new.values().iter().map(|new| if new { "new_new" } else { "new_existing" });
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(id_a)),
            Arc::new(StringArray::from_iter_values(id_b)),
            Arc::new(columns.primitive::<UInt8Type>("distance")?.unary::<_, Int32Type>(i32::from)),
            Arc::new(columns.primitive::<UInt16Type>("sketch_distance")?.unary::<_, Int32Type>(i32::from)),
            Arc::new(StringArray::from_iter_values(scopes)),
            Arc::new(references.collect::<StringArray>()),
        ];
        RecordBatch::try_new(Arc::clone(&PAIRS), arrays)
            .map_err(|e| PipelineError::Internal { stage: "pairs", reason: e.to_string() })
    }
}

/// Groups the rows, and drops the columns of the batch that will not be needed.
fn group(
    mut batch: QueryBatch,
    decides: Option<ClusterRule>,
    resources: &Resources,
) -> Result<(QueryBatch, QueryRows, Vec<u64>)> {
    let mut given_up = None;
    if decides.is_none() {
        given_up = Some(std::mem::take(&mut batch.fingerprints));
        batch.forget_all_but_ids_and_sketches();
    }
    let height = batch.memory_bytes().saturating_add(QueryRows::grouping_bytes::<u64>(batch.len()));
    refuse_over("the query batch and its tables", height, resources.counted_bytes())?;
    let (sketches, n_features) = (Arc::clone(&batch.sketches), Arc::clone(&batch.n_features));
    let (rows, values) = in_pool(|| match given_up {
        Some(fingerprints) => QueryRows::group_counted(fingerprints, sketches, n_features),
        None => QueryRows::group_counted(&batch.fingerprints, sketches, n_features),
    })?;
    Ok((batch, rows, values))
}

fn refuse_over(what: &str, bytes: usize, limit: usize) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(PipelineError::Resources { reason: format!("{what} take {bytes} bytes, {limit} are left of the limit") })
}

/// The memory that the batch, and all other data that is held, leave of the limit.
struct Budget {
    left: usize,
}

impl Budget {
    fn new(resources: &Resources, held: usize, n_rows: usize, decides: Option<ClusterRule>) -> Result<Self> {
        let limit = resources.counted_bytes();
        let pass = Forest::bytes_of(n_rows, decides.is_some());
        let deciding = if decides.is_some() { Decisions::bytes_of(n_rows) } else { 0 };
        refuse_over("the query batch and its decisions", held + pass + deciding, limit)?;
        Ok(Self { left: limit - held - pass })
    }

    fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    fn for_tables(&self) -> usize {
        if self.left > usize::MAX / 2 { UNLIMITED_TABLE_BYTES } else { self.left - PAIR_BYTES.min(self.left / 2) }
    }

    fn for_reduce(&self, resources: &Resources) -> usize {
        resources.reduce_bytes().min(self.left / 2)
    }

    fn for_forest(&self, resources: &Resources) -> usize {
        self.left - self.for_reduce(resources)
    }
}

/// The bytes that tables leave to pairs and decisions, but at most half of those that there are.
const PAIR_BYTES: usize = 512 << 20;

/// The bytes of tables if there is no limit.
const UNLIMITED_TABLE_BYTES: usize = 4 << 30;

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
