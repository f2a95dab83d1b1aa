//! The batches of tasks as messages that an engine moves.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use futures::executor::block_on;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{ErrorKind, Result};
use nearprint_tasks::{Form, Messages, TaskBatch, TaskBatches, messages_of, received};
use proptest::prelude::*;

fn rows(ids: &[Option<&str>], numbers: &[u32]) -> RecordBatch {
    let columns: [(&str, ArrayRef, bool); 2] = [
        ("id", Arc::new(StringArray::from(ids.to_vec())), true),
        ("n", Arc::new(UInt32Array::from(numbers.to_vec())), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn stream(batches: Vec<TaskBatch>) -> TaskBatches {
    futures::stream::iter(batches.into_iter().map(Ok)).boxed()
}

fn sent(task: u32, batches: Vec<TaskBatch>, form: &Form) -> Vec<Vec<u8>> {
    let arrays: Vec<BinaryArray> = block_on(messages_of(task, stream(batches), form.clone()).try_collect()).unwrap();
    arrays.iter().flat_map(|array| array.iter().flatten().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
}

/// Returns messages as an engine would, some at a time.
fn moved(messages: &[Vec<u8>]) -> Messages {
    let arrays: Vec<_> = messages.chunks(3).map(|some| Ok(BinaryArray::from_iter_values(some.iter()))).collect();
    futures::stream::iter(arrays).boxed()
}

fn read(messages: &[Vec<u8>], n_tasks: usize, form: &Form) -> Result<Vec<TaskBatch>> {
    block_on(received(moved(messages), n_tasks, form).unwrap().try_collect())
}

fn refuse(messages: &[Vec<u8>], n_tasks: usize, form: &Form) {
    let error = read(messages, n_tasks, form).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TryAgain, "{error}");
}

fn two_tasks() -> Vec<Vec<u8>> {
    let batch = || TaskBatch::Rows(rows(&[Some("a"), None], &[1, 2]));
    let notes = TaskBatch::Notes(rows(&[Some("n")], &[3]));
    let mut messages = sent(0, vec![batch(), notes], &Form::Batches);
    messages.extend(sent(1, vec![batch()], &Form::Batches));
    messages
}

#[test]
fn batches_arrive_as_they_were_sent_in_any_order_of_the_messages() {
    let mut messages = two_tasks();
    for _ in 0..messages.len() {
        messages.rotate_left(1);
        let (mut n_rows, mut n_notes) = (0, 0);
        for batch in read(&messages, 2, &Form::Batches).unwrap() {
            match batch {
                TaskBatch::Rows(rows) => n_rows += rows.num_rows(),
                TaskBatch::Notes(notes) => n_notes += notes.num_rows(),
            }
        }
        assert_eq!((n_rows, n_notes), (4, 1));
    }
}

#[test]
fn a_lost_message_is_an_error_whichever_it_is() {
    let messages = two_tasks();
    for lost in 0..messages.len() {
        let mut fewer = messages.clone();
        fewer.remove(lost);
        refuse(&fewer, 2, &Form::Batches);
    }
}

#[test]
fn a_repeated_message_is_an_error_whichever_it_is() {
    let messages = two_tasks();
    for message in &messages {
        let mut more = messages.clone();
        more.push(message.clone());
        refuse(&more, 2, &Form::Batches);
    }
}

#[test]
fn a_message_that_no_task_sent_is_an_error() {
    refuse(&sent(2, Vec::new(), &Form::Batches), 2, &Form::Batches);
    refuse(&[vec![]], 1, &Form::Batches);
    refuse(&[vec![0, 0]], 1, &Form::Batches);
}

#[test]
fn keys_that_are_lost_twice_or_out_of_order_are_an_error_where_it_can_be_told() {
    let batch = rows(&[Some("a"), Some("b")], &[1, 1]);
    let form = Form::Keys(batch.schema());
    let mut messages = sent(0, vec![TaskBatch::Rows(batch)], &form);
    refuse(&messages, 1, &form);
    messages.sort();
    assert_eq!(read(&messages, 1, &form).unwrap().len(), 1);
    refuse(&[messages.clone(), vec![messages[2].clone()]].concat(), 1, &form);
    // The end of the task is lost. A single key that is lost cannot be told.
    refuse(&messages[1..], 1, &form);
}

proptest! {
    #[test]
    fn keys_sort_by_their_bytes_as_rows_sort_by_their_columns(
        drawn in prop::collection::vec((prop::option::of("[a-c\u{0}é]{0,3}"), 0..3u32), 0..40),
        cut in 0..40usize,
    ) {
        let (ids, numbers): (Vec<Option<&str>>, Vec<u32>) = drawn.iter().map(|(id, n)| (id.as_deref(), *n)).unzip();
        let all = rows(&ids, &numbers);
        let cut = cut.min(all.num_rows());
        let form = Form::Keys(all.schema());
        let mut messages = sent(0, vec![TaskBatch::Rows(all.slice(0, cut))], &form);
        messages.extend(sent(1, vec![TaskBatch::Rows(all.slice(cut, all.num_rows() - cut))], &form));
        messages.sort();
        messages.dedup();
        let batches = read(&messages, 2, &form).unwrap().into_iter();
        let batches = batches.map(|batch| match batch { TaskBatch::Rows(rows) | TaskBatch::Notes(rows) => rows });
        let came = concat_batches(&all.schema(), &batches.collect::<Vec<_>>()).unwrap();
        // The oracle: Arrow's own sort, and equal neighbours dropped.
        let by = all.columns().iter().map(|column| SortColumn { values: column.clone(), options: None });
        let order = lexsort_to_indices(&by.collect::<Vec<_>>(), None).unwrap();
        let sorted = take_record_batch(&all, &order).unwrap();
        let mut expected: Vec<RecordBatch> = Vec::new();
        for row in (0..sorted.num_rows()).map(|i| sorted.slice(i, 1)) {
            if expected.last() != Some(&row) {
                expected.push(row);
            }
        }
        prop_assert_eq!(came, concat_batches(&all.schema(), &expected).unwrap());
    }
}
