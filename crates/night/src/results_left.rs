//! The results of a published night without some of their rows: documents that are forgotten, or what the night decided again
//! about documents of a night that is made again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::{filter_record_batch, nullif};
use arrow::datatypes::{Date32Type, Int64Type};
use futures::TryStreamExt;
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_parquet::schema::{
    CANONICAL_ID, CANONICAL_ID_BEFORE, CHANGE_SET, DOC_ID, DROP, FAMILY_ID, KEEP, LOST_SHARE, REASON, REFERENCE,
    STUB_ID,
};
use nearprint_parquet::{
    CHANGES, Columns, DatasetWriter, FileRecord, PUBLISHED, ParquetFile, PublishedDataset, StagedFile, create_folder,
    upload_new,
};
use nearprint_storage::{NewFiles, Progress, Sha256Hex, Storage, date_of_day};
use nearprint_store::maintain::ForgottenIds;
use nearprint_store::{MANIFEST, Night, RESTORED, Store, damaged, generation_name, to_json};

use crate::manifest::Manifest;
use crate::published::{found_files, generation};

/// The documents that forgotten ones represented in their own nights, by date.
pub(crate) type Represented = HashMap<String, HashSet<String>>;

/// Returns the later nights that decided something again, as they are once the night of a date is made, or made again: what
/// they decided about its documents counts no more. Where their results have such rows, they come without these.
///
/// # Errors
/// Results cannot be read or written. Damaged ones are a warning, and stay as they are.
pub(crate) async fn overruled(
    storage: &Storage,
    store: &Store,
    dt: &str,
    temp: &Path,
) -> Result<Vec<(Night, Option<ResultsLeft>)>> {
    let mut nights = Vec::new();
    for night in store.nights().iter().filter(|night| night.dt.as_str() > dt) {
        let mut overruled = night.overruled.clone();
        overruled.push(dt.to_owned());
        overruled.sort();
        overruled.dedup();
        let results = match without_decisions_about(storage, night, dt, temp).await {
            Ok(results) => results,
            Err(error) if error.kind() == ErrorKind::BadData => {
                tracing::warn!(night = night.dt, %error, "its table `redecided` still has rows that count no more: run it again");
                None
            }
            Err(error) => return Err(error),
        };
        // When ids were forgotten, what the night decided again may have moved into the run files that it is about.
        if results.is_some() || night.run.redecides() {
            nights.push((Night { overruled, ..night.clone() }, results));
        }
    }
    Ok(nights)
}

/// Returns the results of a night without what it decided again about documents of the night of a date, or `None` if it decided
/// nothing about them.
async fn without_decisions_about(
    storage: &Storage,
    night: &Night,
    dt: &str,
    temp: &Path,
) -> Result<Option<ResultsLeft>> {
    let manifest = Manifest::read(&generation(storage, night)?, night).await?;
    let mut about = HashSet::new();
    // Most nights decided nothing again.
    if manifest.counts.n_orphaned == 0 {
        return Ok(None);
    }
    for dataset in PUBLISHED.iter().filter(|dataset| dataset.name == REDECIDED) {
        for file in open(storage, &manifest, night, dataset).await? {
            let mut batches = file.stream(file.whole(&[DOC_ID, OF_DT]))?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &file.file.url };
                let nights = columns.primitive::<Date32Type>(OF_DT)?.iter();
                let of_night = |day: Option<i32>| day.and_then(date_of_day).as_deref() == Some(dt);
                let found = columns.strings(DOC_ID)?.iter().zip(nights).filter(|(_, day)| of_night(*day));
                about.extend(found.filter_map(|(id, _)| id.map(str::to_owned)));
            }
        }
    }
    if about.is_empty() {
        return Ok(None);
    }
    let without = Represented::from([(dt.to_owned(), about)]);
    results_without(storage, night, (&ForgottenIds::default(), &without), temp).await
}

/// The results of a night without some documents.
pub(crate) struct ResultsLeft {
    /// The forgotten documents that the results name.
    pub(crate) named: HashSet<String>,
    /// The number of documents that they lose.
    pub(crate) n_documents: u64,
    files: Vec<StagedFile>,
    manifest: Manifest,
}

impl ResultsLeft {
    /// Writes the generation, and makes `night` name it.
    pub(crate) async fn publish(
        self,
        storage: &Storage,
        store: &Store,
        night: &mut Night,
        written: &mut NewFiles,
    ) -> Result<()> {
        let content = to_json(&self.manifest)?;
        night.manifest_sha256 = Sha256Hex::of(&content).0;
        night.gen_digest = night.manifest_sha256[..32].to_owned();
        store.refuse_removing(&generation_name(&night.gen_digest))?;
        let root = storage.folder(night.output_root())?;
        let named = |file: StagedFile| {
            let record = FileRecord { name: night.file_path(&file.record.name), ..file.record };
            StagedFile { record, path: file.path }
        };
        let files: Vec<StagedFile> = self.files.into_iter().map(named).collect();
        upload_new(&root, &files, written, "publish", &Progress::default()).await?;
        written.put(&root, &format!("{}/{MANIFEST}", night.generation_path()), content).await
    }
}

/// Returns whether the decisions of a night drop documents for none: release 0.2.0 forgot those that represented them, and took
/// the others for kept in the store alone.
pub(crate) async fn drops_for_none(storage: &Storage, manifest: &Manifest, night: &Night) -> Result<bool> {
    if manifest.forgotten.is_none() || !night.run.is_of_release_0_2() {
        return Ok(false);
    }
    for dataset in PUBLISHED.iter().filter(|dataset| dataset.name == DECISIONS) {
        for file in open(storage, manifest, night, dataset).await? {
            let mut batches = file.stream(file.whole(&[DECISION, CANONICAL_ID]))?;
            while let Some(batch) = batches.try_next().await? {
                if for_none(Columns { batch: &batch, file: &file.file.url })?.contains(&true) {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Returns which decisions drop a document for none.
fn for_none(columns: Columns<'_>) -> Result<Vec<bool>> {
    let rows = columns.strings(DECISION)?.iter().zip(columns.strings(CANONICAL_ID)?);
    Ok(rows.map(|(decision, canonical)| decision == Some(DROP) && canonical.is_none()).collect())
}

/// Returns what is left of the results of a night, or `None` if they name none of the documents and drop none for none.
pub(crate) async fn results_without(
    storage: &Storage,
    night: &Night,
    (ids, represented): (&ForgottenIds, &Represented),
    temp: &Path,
) -> Result<Option<ResultsLeft>> {
    let manifest = Manifest::read(&generation(storage, night)?, night).await?;
    let mut datasets = Vec::new();
    let (mut named, mut any) = (HashSet::new(), false);
    for dataset in PUBLISHED {
        let files = open(storage, &manifest, night, dataset).await?;
        for file in &files {
            named.extend(named_in(file, dataset, ids).await?);
            any |= dataset.name == REDECIDED && decides_any(file, represented).await?;
        }
        datasets.push((dataset, files));
    }
    let mends = !ids.is_empty() && drops_for_none(storage, &manifest, night).await?;
    if named.is_empty() && !any && !mends {
        return Ok(None);
    }
    let clusters = match datasets.iter().find(|(dataset, _)| dataset.name == DECISIONS) {
        Some((_, files)) => Clusters::read(files, ids).await?,
        None => Clusters::default(),
    };
    let folder = temp.join(format!("results-{}", night.dt));
    create_folder(&folder)?;
    let mut staged = Vec::new();
    // Nights of release 0.2.0 have no dataset `redecided`.
    for (dataset, files) in datasets.into_iter().filter(|(_, files)| !files.is_empty()) {
        let mut writer = DatasetWriter::new(&folder, dataset.name, dataset.schema, &[]);
        for file in files {
            let names = column_names(dataset);
            let mut batches = file.stream(file.whole(&names))?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &file.file.url };
                let mut rows = left(dataset, columns, (ids, mends), &clusters)?;
                if dataset.name == REDECIDED {
                    let columns = Columns { batch: &rows, file: &file.file.url };
                    let stays: BooleanArray =
                        of_represented(columns, represented)?.into_iter().map(|is| Some(!is)).collect();
                    rows = filter_record_batch(&rows, &stays).map_err(internal)?;
                }
                writer.write(rows)?;
            }
        }
        staged.extend(writer.finish()?);
    }
    staged.sort_by(|a, b| a.record.name.cmp(&b.record.name));
    let mut forgotten = manifest.forgotten.clone();
    if !ids.is_empty() {
        forgotten.get_or_insert_default().n_documents += clusters.n_documents;
    }
    let files = staged.iter().map(|file| file.record.clone()).collect();
    let mut counts = manifest.counts.clone();
    // An id that is cut may be one of them.
    counts.stubs.retain(|class| !ids.has(&class.stub_id) && !class.stub_id.ends_with('…'));
    let manifest = Manifest { forgotten, files, counts, ..manifest };
    Ok(Some(ResultsLeft { named, n_documents: clusters.n_documents, files: staged, manifest }))
}

/// What is left of a file of `changes`.
pub(crate) struct ChangesLeft {
    pub(crate) files: Vec<StagedFile>,
    /// The forgotten documents that the file names.
    pub(crate) named: HashSet<String>,
    /// The number of the newest set of the rows that are left, or 0.
    pub(crate) newest: u64,
}

/// Returns what is left of a file of `changes`, below a new folder, or `None` if it names none of the documents.
pub(crate) async fn changes_left(file: &ParquetFile, ids: &ForgottenIds, folder: &Path) -> Result<Option<ChangesLeft>> {
    let named = named_in(file, &CHANGES, ids).await?;
    if named.is_empty() {
        return Ok(None);
    }
    create_folder(folder)?;
    let mut newest = 0;
    let mut writer = DatasetWriter::new(folder, CHANGES.name, CHANGES.schema, &[]);
    let mut batches = file.stream(file.whole(&column_names(&CHANGES)))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &file.file.url };
        let rows = left(&CHANGES, columns, (ids, false), &Clusters::default())?;
        let numbers = Columns { batch: &rows, file: &file.file.url }.primitive::<Int64Type>(CHANGE_SET)?.values();
        newest = newest.max(numbers.iter().copied().filter_map(|number| u64::try_from(number).ok()).max().unwrap_or(0));
        writer.write(rows)?;
    }
    Ok(Some(ChangesLeft { files: writer.finish()?, named, newest }))
}

/// Opens the files of a dataset of a night.
async fn open(
    storage: &Storage,
    manifest: &Manifest,
    night: &Night,
    dataset: &'static PublishedDataset,
) -> Result<Vec<ParquetFile>> {
    let mut files = Vec::new();
    for file in found_files(storage, manifest, night, dataset.name).await? {
        files.push(ParquetFile::open(file).await?);
    }
    Ok(files)
}

const DECISIONS: &str = "decisions";
const REDECIDED: &str = "redecided";
const OF_DT: &str = "of_dt";

/// Returns the columns of a dataset by which a row is about a document: if one of them names a forgotten one, the row goes.
fn subjects(dataset: &PublishedDataset) -> &'static [&'static str] {
    match dataset.name {
        "pairs" => &["id_a", "id_b"],
        "superseded" => &["earlier_id", "new_id"],
        // A row of the input that is no document stays, without its id. The counts of sources name none.
        "quarantine" | "hosts" => &[],
        _ => &[DOC_ID],
    }
}

/// Returns the other columns of a dataset that name documents.
fn mentions(dataset: &PublishedDataset) -> &'static [&'static str] {
    match dataset.name {
        DECISIONS => &[CANONICAL_ID, CLUSTER_ID, FAMILY_ID],
        REDECIDED => &[CANONICAL_ID, "former_canonical_id", FAMILY_ID],
        "changes" => &[CANONICAL_ID, CANONICAL_ID_BEFORE],
        "quarantine" => &["id"],
        "stubs" => &[STUB_ID],
        _ => &[],
    }
}

const DECISION: &str = "decision";
const DISTANCE: &str = "distance";
const CLUSTER_ID: &str = "cluster_id";
const CLUSTER_SIZE: &str = "cluster_size";

fn column_names(dataset: &'static PublishedDataset) -> Vec<&'static str> {
    dataset.schema.fields().iter().map(|field| field.name().as_str()).collect()
}

/// Returns the documents that a file names.
async fn named_in(file: &ParquetFile, dataset: &PublishedDataset, ids: &ForgottenIds) -> Result<HashSet<String>> {
    // Files of release 0.2.0 have fewer columns.
    let names: Vec<&str> =
        subjects(dataset).iter().chain(mentions(dataset)).copied().filter(|name| file.has_column(name)).collect();
    let mut named = HashSet::new();
    let mut batches = file.stream(file.whole(&names))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &file.file.url };
        for name in &names {
            named.extend(columns.strings(name)?.iter().flatten().filter(|id| ids.has(id)).map(str::to_owned));
        }
    }
    Ok(named)
}

/// Returns whether a file of `redecided` has a document that a forgotten one represented in its own night.
async fn decides_any(file: &ParquetFile, represented: &Represented) -> Result<bool> {
    let mut batches = file.stream(file.whole(&[DOC_ID, OF_DT]))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &file.file.url };
        if of_represented(columns, represented)?.contains(&true) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns which rows of `redecided` are about documents that forgotten ones represented in their own nights. These are kept
/// by their own nights from now on, whatever later ones said.
fn of_represented(columns: Columns<'_>, represented: &Represented) -> Result<Vec<bool>> {
    let nights = columns.primitive::<Date32Type>(OF_DT)?.iter();
    let is = |(id, day): (Option<&str>, Option<i32>)| {
        let night = day.and_then(date_of_day).and_then(|dt| represented.get(&dt));
        night.zip(id).is_some_and(|(of, id)| of.contains(id))
    };
    Ok(columns.strings(DOC_ID)?.iter().zip(nights).map(is).collect())
}

/// The clusters of a night that lose documents.
#[derive(Default)]
struct Clusters {
    /// By their id.
    by_id: BTreeMap<String, ClusterLeft>,
    /// The number of documents that they and the skipped documents lose.
    n_documents: u64,
}

/// A cluster without its forgotten documents.
#[derive(Default)]
struct ClusterLeft {
    n_gone: i64,
    /// The smallest id that is left.
    id: Option<String>,
}

impl Clusters {
    /// Reads the decisions of a night, which are sorted by id, twice: who goes, and then who is left.
    async fn read(files: &[ParquetFile], ids: &ForgottenIds) -> Result<Self> {
        let mut clusters = Self::default();
        for is_second in [false, true] {
            for file in files {
                let mut batches = file.stream(file.whole(&[DOC_ID, CLUSTER_ID]))?;
                while let Some(batch) = batches.try_next().await? {
                    let columns = Columns { batch: &batch, file: &file.file.url };
                    for (id, cluster) in columns.strings(DOC_ID)?.iter().zip(columns.strings(CLUSTER_ID)?) {
                        let nameless = || damaged(&file.file.url, "a decision has no doc_id");
                        let id = id.ok_or_else(nameless)?;
                        match is_second {
                            false if ids.has(id) => clusters.lose(cluster),
                            true if !ids.has(id) => clusters.leave(id, cluster),
                            _ => {}
                        }
                    }
                }
            }
        }
        Ok(clusters)
    }

    fn lose(&mut self, cluster: Option<&str>) {
        self.n_documents += 1;
        if let Some(cluster) = cluster {
            self.by_id.entry(cluster.to_owned()).or_default().n_gone += 1;
        }
    }

    fn leave(&mut self, id: &str, cluster: Option<&str>) {
        if let Some(left) = cluster.and_then(|cluster| self.by_id.get_mut(cluster)) {
            left.id.get_or_insert_with(|| id.to_owned());
        }
    }
}

/// Returns what is left of a batch of a dataset. If it `mends`, documents that are dropped for none are kept.
fn left(
    dataset: &'static PublishedDataset,
    columns: Columns<'_>,
    (ids, mends): (&ForgottenIds, bool),
    clusters: &Clusters,
) -> Result<RecordBatch> {
    let mut stays = vec![true; columns.batch.num_rows()];
    for name in subjects(dataset) {
        for (stays, id) in stays.iter_mut().zip(columns.strings(name)?) {
            *stays &= !id.is_some_and(|id| ids.has(id));
        }
    }
    // A document that a forgotten one represents is kept.
    let is_decided = [DECISIONS, REDECIDED].contains(&dataset.name);
    let canonical = is_decided.then(|| columns.strings(CANONICAL_ID)).transpose()?;
    let for_none = (mends && dataset.name == DECISIONS).then(|| for_none(columns)).transpose()?;
    let is_restored = |row: usize| {
        canonical.is_some_and(|of| of.is_valid(row) && ids.has(of.value(row)))
            || for_none.as_ref().is_some_and(|rows| rows[row])
    };
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for field in dataset.schema.fields() {
        let name = field.name().as_str();
        arrays.push(match name {
            CLUSTER_ID => Arc::new(cluster_ids(columns, clusters)?),
            CLUSTER_SIZE => Arc::new(cluster_sizes(columns, clusters)?),
            FAMILY_ID => Arc::new(family_ids(columns, ids)?),
            _ if mentions(dataset).contains(&name) => {
                let named = columns.strings(name)?.iter();
                Arc::new(named.map(|id| id.filter(|id| !ids.has(id))).collect::<StringArray>())
            }
            DECISION | REASON if is_decided => {
                let new = if name == DECISION { KEEP } else { RESTORED };
                let rows = columns.strings(name)?.iter().enumerate();
                Arc::new(
                    rows.map(|(row, value)| if is_restored(row) { Some(new) } else { value }).collect::<StringArray>(),
                )
            }
            DISTANCE | LOST_SHARE | REFERENCE if is_decided => {
                let gone: BooleanArray = (0..columns.batch.num_rows()).map(|row| Some(is_restored(row))).collect();
                nullif(&columns.get_or_null(field)?, &gone).map_err(internal)?
            }
            _ => columns.get_or_null(field)?,
        });
    }
    let all = RecordBatch::try_new(Arc::clone(dataset.schema), arrays).map_err(internal)?;
    filter_record_batch(&all, &BooleanArray::from(stays)).map_err(internal)
}

/// Returns the ids of the clusters: of those that lose documents, the smallest id that is left.
fn cluster_ids(columns: Columns<'_>, clusters: &Clusters) -> Result<StringArray> {
    let named = columns.strings(CLUSTER_ID)?.iter();
    Ok(named
        .map(|id| {
            let left = id.and_then(|id| clusters.by_id.get(id));
            left.map_or(id, |left| left.id.as_deref())
        })
        .collect())
}

/// Returns the ids of the families. One that a forgotten document named goes by the canonical document from then on, or by a
/// kept document itself.
fn family_ids(columns: Columns<'_>, ids: &ForgottenIds) -> Result<StringArray> {
    if columns.batch.column_by_name(FAMILY_ID).is_none() {
        return Ok(StringArray::new_null(columns.batch.num_rows()));
    }
    let (own, canonical) = (columns.strings(DOC_ID)?.iter(), columns.strings(CANONICAL_ID)?.iter());
    let named = columns.strings(FAMILY_ID)?.iter().zip(canonical.zip(own));
    let left = |(family, (canonical, own)): (Option<&_>, (Option<&_>, Option<&_>))| match family {
        Some(family) if ids.has(family) => canonical.filter(|id| !ids.has(id)).or(own).map(str::to_owned),
        family => family.map(str::to_owned),
    };
    Ok(named.map(left).collect())
}

fn cluster_sizes(columns: Columns<'_>, clusters: &Clusters) -> Result<Int64Array> {
    let sizes = columns.primitive::<Int64Type>(CLUSTER_SIZE)?;
    let named = columns.strings(CLUSTER_ID)?.iter();
    let n_gone = named.map(|id| id.and_then(|id| clusters.by_id.get(id)).map_or(0, |left| left.n_gone));
    Ok(sizes.iter().zip(n_gone).map(|(size, n_gone)| size.map(|size| size - n_gone)).collect())
}

fn internal(error: arrow::error::ArrowError) -> Fault {
    Fault::internal("forget", error)
}
