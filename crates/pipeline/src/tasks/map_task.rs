//! One task of the map phase: existing fingerprints, or the queries' own, against the query tables.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryBuilder, BooleanBuilder, RecordBatch, StringBuilder, UInt8Builder, UInt16Builder,
    UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type, UInt64Type};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use nearprint_fingerprint::Sketch;
use nearprint_join::{Pair, Queries, QueryRows, Verifier};
use tokio::sync::Semaphore;

use super::{BATCH_ROWS, MapTask, Sender, blocking, produce};
use crate::columns::{Columns, fixed};
use crate::error::{PipelineError, Result};
use crate::fingerprints::check_fingerprints;
use crate::parquet_file::{ParquetFile, Read, selection};
use crate::progress::Progress;
use crate::query_batch::QueryBatch;
use crate::schema::{CANONICAL_ID, DOC_ID, FINGERPRINT, SKETCH, TEXT_HASH};

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
    pub(crate) rows: Arc<QueryRows<u64>>,
    pub(crate) queries: Arc<Queries<u64>>,
    pub(crate) verifier: Verifier,
    /// The batch is joined with itself: it replaces existing documents of the same ids.
    pub(crate) itself: bool,
    pub(crate) want: Want,
    pub(crate) files: Arc<HashMap<String, ExistingFile>>,
    pub(crate) permits: Semaphore,
    pub(crate) progress: Progress,
}

/// All existing fingerprints of a join.
#[derive(Debug, Default)]
pub(crate) struct Existing {
    pub(crate) files: Vec<ExistingFile>,
    /// Documents that take part, however their fingerprints are spread over files.
    pub(crate) n_live_rows: u64,
}

/// A file of existing fingerprints.
#[derive(Debug)]
pub(crate) struct ExistingFile {
    pub(crate) parquet: ParquetFile,
    pub(crate) documents: Documents,
}

/// Where the documents of a file's fingerprints are.
#[derive(Debug)]
pub(crate) enum Documents {
    /// Beside them, in the same rows.
    Here {
        /// Rows whose documents a later night has again.
        shadowed: RowSet,
    },
    /// In the runs that the rows name by their position here; none where a run takes no part.
    InRuns { runs: Arc<Vec<Option<RunFile>>> },
}

/// The fingerprints of a run, with their documents.
#[derive(Debug)]
pub(crate) struct RunFile {
    pub(crate) parquet: ParquetFile,
    /// Rows whose documents a later night has again.
    pub(crate) shadowed: RowSet,
}

impl ExistingFile {
    /// Whether a row takes no part, as far as that is known before its document is looked for.
    fn hides(&self, row: u32) -> bool {
        match &self.documents {
            Documents::Here { shadowed } => shadowed.contains(row),
            Documents::InRuns { .. } => false,
        }
    }
}

impl RunFile {
    /// Rows that are not shadowed.
    pub(crate) fn n_live_rows(&self) -> u64 {
        let n = self.parquet.n_rows();
        n - self.shadowed.n_below(n)
    }
}

/// Rows of a file, as bits; grows as rows are added.
#[derive(Debug, Default, Clone)]
pub(crate) struct RowSet {
    words: Vec<u64>,
}

impl RowSet {
    pub(crate) fn insert(&mut self, row: u32) {
        let word = row as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (row % 64);
    }

    pub(crate) fn n_below(&self, n_rows: u64) -> u64 {
        let whole = usize::try_from(n_rows / 64).unwrap_or(usize::MAX).min(self.words.len());
        let (below, rest) = self.words.split_at(whole);
        let last = rest.first().map_or(0, |word| word & ((1 << (n_rows % 64)) - 1));
        below.iter().chain([&last]).map(|word| u64::from(word.count_ones())).sum()
    }

    pub(crate) fn contains(&self, row: u32) -> bool {
        self.words.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }
}

/// Columns of pairs on their way to the reduce, which sorts by all of them in this order. `a` is a row of the batch; so is
/// `b` where the other document is `new`. The `id_b` of an existing one stands between the ids of the rows `b` − 1 and `b`: so
/// `b`, `new`, `id_b` sort as ids do, and new documents need not carry theirs.
const ALL_PAIRS: [&str; 6] = ["a", "b", "new", "id_b", "distance", "sketch_distance"];

/// Columns of forest candidates, nearest first: as above, and `fingerprint_b` and `text_hash_b` of an existing document; an
/// `edge` may join two components, a `kept` document may become canonical.
const FOREST: [&str; 10] =
    ["distance", "a", "b", "new", "id_b", "sketch_distance", "fingerprint_b", "edge", "kept", "text_hash_b"];

impl MapContext {
    pub(crate) fn schema(&self) -> SchemaRef {
        pair_schema(self.want)
    }
}

pub(crate) fn pair_schema(want: Want) -> SchemaRef {
    let field = |name: &&str| {
        let (data_type, nullable) = match *name {
            "a" | "b" => (DataType::UInt32, false),
            "id_b" => (DataType::Utf8, false),
            "distance" => (DataType::UInt8, false),
            "sketch_distance" => (DataType::UInt16, true),
            "fingerprint_b" => (DataType::UInt64, true),
            "text_hash_b" => (DataType::Binary, true),
            _ => (DataType::Boolean, false),
        };
        Field::new(*name, data_type, nullable)
    };
    let fields: Vec<Field> = match want {
        Want::AllPairs => ALL_PAIRS.iter().map(field).collect(),
        Want::Forest => FOREST.iter().map(field).collect(),
    };
    Arc::new(Schema::new(fields))
}

/// The pairs of a task, each at most once, in no particular order.
pub(crate) fn map_task(context: &Arc<MapContext>, task: &MapTask) -> BoxStream<'static, Result<RecordBatch>> {
    let (context, task) = (Arc::clone(context), task.clone());
    produce("map", |sender| async move {
        let permits = Arc::clone(&context);
        let _permit = permits.permits.acquire().await;
        match task {
            MapTask::Itself { values } => blocking("map", move || map_itself(&context, values, sender)).await,
            MapTask::Existing { file, row_groups } => {
                for row_group in row_groups {
                    map_row_group(&context, &file, row_group, &sender).await?;
                }
                Ok(())
            }
        }
    })
}

fn map_itself(context: &MapContext, values: Range<usize>, sender: Sender) -> Result<()> {
    let mut out = PairWriter::new(context, sender);
    let value = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
    for i in values.clone() {
        out.new_new(value(i), value(i), 0)?;
    }
    // Pairs are gathered before rows are expanded: an error cannot leave the probe's callback.
    for slice in slices(values) {
        let mut pairs = Vec::new();
        context.queries.map_self(slice.clone(), |pair| pairs.push(pair));
        for pair in pairs {
            out.new_new(pair.query, pair.existing, pair.distance)?;
        }
        context.progress.advance(slice.len() as u64);
    }
    out.finish()
}

/// Values probed before their pairs are expanded.
const SLICE_VALUES: usize = 4096;

fn slices(values: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = values.end;
    values.step_by(SLICE_VALUES).map(move |start| start..end.min(start + SLICE_VALUES))
}

/// The distinct fingerprints of a row group, ascending, and the rows behind each.
#[derive(Debug, Default)]
struct ExistingValues {
    values: Vec<u64>,
    /// `rows[starts[v]..starts[v + 1]]` have value v.
    starts: Vec<usize>,
    /// Rows of the row group.
    rows: Vec<u32>,
}

impl ExistingValues {
    fn rows(&self, value: usize) -> &[u32] {
        &self.rows[self.starts[value]..self.starts[value + 1]]
    }
}

/// Pairs of fingerprints held before the documents behind them are fetched.
const PAIRS_HELD: usize = 1 << 19;

async fn map_row_group(context: &Arc<MapContext>, file: &str, row_group: usize, sender: &Sender) -> Result<()> {
    let existing = &context.files[file];
    let first_row = existing.parquet.rows_before(row_group);
    let values = Arc::new(read_values(existing, row_group, first_row, context.queries.plan().bits()).await?);
    let n_values = values.values.len();
    let mut next = 0;
    while next < n_values {
        let (probing, known) = (Arc::clone(context), Arc::clone(&values));
        let (pairs, reached) = blocking("map", move || {
            let mut pairs: Vec<Pair> = Vec::new();
            let mut at = next;
            while at < n_values && pairs.len() < PAIRS_HELD {
                let slice = at..n_values.min(at + SLICE_VALUES);
                probing.queries.map(&known.values[slice.clone()], |p| {
                    pairs.push(Pair { existing: p.existing + u32::try_from(at).unwrap_or(u32::MAX), ..p });
                });
                probing.progress.advance(known.starts[slice.end] as u64 - known.starts[slice.start] as u64);
                at = slice.end;
            }
            pairs.sort_unstable_by_key(|p| (p.existing, p.query));
            Ok((pairs, at))
        })
        .await?;
        next = reached;
        for piece in pieces(&pairs, &values) {
            expand(context, file, row_group, &values, piece, sender).await?;
        }
    }
    Ok(())
}

/// All not shadowed fingerprints of a row group.
async fn read_values(existing: &ExistingFile, row_group: usize, first_row: u64, bits: u32) -> Result<ExistingValues> {
    let read = Read { row_groups: vec![row_group], columns: &[FINGERPRINT], rows: None, batch_rows: BATCH_ROWS };
    let mut batches = existing.parquet.stream(read)?;
    let url = &existing.parquet.file.url;
    let mut found: Vec<(u64, u32)> = Vec::new();
    let mut row = 0u32;
    while let Some(batch) = batches.try_next().await? {
        let fingerprints = Columns { batch: &batch, file: url }.primitive::<UInt64Type>(FINGERPRINT)?;
        check_fingerprints(url, first_row + u64::from(row) + 1, bits, fingerprints)?;
        for &fingerprint in fingerprints.values() {
            let in_file = u32::try_from(first_row + u64::from(row)).unwrap_or(u32::MAX);
            if !existing.hides(in_file) {
                found.push((fingerprint, row));
            }
            row += 1;
        }
    }
    if !found.is_sorted() {
        found.sort_unstable();
    }
    Ok(collapse(&found))
}

fn collapse(found: &[(u64, u32)]) -> ExistingValues {
    let mut collapsed = ExistingValues::default();
    for (at, &(value, row)) in found.iter().enumerate() {
        if collapsed.values.last() != Some(&value) {
            collapsed.values.push(value);
            collapsed.starts.push(at);
        }
        collapsed.rows.push(row);
    }
    collapsed.starts.push(found.len());
    collapsed
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
        let rows = values.rows(group[0].existing as usize).len();
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

/// An existing document that shares a pair, and the row of the batch with the same id.
#[derive(Debug)]
struct ExistingDocument {
    id: String,
    sketch: Option<Sketch>,
    text_hash: Option<[u8; 16]>,
    kept: bool,
    /// The first row of the batch whose id is not smaller.
    before_row: u32,
    same_id_row: Option<u32>,
}

async fn expand(
    context: &Arc<MapContext>,
    file: &str,
    row_group: usize,
    values: &Arc<ExistingValues>,
    piece: Piece<'_>,
    sender: &Sender,
) -> Result<()> {
    let rows_of = |value: u32| {
        let rows = values.rows(value as usize);
        &rows[piece.rows.start.min(rows.len())..piece.rows.end.min(rows.len())]
    };
    let groups: Vec<&[Pair]> = piece.pairs.chunk_by(|a, b| a.existing == b.existing).collect();
    let mut wanted: Vec<u32> = groups.iter().flat_map(|g| rows_of(g[0].existing)).copied().collect();
    wanted.sort_unstable();
    let documents = fetch(context, &context.files[file], row_group, &wanted).await?;
    let at = |row: u32| wanted.binary_search(&row).unwrap_or(usize::MAX);
    let groups: Vec<(u64, Vec<usize>, Vec<Pair>)> = groups
        .into_iter()
        .map(|g| {
            (values.values[g[0].existing as usize], rows_of(g[0].existing).iter().map(|&r| at(r)).collect(), g.to_vec())
        })
        .collect();
    let (context, sender) = (Arc::clone(context), sender.clone());
    blocking("map", move || {
        let mut out = PairWriter::new(&context, sender);
        for (fingerprint, members, pairs) in groups {
            let replaced = |d: &&ExistingDocument| context.itself && d.same_id_row.is_some();
            let members = members.iter().filter_map(|&i| documents.get(i)?.as_ref()).filter(|d| !replaced(d));
            let members: Vec<&ExistingDocument> = members.collect();
            for pair in pairs {
                out.new_existing(&pair, fingerprint, &members)?;
            }
        }
        out.finish()
    })
    .await
}

/// The documents of `rows` (ascending) of a row group, in their order; none where a row takes no part.
async fn fetch(
    context: &MapContext,
    existing: &ExistingFile,
    row_group: usize,
    rows: &[u32],
) -> Result<Vec<Option<ExistingDocument>>> {
    let runs = match &existing.documents {
        Documents::Here { .. } => {
            let found = fetch_documents(context, &existing.parquet, vec![row_group], rows).await?;
            return Ok(found.into_iter().map(Some).collect());
        }
        Documents::InRuns { runs } => runs,
    };
    let mut by_run: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
    for (position, (run, row)) in resolve(&existing.parquet, row_group, rows).await?.into_iter().enumerate() {
        by_run.entry(run).or_default().push((row, position));
    }
    let mut documents: Vec<Option<ExistingDocument>> = rows.iter().map(|_| None).collect();
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

/// (run, row of the run) of `rows` (ascending) of a segment's row group, in their order.
async fn resolve(parquet: &ParquetFile, row_group: usize, rows: &[u32]) -> Result<Vec<(u32, u32)>> {
    let selected = Some(selection(rows, parquet.row_group_rows(row_group)));
    let read = Read { row_groups: vec![row_group], columns: &["run", "row"], rows: selected, batch_rows: BATCH_ROWS };
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
        |what: String| PipelineError::bad_file(&segment.parquet.file.url, format!("{what} is not in the store"));
    let Some(file) = runs.get(run as usize).ok_or_else(|| unknown(format!("run {run}")))? else {
        return Ok(Vec::new());
    };
    rows.retain(|(row, _)| !file.shadowed.contains(*row));
    rows.sort_unstable();
    if let Some((row, _)) = rows.last().filter(|(row, _)| u64::from(*row) >= file.parquet.n_rows()) {
        return Err(unknown(format!("row {row} of run {run}")));
    }
    let wanted: Vec<u32> = rows.iter().map(|(row, _)| *row).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let all_groups = (0..file.parquet.n_row_groups()).collect();
    let documents = fetch_documents(context, &file.parquet, all_groups, &wanted).await?;
    Ok(rows.into_iter().map(|(_, position)| position).zip(documents).collect())
}

/// Ids and what verification and decisions need, of `rows` (ascending) of row groups laid end to end, by page index.
async fn fetch_documents(
    context: &MapContext,
    parquet: &ParquetFile,
    row_groups: Vec<usize>,
    rows: &[u32],
) -> Result<Vec<ExistingDocument>> {
    let mut columns = vec![DOC_ID];
    if context.verifier.max_sketch_distance.is_some() {
        columns.push(SKETCH);
    }
    if context.want == Want::Forest {
        columns.extend([TEXT_HASH, CANONICAL_ID]);
    }
    let n_rows = row_groups.iter().map(|&g| parquet.row_group_rows(g)).sum();
    let selected = Some(selection(rows, n_rows));
    let mut batches = parquet.stream(Read { row_groups, columns: &columns, rows: selected, batch_rows: BATCH_ROWS })?;
    let mut documents = Vec::with_capacity(rows.len());
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let ids = columns.ids(DOC_ID)?;
        let (sketches, text_hashes) = (columns.bytes(SKETCH)?, columns.bytes(TEXT_HASH)?);
        let canonical = batch.column_by_name(CANONICAL_ID);
        for i in 0..batch.num_rows() {
            let id = ids.value(i);
            let before_row = context.batch.first_row_not_before(id);
            documents.push(ExistingDocument {
                id: id.to_owned(),
                before_row,
                same_id_row: context.batch.has_id(before_row, id).then_some(before_row),
                sketch: fixed::<32>(sketches, i).map(Sketch),
                text_hash: fixed(text_hashes, i),
                kept: canonical.is_none_or(|c| c.is_null(i)),
            });
        }
    }
    all_found(parquet, rows.len(), documents)
}

fn all_found<T>(parquet: &ParquetFile, n_rows: usize, found: Vec<T>) -> Result<Vec<T>> {
    if found.len() == n_rows {
        return Ok(found);
    }
    Err(PipelineError::bad_file(&parquet.file.url, format!("gave {} of {n_rows} rows", found.len())))
}

/// Builds batches of pairs and sends them.
struct PairWriter<'a> {
    context: &'a MapContext,
    sender: Sender,
    rows: PairRows,
}

#[derive(Default)]
struct PairRows {
    n: usize,
    a: UInt32Builder,
    id_b: StringBuilder,
    distance: UInt8Builder,
    sketch_distance: UInt16Builder,
    new: BooleanBuilder,
    b: UInt32Builder,
    fingerprint_b: UInt64Builder,
    edge: BooleanBuilder,
    kept: BooleanBuilder,
    text_hash_b: BinaryBuilder,
}

/// The far side of a pair.
enum Far<'a> {
    /// A row of the batch.
    New(u32),
    Existing {
        document: &'a ExistingDocument,
        fingerprint: u64,
        edge: bool,
    },
}

impl<'a> PairWriter<'a> {
    fn new(context: &'a MapContext, sender: Sender) -> Self {
        Self { context, sender, rows: PairRows::default() }
    }

    fn new_new(&mut self, value_a: u32, value_b: u32, distance: u8) -> Result<()> {
        let context = self.context;
        let mut outcome = Ok(());
        let found = |pair: nearprint_join::RowPair| {
            if outcome.is_ok() {
                outcome = self.push(pair.a, &Far::New(pair.b), distance, pair.sketch_distance);
            }
        };
        match context.want {
            Want::AllPairs => context.rows.all_pairs(value_a, value_b, distance, &context.verifier, found),
            Want::Forest => context.rows.forest_pairs(value_a, value_b, distance, &context.verifier, found),
        }
        outcome
    }

    /// The pairs of the documents behind one query value and one existing value.
    fn new_existing(&mut self, pair: &Pair, fingerprint: u64, members: &[&ExistingDocument]) -> Result<()> {
        let context = self.context;
        for class in context.rows.classes_of(pair.query) {
            let sketch = context.rows.sketch(class);
            let verified = members.iter().filter_map(|document| {
                let distance = context.verifier.verify(pair.distance, sketch, document.sketch.as_ref())?;
                Some((*document, distance))
            });
            match context.want {
                Want::AllPairs => {
                    for (document, sketch_distance) in verified {
                        self.all_of_class(class, document, pair.distance, sketch_distance, fingerprint)?;
                    }
                }
                Want::Forest => self.few_of_class(class, verified, pair.distance, fingerprint)?,
            }
        }
        Ok(())
    }

    fn all_of_class(
        &mut self,
        class: u32,
        document: &ExistingDocument,
        distance: u8,
        sketch_distance: Option<u16>,
        fingerprint: u64,
    ) -> Result<()> {
        for &row in self.context.rows.members(class) {
            if document.same_id_row != Some(row) {
                self.push(row, &Far::Existing { document, fingerprint, edge: true }, distance, sketch_distance)?;
            }
        }
        Ok(())
    }

    /// The forest needs the first pair, by (id_a, id_b), of a class and an existing fingerprint; decisions the kept existing
    /// document with the smallest id.
    fn few_of_class<'d>(
        &mut self,
        class: u32,
        verified: impl Iterator<Item = (&'d ExistingDocument, Option<u16>)>,
        distance: u8,
        fingerprint: u64,
    ) -> Result<()> {
        let (mut any, mut kept) = (Smallest::default(), Smallest::default());
        for found in verified {
            any.offer(found);
            if found.0.kept {
                kept.offer(found);
            }
        }
        let members = self.context.rows.members(class);
        if !self.context.itself {
            // Nothing else joins the members, so each needs a pair of its own.
            for row in members {
                if let Some((document, sketch_distance)) = any.other_than(*row) {
                    self.push(*row, &Far::Existing { document, fingerprint, edge: true }, distance, sketch_distance)?;
                }
            }
            return Ok(());
        }
        // The batch joined with itself replaces existing documents of its ids, so any pair is allowed.
        let edge = any.two[0];
        if let Some((document, sketch_distance)) = edge {
            self.push(members[0], &Far::Existing { document, fingerprint, edge: true }, distance, sketch_distance)?;
        }
        if let Some((document, sketch_distance)) = kept.two[0]
            && !edge.is_some_and(|(other, _)| std::ptr::eq(other, document))
        {
            self.push(members[0], &Far::Existing { document, fingerprint, edge: false }, distance, sketch_distance)?;
        }
        Ok(())
    }

    fn push(&mut self, a: u32, far: &Far<'_>, distance: u8, sketch_distance: Option<u16>) -> Result<()> {
        let rows = &mut self.rows;
        rows.n += 1;
        rows.a.append_value(a);
        rows.distance.append_value(distance);
        rows.sketch_distance.append_option(sketch_distance);
        match far {
            Far::New(row) => rows.far(*row, true, ""),
            Far::Existing { document, .. } => rows.far(document.before_row, false, &document.id),
        }
        if self.context.want == Want::Forest {
            rows.candidate(far);
        }
        if self.rows.n >= BATCH_ROWS { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let batch = rows.into_batch(self.context.want)?;
        self.sender.send_blocking(batch)
    }

    fn finish(mut self) -> Result<()> {
        if self.rows.n > 0 { self.send() } else { Ok(()) }
    }
}

impl PairRows {
    fn far(&mut self, b: u32, new: bool, id: &str) {
        self.b.append_value(b);
        self.new.append_value(new);
        self.id_b.append_value(id);
    }

    fn candidate(&mut self, far: &Far<'_>) {
        let (fingerprint, edge, kept, text_hash) = match far {
            Far::New(_) => (None, true, false, None),
            Far::Existing { document, fingerprint, edge } => {
                (Some(*fingerprint), *edge, document.kept, document.text_hash.as_ref())
            }
        };
        self.fingerprint_b.append_option(fingerprint);
        self.edge.append_value(edge);
        self.kept.append_value(kept);
        self.text_hash_b.append_option(text_hash);
    }

    fn into_batch(mut self, want: Want) -> Result<RecordBatch> {
        let mut column = |name: &str| -> ArrayRef {
            match name {
                "a" => Arc::new(self.a.finish()),
                "id_b" => Arc::new(self.id_b.finish()),
                "distance" => Arc::new(self.distance.finish()),
                "sketch_distance" => Arc::new(self.sketch_distance.finish()),
                "new" => Arc::new(self.new.finish()),
                "b" => Arc::new(self.b.finish()),
                "fingerprint_b" => Arc::new(self.fingerprint_b.finish()),
                "edge" => Arc::new(self.edge.finish()),
                "kept" => Arc::new(self.kept.finish()),
                _ => Arc::new(self.text_hash_b.finish()),
            }
        };
        let schema = pair_schema(want);
        let columns = schema.fields().iter().map(|f| column(f.name())).collect();
        RecordBatch::try_new(schema, columns)
            .map_err(|e| PipelineError::Internal { stage: "map", reason: e.to_string() })
    }
}

type Found<'d> = (&'d ExistingDocument, Option<u16>);

/// The documents with the two smallest ids: two, since a row never pairs with the document of its own id.
#[derive(Default)]
struct Smallest<'d> {
    two: [Option<Found<'d>>; 2],
}

impl<'d> Smallest<'d> {
    fn offer(&mut self, found: Found<'d>) {
        let before = |other: &Option<Found<'d>>| other.is_none_or(|(document, _)| found.0.id < document.id);
        let known = self.two.iter().flatten().any(|(document, _)| document.id == found.0.id);
        if known {
            return;
        }
        if before(&self.two[0]) {
            self.two[1] = self.two[0].replace(found);
        } else if before(&self.two[1]) {
            self.two[1] = Some(found);
        }
    }

    fn other_than(&self, row: u32) -> Option<Found<'d>> {
        self.two.into_iter().flatten().find(|(document, _)| document.same_id_row != Some(row))
    }
}
