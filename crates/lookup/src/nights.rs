//! The nights of a store, whose files are opened when they are first needed, and what of them stays in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::TryStreamExt;
use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::Sketch;
use nearprint_join::RowSet;
use nearprint_parquet::schema::TEXT_HASH;
use nearprint_parquet::sketch_column::{READ_ALL_BYTES, SketchPages};
use nearprint_parquet::{Columns, DeltaKernel, ParquetFile, fingerprint_column, fixed};
use nearprint_storage::{bad_file, blocking, in_memory};
use nearprint_store::{Night, RedecidedRows, Store, Words, words_of};
use tokio::sync::OnceCell;

use crate::budget::Budget;
use crate::counts::Counts;

/// The hash of a normalised text.
pub type TextHash = [u8; 16];

/// The bytes that may still stay in memory.
#[derive(Debug)]
pub struct Memory(AtomicUsize);

/// Bytes that were taken from the memory, and are given back when this is dropped.
#[derive(Debug)]
pub struct Room {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Memory {
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(bytes)))
    }

    /// Takes bytes, or returns `None` if there are not so many left.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<Room> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.ok().map(|_| Room { memory: Arc::clone(self), bytes })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// A night in one state of the store.
#[derive(Debug)]
pub struct OpenNight {
    pub run: Arc<OpenRun>,
    /// The rows of the run whose documents a later night has again.
    pub shadowed: RowSet,
    /// The rows of the run that later nights decided again, because the documents that represented them are gone.
    pub redecided: RedecidedRows,
}

impl OpenNight {
    /// Returns the number of fingerprints.
    pub fn n_rows(&self) -> u64 {
        self.run.night.run.n_fingerprints
    }
}

/// The immutable files of a night.
#[derive(Debug)]
pub struct OpenRun {
    pub night: Night,
    /// The kernel that unpacks its fingerprints.
    kernel: DeltaKernel,
    fingerprints: OnceCell<(ParquetFile, SketchPages)>,
    short: OnceCell<ParquetFile>,
    short_hashes: OnceCell<Vec<TextHash>>,
    /// The sorted fingerprints, from when there was room for them.
    values: OnceCell<(Arc<Vec<u64>>, Room)>,
    /// The first words of the sketches, as many as are keys, in the order of the rows, from when there was room for them.
    words: OnceCell<(Vec<Arc<Vec<u64>>>, Room)>,
}

impl OpenRun {
    pub fn new(night: Night, kernel: DeltaKernel) -> Self {
        Self {
            night,
            kernel,
            fingerprints: OnceCell::new(),
            short: OnceCell::new(),
            short_hashes: OnceCell::new(),
            values: OnceCell::new(),
            words: OnceCell::new(),
        }
    }

    pub async fn fingerprints(&self, store: &Store) -> Result<&ParquetFile> {
        self.with_sketches(store).await.map(|(parquet, _)| parquet)
    }

    /// Returns the file of fingerprints, and the places of its pages of sketches.
    pub async fn with_sketches(&self, store: &Store) -> Result<&(ParquetFile, SketchPages)> {
        let open = || async {
            let parquet = store.open_file(&self.night, "fingerprints").await?;
            let pages = SketchPages::of(&parquet);
            Ok((parquet, pages))
        };
        self.fingerprints.get_or_try_init(open).await
    }

    pub async fn short(&self, store: &Store) -> Result<&ParquetFile> {
        let open = || async { store.open_file(&self.night, "short").await };
        self.short.get_or_try_init(open).await
    }

    /// Returns the hashes of the short texts, sorted. They take 16 bytes each, and stay in memory.
    pub async fn short_hashes(&self, store: &Store) -> Result<&[TextHash]> {
        let read = || async {
            let parquet = self.short(store).await?;
            let mut hashes = Vec::new();
            let mut batches = parquet.stream(parquet.whole(&[TEXT_HASH]))?;
            while let Some(batch) = batches.try_next().await? {
                let url = &parquet.file.url;
                let column = Columns { batch: &batch, file: url }.bytes::<16>(TEXT_HASH)?;
                for row in 0..batch.num_rows() {
                    // Any other hash in its place would break the order in which the others are searched.
                    let missing = || format!("row {} has no `{TEXT_HASH}`, which every short text has", hashes.len());
                    let hash = fixed(column, row).ok_or_else(|| bad_file(url, missing()))?;
                    hashes.push(hash);
                }
            }
            Ok::<_, Fault>(hashes)
        };
        self.short_hashes.get_or_try_init(read).await.map(Vec::as_slice)
    }

    /// Returns the sorted fingerprints if they stay in memory, and reads them if they are not there yet. Returns `None`
    /// if there is no room for them now.
    pub async fn values(
        &self,
        store: &Store,
        (memory, reads): (&Arc<Memory>, &Budget),
        counts: &Counts,
    ) -> Result<Option<Arc<Vec<u64>>>> {
        let read = || async {
            let n_rows = in_memory(self.night.run.n_fingerprints);
            let room = memory.take(n_rows.saturating_mul(size_of::<u64>())).ok_or(None)?;
            let mut values = Vec::with_capacity(n_rows);
            for group in 0..self.fingerprints(store).await?.n_row_groups() {
                let _taken = reads.take(self.row_group_bytes(store, group).await?).await?;
                values.extend(self.row_group(store, group, counts).await?);
            }
            Ok((Arc::new(values), room))
        };
        // Want of room is `Err(None)`, which the cell does not keep: the next query may find some.
        match self.values.get_or_try_init(read).await {
            Ok((values, _)) => Ok(Some(Arc::clone(values))),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// Returns the first `n` words of all sketches if they stay in memory, and reads them if they are not there yet. Returns
    /// `None` if there is no room for them now. All queries of a lookup ask for the same number of words.
    pub async fn words(
        &self,
        store: &Store,
        (memory, reads): (&Arc<Memory>, &Budget),
        n: usize,
        counts: &Counts,
    ) -> Result<Option<&[Arc<Vec<u64>>]>> {
        let read = || async {
            let n_rows = in_memory(self.night.run.n_fingerprints);
            let room = memory.take(n_rows.saturating_mul(n * size_of::<u64>())).ok_or(None)?;
            let mut words: Vec<Vec<u64>> = (0..n).map(|_| Vec::with_capacity(n_rows)).collect();
            for group in 0..self.fingerprints(store).await?.n_row_groups() {
                let _taken = reads.take(self.words_bytes(store, group, n).await?).await?;
                let of_group = self.words_of_group(store, group, n, counts).await?;
                words.iter_mut().zip(&of_group).for_each(|(words, more)| words.extend(more));
            }
            Ok((words.into_iter().map(Arc::new).collect(), room))
        };
        match self.words.get_or_try_init(read).await {
            Ok((words, _)) => {
                debug_assert_eq!(words.len(), n, "a lookup has one number of words");
                Ok(Some(words))
            }
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// Returns the bytes that words of the sketches of a row group take while they are read.
    pub async fn words_bytes(&self, store: &Store, group: usize, n: usize) -> Result<usize> {
        let n_rows = in_memory(self.fingerprints(store).await?.row_group_rows(group));
        Ok(n_rows.saturating_mul(n * size_of::<u64>()).saturating_add(READ_ALL_BYTES))
    }

    /// Reads the first `n` words of the sketches of a row group, in the order of its rows. A row without a sketch has 0 in its
    /// place: whoever finds it looks for its sketch, and matches nothing.
    pub async fn words_of_group(
        &self,
        store: &Store,
        group: usize,
        n: usize,
        counts: &Counts,
    ) -> Result<Vec<Vec<u64>>> {
        let which: Vec<u8> = (0..Sketch::WORDS).take(n).collect();
        self.read_words(store, group, &which, counts).await
    }

    /// Reads one word of the sketches of a row group, as [`words_of_group`](Self::words_of_group) does.
    pub async fn word_of_group(&self, store: &Store, group: usize, word: u8, counts: &Counts) -> Result<Vec<u64>> {
        let mut values = self.read_words(store, group, &[word], counts).await?;
        values.pop().ok_or_else(|| Fault::internal("query", "one word was asked for, and none was read"))
    }

    async fn read_words(&self, store: &Store, group: usize, which: &[u8], counts: &Counts) -> Result<Vec<Vec<u64>>> {
        let (parquet, pages) = self.with_sketches(store).await?;
        let Words { values, .. } = words_of(parquet, pages, group..group + 1, which, &counts.sketches).await?;
        Ok(values)
    }

    /// Returns whether the words are in memory already.
    pub fn has_words_in_memory(&self) -> bool {
        self.words.initialized()
    }

    /// Returns the sorted fingerprints, if they are in memory already.
    pub fn values_in_memory(&self) -> Option<&[u64]> {
        self.values.get().map(|(values, _)| values.as_slice())
    }

    /// Returns the bytes that the fingerprints of a row group take while they are read, packed and unpacked.
    pub async fn row_group_bytes(&self, store: &Store, group: usize) -> Result<usize> {
        let n_rows = self.fingerprints(store).await?.row_group_rows(group);
        Ok(usize::try_from(n_rows).unwrap_or(usize::MAX).saturating_mul(2 * size_of::<u64>()))
    }

    /// Reads the fingerprints of a row group.
    pub async fn row_group(&self, store: &Store, group: usize, counts: &Counts) -> Result<Vec<u64>> {
        let parquet = self.fingerprints(store).await?;
        let column = fingerprint_column::fetch(parquet, group, u64::BITS).await?;
        counts.read(0, column.n_bytes());
        let (url, kernel) = (parquet.file.url.clone(), self.kernel);
        let decoding = blocking("query", move || {
            let mut values = vec![0; column.n_rows()];
            column.decode(&url, &mut values, kernel)?;
            Ok(values)
        });
        decoding.await
    }
}
