//! The map phase of a join as tasks: pieces of the existing documents in each key, and ranges of the queries' own, slice by slice.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use nearprint_join::{Key, SELF_ROWS};
use nearprint_parquet::schema::{FINGERPRINT, SKETCH};
use nearprint_storage::in_memory;
use nearprint_store::ExistingFile;
use nearprint_tasks::{FileRowGroups, KeyQueries, MapTask, QuerySlices, Weighed};

use crate::join_plan::OWN_ROWS;

/// The most rows of a file that stand side by side in a piece. The documents behind pairs are fetched for each such
/// stretch by itself.
const FILE_ROWS: u64 = 1 << 22;

/// The bytes that loading a document of a part counts for.
const LOADED_BYTES: u64 = 64;

/// What a join maps, and how it is cut into tasks. The pairs do not depend on the cuts.
#[derive(Debug)]
pub(super) struct MapTasks {
    /// The existing files, by URL: those of [`of_fingerprints`](Self::of_fingerprints) and of
    /// [`of_words`](Self::of_words).
    pub(super) existing: Arc<HashMap<String, ExistingFile>>,
    /// The files that have the existing fingerprints.
    pub(super) of_fingerprints: Vec<String>,
    /// The files that have the existing sketches. Empty if no word is a key.
    pub(super) of_words: Vec<String>,
    /// The number of existing fingerprints that take part: not those that are shadowed.
    pub(super) n_existing: u64,
    pub(super) queries: Arc<QuerySlices>,
    /// The values of each part of the batch that other processes hold. `None` if the batch is joined here, whole.
    pub(super) parts: Option<Vec<Range<u32>>>,
    /// The number of rows of a piece, about, for each key.
    pub(super) piece_rows: Vec<u64>,
    /// All words of a piece are mapped by one task, which reads its sketches once.
    pub(super) words_at_once: bool,
    /// The threads that map at once, in all processes.
    pub(super) threads: usize,
}

impl MapTasks {
    /// Returns the tasks in a fixed order: part by part, and slice by slice in each.
    pub(super) fn in_order(&self) -> Vec<MapTask> {
        let Some(parts) = &self.parts else { return self.of_part(0, None) };
        let of_part = |(number, values): (usize, &Range<u32>)| {
            let mut tasks = self.of_part(number, Some(values.len()));
            for (other, values_of_other) in parts.iter().enumerate().skip(number + 1) {
                tasks.extend(self.with_other((number, values.len()), (other, values_of_other.len())));
            }
            tasks
        };
        parts.iter().enumerate().flat_map(of_part).collect()
    }

    /// Returns the tasks that join a part, which has so many values if it is not the whole batch, with existing documents and
    /// with itself.
    fn of_part(&self, part: usize, n_values: Option<usize>) -> Vec<MapTask> {
        let keys: Vec<(&KeyQueries, u64)> = self.queries.keys().iter().zip(self.piece_rows.iter().copied()).collect();
        let is_word = |key: &KeyQueries| matches!(key.of().key, Key::Word(_));
        let (mut tasks, mut start) = (Vec::new(), 0);
        for keys in keys.chunk_by(|(a, _), (b, _)| self.words_at_once && is_word(a) && is_word(b)) {
            let (first, of_first) = keys[0];
            let piece_rows = keys.iter().fold(of_first, |least, (_, rows)| least.min(*rows));
            let pieces = if first.of().existing { self.pieces(first.of().key, piece_rows) } else { Vec::new() };
            // Keys that are mapped at once have one slice each.
            for _ in 0..first.n_slices() {
                let slices = start..start + keys.len();
                let existing =
                    |piece: &Vec<_>| MapTask::Existing { piece: piece.clone(), slices: slices.clone(), part };
                tasks.extend(pieces.iter().map(existing));
                if first.of().itself {
                    let ranges = match n_values {
                        None => self.own_ranges(start),
                        Some(n_values) => cut(0..n_values, SELF_ROWS),
                    };
                    let itself = |values| MapTask::Itself { values, slice: start, part, other: None };
                    tasks.extend(ranges.into_iter().map(itself));
                }
                start = slices.end;
            }
        }
        debug_assert_eq!(start, self.queries.n_slices(), "each slice has its tasks");
        tasks
    }

    /// Returns the tasks that join a part with the values of a later one, of which each has so many.
    fn with_other(&self, (part, n_values): (usize, usize), (other, n_others): (usize, usize)) -> Vec<MapTask> {
        if !self.queries.keys().iter().any(|key| key.of().itself) {
            return Vec::new();
        }
        // A task copies its values, and the plan has room for those of a piece.
        let most = self.piece_rows.first().map_or(OWN_ROWS, |rows| in_memory(*rows).clamp(SELF_ROWS, OWN_ROWS));
        let rows = (n_others / self.threads).clamp(SELF_ROWS, most);
        let ranges = cut(n_values..n_values + n_others, rows).into_iter();
        ranges.map(|values| MapTask::Itself { values, slice: 0, part, other: Some(other) }).collect()
    }

    /// Cuts the existing files for a key, by URL, into pieces of about `piece_rows`, by whole row groups.
    fn pieces(&self, key: Key, piece_rows: u64) -> Vec<Vec<FileRowGroups>> {
        let urls = match key {
            Key::Fingerprint => &self.of_fingerprints,
            Key::Word(_) => &self.of_words,
        };
        let mut files: Vec<(&String, &ExistingFile)> = urls.iter().map(|url| (url, &self.existing[url])).collect();
        files.sort_unstable_by_key(|(url, _)| *url);
        let mut pieces = Vec::new();
        let mut piece = GrowingPiece::default();
        for (url, file) in files {
            for group in 0..file.parquet.n_row_groups() {
                if piece.n_rows >= piece_rows {
                    pieces.push(std::mem::take(&mut piece).files);
                }
                piece.push(url, group, file.parquet.row_group_rows(group));
            }
        }
        pieces.push(piece.files);
        // A store without rows has no piece.
        pieces.retain(|files| !files.is_empty());
        pieces
    }

    /// Returns the ranges of values that a slice is joined with, its own and those after it, cut for all threads.
    fn own_ranges(&self, slice: usize) -> Vec<Range<usize>> {
        let key = self.queries.of_slice(slice).0;
        let (slice, all) = (self.queries.values_of(slice), key.n_values());
        let rows = match key.n_slices() {
            1 => SELF_ROWS,
            _ => ((all - slice.start) / self.threads).clamp(SELF_ROWS, OWN_ROWS),
        };
        [cut(slice.clone(), rows), cut(slice.end..all, rows)].concat()
    }

    /// Returns the number of fingerprints that all tasks map.
    pub(super) fn n_mapped(&self, tasks: &[MapTask]) -> u64 {
        let own = tasks.iter().map(|task| match task {
            MapTask::Itself { values, .. } => values.len() as u64,
            MapTask::Existing { .. } => 0,
        });
        let n_readings: usize =
            self.queries.keys().iter().filter(|key| key.of().existing).map(KeyQueries::n_slices).sum();
        self.n_existing * (n_readings * self.n_parts()) as u64 + own.sum::<u64>()
    }

    /// Returns the number of parts of the batch, of which one that is joined here has one.
    pub(super) fn n_parts(&self) -> usize {
        self.parts.as_ref().map_or(1, Vec::len)
    }

    /// Returns tasks with the bytes of fingerprints and words that they read.
    pub(super) fn weighed(&self, tasks: Vec<MapTask>) -> Vec<Weighed<MapTask>> {
        let bytes_of = |of: &FileRowGroups, slice: usize| {
            let parquet = &self.existing[&of.file].parquet;
            let columns: &[&str] = match self.queries.of_slice(slice).0.of().key {
                Key::Fingerprint => &[FINGERPRINT],
                Key::Word(_) => &[FINGERPRINT, SKETCH],
            };
            let chunks = of.row_groups.clone().flat_map(|group| columns.iter().map(move |column| (group, *column)));
            let bytes = |(group, column)| Some(parquet.column_chunk(group, column)?.compressed_size().unsigned_abs());
            chunks.filter_map(bytes).sum::<u64>()
        };
        let weighed = |task: MapTask| {
            let bytes = match &task {
                MapTask::Existing { piece, slices, .. } => piece.iter().map(|of| bytes_of(of, slices.start)).sum(),
                // Before two parts are joined, a worker loads both.
                MapTask::Itself { values, other, .. } => other.map_or(8, |_| 8 + LOADED_BYTES) * values.len() as u64,
            };
            Weighed { task, bytes }
        };
        tasks.into_iter().map(weighed).collect()
    }
}

/// Cuts a range into ranges of `rows`, of which the last may have fewer.
fn cut(range: Range<usize>, rows: usize) -> Vec<Range<usize>> {
    range.clone().step_by(rows).map(|at| at..range.end.min(at + rows)).collect()
}

/// A piece to which row groups are still added.
#[derive(Debug, Default)]
struct GrowingPiece {
    files: Vec<FileRowGroups>,
    n_rows: u64,
    /// The number of rows of the last file in it.
    last_rows: u64,
}

impl GrowingPiece {
    /// Adds a row group. Row groups of one file come one after another.
    fn push(&mut self, url: &str, group: usize, n_rows: u64) {
        self.n_rows += n_rows;
        let is_full = self.last_rows + n_rows > FILE_ROWS;
        match self.files.last_mut().filter(|of| !is_full && of.file == url) {
            Some(of) => {
                debug_assert_eq!(of.row_groups.end, group, "the row groups of a file come in their order");
                of.row_groups.end = group + 1;
                self.last_rows += n_rows;
            }
            None => {
                self.files.push(FileRowGroups { file: url.to_owned(), row_groups: group..group + 1 });
                self.last_rows = n_rows;
            }
        }
    }
}
