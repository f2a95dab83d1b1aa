//! The spanning forest, over the reduced stream of its candidates.

use std::fmt::{Debug, Formatter};
use std::sync::{Arc, Mutex};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{SchemaRef, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use datafusion_common::Result as DataFusionResult;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use nearprint_fault::{Fault, Result};
use nearprint_join::{Candidate, Far, Forest, Gathered, Origin};
use nearprint_parquet::{Columns, value};
use nearprint_storage::locked;
use nearprint_tasks::{ClassPairs, QueryBatch, Want, pair_schema};

use crate::error::into_datafusion;

/// One pass over the forest's candidates, which are distinct and sorted by (distance, a, id_b, store_b). It returns those that
/// join two components as rows of pairs, and gathers the data that decisions need.
pub(crate) struct ForestPass {
    pub(crate) input: Arc<dyn ExecutionPlan>,
    pub(crate) state: Arc<Mutex<ForestState>>,
    schema: SchemaRef,
}

/// The state of a pass.
pub(crate) struct ForestState {
    pub(crate) forest: Forest,
    pub(crate) batch: Arc<QueryBatch>,
    pub(crate) class_pairs: Arc<ClassPairs>,
    /// The most bytes that the pass may take beside its batches.
    pub(crate) max_bytes: usize,
}

impl ForestState {
    /// Returns the data that the pass gathered, once it is at its end.
    pub(crate) fn finish(&mut self) -> Option<Gathered> {
        self.forest.finish()
    }

    fn accept(&mut self, candidates: &RecordBatch) -> Result<RecordBatch> {
        let columns = Columns { batch: candidates, file: "forest candidates" };
        let (distances, a) = (columns.primitive::<UInt8Type>("distance")?, columns.primitive::<UInt32Type>("a")?);
        let (b, fingerprint_b) =
            (columns.primitive::<UInt32Type>("b")?, columns.primitive::<UInt64Type>("fingerprint_b")?);
        let (ids, text_hashes) = (columns.strings("id_b")?, columns.binaries("text_hash_b")?);
        let stores = columns.primitive::<UInt8Type>("store_b")?;
        let sketch_distances = columns.primitive::<UInt16Type>("sketch_distance")?;
        let n_features = columns.primitive::<UInt32Type>("n_features_b")?;
        let (new, edge, kept) = (columns.booleans("new")?, columns.booleans("edge")?, columns.booleans("kept")?);
        let mut joins = Vec::with_capacity(candidates.num_rows());
        for i in 0..candidates.num_rows() {
            let far = if new.value(i) {
                Far::New(b.value(i))
            } else {
                Far::Existing {
                    fingerprint: fingerprint_b.value(i),
                    id: ids.value(i),
                    origin: Origin::from(stores.value(i)),
                    text_hash: value(text_hashes, i).map(text_hash).transpose()?,
                    n_features: value(n_features, i),
                    is_edge: edge.value(i),
                    is_kept: kept.value(i),
                }
            };
            let sketch_distance = value(sketch_distances, i);
            let candidate = Candidate { row: a.value(i), distance: distances.value(i), sketch_distance, far };
            joins.push(self.forest.offer(&candidate, |row, id| *self.batch.id(row) == *id)?);
        }
        self.refuse_too_large()?;
        accepted(candidates, &BooleanArray::from(joins))
    }

    fn refuse_too_large(&self) -> Result<()> {
        let bytes = self.forest.memory_bytes() + self.class_pairs.memory_bytes();
        if bytes > self.max_bytes {
            let reason = format!(
                "what decisions need of existing documents and pairs takes {bytes} bytes, {} are left",
                self.max_bytes
            );
            return Err(Fault::resources(reason));
        }
        Ok(())
    }
}

/// Returns a text hash that the mappers sent.
fn text_hash(bytes: &[u8]) -> Result<[u8; 16]> {
    bytes.try_into().map_err(|_| defect(format!("a text hash of {} bytes", bytes.len())))
}

fn defect(reason: String) -> Fault {
    Fault::internal("forest", reason)
}

/// Returns the candidates that join components as pairs.
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
        let accept =
            move |batch: DataFusionResult<RecordBatch>| locked(&state).accept(&batch?).map_err(into_datafusion);
        let stream = match self.input.execute(0, context) {
            Ok(candidates) => candidates.map(accept).boxed(),
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))
    }
}
