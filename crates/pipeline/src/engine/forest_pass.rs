//! The spanning forest, over the reduced stream of its candidates.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{Debug, Formatter};
use std::sync::{Arc, Mutex};

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{SchemaRef, UInt8Type, UInt32Type, UInt64Type};
use datafusion_common::Result as DataFusionResult;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use nearprint_join::{ClassOfRows, QueryRows, RowSet, UnionFind};

use crate::batch::query_batch::QueryBatch;
use crate::error::{PipelineError, Result};
use crate::stages::decide::ClusterRule;
use crate::tasks::{ClassPairs, Want, pair_schema};
use nearprint_dataset::Columns;
use nearprint_storage::locked;

/// One pass over the forest's candidates, sorted by (distance, a, id_b) and distinct: lets those through that join two
/// components, as rows of pairs, and gathers on the way what decisions need.
pub(crate) struct ForestPass {
    pub(crate) input: Arc<dyn ExecutionPlan>,
    pub(crate) state: Arc<Mutex<ForestState>>,
    schema: SchemaRef,
}

/// The state of a pass.
pub(crate) struct ForestState {
    rows: Arc<QueryRows>,
    /// Nodes: the rows of the batch, then existing fingerprints as they turn up.
    sets: UnionFind,
    existing_nodes: HashMap<u64, u32>,
    gathering: Option<Gathering>,
    /// The most bytes that the pass may take beside its batches.
    max_bytes: usize,
}

/// What decisions need of a pass.
struct Gathering {
    batch: Arc<QueryBatch>,
    rule: ClusterRule,
    classes: ClassOfRows,
    class_pairs: Arc<ClassPairs>,
    kept: HashMap<u32, KeptExisting>,
    kept_bytes: usize,
    paired: RowSet,
}

/// What decisions follow from.
pub(crate) struct Gathered {
    pub(crate) rule: ClusterRule,
    /// Rows of the batch, and existing fingerprints, in their components.
    pub(crate) sets: UnionFind,
    pub(crate) classes: ClassOfRows,
    /// Verified pairs of different classes; only for the star rule.
    pub(crate) class_pairs: Arc<ClassPairs>,
    /// Of the kept existing documents near each class, the one that the rule asks for: the nearest, by (distance, id), for the star
    /// rule, and the one with the smallest id for components.
    pub(crate) kept: HashMap<u32, KeptExisting>,
    /// Rows in verified pairs.
    pub(crate) paired: RowSet,
}

/// A kept existing document near a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptExisting {
    pub(crate) distance: u8,
    pub(crate) id: Box<str>,
    pub(crate) text_hash: Option<[u8; 16]>,
    pub(crate) fingerprint: u64,
    /// Its node among the sets.
    pub(crate) node: u32,
}

/// An entry of a hash table that may be half empty, with its control byte, and while it grows the smaller table.
const fn entry_bytes<K, V>() -> usize {
    3 * (size_of::<(K, V)>() + 1)
}

impl ForestState {
    pub(crate) fn new(rows: Arc<QueryRows>, n_rows: u32, max_bytes: usize) -> Self {
        let (sets, existing_nodes) = (UnionFind::new(n_rows), HashMap::new());
        Self { rows, sets, existing_nodes, gathering: None, max_bytes }
    }

    /// Gathers what decisions need, too.
    pub(crate) fn gathering(self, batch: Arc<QueryBatch>, rule: ClusterRule, class_pairs: Arc<ClassPairs>) -> Self {
        let classes = self.rows.class_of_rows(batch.rows().end);
        let (kept, kept_bytes, paired) = (HashMap::new(), 0, RowSet::default());
        Self { gathering: Some(Gathering { batch, rule, classes, class_pairs, kept, kept_bytes, paired }), ..self }
    }

    /// Bytes that a pass over `n_rows` rows takes from the start.
    pub(crate) fn bytes_of(n_rows: usize, gathering: bool) -> usize {
        let gathered = if gathering { ClassOfRows::bytes_of(n_rows) + n_rows / 8 } else { 0 };
        n_rows * 8 + gathered
    }

    /// What the pass gathered, once it is at its end.
    pub(crate) fn finish(&mut self) -> Option<Gathered> {
        let sets = std::mem::take(&mut self.sets);
        self.existing_nodes = HashMap::new();
        let Gathering { rule, classes, class_pairs, kept, paired, .. } = self.gathering.take()?;
        Some(Gathered { rule, sets, classes, class_pairs, kept, paired })
    }

    fn accept(&mut self, candidates: &RecordBatch) -> Result<RecordBatch> {
        let columns = Columns { batch: candidates, file: "forest candidates" };
        let (distances, a) = (columns.primitive::<UInt8Type>("distance")?, columns.primitive::<UInt32Type>("a")?);
        let (b, fingerprint_b) =
            (columns.primitive::<UInt32Type>("b")?, columns.primitive::<UInt64Type>("fingerprint_b")?);
        let (ids, text_hashes) = (columns.strings("id_b")?, columns.binaries("text_hash_b")?);
        let (new, edge, kept) = (columns.booleans("new")?, columns.booleans("edge")?, columns.booleans("kept")?);
        let mut joins = Vec::with_capacity(candidates.num_rows());
        for i in 0..candidates.num_rows() {
            let (a, distance, is_edge) = (a.value(i), distances.value(i), edge.value(i));
            let node = if new.value(i) { b.value(i) } else { self.existing_node(fingerprint_b.value(i)) };
            if let Some(gathering) = &mut self.gathering {
                if is_edge {
                    gathering.paired.insert(a);
                }
                if new.value(i) {
                    gathering.paired.insert(b.value(i));
                }
                if kept.value(i) {
                    let (id, fingerprint) = (ids.value(i).into(), fingerprint_b.value(i));
                    let text_hash = text_hashes.is_valid(i).then(|| text_hash(text_hashes.value(i))).transpose()?;
                    gathering.offer(&self.rows, a, KeptExisting { distance, id, text_hash, fingerprint, node })?;
                }
            }
            joins.push(is_edge && self.sets.union(a, node));
        }
        self.refuse_too_large()?;
        accepted(candidates, &BooleanArray::from(joins))
    }

    fn refuse_too_large(&self) -> Result<()> {
        let (kept, class_pairs) =
            self.gathering.as_ref().map_or((0, 0), |g| (g.kept_bytes, g.class_pairs.memory_bytes()));
        let nodes = self.existing_nodes.len() * (entry_bytes::<u64, u32>() + 16);
        let bytes = kept + class_pairs + nodes;
        if bytes > self.max_bytes {
            let reason = format!(
                "what decisions need of existing documents and pairs takes {bytes} bytes, {} are left",
                self.max_bytes
            );
            return Err(PipelineError::Resources { reason });
        }
        Ok(())
    }

    fn existing_node(&mut self, fingerprint: u64) -> u32 {
        *self.existing_nodes.entry(fingerprint).or_insert_with(|| self.sets.add())
    }
}

impl Gathering {
    fn offer(&mut self, rows: &QueryRows, a: u32, found: KeptExisting) -> Result<()> {
        let Some(class) = self.classes.of(a) else {
            return Err(defect(format!("row {a} has a pair and no fingerprint")));
        };
        // Members of a larger class are in pairs with each other already.
        if let [row] = *rows.members(class)
            && *self.batch.id(row) != *found.id
        {
            self.paired.insert(row);
        }
        match self.kept.entry(class) {
            Entry::Vacant(entry) => {
                self.kept_bytes += entry_bytes::<u32, KeptExisting>() + found.id.len() + 16;
                entry.insert(found);
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get();
                let better = match self.rule {
                    ClusterRule::Star => (found.distance, &found.id) < (known.distance, &known.id),
                    ClusterRule::Component => found.id < known.id,
                };
                if better {
                    entry.insert(found);
                }
            }
        }
        Ok(())
    }
}

/// The hash as the mappers sent it.
fn text_hash(bytes: &[u8]) -> Result<[u8; 16]> {
    bytes.try_into().map_err(|_| defect(format!("a text hash of {} bytes", bytes.len())))
}

fn defect(reason: String) -> PipelineError {
    PipelineError::Internal { stage: "forest", reason }
}

/// Candidates as pairs.
fn accepted(candidates: &RecordBatch, joins: &BooleanArray) -> Result<RecordBatch> {
    let internal = |e: arrow::error::ArrowError| defect(e.to_string());
    let joined = filter_record_batch(candidates, joins).map_err(internal)?;
    let schema = pair_schema(Want::AllPairs);
    let columns = schema.fields().iter().filter_map(|f| joined.column_by_name(f.name()).cloned()).collect();
    RecordBatch::try_new(schema, columns).map_err(internal)
}

impl ForestPass {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, state: Arc<Mutex<ForestState>>) -> Self {
        Self { input, state, schema: pair_schema(Want::AllPairs) }
    }

    pub(crate) fn pair_schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Debug for ForestPass {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "ForestPass")
    }
}

impl PartitionStream for ForestPass {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let state = Arc::clone(&self.state);
        let accept = move |batch: DataFusionResult<RecordBatch>| {
            locked(&state).accept(&batch?).map_err(PipelineError::into_datafusion)
        };
        let stream = match self.input.execute(0, context) {
            Ok(candidates) => candidates.map(accept).boxed(),
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))
    }
}
