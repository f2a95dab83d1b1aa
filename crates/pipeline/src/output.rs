//! Outputs of the commands that keep no store: a folder of staged files, with `_SUCCESS` last.

use std::collections::BTreeSet;

use crate::dataset::StagedFile;
use crate::error::{PipelineError, Result};
use crate::progress::Progress;
use crate::storage::Folder;

const SUCCESS: &str = "_SUCCESS";

/// Refuses a folder that has files, unless they may be replaced, and one that cannot be written.
pub(crate) async fn refuse_existing(output: &Folder, replace: bool) -> Result<()> {
    let names = output.names().await?;
    if replace || names.is_empty() {
        return output.probe().await;
    }
    let reason = "the output exists: name an empty folder, or replace it with --replace".to_owned();
    Err(PipelineError::OutputExists { url: output.url().to_owned(), reason })
}

/// Writes staged files below `output`, then `_SUCCESS`. With `replace`, `_SUCCESS` goes first, and the parts that an earlier
/// and longer dataset left behind go last; nothing else in the folder is touched.
pub(crate) async fn publish(output: &Folder, staged: &[StagedFile], replace: bool, progress: &Progress) -> Result<()> {
    if replace && output.join(SUCCESS).get().await?.is_some() {
        output.join(SUCCESS).delete().await?;
    }
    upload(output, staged, progress).await?;
    if replace {
        delete_left_over_parts(output, staged).await?;
    }
    output.join(SUCCESS).put(bytes::Bytes::new()).await
}

async fn delete_left_over_parts(output: &Folder, staged: &[StagedFile]) -> Result<()> {
    let split = |name: &str| {
        name.rsplit_once('/').map_or((String::new(), name.to_owned()), |(d, f)| (d.to_owned(), f.to_owned()))
    };
    let written: BTreeSet<(String, String)> = staged.iter().map(|f| split(&f.record.name)).collect();
    let folders: BTreeSet<&String> = written.iter().map(|(folder, _)| folder).collect();
    for folder in folders {
        let place = if folder.is_empty() { output.clone() } else { output.join(folder) };
        for name in place.names().await?.into_iter().filter(|name| is_part(name)) {
            if !written.contains(&(folder.clone(), name.clone())) {
                place.join(&name).delete().await?;
            }
        }
    }
    Ok(())
}

/// `part-00000.parquet`
fn is_part(name: &str) -> bool {
    let number = name.strip_prefix("part-").and_then(|n| n.strip_suffix(".parquet"));
    number.is_some_and(|n| n.len() == 5 && n.bytes().all(|b| b.is_ascii_digit()))
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
