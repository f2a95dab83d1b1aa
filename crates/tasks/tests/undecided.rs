//! The pairs that a judge reads: the nearest of each class, and no more than memory has room for.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt8Array, UInt16Array, UInt32Array};
use nearprint_fault::ErrorKind;
use nearprint_tasks::Undecided;

/// The notes of a map task: pairs of classes with the distance of their sketches.
fn notes(pairs: &[(u32, u32, u16)]) -> RecordBatch {
    let column = |name, array: ArrayRef| (name, array, false);
    RecordBatch::try_from_iter_with_nullable([
        column("sketch_distance", Arc::new(UInt16Array::from_iter_values(pairs.iter().map(|pair| pair.2)))),
        column("distance", Arc::new(UInt8Array::from_iter_values(pairs.iter().map(|_| 3)))),
        column("a", Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.0)))),
        column("b", Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.1)))),
    ])
    .unwrap()
}

#[test]
fn of_each_class_the_nearest_pairs_are_read_whoever_tells_of_them() {
    let undecided = Undecided::new(1, 1 << 20);
    // The nearest of 0 is 1, of 1 and 2 it is each other, and of 3 it is 0.
    assert!(undecided.add(&notes(&[(0, 3, 70), (1, 2, 30)])).unwrap());
    assert!(undecided.add(&notes(&[(0, 2, 60), (0, 1, 40)])).unwrap());
    let read: Vec<(u32, u32)> = undecided.take().into_iter().map(|pair| (pair.a, pair.b)).collect();
    assert_eq!(read, [(1, 2), (0, 1), (0, 3)]);
    let other = RecordBatch::try_from_iter([("a", Arc::new(UInt32Array::from(vec![1])) as ArrayRef)]).unwrap();
    assert!(!undecided.add(&other).unwrap());
}

#[test]
fn pairs_that_memory_has_no_room_for_are_an_error_that_names_the_key() {
    let undecided = Undecided::new(16, 600);
    let pairs: Vec<(u32, u32, u16)> = (0..40).map(|a| (a, a + 1, 50)).collect();
    // What several tasks have found is held once.
    for _ in 0..3 {
        assert!(undecided.add(&notes(&pairs)).unwrap());
    }
    let others: Vec<(u32, u32, u16)> = (100..140).map(|a| (a, a + 1, 50)).collect();
    let refused = undecided.add(&notes(&others)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LocalIo);
    assert!(refused.to_string().ends_with(": raise `memory_limit`, or lower `judge.max_looks` = 16"), "{refused}");
}
