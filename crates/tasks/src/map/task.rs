//! Map tasks: each probes the query tables with existing fingerprints, or with the queries' own.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use nearprint_fingerprint::Sketch;
use nearprint_join::{NearExisting, Pair, TogetherScratch, TooManyPairs};
use nearprint_parquet::fingerprint_column::{self, FetchedColumn};
use nearprint_storage::{Progress, in_pool, row_number};
use nearprint_store::ExistingFile;
use rayon::prelude::*;

use super::context::{FileSlice, MapContext, MapTask};
use super::counts::{Fetched, MapCounts};
use super::existing_documents::{ExistingDocument, fetch_documents, fetch_sketches, places};
use super::existing_values::ExistingValues;
use super::pair_writer::PairWriter;
use crate::error::{Result, TaskError};
use crate::query_parts::PartTables;
use crate::stream::{Sender, TaskBatch, produce};

/// Returns the pairs of a task, each at most once, in no particular order. The notes are its counts, and the pairs of
/// classes that decisions need.
///
/// ```
/// use std::sync::Arc;
///
/// # use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
/// use futures::{StreamExt, TryStreamExt};
/// use nearprint_join::{Kernel, LossLimit, QueryRows, TablePlan, Verifier};
/// use nearprint_tasks::{MapContext, MapTask, QueryParts, Room, TaskBatch, Want, map_task};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let ids: ArrayRef = Arc::new(StringArray::from(vec!["a.html", "b.html", "c.html"]));
/// # let fingerprints: ArrayRef = Arc::new(UInt64Array::from(vec![6, 7, u64::MAX]));
/// # let (files, rows) = (UInt32Array::from(vec![0; 3]), UInt64Array::from(vec![1, 2, 3]));
/// # let (files, rows): (ArrayRef, ArrayRef) = (Arc::new(files), Arc::new(rows));
/// # let arrived = [("doc_id", ids), ("fingerprint", fingerprints), ("file", files), ("row", rows)];
/// # let mut collecting = nearprint_tasks::Collecting::new(&[], None, usize::MAX);
/// # collecting.push(&RecordBatch::try_from_iter(arrived)?)?;
/// # let batch = collecting.finish(&nearprint_tasks::CollectPolicy::default(), |_| String::new())?;
/// // `batch` is a `QueryBatch` with the fingerprints 6, 7 and `u64::MAX`.
/// let (rows, values) = QueryRows::group(&batch.fingerprints, Arc::clone(&batch.sketches))?;
/// let all = 0..values.len();
/// let queries = QueryParts::try_new(values, TablePlan::new(64, 3, &[0, 0, 0, 0])?, 1, Kernel::best())?;
/// let context = Arc::new(MapContext {
///     batch: Arc::new(batch),
///     rows: Arc::new(rows),
///     queries: Arc::new(queries),
///     verifier: Verifier { max_distance: 3, max_sketch_distance: None },
///     loss: LossLimit::NONE,
///     itself: true,
///     ids_are_names: true,
///     want: Want::AllPairs,
///     notes_classes: false,
///     files: Arc::default(),
///     room: Room::new(1, 2, 0),
///     progress: nearprint_storage::Progress::default(),
/// });
/// let mut batches = map_task(&context, &MapTask::Itself { values: all, part: 0 });
/// let mut n_pairs = 0;
/// while let Some(batch) = batches.try_next().await? {
///     if let TaskBatch::Rows(pairs) = batch {
///         n_pairs += pairs.num_rows();
///     }
/// }
/// assert_eq!(n_pairs, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub fn map_task(context: &Arc<MapContext>, task: &MapTask) -> BoxStream<'static, Result<TaskBatch>> {
    let (context, task) = (Arc::clone(context), task.clone());
    produce("map", move |sender| async move {
        let tables = Arc::new(context.queries.tables(task.part()).await?);
        let counts = match task {
            MapTask::Itself { values, .. } => {
                let (own, to) = (Arc::clone(&context), sender.clone());
                context.room.compute(move || map_itself(&own, &tables, values, to)).await?
            }
            MapTask::Existing { slices, .. } => map_piece(&context, &tables, slices, &sender).await?,
        };
        sender.send(TaskBatch::Notes(counts.notes()?)).await
    })
}

/// The number of pairs of fingerprints that are held before the documents behind them are looked at.
const PAIRS_HELD: usize = 1 << 19;

/// Maps the last of `ranges`. A range with too many pairs is cut first. Returns the pairs, and leaves the ranges that
/// are still to be mapped.
fn map_last(ranges: &mut Vec<Range<usize>>, mut map: impl FnMut(Range<usize>, &mut dyn FnMut(Pair))) -> Vec<Pair> {
    let mut pairs = Vec::new();
    while let Some(range) = ranges.pop() {
        let held = if range.len() > 1 { PAIRS_HELD } else { usize::MAX };
        let mut n_pairs = 0;
        map(range.clone(), &mut |pair| {
            n_pairs += 1;
            if n_pairs <= held {
                pairs.push(pair);
            }
        });
        if n_pairs <= held {
            break;
        }
        pairs.clear();
        let step = range.len().div_ceil(n_pairs.div_ceil(PAIRS_HELD / 2));
        ranges.extend(range.clone().step_by(step).map(|at| at..range.end.min(at + step)));
    }
    pairs
}

fn map_itself(context: &MapContext, tables: &PartTables, values: Range<usize>, sender: Sender) -> Result<MapCounts> {
    let mut out = PairWriter::new(context, sender);
    let own = values.start..values.end.min(tables.end()).max(values.start);
    for value in context.rows.repeated(row_number(own.start)..row_number(own.end)) {
        out.new_new(value, value, 0)?;
    }
    let mut counts = MapCounts { n_rows: values.len() as u64, ..MapCounts::default() };
    let seen = Seen::new(&context.progress, counts.n_rows);
    let mut ranges = vec![values];
    while !ranges.is_empty() {
        let pairs = context.room.map(|scratch| {
            map_last(&mut ranges, |range, found| {
                if context.queries.n_parts() == 1 {
                    return tables.queries.map_self_counted(range, scratch, &mut |n| seen.add(n), found);
                }
                tables.map(range.start, &context.queries.values()[range], scratch, |pair| {
                    if pair.query < pair.existing {
                        found(pair);
                    }
                });
            })
        });
        counts.n_candidates += pairs.len() as u64;
        for pair in pairs {
            out.new_new(pair.query, pair.existing, pair.distance)?;
        }
    }
    seen.all();
    out.finish()?;
    Ok(counts)
}

/// Counts the rows of a task while they are mapped. Each row counts once, though ranges with too many pairs are mapped
/// again.
#[derive(Debug)]
struct Seen {
    progress: Progress,
    n_rows: u64,
    n_seen: AtomicU64,
}

impl Seen {
    fn new(progress: &Progress, n_rows: u64) -> Self {
        Self { progress: progress.clone(), n_rows, n_seen: AtomicU64::new(0) }
    }

    fn add(&self, n: usize) {
        let before = self.n_seen.fetch_add(n as u64, atomic::Ordering::Relaxed);
        self.progress.advance((before + n as u64).min(self.n_rows) - before.min(self.n_rows));
    }

    /// Counts the rows that no range has counted, such as those that share a fingerprint.
    fn all(&self) {
        let before = self.n_seen.swap(self.n_rows, atomic::Ordering::Relaxed);
        self.progress.advance(self.n_rows - before.min(self.n_rows));
    }
}

/// The number of pieces of pairs whose documents are fetched at the same time.
const FETCHED_AT_ONCE: usize = 8;

/// Maps a piece.
async fn map_piece(
    context: &Arc<MapContext>,
    tables: &Arc<PartTables>,
    slices: Vec<FileSlice>,
    sender: &Sender,
) -> Result<MapCounts> {
    // A piece whose columns are only read waits for its turn to be decoded with them; others wait before they are read.
    let ahead = match packed_bytes(context, &slices)? {
        Some(n_bytes) => {
            let permit = context.room.read_ahead(n_bytes).await;
            Some((fetch_columns(context, &slices).await?, permit))
        }
        None => None,
    };
    let _permit = context.room.under_way.acquire().await;
    let (columns, permit) = match ahead {
        Some(read) => read,
        None => {
            // Decoding counts as computing, and takes memory of its own.
            let _computes = context.room.threads.acquire().await;
            (fetch_columns(context, &slices).await?, None)
        }
    };
    let fingerprint_bytes = columns.iter().flatten().map(FetchedColumn::n_bytes).sum();
    let own = Arc::clone(context);
    let decode = move || {
        let decoded = slices.into_par_iter().zip(columns).map(|(slice, columns)| {
            let values = decode(&own, &slice.file, &columns)?;
            Ok((slice, values))
        });
        in_pool(|| decoded.collect::<Result<Vec<(FileSlice, ExistingValues)>>>())
    };
    let piece = Arc::new(context.room.compute(decode).await?);
    drop(permit);
    let n_rows = piece.iter().map(|(_, values)| values.n_places() as u64).sum();
    let mut counts = MapCounts { n_rows, fingerprint_bytes, ..MapCounts::default() };
    let fetched = Fetched::default();
    let seen = Arc::new(Seen::new(&context.progress, n_rows));
    let mut ranges = vec![piece.iter().map(|(_, values)| 0..values.values().len()).collect()];
    while !ranges.is_empty() {
        let (their, mapped, counted) = (Arc::clone(tables), Arc::clone(&piece), Arc::clone(&seen));
        let map = move |scratch: &mut TogetherScratch<u64>| {
            let pairs = map_last_together(&their, &mapped, &mut ranges, scratch, &counted);
            (pairs, ranges)
        };
        let pairs;
        (pairs, ranges) = context.room.map_together(map).await?;
        let sliced = Arc::clone(&piece);
        let of_slices = move || {
            let of_slice = |(_, values): &(FileSlice, ExistingValues)| pairs_of(&pairs, values.values());
            Ok(in_pool(|| sliced.par_iter().map(of_slice).collect::<Vec<Vec<Pair>>>()))
        };
        let pairs = context.room.compute(of_slices).await?;
        counts.n_candidates += pairs.iter().map(|pairs| pairs.len() as u64).sum::<u64>();
        let mut near = Vec::new();
        for ((slice, values), pairs) in piece.iter().zip(&pairs) {
            near.extend(pieces(pairs, values).into_iter().map(|near| Ok::<_, TaskError>((slice, values, near))));
        }
        let expanded = stream::iter(near).try_for_each_concurrent(FETCHED_AT_ONCE, |(slice, values, near)| {
            expand(context, slice, values, near, &fetched, sender)
        });
        expanded.await?;
    }
    seen.all();
    fetched.add_to(&mut counts);
    // A closure is over before its result is there, and so is its share of the piece.
    let shared = || TaskError::internal("map", "a piece that is mapped is still in use");
    let piece = Arc::into_inner(piece).ok_or_else(shared)?;
    context.room.keep_values(piece.into_iter().map(|(_, values)| values.into_room()).collect());
    Ok(counts)
}

/// The number of row groups of a piece that are read at the same time.
const READ_AT_ONCE: usize = 16;

/// Returns the bytes of the columns of a piece, or `None` if they are not only read but decoded too.
fn packed_bytes(context: &MapContext, slices: &[FileSlice]) -> Result<Option<u64>> {
    let bits = context.queries.plan().bits();
    let mut n_bytes = Some(0);
    for slice in slices {
        let of_slice = fingerprint_column::packed_bytes(&file(context, slice)?.parquet, slice.row_groups.clone(), bits);
        n_bytes = n_bytes.zip(of_slice).map(|(before, more)| before + more);
    }
    Ok(n_bytes)
}

fn file<'a>(context: &'a MapContext, slice: &FileSlice) -> Result<&'a ExistingFile> {
    let unknown = || TaskError::internal("map", format!("no file {} in this join", slice.file));
    context.files.get(&slice.file).ok_or_else(unknown)
}

/// Reads the columns of the row groups of each slice.
async fn fetch_columns(context: &MapContext, slices: &[FileSlice]) -> Result<Vec<Vec<FetchedColumn>>> {
    let bits = context.queries.plan().bits();
    let mut fetches = Vec::new();
    for slice in slices {
        let existing = file(context, slice)?;
        let of_groups = slice.row_groups.clone();
        fetches.extend(of_groups.map(|group| fingerprint_column::fetch(&existing.parquet, group, bits)));
    }
    let columns: Vec<FetchedColumn> = stream::iter(fetches).buffered(READ_AT_ONCE).try_collect().await?;
    let mut rest = columns.into_iter();
    Ok(slices.iter().map(|slice| rest.by_ref().take(slice.row_groups.len()).collect()).collect())
}

/// Decodes the columns of consecutive row groups of a file.
fn decode(context: &MapContext, url: &str, columns: &[FetchedColumn]) -> Result<ExistingValues> {
    let n_rows = columns.iter().map(FetchedColumn::n_rows).sum();
    let mut fingerprints = context.room.take_values(n_rows);
    // The fingerprints that are still in this memory are overwritten.
    fingerprints.resize(n_rows, 0);
    let mut rest = fingerprints.as_mut_slice();
    let mut parts = Vec::with_capacity(columns.len());
    for column in columns {
        let (now, later) = rest.split_at_mut(column.n_rows());
        parts.push((column, now));
        rest = later;
    }
    parts.into_par_iter().try_for_each(|(column, now)| column.decode(url, now))?;
    Ok(ExistingValues::group(context.queries.kernel(), fingerprints))
}

/// The ranges of values of each slice of a piece that are mapped together.
type Ranges = Vec<Range<usize>>;

/// Maps the last of `ranges`. Ranges with too many pairs are cut first. Returns the pairs, and leaves the ranges that are
/// still to be mapped.
fn map_last_together(
    tables: &PartTables,
    piece: &[(FileSlice, ExistingValues)],
    ranges: &mut Vec<Ranges>,
    scratch: &mut TogetherScratch<u64>,
    seen: &Seen,
) -> Vec<NearExisting<u64>> {
    let n_values: usize = piece.iter().map(|(_, values)| values.values().len()).sum();
    let held = (n_values / 4).max(PAIRS_HELD);
    while let Some(last) = ranges.pop() {
        let runs: Vec<&[u64]> = piece.iter().zip(&last).map(|((_, v), range)| &v.values()[range.clone()]).collect();
        // A piece without slices has no run, and nothing to map.
        let longest = runs.iter().copied().max_by_key(|run| run.len()).unwrap_or_default();
        let mut few: Vec<u64> = if longest.len() > 1 { Vec::new() } else { runs.concat() };
        few.sort_unstable();
        few.dedup();
        // A single value, which many slices may have, has no more pairs than there are queries.
        let (mapped, limit): (&[&[u64]], usize) = match few.len() {
            0 => (&runs, held),
            1 => (&[&few], usize::MAX),
            _ => {
                ranges.extend(cut_at(&last, &runs, few.into_iter().skip(1)));
                continue;
            }
        };
        match tables.map_together(mapped, scratch, limit, &|n| seen.add(n)) {
            Ok(pairs) => return pairs,
            Err(TooManyPairs { n_pairs }) => {
                let n_parts = n_pairs.div_ceil(held / 2).min(longest.len());
                ranges.extend(cut_at(&last, &runs, (1..n_parts).map(|i| longest[i * longest.len() / n_parts])));
            }
        }
    }
    Vec::new()
}

/// Cuts ranges at values, which ascend: a range before each of them, and one from the last on.
fn cut_at(ranges: &Ranges, runs: &[&[u64]], values: impl Iterator<Item = u64>) -> Vec<Ranges> {
    let mut cut = Vec::new();
    let mut rest = ranges.clone();
    for value in values {
        let ends = runs.iter().zip(ranges).map(|(run, all)| all.start + run.partition_point(|&v| v < value));
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

/// The number of existing documents that are fetched at once.
const ROWS_FETCHED: usize = 1 << 16;

/// Pairs of some existing values, and the rows behind the values that are fetched for them.
#[derive(Debug, Clone)]
struct Piece<'a> {
    pairs: &'a [Pair],
    /// The range of rows behind each value. Only a piece of one value takes fewer than all.
    rows: Range<usize>,
}

/// Cuts pairs, sorted by existing value, so that a piece has at most [`ROWS_FETCHED`] rows behind it.
fn pieces<'a>(pairs: &'a [Pair], values: &ExistingValues) -> Vec<Piece<'a>> {
    let mut cut = Vec::new();
    let (mut start, mut n_rows) = (0, 0);
    let groups: Vec<&[Pair]> = pairs.chunk_by(|a, b| a.existing == b.existing).collect();
    let mut end = 0;
    for group in groups {
        let rows = values.n_rows(group[0].existing);
        if n_rows + rows > ROWS_FETCHED && n_rows > 0 {
            cut.push(Piece { pairs: &pairs[start..end], rows: 0..usize::MAX });
            (start, n_rows) = (end, 0);
        }
        end += group.len();
        if rows > ROWS_FETCHED {
            let parts = (0..rows).step_by(ROWS_FETCHED).map(|at| at..rows.min(at + ROWS_FETCHED));
            cut.extend(parts.map(|rows| Piece { pairs: group, rows }));
            start = end;
        } else {
            n_rows += rows;
        }
    }
    if start < end {
        cut.push(Piece { pairs: &pairs[start..end], rows: 0..usize::MAX });
    }
    cut
}

/// Pairs of one existing value, and the documents behind it.
struct Group {
    fingerprint: u64,
    /// The positions of the documents among those that are fetched.
    members: Vec<usize>,
    pairs: Vec<Pair>,
}

async fn expand(
    context: &Arc<MapContext>,
    slice: &FileSlice,
    values: &ExistingValues,
    piece: Piece<'_>,
    fetched: &Fetched,
    sender: &Sender,
) -> Result<()> {
    let rows_of = |value: u32| values.rows(value, &piece.rows);
    let groups: Vec<&[Pair]> = piece.pairs.chunk_by(|a, b| a.existing == b.existing).collect();
    let mut wanted: Vec<u32> = groups.iter().flat_map(|g| rows_of(g[0].existing)).collect();
    wanted.sort_unstable();
    let groups: Vec<Group> = groups
        .into_iter()
        .map(|g| {
            let members = rows_of(g[0].existing).map(|row| place_of(&wanted, row)).collect::<Result<_>>()?;
            Ok(Group { fingerprint: values.values()[g[0].existing as usize], members, pairs: g.to_vec() })
        })
        .collect::<Result<_>>()?;
    let mut places = places(&context.files[&slice.file], &slice.row_groups, &wanted).await?;
    let (mut groups, mut sketches) = (groups, vec![None; wanted.len()]);
    if context.verifier.max_sketch_distance.is_some() {
        let read = fetch_sketches(&places, wanted.len(), fetched).await?;
        let own = Arc::clone(context);
        let accepted;
        (groups, sketches, accepted) = context
            .room
            .compute(move || {
                let accepted = accept(&own, &mut groups, &read);
                Ok((groups, read, accepted))
            })
            .await?;
        if groups.is_empty() {
            return Ok(());
        }
        places.iter_mut().for_each(|of_file| of_file.retain(&accepted));
    }
    let documents = fetch_documents(context, &places, sketches, fetched).await?;
    let (own, sender) = (Arc::clone(context), sender.clone());
    context
        .room
        .compute(move || {
            let context = own;
            let mut out = PairWriter::new(&context, sender);
            for Group { fingerprint, members, pairs } in groups {
                let replaced = |d: &&ExistingDocument| context.itself && d.same_id_row.is_some();
                let members = members.iter().filter_map(|&i| documents[i].as_ref()).filter(|d| !replaced(d));
                let members: Vec<&ExistingDocument> = members.collect();
                for pair in pairs {
                    out.new_existing(&pair, fingerprint, &members)?;
                }
            }
            out.finish()
        })
        .await
}

/// Returns which documents the verifier accepts in a pair, and leaves the pairs in which it accepts one. Only their
/// documents are fetched. Most candidates are near by chance, and end here.
fn accept(context: &MapContext, groups: &mut Vec<Group>, sketches: &[Option<Sketch>]) -> Vec<bool> {
    let mut accepted = vec![false; sketches.len()];
    groups.retain_mut(|group| {
        group.pairs.retain(|pair| {
            let mut any = false;
            for class in context.rows.classes_of(pair.query) {
                let sketch = context.rows.sketch(class);
                for &member in &group.members {
                    let found = context.verifier.verify(pair.distance, sketch, sketches[member].as_ref());
                    accepted[member] |= found.is_some();
                    any |= found.is_some();
                }
            }
            any
        });
        !group.pairs.is_empty()
    });
    accepted
}

/// Returns the position of a row in `wanted`, which ascends.
fn place_of(wanted: &[u32], row: u32) -> Result<usize> {
    let unknown = |_| TaskError::internal("map", format!("the document of row {row} was not asked for"));
    wanted.binary_search(&row).map_err(unknown)
}

#[cfg(test)]
mod tests {
    use super::place_of;
    use crate::error::TaskError;

    #[test]
    fn a_row_that_was_not_asked_for_is_a_defect_and_no_document_that_is_left_out() {
        assert_eq!(place_of(&[3, 5, 9], 5).ok(), Some(1));
        for row in [0, 4, 10, u32::MAX] {
            let missed = place_of(&[3, 5, 9], row);
            assert!(matches!(missed, Err(TaskError::Internal { stage: "map", .. })), "{row}: {missed:?}");
        }
    }
}
