//! `store index`: copies of the keys of all runs, each sorted by another order of bits, for single queries
//! (docs/store-format.md). Keys are the fingerprints, and words of the sketches. Like a segment, an index is derived from
//! its runs.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use futures::future::try_join_all;
use nearprint_fault::{Fault, Result};
use nearprint_join::{Kernel, Key, LookupPlan, Permutation};
use nearprint_parquet::schema::{CONFIG_DIGEST, FINGERPRINT, INDEX};
use nearprint_parquet::sketch_column::{ReadCounts, SketchPages};
use nearprint_parquet::{BATCH_ROWS, DatasetWriter, FileRecord, ParquetFile, fingerprint_column};
use nearprint_storage::{Folder, Progress, Sha256Hex, TempFolder, in_memory};
use schemars::JsonSchema;
use serde::Serialize;

use super::derived::{has_files, run_some, sound_file};
use crate::commit::{Commit, Night, SegmentRecord, to_json};
use crate::delta_kernel::delta_kernel;
use crate::error::others_committed;
use crate::index::{INDEX_BITS, INDEX_WORDS, RUN_ROWS, keys, table_name};
use crate::names::index_name;
use crate::store::{MAX_ATTEMPTS, Store, Writers};
use crate::words::words_of;

/// The request of a `store index`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRequest {
    /// The store.
    pub store: String,
    /// The processes that write to the store.
    pub writers: Writers,
}

/// The result of a `store index`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IndexSummary {
    /// The store.
    pub store: String,
    /// The number of the store's newest commit.
    pub commit: u64,
    /// The digest of the index, or `None` if no run has a fingerprint.
    pub index: Option<String>,
    /// The number of runs that the index covers.
    pub n_runs: u64,
    /// The number of documents, each of which has a row in every table.
    pub n_rows: u64,
    /// The number of tables.
    pub n_tables: u64,
    /// The number of them that existed already and were not written again.
    pub n_tables_resumed: u64,
    /// The size of the tables in bytes.
    pub bytes: u64,
    /// True if nothing was committed, because the store had such an index already, or has no fingerprints.
    pub already_indexed: bool,
}

/// The version of the form of an index. It is raised when the same runs give other files. Version 1 had no words.
const INDEX_VERSION: u32 = 2;

/// The number of rows that are sorted at once if fingerprints are uniform. They take 16 bytes each.
const SORTED_ROWS: u64 = 4 << 20;
/// The most files of rows that wait to be sorted.
const MAX_BUCKETS: u64 = 1 << 9;
/// The bytes of a row that waits to be sorted.
const ROW_BYTES: usize = 16;

/// Writes an index of all runs, unless the store has one already. Only the commit makes the index visible. If another
/// commit is faster, this one is tried again on top of it. Temporary folders are created in `spill`; they take 16 bytes a
/// fingerprint for the words of its sketch, 16 for each thread, and about as much again for the files that wait for their
/// upload.
///
/// # Errors
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a run is damaged;
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the server ignores put-if-absent;
/// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if others commit again and again or delete the
/// files; an error if a place fails.
pub async fn index(
    store: &Store,
    request: &IndexRequest,
    threads: usize,
    spill: &Path,
    progress: &Progress,
) -> Result<IndexSummary> {
    let nights: Vec<&Night> = store.nights().iter().filter(|n| n.run.n_fingerprints > 0).collect();
    let runs: Vec<String> = nights.iter().map(|n| n.run.digest.clone()).collect();
    if runs.is_empty() {
        return Ok(indexed(store, None, 0, store.sequence(), true));
    }
    // Which of the two it is, the fingerprints say.
    let digests = [digest_of(u64::BITS, &runs)?, digest_of(u32::BITS, &runs)?];
    let known = store.indexes().iter().find(|index| digests.contains(&index.digest)).cloned();
    if let Some(index) = &known
        && has_files(&store.index_folder(&index.digest), &index.files).await?
    {
        return Ok(indexed(store, known.as_ref(), index.files.len() as u64, store.sequence(), true));
    }
    store.probe_conditional_put(request.writers).await?;
    let indexing = indexing(store, &nights, runs, known.as_ref(), progress).await?;
    let (index, n_resumed) = indexing.write(threads, spill).await?;
    if known.as_ref() == Some(&index) {
        return Ok(indexed(store, known.as_ref(), n_resumed, store.sequence(), true));
    }
    let commit = commit_index(store, &index).await?;
    Ok(indexed(store, Some(&index), n_resumed, commit, false))
}

fn indexed(store: &Store, index: Option<&SegmentRecord>, n_resumed: u64, commit: u64, already: bool) -> IndexSummary {
    let files: &[FileRecord] = index.map_or(&[], |index| &index.files);
    IndexSummary {
        store: store.folder.url().to_owned(),
        commit,
        index: index.map(|index| index.digest.clone()),
        n_runs: index.map_or(0, |index| index.runs.len() as u64),
        n_rows: index.map_or(0, |index| index.n_rows),
        n_tables: files.len() as u64,
        n_tables_resumed: n_resumed,
        bytes: files.iter().map(|f| f.bytes).sum(),
        already_indexed: already,
    }
}

/// Returns the digest of an index of some runs, whose fingerprints have so many bits.
fn digest_of(bits: u32, runs: &[String]) -> Result<String> {
    let named = serde_json::json!({ "version": INDEX_VERSION, "bits": bits, "runs": runs });
    Ok(Sha256Hex::of(&to_json(&named)?).0[..32].to_owned())
}

async fn indexing(
    store: &Store,
    nights: &[&Night],
    runs: Vec<String>,
    known: Option<&SegmentRecord>,
    progress: &Progress,
) -> Result<Indexing> {
    let files = try_join_all(nights.iter().map(|night| store.open_file(night, "fingerprints"))).await?;
    let max = files.iter().map(|file| file.bounds(FINGERPRINT).map_or(u64::MAX, |(_, max)| max)).max();
    let bits = if max > Some(u64::from(u32::MAX)) { 64 } else { 32 };
    let digest = digest_of(bits, &runs)?;
    let reason = "an index of a store without a commit".to_owned();
    let without_commit = || Fault::internal("index", reason);
    let run_rows: Vec<String> = files.iter().map(|file| file.n_rows().to_string()).collect();
    Ok(Indexing {
        folder: store.index_folder(&digest),
        digest,
        runs,
        n_rows: files.iter().map(ParquetFile::n_rows).sum(),
        files,
        bits,
        run_rows: run_rows.join(","),
        recorded: known.map_or_else(Vec::new, |index| index.files.clone()),
        config_digest: store.config_digest().ok_or_else(without_commit)?.to_owned(),
        progress: progress.clone(),
    })
}

/// Commits the same nights with this index in place of all others, and returns the number of the commit.
async fn commit_index(store: &Store, index: &SegmentRecord) -> Result<u64> {
    if let Some(commit) = put_index(store, index).await? {
        return Ok(commit);
    }
    for _ in 1..MAX_ATTEMPTS {
        tracing::warn!("somebody else committed meanwhile: committing the index on top");
        let newest = Store::open(&store.folder).await?;
        if store.gave_up_since(&newest, &[index_name(&index.digest)]).await? {
            let reason = format!("{}: `store gc` deleted tables of the index meanwhile", store.folder.url());
            return Err(Fault::try_again(reason));
        }
        refuse_outdated(&newest, index)?;
        if let Some(commit) = put_index(&newest, index).await? {
            return Ok(commit);
        }
    }
    Err(others_committed(MAX_ATTEMPTS))
}

/// Refuses an index whose runs were replaced or forgotten while it was made: what was forgotten must not come back.
fn refuse_outdated(store: &Store, index: &SegmentRecord) -> Result<()> {
    let is_here = |run: &String| store.nights().iter().any(|night| night.run.digest == *run);
    if index.runs.iter().all(is_here) {
        return Ok(());
    }
    Err(Fault::try_again("nights were replaced, dropped or forgotten meanwhile".to_owned()))
}

async fn put_index(store: &Store, index: &SegmentRecord) -> Result<Option<u64>> {
    let Some(before) = &store.commit else {
        return Ok(None);
    };
    let commit = Commit { indexes: vec![index.clone()], ..before.next() };
    Ok(store.put_commit(&commit).await?.then_some(commit.sequence))
}

/// The runs of an index that is being written.
struct Indexing {
    folder: Folder,
    digest: String,
    runs: Vec<String>,
    files: Vec<ParquetFile>,
    bits: u32,
    run_rows: String,
    n_rows: u64,
    /// The commit's records of files that are to be repaired.
    recorded: Vec<FileRecord>,
    config_digest: String,
    progress: Progress,
}

/// A table that is to be written.
#[derive(Clone, Copy)]
struct Table {
    key: Key,
    /// The number of the order among those of the key.
    number: usize,
    order: Permutation,
}

/// A table that is at its place.
struct Written {
    /// The place among the files of the index.
    place: usize,
    record: FileRecord,
    resumed: bool,
}

impl Indexing {
    /// Writes the missing tables, one in each thread. Returns the index, and the number of tables that existed already.
    async fn write(self, threads: usize, spill: &Path) -> Result<(SegmentRecord, u64)> {
        let temp = Arc::new(TempFolder::try_new(spill)?);
        self.progress.start("sketches", "fingerprints", self.n_rows);
        let n_words = self.write_words(temp.path()).await?;
        let mut orders = Vec::new();
        for key in keys(n_words) {
            let copies = LookupPlan::copies(self.bits_of(key)).map_err(|e| internal(&e))?;
            orders.extend(copies.into_iter().enumerate().map(|(number, order)| Table { key, number, order }));
        }
        self.progress.start("index", "fingerprints", self.n_rows * orders.len() as u64);
        let indexing = Arc::new(self);
        let tables = orders.into_iter().enumerate().map(|(place, table)| {
            let (indexing, temp) = (Arc::clone(&indexing), Arc::clone(&temp));
            async move { indexing.table(place, table, temp.path()).await }
        });
        let mut done = run_some(threads, tables, "index").await?;
        done.sort_by_key(|written| written.place);
        debug_assert!(
            done.iter().enumerate().all(|(at, written)| written.place == at),
            "a table has the place of its key and order among the files"
        );
        let n_resumed = done.iter().filter(|written| written.resumed).count() as u64;
        let files = done.into_iter().map(|written| written.record).collect();
        let Self { digest, runs, n_rows, .. } = &*indexing;
        Ok((SegmentRecord { digest: digest.clone(), runs: runs.clone(), n_rows: *n_rows, files }, n_resumed))
    }

    fn bits_of(&self, key: Key) -> u32 {
        match key {
            Key::Fingerprint => self.bits,
            Key::Word(_) => u64::BITS,
        }
    }

    async fn table(&self, place: usize, Table { key, number, order }: Table, temp: &Path) -> Result<Written> {
        let folder = table_name(key, number);
        let name = format!("{folder}/part-00000.parquet");
        let target = self.folder.join(&name);
        if let Some(record) = sound_file(&target, &name, &self.recorded).await? {
            self.progress.advance(record.rows);
            return Ok(Written { place, record, resumed: true });
        }
        let mut buckets = Buckets::create(temp, &folder, self.bits_of(key), self.n_rows)?;
        match key {
            Key::Fingerprint => self.fill(&mut buckets, order).await?,
            Key::Word(word) => fill_with_words(&mut buckets, order, &words_file(temp, word))?,
        }
        let bits = self.bits_of(key).to_string();
        let metadata =
            [(CONFIG_DIGEST, self.config_digest.as_str()), (INDEX_BITS, &bits), (RUN_ROWS, self.run_rows.as_str())];
        let mut writer = DatasetWriter::new(temp, &folder, &INDEX, &metadata).in_one_file();
        for bucket in buckets.filled()? {
            let rows = sorted_rows(&bucket)?;
            for rows in rows.chunks(BATCH_ROWS) {
                writer.write(batch(rows)?)?;
                self.progress.advance(rows.len() as u64);
            }
        }
        let staged = writer.finish()?;
        let [staged] = &staged[..] else {
            return Err(internal(&format!("{} files of one table", staged.len())));
        };
        target.put_file(&staged.path).await?;
        std::fs::remove_file(&staged.path).map_err(Fault::io(&staged.path))?;
        Ok(Written { place, record: FileRecord { name, ..staged.record.clone() }, resumed: false })
    }

    /// Reads all fingerprints, and puts them into the buckets of a table.
    async fn fill(&self, buckets: &mut Buckets, order: Permutation) -> Result<()> {
        let mut place = 0u64;
        let mut values = Vec::new();
        for parquet in &self.files {
            for group in 0..parquet.n_row_groups() {
                let column = fingerprint_column::fetch(parquet, group, u64::BITS).await?;
                values.resize(column.n_rows(), 0);
                column.decode(&parquet.file.url, &mut values, delta_kernel(Kernel::best()))?;
                for (place, &value) in (place..).zip(&values) {
                    buckets.add(order.permute(value), place)?;
                }
                place += values.len() as u64;
            }
        }
        Ok(())
    }

    /// Writes the words of all sketches into files, so that these are read once. Returns the number of words; 0 if no row has a
    /// sketch.
    async fn write_words(&self, temp: &Path) -> Result<u8> {
        let words: Vec<u8> = (0..INDEX_WORDS).collect();
        let create = |&word: &u8| {
            let path = words_file(temp, word);
            let file = File::create_new(&path).map_err(Fault::io(&path))?;
            Ok((BufWriter::with_capacity(1 << 20, file), path))
        };
        let mut files = words.iter().map(create).collect::<Result<Vec<(BufWriter<File>, PathBuf)>>>()?;
        let mut n_missing = 0;
        for parquet in &self.files {
            let (pages, counts) = (SketchPages::of(parquet), ReadCounts::default());
            for group in 0..parquet.n_row_groups() {
                let of_group = words_of(parquet, &pages, group..group + 1, &words, &counts).await?;
                n_missing += of_group.missing.len() as u64;
                for ((file, path), values) in files.iter_mut().zip(&of_group.values) {
                    for value in values {
                        file.write_all(&value.to_le_bytes()).map_err(Fault::io(&*path))?;
                    }
                }
                self.progress.advance(parquet.row_group_rows(group));
            }
        }
        for (mut file, path) in files {
            file.flush().map_err(Fault::io(&path))?;
        }
        Ok(if n_missing == self.n_rows { 0 } else { INDEX_WORDS })
    }
}

fn words_file(temp: &Path, word: u8) -> PathBuf {
    temp.join(format!("words-{word}"))
}

/// Reads the words of a file, and puts them into the buckets of a table.
fn fill_with_words(buckets: &mut Buckets, order: Permutation, path: &Path) -> Result<()> {
    let mut place = 0u64;
    each_row(path, |[word]| {
        buckets.add(order.permute(word), place)?;
        place += 1;
        Ok(())
    })
}

/// Files of rows, each of which has a range of permuted keys, in ascending order.
struct Buckets {
    files: Vec<(PathBuf, BufWriter<File>)>,
    /// The number of bits of a key below those that determine its bucket.
    shift: u32,
}

impl Buckets {
    fn create(temp: &Path, table: &str, bits: u32, n_rows: u64) -> Result<Self> {
        let n_buckets = n_rows.div_ceil(SORTED_ROWS).next_power_of_two().clamp(1, MAX_BUCKETS);
        let create = |bucket: u64| {
            let path = temp.join(format!("rows-{table}-{bucket}"));
            let file = File::create_new(&path).map_err(Fault::io(&path))?;
            Ok((path, BufWriter::with_capacity(128 << 10, file)))
        };
        let files = (0..n_buckets).map(create).collect::<Result<_>>()?;
        Ok(Self { files, shift: bits - n_buckets.trailing_zeros() })
    }

    fn add(&mut self, permuted: u64, place: u64) -> Result<()> {
        let bucket = in_memory(permuted.checked_shr(self.shift).unwrap_or(0));
        // No key has more bits than the table.
        let Some((path, file)) = self.files.get_mut(bucket) else {
            return Err(internal(&format!("the key {permuted:x} has too many bits")));
        };
        let mut row = [0; ROW_BYTES];
        row[..8].copy_from_slice(&permuted.to_le_bytes());
        row[8..].copy_from_slice(&place.to_le_bytes());
        file.write_all(&row).map_err(Fault::io(&*path))?;
        Ok(())
    }

    /// Returns the files when all rows are in them.
    fn filled(self) -> Result<Vec<PathBuf>> {
        let close = |(path, file): (PathBuf, BufWriter<File>)| {
            file.into_inner().map_err(|e| Fault::io(&path)(e.into_error()))?;
            Ok(path)
        };
        self.files.into_iter().map(close).collect()
    }
}

/// Reads the rows of a bucket, deletes its file, and returns the rows in the order of the table.
fn sorted_rows(path: &Path) -> Result<Vec<(u64, u64)>> {
    let size = std::fs::metadata(path).map_err(Fault::io(path))?.len();
    let mut rows = Vec::with_capacity(in_memory(size) / ROW_BYTES);
    each_row(path, |[permuted, place]| {
        rows.push((permuted, place));
        Ok(())
    })?;
    std::fs::remove_file(path).map_err(Fault::io(path))?;
    rows.sort_unstable();
    Ok(rows)
}

/// Reads a file of rows of `N` numbers, of 8 bytes each, and calls `each` with one row after another.
fn each_row<const N: usize>(path: &Path, mut each: impl FnMut([u64; N]) -> Result<()>) -> Result<()> {
    let row_bytes = N * size_of::<u64>();
    let mut file = File::open(path).map_err(Fault::io(path))?;
    let mut left = in_memory(file.metadata().map_err(Fault::io(path))?.len());
    debug_assert!(left.is_multiple_of(row_bytes), "the file holds whole rows");
    let mut bytes = vec![0; row_bytes << 12];
    while left > 0 {
        let n = left.min(bytes.len());
        file.read_exact(&mut bytes[..n]).map_err(Fault::io(path))?;
        let (numbers, _) = bytes[..n].as_chunks::<8>();
        let (rows, _) = numbers.as_chunks::<N>();
        rows.iter().try_for_each(|row| each(row.map(u64::from_le_bytes)))?;
        left -= n;
    }
    Ok(())
}

fn batch(rows: &[(u64, u64)]) -> Result<RecordBatch> {
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.1))),
    ];
    RecordBatch::try_new(Arc::clone(&INDEX), arrays).map_err(|e| internal(&e))
}

fn internal(error: &dyn std::fmt::Display) -> Fault {
    Fault::internal("index", error)
}
