//! Outputs of the commands that do not write to a store. They consist of a folder of files, and `_SUCCESS`, which is
//! written last.

use std::collections::BTreeSet;

use nearprint_fault::{Fault, Result, key, words};
use nearprint_storage::{Folder, IfExists, NewFiles, Progress};

use crate::writer::{FileRecord, StagedFile, is_part_name};

const SUCCESS: &str = "_SUCCESS";

/// Refuses an output folder that has files, unless `if_exists` allows to replace them, and one to which files cannot be written.
///
/// # Errors
/// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if the folder has files or cannot be a folder;
/// otherwise an error of the disk or the object store.
pub async fn refuse_existing(output: &Folder, if_exists: IfExists) -> Result<()> {
    let names = output.names().await?;
    if if_exists == IfExists::Replace || names.is_empty() {
        return output.probe().await;
    }
    let reason = words!["the output exists: name an empty folder, or replace it with ", key("replace")];
    Err(Fault::output_exists(output.url().to_owned(), reason))
}

/// Copies staged files below `output`, then writes `_SUCCESS`. With [`IfExists::Replace`], an existing `_SUCCESS` is deleted first,
/// and the files `part-NNNNN.parquet` that remain from an earlier, longer dataset are deleted after the copy. Nothing
/// else in the folder is touched.
///
/// ```
/// use nearprint_parquet::schema::SKIPPED;
/// use nearprint_parquet::{DatasetWriter, publish, refuse_existing};
/// use nearprint_storage::{IfExists, Progress, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let (spill, url) = (temp.path(), temp.path().join("out").display().to_string());
/// let output = Storage::default().folder(&url)?;
/// refuse_existing(&output, IfExists::Refuse).await?;
/// let files = DatasetWriter::new(spill, "", &SKIPPED, &[]).finish()?;
/// publish(&output, &files, IfExists::Refuse, &Progress::default()).await?;
/// let mut names = output.names().await?;
/// names.sort();
/// assert_eq!(names, ["_SUCCESS", "part-00000.parquet"]);
/// assert!(refuse_existing(&output, IfExists::Refuse).await.is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// A file cannot be written or deleted. There is no `_SUCCESS` then, and on a local disk nothing that this made.
pub async fn publish(output: &Folder, staged: &[StagedFile], if_exists: IfExists, progress: &Progress) -> Result<()> {
    if if_exists == IfExists::Replace && output.join(SUCCESS).get().await?.is_some() {
        output.join(SUCCESS).delete().await?;
    }
    let mut new = NewFiles::default();
    upload_new(output, staged, &mut new, "publish", progress).await?;
    if if_exists == IfExists::Replace {
        delete_left_over_parts(output, staged).await?;
    }
    output.join(SUCCESS).put(bytes::Bytes::new()).await?;
    new.keep();
    Ok(())
}

async fn delete_left_over_parts(output: &Folder, staged: &[StagedFile]) -> Result<()> {
    let split = |name: &str| {
        name.rsplit_once('/').map_or((String::new(), name.to_owned()), |(d, f)| (d.to_owned(), f.to_owned()))
    };
    let written: BTreeSet<(String, String)> = staged.iter().map(|f| split(&f.record.name)).collect();
    let folders: BTreeSet<&String> = written.iter().map(|(folder, _)| folder).collect();
    for folder in folders {
        let place = if folder.is_empty() { output.clone() } else { output.join(folder) };
        for name in place.names().await?.into_iter().filter(|name| is_part_name(name)) {
            if !written.contains(&(folder.clone(), name.clone())) {
                place.join(&name).delete().await?;
            }
        }
    }
    Ok(())
}

/// Copies staged files to their names below `folder`, if the files there are missing or not [sound](is_sound). Returns
/// the number of files that were copied.
///
/// # Errors
/// A file cannot be read or written.
pub async fn mend_files<'a>(folder: &Folder, staged: impl IntoIterator<Item = &'a StagedFile>) -> Result<u64> {
    let mut n_mended = 0;
    for file in staged {
        let place = folder.join(&file.record.name);
        if !is_sound(&place, &file.record).await? {
            tracing::warn!(file = place.url(), "damaged or gone: writing it again");
            place.put_file(&file.path).await?;
            n_mended += 1;
        }
    }
    Ok(n_mended)
}

/// Returns whether the file at a place has the size and SHA-256 of a record.
///
/// # Errors
/// The file exists, but cannot be read.
pub async fn is_sound(place: &Folder, recorded: &FileRecord) -> Result<bool> {
    match place.find().await? {
        Some(there) if there.size == recorded.bytes => {
            Ok(there.sha256().await? == (recorded.bytes, recorded.sha256.clone()))
        }
        _ => Ok(false),
    }
}

/// Copies staged files to their names below `folder`. The progress counts them as a stage of the given name.
///
/// # Errors
/// A file cannot be read or written. Files that were copied before stay.
pub async fn upload(folder: &Folder, staged: &[StagedFile], stage: &'static str, progress: &Progress) -> Result<()> {
    let mut new = NewFiles::default();
    new.keep();
    upload_new(folder, staged, &mut new, stage, progress).await
}

/// As [`upload`], and `new` gets to know the files.
///
/// # Errors
/// A file cannot be read or written.
pub async fn upload_new(
    folder: &Folder,
    staged: &[StagedFile],
    new: &mut NewFiles,
    stage: &'static str,
    progress: &Progress,
) -> Result<()> {
    progress.start(stage, "files", staged.len() as u64);
    for file in staged {
        new.put_file(folder, &file.record.name, &file.path).await?;
        progress.advance(1);
    }
    Ok(())
}
