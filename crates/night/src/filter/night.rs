//! The documents of one night are written.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use futures::{FutureExt, StreamExt, TryStreamExt};
use nearprint_documents::{
    FileFilter, FilterOutput, FilterTarget, RowCounts, TextFormat, filter_file, is_written_empty, left_out, write_texts,
};
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_parquet::ReadLimits;
use nearprint_pipeline::Resources;
use nearprint_storage::{Folder, IfExists, InputFile, NewFile, Progress};

use super::decided::Decided;
use super::plan::Planned;
use super::request::{FilterCounts, FilterRequest, SUCCESS};
use crate::published::rows_of_quarantine;

/// The names of the files that were written, below the output.
#[derive(Debug, Default)]
pub struct Written(BTreeSet<String>);

impl Written {
    pub fn add_all(&mut self, names: impl IntoIterator<Item = String>) {
        self.0.extend(names);
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// Writes the documents of a night.
///
/// # Errors
/// A file cannot be read or written; the memory limit does not allow the night's decisions; the rows do not add up.
pub async fn filter_night(
    request: &FilterRequest,
    resources: &Resources,
    progress: &Progress,
    night: Planned,
    temp: &Path,
    written: &mut Written,
) -> Result<FilterCounts> {
    let manifest = &night.published.manifest;
    let n_held = Decided::n_held(manifest, night.fates.as_ref());
    if n_held.saturating_mul(Decided::DOCUMENT_BYTES) > resources.counted_bytes() as u64 {
        let reason = format!("the decisions about {n_held} documents take {} bytes each", Decided::DOCUMENT_BYTES);
        return Err(Fault::resources(reason));
    }
    progress.start("decisions", "documents", manifest.counts.documents.n_documents);
    // A night's own survivors have a file for each input file, but for web pages of which nothing is kept.
    let with_empty_files = night.fates.is_none() || request.what == FilterOutput::Flags;
    let decided = Decided::read(night.published.decisions.clone(), manifest, night.fates.as_ref()).await?;
    let expected = decided.expected();
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
            max_doc_bytes: night.max_doc_bytes,
        };
        filters.push((file, filter, name));
    }
    let bad = &night.published.manifest.bad_files;
    if let Some(url) = quarantined.keys().find(|url| !bad.iter().any(|bad| bad.url == **url)) {
        let reason = format!("the night has rows of {url} in quarantine, which is none of its files");
        return Err(does_not_add_up(&night.dt, &reason));
    }
    progress.start("filter", "files", filters.len() as u64);
    let mut counts = FilterCounts { n_bad_files: bad.len() as u64, ..FilterCounts::default() };
    let mut done = futures::stream::iter(filters)
        .map(|(file, filter, name)| {
            let place = night.output.join(&name);
            let how = How { texts: request.texts, if_exists: request.if_exists, with_empty_files };
            let written = write(file, filter, place, temp, how);
            written.map(|done| done.map(|(counts, is_written)| (counts, is_written.then_some(name))))
        })
        .buffer_unordered(resources.n_threads());
    while let Some((more, name)) = done.try_next().await? {
        counts.add(more);
        written.add_all(name.map(|name| format!("dt={}/{name}", night.dt)));
        progress.advance(1);
    }
    drop(done);
    refuse_difference(&night.dt, &expected, &counts.rows)?;
    night.output.join(SUCCESS).put(bytes::Bytes::new()).await?;
    written.add_all([format!("dt={}/{SUCCESS}", night.dt)]);
    Ok(counts)
}

/// The way to write a file.
#[derive(Debug, Clone, Copy)]
struct How {
    texts: Option<TextFormat>,
    if_exists: IfExists,
    with_empty_files: bool,
}

/// Filters a file. Returns its counts, and whether a file was written: one without documents may be left out.
async fn write(
    file: InputFile,
    filter: FileFilter,
    place: Folder,
    temp: &Path,
    How { texts, if_exists, with_empty_files }: How,
) -> Result<(FilterCounts, bool)> {
    let bytes_read = file.size;
    let counts = |rows, bytes_written| FilterCounts { rows, n_files: 1, n_bad_files: 0, bytes_read, bytes_written };
    if let Some(rows) = left_out(&file, &filter)? {
        delete_earlier(&place, if_exists).await?;
        return Ok((counts(rows, 0), false));
    }
    let may_be_empty = texts.is_some() || is_written_empty(&file.url);
    let new = NewFile::create(&place, temp).await?;
    let target = FilterTarget { file: new.handle()?, name: place.url().to_owned() };
    let rows = match texts {
        Some(format) => write_texts(file, filter, target, format).await?,
        None => filter_file(file, filter, target).await?,
    };
    if rows.n_keep == 0 && !with_empty_files {
        return Ok((counts(rows, 0), false));
    }
    if !may_be_empty && new.n_bytes()? == 0 {
        delete_earlier(&place, if_exists).await?;
        return Ok((counts(rows, 0), false));
    }
    Ok((counts(rows, new.publish(if_exists).await?), true))
}

/// Deletes the file that an earlier filter wrote, before the night was decided anew, if files may be replaced.
async fn delete_earlier(place: &Folder, if_exists: IfExists) -> Result<()> {
    if if_exists == IfExists::Replace && place.find().await?.is_some() {
        place.delete().await?;
    }
    Ok(())
}

/// Makes the fault of files whose rows are not those that the night decided about.
fn does_not_add_up(dt: &str, reason: &str) -> Fault {
    Fault::new(ErrorKind::BadData, format!("{dt}: {reason}"))
}

/// Refuses counts of rows that are not those of the night.
fn refuse_difference(dt: &str, expected: &RowCounts, rows: &RowCounts) -> Result<()> {
    let RowCounts { n_rows, n_keep, n_drop, n_skip, n_replaced, n_unchanged, n_forgotten, n_quarantine } = *rows;
    let n_decided = n_keep + n_drop + n_skip + n_replaced + n_unchanged + n_forgotten;
    if n_rows == n_decided + n_quarantine && *rows == (RowCounts { n_rows, n_quarantine, ..*expected }) {
        return Ok(());
    }
    let reason = format!(
        "of {n_rows} rows {n_keep} are kept, {n_drop} dropped, {n_skip} skipped, {n_replaced} replaced, {n_unchanged} unchanged, \
         {n_forgotten} forgotten and {n_quarantine} in quarantine, but the night kept {}, dropped {} and skipped {}, and {} of its \
         rows are replaced, {} unchanged and {} forgotten: check that id_column is that of the run, and do not use the files that \
         were written",
        expected.n_keep,
        expected.n_drop,
        expected.n_skip,
        expected.n_replaced,
        expected.n_unchanged,
        expected.n_forgotten
    );
    Err(does_not_add_up(dt, &reason))
}
