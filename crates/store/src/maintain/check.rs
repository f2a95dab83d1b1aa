//! `store check`: comparing every file of every night with what the newest commit says about it.

use std::collections::{BTreeSet, HashSet};

use arrow::array::Array;
use arrow::datatypes::{UInt32Type, UInt64Type};
use futures::TryStreamExt;
use nearprint_fault::Result;
use nearprint_join::{LookupPlan, Permutation};
use nearprint_parquet::schema::{CONFIG_DIGEST, DOC_ID, FINGERPRINT, PERMUTED, PLACE, TEXT_HASH};
use nearprint_parquet::sketch_column::{ReadCounts, SketchPages};
use nearprint_parquet::{Columns, FileRecord, ParquetFile, fixed};
use nearprint_storage::{Folder, InputFile, Progress};
use schemars::JsonSchema;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::commit::{Night, RunRecord, SegmentRecord, run_digest};
use crate::error::{damaged, file_and_reason, is_about_content};
use crate::identity::{IDENTITY, identity_in};
use crate::index::{OpenIndex, OpenTables};
use crate::merge::{Merge, MergedRow, SortedRun};
use crate::store::Store;
use crate::words::words_of;
use crate::writer::canonical_hash;

/// The findings of `store check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreReport {
    /// The store.
    pub store: String,
    /// The number of files that were checked.
    pub n_files: u64,
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The number of rows in the files that passed all checks.
    pub n_rows: u64,
    /// All problems. The list is empty if the store is sound.
    pub problems: Vec<StoreProblem>,
}

/// A file that does not agree with the store's commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreProblem {
    /// The file.
    pub file: String,
    /// The problem.
    pub problem: String,
    /// The part of the store that the file belongs to.
    #[serde(flatten)]
    pub of: Damaged,
}

/// The part of the store that a damaged file belongs to. It decides how the damage is repaired.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Damaged {
    /// The commits of the store, or their pages.
    Commit,
    /// The identity of the store or of an output.
    Identity,
    /// The run files of a night, in the store.
    RunFiles {
        /// The night.
        dt: String,
    },
    /// A segment of the store.
    Segment,
    /// An index of the store.
    Index,
    /// The results of a night: its manifest, or a file that the manifest names.
    Results {
        /// The night.
        dt: String,
    },
    /// The log of a table of results.
    Table,
    /// The table `changes`: its log, or a file that this names.
    Changes,
}

impl Damaged {
    /// Returns the night whose files are damaged, which a run can write again.
    #[must_use]
    pub fn night(&self) -> Option<&str> {
        match self {
            Self::RunFiles { dt } | Self::Results { dt } => Some(dt),
            Self::Commit | Self::Identity | Self::Segment | Self::Index | Self::Table | Self::Changes => None,
        }
    }

    /// Returns whether the store itself is damaged, and not only what it published.
    #[must_use]
    pub fn is_of_store(&self) -> bool {
        !matches!(self, Self::Results { .. } | Self::Table | Self::Changes)
    }
}

/// Checks every file of the store: its size, SHA-256, number of rows, order and config digest. For segments and
/// indexes, it also checks that their rows are those of their runs.
///
/// # Errors
/// A place that does not answer, or a state that will pass. Damage is no error: the report lists it.
pub async fn check(store: &Store, progress: &Progress) -> Result<StoreReport> {
    check_nights(store, store.nights().iter(), progress).await
}

/// Checks the runs of some nights, all segments and all indexes, like [`check`].
///
/// # Errors
/// A place that does not answer, or a state that will pass. Damage is no error: the report lists it.
pub async fn check_nights<'a>(
    store: &'a Store,
    nights: impl Iterator<Item = &'a Night> + Clone,
    progress: &Progress,
) -> Result<StoreReport> {
    let of_runs: u64 = nights.clone().map(|n| n.run.files.len() as u64).sum();
    let derived = store.segments().iter().chain(store.indexes());
    let n_files = of_runs + derived.map(|record| record.files.len() as u64).sum::<u64>();
    progress.start("check", "files", n_files);
    let mut report = StoreReport { n_files, ..StoreReport::of(store.folder()) };
    let mut damaged_runs = HashSet::new();
    for night in nights {
        let (folder, of) = (store.run_folder(&night.run.digest), Damaged::RunFiles { dt: night.dt.clone() });
        report.note(&Damaged::Commit, folder.url(), check_record(&folder, &night.run))?;
        if check_files(store, &of, &folder, &night.run.files, &mut report, progress).await? {
            report.note(&of, folder.url(), check_dependents(store, night).await)?;
            report.note(&of, folder.url(), check_redecisions(store, night).await)?;
            report.note(&of, folder.url(), check_families(store, night).await)?;
        } else {
            damaged_runs.insert(night.run.digest.as_str());
        }
    }
    for segment in store.segments() {
        let folder = store.segment_folder(&segment.digest);
        if check_files(store, &Damaged::Segment, &folder, &segment.files, &mut report, progress).await? {
            let checked = check_segment(store, segment, &damaged_runs).await;
            report.note(&Damaged::Segment, folder.url(), checked)?;
        }
    }
    for index in store.indexes() {
        let folder = store.index_folder(&index.digest);
        if check_files(store, &Damaged::Index, &folder, &index.files, &mut report, progress).await? {
            let checked = check_index(store, index, &damaged_runs).await;
            report.note(&Damaged::Index, folder.url(), checked)?;
        }
    }
    Ok(report)
}

/// Checks the files of one folder. Returns whether all of them are sound.
async fn check_files(
    store: &Store,
    of: &Damaged,
    folder: &Folder,
    files: &[FileRecord],
    report: &mut StoreReport,
    progress: &Progress,
) -> Result<bool> {
    let mut sound = true;
    for recorded in files {
        let place = folder.join(&recorded.name);
        let checked = check_file(store, place.file().await, recorded, report).await;
        sound &= report.note(of, place.url(), checked)?;
        progress.advance(1);
    }
    Ok(sound)
}

/// Checks that the dependents of a run are rows that are dropped for documents whose ids have their hashes, in order.
async fn check_dependents(store: &Store, night: &Night) -> Result<()> {
    if !night.run.has_file("dependents") {
        return Ok(());
    }
    let dependents = store.dependents(night).await?;
    let wrong = |reason: &str| {
        Err(damaged(store.run_folder(&night.run.digest).join("dependents/part-00000.parquet").url(), reason))
    };
    if !dependents.is_sorted_by(|a, b| a < b) {
        return wrong("its rows are out of order");
    }
    let mut by_row: Vec<(u32, u32)> = dependents.into_iter().map(|(hash, row)| (row, hash)).collect();
    by_row.sort_unstable();
    let mut left = by_row.into_iter().peekable();
    store
        .all_canonical_ids(night, |row, id| {
            left.next_if_eq(&(row, canonical_hash(id)));
        })
        .await?;
    match left.next() {
        None => Ok(()),
        Some((row, _)) => wrong(&format!("row {row} is not dropped for what it says")),
    }
}

/// Checks that a run decided again in order, and only rows that runs of other nights dropped. Runs that are not there any
/// more are left out.
async fn check_redecisions(store: &Store, night: &Night) -> Result<()> {
    let redecisions = store.redecisions(night).await?;
    let wrong = |reason: String| Err(damaged(store.run_folder(&night.run.digest).url(), reason));
    if !redecisions.is_sorted_by(|a, b| a < b) {
        return wrong("what it decided again is out of order".to_owned());
    }
    for of_run in redecisions.chunk_by(|a, b| a.run == b.run) {
        let digest = if of_run[0].run.is_empty() { night.run.digest.as_str() } else { &of_run[0].run };
        let Some(other) = store.nights().iter().find(|other| other.run.digest == digest) else { continue };
        let mut rows: BTreeSet<u32> = of_run.iter().map(|redecision| redecision.row).collect();
        store
            .all_canonical_ids(other, |row, _| {
                rows.remove(&row);
            })
            .await?;
        if let Some(row) = rows.first() {
            return wrong(format!("it decided row {row} of run {digest} again, which is not dropped"));
        }
    }
    Ok(())
}

/// Checks that a run names the families of its documents in order, each once.
async fn check_families(store: &Store, night: &Night) -> Result<()> {
    let families = store.families(night).await?;
    let is_of_run = families.last().is_none_or(|last| u64::from(last.row) < night.run.n_documents());
    if is_of_run && families.is_sorted_by(|a, b| a.row < b.row) {
        return Ok(());
    }
    let place = store.run_folder(&night.run.digest).join("families/part-00000.parquet");
    Err(damaged(place.url(), "its rows are out of order, or are not those of its run"))
}

/// Compares a segment, row by row, with a merge of its runs. Runs that are damaged, or that were replaced and
/// deleted since, are left out.
async fn check_segment(store: &Store, segment: &SegmentRecord, unsound: &HashSet<&str>) -> Result<()> {
    let folder = store.segment_folder(&segment.digest);
    let n_rows: u64 = segment.files.iter().map(|f| f.rows).sum();
    if n_rows != segment.n_rows {
        let reason = format!("its parts have {n_rows} rows, recorded are {}", segment.n_rows);
        return Err(damaged(folder.url(), reason));
    }
    let (mut runs, mut known) = (Vec::new(), vec![false; segment.runs.len()]);
    for ((ordinal, digest), known) in (0..).zip(&segment.runs).zip(&mut known) {
        let place = store.run_folder(digest).join("fingerprints/part-00000.parquet");
        if let Some(file) = place.find().await?.filter(|_| !unsound.contains(digest.as_str())) {
            runs.push(SortedRun::new(ordinal, ParquetFile::open(file).await?));
            *known = true;
        }
    }
    let mut merge = Merge::open(&runs, 0..=u64::MAX).await?;
    for recorded in &segment.files {
        let part = ParquetFile::open(folder.join(&recorded.name).file().await?).await?;
        compare(&part, &mut merge, &known).await?;
    }
    match merge.next().await? {
        None => Ok(()),
        Some(row) => Err(damaged(folder.url(), format!("lacks {row}"))),
    }
}

/// Compares each table of an index with its runs, whatever the order of the rows. Runs that are damaged, or that were
/// replaced and deleted since, are left out.
async fn check_index(store: &Store, index: &SegmentRecord, unsound: &HashSet<&str>) -> Result<()> {
    let folder = store.index_folder(&index.digest);
    let mut tables = Vec::new();
    for recorded in &index.files {
        tables.push(ParquetFile::open(folder.join(&recorded.name).file().await?).await?);
    }
    let index = OpenIndex::of(index, tables)?;
    let words: Vec<u8> = index.keys.iter().filter_map(|key| key.key.word()).collect();
    let (mut ends, mut expected) = (Vec::new(), Vec::new());
    for (digest, n_rows) in &index.runs {
        let first = ends.last().copied().unwrap_or(0);
        ends.push(first + n_rows);
        let place = store.run_folder(digest).join("fingerprints/part-00000.parquet");
        let file = place.find().await?.filter(|_| !unsound.contains(digest.as_str()));
        expected.push(match file {
            Some(file) => Some(sums_of_run(&ParquetFile::open(file).await?, first, &words).await?),
            None => None,
        });
    }
    for (number, OpenTables { bits, tables, .. }) in index.keys.iter().enumerate() {
        let orders = LookupPlan::copies(*bits).map_err(|e| damaged(folder.url(), e))?;
        for (table, order) in tables.iter().zip(orders) {
            let sums = sums_of_table(table, order, &ends).await?;
            let differs = |i: &usize| expected[*i].as_ref().is_some_and(|expected| expected[number] != sums[*i]);
            if let Some(run) = (0..ends.len()).find(differs) {
                let reason = format!("its rows are not those of run {}", index.runs[run].0);
                return Err(damaged(&table.file.url, reason));
            }
        }
    }
    Ok(())
}

async fn check_file(
    store: &Store,
    file: Result<InputFile>,
    recorded: &FileRecord,
    report: &mut StoreReport,
) -> Result<()> {
    let parquet = check_content(file, recorded, report).await?;
    check_digest(store, &parquet)?;
    check_order(&parquet).await?;
    report.n_rows += recorded.rows;
    Ok(())
}

fn check_digest(store: &Store, parquet: &ParquetFile) -> Result<()> {
    let stored = parquet.key_value(CONFIG_DIGEST);
    let expected = store.commit.as_ref().map(|c| c.config_digest.as_str());
    if stored.as_deref() == expected {
        return Ok(());
    }
    Err(damaged(&parquet.file.url, "made with another configuration than the store's"))
}

/// Checks the identities of a store, which has commits, and of its outputs. The report gets a problem for each identity that is
/// damaged or belongs to another store, and if the store's is gone.
///
/// # Errors
/// A place does not answer.
pub async fn check_identities(store: &Store, outputs: &[Folder], report: &mut StoreReport) -> Result<()> {
    let of_store = identity_in(&store.folder).await;
    let known = of_store.as_ref().ok().cloned().flatten();
    let of_store = of_store.and_then(|identity| identity.ok_or_else(|| store.lost_identity()));
    report.note(&Damaged::Identity, store.folder.join(IDENTITY).url(), of_store.map(drop))?;
    for output in outputs {
        let checked = identity_in(output).await.and_then(|owner| {
            let is_other = owner.is_some() && known.is_some() && owner != known;
            if is_other { Err(store.of_another(output)) } else { Ok(()) }
        });
        report.note(&Damaged::Identity, output.join(IDENTITY).url(), checked)?;
    }
    Ok(())
}

/// Compares the size, SHA-256 and number of rows of a file with its record, and opens the file.
///
/// # Errors
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if they differ; an error if the file is missing or
/// cannot be read.
pub async fn check_content(
    file: Result<InputFile>,
    recorded: &FileRecord,
    report: &mut StoreReport,
) -> Result<ParquetFile> {
    let file = file?;
    report.bytes += file.size;
    let (bytes, sha256) = file.sha256().await?;
    if (bytes, &sha256) != (recorded.bytes, &recorded.sha256) {
        let reason =
            format!("{bytes} bytes with SHA-256 {sha256}, recorded are {} and {}", recorded.bytes, recorded.sha256);
        return Err(damaged(file.url, reason));
    }
    let parquet = ParquetFile::open(file).await?;
    if parquet.n_rows() != recorded.rows {
        let reason = format!("{} rows, recorded are {}", parquet.n_rows(), recorded.rows);
        return Err(damaged(&parquet.file.url, reason));
    }
    Ok(parquet)
}

/// Checks that a run's record does not contradict itself.
fn check_record(folder: &Folder, run: &RunRecord) -> Result<()> {
    let rows = |name: &str| run.files.iter().filter(|f| f.name.starts_with(name)).map(|f| f.rows).sum::<u64>();
    if run_digest(&run.files) == run.digest
        && (rows("fingerprints/"), rows("short/")) == (run.n_fingerprints, run.n_short)
    {
        return Ok(());
    }
    Err(damaged(folder.url(), "the newest commit contradicts itself about this run"))
}

impl StoreReport {
    /// Creates the report of a store from which nothing was read yet.
    pub fn of(folder: &Folder) -> Self {
        Self { store: folder.url().to_owned(), n_files: 0, bytes: 0, n_rows: 0, problems: Vec::new() }
    }

    /// Notes the outcome of a check of what `of` says. If it failed, the report gets a problem of `file`, or of the file
    /// that the error names. Returns whether the check succeeded.
    ///
    /// # Errors
    /// The error of the check, if it is not [about content](is_about_content).
    pub fn note(&mut self, of: &Damaged, file: &str, checked: Result<()>) -> Result<bool> {
        let error = match checked {
            Ok(()) => return Ok(true),
            Err(error) => error,
        };
        if !is_about_content(&error) {
            return Err(error);
        }
        let (file, problem) = file_and_reason(&error).unwrap_or_else(|| (file.to_owned(), error.to_string()));
        self.problems.push(StoreProblem { file, problem, of: of.clone() });
        Ok(false)
    }
}

/// Compares a file of a segment with the next rows of a merge. `known` says which of the segment's runs the merge has.
/// Rows of other runs are skipped.
async fn compare(part: &ParquetFile, merge: &mut Merge, known: &[bool]) -> Result<()> {
    let mut batches = part.stream(part.whole(&[FINGERPRINT, "run", "row"]))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &part.file.url };
        let fingerprints = columns.primitive::<UInt64Type>(FINGERPRINT)?.values();
        let (runs, rows) =
            (columns.primitive::<UInt32Type>("run")?.values(), columns.primitive::<UInt32Type>("row")?.values());
        for ((&fingerprint, &run), &row) in fingerprints.iter().zip(runs).zip(rows) {
            let has = MergedRow { fingerprint, run, row };
            if known.get(run as usize) == Some(&false) {
                continue;
            }
            let expected = merge.next().await?;
            if expected != Some(has) {
                let expected = expected.map_or_else(|| "nothing".to_owned(), |row| row.to_string());
                return Err(damaged(&part.file.url, format!("has {has} where the runs give {expected}")));
            }
        }
    }
    Ok(())
}

/// Returns the sums of the hashes of a run's rows, by their fingerprints and by each of some words of their sketches. They do not
/// depend on the order of the rows. `first` is the place of the first row.
async fn sums_of_run(run: &ParquetFile, first: u64, words: &[u8]) -> Result<Vec<u64>> {
    let (mut sums, mut places) = (vec![0u64; 1 + words.len()], first..);
    let mut batches = run.stream(run.whole(&[FINGERPRINT]))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &run.file.url };
        for (&fingerprint, place) in columns.primitive::<UInt64Type>(FINGERPRINT)?.values().iter().zip(&mut places) {
            sums[0] = sums[0].wrapping_add(row_hash(fingerprint, place));
        }
    }
    if words.is_empty() {
        return Ok(sums);
    }
    let (pages, counts, mut first) = (SketchPages::of(run), ReadCounts::default(), first);
    for group in 0..run.n_row_groups() {
        let of_group = words_of(run, &pages, group..group + 1, words, &counts).await?;
        for (sum, values) in sums[1..].iter_mut().zip(&of_group.values) {
            *sum = values.iter().zip(first..).fold(*sum, |sum, (&word, place)| sum.wrapping_add(row_hash(word, place)));
        }
        first += run.row_group_rows(group);
    }
    Ok(sums)
}

/// Returns such a sum for each run of a table, whose places end at `ends`.
async fn sums_of_table(table: &ParquetFile, order: Permutation, ends: &[u64]) -> Result<Vec<u64>> {
    let mut sums = vec![0u64; ends.len()];
    let mut batches = table.stream(table.whole(&[PERMUTED, PLACE]))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &table.file.url };
        let permuted = columns.primitive::<UInt64Type>(PERMUTED)?.values();
        for (&permuted, &place) in permuted.iter().zip(columns.primitive::<UInt64Type>(PLACE)?.values()) {
            let Some(sum) = sums.get_mut(ends.partition_point(|&end| end <= place)) else {
                return Err(damaged(&table.file.url, format!("has the place {place}, which no run has")));
            };
            *sum = sum.wrapping_add(row_hash(order.invert(permuted), place));
        }
    }
    Ok(sums)
}

fn row_hash(fingerprint: u64, place: u64) -> u64 {
    let mut row = [0; 16];
    row[..8].copy_from_slice(&fingerprint.to_le_bytes());
    row[8..].copy_from_slice(&place.to_le_bytes());
    xxh3_64(&row)
}

/// Checks the order of a file: by (`fingerprint`, `doc_id`), (`text_hash`, `doc_id`), `id_hash`, `permuted` or `doc_id`, depending
/// on its columns. The order of files with rows of runs is not checked here.
async fn check_order(parquet: &ParquetFile) -> Result<()> {
    if parquet.has_column("row") && parquet.has_column(DOC_ID) {
        return Ok(());
    }
    let mut batches = parquet.stream(parquet.whole(&[FINGERPRINT, TEXT_HASH, "id_hash", PERMUTED, DOC_ID]))?;
    let mut previous: Option<(u128, String)> = None;
    let mut row = 0u64;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        for i in 0..batch.num_rows() {
            row += 1;
            let key = (leading_key(&columns, i)?, id(&columns, i)?);
            if previous.as_ref().is_some_and(|p| *p > key) {
                return Err(damaged(&parquet.file.url, format!("row {row} is out of order")));
            }
            previous = Some(key);
        }
    }
    Ok(())
}

fn leading_key(columns: &Columns<'_>, row: usize) -> Result<u128> {
    for name in [FINGERPRINT, "id_hash", PERMUTED] {
        if columns.batch.column_by_name(name).is_some() {
            return Ok(u128::from(columns.primitive::<UInt64Type>(name)?.value(row)));
        }
    }
    Ok(fixed(columns.bytes::<16>(TEXT_HASH)?, row).map_or(0, u128::from_be_bytes))
}

fn id(columns: &Columns<'_>, row: usize) -> Result<String> {
    if columns.batch.column_by_name(DOC_ID).is_none() {
        return Ok(String::new());
    }
    let ids = columns.strings(DOC_ID)?;
    Ok(if ids.is_valid(row) { ids.value(row).to_owned() } else { String::new() })
}
