//! Filtering HTML files: those of documents that are kept are copied.

use std::io::Write;

use futures::{FutureExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_storage::InputFile;

use super::filter::{FileFilter, FilterTarget, Filtered, Judge, RowCounts};
use super::warc_filter::refuse_flags;

/// Copies the file if its document is kept. Otherwise nothing is written.
pub fn filter(file: InputFile, filter: FileFilter, target: FilterTarget) -> Filtered {
    async move {
        refuse_flags(&file, filter.output)?;
        let id = filter.columns.web.id_of(&file.url).to_owned();
        let mut judge = Judge::new(filter);
        if judge.keeps(&file.url, 1, || Some(&id))? {
            copy(&file, target).await?;
        }
        judge.finish(&file.url)
    }
    .boxed()
}

/// Returns the counts of the file, if its document is not kept.
pub fn left_out(file: &InputFile, filter: &FileFilter) -> Result<Option<RowCounts>> {
    refuse_flags(file, filter.output)?;
    let mut judge = Judge::new(filter.clone());
    let keeps = judge.keeps(&file.url, 1, || Some(filter.columns.web.id_of(&file.url)))?;
    if keeps { Ok(None) } else { judge.finish(&file.url).map(Some) }
}

async fn copy(file: &InputFile, mut target: FilterTarget) -> Result<()> {
    let mut pieces = file.stream();
    while let Some(piece) = pieces.try_next().await? {
        target.file.write_all(&piece).map_err(Fault::io(&target.name))?;
    }
    Ok(())
}
