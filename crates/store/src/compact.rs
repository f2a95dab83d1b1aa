//! `store compact`: the fingerprints of all runs merged into one segment, a derived index that joins read instead.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::error::{Result, StoreError};
use nearprint_dataset::ParquetFile;
use nearprint_dataset::schema::{CONFIG_DIGEST, SEGMENT};
use nearprint_dataset::{DatasetWriter, FILE_ROWS, FileRecord};
use nearprint_storage::Folder;
use nearprint_storage::Progress;
use nearprint_storage::{ErrorKind, Sha256Hex, StorageError, TempFolder};

use crate::commit::{Commit, Night, SegmentRecord, to_json};
use crate::merge::{Merge, MergedRow, SortedRun};
use crate::names::segment_name;
use crate::store::{MAX_ATTEMPTS, Store};
use nearprint_dataset::BATCH_ROWS;

/// What to compact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactRequest {
    /// The store.
    pub store: String,
    /// Rows of a part, about: a part takes a range of fingerprints, and these are nearly uniform.
    pub part_rows: u64,
    /// Nobody else writes to the store: a server that cannot tell who was first will do.
    pub single_writer: bool,
}

impl CompactRequest {
    /// A store, in parts of the usual size.
    #[must_use]
    pub fn of(store: String) -> Self {
        Self { store, part_rows: FILE_ROWS, single_writer: false }
    }
}

/// What a compaction did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompactSummary {
    /// The store.
    pub store: String,
    /// Number of the store's commit.
    pub commit: u64,
    /// Digest of the segment; none where there are no two runs to merge.
    pub segment: Option<String>,
    /// Runs that it merges.
    pub n_runs: u64,
    /// Its fingerprints.
    pub n_rows: u64,
    /// Its files.
    pub n_parts: u64,
    /// Of these, files that were there and were not merged again.
    pub n_parts_resumed: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Whether the store had a segment of these runs already.
    pub already_compact: bool,
}

/// Raised when equal runs give other parts.
const SEGMENT_VERSION: u32 = 1;

/// Ranges of a segment at most: its parts have five digits.
const MAX_PARTS: u64 = 1 << 16;

impl Store {
    /// Merges all runs, unless that is done. Nothing but the commit makes the segment visible, and a commit that another one
    /// overtakes is tried again on top of it: a segment names its runs by their content, so it stays true. `spill` is where temporary
    /// folders are made.
    pub async fn compact(
        self,
        request: &CompactRequest,
        threads: usize,
        spill: &Path,
        progress: &Progress,
    ) -> Result<CompactSummary> {
        let nights: Vec<&Night> = self.nights().iter().filter(|n| n.run.n_fingerprints > 0).collect();
        let runs: Vec<String> = nights.iter().map(|n| n.run.digest.clone()).collect();
        let known = self.segments().iter().find(|s| s.runs == runs).cloned();
        if runs.len() < 2 {
            return Ok(self.compacted(None, 0, self.sequence(), true));
        }
        if let Some(segment) = &known
            && self.has_parts(segment).await?
        {
            return Ok(self.compacted(known.as_ref(), segment.files.len() as u64, self.sequence(), true));
        }
        self.probe_conditional_put(request.single_writer).await?;
        let merging = self.merging(&nights, runs, known.as_ref(), request.part_rows, progress).await?;
        let (segment, n_resumed) = merging.write(threads, spill).await?;
        if known.as_ref() == Some(&segment) {
            return Ok(self.compacted(known.as_ref(), n_resumed, self.sequence(), true));
        }
        let (commit, already) = self.commit_segment(&segment).await?;
        Ok(self.compacted(Some(&segment), n_resumed, commit, already))
    }

    fn compacted(&self, segment: Option<&SegmentRecord>, n_resumed: u64, commit: u64, already: bool) -> CompactSummary {
        let files: &[FileRecord] = segment.map_or(&[], |s| &s.files);
        CompactSummary {
            store: self.folder.url().to_owned(),
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

    /// Whether all files of a segment have the size that the commit says.
    async fn has_parts(&self, segment: &SegmentRecord) -> Result<bool> {
        for recorded in &segment.files {
            let place = self.segment_folder(&segment.digest).join(&recorded.name);
            if place.find().await?.is_none_or(|file| file.size != recorded.bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The merge of some nights' runs; one that mends the segment `known` cuts it as it was.
    async fn merging(
        &self,
        nights: &[&Night],
        runs: Vec<String>,
        known: Option<&SegmentRecord>,
        part_rows: u64,
        progress: &Progress,
    ) -> Result<Merging> {
        let mut sorted = Vec::new();
        for (ordinal, night) in (0..).zip(nights) {
            sorted.push(SortedRun::new(ordinal, self.open_file(night, "fingerprints").await?));
        }
        let n_rows = nights.iter().map(|n| n.run.n_fingerprints).sum();
        let n_parts = known.map_or_else(|| n_parts(n_rows, part_rows), |s| s.files.len() as u64);
        let ranges = Ranges::new(n_parts, sorted.iter().map(SortedRun::max).max().unwrap_or(0));
        let digest = segment_digest(&ranges, &runs)?;
        Ok(Merging {
            folder: self.segment_folder(&digest),
            digest,
            runs,
            sorted,
            ranges,
            n_rows,
            recorded: known.map_or_else(Vec::new, |s| s.files.clone()),
            config_digest: self.commit.as_ref().map_or_else(String::new, |c| c.config_digest.clone()),
            progress: progress.clone(),
        })
    }

    /// The number of the commit that has the segment, and whether somebody else made it.
    async fn commit_segment(&self, segment: &SegmentRecord) -> Result<(u64, bool)> {
        if let Some(commit) = self.put_segment(segment).await? {
            return Ok((commit, false));
        }
        for _ in 1..MAX_ATTEMPTS {
            tracing::warn!("somebody else committed meanwhile: committing the segment on top");
            let newest = Self::open(&self.folder).await?;
            if newest.covers(segment) {
                return Ok((newest.sequence(), true));
            }
            if self.gave_up_since(&newest, &[segment_name(&segment.digest)]).await? {
                let reason = format!("{}: `store gc` deleted parts of the segment meanwhile", self.folder.url());
                return Err(StoreError::TryAgain { reason });
            }
            if let Some(commit) = newest.put_segment(segment).await? {
                return Ok((commit, false));
            }
        }
        Err(StoreError::TryAgain { reason: format!("others committed {MAX_ATTEMPTS} times meanwhile") })
    }

    /// Whether some segment has all runs of another one that are still here.
    fn covers(&self, segment: &SegmentRecord) -> bool {
        let is_here = |run: &&String| self.nights().iter().any(|n| n.run.digest == **run);
        let runs: Vec<&String> = segment.runs.iter().filter(is_here).collect();
        self.segments().iter().any(|s| runs.iter().all(|run| s.runs.contains(run)))
    }

    /// Commits the same nights with this segment in place of others; none where another commit was first.
    async fn put_segment(&self, segment: &SegmentRecord) -> Result<Option<u64>> {
        let Some(before) = &self.commit else {
            return Ok(None);
        };
        let commit = Commit {
            sequence: before.sequence + 1,
            parent: Some(before.sequence),
            segments: vec![segment.clone()],
            ..before.clone()
        };
        Ok(self.put_commit(&commit).await?.then_some(commit.sequence))
    }
}

/// A power of two, such that uniform fingerprints fill parts of at most `part_rows`.
fn n_parts(n_rows: u64, part_rows: u64) -> u64 {
    n_rows.div_ceil(part_rows.max(1)).next_power_of_two().min(MAX_PARTS)
}

/// First digits of the SHA-256 of all that the parts depend on.
fn segment_digest(ranges: &Ranges, runs: &[String]) -> Result<String> {
    let parts = serde_json::json!({ "version": SEGMENT_VERSION, "n_parts": ranges.n_parts, "runs": runs });
    Ok(Sha256Hex::of(&to_json(&parts)?).0[..32].to_owned())
}

/// Ranges of fingerprints by their leading bits.
#[derive(Debug, Clone, Copy)]
struct Ranges {
    /// A power of two.
    n_parts: u64,
    /// Bits of a fingerprint below those that tell the range.
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

/// Some runs on their way into a segment.
struct Merging {
    folder: Folder,
    digest: String,
    runs: Vec<String>,
    sorted: Vec<SortedRun>,
    ranges: Ranges,
    n_rows: u64,
    /// What a commit says of parts that are to be mended.
    recorded: Vec<FileRecord>,
    config_digest: String,
    progress: Progress,
}

/// A part at its place.
struct Part {
    record: FileRecord,
    resumed: bool,
}

impl Merging {
    /// Writes the parts that are missing, several at a time, and gives the segment with the number of those that were there.
    async fn write(self, threads: usize, spill: &Path) -> Result<(SegmentRecord, u64)> {
        self.progress.start("compact", "fingerprints", self.n_rows);
        let temp = Arc::new(TempFolder::try_new(spill)?);
        let (merging, mut parts) = (Arc::new(self), JoinSet::new());
        let mut waiting = 0..merging.ranges.n_parts;
        let start = |parts: &mut JoinSet<Result<Part>>, part: u64| {
            let (merging, temp) = (Arc::clone(&merging), Arc::clone(&temp));
            parts.spawn(async move { merging.part(part, temp.path()).await });
        };
        for part in waiting.by_ref().take(threads) {
            start(&mut parts, part);
        }
        let mut done = Vec::new();
        while let Some(part) = parts.join_next().await {
            let part = part.map_err(|e| StoreError::Internal { stage: "compact", reason: e.to_string() }).flatten();
            match part {
                Ok(part) => done.push(part),
                Err(error) => {
                    // Others still write to the temporary folder, which is about to go.
                    parts.shutdown().await;
                    return Err(error);
                }
            }
            if let Some(part) = waiting.next() {
                start(&mut parts, part);
            }
        }
        merging.segment(done)
    }

    fn segment(&self, mut parts: Vec<Part>) -> Result<(SegmentRecord, u64)> {
        parts.sort_by(|a, b| a.record.name.cmp(&b.record.name));
        let n_rows: u64 = parts.iter().map(|p| p.record.rows).sum();
        if n_rows != self.n_rows {
            let reason =
                format!("its parts have {n_rows} of {} rows: delete this folder, and compact again", self.n_rows);
            return Err(StoreError::Refused { url: self.folder.url().to_owned(), reason });
        }
        let n_resumed = parts.iter().filter(|p| p.resumed).count() as u64;
        let files = parts.into_iter().map(|p| p.record).collect();
        Ok((SegmentRecord { digest: self.digest.clone(), runs: self.runs.clone(), n_rows, files }, n_resumed))
    }

    async fn part(&self, part: u64, temp: &Path) -> Result<Part> {
        let name = format!("part-{part:05}.parquet");
        let place = self.folder.join(&name);
        if let Some(record) = self.found(&place, &name).await? {
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
            return Err(StoreError::Internal { stage: "compact", reason });
        };
        place.put_file(&staged.path).await?;
        std::fs::remove_file(&staged.path).map_err(StorageError::io(&staged.path))?;
        Ok(Part { record: FileRecord { name, ..staged.record.clone() }, resumed: false })
    }

    /// The part at its place. A file of this name was put there whole, of these runs and this range; one that a commit names
    /// is what the commit says, or is written anew.
    async fn found(&self, place: &Folder, name: &str) -> Result<Option<FileRecord>> {
        let Some(file) = place.find().await? else {
            return Ok(None);
        };
        let (bytes, sha256) = file.sha256().await?;
        let rows = match ParquetFile::open(file).await {
            Ok(parquet) => parquet.n_rows(),
            Err(error) if error.kind() == ErrorKind::BadData => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let found = FileRecord { name: name.to_owned(), rows, bytes, sha256 };
        let recorded = self.recorded.iter().find(|r| r.name == name);
        Ok(recorded.is_none_or(|r| *r == found).then_some(found))
    }
}

fn batch(rows: &[MergedRow]) -> Result<RecordBatch> {
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|r| r.fingerprint))),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.run))),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.row))),
    ];
    RecordBatch::try_new(Arc::clone(&SEGMENT), arrays)
        .map_err(|e| StoreError::Internal { stage: "compact", reason: e.to_string() })
}
