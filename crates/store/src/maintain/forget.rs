//! Forgetting documents by their ids: the runs that have them are written anew without them.
//!
//! A run is named by its content, and the shadows of other runs name it and the numbers of its rows. So a run that is
//! written anew takes over the shadows of its own rows, wherever they are. The shadows that name the former run then count
//! no more, because a shadow counts only if both of its runs take part, and no other run has to be written. The same holds for
//! what later nights decided again.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef, UInt32Type, UInt64Type};
use futures::TryStreamExt;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::{CANONICAL_ID, DOC_ID, EMPTY, REASON, REFERENCE, RUN, SHORT};
use nearprint_parquet::{Columns, ParquetFile, Read, selection};
use nearprint_storage::{Progress, row_number};

use crate::commit::{ChangeSet, Commit, Night};
use crate::families::StoredFamily;
use crate::redecided::{NewDecision, RESTORED, Redecision};
use crate::shadows::Shadow;
use crate::store::Store;
use crate::writer::{RunWriter, StagedRun, id_hash};

/// The ids of documents that a store forgets.
#[derive(Debug, Clone, Default)]
pub struct ForgottenIds {
    ids: HashSet<String>,
    hashes: HashSet<u64>,
    /// The ids are the lines of a text, in which an id with line breaks would be several.
    are_lines: bool,
}

impl ForgottenIds {
    /// Collects ids. Repeated ones count once.
    #[must_use]
    pub fn new(ids: impl IntoIterator<Item = String>) -> Self {
        let ids: HashSet<String> = ids.into_iter().collect();
        Self { hashes: ids.iter().map(|id| id_hash(id)).collect(), ids, are_lines: false }
    }

    /// Collects the ids of a text that has one a line. Blank lines do not count.
    #[must_use]
    pub fn of_lines(text: &str) -> Self {
        Self { are_lines: true, ..Self::new(lines(text).map(str::to_owned)) }
    }

    /// Returns whether a text of lines may mean an id that it cannot name: the id has line breaks, so it would stand there
    /// as other lines, and each of these that is not blank is among the ids.
    fn may_mean(&self, id: &str) -> bool {
        if !self.are_lines || !id.contains('\n') && !id.ends_with('\r') {
            return false;
        }
        let written = format!("{id}\n");
        let mut of_id = lines(&written).peekable();
        of_id.peek().is_some() && of_id.all(|line| self.has(line))
    }

    /// Returns whether an id is one of these.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Returns the number of different ids.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// Returns the lines of a text that are not blank. A line ends before `\n` or `\r\n`.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

/// The run of a night without the forgotten documents, in the spill folder.
pub struct RunWithout {
    /// The night's date.
    pub dt: String,
    /// The run.
    pub run: StagedRun,
    /// The number of documents that it had more.
    pub n_documents: u64,
    /// The number of documents that represent themselves now: a forgotten one represented them.
    pub n_represented: u64,
}

/// The rows that a store has of forgotten documents.
#[derive(Default)]
pub struct FoundDocuments {
    /// The runs that have to be replaced, the latest first.
    pub runs: Vec<RunWithout>,
    /// The ids that are those of documents.
    pub ids: HashSet<String>,
    /// The other documents that forgotten ones represented in their own nights, by date.
    pub represented: HashMap<String, HashSet<String>>,
}

/// A run that names forgotten documents.
struct Affected<'a> {
    night: &'a Night,
    /// The rows of forgotten documents, ascending.
    rows: Vec<u32>,
    /// The rows of other documents that forgotten ones represented in this night, ascending.
    represented: Vec<u32>,
    n_represented: u64,
}

/// What nights say about rows of each other, with the names of both runs.
struct Said {
    shadows: Vec<Shadow>,
    redecisions: Vec<Redecision>,
}

impl Affected<'_> {
    fn digest(&self) -> &str {
        &self.night.run.digest
    }

    /// Returns the shadows of the run without the forgotten rows: all of its own rows, and those that it casts on runs
    /// that stay as they are. `replaced` names all runs that are written anew, `renamed` those that already were.
    fn shadows(&self, all: &[Shadow], replaced: &HashSet<&str>, renamed: &HashMap<&str, Arc<str>>) -> Vec<Shadow> {
        let this: Arc<str> = "".into();
        let of_own_row = |shadow: &Shadow| {
            let by = renamed.get(&*shadow.by).unwrap_or(&shadow.by);
            Some(Shadow { run: Arc::clone(&this), by: Arc::clone(by), row: self.row_without(shadow.row)? })
        };
        let mut own: Vec<Shadow> = Vec::new();
        for shadow in all {
            if *shadow.run == *self.digest() {
                own.extend(of_own_row(shadow));
            } else if *shadow.by == *self.digest() && !replaced.contains(&*shadow.run) {
                own.push(Shadow { by: Arc::clone(&this), ..shadow.clone() });
            }
        }
        own.sort_unstable();
        own.dedup();
        own
    }

    /// Returns what was decided again of the rows of the run without the forgotten ones, and what it decided again of runs
    /// that stay as they are, like [`shadows`](Self::shadows). A row whose canonical document is forgotten is kept by its
    /// own run from now on, whatever later nights said.
    fn redecisions(
        &self,
        all: &[Redecision],
        replaced: &HashSet<&str>,
        renamed: &HashMap<&str, Arc<str>>,
        ids: &ForgottenIds,
    ) -> Vec<Redecision> {
        let this: Arc<str> = "".into();
        let mut own: Vec<Redecision> = Vec::new();
        for said in all {
            let decision = match said.decision.canonical.as_ref() {
                Some(canonical) if ids.has(&canonical.id) => {
                    NewDecision { canonical: None, reason: RESTORED.into(), ..said.decision.clone() }
                }
                _ => said.decision.clone(),
            };
            let decision = match ids.has(&decision.family) {
                true => NewDecision { family: family_left(&decision), ..decision },
                false => decision,
            };
            if *said.run == *self.digest() {
                let by = renamed.get(&*said.by).unwrap_or(&said.by);
                if let Some(row) = self.row_without(said.row)
                    && self.represented.binary_search(&said.row).is_err()
                {
                    own.push(Redecision { run: Arc::clone(&this), by: Arc::clone(by), row, decision });
                }
            } else if *said.by == *self.digest() && !replaced.contains(&*said.run) {
                own.push(Redecision { by: Arc::clone(&this), decision, ..said.clone() });
            }
        }
        own.sort_unstable();
        own.dedup();
        own
    }

    /// Returns whether a row of the run names a document of the own store that is not forgotten, if one of its dependents
    /// says so.
    fn stays_dependent(&self, row: u32) -> bool {
        self.represented.binary_search(&row).is_err()
    }

    /// Returns the number that a row of the run has without the forgotten ones, or `None` if it is one of them.
    fn row_without(&self, row: u32) -> Option<u32> {
        let before = self.rows.partition_point(|&gone| gone < row);
        let is_gone = self.rows.get(before) == Some(&row);
        // The rows before it are different numbers below it, so there are no more of them than its own number.
        (!is_gone).then(|| row - row_number(before))
    }

    /// Returns which of the next `n` rows from `first` stay.
    fn staying(&self, first: u32, n: usize) -> BooleanArray {
        (first..).take(n).map(|row| Some(self.rows.binary_search(&row).is_err())).collect()
    }
}

/// Finds the runs that name some documents, and writes them anew without these, each below `folder`. A document that
/// a forgotten one represented represents itself from then on.
///
/// # Errors
/// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the ids are the lines of a text that may mean an id with
/// line breaks; a file of the store is damaged or cannot be read; an error of the disk.
pub async fn runs_without(
    store: &Store,
    ids: &ForgottenIds,
    folder: &Path,
    progress: &Progress,
) -> Result<FoundDocuments> {
    let mut found = FoundDocuments::default();
    let mut affected = Vec::new();
    progress.start("forget", "nights", store.nights().len() as u64);
    for night in store.nights() {
        refuse_ambiguous(store, night, ids).await?;
        let (rows, represented) = rows_of(store, night, ids, &mut found.ids).await?;
        let (represented, of_night): (Vec<u32>, HashSet<String>) = represented.into_iter().unzip();
        if !of_night.is_empty() {
            found.represented.insert(night.dt.clone(), of_night);
        }
        let again = store.redecisions(night).await?;
        let named = again
            .iter()
            .filter(|said| said.decision.canonical.as_ref().is_some_and(|canonical| ids.has(&canonical.id)));
        let n_represented = (represented.len() + named.count()) as u64;
        let names_family = again.iter().any(|said| ids.has(&said.decision.family) || ids.has(&said.decision.id))
            || store.families(night).await?.iter().any(|of| ids.has(&of.family));
        if !rows.is_empty() || n_represented > 0 || names_family {
            affected.push(Affected { night, rows, represented, n_represented });
        }
        progress.advance(1);
    }
    if affected.is_empty() {
        return Ok(found);
    }
    let all: Vec<&Night> = store.nights().iter().collect();
    let said = Said { shadows: all_shadows(store).await?, redecisions: store.redecisions_of(&all).await? };
    let replaced: HashSet<&str> = affected.iter().map(Affected::digest).collect();
    let mut renamed: HashMap<&str, Arc<str>> = HashMap::new();
    // The later of two runs shadows the earlier one, which therefore finds its new name.
    for affected in affected.iter().rev() {
        let own = Said {
            shadows: affected.shadows(&said.shadows, &replaced, &renamed),
            redecisions: affected.redecisions(&said.redecisions, &replaced, &renamed, ids),
        };
        let run = rewritten(store, affected, ids, &own, &folder.join(&affected.night.dt)).await?;
        renamed.insert(affected.digest(), run.record.digest.as_str().into());
        found.runs.push(RunWithout {
            dt: affected.night.dt.clone(),
            run,
            n_documents: affected.rows.len() as u64,
            n_represented: affected.n_represented,
        });
    }
    Ok(found)
}

/// Commits nights in place of those of the same dates, without the segments and indexes of runs that they replace. If another
/// commit was faster, nothing is committed, and the result is `false`: the other nights may have to change too.
///
/// # Errors
/// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if `store gc` is deleting something that the commit
/// needs; an error if the store cannot be written.
pub async fn commit_forgetting(store: &Store, changed: Vec<Night>, changes: ChangeSet) -> Result<bool> {
    let Some(before) = &store.commit else {
        return Ok(false);
    };
    let mut changed: HashMap<String, Night> = changed.into_iter().map(|night| (night.dt.clone(), night)).collect();
    let mut replaced = HashSet::new();
    let mut nights = before.nights.clone();
    for night in &mut nights {
        if let Some(new) = changed.remove(&night.dt) {
            if new.run.digest != night.run.digest {
                replaced.insert(night.run.digest.clone());
            }
            *night = new;
        }
    }
    let mut commit = Commit { changes: Some(changes), ..before.next() };
    for derived in [&mut commit.segments, &mut commit.indexes] {
        derived.retain(|record| !record.runs.iter().any(|run| replaced.contains(run)));
    }
    store.put_commit(&commit.with_nights(nights)).await
}

/// Refuses ids of a text of lines that may mean a document of the night whose id has line breaks.
async fn refuse_ambiguous(store: &Store, night: &Night, ids: &ForgottenIds) -> Result<()> {
    if !ids.are_lines {
        return Ok(());
    }
    for (name, _) in store.datasets(night)? {
        let parquet = store.open_file(night, name).await?;
        let mut batches = parquet.stream(parquet.whole(&[DOC_ID]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            if let Some(id) = columns.strings(DOC_ID)?.iter().flatten().find(|id| ids.may_mean(id)) {
                return Err(ambiguous(store, &night.dt, id));
            }
        }
    }
    Ok(())
}

/// Makes the fault of a list of ids, one a line, that may mean an id with line breaks, or only the ids that are its lines.
fn ambiguous(store: &Store, dt: &str, id: &str) -> Fault {
    // As JSON writes it: quoted, with its line breaks escaped.
    let id = serde_json::Value::from(id).to_string();
    let reason = format!(
        "{dt} has the id {id}, which stands in a list of lines as other ids, all of which the list has: nothing was forgotten; \
         give the list as JSON lines, such as {{\"id\": {id}}}, in a file whose name ends in .jsonl"
    );
    Fault::usage(reason).at(store.folder.url())
}

/// Returns the rows of a night's forgotten documents, and those of its other documents that these, or forgotten documents of
/// other nights, represent in it, with their ids; both ascend. The ids of the documents are added to `found`.
async fn rows_of(
    store: &Store,
    night: &Night,
    ids: &ForgottenIds,
    found: &mut HashSet<String>,
) -> Result<(Vec<u32>, Vec<(u32, String)>)> {
    let candidates = candidates(store, night, ids).await?;
    let (mut rows, mut of_forgotten) = (Vec::new(), Vec::new());
    for (name, of_file) in store.datasets(night)? {
        let parquet = store.open_file(night, name).await?;
        let from = candidates.partition_point(|&row| row < of_file.start);
        let of_file_candidates = &candidates[from..candidates.partition_point(|&row| row < of_file.end)];
        let wanted: Vec<u32> = of_file_candidates.iter().map(|row| row - of_file.start).collect();
        let mut of_rows = of_file_candidates.iter();
        let selected = Some(selection(&wanted, parquet.n_rows()));
        let mut batches = parquet.stream(Read { rows: selected, ..parquet.whole(&[DOC_ID]) })?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            for (id, &row) in columns.strings(DOC_ID)?.iter().flatten().zip(&mut of_rows) {
                if ids.has(id) {
                    rows.push(row);
                    found.insert(id.to_owned());
                }
            }
        }
        if parquet.has_column(CANONICAL_ID) {
            of_forgotten.extend(represented(&parquet, of_file.start, &rows, ids).await?);
        }
    }
    debug_assert!(rows.is_sorted(), "rows that go are found by bisection");
    Ok((rows, of_forgotten))
}

/// Returns the rows of a night whose ids have the hash of a forgotten one, ascending.
async fn candidates(store: &Store, night: &Night, ids: &ForgottenIds) -> Result<Vec<u32>> {
    let parquet = store.open_file(night, "ids").await?;
    let mut batches = parquet.stream(parquet.whole(&["id_hash", "row"]))?;
    let mut candidates = Vec::new();
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let hashes = columns.primitive::<UInt64Type>("id_hash")?.values();
        let rows = columns.primitive::<UInt32Type>("row")?.values();
        candidates.extend(hashes.iter().zip(rows).filter(|(hash, _)| ids.hashes.contains(hash)).map(|(_, row)| *row));
    }
    candidates.sort_unstable();
    Ok(candidates)
}

/// Returns all shadows of which both runs are those of nights, with the names of both.
async fn all_shadows(store: &Store) -> Result<Vec<Shadow>> {
    let known: HashSet<&str> = store.nights().iter().map(|night| night.run.digest.as_str()).collect();
    let mut all = Vec::new();
    for night in store.nights() {
        let own: Arc<str> = night.run.digest.as_str().into();
        let named = |run: Arc<str>| if run.is_empty() { Arc::clone(&own) } else { run };
        let of_night = store.shadows(night).await?.into_iter();
        let of_night = of_night.map(|s| Shadow { run: named(s.run), by: named(s.by), row: s.row });
        all.extend(of_night.filter(|s| known.contains(&*s.run) && known.contains(&*s.by)));
    }
    Ok(all)
}

/// Writes a run without its forgotten rows below a folder.
async fn rewritten(
    store: &Store,
    affected: &Affected<'_>,
    ids: &ForgottenIds,
    said: &Said,
    folder: &Path,
) -> Result<StagedRun> {
    let night = affected.night;
    let fingerprints = store.open_file(night, "fingerprints").await?;
    let without_commit = || internal("a night of a store without a commit");
    let config_digest = store.config_digest().ok_or_else(without_commit)?;
    let columns = columns_of(&RUN, fingerprints.schema());
    let mut run = RunWriter::try_new(folder, config_digest, &columns)?;
    for (name, of_file) in store.datasets(night)? {
        let (parquet, schema) = match name {
            "fingerprints" => (fingerprints.clone(), &columns),
            "short" => (store.open_file(night, name).await?, &*SHORT),
            _ => (store.open_file(night, name).await?, &*EMPTY),
        };
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let mut batches = parquet.stream(parquet.whole(&names))?;
        let mut first = of_file.start;
        while let Some(batch) = batches.try_next().await? {
            let staying = affected.staying(first, batch.num_rows());
            first += row_number(batch.num_rows());
            let left = filter_record_batch(&batch, &staying).map_err(internal)?;
            let left = without_canonical(Columns { batch: &left, file: &parquet.file.url }, schema, ids)?;
            match name {
                "fingerprints" => run.fingerprints(left)?,
                "short" => run.short(left)?,
                _ => run.empty(left)?,
            }
        }
    }
    let mut hashes = Vec::new();
    let parquet = store.open_file(night, "ids").await?;
    let mut batches = parquet.stream(parquet.whole(&["id_hash", "row"]))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let of_batch = columns.primitive::<UInt64Type>("id_hash")?.values().iter();
        let of_batch = of_batch.zip(columns.primitive::<UInt32Type>("row")?.values());
        hashes.extend(of_batch.filter_map(|(hash, row)| Some((*hash, affected.row_without(*row)?))));
    }
    let dependents = match night.run.has_file("dependents") {
        true => Some(dependents_left(store, affected).await?),
        false => None,
    };
    let families = store.families(night).await?.into_iter().filter(|of| !ids.has(&of.family));
    let left = |of: StoredFamily| Some(StoredFamily { row: affected.row_without(of.row)?, ..of });
    let families: Vec<StoredFamily> = families.filter_map(left).collect();
    let run = run.finish(hashes.into_iter(), &said.shadows, dependents.as_deref())?;
    let run = run.with_families(folder, config_digest, &families)?;
    run.redeciding(folder, config_digest, &said.redecisions)
}

/// Returns the family of a document that was decided again, without the forgotten document by which it was named.
fn family_left(decision: &NewDecision) -> Arc<str> {
    match &decision.canonical {
        Some(canonical) => canonical.id.as_ref().into(),
        None => decision.id.as_ref().into(),
    }
}

/// Returns the dependents of a run without its forgotten rows, and without those that no document represents any more.
async fn dependents_left(store: &Store, affected: &Affected<'_>) -> Result<Vec<(u32, u32)>> {
    let dependents = store.dependents(affected.night).await?.into_iter();
    let dependents = dependents.filter(|(_, row)| affected.stays_dependent(*row));
    Ok(dependents.filter_map(|(hash, row)| Some((hash, affected.row_without(row)?))).collect())
}

/// Returns the rows whose canonical document is forgotten, with their ids, besides the rows `gone` of the run, which are
/// sorted. The file's first row is the row `first` of the run.
async fn represented(
    parquet: &ParquetFile,
    first: u32,
    gone: &[u32],
    ids: &ForgottenIds,
) -> Result<Vec<(u32, String)>> {
    let (mut rows, mut row) = (Vec::new(), first);
    let mut batches = parquet.stream(parquet.whole(&[DOC_ID, CANONICAL_ID]))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let named = columns.strings(DOC_ID)?;
        for (i, canonical) in columns.strings(CANONICAL_ID)?.iter().enumerate() {
            if canonical.is_some_and(|id| ids.has(id)) && gone.binary_search(&row).is_err() {
                rows.push((row, named.value(i).to_owned()));
            }
            row += 1;
        }
    }
    Ok(rows)
}

/// Returns a batch of these columns in which no row has a forgotten document as its canonical one: such documents are
/// restored.
fn without_canonical(columns: Columns<'_>, schema: &SchemaRef, ids: &ForgottenIds) -> Result<RecordBatch> {
    let canonical = columns.optional(CANONICAL_ID, Columns::strings)?;
    let is_gone = |row: usize| canonical.is_some_and(|of| of.is_valid(row) && ids.has(of.value(row)));
    let instead = |name: &str, new: Option<&'static str>| -> Result<ArrayRef> {
        let rows = columns.strings(name)?.iter().enumerate();
        Ok(Arc::new(rows.map(|(row, value)| if is_gone(row) { new } else { value }).collect::<StringArray>()))
    };
    let left = |field: &FieldRef| -> Result<ArrayRef> {
        match field.name().as_str() {
            name if columns.batch.column_by_name(name).is_none() => columns.get_or_null(field),
            CANONICAL_ID => instead(CANONICAL_ID, None),
            REFERENCE => instead(REFERENCE, None),
            REASON => instead(REASON, Some(RESTORED)),
            _ => columns.get_or_null(field),
        }
    };
    let arrays: Result<Vec<ArrayRef>> = schema.fields().iter().map(left).collect();
    RecordBatch::try_new(Arc::clone(schema), arrays?).map_err(internal)
}

/// Returns the columns of a dataset as a file has them, without the file's metadata. Those that the file lacks come as this
/// release writes them.
fn columns_of(dataset: &SchemaRef, file: &SchemaRef) -> SchemaRef {
    let of_file = |field: &FieldRef| file.fields().find(field.name()).map_or(field, |(_, there)| there).clone();
    Arc::new(Schema::new(dataset.fields().iter().map(of_file).collect::<Fields>()))
}

fn internal(reason: impl std::fmt::Display) -> Fault {
    Fault::internal("forget", reason)
}
