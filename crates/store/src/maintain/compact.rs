//! `store compact`: merging the fingerprints of all runs into one segment. A segment is a derived index that joins read
//! instead of the runs.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::{CONFIG_DIGEST, SEGMENT};
use nearprint_parquet::{BATCH_ROWS, DatasetWriter, FILE_ROWS, FileRecord};
use nearprint_storage::{Folder, Progress, Sha256Hex, TempFolder};
use schemars::JsonSchema;
use serde::Serialize;

use super::derived::{has_files, run_some, sound_file};
use crate::commit::{Commit, Night, SegmentRecord, to_json};
use crate::error::others_committed;
use crate::merge::{Merge, MergedRow, SortedRun};
use crate::names::segment_name;
use crate::store::{MAX_ATTEMPTS, Store, Writers};

/// The request of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactRequest {
    /// The store.
    pub store: String,
    /// The approximate number of rows in a file of the segment. Each file takes a range of fingerprints, which are
    /// nearly uniform.
    pub part_rows: u64,
    /// The processes that write to the store.
    pub writers: Writers,
}

impl CompactRequest {
    /// Creates a request for a store, with files of the usual size.
    #[must_use]
    pub fn of(store: String) -> Self {
        Self { store, part_rows: FILE_ROWS, writers: Writers::Several }
    }
}

/// The result of a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CompactSummary {
    /// The store.
    pub store: String,
    /// The number of the store's newest commit.
    pub commit: u64,
    /// The digest of the segment, or `None` if there are fewer than two runs to merge.
    pub segment: Option<String>,
    /// The number of runs that the segment merges.
    pub n_runs: u64,
    /// The number of fingerprints in the segment.
    pub n_rows: u64,
    /// The number of files of the segment.
    pub n_parts: u64,
    /// The number of these files that existed already and were not written again.
    pub n_parts_resumed: u64,
    /// The size of the files in bytes.
    pub bytes: u64,
    /// True if the compaction committed nothing, because there was nothing to merge or the store had such a segment
    /// already.
    pub already_compact: bool,
}

/// The version of the way in which runs are merged. It is raised when the same runs give other files.
const SEGMENT_VERSION: u32 = 1;

/// The largest number of files in a segment. Their names have five digits.
const MAX_PARTS: u64 = 1 << 16;

/// Merges all runs into a segment, unless the store has one already. Only the commit makes the segment visible. If
/// another commit is faster, this one is tried again on top of it. The segment stays correct then, because it names
/// its runs by their content. Temporary folders are created in `spill`.
///
/// # Errors
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a run is damaged;
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the server ignores put-if-absent, or if
/// the segment's files do not have the rows of its runs;
/// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if others commit again and again or
/// delete the files; an error if a place fails.
pub async fn compact(
    store: &Store,
    request: &CompactRequest,
    threads: usize,
    spill: &Path,
    progress: &Progress,
) -> Result<CompactSummary> {
    let nights: Vec<&Night> = store.nights().iter().filter(|n| n.run.n_fingerprints > 0).collect();
    let runs: Vec<String> = nights.iter().map(|n| n.run.digest.clone()).collect();
    let known = store.segments().iter().find(|s| s.runs == runs).cloned();
    if runs.len() < 2 {
        return Ok(compacted(store, None, 0, store.sequence(), true));
    }
    if let Some(segment) = &known
        && has_files(&store.segment_folder(&segment.digest), &segment.files).await?
    {
        return Ok(compacted(store, known.as_ref(), segment.files.len() as u64, store.sequence(), true));
    }
    store.probe_conditional_put(request.writers).await?;
    let merging = merging(store, &nights, runs, known.as_ref(), request.part_rows, progress).await?;
    let (segment, n_resumed) = merging.write(threads, spill).await?;
    if known.as_ref() == Some(&segment) {
        return Ok(compacted(store, known.as_ref(), n_resumed, store.sequence(), true));
    }
    let (commit, already) = commit_segment(store, &segment).await?;
    Ok(compacted(store, Some(&segment), n_resumed, commit, already))
}

fn compacted(
    store: &Store,
    segment: Option<&SegmentRecord>,
    n_resumed: u64,
    commit: u64,
    already: bool,
) -> CompactSummary {
    let files: &[FileRecord] = segment.map_or(&[], |s| &s.files);
    CompactSummary {
        store: store.folder.url().to_owned(),
        commit,
        segment: segment.map(|s| s.digest.clone()),
        n_runs: segment.map_or(0, |s| s.runs.len() as u64),
        n_rows: segment.map_or(0, |s| s.n_rows),
        n_parts: files.len() as u64,
        n_parts_resumed: n_resumed,
        bytes: files.iter().map(|f| f.bytes).sum(),
        already_compact: already,
    }
}

/// Prepares to merge the runs of some nights. If the segment `known` is to be repaired, it is cut into files as
/// before.
async fn merging(
    store: &Store,
    nights: &[&Night],
    runs: Vec<String>,
    known: Option<&SegmentRecord>,
    part_rows: u64,
    progress: &Progress,
) -> Result<Merging> {
    let mut sorted = Vec::new();
    for (ordinal, night) in (0..).zip(nights) {
        sorted.push(SortedRun::new(ordinal, store.open_file(night, "fingerprints").await?));
    }
    let n_rows = nights.iter().map(|n| n.run.n_fingerprints).sum();
    let n_parts = known.map_or_else(|| n_parts(n_rows, part_rows), |s| s.files.len() as u64);
    let ranges = Ranges::new(n_parts, sorted.iter().map(SortedRun::max).max().unwrap_or(0));
    let digest = segment_digest(&ranges, &runs)?;
    Ok(Merging {
        folder: store.segment_folder(&digest),
        digest,
        runs,
        sorted,
        ranges,
        n_rows,
        recorded: known.map_or_else(Vec::new, |s| s.files.clone()),
        config_digest: store.commit.as_ref().map_or_else(String::new, |c| c.config_digest.clone()),
        progress: progress.clone(),
    })
}

/// Commits the segment. Returns the number of the commit that has it, and whether somebody else made that commit.
async fn commit_segment(store: &Store, segment: &SegmentRecord) -> Result<(u64, bool)> {
    if let Some(commit) = put_segment(store, segment).await? {
        return Ok((commit, false));
    }
    for _ in 1..MAX_ATTEMPTS {
        tracing::warn!("somebody else committed meanwhile: committing the segment on top");
        let newest = Store::open(&store.folder).await?;
        if covers(&newest, segment) {
            return Ok((newest.sequence(), true));
        }
        if store.gave_up_since(&newest, &[segment_name(&segment.digest)]).await? {
            let reason = format!("{}: `store gc` deleted parts of the segment meanwhile", store.folder.url());
            return Err(Fault::try_again(reason));
        }
        refuse_forgotten(store, &newest)?;
        if let Some(commit) = put_segment(&newest, segment).await? {
            return Ok((commit, false));
        }
    }
    Err(others_committed(MAX_ATTEMPTS))
}

/// Refuses a segment of the nights of `store` if documents of one were forgotten since: their fingerprints must not come back.
/// Nights that were replaced or left are harmless, since joins pass over their rows.
fn refuse_forgotten(store: &Store, newest: &Store) -> Result<()> {
    let has_forgotten = |before: &Night| {
        let is_of_forgetting = |now: &&Night| now.run.digest != before.run.digest && now.joined_as.is_some();
        newest.night(&before.dt).filter(is_of_forgetting).is_some()
    };
    if store.nights().iter().any(has_forgotten) {
        return Err(Fault::try_again("documents were forgotten meanwhile".to_owned()));
    }
    Ok(())
}

/// Returns whether one segment of this store has all runs of `segment` that the store still has.
fn covers(store: &Store, segment: &SegmentRecord) -> bool {
    let is_here = |run: &&String| store.nights().iter().any(|n| n.run.digest == **run);
    let runs: Vec<&String> = segment.runs.iter().filter(is_here).collect();
    store.segments().iter().any(|s| runs.iter().all(|run| s.runs.contains(run)))
}

/// Commits the same nights with this segment in place of all others. Returns `None` if another commit was faster.
async fn put_segment(store: &Store, segment: &SegmentRecord) -> Result<Option<u64>> {
    let Some(before) = &store.commit else {
        return Ok(None);
    };
    let commit = Commit { segments: vec![segment.clone()], ..before.next() };
    Ok(store.put_commit(&commit).await?.then_some(commit.sequence))
}

/// Returns a power of two, chosen so that uniform fingerprints fill files of at most `part_rows` rows.
fn n_parts(n_rows: u64, part_rows: u64) -> u64 {
    n_rows.div_ceil(part_rows.max(1)).next_power_of_two().min(MAX_PARTS)
}

/// Returns the first digits of a SHA-256 over everything that determines the segment's files.
fn segment_digest(ranges: &Ranges, runs: &[String]) -> Result<String> {
    let parts = serde_json::json!({ "version": SEGMENT_VERSION, "n_parts": ranges.n_parts, "runs": runs });
    Ok(Sha256Hex::of(&to_json(&parts)?).0[..32].to_owned())
}

/// A division of fingerprints into ranges by their leading bits.
#[derive(Debug, Clone, Copy)]
struct Ranges {
    /// The number of ranges, a power of two.
    n_parts: u64,
    /// The number of bits in a fingerprint below those that determine its range.
    shift: u32,
}

impl Ranges {
    fn new(n_parts: u64, max: u64) -> Self {
        let bits = if max > u64::from(u32::MAX) { 64 } else { 32 };
        Self { n_parts, shift: bits - n_parts.trailing_zeros() }
    }

    fn range(self, part: u64) -> RangeInclusive<u64> {
        let start = |part: u64| part.checked_shl(self.shift).unwrap_or(0);
        let last = part + 1 == self.n_parts;
        start(part)..=if last { u64::MAX } else { start(part + 1) - 1 }
    }
}

/// The runs of a segment that is being written.
struct Merging {
    folder: Folder,
    digest: String,
    runs: Vec<String>,
    sorted: Vec<SortedRun>,
    ranges: Ranges,
    n_rows: u64,
    /// The commit's records of files that are to be repaired.
    recorded: Vec<FileRecord>,
    config_digest: String,
    progress: Progress,
}

/// A file of the segment that is at its place.
struct Part {
    record: FileRecord,
    resumed: bool,
}

impl Merging {
    /// Writes the missing files, several at once. Returns the segment, and the number of files that existed already.
    async fn write(self, threads: usize, spill: &Path) -> Result<(SegmentRecord, u64)> {
        self.progress.start("compact", "fingerprints", self.n_rows);
        let temp = Arc::new(TempFolder::try_new(spill)?);
        let merging = Arc::new(self);
        let parts = (0..merging.ranges.n_parts).map(|part| {
            let (merging, temp) = (Arc::clone(&merging), Arc::clone(&temp));
            async move { merging.part(part, temp.path()).await }
        });
        let parts = run_some(threads, parts, "compact").await?;
        merging.segment(parts)
    }

    fn segment(&self, mut parts: Vec<Part>) -> Result<(SegmentRecord, u64)> {
        parts.sort_by(|a, b| a.record.name.cmp(&b.record.name));
        let n_rows: u64 = parts.iter().map(|p| p.record.rows).sum();
        if n_rows != self.n_rows {
            let reason =
                format!("its parts have {n_rows} of {} rows: delete this folder, and compact again", self.n_rows);
            return Err(Fault::refused(self.folder.url().to_owned(), reason));
        }
        debug_assert_eq!(parts.len() as u64, self.ranges.n_parts, "each range of fingerprints has one part");
        let n_resumed = parts.iter().filter(|p| p.resumed).count() as u64;
        debug_assert!(self.runs.len() > 1, "a segment of one run would be a copy of it");
        let files = parts.into_iter().map(|p| p.record).collect();
        Ok((SegmentRecord { digest: self.digest.clone(), runs: self.runs.clone(), n_rows, files }, n_resumed))
    }

    async fn part(&self, part: u64, temp: &Path) -> Result<Part> {
        let name = format!("part-{part:05}.parquet");
        let place = self.folder.join(&name);
        if let Some(record) = sound_file(&place, &name, &self.recorded).await? {
            self.progress.advance(record.rows);
            return Ok(Part { record, resumed: true });
        }
        let mut writer = DatasetWriter::new(temp, &part.to_string(), &SEGMENT, &[(CONFIG_DIGEST, &self.config_digest)])
            .in_one_file();
        let mut merge = Merge::open(&self.sorted, self.ranges.range(part)).await?;
        let mut rows = Vec::with_capacity(BATCH_ROWS);
        while let Some(row) = merge.next().await? {
            rows.push(row);
            if rows.len() == BATCH_ROWS {
                writer.write(batch(&rows)?)?;
                self.progress.advance(rows.len() as u64);
                rows.clear();
            }
        }
        writer.write(batch(&rows)?)?;
        self.progress.advance(rows.len() as u64);
        let staged = writer.finish()?;
        let [staged] = &staged[..] else {
            let reason = format!("{} files of one part", staged.len());
            return Err(Fault::internal("compact", reason));
        };
        place.put_file(&staged.path).await?;
        std::fs::remove_file(&staged.path).map_err(Fault::io(&staged.path))?;
        Ok(Part { record: FileRecord { name, ..staged.record.clone() }, resumed: false })
    }
}

fn batch(rows: &[MergedRow]) -> Result<RecordBatch> {
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|r| r.fingerprint))),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.run))),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.row))),
    ];
    RecordBatch::try_new(Arc::clone(&SEGMENT), arrays).map_err(|e| Fault::internal("compact", e))
}
