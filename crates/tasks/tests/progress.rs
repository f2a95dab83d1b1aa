//! The progress of fingerprint tasks.

use std::path::Path;
use std::sync::Arc;

use crate::support::open;
use futures::TryStreamExt;
use nearprint_documents::Documents;
use nearprint_storage::Progress;
use nearprint_tasks::{FileReading, FingerprintTask, TaskBatch, fingerprint_task};

/// Fingerprints the documents of a folder. Returns the progress after each batch, and at the end.
async fn reached(folder: &Path) -> (Arc<Documents>, Vec<u64>) {
    let progress = Progress::default();
    let (context, documents) = open(folder, &progress).await;
    let mut seen = Vec::new();
    for range in documents.ranges() {
        let mut batches = fingerprint_task(&context, &FingerprintTask { range, reading: FileReading::first(0) });
        while let Some(batch) = batches.try_next().await.unwrap() {
            if let TaskBatch::Rows(_) = batch {
                seen.push(progress.snapshot().done);
            }
        }
        seen.push(progress.snapshot().done);
    }
    (documents, seen)
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
