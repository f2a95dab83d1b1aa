//! Checks, before the work begins, that there is room for a night.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nearprint_fault::{ErrorKind, Fault, Result, Words, key, words};
use nearprint_parquet::{DELTA_LOG, DT, PublishedDataset};
use nearprint_storage::Folder;
use nearprint_store::{RECORDS, night_records};

use super::plan::Plan;

/// The bytes that a document takes in the run files, and likewise in decisions and pairs: its fingerprint, sketch, text hash
/// and id.
const ROW_BYTES: u64 = 96;
/// The bytes that it takes in the spill folder: those of both, and as many for spills.
const SPILL_ROW_BYTES: u64 = 3 * ROW_BYTES;
/// The bytes that a night takes whatever the number of documents.
const BASE_BYTES: u64 = 64 << 20;

/// Refuses a night for which a file system has too little room, about: that of the spill folder, the output or the store.
/// The needs on one file system are added up. If the number of documents is not known, temporary files need the room
/// that any night takes, and results that of the list of inputs. Nothing is asked of S3.
pub(crate) fn refuse_full(spill: &Path, plan: &Plan) -> Result<()> {
    let n_rows = plan.documents.n_rows();
    let inputs = serde_json::to_vec(&plan.inputs).map_or(0, |list| list.len() as u64);
    let rows = n_rows.unwrap_or(0).saturating_mul(ROW_BYTES);
    let places = [
        ("temporary files", "spill_dir", Some(spill), spill_bytes(n_rows)),
        ("results", "output", plan.output.local_path(), rows.saturating_add(inputs)),
        ("the store", "store", plan.store.folder().local_path(), rows),
    ];
    let mut disks: Vec<Disk<'_>> = Vec::new();
    for (what, key, folder, needed) in places {
        let Some(folder) = folder.and_then(|folder| folder.ancestors().find(|above| above.exists())) else { continue };
        let device = std::fs::metadata(folder).map_err(Fault::io(folder))?.dev();
        match disks.iter_mut().find(|disk| disk.device == device) {
            Some(disk) => {
                disk.whats.push(what);
                disk.keys.push(key);
                disk.needed = disk.needed.saturating_add(needed);
            }
            None => disks.push(Disk { device, folder, whats: vec![what], keys: vec![key], needed }),
        }
    }
    disks.iter().try_for_each(Disk::refuse_full)
}

/// The needs of a night on a file system.
struct Disk<'a> {
    device: u64,
    folder: &'a Path,
    whats: Vec<&'static str>,
    keys: Vec<&'static str>,
    needed: u64,
}

impl Disk<'_> {
    fn refuse_full(&self) -> Result<()> {
        let stat = rustix::fs::statvfs(self.folder).map_err(|e| Fault::io(self.folder)(e.into()))?;
        let (needed, free) = (self.needed, stat.f_bavail.saturating_mul(stat.f_frsize));
        if free >= needed {
            return Ok(());
        }
        let reason = format!("{needed} bytes are needed for {}, {free} are free", self.whats.join(" and "));
        let keys = Words::joined(self.keys.iter().map(|name| key(*name).into()), " or ");
        let remedy = words!["free some, name another ", keys, ", or set preflight = false in [resources]"];
        let folder = self.folder.display().to_string();
        Err(Fault::new(ErrorKind::LocalIo, reason).at(folder).remedy(remedy))
    }
}

/// Returns the bytes that a night of `n_rows` documents takes in the spill folder, about.
pub(crate) fn spill_bytes(n_rows: Option<u64>) -> u64 {
    BASE_BYTES.saturating_add(n_rows.unwrap_or(0).saturating_mul(SPILL_ROW_BYTES))
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
    PublishedDataset::tables().map(|dataset| dataset.name).chain([RECORDS]).map(|name| output.join(name)).collect()
}

/// Returns the folders of an output into which a night is written.
fn places_of(output: &Folder, dt: &str) -> Vec<Folder> {
    let tables = PublishedDataset::tables().map(|dataset| output.join(dataset.name));
    let of_tables = tables.flat_map(|table| [table.join(DELTA_LOG), table.join(&format!("{DT}={dt}"))]);
    of_tables.chain([output.join(&night_records(dt))]).collect()
}
