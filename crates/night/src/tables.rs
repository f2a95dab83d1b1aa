//! The tables of an output. The store's commit makes a night visible; the logs of the tables follow it.

use std::collections::BTreeSet;

use nearprint_delta::{TableChange, TableFile, TableLog};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::CHANGE_SET;
use nearprint_parquet::{CHANGES, PUBLISHED, PublishedName};
use nearprint_storage::{Folder, Storage};
use nearprint_store::{Night, Store, damaged, file_and_reason, is_about_content};

use super::manifest::Manifest;

/// The number of times that the next versions of the tables are tried while other writers are faster.
const MAX_ATTEMPTS: usize = 20;

/// Brings the tables of an output to the state of the store: a night that was added or replaced comes with all its files
/// in one version of each table, and a night that was dropped or forgotten, or is now published elsewhere, goes. If a run dies before
/// this, the next run into the output does it. Returns the logs as they are then.
///
/// Invariants: a log is read before the store, and the next version is created only if nobody else did meanwhile. So a
/// version never goes back to an older state of the store than the version before it. A version is written whole, so a
/// table has a night's files of one generation, or none. Nights that the store never knew stay as they are.
///
/// `own` is the night that this execution published. Of other nights, missing or damaged files are only a warning.
///
/// # Errors
/// A log is damaged or cannot be read or written, or a file of `own` cannot be read.
pub(crate) async fn roll_forward(
    storage: &Storage,
    store: &Folder,
    output: &Folder,
    own: Option<&str>,
) -> Result<Vec<TableLog>> {
    let mut logs = read_tables(output).await?;
    let mut changes = TableLog::open(output, &CHANGES).await?;
    for _ in 0..MAX_ATTEMPTS {
        let opened = Store::open(store).await?;
        let newest = opened.nights().last().map(|night| night.dt.as_str()).or(opened.changed_night());
        let Some(newest) = newest else {
            return Ok(logs);
        };
        // A store that has lost its identity names its tables without one.
        let identity = opened.identity().await?.unwrap_or_default();
        // The decisions come last, so whoever finds a night there finds what it changed too.
        let is_new = !has_nights(&opened, &logs);
        if write_changes(storage, &opened, output, (&mut changes, is_new), (newest, &identity), own).await?
            && write_missing(storage, &opened, output, &mut logs, (newest, &identity), own).await?
        {
            write_checkpoints(std::slice::from_mut(&mut changes)).await;
            write_checkpoints(&mut logs).await;
            return Ok(logs);
        }
    }
    let reason = format!("{}: others wrote {MAX_ATTEMPTS} versions of a table meanwhile", output.url());
    Err(Fault::try_again(reason))
}

/// Writes the checkpoints that are due. A failure is only a warning, because nothing depends on them: the next run tries
/// again.
async fn write_checkpoints(logs: &mut [TableLog]) {
    for log in logs {
        if let Err(error) = log.write_checkpoint().await {
            tracing::warn!(table = log.table().url(), %error, "no checkpoint was written");
        }
    }
}

/// Returns the outputs of some nights, and those that the newest set of changes names.
pub(crate) fn output_roots(storage: &Storage, store: &Store, nights: &[Night]) -> Result<Vec<Folder>> {
    let of_changes = store.changes().into_iter().flat_map(|set| &set.outputs).map(|of| of.output.as_str());
    let roots: BTreeSet<&str> = nights.iter().map(Night::output_root).chain(of_changes).collect();
    roots.into_iter().map(|root| storage.folder(root)).collect()
}

/// Brings the tables of all outputs of some nights, and those of the newest set of changes, to the state of the store.
///
/// # Errors
/// The same as those of [`roll_forward`], without those of a night of its own;
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if an output is not there: its disk may not be mounted, and
/// what would be written in its place would be lost.
pub(crate) async fn roll_all_forward(storage: &Storage, store: &Store, nights: &[Night]) -> Result<()> {
    for output in output_roots(storage, store, nights)? {
        store.refuse_unmounted_output(storage, &output).await?;
        roll_forward(storage, store.folder(), &output, None).await?;
    }
    Ok(())
}

/// Writes the next version of each table that lacks something of the state of the store, one after another, so that the
/// order of the tables holds. Returns `false` if another writer was faster: its version is read, and the rest is not
/// written.
async fn write_missing(
    storage: &Storage,
    store: &Store,
    output: &Folder,
    logs: &mut [TableLog],
    (newest_night, identity): (&str, &str),
    own: Option<&str>,
) -> Result<bool> {
    for log in logs {
        let change = change(storage, store, output, log, own).await?;
        if change.is_empty() {
            continue;
        }
        let is_written = log.write(&change, newest_night, identity).await?;
        log.refresh().await?;
        if !is_written {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the next version of the table `changes`, if it lacks the newest set of changes. Returns `false` if another writer
/// was faster: its version is read.
async fn write_changes(
    storage: &Storage,
    store: &Store,
    output: &Folder,
    (log, is_new): (&mut TableLog, bool),
    (newest_night, identity): (&str, &str),
    own: Option<&str>,
) -> Result<bool> {
    let change = match missing_changes(storage, store, output, log).await {
        Ok(change) if change.is_empty() => return Ok(true),
        Ok(change) => change,
        // What cannot be read now comes later, and no other set may come before it.
        Err(error) if !is_about_content(&error) || (own.is_some() && !begins_anew(log)) => return Err(error),
        Err(error) => {
            tracing::warn!(table = log.table().url(), %error, "a set of changes is not in the table");
            return Ok(true);
        }
    };
    if !is_new && lacks_earlier_sets(store, log, &change).await? {
        let table = log.table().url();
        tracing::warn!(
            table,
            "its log is gone: restore it, or move the folder away; no set of changes is added before"
        );
        return Ok(true);
    }
    let is_written = log.write(&change, newest_night, identity).await?;
    log.refresh().await?;
    Ok(is_written)
}

/// Refuses to add a set of changes to the table of an output that would not have every set then: whoever follows it would miss
/// one, and nothing would say so. `logs` are those of the output's tables of nights.
///
/// # Errors
/// The table [cannot go on](cannot_go_on), or cannot be read.
pub(crate) async fn refuse_lost_changes(
    storage: &Storage,
    store: &Store,
    output: &Folder,
    logs: &[TableLog],
) -> Result<()> {
    let log = TableLog::open(output, &CHANGES).await?;
    match cannot_go_on(storage, store, output, &log, logs).await? {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

/// Refuses it for all outputs of a store's nights and of its newest set of changes.
///
/// # Errors
/// The same as those of [`refuse_lost_changes`].
pub(crate) async fn refuse_lost_changes_of_all(storage: &Storage, store: &Store) -> Result<()> {
    for output in output_roots(storage, store, store.nights())? {
        refuse_lost_changes(storage, store, &output, &read_tables(&output).await?).await?;
    }
    Ok(())
}

/// Returns why no set of changes can follow those of a table: the store was put back to a state before the newest one; the files of
/// the newest one are damaged; or the log is gone. A table of which nothing is left begins anew.
///
/// # Errors
/// The table cannot be read now.
pub(crate) async fn cannot_go_on(
    storage: &Storage,
    store: &Store,
    output: &Folder,
    log: &TableLog,
    logs: &[TableLog],
) -> Result<Option<Fault>> {
    let url = log.table().url();
    let lost = |fault: Fault| Some(fault.remedy(RESTORE_CHANGES));
    // Another run may have committed since the store was opened.
    if unknown_set(store, log).is_some()
        && let Some(number) = unknown_set(&Store::open(store.folder()).await?, log)
    {
        let reason = format!(
            "it has a set of changes {number} that the store does not know, as if the store had been put back to an earlier state"
        );
        return Ok(lost(damaged(url, reason)));
    }
    match missing_changes(storage, store, output, log).await {
        Ok(change) if has_nights(store, logs) && lacks_earlier_sets(store, log, &change).await? => {
            Ok(lost(damaged(url, "its log is gone, and files of earlier sets of changes are there")))
        }
        Ok(_) => Ok(None),
        Err(error) if !is_about_content(&error) => Err(error),
        Err(_) if begins_anew(log) => Ok(None),
        Err(error) => Ok(lost(match file_and_reason(&error) {
            Some((file, reason)) => damaged(file, reason),
            None => error,
        })),
    }
}

/// Returns whether a table of changes has nothing yet, or nothing any more.
fn begins_anew(log: &TableLog) -> bool {
    log.files().next().is_none() && log.removed().is_empty()
}

const RESTORE_CHANGES: &str =
    "restore it from a backup, or move the folder `changes` away: whoever follows it then begins anew with the corpus";

/// Returns the number of a set of changes that a table has and the store does not know.
fn unknown_set(store: &Store, log: &TableLog) -> Option<u64> {
    let newest = store.changes().into_iter().flat_map(|set| &set.outputs).flat_map(|of| &of.added);
    let newest: Vec<&str> = newest.filter_map(|file| Some(below_table(&file.name).ok()?.0)).collect();
    log.files().find_map(|file| {
        // A set without rows has no number in its file.
        let number = u64::try_from(file.largest(CHANGE_SET)?).ok()?;
        let is_known =
            number < store.n_change_sets() || (number == store.n_change_sets() && newest.contains(&file.path.as_str()));
        (!is_known).then_some(number)
    })
}

/// Returns whether tables of nights name any of a release with the table `changes`: that has a log then, unless it is lost.
pub(crate) fn has_nights(store: &Store, logs: &[TableLog]) -> bool {
    let is_former = |dt: &str| store.night(dt).is_some_and(|night| night.run.is_of_release_0_2());
    logs.iter().any(|log| log.files().any(|file| !is_former(&file.dt)))
}

/// Returns whether a table of changes that has no version has files of other sets than the newest one, in an output that has
/// nights: a run would write a log with that set alone. Where nothing is to be written, a first set may be on its way. A store's
/// first set has none before it, and what else lies there a killed run has left.
pub(crate) async fn lacks_earlier_sets(store: &Store, log: &TableLog, newest: &TableChange) -> Result<bool> {
    if store.n_change_sets() <= 1 || newest.added.is_empty() || !begins_anew(log) {
        return Ok(false);
    }
    for night in log.table().names().await?.into_iter().filter(|name| !name.starts_with('_')) {
        for file in log.table().join(&night).names().await? {
            let path = format!("{night}/{file}");
            let is_of_set = PublishedName::parse(&path).is_some();
            if is_of_set && !newest.added.iter().any(|added| added.path == path) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns what the table of an output lacks of the newest set of changes. A file that it had once does not come again.
pub(crate) async fn missing_changes(
    storage: &Storage,
    store: &Store,
    output: &Folder,
    log: &TableLog,
) -> Result<TableChange> {
    let mut change = TableChange::default();
    let removed: BTreeSet<String> = log.removed().into_iter().map(|removed| removed.path).collect();
    let is_there = |path: &str| log.files().any(|file| file.path == path);
    for of in store.changes().into_iter().flat_map(|set| &set.outputs) {
        if !storage.folder(&of.output)?.is_same_place(output) {
            continue;
        }
        for file in &of.added {
            let (path, dt) = below_table(&file.name)?;
            if is_there(path) || removed.contains(path) {
                continue;
            }
            let described = TableFile::of(log.table(), path, dt, log.dataset()).await?;
            if (described.bytes, described.rows()) != (file.bytes, Some(file.rows)) {
                let url = log.table().join(path).url().to_owned();
                return Err(damaged(url, "its size or its rows are not those that the store's commit records"));
            }
            change.added.push(described);
        }
        for name in &of.removed {
            let (path, _) = below_table(name)?;
            if is_there(path) {
                change.removed.push(path.to_owned());
            }
        }
    }
    Ok(change)
}

/// Returns the path below the table of a file of changes, and the date under which the table has it.
fn below_table(name: &str) -> Result<(&str, &str)> {
    let path = name.strip_prefix(CHANGES.name).and_then(|path| path.strip_prefix('/'));
    let dt = path.and_then(PublishedName::parse).map(|name| name.dt);
    path.zip(dt).ok_or_else(|| Fault::internal("changes", format!("a commit names '{name}' among changes")))
}

/// Reads the logs of the tables of nights of an output, in the order in which they come to name a night.
pub(crate) async fn read_tables(output: &Folder) -> Result<Vec<TableLog>> {
    let read = PUBLISHED.iter().map(|dataset| TableLog::open(output, dataset));
    futures::future::try_join_all(read).await
}

/// Returns whether a table of these has files of a night.
pub(crate) fn have_night(logs: &[TableLog], dt: &str) -> bool {
    logs.iter().any(|log| log.night(dt).next().is_some())
}

/// Returns the nights that tables have and that the store says it has no more.
pub(crate) fn dropped_nights(store: &Store, logs: &[TableLog]) -> BTreeSet<String> {
    let dates: BTreeSet<&str> = logs.iter().flat_map(|log| log.files().map(|file| file.dt.as_str())).collect();
    dates.into_iter().filter(|dt| store.has_dropped(dt)).map(str::to_owned).collect()
}

/// Returns what a table lacks of the state of the store.
async fn change(
    storage: &Storage,
    store: &Store,
    output: &Folder,
    log: &TableLog,
    own: Option<&str>,
) -> Result<TableChange> {
    let mut change = TableChange::default();
    let remove = |change: &mut TableChange, dt: &str| {
        change.removed.extend(log.night(dt).map(|file| file.path.clone()));
    };
    for night in store.nights() {
        if !is_in(storage, output, night)? {
            remove(&mut change, &night.dt);
        } else if !is_current(log, night) {
            match added(output, log, night).await {
                Ok(files) => {
                    // A file of the night that the log has stays, whatever else somebody has added to the night.
                    let stays = |path: &str| files.iter().any(|file| file.path == path);
                    let of_night = log.night(&night.dt).map(|file| file.path.as_str());
                    change.removed.extend(of_night.filter(|path| !stays(path)).map(str::to_owned));
                    let is_there = |path: &str| log.night(&night.dt).any(|file| file.path == path);
                    change.added.extend(files.into_iter().filter(|file| !is_there(&file.path)));
                }
                Err(error) if own == Some(&night.dt) => return Err(error),
                Err(error) => {
                    tracing::warn!(night = night.dt, %error, "not in the tables yet: run its date again with --replace");
                }
            }
        }
    }
    for dropped in dropped_nights(store, std::slice::from_ref(log)) {
        remove(&mut change, &dropped);
    }
    debug_assert!(
        change.added.iter().all(|file| !change.removed.contains(&file.path)),
        "a version does not remove what it adds"
    );
    Ok(change)
}

/// Returns whether a night is published in the tables of this output.
fn is_in(storage: &Storage, output: &Folder, night: &Night) -> Result<bool> {
    Ok(storage.folder(night.output_root())?.is_same_place(output))
}

/// Returns whether a table names a night's files. Every dataset of a night has at least one, except that nights of release
/// 0.2.0, whose runs have no dependents, have none of `redecided`.
pub(crate) fn is_current(log: &TableLog, night: &Night) -> bool {
    let is_of_generation =
        |path: &str| PublishedName::parse(path).is_some_and(|name| name.generation == night.gen_digest);
    let mut files = log.night(&night.dt).peekable();
    let is_without = log.dataset().name == "redecided" && night.run.is_of_release_0_2();
    (is_without || files.peek().is_some()) && files.all(|file| is_of_generation(&file.path))
}

/// Returns a night's files of a table, as the manifest names them.
async fn added(output: &Folder, log: &TableLog, night: &Night) -> Result<Vec<TableFile>> {
    let manifest = Manifest::read(&output.join(&night.generation_path()), night).await?;
    let mut files = Vec::new();
    for (path, recorded) in manifest.files_of(night, log.dataset()) {
        let file = TableFile::of(log.table(), &path, &night.dt, log.dataset()).await?;
        if (file.bytes, file.rows()) != (recorded.bytes, Some(recorded.rows)) {
            let url = log.table().join(&path).url().to_owned();
            return Err(damaged(url, "its size or its rows are not those of its manifest"));
        }
        files.push(file);
    }
    Ok(files)
}
