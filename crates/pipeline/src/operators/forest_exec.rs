//! The spanning forest, over the reduced stream of its candidates.

use std::collections::HashMap;
use std::fmt::{Debug, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{SchemaRef, UInt8Type, UInt32Type, UInt64Type};
use datafusion_common::Result as DataFusionResult;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use nearprint_join::{QueryRows, UnionFind};

use crate::columns::Columns;
use crate::error::{PipelineError, Result};
use crate::query_batch::QueryBatch;
use crate::tasks::{Want, pair_schema};

/// One pass over the forest's candidates, sorted by (distance, a, id_b) and distinct: lets those through that join two
/// components, as rows of pairs, and gathers on the way what decisions need.
pub(crate) struct ForestPass {
    pub(crate) input: Arc<dyn ExecutionPlan>,
    pub(crate) state: Arc<Mutex<ForestState>>,
    schema: SchemaRef,
}

/// What one pass leaves behind.
pub(crate) struct ForestState {
    batch: Arc<QueryBatch>,
    rows: Arc<QueryRows<u64>>,
    /// Nodes: the rows of the batch, then existing fingerprints as they turn up.
    pub(crate) sets: UnionFind,
    existing_nodes: HashMap<u64, u32>,
    /// Verified pairs of different classes, by class.
    pub(crate) class_pairs: Vec<(u32, u32, u8)>,
    /// Of the kept existing documents near each class, the nearest one, by (distance, id).
    pub(crate) nearest_kept: HashMap<u32, KeptExisting>,
    /// Of the same, the one with the smallest id.
    pub(crate) first_kept: HashMap<u32, KeptExisting>,
    /// Whether a row is in a verified pair.
    pub(crate) paired: Vec<bool>,
    /// The most bytes that class pairs and their index may take.
    max_bytes: usize,
}

/// A kept existing document near a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptExisting {
    pub(crate) distance: u8,
    pub(crate) id: String,
    pub(crate) text_hash: Option<[u8; 16]>,
    pub(crate) fingerprint: u64,
    /// Its node among the sets.
    pub(crate) node: u32,
}

/// A pair of classes, and its place in the index both ways.
const CLASS_PAIR_BYTES: usize = size_of::<(u32, u32, u8)>() + 2 * (size_of::<u32>() + size_of::<u8>());

impl ForestState {
    pub(crate) fn new(batch: Arc<QueryBatch>, rows: Arc<QueryRows<u64>>, max_bytes: usize) -> Self {
        Self {
            sets: UnionFind::new(batch.rows().end),
            paired: vec![false; batch.len()],
            batch,
            rows,
            existing_nodes: HashMap::new(),
            class_pairs: Vec::new(),
            nearest_kept: HashMap::new(),
            first_kept: HashMap::new(),
            max_bytes,
        }
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
            let (a, distance) = (a.value(i), distances.value(i));
            let node = if new.value(i) {
                self.new_pair(a, b.value(i), distance)?
            } else {
                self.existing_node(fingerprint_b.value(i))
            };
            if kept.value(i) {
                let (id, fingerprint) = (ids.value(i).to_owned(), fingerprint_b.value(i));
                let text_hash = text_hashes.is_valid(i).then(|| text_hashes.value(i).try_into().ok()).flatten();
                self.offer(a, KeptExisting { distance, id, text_hash, fingerprint, node });
            }
            if edge.value(i) {
                self.paired[a as usize] = true;
            }
            joins.push(edge.value(i) && self.sets.union(a, node));
        }
        accepted(candidates, &BooleanArray::from(joins))
    }

    /// Notes a pair of two rows of the batch; gives the second one's node.
    fn new_pair(&mut self, a: u32, b: u32, distance: u8) -> Result<u32> {
        self.paired[b as usize] = true;
        let (Some(class_a), Some(class_b)) = (self.rows.class_of(a), self.rows.class_of(b)) else { return Ok(b) };
        // Every pair of classes comes with its first rows; the others would repeat it.
        let firsts = [class_a, class_b].map(|class| self.rows.members(class)[0]);
        if class_a != class_b && firsts == [a, b] {
            self.class_pairs.push((class_a, class_b, distance));
            if self.class_pairs.len() * CLASS_PAIR_BYTES > self.max_bytes {
                let reason = format!("decisions over more than {} pairs", self.class_pairs.len());
                return Err(PipelineError::Resources { reason });
            }
        }
        Ok(b)
    }

    fn existing_node(&mut self, fingerprint: u64) -> u32 {
        *self.existing_nodes.entry(fingerprint).or_insert_with(|| self.sets.add())
    }

    fn offer(&mut self, a: u32, found: KeptExisting) {
        let Some(class) = self.rows.class_of(a) else {
            return;
        };
        // Members of a larger class are in pairs with each other already.
        if let [row] = *self.rows.members(class) {
            self.paired[row as usize] |= self.batch.id(row) != found.id;
        }
        let first = self.first_kept.entry(class).or_insert_with(|| found.clone());
        if found.id < first.id {
            first.clone_from(&found);
        }
        let nearest = self.nearest_kept.entry(class).or_insert_with(|| found.clone());
        if (found.distance, &found.id) < (nearest.distance, &nearest.id) {
            *nearest = found;
        }
    }
}

/// Candidates as pairs.
fn accepted(candidates: &RecordBatch, joins: &BooleanArray) -> Result<RecordBatch> {
    let internal = |e: arrow::error::ArrowError| PipelineError::Internal { stage: "forest", reason: e.to_string() };
    let joined = filter_record_batch(candidates, joins).map_err(internal)?;
    let schema = pair_schema(Want::AllPairs);
    let columns = schema.fields().iter().filter_map(|f| joined.column_by_name(f.name()).cloned()).collect();
    RecordBatch::try_new(schema, columns).map_err(internal)
}

impl ForestPass {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, state: ForestState) -> Self {
        Self::sharing(input, Arc::new(Mutex::new(state)))
    }

    pub(crate) fn sharing(input: Arc<dyn ExecutionPlan>, state: Arc<Mutex<ForestState>>) -> Self {
        Self { input, state, schema: pair_schema(Want::AllPairs) }
    }

    pub(crate) fn pair_schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The state behind its lock; a panic elsewhere has already become an error.
pub(crate) fn locked(state: &Mutex<ForestState>) -> MutexGuard<'_, ForestState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
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
