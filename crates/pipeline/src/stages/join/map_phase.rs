//! The map phase of a join under its reduce: the tasks run here, or in the processes of an engine.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, displayable};
use nearprint_fault::Result;
use nearprint_join::Key;
use nearprint_parquet::create_folder;
use nearprint_storage::{Progress, Storage, locked};
use nearprint_tasks::{ClassPairs, Engine, KeyQueries, MapContext, MapCounts, MapSpec, QueryBatch, Undecided, Want};
use tokio::sync::watch;

use super::map_tasks::MapTasks;
use crate::error::of_datafusion;
use crate::operators::probe_exec::{Notes, ProbeTasks, RemoteTasks};
use crate::operators::reduce::PlanRunner;
use crate::operators::slice_turns::SliceTurns;
use crate::operators::task_exec::TaskExec;
use crate::stages::judge::{JudgeTask, NightJudge};

/// The map phase of a join, which may run more than once, for other pairs each time.
pub(super) struct MapPhase {
    pub(super) tasks: MapTasks,
    /// The engine that runs the tasks, if it is not this process.
    pub(super) engine: Option<Arc<dyn Engine>>,
    /// The settings with which the engine finds files.
    pub(super) storage: Storage,
    pub(super) progress: Progress,
    /// The counts of the newest run.
    pub(super) counts: Arc<Mutex<MapCounts>>,
}

/// The judge of a pass, and the pairs that it decides.
pub(super) struct Judging {
    pub(super) judge: Arc<NightJudge>,
    pub(super) undecided: Arc<Undecided>,
    /// The most bytes that the pairs, and what is known of their texts, may take.
    pub(super) max_bytes: usize,
}

/// A map phase under its reduce.
pub(super) struct Reduced {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// The description of the tables that are probed.
    tables: String,
    counts: Arc<Mutex<MapCounts>>,
}

impl MapPhase {
    /// Returns the map phase under the reduce. It fails after more than `max_new_pairs` pairs of new documents. Notes
    /// of pairs of classes go to `class_pairs`. The pairs that a judge takes for near-duplicates are among the rows.
    pub(super) fn reduced(
        &self,
        (context, batch): (MapContext, &Arc<QueryBatch>),
        max_new_pairs: u64,
        class_pairs: Arc<ClassPairs>,
        judging: Option<Judging>,
        runner: &PlanRunner,
    ) -> Result<Reduced> {
        let tasks = self.tasks.in_order();
        let counts = Arc::clone(&self.counts);
        *locked(&counts) = MapCounts::default();
        let stage = if context.want == Want::Forest { "join (forest)" } else { "join (all pairs)" };
        self.progress.start(stage, "fingerprints", self.tasks.n_mapped(&tasks));
        let (told, is_told) = watch::channel(false);
        let undecided =
            judging.as_ref().map_or_else(|| Arc::new(Undecided::new(0, 0)), |judging| Arc::clone(&judging.undecided));
        let notes = Notes {
            class_pairs,
            max_new_pairs,
            n_new_pairs: AtomicU64::new(0),
            counts: Arc::clone(&counts),
            undecided: Arc::clone(&undecided),
            told,
            n_telling: AtomicUsize::new(tasks.len()),
        };
        let (notes, context) = (Arc::new(notes), Arc::new(context));
        // Without tasks, nothing is told.
        let judge = judging.filter(|_| !tasks.is_empty()).map(|Judging { judge, max_bytes, .. }| {
            let (context, notes) = (Arc::clone(&context), Arc::clone(&notes));
            let batch = Arc::clone(batch);
            TaskExec::plan(JudgeTask { judge, batch, context, undecided, max_bytes, told: is_told, notes })
        });
        let tables = self.tables_in_words();
        let (tables, plan) = match &self.engine {
            None => {
                let turns =
                    SliceTurns::new(self.tasks.queries.n_slices(), tasks.iter().map(|task| task.slices().start));
                let probes = ProbeTasks { tasks, context, turns: Arc::new(turns), notes, tables };
                let tables = probes.to_string();
                let rows = with_judged(TaskExec::plan(probes), judge)?;
                (tables, runner.reduce(rows)?)
            }
            Some(engine) => {
                let folder = spec_folder(runner, context.want);
                create_folder(&folder)?;
                MapSpec::write(&context, batch, self.tasks.parts.as_deref().unwrap_or_default(), &folder)?;
                let (engine, tasks, want) = (Arc::clone(engine), self.tasks.weighed(tasks), context.want);
                let (storage, progress) = (self.storage.clone(), self.progress.clone());
                let sent = RemoteTasks { engine, tasks, folder, storage, progress, want, notes, tables };
                let (tables, rows) = (sent.to_string(), TaskExec::plan(sent));
                let rows = match judge {
                    None => rows,
                    Some(judged) => runner.merged(rows, runner.sort(judged)?)?,
                };
                (tables, rows)
            }
        };
        tracing::debug!(plan = text_of(&plan), "reduce");
        Ok(Reduced { plan, tables, counts })
    }

    /// Describes the tables of each key for plans in logs, as in `bits=64, k=3, tables=4, slices=1`.
    fn tables_in_words(&self) -> String {
        let of_key = |key: &KeyQueries| {
            let (plan, n_slices) = (key.plan(), key.n_slices());
            let (bits, k, tables) = (plan.bits(), plan.max_distance(), plan.tables().len());
            let word = match key.of().key {
                Key::Fingerprint => String::new(),
                Key::Word(word) => format!("word={word}, "),
            };
            format!("{word}bits={bits}, k={k}, tables={tables}, slices={n_slices}")
        };
        let keys = self.tasks.queries.keys().iter().map(of_key).collect::<Vec<_>>().join("; ");
        if self.tasks.n_parts() > 1 { format!("parts={}; {keys}", self.tasks.n_parts()) } else { keys }
    }
}

impl Reduced {
    /// Logs the counts of the map phase, once it is over.
    pub(super) fn log(&self) {
        let MapCounts { n_rows, n_candidates, n_sketches, n_sketch_pages, .. } = *locked(&self.counts);
        let n_pairs = self.plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0);
        tracing::debug!(
            "ProbeExec: {}, rows={n_rows}, candidates={n_candidates}, sketches={n_sketches}, \
             sketch_pages={n_sketch_pages}, pairs={n_pairs}",
            self.tables
        );
    }
}

/// Returns a plan with the rows of another one, if there is one.
fn with_judged(rows: Arc<dyn ExecutionPlan>, judged: Option<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(judged) = judged else { return Ok(rows) };
    UnionExec::try_new(vec![rows, judged]).map_err(|e| of_datafusion("judge", e))
}

/// Returns a plan on one line, from its result down to its input.
fn text_of(plan: &Arc<dyn ExecutionPlan>) -> String {
    let lines = displayable(plan.as_ref()).indent(false).to_string();
    lines.lines().map(str::trim).collect::<Vec<_>>().join(" <- ")
}

/// Returns the folder for the specification of a pass.
fn spec_folder(runner: &PlanRunner, want: Want) -> PathBuf {
    runner.temp.path().join(match want {
        Want::AllPairs => "spec-all",
        Want::Forest => "spec-forest",
    })
}
