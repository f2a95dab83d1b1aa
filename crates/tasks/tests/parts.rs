//! A batch that is joined with itself part by part, as the workers of an engine do it, has the pairs of the definition.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, FixedSizeBinaryArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::UInt32Type;
use futures::TryStreamExt;
use nearprint_fingerprint::Sketch;
use nearprint_join::{Kernel, Key, LossLimit, QueryRows, TablePlan, Verifier, WordKeys};
use nearprint_storage::{Progress, Storage};
use nearprint_tasks::{
    BatchIds, CollectPolicy, Collecting, KeyJoin, KeyQueries, MapContext, MapSpec, MapTask, QueryBatch, QuerySlices,
    Room, TaskBatch, Want,
};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::Config;

const MAX_DISTANCE: u8 = 3;
const MAX_SKETCH_DISTANCE: u16 = 20;

/// A document: the family whose fingerprint and sketch it has, and the bits in which they differ.
type Document = (u8, u64, u8);

fn fingerprint((family, bits, _): Document) -> u64 {
    u64::from(family).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (1 << (bits % 64)) ^ (1 << (bits / 64 % 64))
}

fn sketch((family, _, n_bits): Document) -> [u8; 32] {
    let mut sketch = [family; 32];
    sketch[..4].copy_from_slice(&(u64::from(family) ^ ((1u64 << (n_bits % 24)) - 1)).to_le_bytes()[..4]);
    sketch
}

fn batch_of(documents: &[Document]) -> QueryBatch {
    let ids = (0..documents.len()).map(|i| format!("page-{:04}", i * 7919 % 10_007));
    let sketches = documents.iter().map(|&document| Some(sketch(document)));
    let sketches = FixedSizeBinaryArray::try_from_sparse_iter_with_size(sketches, 32).unwrap();
    let columns: [(&str, ArrayRef); 6] = [
        ("doc_id", Arc::new(StringArray::from_iter_values(ids))),
        ("fingerprint", Arc::new(documents.iter().map(|&d| Some(fingerprint(d))).collect::<UInt64Array>())),
        ("sketch", Arc::new(sketches)),
        ("n_features", Arc::new(UInt32Array::from_iter_values(documents.iter().map(|d| 50 + u32::from(d.2 % 2))))),
        ("file", Arc::new(UInt32Array::from(vec![0; documents.len()]))),
        ("row", Arc::new(UInt64Array::from_iter_values(0..documents.len() as u64))),
    ];
    let mut collecting = Collecting::new(&[], None, usize::MAX);
    collecting.push(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    collecting.finish(&CollectPolicy::default(), |_| String::new()).unwrap()
}

fn near_by_definition(batch: &QueryBatch) -> BTreeSet<(u32, u32)> {
    let near = |&(a, b): &(u32, u32)| {
        let [of_a, of_b] = [a, b].map(|row| *batch.fingerprints.get(row).unwrap());
        let sketches: [&Sketch; 2] = [a, b].map(|row| batch.sketches.get(row).unwrap());
        (of_a ^ of_b).count_ones() <= u32::from(MAX_DISTANCE)
            && sketches[0].distance(sketches[1]) <= u32::from(MAX_SKETCH_DISTANCE)
    };
    batch.rows().flat_map(|b| (0..b).map(move |a| (a, b))).filter(near).collect()
}

/// Returns the tasks that join each part with itself and with the later ones, cut into ranges of some values.
fn tasks_of(parts: &[Range<u32>], step: usize) -> Vec<MapTask> {
    let cut = |range: Range<usize>| range.clone().step_by(step).map(move |at| at..range.end.min(at + step));
    let mut tasks = Vec::new();
    for (part, values) in parts.iter().enumerate() {
        tasks.extend(cut(0..values.len()).map(|values| MapTask::Itself { values, slice: 0, part, other: None }));
        for (other, others) in parts.iter().enumerate().skip(part + 1) {
            let ranges = cut(values.len()..values.len() + others.len());
            tasks.extend(ranges.map(|values| MapTask::Itself { values, slice: 0, part, other: Some(other) }));
        }
    }
    tasks
}

async fn pairs_of(batch: QueryBatch, n_parts: usize, step: usize) -> (usize, Vec<(u32, u32)>) {
    let (sketches, n_features) = (Arc::clone(&batch.sketches), Arc::clone(&batch.n_features));
    let (rows, values) = QueryRows::group_counted(&batch.fingerprints, sketches, n_features).unwrap();
    let parts = rows.cut(n_parts);
    let of = KeyJoin { key: Key::Fingerprint, existing: false, itself: true };
    let plan = TablePlan::new(64, u32::from(MAX_DISTANCE), &[0; 4]).unwrap();
    let key = KeyQueries::counted(of, values.len(), plan, 1);
    let (words, max_sketch_distance) = (WordKeys::NONE, Some(MAX_SKETCH_DISTANCE));
    let verifier = Verifier { max_distance: MAX_DISTANCE, words, max_sketch_distance, judged_to: None };
    let batch = Arc::new(batch);
    let context = MapContext {
        ids: Arc::new(BatchIds::Held(Arc::clone(&batch))),
        rows: Arc::new(rows),
        places: Arc::default(),
        class_fingerprints: Arc::default(),
        queries: Arc::new(QuerySlices::unbuilt(vec![key], Kernel::best())),
        verifier,
        own_verifier: verifier,
        max_looks: 0,
        loss: LossLimit::NONE,
        itself: true,
        ids_are_names: true,
        want: Want::AllPairs,
        notes_classes: false,
        files: Arc::default(),
        room: Room::new(1, 1, 0),
        progress: Progress::default(),
    };
    let folder = tempfile::tempdir().unwrap();
    MapSpec::write(&context, &batch, &parts, folder.path()).unwrap();
    let join = Arc::new(MapSpec::load(&Storage::default(), folder.path(), 1).await.unwrap());
    drop(folder);
    // Two at a time, as in a worker.
    let batches = futures::stream::iter(tasks_of(&parts, step).into_iter().map(|task| join.run(task)));
    let batches: Vec<TaskBatch> = futures::StreamExt::flatten_unordered(batches, 2).try_collect().await.unwrap();
    let mut pairs = Vec::new();
    for rows in
        batches.into_iter().filter_map(|batch| if let TaskBatch::Rows(rows) = batch { Some(rows) } else { None })
    {
        let [a, b] = ["a", "b"].map(|name| rows.column_by_name(name).unwrap().as_primitive::<UInt32Type>().values());
        pairs.extend(a.iter().copied().zip(b.iter().copied()));
    }
    pairs.sort_unstable();
    (parts.len(), pairs)
}

proptest! {
    #![proptest_config(Config { cases: 150, ..Config::default() })]

    #[test]
    fn pairs_of_a_batch_in_parts_are_those_of_the_definition_each_once(
        documents in vec((0u8..40, any::<u64>(), any::<u8>()), 0..200),
        copies in vec((any::<u16>(), 0usize..30), 0..4),
        n_parts in 1usize..12,
        step in 1usize..80,
    ) {
        let mut documents: Vec<Document> = documents;
        for (of, n) in copies {
            if let Some(&document) = documents.get(usize::from(of) % documents.len().max(1)) {
                documents.extend(std::iter::repeat_n(document, n));
            }
        }
        let batch = batch_of(&documents);
        let expected: Vec<(u32, u32)> = near_by_definition(&batch).into_iter().collect();
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (n_found, pairs) = threads.block_on(pairs_of(batch, n_parts, step));
        prop_assert!(n_found <= n_parts);
        prop_assert_eq!(pairs, expected);
    }
}
