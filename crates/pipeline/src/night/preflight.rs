//! Checks, before the work begins, that there is room for a night.

use std::path::Path;

use crate::error::{PipelineError, Result};
use nearprint_storage::{Folder, StorageError};

/// The bytes that a document takes in the spill folder: its fingerprint, sketch, text hash and id, three times over,
/// for the run files, for the decisions and pairs, and for spills.
const ROW_BYTES: u64 = 3 * 96;
/// The bytes that a night takes whatever the number of documents.
const BASE_BYTES: u64 = 64 << 20;

/// Refuses a spill folder whose file system has less room than `n_rows` documents take, about. If the number is not
/// known, it needs only the room that any night takes.
pub(crate) fn refuse_full(folder: &Path, n_rows: Option<u64>) -> Result<()> {
    let needed = BASE_BYTES.saturating_add(n_rows.unwrap_or(0).saturating_mul(ROW_BYTES));
    let stat = rustix::fs::statvfs(folder).map_err(|e| StorageError::io(folder)(e.into()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= needed {
        return Ok(());
    }
    Err(PipelineError::NoSpace { path: folder.to_path_buf(), needed, free })
}

/// Refuses a store or an output that cannot be written, before the night's work is done for nothing.
pub(crate) async fn refuse_unwritable(store: &Folder, output: &Folder, night: &Folder) -> Result<()> {
    let (commits, runs) = (store.join("_commits"), store.join("runs"));
    // A run that was killed while it probed left its file in one of these places.
    for place in [store, &runs, output, night] {
        place.tidy_itself().await;
    }
    for place in [&commits, &runs, night] {
        place.probe().await?;
    }
    Ok(())
}
