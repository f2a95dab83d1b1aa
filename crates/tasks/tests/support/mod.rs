//! Helpers that the tests of fingerprint tasks share.

use std::path::Path;
use std::sync::Arc;

use nearprint_documents::{DocumentColumns, Documents, InputPolicy, Revisits};
use nearprint_storage::{Progress, Storage};
use nearprint_tasks::{FingerprintContext, FingerprintSpec, SentWords};

/// The documents of a folder, and the context of tasks that fingerprint them by the default profile.
pub async fn open(folder: &Path, progress: &Progress) -> (Arc<FingerprintContext>, Arc<Documents>) {
    open_for(SentWords::Whole, folder, progress).await
}

/// As [`open`], with tasks that return these words.
pub async fn open_for(
    words: SentWords,
    folder: &Path,
    progress: &Progress,
) -> (Arc<FingerprintContext>, Arc<Documents>) {
    let (columns, place) = (DocumentColumns::default(), folder.display().to_string().into());
    let documents = Documents::open(&Storage::default(), &place, columns.clone(), &InputPolicy::default()).await;
    let documents = Arc::new(documents.unwrap());
    let spec = FingerprintSpec {
        columns,
        keep_types: Vec::new(),
        profile: nearprint_profile::by_name("default").unwrap(),
        analyzer_resources: nearprint_tokenize::Resources::default(),
        max_doc_bytes: 64 << 20,
        passes_over_files: false,
        revisits: Revisits::PassedOver,
        words,
        memory_limit: None,
        threads: 1,
    };
    let context = FingerprintContext::with_documents(&spec, Arc::clone(&documents), progress.clone());
    (Arc::new(context.unwrap()), documents)
}
