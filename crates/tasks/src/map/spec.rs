//! The specification of a join's map tasks, in a folder. A process or another engine needs it besides the description
//! of a task.
//!
//! `spec.json` is the [`MapSpec`]. `parts.arrow` has the parts of the query batch, and `ids.arrow` its ids, of which
//! `first-ids.arrow` has the first one of each block. `shadowed/part-00000.parquet` has the rows of existing files that
//! take no part, because a later night has their documents again, and `restored/part-00000.parquet` those that were dropped and
//! are kept now.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use futures::TryStreamExt;
use nearprint_fault::{Fault, Result};
use nearprint_join::{Kernel, Key, LossLimit, Origin, QueryRows, RowSet, TablePlan, Verifier, WordKeys, WordRows};
use nearprint_parquet::{BATCH_ROWS, Columns, DatasetWriter, ParquetFile};
use nearprint_storage::{InputFile, Progress, Storage, blocking, in_memory, in_pool, row_number};
use nearprint_store::{ExistingDocuments, ExistingFile, RunFile};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::batch_ids::{BatchIds, StoredIds};
use super::batch_parts::{self, LoadedParts, PartSpec, PlacesInBatch, StoredParts};
use super::context::{MapContext, MapTask, Room, Want};
use super::one_at_a_time::{Held, OneAtATime};
use super::pair_writer::pair_schema;
use super::task::map_task;
use crate::batch::{FILE, QueryBatch, ROW};
use crate::query_slices::{KeyJoin, KeyQueries, QuerySlices};
use crate::stream::{TaskBatches, produce};

/// The settings that all map tasks of a join share, besides the query batch and the rows that are shadowed or restored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MapSpec {
    parts: Vec<PartSpec>,
    keys: Vec<KeySpec>,
    max_distance: u8,
    n_words: u8,
    max_word_distance: u8,
    max_sketch_distance: Option<u16>,
    max_own_distance: u8,
    max_own_sketch_distance: Option<u16>,
    judged_to: Option<u16>,
    max_looks: u32,
    max_lost_share: f64,
    itself: bool,
    ids_are_names: bool,
    want: Want,
    notes_classes: bool,
    existing: Vec<ExistingSpec>,
}

/// The tables of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeySpec {
    of: KeyJoin,
    bits: u32,
    max_distance: u32,
    /// The number of bits that may differ in the block of each table. `None` means that everything is compared with
    /// everything.
    prefix_distances: Option<Vec<u32>>,
}

impl KeySpec {
    fn of(key: &KeyQueries) -> Self {
        let plan = key.plan();
        let distances = plan.tables().iter().map(|table| table.max_prefix_distance()).collect();
        Self {
            of: key.of(),
            bits: plan.bits(),
            max_distance: plan.max_distance(),
            prefix_distances: (!plan.is_scan()).then_some(distances),
        }
    }

    fn plan(&self) -> Result<TablePlan> {
        Ok(match &self.prefix_distances {
            Some(distances) => TablePlan::new(self.bits, self.max_distance, distances)?,
            None => TablePlan::scan(self.bits, self.max_distance),
        })
    }

    /// Returns the queries of the key. `fingerprints` are those of the rows, each once.
    fn queries(&self, rows: &QueryRows, fingerprints: &[u64]) -> Result<KeyQueries> {
        let (words, values) = match self.of.key {
            Key::Fingerprint => (None, fingerprints.to_vec()),
            Key::Word(word) => {
                let (words, values) = WordRows::group(rows, word);
                (Some(words), values)
            }
        };
        Ok(KeyQueries::new(self.of, values, words, self.plan()?, 1))
    }
}

/// A file of existing documents.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ExistingSpec {
    file: FileVersion,
    /// The store of the documents, as the number of its [`Origin`].
    origin: u8,
    numbered_from: Option<u64>,
    /// The runs that the file's rows name by their positions in this list. `None` means that the file itself has the
    /// documents.
    runs: Option<Vec<Option<FileVersion>>>,
}

/// A file as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct FileVersion {
    url: String,
    version: String,
}

impl FileVersion {
    fn of(parquet: &ParquetFile) -> Self {
        Self { url: parquet.file.url.clone(), version: parquet.file.version.clone() }
    }

    async fn open(&self, storage: &Storage) -> Result<ParquetFile> {
        ParquetFile::open(storage.folder(&self.url)?.version(&self.version).await?).await
    }
}

/// The columns of rows of existing files.
static FILE_ROWS: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![Field::new(FILE, DataType::Utf8, false), Field::new(ROW, DataType::UInt32, false)]))
});

/// Rows of files, by their URLs.
type RowSets = HashMap<String, Arc<RowSet>>;

const SPEC: &str = "spec.json";
/// The dataset of the rows that take no part.
const SHADOWED: &str = "shadowed";
/// The dataset of the rows that are kept although their own nights dropped them.
const RESTORED: &str = "restored";

/// The bytes of columns that wait for their task's turn in a process that runs some tasks.
const READ_AHEAD_BYTES: usize = 64 << 20;

impl MapSpec {
    /// Writes the specification of a context into a folder. `parts` are the values of each part of the batch.
    ///
    /// # Errors
    /// The disk is full, or a file cannot be written.
    pub fn write(context: &MapContext, batch: &QueryBatch, parts: &[Range<u32>], folder: &Path) -> Result<()> {
        let mut files: Vec<&ExistingFile> = context.files.values().collect();
        files.sort_by(|a, b| a.parquet.file.url.cmp(&b.parquet.file.url));
        StoredIds::write(batch, folder)?;
        let spec = Self {
            parts: batch_parts::write(batch, &context.rows, parts, folder)?,
            keys: context.queries.keys().iter().map(KeySpec::of).collect(),
            max_distance: context.verifier.max_distance,
            n_words: context.verifier.words.n,
            max_word_distance: context.verifier.words.max_distance,
            max_sketch_distance: context.verifier.max_sketch_distance,
            max_own_distance: context.own_verifier.max_distance,
            max_own_sketch_distance: context.own_verifier.max_sketch_distance,
            judged_to: context.own_verifier.judged_to,
            max_looks: context.max_looks,
            max_lost_share: context.loss.0,
            itself: context.itself,
            ids_are_names: context.ids_are_names,
            want: context.want,
            notes_classes: context.notes_classes,
            existing: files.iter().map(|file| ExistingSpec::of(file)).collect(),
        };
        let json = serde_json::to_vec(&spec).map_err(defect)?;
        std::fs::write(folder.join(SPEC), json).map_err(Fault::io(folder.join(SPEC)))?;
        write_rows(&files, folder, SHADOWED, |rows| rows.0)?;
        write_rows(&files, folder, RESTORED, |rows| rows.1)
    }

    /// Loads the specification of a join from its folder, which is not read again and may be removed. The parts of the batch
    /// stay in their files until a task needs them.
    ///
    /// # Errors
    /// A file cannot be read, or does not hold what [`write`](Self::write) wrote.
    pub async fn load(storage: &Storage, folder: &Path, threads: usize) -> Result<LoadedJoin> {
        let json = std::fs::read(folder.join(SPEC)).map_err(Fault::io(folder.join(SPEC)))?;
        let spec: Self = serde_json::from_slice(&json).map_err(defect)?;
        Ok(LoadedJoin {
            parts: Arc::new(StoredParts::open(spec.parts.clone(), folder)?),
            ids: Arc::new(BatchIds::Stored(Box::new(StoredIds::open(folder)?))),
            current: OneAtATime::default(),
            shadowed: read_rows(storage, folder, SHADOWED).await?,
            restored: read_rows(storage, folder, RESTORED).await?,
            spec: Arc::new(spec),
            storage: storage.clone(),
            room: Room::new(threads, 1, READ_AHEAD_BYTES),
            with_files: Semaphore::new(2),
        })
    }
}

/// The specification of a join, in a process that runs some of its map tasks.
#[derive(Debug)]
pub struct LoadedJoin {
    spec: Arc<MapSpec>,
    parts: Arc<StoredParts>,
    ids: Arc<BatchIds>,
    current: OneAtATime<CurrentPart>,
    shadowed: RowSets,
    restored: RowSets,
    storage: Storage,
    room: Arc<Room>,
    /// Permits for tasks that have existing files open: of one the piece is mapped, of the other the columns are read.
    with_files: Semaphore,
}

/// The part of the batch in memory, and the slices whose tables are: what tasks that run at once have in common.
#[derive(Debug)]
struct CurrentPart {
    of: (usize, Option<usize>),
    slices: Range<usize>,
    join: Arc<PartJoin>,
}

/// A part of the batch, or two of which the second is joined with the first, and the queries of its keys.
#[derive(Debug)]
struct PartJoin {
    rows: Arc<QueryRows>,
    class_fingerprints: Arc<Vec<u64>>,
    places: Arc<PlacesInBatch>,
    queries: Arc<QuerySlices>,
}

impl PartJoin {
    fn load(spec: &MapSpec, parts: &StoredParts, (part, other): (usize, Option<usize>)) -> Result<Self> {
        let LoadedParts { rows, values, n_first_values, places } = parts.load(part, other)?;
        let is_whole = other.is_none();
        let has_words = spec.keys.iter().any(|key| key.of.key.word().is_some());
        let class_fingerprints = if has_words && is_whole { rows.class_values(&values) } else { Vec::new() };
        let queries = if is_whole {
            in_pool(|| spec.keys.iter().map(|key| key.queries(&rows, &values)).collect::<Result<_>>())?
        } else {
            let own = spec.keys.iter().find(|key| key.of.itself);
            let own = own.ok_or_else(|| defect("the batch is not joined with itself, and two parts of it are"))?;
            vec![KeyQueries::with_others(own.of, values, own.plan()?, n_first_values)]
        };
        Ok(Self {
            rows: Arc::new(rows),
            class_fingerprints: Arc::new(class_fingerprints),
            places: Arc::new(places),
            queries: Arc::new(QuerySlices::try_new(queries, Kernel::best())?),
        })
    }
}

impl LoadedJoin {
    /// Returns the schema of the pairs of this join.
    #[must_use]
    pub fn pair_schema(&self) -> SchemaRef {
        pair_schema(self.spec.want)
    }

    /// Returns the batches of a task, as [`map_task`] does. The existing files that it names are opened first, by two tasks at a time.
    /// A task that needs another part of the batch, or tables of another key, than those that run already waits for their end.
    pub fn run(self: &Arc<Self>, task: MapTask) -> TaskBatches {
        let own = Arc::clone(self);
        produce("map", move |sender| async move {
            let part = own.current_part(&task).await?;
            // After its part, which thus stays in memory while a task waits for its turn to open files.
            let _opens = match task {
                // The semaphore is never closed.
                MapTask::Existing { .. } => own.with_files.acquire().await.ok(),
                MapTask::Itself { .. } => None,
            };
            let context = own.context(&task, &part.join).await?;
            let mut batches = map_task(&context, &task);
            while let Some(batch) = batches.try_next().await? {
                sender.send(batch).await?;
            }
            Ok(())
        })
    }

    /// Returns the part of the batch that a task needs, which stays in memory as long as the task has it.
    async fn current_part(&self, task: &MapTask) -> Result<Held<CurrentPart>> {
        let (of, slices) = (task.parts(), task.slices());
        let is_it = |current: &CurrentPart| current.of == of && current.slices == slices;
        let next = |before: Option<Arc<CurrentPart>>| async {
            // What was there is given up before the next part takes memory.
            let known = before.filter(|before| before.of == of).map(|before| Arc::clone(&before.join));
            let join = match known {
                Some(join) => join,
                None => {
                    let (spec, parts) = (Arc::clone(&self.spec), Arc::clone(&self.parts));
                    Arc::new(blocking("part", move || PartJoin::load(&spec, &parts, of)).await?)
                }
            };
            Ok(CurrentPart { of, slices: slices.clone(), join })
        };
        self.current.get(is_it, next).await
    }

    /// Builds the context of a task. Only the existing files that it names are opened.
    async fn context(&self, task: &MapTask, part: &PartJoin) -> Result<Arc<MapContext>> {
        let piece = match task {
            MapTask::Existing { piece, .. } => piece.as_slice(),
            MapTask::Itself { .. } => &[],
        };
        let named: BTreeSet<&str> = piece.iter().map(|of| of.file.as_str()).collect();
        let mut files = HashMap::new();
        for existing in self.spec.existing.iter().filter(|existing| named.contains(existing.file.url.as_str())) {
            files.insert(
                existing.file.url.clone(),
                existing.open(&self.storage, (&self.shadowed, &self.restored)).await?,
            );
        }
        let spec = &self.spec;
        Ok(Arc::new(MapContext {
            ids: Arc::clone(&self.ids),
            rows: Arc::clone(&part.rows),
            places: Arc::clone(&part.places),
            class_fingerprints: Arc::clone(&part.class_fingerprints),
            queries: Arc::clone(&part.queries),
            verifier: Verifier {
                max_distance: spec.max_distance,
                words: WordKeys { n: spec.n_words, max_distance: spec.max_word_distance },
                max_sketch_distance: spec.max_sketch_distance,
                judged_to: None,
            },
            own_verifier: Verifier {
                max_distance: spec.max_own_distance,
                words: WordKeys::NONE,
                max_sketch_distance: spec.max_own_sketch_distance,
                judged_to: spec.judged_to,
            },
            max_looks: spec.max_looks,
            loss: LossLimit(spec.max_lost_share),
            itself: spec.itself,
            ids_are_names: spec.ids_are_names,
            want: spec.want,
            notes_classes: spec.notes_classes,
            files: Arc::new(files),
            room: Arc::clone(&self.room),
            progress: Progress::default(),
        }))
    }
}

impl ExistingSpec {
    fn of(existing: &ExistingFile) -> Self {
        let runs = match &existing.documents {
            ExistingDocuments::Here { .. } => None,
            ExistingDocuments::InRuns { runs } => {
                Some(runs.iter().map(|run| run.as_ref().map(|run| FileVersion::of(&run.parquet))).collect())
            }
        };
        let (file, numbered_from) = (FileVersion::of(&existing.parquet), existing.numbered_from);
        Self { file, origin: existing.origin.into(), numbered_from, runs }
    }

    async fn open(&self, storage: &Storage, (shadowed, restored): (&RowSets, &RowSets)) -> Result<ExistingFile> {
        // Of most files, no row is shadowed, and none restored.
        let of = |rows: &RowSets, url: &String| rows.get(url).cloned().unwrap_or_default();
        let documents = match &self.runs {
            None => {
                let url = &self.file.url;
                ExistingDocuments::Here { shadowed: of(shadowed, url), restored: of(restored, url) }
            }
            Some(named) => {
                let mut runs = Vec::with_capacity(named.len());
                for run in named {
                    runs.push(match run {
                        None => None,
                        Some(file) => {
                            let (shadowed, restored) = (of(shadowed, &file.url), of(restored, &file.url));
                            Some(RunFile { parquet: file.open(storage).await?, shadowed, restored })
                        }
                    });
                }
                ExistingDocuments::InRuns { runs: Arc::new(runs) }
            }
        };
        let (parquet, origin) = (self.file.open(storage).await?, Origin::from(self.origin));
        Ok(ExistingFile { parquet, documents, origin, numbered_from: self.numbered_from })
    }
}

/// Writes the rows of existing files that `of` chooses among those that are shadowed and those that are restored.
fn write_rows(
    files: &[&ExistingFile],
    folder: &Path,
    name: &str,
    of: impl for<'a> Fn((&'a RowSet, &'a RowSet)) -> &'a RowSet,
) -> Result<()> {
    let mut writer = DatasetWriter::new(folder, name, &FILE_ROWS, &[]).in_one_file();
    let mut seen = BTreeSet::new();
    let mut write = |parquet: &ParquetFile, chosen: &RowSet| -> Result<()> {
        let url = &parquet.file.url;
        if !seen.insert(url.clone()) {
            return Ok(());
        }
        // A file whose rows can be chosen has no more rows than 32 bits can number.
        let n_rows = row_number(in_memory(parquet.n_rows()));
        let rows: Vec<u32> = (0..n_rows).filter(|&row| chosen.contains(row)).collect();
        for rows in rows.chunks(BATCH_ROWS) {
            let columns: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from_iter_values(std::iter::repeat_n(url, rows.len()))),
                Arc::new(UInt32Array::from(rows.to_vec())),
            ];
            writer.write(RecordBatch::try_new(Arc::clone(&FILE_ROWS), columns).map_err(defect)?)?;
        }
        Ok(())
    };
    for existing in files {
        match &existing.documents {
            ExistingDocuments::Here { shadowed, restored } => {
                write(&existing.parquet, of((shadowed.as_ref(), restored.as_ref())))?
            }
            ExistingDocuments::InRuns { runs } => {
                let mut write = |run: &RunFile| write(&run.parquet, of((&run.shadowed, &run.restored)));
                runs.iter().flatten().try_for_each(&mut write)?;
            }
        }
    }
    writer.finish()?;
    Ok(())
}

async fn read_rows(storage: &Storage, folder: &Path, name: &str) -> Result<RowSets> {
    let parquet = ParquetFile::open(part(storage, folder, name).await?).await?;
    let mut batches = parquet.stream(parquet.whole(&[FILE, ROW]))?;
    let mut read: HashMap<String, RowSet> = HashMap::new();
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let (files, rows) = (columns.strings(FILE)?, columns.primitive::<UInt32Type>(ROW)?);
        for (i, &row) in rows.values().iter().enumerate() {
            if !read.contains_key(files.value(i)) {
                read.insert(files.value(i).to_owned(), RowSet::default());
            }
            if let Some(set) = read.get_mut(files.value(i)) {
                set.insert(row);
            }
        }
    }
    Ok(read.into_iter().map(|(file, rows)| (file, Arc::new(rows))).collect())
}

async fn part(storage: &Storage, folder: &Path, name: &str) -> Result<InputFile> {
    let place = storage.folder(&folder.display().to_string())?.join(&format!("{name}/part-00000.parquet"));
    place.file().await
}

fn defect(reason: impl Display) -> Fault {
    Fault::internal("specification", reason)
}
