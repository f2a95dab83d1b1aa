//! The words of texts, as fingerprint tasks return them for the judge.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use futures::TryStreamExt;
use nearprint_storage::{Progress, TempFolder};
use nearprint_tasks::{
    ArrivingWords, FileReading, FingerprintTask, SentWords, TaskBatch, WantedTexts, WordSpill, fingerprint_task,
};

use crate::support::open_for;

const N_TEXTS: usize = 6;

/// Writes two files of twenty documents each, which have six texts, and two that have no words: a short one and none.
fn write_documents(folder: &Path) {
    for file in 0..2 {
        let text = |n: usize| match n % (N_TEXTS + 2) {
            6 => "\"short\"".to_owned(),
            7 => "null".to_owned(),
            text => format!("\"{}\"", (0..50).map(|w| format!("w{} ", text * 40 + w)).collect::<String>()),
        };
        let line = |n: usize| format!("{{\"id\": \"{file}-{n}\", \"text\": {}}}\n", text(n));
        std::fs::write(folder.join(format!("{file}.jsonl")), (0..20).map(line).collect::<String>()).unwrap();
    }
}

/// Returns the rows of each task.
async fn rows(words: SentWords, folder: &Path) -> Vec<Vec<RecordBatch>> {
    let (context, documents) = open_for(words, folder, &Progress::default()).await;
    let mut of_tasks = Vec::new();
    for (at, range) in documents.ranges().into_iter().enumerate() {
        let batches = fingerprint_task(&context, &FingerprintTask { range, reading: FileReading::first(at) });
        let batches: Vec<TaskBatch> = batches.try_collect().await.unwrap();
        let rows = batches.into_iter().filter_map(|batch| match batch {
            TaskBatch::Rows(rows) => Some(rows),
            TaskBatch::Notes(_) => None,
        });
        of_tasks.push(rows.collect());
    }
    of_tasks
}

/// Returns (hash of a text, its words) of all rows that have words.
fn words_of(batches: &[RecordBatch]) -> Vec<([u8; 16], Vec<u8>)> {
    let of_batch = |batch: &RecordBatch| {
        let column = |name| batch.column_by_name(name).unwrap();
        let (hashes, words) = (column("text_hash").as_fixed_size_binary(), column("words").as_binary::<i64>());
        let with_words = (0..batch.num_rows()).filter(|&at| words.is_valid(at));
        with_words.map(|at| (hashes.value(at).try_into().unwrap(), words.value(at).to_vec())).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of_batch).collect()
}

#[tokio::test]
async fn texts_that_are_asked_for_come_with_the_words_that_documents_have_once_for_each_task() {
    let folder = tempfile::tempdir().unwrap();
    write_documents(folder.path());
    let whole = rows(SentWords::Whole, folder.path()).await.concat();
    let all: BTreeMap<[u8; 16], Vec<u8>> = words_of(&whole).into_iter().collect();
    assert_eq!(all.len(), N_TEXTS);
    let wanted: Vec<[u8; 16]> = all.keys().copied().step_by(2).collect();
    let only = rows(SentWords::Only(WantedTexts::of(wanted.iter())), folder.path()).await;
    assert_eq!(only.len(), 2, "a task for each file");
    for of_task in &only {
        let found = words_of(of_task);
        assert_eq!(found.len(), wanted.len(), "a text that many documents have is sent once");
        assert!(found.iter().all(|(hash, words)| wanted.contains(hash) && all[hash] == *words));
    }
    let spill = WordSpill::create(TempFolder::try_new(folder.path()).unwrap()).unwrap();
    let mut arriving = ArrivingWords::new(wanted.len(), spill);
    only.concat().iter().for_each(|batch| arriving.push(batch).unwrap());
    let arrived = arriving.finish().unwrap();
    for (hash, words) in &all {
        let read = arrived.read(hash).unwrap();
        let expected = nearprint_fingerprint::TextWords::of_bytes(words).filter(|_| wanted.contains(hash));
        assert_eq!(format!("{read:?}"), format!("{expected:?}"));
    }
}

#[tokio::test]
async fn marks_stand_where_words_would_and_have_no_bytes() {
    let folder = tempfile::tempdir().unwrap();
    write_documents(folder.path());
    let [whole, marks] = [SentWords::Whole, SentWords::Marks].map(|words| rows(words, folder.path()));
    let (whole, marks) = (words_of(&whole.await.concat()), words_of(&marks.await.concat()));
    assert!(whole.len() > 20 && whole.iter().all(|(_, words)| !words.is_empty()));
    let emptied: Vec<([u8; 16], Vec<u8>)> = whole.into_iter().map(|(hash, _)| (hash, Vec::new())).collect();
    assert_eq!(marks, emptied);
}
