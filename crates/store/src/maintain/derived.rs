//! What segments and indexes have in common: files that are derived from runs, each with content that its name determines.

use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_parquet::{FileRecord, ParquetFile};
use nearprint_storage::Folder;
use tokio::task::JoinSet;

/// Runs tasks, as many at once as there are threads. Returns their results in the order in which they end. At the first error the
/// other tasks are stopped.
///
/// # Errors
/// That of a task; [`ErrorKind::Bug`] if one panics.
pub async fn run_some<T: Send + 'static>(
    threads: usize,
    mut tasks: impl Iterator<Item = impl Future<Output = Result<T>> + Send + 'static>,
    stage: &'static str,
) -> Result<Vec<T>> {
    let (mut running, mut done) = (JoinSet::new(), Vec::new());
    loop {
        while running.len() < threads.max(1)
            && let Some(task) = tasks.next()
        {
            running.spawn(task);
        }
        let Some(ended) = running.join_next().await else { return Ok(done) };
        match ended.map_err(|e| Fault::internal(stage, e)).flatten() {
            Ok(result) => done.push(result),
            Err(error) => {
                // Other tasks still write to the temporary folder, which is about to be removed.
                running.shutdown().await;
                return Err(error);
            }
        }
    }
}

/// Returns whether all files in a folder have the size that the commit records.
pub async fn has_files(folder: &Folder, files: &[FileRecord]) -> Result<bool> {
    for recorded in files {
        let place = folder.join(&recorded.name);
        if place.find().await?.is_none_or(|file| file.size != recorded.bytes) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the record of the file at a place, or `None` if the file must be written. A file with this name was put there
/// completely, with rows that its name determines. If a commit records the file, it must agree with the record.
pub async fn sound_file(place: &Folder, name: &str, recorded: &[FileRecord]) -> Result<Option<FileRecord>> {
    let Some(file) = place.find().await? else {
        return Ok(None);
    };
    let (bytes, sha256) = file.sha256().await?;
    let rows = match ParquetFile::open(file).await {
        Ok(parquet) => parquet.n_rows(),
        Err(error) if error.kind() == ErrorKind::BadData => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = FileRecord { name: name.to_owned(), rows, bytes, sha256 };
    let recorded = recorded.iter().find(|r| r.name == name);
    Ok(recorded.is_none_or(|r| *r == found).then_some(found))
}
