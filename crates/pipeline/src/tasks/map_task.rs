//! One task of the map phase: existing fingerprints, or the queries' own, against the query tables.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{SchemaRef, UInt32Type};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use nearprint_fingerprint::Sketch;
use nearprint_join::{MapScratch, Pair, QueryRows, Verifier};
use tokio::sync::Semaphore;

use super::class_pairs::ClassPairs;
use super::existing_values::ExistingValues;
use super::pair_writer::{ExistingDocument, PairWriter, pair_schema};
use super::{MapTask, Sender, produce};
use crate::batch::query_batch::QueryBatch;
use crate::error::{PipelineError, Result};
use crate::plan::query_parts::{PartTables, PartTurns, QueryParts};
use nearprint_dataset::fingerprint_column::{self, FetchedColumn};
use nearprint_dataset::schema::{CANONICAL_ID, DOC_ID, SKETCH, TEXT_HASH};
use nearprint_dataset::{BATCH_ROWS, DatasetError};
use nearprint_dataset::{Columns, fixed};
use nearprint_dataset::{ParquetFile, Read, selection};
use nearprint_storage::Progress;
use nearprint_storage::blocking;
use nearprint_storage::locked;
use nearprint_storage::row_number;
use nearprint_store::{ExistingDocuments, ExistingFile, RunFile};

/// Which pairs a task reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// Every verified pair of documents.
    AllPairs,
    /// Those that the spanning forest and the decisions can need.
    Forest,
}

/// What all map tasks of a run share.
#[derive(Debug)]
pub(crate) struct MapContext {
    pub(crate) batch: Arc<QueryBatch>,
    pub(crate) rows: Arc<QueryRows>,
    pub(crate) queries: Arc<QueryParts>,
    pub(crate) turns: Arc<PartTurns>,
    pub(crate) verifier: Verifier,
    /// The batch is joined with itself: it replaces existing documents of the same ids.
    pub(crate) itself: bool,
    /// Whether equal ids are one document; not so where row numbers stand in for the batch's.
    pub(crate) ids_are_names: bool,
    pub(crate) want: Want,
    /// Pairs of new documents, of which each is found once: the most that all mappers together may send where all pairs are asked for,
    /// and how many they have sent.
    pub(crate) max_new_pairs: u64,
    pub(crate) n_new_pairs: AtomicU64,
    /// Where pairs of classes go that decisions need.
    pub(crate) class_pairs: Option<Arc<ClassPairs>>,
    pub(crate) files: Arc<HashMap<String, ExistingFile>>,
    /// Rows that are mapped together, at most.
    pub(crate) piece_rows: u64,
    /// Tasks that may be under way: more than threads, so that some wait for their input while others compute.
    pub(crate) under_way: Semaphore,
    /// Threads that may compute.
    pub(crate) threads: Semaphore,
    /// Memory of pieces that are done.
    pub(crate) pieces: Mutex<Vec<PieceMemory>>,
    /// Memory of threads that map nothing.
    pub(crate) scratches: Mutex<Vec<MapScratch<u64>>>,
    pub(crate) progress: Progress,
}

/// Fingerprints of a piece, and room for those of the next one.
#[derive(Debug, Default)]
pub(crate) struct PieceMemory {
    values: ExistingValues,
    room: Vec<u64>,
}

impl MapContext {
    pub(crate) fn schema(&self) -> SchemaRef {
        pair_schema(self.want)
    }
}

/// The pairs of a task, each at most once, in no particular order.
pub(crate) fn map_task(context: &Arc<MapContext>, task: &MapTask) -> BoxStream<'static, Result<RecordBatch>> {
    let (context, task) = (Arc::clone(context), task.clone());
    produce("map", |sender| async move {
        // Before the permit, which tasks of a part whose turn it is need.
        let tables = Arc::new(context.turns.tables(task.part()).await?);
        let under_way = Arc::clone(&context);
        let _permit = under_way.under_way.acquire().await;
        match task {
            MapTask::Itself { values, .. } => {
                let own = Arc::clone(&context);
                context.compute(move || map_itself(&own, &tables, values, sender)).await
            }
            MapTask::Existing { file, row_groups, .. } => {
                for piece in context.files[&file].parquet.row_group_ranges(row_groups, context.piece_rows) {
                    map_piece(&context, &tables, &file, piece, &sender).await?;
                }
                Ok(())
            }
        }
    })
}

impl MapContext {
    /// Computes on one of the run's threads.
    async fn compute<T: Send + 'static>(&self, compute: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let _permit = self.threads.acquire().await;
        blocking("map", compute).await
    }

    /// Maps with memory that no other thread uses meanwhile.
    fn map<T>(&self, map: impl FnOnce(&mut MapScratch<u64>) -> T) -> T {
        let mut scratch = take(&self.scratches);
        let mapped = map(&mut scratch);
        keep(&self.scratches, scratch);
        mapped
    }
}

fn take<T: Default>(idle: &Mutex<Vec<T>>) -> T {
    locked(idle).pop().unwrap_or_default()
}

fn keep<T>(idle: &Mutex<Vec<T>>, done: T) {
    locked(idle).push(done);
}

/// Pairs of fingerprints held before the documents behind them are looked at.
const PAIRS_HELD: usize = 1 << 19;

/// Maps the last of `ranges`; one with too many pairs is cut first. Gives its pairs, and leaves those still to be mapped.
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

fn map_itself(context: &MapContext, tables: &PartTables, values: Range<usize>, sender: Sender) -> Result<()> {
    let mut out = PairWriter::new(context, sender);
    let own = values.start..values.end.min(tables.end()).max(values.start);
    for value in context.rows.repeated(row_number(own.start)..row_number(own.end)) {
        out.new_new(value, value, 0)?;
    }
    let n_values = values.len() as u64;
    let mut ranges = vec![values];
    while !ranges.is_empty() {
        let pairs = context.map(|scratch| {
            map_last(&mut ranges, |range, found| {
                if context.queries.n_parts() == 1 {
                    return tables.queries.map_self(range, scratch, found);
                }
                tables.map(range.start, &context.queries.values()[range], scratch, |pair| {
                    if pair.query < pair.existing {
                        found(pair);
                    }
                });
            })
        });
        for pair in pairs {
            out.new_new(pair.query, pair.existing, pair.distance)?;
        }
    }
    context.progress.advance(n_values);
    out.finish()
}

/// Maps row groups that stand next to each other.
async fn map_piece(
    context: &Arc<MapContext>,
    tables: &Arc<PartTables>,
    file: &str,
    row_groups: Range<usize>,
    sender: &Sender,
) -> Result<()> {
    let existing = &context.files[file];
    let bits = context.queries.plan().bits();
    let fetches = row_groups.clone().map(|row_group| fingerprint_column::fetch(&existing.parquet, row_group, bits));
    let columns = if fingerprint_column::is_packed(&existing.parquet, row_groups.clone(), bits) {
        futures::future::try_join_all(fetches).await?
    } else {
        // Decoding counts as computing, and takes memory of its own.
        let _permit = context.threads.acquire().await;
        futures::future::try_join_all(fetches).await?
    };
    let (own, their, url) = (Arc::clone(context), Arc::clone(tables), file.to_owned());
    let decode = move || {
        let PieceMemory { mut values, room: mut fingerprints } = take(&own.pieces);
        // What the room holds is overwritten.
        fingerprints.resize(columns.iter().map(FetchedColumn::n_rows).sum(), 0);
        let mut rest = fingerprints.as_mut_slice();
        for column in columns {
            let (now, later) = rest.split_at_mut(column.n_rows());
            column.decode(&url, now)?;
            rest = later;
        }
        own.progress.advance(fingerprints.len() as u64);
        let room = values.group(own.queries.kernel(), fingerprints);
        let all = 0..values.values().len();
        Ok(map_values(&own, &their, PieceMemory { values, room }, vec![all]))
    };
    let (mut memory, mut pairs, mut ranges) = context.compute(decode).await?;
    loop {
        for piece in pieces(&pairs, &memory.values) {
            expand(context, file, &row_groups, &memory.values, piece, sender).await?;
        }
        if ranges.is_empty() {
            break;
        }
        let (own, their) = (Arc::clone(context), Arc::clone(tables));
        (memory, pairs, ranges) = context.compute(move || Ok(map_values(&own, &their, memory, ranges))).await?;
    }
    keep(&context.pieces, memory);
    Ok(())
}

/// The next pairs of a piece's values, by existing value, and the ranges of values that are still to be mapped.
fn map_values(
    context: &MapContext,
    tables: &PartTables,
    memory: PieceMemory,
    mut ranges: Vec<Range<usize>>,
) -> (PieceMemory, Vec<Pair>, Vec<Range<usize>>) {
    let values = memory.values.values();
    let mut pairs = context
        .map(|scratch| map_last(&mut ranges, |range, found| tables.map(range.start, &values[range], scratch, found)));
    pairs.sort_unstable_by_key(|p| (p.existing, p.query));
    (memory, pairs, ranges)
}

/// Existing documents fetched at once.
const ROWS_FETCHED: usize = 1 << 16;

/// Pairs of some existing values, and which of the rows of the last of them.
#[derive(Debug, Clone)]
struct Piece<'a> {
    pairs: &'a [Pair],
    /// Rows behind each value, from and to; only a piece of one value takes fewer than all.
    rows: Range<usize>,
}

/// Cuts pairs, sorted by existing value, such that a piece has at most [`ROWS_FETCHED`] rows behind it.
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

async fn expand(
    context: &Arc<MapContext>,
    file: &str,
    row_groups: &Range<usize>,
    values: &ExistingValues,
    piece: Piece<'_>,
    sender: &Sender,
) -> Result<()> {
    let rows_of = |value: u32| values.rows(value, &piece.rows);
    let groups: Vec<&[Pair]> = piece.pairs.chunk_by(|a, b| a.existing == b.existing).collect();
    let mut wanted: Vec<u32> = groups.iter().flat_map(|g| rows_of(g[0].existing)).collect();
    wanted.sort_unstable();
    let documents = fetch(context, &context.files[file], row_groups, &wanted).await?;
    let groups: Vec<(u64, Vec<usize>, Vec<Pair>)> = groups
        .into_iter()
        .map(|g| {
            let members = rows_of(g[0].existing).map(|row| place_of(&wanted, row)).collect::<Result<_>>()?;
            Ok((values.values()[g[0].existing as usize], members, g.to_vec()))
        })
        .collect::<Result<_>>()?;
    let (own, sender) = (Arc::clone(context), sender.clone());
    context
        .compute(move || {
            let context = own;
            let mut out = PairWriter::new(&context, sender);
            for (fingerprint, members, pairs) in groups {
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

/// Where a row stands among those that were asked for, ascending.
fn place_of(wanted: &[u32], row: u32) -> Result<usize> {
    let unknown = |_| defect(format!("the document of row {row} was not asked for"));
    wanted.binary_search(&row).map_err(unknown)
}

fn defect(reason: String) -> PipelineError {
    PipelineError::Internal { stage: "map", reason }
}

/// The documents of `rows` (ascending) of row groups laid end to end, in their order; none where a row takes no part.
async fn fetch(
    context: &MapContext,
    existing: &ExistingFile,
    row_groups: &Range<usize>,
    rows: &[u32],
) -> Result<Vec<Option<ExistingDocument>>> {
    let mut documents: Vec<Option<ExistingDocument>> = rows.iter().map(|_| None).collect();
    let runs = match &existing.documents {
        ExistingDocuments::Here { shadowed } => {
            let before = existing.parquet.rows_before(row_groups.start);
            // Shadowed rows have numbers of 32 bits; other people's datasets, of which no row is shadowed, may be longer.
            let is_shadowed =
                |row: u32| u32::try_from(before + u64::from(row)).is_ok_and(|in_file| shadowed.contains(in_file));
            let live: Vec<usize> = (0..rows.len()).filter(|&i| !is_shadowed(rows[i])).collect();
            let wanted: Vec<u32> = live.iter().map(|&i| rows[i]).collect();
            let numbered_from = existing.numbered_from.map(|first| first + before);
            let row_groups = row_groups.clone().collect();
            let found = fetch_documents(context, &existing.parquet, numbered_from, row_groups, &wanted).await?;
            debug_assert_eq!(live.len(), found.len(), "a file gives all rows or fails");
            for (i, document) in live.into_iter().zip(found) {
                documents[i] = Some(document);
            }
            return Ok(documents);
        }
        ExistingDocuments::InRuns { runs } => runs,
    };
    let mut by_run: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
    for (position, (run, row)) in resolve(&existing.parquet, row_groups, rows).await?.into_iter().enumerate() {
        by_run.entry(run).or_default().push((row, position));
    }
    let fetches: Vec<_> =
        by_run.into_iter().map(|(run, rows)| fetch_of_run(context, existing, runs, run, rows)).collect();
    let mut fetched = futures::stream::iter(fetches).buffer_unordered(RUNS_AT_ONCE);
    while let Some(found) = fetched.try_next().await? {
        for (position, document) in found {
            documents[position] = Some(document);
        }
    }
    Ok(documents)
}

/// Runs of which one piece's documents are fetched at the same time.
const RUNS_AT_ONCE: usize = 8;

/// (run, row of the run) of `rows` (ascending) of a segment's row groups laid end to end, in their order.
async fn resolve(parquet: &ParquetFile, row_groups: &Range<usize>, rows: &[u32]) -> Result<Vec<(u32, u32)>> {
    let row_groups: Vec<usize> = row_groups.clone().collect();
    let selected = Some(selection(rows, row_groups.iter().map(|&g| parquet.row_group_rows(g)).sum()));
    let read = Read { row_groups, columns: &["run", "row"], rows: selected, batch_rows: BATCH_ROWS };
    let mut batches = parquet.stream(read)?;
    let mut places = Vec::with_capacity(rows.len());
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let (run, row) = (columns.primitive::<UInt32Type>("run")?, columns.primitive::<UInt32Type>("row")?);
        places.extend(run.values().iter().copied().zip(row.values().iter().copied()));
    }
    all_found(parquet, rows.len(), places)
}

/// The documents of (row, position) pairs of a run, with the positions; those of shadowed rows and of runs that take no part
/// are left out.
async fn fetch_of_run(
    context: &MapContext,
    segment: &ExistingFile,
    runs: &[Option<RunFile>],
    run: u32,
    mut rows: Vec<(u32, usize)>,
) -> Result<Vec<(usize, ExistingDocument)>> {
    let unknown =
        |what: String| DatasetError::bad_file(&segment.parquet.file.url, format!("{what} is not in the store"));
    let Some(file) = runs.get(run as usize).ok_or_else(|| unknown(format!("run {run}")))? else {
        return Ok(Vec::new());
    };
    rows.retain(|(row, _)| !file.shadowed.contains(*row));
    rows.sort_unstable();
    if let Some((row, _)) = rows.last().filter(|(row, _)| u64::from(*row) >= file.parquet.n_rows()) {
        return Err(unknown(format!("row {row} of run {run}")).into());
    }
    let wanted: Vec<u32> = rows.iter().map(|(row, _)| *row).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let all_groups = (0..file.parquet.n_row_groups()).collect();
    let documents = fetch_documents(context, &file.parquet, None, all_groups, &wanted).await?;
    debug_assert_eq!(rows.len(), documents.len(), "a file gives all rows or fails");
    Ok(rows.into_iter().map(|(_, position)| position).zip(documents).collect())
}

/// Ids and what verification and decisions need, of `rows` (ascending) of row groups laid end to end, by page index. Ids are
/// row numbers, counted on from `numbered_from`, where that is given.
async fn fetch_documents(
    context: &MapContext,
    parquet: &ParquetFile,
    numbered_from: Option<u64>,
    row_groups: Vec<usize>,
    rows: &[u32],
) -> Result<Vec<ExistingDocument>> {
    let number = |row: u32| numbered_from.map(|first| (first + u64::from(row)).to_string());
    let mut columns = Vec::new();
    if numbered_from.is_none() {
        columns.push(DOC_ID);
    }
    if context.verifier.max_sketch_distance.is_some() {
        columns.push(SKETCH);
    }
    if context.want == Want::Forest {
        columns.extend([TEXT_HASH, CANONICAL_ID]);
    }
    columns.retain(|column| parquet.has_column(column));
    if columns.is_empty() {
        let numbers = rows.iter().filter_map(|&row| number(row));
        let documents = numbers.map(|id| ExistingDocument::new(context, id, false)).collect();
        return all_found(parquet, rows.len(), documents);
    }
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let n_rows = row_groups.iter().map(|&g| parquet.row_group_rows(g)).sum();
    let selected = Some(selection(rows, n_rows));
    let mut batches = parquet.stream(Read { row_groups, columns: &columns, rows: selected, batch_rows: BATCH_ROWS })?;
    let mut documents = Vec::with_capacity(rows.len());
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let ids = if numbered_from.is_none() { Some(columns.ids(DOC_ID)?) } else { None };
        let (sketches, text_hashes) = (columns.bytes::<32>(SKETCH)?, columns.bytes::<16>(TEXT_HASH)?);
        let canonical = batch.column_by_name(CANONICAL_ID);
        for i in 0..batch.num_rows() {
            let row = *rows.get(documents.len()).ok_or_else(|| gave(parquet, documents.len() + 1, rows.len()))?;
            if ids.as_ref().is_some_and(|ids| ids.is_null(i)) {
                let reason = "doc_id is NULL: leave such rows out".to_owned();
                return Err(DatasetError::bad_file(&parquet.file.url, reason).into());
            }
            let mut document = match (&ids, number(row)) {
                (Some(ids), _) => ExistingDocument::new(context, ids.value(i).to_owned(), true),
                (None, Some(id)) => ExistingDocument::new(context, id, false),
                (None, None) => return Err(defect(format!("{} row {row}: no id", parquet.file.url))),
            };
            document.sketch = fixed::<32>(sketches, i).map(Sketch);
            document.text_hash = fixed(text_hashes, i);
            document.kept = canonical.is_none_or(|c| c.is_null(i));
            documents.push(document);
        }
    }
    all_found(parquet, rows.len(), documents)
}

impl ExistingDocument {
    /// A document whose id is the name of one, or only the number of its row.
    fn new(context: &MapContext, id: String, is_name: bool) -> Self {
        let before_row = context.batch.first_row_not_before(&id);
        let same = is_name && context.ids_are_names && context.batch.has_id(before_row, &id);
        let same_id_row = same.then_some(before_row);
        Self { id, sketch: None, text_hash: None, kept: true, before_row, same_id_row }
    }
}

fn all_found<T>(parquet: &ParquetFile, n_rows: usize, found: Vec<T>) -> Result<Vec<T>> {
    if found.len() == n_rows {
        return Ok(found);
    }
    Err(gave(parquet, found.len(), n_rows))
}

fn gave(parquet: &ParquetFile, n_found: usize, n_rows: usize) -> PipelineError {
    DatasetError::bad_file(&parquet.file.url, format!("gave {n_found} of {n_rows} rows")).into()
}

#[cfg(test)]
mod tests {
    use super::place_of;
    use crate::error::PipelineError;

    #[test]
    fn a_row_that_was_not_asked_for_is_a_defect_and_no_document_that_is_left_out() {
        assert_eq!(place_of(&[3, 5, 9], 5).ok(), Some(1));
        for row in [0, 4, 10, u32::MAX] {
            let missed = place_of(&[3, 5, 9], row);
            assert!(matches!(missed, Err(PipelineError::Internal { stage: "map", .. })), "{row}: {missed:?}");
        }
    }
}
