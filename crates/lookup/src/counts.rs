//! The cost of an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nearprint_parquet::sketch_column::ReadCounts;

/// The pages and bytes that were read for an answer.
#[derive(Debug, Default)]
pub struct Counts {
    pages: AtomicU64,
    bytes: AtomicU64,
    pub sketches: ReadCounts,
    /// The bytes of ids, hashes and decisions.
    pub documents: Arc<AtomicU64>,
}

impl Counts {
    pub fn read(&self, pages: u64, bytes: u64) {
        self.pages.fetch_add(pages, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed) + self.sketches.pages()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) + self.sketches.bytes() + self.documents.load(Ordering::Relaxed)
    }
}
