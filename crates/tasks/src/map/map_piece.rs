//! Mapping of a piece of the existing fingerprints: by all threads together, range by range.
//!
//! A piece is read and decoded file by file, and mapped as one: its files share the tables, and a range of values is cut
//! out of all of them. The pairs that come of it name values. They go back to the files that have these values, and
//! [`expand`] finds the documents.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use nearprint_fault::{Fault, Result};
use nearprint_join::{NearExisting, Pair, TogetherScratch, TooManyPairs};
use nearprint_parquet::fingerprint_column::{self, FetchedColumn};
use nearprint_storage::{in_pool, row_number};
use nearprint_store::{ExistingFile, delta_kernel};
use rayon::prelude::*;

use super::context::{FileRowGroups, MapContext, PAIRS_HELD, Room};
use super::counts::{Fetched, MapCounts, Seen};
use super::existing_values::{DecodedFile, ExistingValues};
use super::expand::{Fetch, expand, fetches};
use crate::query_slices::SliceTables;
use crate::stream::Sender;

/// The number of fetches of documents of a piece that are under way at the same time.
const FETCHED_AT_ONCE: usize = 8;

/// Maps a piece.
pub(super) async fn map_piece(
    context: &Arc<MapContext>,
    tables: &Arc<SliceTables>,
    piece: Vec<FileRowGroups>,
    sender: &Sender,
) -> Result<MapCounts> {
    // A piece whose columns are only read waits for its turn to be decoded with them; others wait before they are read.
    let ahead = match packed_bytes(context, &piece)? {
        Some(n_bytes) => {
            let permit = context.room.read_ahead(n_bytes).await;
            Some((fetch_columns(context, &piece).await?, permit))
        }
        None => None,
    };
    let _permit = context.room.under_way.acquire().await;
    let (columns, permit) = match ahead {
        Some(read) => read,
        None => {
            // Decoding counts as computing, and takes memory of its own.
            let _computes = context.room.threads.acquire().await;
            (fetch_columns(context, &piece).await?, None)
        }
    };
    let fingerprint_bytes = columns.iter().flatten().map(FetchedColumn::n_bytes).sum();
    let own = Arc::clone(context);
    let piece = Arc::new(context.room.compute(move || DecodedPiece::decode(&own, piece, columns)).await?);
    drop(permit);
    let n_rows = piece.n_rows();
    let mut counts = MapCounts { n_rows, fingerprint_bytes, ..MapCounts::default() };
    let fetched = Fetched::default();
    let seen = Arc::new(Seen::new(&context.progress, n_rows));
    // Ranges that are not mapped yet. They do not overlap, and each value that is left is in one of them, with all files
    // that have it.
    let mut unmapped = vec![piece.all_values()];
    while let Some(ranges) = unmapped.pop() {
        let (own, theirs, counted) = (Arc::clone(&piece), Arc::clone(tables), Arc::clone(&seen));
        let mapped = context.room.map_together(move |scratch| own.map(&theirs, ranges, scratch, &counted)).await?;
        let near = match mapped {
            Mapped::Pairs(near) => near,
            Mapped::Cut(smaller) => {
                unmapped.extend(smaller);
                continue;
            }
        };
        let own = Arc::clone(&piece);
        let pairs = context.room.compute(move || Ok(own.pairs_by_file(&near))).await?;
        counts.n_candidates += pairs.iter().map(|pairs| pairs.len() as u64).sum::<u64>();
        let found = piece.files.iter().zip(&pairs);
        let wanted: Vec<(&DecodedFile, Fetch<'_>)> =
            found.flat_map(|(file, pairs)| fetches(pairs, &file.values).into_iter().map(move |f| (file, f))).collect();
        stream::iter(wanted.into_iter().map(Ok))
            .try_for_each_concurrent(FETCHED_AT_ONCE, |(file, fetch)| expand(context, file, fetch, &fetched, sender))
            .await?;
    }
    seen.all();
    fetched.add_to(&mut counts);
    Ok(counts)
}

/// The number of row groups of a piece that are read at the same time.
const READ_AT_ONCE: usize = 16;

/// Returns the bytes of the columns of a piece, or `None` if they are not only read but decoded too.
fn packed_bytes(context: &MapContext, piece: &[FileRowGroups]) -> Result<Option<u64>> {
    let bits = context.queries.plan().bits();
    let mut n_bytes = Some(0);
    for of in piece {
        let of_file = fingerprint_column::packed_bytes(&file(context, of)?.parquet, of.row_groups.clone(), bits);
        n_bytes = n_bytes.zip(of_file).map(|(before, more)| before + more);
    }
    Ok(n_bytes)
}

fn file<'a>(context: &'a MapContext, of: &FileRowGroups) -> Result<&'a ExistingFile> {
    let unknown = || Fault::internal("map", format!("no file {} in this join", of.file));
    context.files.get(&of.file).ok_or_else(unknown)
}

/// Reads the columns of the row groups of each file.
async fn fetch_columns(context: &MapContext, piece: &[FileRowGroups]) -> Result<Vec<Vec<FetchedColumn>>> {
    let bits = context.queries.plan().bits();
    let mut fetches = Vec::new();
    for of in piece {
        let existing = file(context, of)?;
        let row_groups = of.row_groups.clone();
        fetches.extend(row_groups.map(|group| fingerprint_column::fetch(&existing.parquet, group, bits)));
    }
    let columns: Vec<FetchedColumn> = stream::iter(fetches).buffered(READ_AT_ONCE).try_collect().await?;
    let mut rest = columns.into_iter();
    Ok(piece.iter().map(|of| rest.by_ref().take(of.row_groups.len()).collect()).collect())
}

/// A piece in memory. Whoever is last to hold it gives its memory back to the room.
#[derive(Debug)]
struct DecodedPiece {
    files: Vec<DecodedFile>,
    room: Arc<Room>,
}

impl Drop for DecodedPiece {
    fn drop(&mut self) {
        self.room.keep_values(self.files.drain(..).map(|file| file.values.into_room()).collect());
    }
}

/// The range of values of each file of a piece that are mapped together.
type Ranges = Vec<Range<usize>>;

/// The outcome of mapping ranges.
enum Mapped {
    /// All pairs of the ranges.
    Pairs(Vec<NearExisting<u64>>),
    /// The ranges have too many pairs, and are mapped one after another.
    Cut(Vec<Ranges>),
}

impl DecodedPiece {
    /// Decodes the columns of a piece, by all threads.
    fn decode(context: &MapContext, piece: Vec<FileRowGroups>, columns: Vec<Vec<FetchedColumn>>) -> Result<Self> {
        let decoded = piece.into_par_iter().zip(columns).map(|(of, columns)| {
            let values = decode(context, &of.file, &columns)?;
            Ok(DecodedFile { of, values })
        });
        let files = in_pool(|| decoded.collect::<Result<Vec<DecodedFile>>>())?;
        Ok(Self { files, room: Arc::clone(&context.room) })
    }

    fn n_rows(&self) -> u64 {
        self.files.iter().map(|file| file.values.n_places() as u64).sum()
    }

    fn all_values(&self) -> Ranges {
        self.files.iter().map(|file| 0..file.values.values().len()).collect()
    }

    /// Maps ranges, or cuts them if they have too many pairs.
    fn map(&self, tables: &SliceTables, ranges: Ranges, scratch: &mut TogetherScratch<u64>, seen: &Seen) -> Mapped {
        debug_assert_eq!(ranges.len(), self.files.len(), "each file of a piece has a range, which may be empty");
        let runs: Vec<&[u64]> =
            self.files.iter().zip(&ranges).map(|(file, range)| &file.values.values()[range.clone()]).collect();
        let n_values: usize = self.files.iter().map(|file| file.values.values().len()).sum();
        let held = (n_values / 4).max(PAIRS_HELD);
        // A piece without files has no run, and nothing to map.
        let longest = runs.iter().copied().max_by_key(|run| run.len()).unwrap_or_default();
        let mut few: Vec<u64> = if longest.len() > 1 { Vec::new() } else { runs.concat() };
        few.sort_unstable();
        few.dedup();
        // A single value, which many files may have, has no more pairs than there are queries.
        let (mapped, limit): (&[&[u64]], usize) = match few.len() {
            0 => (&runs, held),
            1 => (&[&few], usize::MAX),
            _ => return Mapped::Cut(cut_at(ranges, &runs, few.into_iter().skip(1))),
        };
        match tables.map_together(mapped, scratch, limit, &|n| seen.add(n)) {
            Ok(near) => Mapped::Pairs(near),
            // Each cut has a value of the longest run before it and behind it, so the ranges become smaller.
            Err(TooManyPairs { n_pairs }) => {
                let n = n_pairs.div_ceil(held / 2).min(longest.len());
                let values = (1..n).map(|i| longest[i * longest.len() / n]);
                Mapped::Cut(cut_at(ranges, &runs, values))
            }
        }
    }

    /// Returns the pairs of each file, by the positions of its values.
    fn pairs_by_file(&self, near: &[NearExisting<u64>]) -> Vec<Vec<Pair>> {
        in_pool(|| self.files.par_iter().map(|file| pairs_of(near, file.values.values())).collect())
    }
}

/// Decodes the columns of consecutive row groups of a file.
fn decode(context: &MapContext, url: &str, columns: &[FetchedColumn]) -> Result<ExistingValues> {
    let n_rows = columns.iter().map(FetchedColumn::n_rows).sum();
    let mut fingerprints = context.room.take_values(n_rows);
    // The fingerprints that are still in this memory are overwritten.
    fingerprints.resize(n_rows, 0);
    let mut rest = fingerprints.as_mut_slice();
    let mut places = Vec::with_capacity(columns.len());
    for column in columns {
        let (now, later) = rest.split_at_mut(column.n_rows());
        places.push((column, now));
        rest = later;
    }
    let kernel = delta_kernel(context.queries.kernel());
    places.into_par_iter().try_for_each(|(column, now)| column.decode(url, now, kernel))?;
    Ok(ExistingValues::group(context.queries.kernel(), fingerprints))
}

/// Cuts ranges at values, which ascend: ranges before each of them, and ranges from the last on. A value is in the same
/// ranges for all files.
fn cut_at(ranges: Ranges, runs: &[&[u64]], values: impl Iterator<Item = u64>) -> Vec<Ranges> {
    let starts: Vec<usize> = ranges.iter().map(|range| range.start).collect();
    let mut cut = Vec::new();
    let mut rest = ranges;
    for value in values {
        let ends = runs.iter().zip(&starts).map(|(run, start)| start + run.partition_point(|&v| v < value));
        let before =
            rest.iter_mut().zip(ends).map(|(range, end)| std::mem::replace(&mut range.start, end)..end).collect();
        cut.push(before);
    }
    cut.push(rest);
    cut
}

/// Returns those of `pairs`, which ascend by existing value, whose existing value is one of `values`, which ascend.
fn pairs_of(pairs: &[NearExisting<u64>], values: &[u64]) -> Vec<Pair> {
    let (mut at, mut next) = (0, 0);
    let mut found = Vec::new();
    while let (Some(pair), Some(&value)) = (pairs.get(next), values.get(at)) {
        match pair.existing.cmp(&value) {
            Ordering::Less => next += before(&pairs[next..], |pair| pair.existing < value),
            Ordering::Greater => at += before(&values[at..], |&value| value < pair.existing),
            Ordering::Equal => {
                found.push(Pair { query: pair.query, existing: row_number(at), distance: pair.distance });
                next += 1;
            }
        }
    }
    found
}

/// Returns the number of leading items for which `is_before` holds. The search looks further and further ahead, so it
/// takes few steps if there are few such items.
fn before<T>(items: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let mut end = 1;
    while end < items.len() && is_before(&items[end]) {
        end *= 2;
    }
    items[..items.len().min(end + 1)].partition_point(is_before)
}
