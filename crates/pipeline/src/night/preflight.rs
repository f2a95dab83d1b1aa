//! Is there room for a night, before its work begins?

use std::path::Path;

use crate::error::{PipelineError, Result};
use nearprint_storage::{Folder, StorageError};

/// Bytes that a document takes in the spill folder: its fingerprint, sketch, text hash and id, three times over, for the run, the
/// decisions and pairs, and spills.
const ROW_BYTES: u64 = 3 * 96;
/// Whatever the number of documents.
const BASE_BYTES: u64 = 64 << 20;

/// Refuses a spill folder whose file system has less room than `n_rows` documents take, about; than any night takes, where the number
/// is not known.
pub(crate) fn refuse_full(folder: &Path, n_rows: Option<u64>) -> Result<()> {
    let needed = BASE_BYTES.saturating_add(n_rows.unwrap_or(0).saturating_mul(ROW_BYTES));
    let stat = rustix::fs::statvfs(folder).map_err(|e| StorageError::io(folder)(e.into()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= needed {
        return Ok(());
    }
    Err(PipelineError::NoSpace { path: folder.to_path_buf(), needed, free })
}

/// Refuses a store or a night's results that cannot be written, before the night's work is done for nothing.
pub(crate) async fn refuse_unwritable(store: &Folder, output: &Folder, night: &Folder) -> Result<()> {
    let (commits, runs) = (store.join("_commits"), store.join("runs"));
    // A run that was killed while it probed left its file in whichever of these was there.
    for place in [store, &runs, output, night] {
        place.tidy_itself().await;
    }
    for place in [&commits, &runs, night] {
        place.probe().await?;
    }
    Ok(())
}
