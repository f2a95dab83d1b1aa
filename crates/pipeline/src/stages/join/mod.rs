//! The join inside DataFusion: map tasks under one reduce, as all pairs or as a spanning forest.
//!
//! ```text
//! query batch ─► planning: groups, tables ─┐
//! existing files ─► map tasks ─────────────┴─► map phase ─► reduce ─┬─► pairs
//!                                                                   └─► forest pass ─► pairs, decisions
//! ```

mod map_phase;
mod map_tasks;
mod memory;
mod pairs;
mod planning;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::TryStreamExt;
use nearprint_fault::Result;
use nearprint_join::{Forest, Gathered, QueryRows, Verifier, WordKeys};

use crate::context::CommandContext;
use crate::error::of_datafusion;
use crate::join_plan::existing_run;
use crate::operators::forest_pass::{ForestPass, ForestState};
use crate::operators::reduce::{PlanRunner, SpillStats, spill_stats};
use crate::stages::decide::{ClusterRule, DecisionBasis};
use crate::stages::existing::ReferenceNames;
use crate::stages::judge::{JudgeCounts, NightJudge};
use nearprint_parquet::{ParquetFile, StagedFile};
use nearprint_storage::{blocking, locked};
use nearprint_store::{Existing, ExistingDocuments, ExistingFile, RunFile};
use nearprint_tasks::{BatchIds, ClassPairs, KeyQueries, MapContext, MapCounts, QueryBatch, Room, Undecided, Want};

use map_phase::{Judging, MapPhase, Reduced};
use map_tasks::MapTasks;
use pairs::PairNames;
use planning::{PassMemory, Planned, Planning};

pub use memory::refuse_beyond_driver;
pub use pairs::{PairCounts, PairsMode};
pub use planning::PairRules;

/// The existing fingerprints to join with a batch, and the settings of the join.
pub struct Join {
    /// The existing fingerprints.
    pub existing: Existing,
    /// The names of the reference stores.
    pub references: ReferenceNames,
    /// What makes a pair, and what follows from it.
    pub rules: PairRules,
    /// The judge of the pairs that sketches leave undecided, if the batch has texts of its own.
    pub judge: Option<NightJudge>,
    /// The bytes that the caller holds meanwhile.
    pub held_bytes: usize,
}

/// The query batch with its tables, and the existing files that probe them.
pub struct NearDuplicates {
    pub(crate) batch: Arc<QueryBatch>,
    pub(crate) rows: Arc<QueryRows>,
    class_fingerprints: Arc<Vec<u64>>,
    rules: PairRules,
    references: ReferenceNames,
    judge: Option<Arc<NightJudge>>,
    map: MapPhase,
    memory: PassMemory,
    pub(crate) runner: PlanRunner,
}

/// A forest pass, the plan below it, and the destination of its pairs of classes.
struct Forested {
    reduced: Reduced,
    pass: Arc<ForestPass>,
    class_pairs: Arc<ClassPairs>,
}

impl NearDuplicates {
    /// Plans the join, and builds the tables.
    pub async fn new(batch: QueryBatch, join: Join, work: CommandContext<'_>) -> Result<Self> {
        let (resources, progress) = (work.resources, work.progress.clone());
        let Join { existing, references, rules, judge, held_bytes } = join;
        let n_existing = existing.n_live_rows;
        let workers = work.engine.map(|engine| engine.workers()).transpose()?;
        progress.start("tables", "fingerprints", 0);
        let planning = Planning {
            rules,
            n_existing,
            runs: existing.files.iter().map(|f| existing_run(&f.parquet, rules.bits)).collect(),
            row_sets_bytes: existing.row_sets_bytes(),
            held_bytes,
            kernel: resources.join_kernel()?,
            workers,
            resources: resources.clone(),
        };
        let planned = blocking("tables", move || planning.plan(batch)).await?;
        let Planned { batch, rows, class_fingerprints, queries, parts, piece_rows, words_at_once, memory, runner } =
            planned;
        let (existing, of_fingerprints, of_words) = by_url(existing, rules.verifier.words != WordKeys::NONE);
        let tasks = MapTasks {
            existing: Arc::new(existing),
            of_fingerprints,
            of_words,
            n_existing,
            queries: Arc::new(queries),
            parts,
            piece_rows,
            words_at_once,
            threads: workers.map_or(resources.n_threads(), |workers| workers.n.saturating_mul(workers.threads).max(1)),
        };
        let (engine, storage) = (work.engine.cloned(), work.storage.clone());
        let map = MapPhase { tasks, engine, storage, progress, counts: Arc::default() };
        let judge = judge.filter(|_| rules.itself).map(Arc::new);
        let (batch, rows, class_fingerprints) = (Arc::new(batch), Arc::new(rows), Arc::new(class_fingerprints));
        Ok(Self { batch, rows, class_fingerprints, rules, references, judge, map, memory, runner })
    }

    /// Returns what the newest map phase has looked at.
    pub(crate) fn map_counts(&self) -> MapCounts {
        *locked(&self.map.counts)
    }

    /// Returns what makes a pair of two documents of the batch, as far as the judge is not asked.
    fn own_verifier(&self) -> Verifier {
        let verifier = self.rules.own_verifier;
        self.judge.as_ref().map_or(verifier, |night| verifier.with_judge(&night.judge.config))
    }

    /// Returns what the judge has read and found. `None` means that there is no judge.
    pub fn judge_counts(&self) -> Option<JudgeCounts> {
        self.judge.as_ref().map(|judge| judge.counts())
    }

    /// Returns the number of query tables of all keys.
    pub fn n_tables(&self) -> usize {
        self.map.tasks.queries.keys().iter().map(|key| key.plan().tables().len()).sum()
    }

    /// Returns the number of parts of the batch that workers hold one after another, or of slices of the queries that are joined
    /// here one after another, in the key that has most.
    pub fn n_parts(&self) -> usize {
        let slices = self.map.tasks.queries.keys().iter().map(KeyQueries::n_slices);
        slices.chain([self.map.tasks.n_parts()]).max().unwrap_or(1)
    }

    /// Returns the instructions in use.
    pub(crate) fn kernel(&self) -> &'static str {
        self.map.tasks.queries.kernel().name().name()
    }

    /// Returns the number of existing fingerprints that will probe.
    pub fn n_existing(&self) -> u64 {
        self.map.tasks.n_existing
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
        let PassMemory { pieces_under_way, read_ahead_bytes, forest_bytes } = self.memory;
        let judge = self.judge.as_ref();
        let max_looks = judge.map_or(0, |night| night.judge.config.max_looks);
        let own = self.own_verifier();
        // What another pass has read is not left undecided again.
        let is_read = judge.is_some_and(|night| night.is_done());
        let own_verifier = Verifier { judged_to: own.judged_to.filter(|_| !is_read), ..own };
        let judging = judge.map(|night| Judging {
            judge: Arc::clone(night),
            undecided: Arc::new(Undecided::new(max_looks, forest_bytes)),
            max_bytes: forest_bytes,
        });
        let context = MapContext {
            ids: Arc::new(BatchIds::Held(Arc::clone(&self.batch))),
            rows: Arc::clone(&self.rows),
            places: Arc::default(),
            class_fingerprints: Arc::clone(&self.class_fingerprints),
            queries: Arc::clone(&self.map.tasks.queries),
            verifier: self.rules.verifier,
            own_verifier,
            max_looks,
            loss: self.rules.loss,
            itself: self.rules.itself,
            ids_are_names: !self.batch.is_numbered(),
            want,
            notes_classes,
            files: Arc::clone(&self.map.tasks.existing),
            room: Room::new(self.runner.threads(), pieces_under_way, read_ahead_bytes),
            progress: self.map.progress.clone(),
        };
        self.map.reduced((context, &self.batch), max_new_pairs, class_pairs, judging, &self.runner)
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
    ) -> Result<(Vec<StagedFile>, PairCounts, SpillStats, Option<DecisionBasis>)> {
        let Forested { reduced, pass, class_pairs } = self.forest_pass()?;
        let (state, schema) = (Arc::clone(&pass.state), pass.pair_schema());
        let leaf = StreamingTableExec::try_new(schema, vec![pass], None, [], false, None);
        let leaf = leaf.map_err(|e| of_datafusion("forest", e))?;
        let sorted = self.runner.sort(Arc::new(leaf))?;
        let (files, counts) = self.write(&sorted, folder, u64::MAX).await?;
        reduced.log();
        let spill = spill_stats(&reduced.plan).plus(spill_stats(&sorted));
        let gathered = self.gathered(locked(&state).finish(), class_pairs);
        Ok((files, counts, spill, gathered))
    }

    /// Runs the forest pass alone, and drops its pairs.
    pub async fn forest_state(&self) -> Result<(SpillStats, Option<DecisionBasis>)> {
        let Forested { reduced, pass, class_pairs } = self.forest_pass()?;
        let drained = pass.execute(self.runner.context()).try_for_each(|_| futures::future::ready(Ok(()))).await;
        drained.map_err(|e| of_datafusion("forest", e))?;
        let gathered = self.gathered(locked(&pass.state).finish(), class_pairs);
        reduced.log();
        Ok((spill_stats(&reduced.plan), gathered))
    }

    fn gathered(&self, gathered: Option<Gathered>, class_pairs: Arc<ClassPairs>) -> Option<DecisionBasis> {
        let rule = self.rules.decides?;
        let judged = self.judge.as_ref().map(|judge| judge.pairs()).unwrap_or_default();
        gathered.map(|gathered| DecisionBasis { rule, loss: self.rules.loss, gathered, class_pairs, judged })
    }

    /// Returns the plan below the forest pass, the pass, and the destination of its pairs of classes.
    fn forest_pass(&self) -> Result<Forested> {
        let class_pairs = Arc::new(ClassPairs::new(self.memory.forest_bytes));
        let by_star = self.rules.decides == Some(ClusterRule::Star);
        let reduced = self.reduced(Want::Forest, u64::MAX, Arc::clone(&class_pairs), by_star)?;
        let n_rows = self.batch.rows().end;
        let forest = Forest::new(Arc::clone(&self.rows), n_rows);
        let forest = match self.rules.decides {
            Some(rule) => forest.gathering(n_rows, rule.into(), self.rules.loss),
            None => forest,
        };
        let (batch, max_bytes) = (Arc::clone(&self.batch), self.memory.forest_bytes);
        let state = ForestState { forest, batch, class_pairs: Arc::clone(&class_pairs), max_bytes };
        let pass = ForestPass::new(Arc::clone(&reduced.plan), Arc::new(Mutex::new(state)));
        Ok(Forested { reduced, pass: Arc::new(pass), class_pairs })
    }

    /// Returns the batch and its rows, and drops everything else, also the words that the judge has read.
    pub fn into_batch(self) -> (Arc<QueryBatch>, Arc<QueryRows>) {
        let Self { mut batch, rows, .. } = self;
        // Nobody else has the batch once its plans are done.
        if let Some(batch) = Arc::get_mut(&mut batch) {
            batch.words = None;
        }
        (batch, rows)
    }

    async fn write(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        folder: &Path,
        max_pairs: u64,
    ) -> Result<(Vec<StagedFile>, PairCounts)> {
        let rows = self.runner.execute("reduce", Arc::clone(plan))?;
        let names = PairNames {
            batch: &self.batch,
            references: &self.references,
            rows: &self.rows,
            judge: self.judge.as_deref(),
            max_sketch_distance: self.own_verifier().max_sketch_distance,
        };
        names.write(rows, folder, max_pairs).await
    }
}

/// Returns existing files by URL, and the URLs of those that have the fingerprints and of those that have the sketches. Segments
/// have no sketches: these are in the runs that they cover.
fn by_url(existing: Existing, with_sketches: bool) -> (HashMap<String, ExistingFile>, Vec<String>, Vec<String>) {
    let url = |file: &ParquetFile| file.file.url.clone();
    let of_fingerprints = existing.files.iter().map(|file| url(&file.parquet)).collect();
    let (mut files, mut of_words) = (HashMap::new(), Vec::new());
    for file in existing.files {
        if with_sketches {
            match &file.documents {
                ExistingDocuments::Here { .. } => of_words.push(url(&file.parquet)),
                ExistingDocuments::InRuns { runs } => {
                    for RunFile { parquet, shadowed, restored } in runs.iter().flatten() {
                        let url = url(parquet);
                        if files.contains_key(&url) {
                            continue;
                        }
                        let documents =
                            ExistingDocuments::Here { shadowed: Arc::clone(shadowed), restored: Arc::clone(restored) };
                        let (parquet, origin) = (parquet.clone(), file.origin);
                        files.insert(url.clone(), ExistingFile { parquet, documents, origin, numbered_from: None });
                        of_words.push(url);
                    }
                }
            }
        }
        files.insert(url(&file.parquet), file);
    }
    (files, of_fingerprints, of_words)
}
