//! Checks, before the work begins, that there is room for a night.

use std::path::Path;

use crate::error::{PipelineError, Result};
use nearprint_dataset::{DELTA_LOG, DT, PUBLISHED};
use nearprint_storage::{Folder, StorageError};
use nearprint_store::{RECORDS, night_records};

/// The bytes that a document takes in the spill folder: its fingerprint, sketch, text hash and id, three times over,
/// for the run files, for the decisions and pairs, and for spills.
const ROW_BYTES: u64 = 3 * 96;
/// The bytes that a night takes whatever the number of documents.
const BASE_BYTES: u64 = 64 << 20;

/// Refuses a spill folder whose file system has less room than `n_rows` documents take, about. If the number is not
/// known, it needs only the room that any night takes.
pub(crate) fn refuse_full(folder: &Path, n_rows: Option<u64>) -> Result<()> {
    let needed = spill_bytes(n_rows);
    let stat = rustix::fs::statvfs(folder).map_err(|e| StorageError::io(folder)(e.into()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= needed {
        return Ok(());
    }
    Err(PipelineError::NoSpace { path: folder.to_path_buf(), needed, free })
}

/// Returns the bytes that a night of `n_rows` documents takes in the spill folder, about.
pub(crate) fn spill_bytes(n_rows: Option<u64>) -> u64 {
    BASE_BYTES.saturating_add(n_rows.unwrap_or(0).saturating_mul(ROW_BYTES))
}

/// Refuses a store or an output that the permissions forbid to write. Nothing is written.
pub(crate) fn refuse_forbidden(store: &Folder, output: &Folder, dt: &str) -> Result<()> {
    for place in [store.join("_commits"), store.join("runs")].iter().chain(&places_of(output, dt)) {
        place.refuse_forbidden()?;
    }
    Ok(())
}

/// Refuses a store or an output that cannot be written, before the night's work is done for nothing.
pub(crate) async fn refuse_unwritable(store: &Folder, output: &Folder, dt: &str) -> Result<()> {
    let places = places_of(output, dt);
    let (commits, runs) = (store.join("_commits"), store.join("runs"));
    // A run that was killed while it probed left its file in one of these places: in the folder above, if there was no
    // such place yet.
    for place in [store, &runs, output].into_iter().chain(&roots_of(output)).chain(&places) {
        place.tidy_itself().await;
    }
    for place in [&commits, &runs].into_iter().chain(&places) {
        place.probe().await?;
    }
    Ok(())
}

/// Removes half-written files that killed runs left in the places of a night. A run that finds its night published writes
/// nothing there, so it would not remove them otherwise.
pub(crate) async fn tidy_output(output: &Folder, dt: &str) {
    for place in [output].into_iter().chain(&roots_of(output)) {
        place.tidy_itself().await;
    }
    for place in places_of(output, dt) {
        place.tidy().await;
    }
}

/// Returns the folders of an output that have folders of nights.
fn roots_of(output: &Folder) -> Vec<Folder> {
    PUBLISHED.iter().map(|dataset| dataset.name).chain([RECORDS]).map(|name| output.join(name)).collect()
}

/// Returns the folders of an output into which a night is written.
fn places_of(output: &Folder, dt: &str) -> Vec<Folder> {
    let tables = PUBLISHED.iter().map(|dataset| output.join(dataset.name));
    let of_tables = tables.flat_map(|table| [table.join(DELTA_LOG), table.join(&format!("{DT}={dt}"))]);
    of_tables.chain([output.join(&night_records(dt))]).collect()
}
