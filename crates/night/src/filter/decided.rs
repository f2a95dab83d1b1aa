//! The decisions of a published night, in the form in which documents are looked up.

use arrow::array::Array;
use futures::TryStreamExt;
use nearprint_documents::{Fate, Fates};
use nearprint_fault::Result;
use nearprint_parquet::{Columns, ParquetFile};
use nearprint_pipeline::DecisionCounts;
use nearprint_storage::{InputFile, in_memory};
use nearprint_store::damaged;
use xxhash_rust::xxh3::xxh3_128;

use crate::manifest::Manifest;

/// The documents of a night that are not kept, by the hash of their ids. All others are kept, unless documents were
/// forgotten: then those are kept that were, and all others are forgotten.
///
/// A document takes 16 bytes. Of 10⁸ documents, two have the same hash of 128 bits with a probability of 1.5 · 10⁻²³.
/// If that happened, or somebody had chosen ids for it, more rows would be dropped than the night has dropped: the
/// numbers are compared at the end.
#[derive(Debug, Default)]
pub struct Decided {
    dropped: IdHashes,
    skipped: IdHashes,
    /// The documents that are kept, if others were forgotten.
    kept: Option<IdHashes>,
    n_kept: u64,
    n_forgotten: u64,
}

/// The numbers of a night's documents by decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecidedCounts {
    pub n_keep: u64,
    pub n_drop: u64,
    pub n_skip: u64,
    pub n_forgotten: u64,
}

impl Decided {
    /// The bytes that a document takes that is not kept: its hash, and its share of the starts.
    pub const DOCUMENT_BYTES: u64 = 17;

    /// Returns the number of documents that are held.
    pub fn n_held(manifest: &Manifest) -> u64 {
        let DecisionCounts { n_keep, n_drop, n_skip, .. } = manifest.counts.decisions;
        n_drop + n_skip + if manifest.forgotten.is_some() { n_keep } else { 0 }
    }

    /// Reads the files of decisions of a night.
    pub async fn read(files: Vec<InputFile>, manifest: &Manifest) -> Result<Self> {
        let reserved = |n: u64| IdHashes::with_capacity(in_memory(n));
        let DecisionCounts { n_keep, n_drop, n_skip, .. } = manifest.counts.decisions;
        let mut decided = Self {
            dropped: reserved(n_drop),
            skipped: reserved(n_skip),
            kept: manifest.forgotten.as_ref().map(|_| reserved(n_keep)),
            n_kept: 0,
            n_forgotten: manifest.forgotten.as_ref().map_or(0, |forgotten| forgotten.n_documents),
        };
        for file in files {
            let parquet = ParquetFile::open(file).await?;
            let mut batches = parquet.stream(parquet.whole(&["doc_id", "decision"]))?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                let (ids, decisions) = (columns.strings("doc_id")?, columns.strings("decision")?);
                for row in 0..ids.len() {
                    match decisions.value(row) {
                        "keep" => {
                            decided.n_kept += 1;
                            if let Some(kept) = &mut decided.kept {
                                kept.push(ids.value(row));
                            }
                        }
                        "drop" => decided.dropped.push(ids.value(row)),
                        "skip" => decided.skipped.push(ids.value(row)),
                        other => {
                            let reason =
                                format!("a decision is '{}', and none of keep, drop and skip", other.escape_debug());
                            return Err(damaged(&parquet.file.url, reason));
                        }
                    }
                }
            }
        }
        decided.dropped.sort();
        decided.skipped.sort();
        if let Some(kept) = &mut decided.kept {
            kept.sort();
        }
        Ok(decided)
    }

    pub fn counts(&self) -> DecidedCounts {
        DecidedCounts {
            n_keep: self.n_kept,
            n_drop: self.dropped.len(),
            n_skip: self.skipped.len(),
            n_forgotten: self.n_forgotten,
        }
    }
}

impl Fates for Decided {
    fn of(&self, id: &str) -> Fate {
        let hash = xxh3_128(id.as_bytes());
        match () {
            () if self.dropped.has(hash) => Fate::Drop,
            () if self.skipped.has(hash) => Fate::Skip,
            () if self.kept.as_ref().is_some_and(|kept| !kept.has(hash)) => Fate::Forgotten,
            () => Fate::Keep,
        }
    }
}

/// The bits by which the average number of hashes with the same leading bits is a power of two.
const HASHES_PER_START_BITS: u32 = 4;

/// A set of hashes: sorted, and with the position at which each value of the leading bits begins.
#[derive(Debug, Default)]
struct IdHashes {
    sorted: Vec<u128>,
    starts: Vec<usize>,
    /// The number of bits after the leading ones.
    shift: u32,
}

impl IdHashes {
    fn with_capacity(n: usize) -> Self {
        Self { sorted: Vec::with_capacity(n), ..Self::default() }
    }

    fn push(&mut self, id: &str) {
        self.sorted.push(xxh3_128(id.as_bytes()));
    }

    fn len(&self) -> u64 {
        self.sorted.len() as u64
    }

    /// Sorts the hashes, after the last one was added.
    fn sort(&mut self) {
        self.sorted.sort_unstable();
        // Without hashes there are no bits by which to find one.
        let bits = self.sorted.len().checked_ilog2().unwrap_or_default().saturating_sub(HASHES_PER_START_BITS);
        self.shift = u128::BITS - bits;
        self.starts = Vec::with_capacity((1 << bits) + 1);
        let mut position = 0;
        for leading in 0..=1u128 << bits {
            while self.sorted.get(position).is_some_and(|&hash| self.leading(hash) < leading) {
                position += 1;
            }
            self.starts.push(position);
        }
        debug_assert_eq!(position, self.sorted.len(), "each hash lies between two starts");
    }

    fn leading(&self, hash: u128) -> u128 {
        // A shift by all bits leaves none.
        hash.checked_shr(self.shift).unwrap_or_default()
    }

    fn has(&self, hash: u128) -> bool {
        // There are as many starts as leading bits can say, and one more.
        let leading = usize::try_from(self.leading(hash)).unwrap_or(usize::MAX);
        let bounds = self.starts.get(leading).copied().zip(self.starts.get(leading.saturating_add(1)).copied());
        let same = bounds.and_then(|(start, end)| self.sorted.get(start..end));
        same.is_some_and(|same| same.binary_search(&hash).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::{IdHashes, xxh3_128};

    #[test]
    fn exactly_the_ids_that_were_added_are_found_whatever_their_number() {
        for n in [0, 1, 2, 15, 16, 31, 32, 33, 5000] {
            let mut hashes = IdHashes::default();
            (0..n).for_each(|i| hashes.push(&format!("https://example.org/{i}")));
            hashes.sort();
            let has = |i: i32| hashes.has(xxh3_128(format!("https://example.org/{i}").as_bytes()));
            assert!((0..n).all(has), "{n}");
            assert!(!(n..n + 5000).any(has), "{n}");
            assert!(!hashes.has(0) && !hashes.has(u128::MAX));
        }
    }
}
