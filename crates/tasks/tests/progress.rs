//! The progress of fingerprint tasks.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use nearprint_dataset::{DocumentColumns, Documents, InputPolicy};
use nearprint_storage::{Progress, Storage};
use nearprint_tasks::{FingerprintContext, FingerprintSpec, FingerprintTask, TaskBatch, fingerprint_task};

/// Fingerprints the documents of a folder. Returns the progress after each batch, and at the end.
async fn reached(folder: &Path) -> (Documents, Vec<u64>) {
    let (storage, columns, input) = (Storage::default(), DocumentColumns::default(), InputPolicy::default());
    let place = folder.display().to_string().into();
    let open = || Documents::open(&storage, &place, columns.clone(), &input);
    let documents = Arc::new(open().await.unwrap());
    let spec = FingerprintSpec {
        columns: columns.clone(),
        keep_types: Vec::new(),
        profile: nearprint_profile::by_name("default").unwrap(),
        analyzer_resources: nearprint_tokenize::Resources::default(),
        max_doc_bytes: 64 << 20,
        passes_over_files: false,
        memory_limit: None,
        threads: 1,
    };
    let progress = Progress::default();
    let context = FingerprintContext::with_documents(&spec, Arc::clone(&documents), progress.clone()).unwrap();
    let (context, mut seen) = (Arc::new(context), Vec::new());
    for range in documents.ranges() {
        let mut batches = fingerprint_task(&context, &FingerprintTask { range, position: 0 });
        while let Some(batch) = batches.try_next().await.unwrap() {
            if let TaskBatch::Rows(_) = batch {
                seen.push(progress.snapshot().done);
            }
        }
        seen.push(progress.snapshot().done);
    }
    (open().await.unwrap(), seen)
}

fn write_lines(folder: &Path, name: &str, n: u32) {
    let lines: String =
        (0..n).map(|i| format!("{{\"id\": \"{name}-{i}\", \"text\": \"{i} {}\"}}\n", "a text ".repeat(90))).collect();
    std::fs::write(folder.join(name), lines).unwrap();
}

#[tokio::test]
async fn files_that_know_their_number_of_documents_are_counted_in_documents() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample_data/documents/dt=2026-11-19");
    let (documents, seen) = reached(&folder).await;
    assert_eq!((documents.n_rows(), seen.last()), (Some(155), Some(&155)));
}

#[tokio::test]
async fn other_files_are_counted_in_bytes_while_they_are_read_and_to_their_last_byte() {
    let folder = tempfile::tempdir().unwrap();
    write_lines(folder.path(), "a.jsonl", 9_000);
    write_lines(folder.path(), "b.jsonl", 10);
    std::fs::write(folder.path().join("c.html"), "<p>a page").unwrap();
    let (documents, seen) = reached(folder.path()).await;
    assert_eq!((documents.n_rows(), seen.last()), (None, Some(&documents.n_bytes())));
    assert!(seen.is_sorted() && seen[0] > 0 && seen[0] < documents.n_bytes() / 2, "{seen:?}");
}
