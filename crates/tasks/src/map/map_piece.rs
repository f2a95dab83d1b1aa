//! Mapping of a piece of the existing documents in a key: by all threads together, range by range.
//!
//! A piece is read and decoded file by file, and mapped as one: its files share the tables, and a range of each is mapped with
//! those of the others. The pairs that come of it name values. They go back to the files that have these values, and
//! [`expand`] finds the documents.
//!
//! Fingerprints ascend, so a range has those between two values, and values are told from rows. Words stand in the order of the
//! rows, so a range has those of some rows, and the rows of the few words in pairs are looked up. Sketches are read once for all
//! words of a piece, which are mapped one after another.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use nearprint_fault::{Fault, Result};
use nearprint_join::{Key, NearExisting, Pair, RunOrder, TogetherScratch, TooManyPairs, WordRows};
use nearprint_parquet::ParquetFile;
use nearprint_parquet::fingerprint_column::{self, FetchedColumn};
use nearprint_storage::{in_pool, row_number};
use nearprint_store::{ExistingFile, delta_kernel};
use rayon::prelude::*;
use tokio::task::JoinSet;

use super::context::{FileRowGroups, MapContext, PAIRS_HELD, Room};
use super::counts::{Fetched, MapCounts, Seen};
use super::existing_values::ExistingValues;
use super::expand::{Fetch, FileValues, expand, fetches};
use super::piece_words::WordsOfRows;
use crate::query_slices::SliceTables;
use crate::stream::Sender;

/// The number of fetches of documents of a piece that are under way at the same time.
const FETCHED_AT_ONCE: usize = 8;

/// Maps a piece in the keys of some slices, each of which has its `tables`.
pub(super) async fn map_piece(
    context: &Arc<MapContext>,
    slices: Range<usize>,
    tables: Vec<Arc<SliceTables>>,
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
    let fetched = Arc::new(Fetched::default());
    let words = words_of_slices(context, slices.clone());
    let piece = if words.is_empty() {
        let own = Arc::clone(context);
        context.room.compute(move || MappedPiece::decode(&own, piece, columns)).await?
    } else {
        MappedPiece::read_words(context, piece, columns, words, &fetched).await?
    };
    let piece = Arc::new(piece);
    drop(permit);
    let mut counts = MapCounts { fingerprint_bytes, ..MapCounts::default() };
    for (nth, (slice, tables)) in slices.zip(tables).enumerate() {
        map_in_key(context, &piece, (nth, slice), &tables, &fetched, &mut counts, sender).await?;
    }
    fetched.add_to(&mut counts);
    Ok(counts)
}

/// Returns the words that are the keys of some slices: none if fingerprints are their key.
fn words_of_slices(context: &MapContext, slices: Range<usize>) -> Vec<u8> {
    let words = slices.filter_map(|slice| match context.queries.of_slice(slice).0.of().key {
        Key::Fingerprint => None,
        Key::Word(word) => Some(word),
    });
    words.collect()
}

/// Maps a piece in the key of a slice, which is the `nth` of the keys that the piece has values of.
async fn map_in_key(
    context: &Arc<MapContext>,
    piece: &Arc<MappedPiece>,
    (nth, slice): (usize, usize),
    tables: &Arc<SliceTables>,
    fetched: &Arc<Fetched>,
    counts: &mut MapCounts,
    sender: &Sender,
) -> Result<()> {
    let n_rows = piece.n_rows();
    counts.n_rows += n_rows;
    let seen = Arc::new(Seen::new(&context.progress, n_rows));
    // Ranges that are not mapped yet. They do not overlap, and each row that is left is in one of them. Of fingerprints, all rows
    // of a value are.
    let mut unmapped = vec![piece.whole()];
    while let Some(ranges) = unmapped.pop() {
        let (own, theirs, counted, now) = (Arc::clone(piece), Arc::clone(tables), Arc::clone(&seen), ranges.clone());
        let mapped = context.room.map_together(move |scratch| own.map(nth, &theirs, now, scratch, &counted)).await?;
        let near = match mapped {
            Mapped::Pairs(near) => near,
            Mapped::Cut(smaller) => {
                unmapped.extend(smaller);
                continue;
            }
        };
        let (own, theirs) = (Arc::clone(piece), Arc::clone(context));
        let found = context.room.compute(move || own.by_file(&theirs, (nth, slice), &ranges, &near)).await?;
        counts.n_candidates += found.iter().map(|found| found.pairs.len() as u64).sum::<u64>();
        let mut wanted: Vec<(FileValues<'_>, Fetch<'_>)> = Vec::new();
        for (file, found) in piece.files.iter().zip(&found) {
            let file = found.in_file(file)?;
            wanted.extend(fetches(&found.pairs, file.values).into_iter().map(|fetch| (file, fetch)));
        }
        stream::iter(wanted.into_iter().map(Ok))
            .try_for_each_concurrent(FETCHED_AT_ONCE, |(file, fetch)| {
                expand(context, slice, file, fetch, fetched, sender)
            })
            .await?;
    }
    seen.all();
    Ok(())
}

/// The number of row groups of a piece that are read at the same time.
const READ_AT_ONCE: usize = 16;
/// The least number of rows whose words are read one after another, except for the last ones of a file.
const READ_WORDS_ROWS: u64 = 1 << 20;

/// Cuts row groups of a file into stretches whose words are read at the same time.
fn stretches(parquet: &ParquetFile, row_groups: Range<usize>) -> Vec<Range<usize>> {
    let (mut stretches, mut start, mut n_rows) = (Vec::new(), row_groups.start, 0);
    for group in row_groups.clone() {
        n_rows += parquet.row_group_rows(group);
        if n_rows >= READ_WORDS_ROWS || group + 1 == row_groups.end {
            stretches.push(start..group + 1);
            (start, n_rows) = (group + 1, 0);
        }
    }
    stretches
}

/// Returns the bytes of the columns of a piece, or `None` if they are not only read but decoded too.
fn packed_bytes(context: &MapContext, piece: &[FileRowGroups]) -> Result<Option<u64>> {
    let bits = context.queries.fingerprint_bits();
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
    let bits = context.queries.fingerprint_bits();
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
struct MappedPiece {
    files: Vec<MappedFile>,
    room: Arc<Room>,
}

/// Row groups of a file of existing documents, in memory. If words are mapped, a file may stand in a piece several times, with
/// one stretch of its row groups after another.
#[derive(Debug)]
struct MappedFile {
    of: FileRowGroups,
    values: ValuesOfFile,
}

#[derive(Debug)]
enum ValuesOfFile {
    Fingerprints(ExistingValues),
    Words(WordsOfRows),
}

impl ValuesOfFile {
    /// Returns what is mapped in the `nth` key: the distinct fingerprints, ascending, or the words of all rows.
    fn mapped(&self, nth: usize) -> &[u64] {
        match self {
            Self::Fingerprints(values) => values.values(),
            Self::Words(of_rows) => of_rows.nth(nth),
        }
    }
}

/// The pairs of a file, sorted by existing value.
#[derive(Debug)]
struct FoundInFile {
    pairs: Vec<Pair>,
    /// The words in pairs, and the fingerprint of each row that has one, by row. `None` if the values are the fingerprints.
    words: Option<(ExistingValues, Vec<(u32, u64)>)>,
}

impl FoundInFile {
    fn in_file<'a>(&'a self, file: &'a MappedFile) -> Result<FileValues<'a>> {
        let (values, fingerprints) = match (&self.words, &file.values) {
            (Some((values, fingerprints)), _) => (values, Some(fingerprints.as_slice())),
            (None, ValuesOfFile::Fingerprints(values)) => (values, None),
            (None, ValuesOfFile::Words(_)) => {
                return Err(Fault::internal("map", "words were found without their rows"));
            }
        };
        Ok(FileValues { of: &file.of, values, fingerprints })
    }
}

impl Drop for MappedPiece {
    fn drop(&mut self) {
        let memory = self.files.drain(..).filter_map(|file| match file.values {
            ValuesOfFile::Fingerprints(values) => Some(values.into_room()),
            ValuesOfFile::Words(_) => None,
        });
        self.room.keep_values(memory.collect());
    }
}

/// The range of each file of a piece that are mapped together: of its distinct fingerprints, or of its rows.
type Ranges = Vec<Range<usize>>;

/// The outcome of mapping ranges.
enum Mapped {
    /// All pairs of the ranges.
    Pairs(Vec<NearExisting<u64>>),
    /// The ranges have too many pairs, and are mapped one after another.
    Cut(Vec<Ranges>),
}

impl MappedPiece {
    /// Decodes the columns of a piece, by all threads.
    fn decode(context: &MapContext, piece: Vec<FileRowGroups>, columns: Vec<Vec<FetchedColumn>>) -> Result<Self> {
        let decoded = piece.into_par_iter().zip(columns).map(|(of, columns)| {
            let fingerprints = decode(context, &of.file, &columns)?;
            let values = ExistingValues::group(context.queries.kernel(), fingerprints);
            Ok(MappedFile { of, values: ValuesOfFile::Fingerprints(values) })
        });
        let files = in_pool(|| decoded.collect::<Result<Vec<MappedFile>>>())?;
        Ok(Self { files, room: Arc::clone(&context.room) })
    }

    /// Reads words of each sketch of a piece, of several stretches at a time. The columns of the fingerprints stay as they were
    /// read.
    async fn read_words(
        context: &Arc<MapContext>,
        piece: Vec<FileRowGroups>,
        columns: Vec<Vec<FetchedColumn>>,
        words: Vec<u8>,
        fetched: &Arc<Fetched>,
    ) -> Result<Self> {
        // Words are in new memory; what fingerprints had is not held beside it.
        context.room.keep_values(Vec::new());
        let (words, mut reading) = (Arc::new(words), JoinSet::new());
        for (of, columns) in piece.into_iter().zip(columns) {
            let mut columns = columns.into_iter();
            for row_groups in stretches(&file(context, &of)?.parquet, of.row_groups) {
                let fingerprints = columns.by_ref().take(row_groups.len()).collect();
                let of = FileRowGroups { file: of.file.clone(), row_groups };
                let (own, words, fetched) = (Arc::clone(context), Arc::clone(&words), Arc::clone(fetched));
                let number = reading.len();
                reading.spawn(async move {
                    let _permit = own.room.readers.acquire().await;
                    let (parquet, row_groups) = (&file(&own, &of)?.parquet, of.row_groups.clone());
                    let read = WordsOfRows::read(parquet, row_groups, &words, fingerprints, &fetched).await?;
                    Ok::<_, Fault>((number, MappedFile { of, values: ValuesOfFile::Words(read) }))
                });
            }
        }
        let mut files = Vec::with_capacity(reading.len());
        while let Some(read) = reading.join_next().await {
            files.push(read.map_err(|e| Fault::internal("map", e))??);
        }
        files.sort_unstable_by_key(|(number, _)| *number);
        Ok(Self { files: files.into_iter().map(|(_, file)| file).collect(), room: Arc::clone(&context.room) })
    }

    fn n_rows(&self) -> u64 {
        let of_file = |file: &MappedFile| match &file.values {
            ValuesOfFile::Fingerprints(values) => values.n_places() as u64,
            ValuesOfFile::Words(of_rows) => of_rows.nth(0).len() as u64,
        };
        self.files.iter().map(of_file).sum()
    }

    fn whole(&self) -> Ranges {
        self.files.iter().map(|file| 0..file.values.mapped(0).len()).collect()
    }

    /// Returns whether the values of all files ascend.
    fn ascends(&self) -> bool {
        self.files.iter().all(|file| matches!(file.values, ValuesOfFile::Fingerprints(_)))
    }

    /// Maps ranges, or cuts them if they have too many pairs.
    fn map(
        &self,
        nth: usize,
        tables: &SliceTables,
        ranges: Ranges,
        scratch: &mut TogetherScratch<u64>,
        seen: &Seen,
    ) -> Mapped {
        debug_assert_eq!(ranges.len(), self.files.len(), "each file of a piece has a range, which may be empty");
        let runs: Vec<&[u64]> =
            self.files.iter().zip(&ranges).map(|(file, range)| &file.values.mapped(nth)[range.clone()]).collect();
        let n_values: usize = self.files.iter().map(|file| file.values.mapped(nth).len()).sum();
        let held = (n_values / 4).max(PAIRS_HELD);
        // A piece without files has no run, and nothing to map.
        let longest = runs.iter().copied().max_by_key(|run| run.len()).unwrap_or_default();
        let mut few: Vec<u64> = if longest.len() > 1 { Vec::new() } else { runs.concat() };
        few.sort_unstable();
        few.dedup();
        // A single value, which many files may have, has no more pairs than there are queries.
        let (mapped, limit): (&[&[u64]], usize) = match (few.len(), self.ascends()) {
            (0, _) => (&runs, held),
            (1, _) => (&[&few], usize::MAX),
            (_, true) => return Mapped::Cut(cut_at(ranges, &runs, few.into_iter().skip(1))),
            (_, false) => return Mapped::Cut(each_alone(&ranges)),
        };
        let order = if self.ascends() { RunOrder::Ascending } else { RunOrder::Any };
        match tables.map_together((mapped, order), scratch, limit, &|n| seen.add(n)) {
            Ok(near) => Mapped::Pairs(near),
            // Each cut has a value of the longest run before it and behind it, so the ranges become smaller.
            Err(TooManyPairs { n_pairs }) => {
                let n = n_pairs.div_ceil(held / 2).min(longest.len());
                if order == RunOrder::Any {
                    return Mapped::Cut((0..n).map(|i| nth_of(&ranges, i, n)).collect());
                }
                let values = (1..n).map(|i| longest[i * longest.len() / n]);
                Mapped::Cut(cut_at(ranges, &runs, values))
            }
        }
    }

    /// Returns the pairs of each file, of which these ranges were mapped.
    fn by_file(
        &self,
        context: &MapContext,
        (nth, slice): (usize, usize),
        ranges: &Ranges,
        near: &[NearExisting<u64>],
    ) -> Result<Vec<FoundInFile>> {
        let mut wanted: Vec<u64> = if self.ascends() { Vec::new() } else { near.iter().map(|p| p.existing).collect() };
        wanted.dedup();
        let of_file = |(file, range): (&MappedFile, &Range<usize>)| match &file.values {
            ValuesOfFile::Fingerprints(values) => {
                Ok(FoundInFile { pairs: pairs_of(near, values.values()), words: None })
            }
            ValuesOfFile::Words(words) => {
                let values = words.rows_of(nth, &wanted, range.clone());
                by_words_alone(context, slice, (&file.of, words), values, near)
            }
        };
        in_pool(|| self.files.par_iter().zip(ranges).map(of_file).collect())
    }
}

/// Returns the pairs of a file in a word, of which some rows have these values. Pairs are left out whose documents are all near
/// in their fingerprints: they are found by these.
fn by_words_alone(
    context: &MapContext,
    slice: usize,
    (of, words): (&FileRowGroups, &WordsOfRows),
    values: ExistingValues,
    near: &[NearExisting<u64>],
) -> Result<FoundInFile> {
    let mut pairs = pairs_of(near, values.values());
    if pairs.is_empty() {
        return Ok(FoundInFile { pairs, words: Some((values, Vec::new())) });
    }
    let without_classes = || Fault::internal("map", "the queries of a word have no classes");
    let classes = context.queries.of_slice(slice).0.words().ok_or_else(without_classes)?;
    let all = decode(context, &of.file, &words.fingerprints)?;
    let all_rows = 0..usize::MAX;
    pairs.retain(|pair| {
        values.rows(pair.existing, &all_rows).any(|row| is_far_from_some(context, classes, pair, all[row as usize]))
    });
    let in_pairs = pairs.chunk_by(|a, b| a.existing == b.existing).map(|of_value| of_value[0].existing);
    let rows = in_pairs.flat_map(|value| values.rows(value, &all_rows));
    let mut fingerprints: Vec<(u32, u64)> = rows.map(|row| (row, all[row as usize])).collect();
    fingerprints.sort_unstable();
    Ok(FoundInFile { pairs, words: Some((values, fingerprints)) })
}

/// Returns whether a fingerprint is not near that of some class behind the query word of a pair.
fn is_far_from_some(context: &MapContext, classes: &WordRows, pair: &Pair, fingerprint: u64) -> bool {
    let max_distance = u32::from(context.verifier.max_distance);
    let is_far = |&class: &u32| (context.class_fingerprints[class as usize] ^ fingerprint).count_ones() > max_distance;
    classes.classes_of(pair.query).iter().any(is_far)
}

/// Decodes the fingerprints of consecutive row groups of a file, row by row.
fn decode(context: &MapContext, url: &str, columns: &[FetchedColumn]) -> Result<Vec<u64>> {
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
    Ok(fingerprints)
}

/// Returns the `i`-th of `n` parts of each range, about equal.
fn nth_of(ranges: &Ranges, i: usize, n: usize) -> Ranges {
    let part = |range: &Range<usize>| range.start + range.len() * i / n..range.start + range.len() * (i + 1) / n;
    ranges.iter().map(part).collect()
}

/// Returns each range that is not empty with none of the others.
fn each_alone(ranges: &Ranges) -> Vec<Ranges> {
    let alone = |(at, range): (usize, &Range<usize>)| {
        let others = ranges.iter().map(|other| other.start..other.start);
        let mut alone: Ranges = others.collect();
        alone[at] = range.clone();
        alone
    };
    ranges.iter().enumerate().filter(|(_, range)| !range.is_empty()).map(alone).collect()
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
