//! Map tasks: each probes the query tables with existing fingerprints, or with the queries' own.

use std::sync::Arc;

use futures::stream::BoxStream;
use nearprint_fault::Result;

use super::context::{MapContext, MapTask};
use super::map_itself::map_itself;
use super::map_piece::map_piece;
use crate::stream::{TaskBatch, produce};

/// Returns the pairs of a task, each at most once, in no particular order. The notes are its counts, and the pairs of
/// classes that decisions need.
///
/// ```
/// use std::sync::Arc;
///
/// # use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
/// use futures::{StreamExt, TryStreamExt};
/// use nearprint_join::{Kernel, Key, LossLimit, QueryRows, TablePlan, Verifier, WordKeys};
/// use nearprint_tasks::{
///     BatchIds, KeyJoin, KeyQueries, MapContext, MapTask, QuerySlices, Room, TaskBatch, Want, map_task,
/// };
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let ids: ArrayRef = Arc::new(StringArray::from(vec!["a.html", "b.html", "c.html"]));
/// # let fingerprints: ArrayRef = Arc::new(UInt64Array::from(vec![6, 7, u64::MAX]));
/// # let (files, rows) = (UInt32Array::from(vec![0; 3]), UInt64Array::from(vec![1, 2, 3]));
/// # let (files, rows): (ArrayRef, ArrayRef) = (Arc::new(files), Arc::new(rows));
/// # let arrived = [("doc_id", ids), ("fingerprint", fingerprints), ("file", files), ("row", rows)];
/// # let mut collecting = nearprint_tasks::Collecting::new(&[], None, usize::MAX);
/// # collecting.push(&RecordBatch::try_from_iter(arrived)?)?;
/// # let batch = collecting.finish(&nearprint_tasks::CollectPolicy::default(), |_| String::new())?;
/// // `batch` is a `QueryBatch` with the fingerprints 6, 7 and `u64::MAX`.
/// let (rows, values) = QueryRows::group(&batch.fingerprints, Arc::clone(&batch.sketches))?;
/// let all = 0..values.len();
/// let of = KeyJoin { key: Key::Fingerprint, existing: false, itself: true };
/// let key = KeyQueries::new(of, values, None, TablePlan::new(64, 3, &[0, 0, 0, 0])?, 1);
/// let queries = QuerySlices::try_new(vec![key], Kernel::best())?;
/// let verifier = Verifier { max_distance: 3, words: WordKeys::NONE, max_sketch_distance: None, judged_to: None };
/// let context = Arc::new(MapContext {
///     ids: Arc::new(BatchIds::Held(Arc::new(batch))),
///     rows: Arc::new(rows),
///     places: Arc::default(),
///     queries: Arc::new(queries),
///     class_fingerprints: Arc::default(),
///     verifier,
///     own_verifier: verifier,
///     max_looks: 0,
///     loss: LossLimit::NONE,
///     itself: true,
///     ids_are_names: true,
///     want: Want::AllPairs,
///     notes_classes: false,
///     files: Arc::default(),
///     room: Room::new(1, 2, 0),
///     progress: nearprint_storage::Progress::default(),
/// });
/// let mut batches = map_task(&context, &MapTask::Itself { values: all, slice: 0, part: 0, other: None });
/// let mut n_pairs = 0;
/// while let Some(batch) = batches.try_next().await? {
///     if let TaskBatch::Rows(pairs) = batch {
///         n_pairs += pairs.num_rows();
///     }
/// }
/// assert_eq!(n_pairs, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub fn map_task(context: &Arc<MapContext>, task: &MapTask) -> BoxStream<'static, Result<TaskBatch>> {
    let (context, task) = (Arc::clone(context), task.clone());
    produce("map", move |sender| async move {
        let tables = context.queries.tables(task.slices()).await?;
        let counts = match task {
            MapTask::Itself { values, slice, .. } => {
                let (own, to) = (Arc::clone(&context), sender.clone());
                let map = move || map_itself(&own, (own.queries.of_slice(slice).0, &tables[0]), values, to);
                context.room.compute(map).await?
            }
            MapTask::Existing { piece, slices, .. } => map_piece(&context, slices, tables, piece, &sender).await?,
        };
        sender.send(TaskBatch::Notes(counts.notes()?)).await
    })
}
