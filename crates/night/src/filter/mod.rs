//! Writes the documents of published nights that survived.

mod decided;
mod names;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use nearprint_documents::{
    DocumentColumns, FileFilter, FilterOutput, FilterTarget, RowCounts, WebPages, filter_file, left_out, night_pattern,
};
use nearprint_fault::{ErrorKind, Fault, Result, key, words};
use nearprint_parquet::ReadLimits;
use nearprint_pipeline::{Resources, not_published};
use nearprint_storage::{Folder, IfExists, InputFile, NewFile, Progress, Storage};
use nearprint_store::{Night, Store};
use schemars::JsonSchema;
use serde::Serialize;

use self::decided::{Decided, DecidedCounts};
use crate::inputs::{LOOK_UPS_AT_ONCE, NightInput};
use crate::manifest::InputRecord;
use crate::published::{PublishedFiles, files_of, open_store, rows_of_quarantine};
use crate::request::{ANY_DATE, check_date};

/// The nights to filter, and the place of what is written.
#[derive(Debug, Clone)]
pub struct FilterRequest {
    /// The first night.
    pub dt: String,
    /// The last night. `None` means that there is one night only, which must be published.
    pub to: Option<String>,
    /// The store.
    pub store: String,
    /// The root of the documents, as in the run; below it, files keep their paths.
    pub documents: Option<String>,
    /// The folder to write to. A night's files lie in `dt=<date>` below it.
    pub output: String,
    /// The columns of the documents, as in the run.
    pub columns: DocumentColumns,
    /// The size in bytes above which a text made its row no document, as in the run.
    pub max_doc_bytes: u64,
    /// The form of the files that are written.
    pub what: FilterOutput,
    /// Says whether files that exist are replaced.
    pub if_exists: IfExists,
}

/// The summary of the `filter` command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilterSummary {
    /// The folder that was written to.
    pub output: String,
    /// The counts of all nights together.
    #[serde(flatten)]
    pub counts: FilterCounts,
    /// The nights, by date.
    pub nights: Vec<FilteredNight>,
}

/// A night that was filtered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilteredNight {
    /// The night.
    pub dt: String,
    /// The digest of the generation whose decisions were read.
    pub generation: String,
    /// The folder of the night's files.
    pub output: String,
    /// True if the night was decided without a night before it that was published later.
    pub stale: bool,
    /// The counts of the night.
    #[serde(flatten)]
    pub counts: FilterCounts,
}

/// The counts of a night or of all nights: rows by what became of them, files and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilterCounts {
    /// The rows of the files that were read.
    #[serde(flatten)]
    pub rows: RowCounts,
    /// The number of files that were read, and of those that were written.
    pub n_files: u64,
    /// The number of files that the run passed over because they cannot be read. They are not in the output.
    pub n_bad_files: u64,
    /// The bytes of the files that were read.
    pub bytes_read: u64,
    /// The bytes of the files that were written.
    pub bytes_written: u64,
}

impl FilterCounts {
    fn add(&mut self, more: Self) {
        self.rows += more.rows;
        self.n_files += more.n_files;
        self.n_bad_files += more.n_bad_files;
        self.bytes_read += more.bytes_read;
        self.bytes_written += more.bytes_written;
    }
}

/// A night whose input and output were checked.
struct Planned {
    dt: String,
    stale: bool,
    published: PublishedFiles,
    /// The files to read, each with its name in the output.
    inputs: Vec<(InputFile, String)>,
    /// The columns of the run, with the folder below which HTML files have their ids.
    columns: DocumentColumns,
    output: Folder,
}

const SUCCESS: &str = "_SUCCESS";

/// Writes the surviving documents of published nights, file by file, in the formats and with the columns and the order
/// of rows of the run's input; or, beside them, a flag for each row.
///
/// The input of all nights is compared with their manifests before anything is written. Each file appears whole or not
/// at all. `_SUCCESS` in a night's folder is written last, after the counts of rows were compared with those of the
/// run.
///
/// # Errors
/// A night is not published, an input file has changed since its run, the output exists, or the rows do not add up.
pub async fn filter(
    storage: &Storage,
    request: &FilterRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<FilterSummary> {
    check_date(&request.dt)?;
    request.to.as_deref().map_or(Ok(()), check_date)?;
    storage.refuse_outside("output", &request.output)?;
    let output = storage.folder(&request.output)?;
    let store = open_store(storage, &request.store).await?;
    request.refuse_overlaps(storage, &store, &output)?;
    let nights = nights(&store, request)?;
    output.probe().await?;
    let mut planned = Vec::with_capacity(nights.len());
    for night in nights {
        planned.push(plan(storage, request, &store, night, &output).await?);
    }
    let temp = resources.temp_dir()?;
    let mut summary = FilterSummary {
        output: output.url().to_owned(),
        counts: FilterCounts::default(),
        nights: Vec::with_capacity(planned.len()),
    };
    for night in planned {
        let (dt, stale) = (night.dt.clone(), night.stale);
        let (generation, url) = (night.published.digest.clone(), night.output.url().to_owned());
        let counts = filter_night(request, resources, progress, night, temp.path()).await?;
        summary.counts.add(counts);
        summary.nights.push(FilteredNight { dt, generation, output: url, stale, counts });
    }
    Ok(summary)
}

impl FilterRequest {
    /// Refuses an output that lies in the store, among the results or among the documents, or in which one of these
    /// lies.
    fn refuse_overlaps(&self, storage: &Storage, store: &Store, output: &Folder) -> Result<()> {
        output.refuse_file_in_its_way()?;
        let refused = |what: &str, url: &str| {
            let reason = words![
                key("output"),
                format!(
                    " {} and {what} {} lie in one another: name an output of its own",
                    nearprint_storage::redact(&self.output),
                    nearprint_storage::redact(url)
                )
            ];
            Err(Fault::usage(reason))
        };
        if output.overlaps(store.folder()) {
            return refused("the store", &self.store);
        }
        for night in store.nights() {
            let results = night.output_root();
            if output.overlaps(&storage.folder(results)?) {
                return refused("the results", results);
            }
        }
        if let Some(documents) = &self.documents {
            let documents = documents.replace("{dt}", ANY_DATE);
            if storage.reaches(&documents, output)? || output.contains(&storage.base_of(&documents)?) {
                return refused("the documents", &documents);
            }
        }
        Ok(())
    }
}

/// Returns the nights that were asked for.
fn nights<'a>(store: &'a Store, request: &FilterRequest) -> Result<Vec<&'a Night>> {
    let last = request.to.as_ref().unwrap_or(&request.dt);
    if *last < request.dt {
        let reason = words![
            key("to"),
            format!(" {last} is before "),
            key("dt"),
            format!(" {}: write the earlier night first", request.dt)
        ];
        return Err(Fault::usage(reason));
    }
    let wanted = |night: &&Night| request.dt <= night.dt && night.dt <= *last;
    let mut found: Vec<&Night> = store.nights().iter().filter(wanted).collect();
    found.sort_by(|a, b| a.dt.cmp(&b.dt));
    if found.is_empty() {
        let range = request.to.as_ref().map_or(String::new(), |to| format!(" to {to}"));
        return Err(not_published(store, &format!("{}{range}", request.dt)));
    }
    Ok(found)
}

/// Checks the input and the output of a night. Nothing is written.
async fn plan(
    storage: &Storage,
    request: &FilterRequest,
    store: &Store,
    night: &Night,
    output: &Folder,
) -> Result<Planned> {
    let published = files_of(storage, store, night).await?;
    let read = published.manifest.read_inputs();
    let found = futures::stream::iter(read).map(|input| unchanged(storage, input)).buffered(LOOK_UPS_AT_ONCE);
    let files: Vec<InputFile> = found.try_collect().await?;
    let output = output.join(&format!("dt={}", night.dt));
    for file in &files {
        if output.contains(&storage.folder(&file.url)?) {
            let reason = words![
                key("output"),
                format!(" {} holds the input {}: name an output of its own", output.url(), file.url)
            ];
            return Err(Fault::usage(reason));
        }
    }
    let base = request.documents.as_ref().map(|documents| storage.base_of(&night_pattern(documents, &night.dt)));
    let base = base.transpose()?;
    let urls: Vec<&str> = files.iter().map(|file| file.url.as_str()).collect();
    let names = names::names(base.as_ref().map(Folder::url), &urls)?;
    refuse_existing(&output, request.if_exists, &names).await?;
    let stale = store.info().nights.iter().any(|info| info.dt == night.dt && info.stale);
    if stale {
        tracing::warn!(
            night = night.dt,
            "it is stale: a night before it was published later; `run --replace` decides it anew"
        );
    }
    let mut columns = request.columns.clone();
    columns.web.root = base.as_ref().map(WebPages::root_of);
    let inputs = files.into_iter().zip(names).collect();
    Ok(Planned { dt: night.dt.clone(), stale, published, inputs, columns, output })
}

/// Returns an input file, if it is the one that the run read.
async fn unchanged(storage: &Storage, recorded: InputRecord) -> Result<InputFile> {
    match NightInput::of(storage, recorded).await? {
        NightInput::Unchanged(file) => Ok(file),
        NightInput::Changed { url, reason } => Err(Fault::bad_data(url, reason)
            .remedy("restore the file, or publish the night again with `nearprint run --replace`")),
        NightInput::Gone { url } => {
            let remedy = "the night was made from it: restore it; a relative path is one below the folder of the run";
            Err(Fault::input_missing("input file", url, remedy))
        }
    }
}

/// Refuses a night's folder that has files, or, if these may be replaced, one that has other files.
async fn refuse_existing(output: &Folder, if_exists: IfExists, names: &[String]) -> Result<()> {
    output.tidy().await;
    let found = output.inventory().await?;
    let reason = match if_exists {
        IfExists::Refuse if found.is_empty() => return Ok(()),
        IfExists::Refuse => words!["the output exists: name another folder, or replace it with ", key("replace")],
        IfExists::Replace => {
            let own: BTreeSet<&str> = names.iter().map(String::as_str).chain([SUCCESS]).collect();
            let Some(other) = found.iter().find(|file| !own.contains(file.name.as_str())) else { return Ok(()) };
            format!("it has {}, which is no file of the night: remove it, or name another folder", other.name).into()
        }
    };
    Err(Fault::output_exists(output.url().to_owned(), reason))
}

async fn filter_night(
    request: &FilterRequest,
    resources: &Resources,
    progress: &Progress,
    night: Planned,
    temp: &Path,
) -> Result<FilterCounts> {
    let manifest = &night.published.manifest;
    let n_held = Decided::n_held(manifest);
    if n_held.saturating_mul(Decided::DOCUMENT_BYTES) > resources.counted_bytes() as u64 {
        let reason = format!("the decisions about {n_held} documents take {} bytes each", Decided::DOCUMENT_BYTES);
        return Err(Fault::resources(reason));
    }
    progress.start("decisions", "documents", manifest.counts.documents.n_documents);
    let decided = Decided::read(night.published.decisions.clone(), manifest).await?;
    let expected = decided.counts();
    let mut quarantined = rows_of_quarantine(&night.published.quarantine).await?;
    let fates = Arc::new(decided);
    if request.if_exists == IfExists::Replace && night.output.join(SUCCESS).find().await?.is_some() {
        night.output.join(SUCCESS).delete().await?;
    }
    let limits = ReadLimits::new(resources.memory_limit, resources.n_threads());
    let mut filters = Vec::with_capacity(night.inputs.len());
    for (file, name) in night.inputs {
        // Most files have no row in quarantine.
        let filter = FileFilter {
            columns: night.columns.clone(),
            output: request.what,
            fates: Arc::clone(&fates) as _,
            quarantined: quarantined.remove(&file.url).unwrap_or_default(),
            limits: limits.clone(),
            max_doc_bytes: request.max_doc_bytes,
        };
        filters.push((file, filter, night.output.join(&name)));
    }
    let bad = &night.published.manifest.bad_files;
    if let Some(url) = quarantined.keys().find(|url| !bad.iter().any(|bad| bad.url == **url)) {
        let reason = format!("the night has rows of {url} in quarantine, which is none of its files");
        return Err(does_not_add_up(&night.dt, &reason));
    }
    progress.start("filter", "files", filters.len() as u64);
    let mut counts = FilterCounts { n_bad_files: bad.len() as u64, ..FilterCounts::default() };
    let mut done = futures::stream::iter(filters)
        .map(|(file, filter, place)| write(file, filter, place, temp, request.if_exists))
        .buffer_unordered(resources.n_threads());
    while let Some(more) = done.try_next().await? {
        counts.add(more);
        progress.advance(1);
    }
    refuse_difference(&night.dt, expected, &counts.rows)?;
    night.output.join(SUCCESS).put(bytes::Bytes::new()).await?;
    Ok(counts)
}

/// Filters a file.
async fn write(
    file: InputFile,
    filter: FileFilter,
    place: Folder,
    temp: &Path,
    if_exists: IfExists,
) -> Result<FilterCounts> {
    let bytes_read = file.size;
    if let Some(rows) = left_out(&file, &filter)? {
        // An earlier filter may have written the page, before the night was decided anew.
        if if_exists == IfExists::Replace && place.find().await?.is_some() {
            place.delete().await?;
        }
        return Ok(FilterCounts { rows, n_files: 1, n_bad_files: 0, bytes_read, bytes_written: 0 });
    }
    let new = NewFile::create(&place, temp).await?;
    let target = FilterTarget { file: new.handle()?, name: place.url().to_owned() };
    let rows = filter_file(file, filter, target).await?;
    let bytes_written = new.publish(if_exists).await?;
    Ok(FilterCounts { rows, n_files: 1, n_bad_files: 0, bytes_read, bytes_written })
}

/// Makes the fault of files whose rows are not those that the night decided about.
fn does_not_add_up(dt: &str, reason: &str) -> Fault {
    Fault::new(ErrorKind::BadData, format!("{dt}: {reason}"))
}

/// Refuses counts of rows that are not those of the night.
fn refuse_difference(dt: &str, expected: DecidedCounts, rows: &RowCounts) -> Result<()> {
    let DecidedCounts { n_keep, n_drop, n_skip, n_forgotten } = expected;
    let n_decided = rows.n_keep + rows.n_drop + rows.n_skip + rows.n_forgotten;
    let is_sum = rows.n_rows == n_decided + rows.n_quarantine && rows.n_forgotten == n_forgotten;
    if is_sum && (rows.n_keep, rows.n_drop, rows.n_skip) == (n_keep, n_drop, n_skip) {
        return Ok(());
    }
    let reason = format!(
        "of {} rows {} are kept, {} dropped, {} skipped, {} forgotten and {} in quarantine, but the night kept {n_keep}, dropped \
         {n_drop}, skipped {n_skip} and forgot {n_forgotten}: check that id_column is that of the run, and do not use the files that were written",
        rows.n_rows, rows.n_keep, rows.n_drop, rows.n_skip, rows.n_forgotten, rows.n_quarantine
    );
    Err(does_not_add_up(dt, &reason))
}
