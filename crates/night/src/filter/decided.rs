//! The decisions of a published night, in the form in which documents are looked up.

use arrow::array::Array;
use futures::TryStreamExt;
use nearprint_documents::{Fate, Fates, RowCounts};
use nearprint_fault::Result;
use nearprint_parquet::schema::REVISIT;
use nearprint_parquet::{Columns, ParquetFile};
use nearprint_pipeline::DecisionCounts;
use nearprint_storage::{InputFile, in_memory};
use nearprint_store::damaged;
use xxhash_rust::xxh3::xxh3_128;

use super::corpus::NightFates;
use super::histories::Decision;
use crate::manifest::Manifest;

/// The documents of a night that are not written, by the hash of their ids. All others are written, unless documents were
/// forgotten: then those are written that are held for it, and all others are forgotten.
///
/// A document takes 16 bytes. Of 10⁸ documents, two have the same hash of 128 bits with a probability of 1.5 · 10⁻²³.
/// If that happened, or somebody had chosen ids for it, more rows would be left out than the night has left out: the
/// numbers are compared at the end.
#[derive(Debug, Default)]
pub struct Decided {
    others: Vec<(Fate, IdHashes)>,
    /// The documents that are written, if others were forgotten.
    kept: Option<IdHashes>,
    /// The numbers of rows, which are fewer than documents: revisit records are no rows.
    rows: RowCounts,
}

impl Decided {
    /// The bytes that a document takes that is not written: its hash, and its share of the starts.
    pub const DOCUMENT_BYTES: u64 = 17;

    /// Returns the number of documents that are held. `fates` are those of [`read`](Self::read).
    pub fn n_held(manifest: &Manifest, fates: Option<&NightFates>) -> u64 {
        let DecisionCounts { n_keep, n_drop, n_skip, .. } = manifest.counts.decisions;
        let (kept, others) = match fates {
            None => (n_keep, n_drop + n_skip),
            Some(fates) => (fates.n(Fate::Keep), fates.n_rows() - fates.n(Fate::Keep)),
        };
        others + if manifest.forgotten.is_some() { kept } else { 0 }
    }

    /// Reads the files of decisions of a night. `fates` says what becomes of their rows, if that is not what the night
    /// decided.
    pub async fn read(files: Vec<InputFile>, manifest: &Manifest, fates: Option<&NightFates>) -> Result<Self> {
        let DecisionCounts { n_keep, n_drop, n_skip, .. } = manifest.counts.decisions;
        let counts = [(Fate::Keep, n_keep), (Fate::Drop, n_drop), (Fate::Skip, n_skip)];
        let of_night = |fate| counts.into_iter().find(|(f, _)| *f == fate).map_or(0, |(_, n)| n);
        let n = |fate| fates.map_or_else(|| of_night(fate), |fates| fates.n(fate));
        let reserved = |fate| IdHashes::with_capacity(in_memory(n(fate)));
        let not_written = [Fate::Drop, Fate::Skip, Fate::Replaced, Fate::Unchanged];
        let mut decided = Self {
            others: not_written.into_iter().map(|fate| (fate, reserved(fate))).collect(),
            kept: manifest.forgotten.as_ref().map(|_| reserved(Fate::Keep)),
            rows: RowCounts::default(),
        };
        let (mut n_rows, mut n_revisits) = (0, 0);
        for file in files {
            let parquet = ParquetFile::open(file).await?;
            let mut batches = parquet.stream(parquet.whole(&["doc_id", "decision", REVISIT]))?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                let (ids, decisions) = (columns.strings("doc_id")?, columns.strings("decision")?);
                let revisits = columns.optional(REVISIT, Columns::booleans)?;
                for row in 0..ids.len() {
                    let fate = match fates {
                        None => fate_of(Decision::parse(decisions.value(row), &parquet.file.url)?),
                        Some(fates) => fates
                            .get(n_rows)
                            .ok_or_else(|| damaged(&parquet.file.url, "it has more rows than it had a moment ago"))?,
                    };
                    decided.add(ids.value(row), fate);
                    n_rows += 1;
                    // Releases before the column passed revisits over.
                    if revisits.is_some_and(|revisits| revisits.is_valid(row) && revisits.value(row)) {
                        n_revisits += 1;
                    } else {
                        *decided.rows.of(fate) += 1;
                    }
                }
            }
        }
        if let Some(forgotten) = &manifest.forgotten {
            let n_revisits_forgotten = manifest.counts.documents.n_revisits.saturating_sub(n_revisits);
            decided.rows.n_forgotten = forgotten.n_documents.saturating_sub(n_revisits_forgotten);
        }
        decided.others.iter_mut().for_each(|(_, ids)| ids.sort());
        if let Some(kept) = &mut decided.kept {
            kept.sort();
        }
        Ok(decided)
    }

    fn add(&mut self, id: &str, fate: Fate) {
        if let Some((_, ids)) = self.others.iter_mut().find(|(f, _)| *f == fate) {
            return ids.push(id);
        }
        debug_assert_eq!(fate, Fate::Keep, "a document that was forgotten has no row");
        if let Some(kept) = &mut self.kept {
            kept.push(id);
        }
    }

    /// Returns the rows that the night's files must have, without those in quarantine.
    pub fn expected(&self) -> RowCounts {
        self.rows
    }
}

fn fate_of(decision: Decision) -> Fate {
    match decision {
        Decision::Keep => Fate::Keep,
        Decision::Drop => Fate::Drop,
        Decision::Skip => Fate::Skip,
    }
}

impl Fates for Decided {
    fn of(&self, id: &str) -> Fate {
        let hash = xxh3_128(id.as_bytes());
        let other = self.others.iter().find(|(_, ids)| ids.has(hash)).map(|(fate, _)| *fate);
        let is_forgotten = || self.kept.as_ref().is_some_and(|kept| !kept.has(hash));
        other.unwrap_or_else(|| if is_forgotten() { Fate::Forgotten } else { Fate::Keep })
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
