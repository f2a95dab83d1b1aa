//! Outputs of the commands that keep no store: a folder of staged files, with `_SUCCESS` last.

use crate::dataset::StagedFile;
use crate::error::{PipelineError, Result};
use crate::progress::Progress;
use crate::storage::Folder;

const SUCCESS: &str = "_SUCCESS";

/// Refuses a folder that has files, unless they may be replaced.
pub(crate) async fn refuse_existing(output: &Folder, replace: bool) -> Result<()> {
    let names = output.names().await?;
    if replace || names.is_empty() {
        return Ok(());
    }
    let reason = "the output exists: name an empty folder, or replace it with --replace".to_owned();
    Err(PipelineError::OutputExists { url: output.url().to_owned(), reason })
}

/// Writes staged files below `output`, then `_SUCCESS`. With `replace`, `_SUCCESS` goes first, and data files that are not
/// among the new ones go last.
pub(crate) async fn publish(output: &Folder, staged: &[StagedFile], replace: bool, progress: &Progress) -> Result<()> {
    let mut stale = if replace { output.list().await? } else { Vec::new() };
    if replace && output.join(SUCCESS).get().await?.is_some() {
        output.join(SUCCESS).delete().await?;
    }
    upload(output, staged, progress).await?;
    stale.retain(|old| !staged.iter().any(|new| old.url == output.join(&new.record.name).url()));
    for old in stale.iter().filter(|f| f.url.ends_with(".parquet")) {
        let name = old.url.strip_prefix(&format!("{}/", output.url())).unwrap_or(&old.url);
        output.join(name).delete().await?;
    }
    output.join(SUCCESS).put(bytes::Bytes::new()).await
}

/// Copies staged files to their names below `folder`.
pub(crate) async fn upload(folder: &Folder, staged: &[StagedFile], progress: &Progress) -> Result<()> {
    progress.start("publish", "files", staged.len() as u64);
    for file in staged {
        folder.join(&file.record.name).put_file(&file.path).await?;
        progress.advance(1);
    }
    Ok(())
}
