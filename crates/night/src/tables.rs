//! The tables of an output. The store's commit makes a night visible; the logs of the tables follow it.

use std::collections::BTreeSet;

use nearprint_delta::{TableChange, TableFile, TableLog};
use nearprint_fault::{Fault, Result, words};
use nearprint_parquet::schema::CHANGE_SET;
use nearprint_parquet::{CHANGES, PUBLISHED, PublishedName};
use nearprint_storage::{Folder, Storage};
use nearprint_store::{
    ChangedOutput, MANIFEST, Night, Store, damaged, file_and_reason, is_about_content, others_committed,
};

use super::manifest::Manifest;

/// The number of times that the next versions of the tables are tried while other writers are faster.
const MAX_ATTEMPTS: usize = 20;

/// Brings the tables of an output to the state of the store: a night that was added or replaced comes with all its files
/// in one version of each table, and a night that was dropped or forgotten, or is in another output now, goes. If a run dies before
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
        if write_changes(storage, &opened, output, (&mut changes, is_new), (newest, &identity)).await?
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
    let homeless = homeless_nights(storage, store, output, logs).await?;
    if let Some(night) = homeless.first() {
        let (n, output) = (homeless.len(), output.url());
        tracing::warn!(
            night,
            n,
            output,
            "nights stay in these tables: the outputs that the store names do not have them"
        );
    }
    for log in logs {
        let change = change(storage, store, output, log, (own, &homeless)).await?;
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
) -> Result<bool> {
    let change = match missing_changes(storage, store, output, log).await {
        Ok(change) if change.is_empty() => return Ok(true),
        Ok(change) => change,
        // What cannot be read now comes later, and no other set may come before it.
        Err(error) if !is_about_content(&error) => return Err(error),
        Err(error) => {
            tracing::warn!(table = log.table().url(), %error, "a set of changes is not in the table");
            return Ok(true);
        }
    };
    if !is_new && lacks_earlier_sets(storage, store, output, log, &change).await? {
        let table = log.table().url();
        tracing::warn!(
            table,
            "its log is gone: restore it, or move the folder away; until then, nearprint adds no set of changes"
        );
        return Ok(true);
    }
    let is_written = log.write(&change, newest_night, identity).await?;
    log.refresh().await?;
    Ok(is_written)
}

/// Returns the number of the newest set of which the table `changes` of an output has rows, or 0 if it has none. Refuses a table
/// to which no set can be added: it would not have every set then, whoever follows it would miss one, and nothing would say so.
///
/// # Errors
/// The table [cannot go on](cannot_go_on), or cannot be read.
pub(crate) async fn newest_set_there(storage: &Storage, store: &Store, output: &Folder, log: &TableLog) -> Result<u64> {
    match cannot_go_on(storage, store, output, log).await? {
        Some(fault) => Err(fault),
        None => Ok(newest_of(log.files())),
    }
}

/// Returns why no set of changes can follow those of a table: it has one that the store does not know, or lacks one that the store
/// knows, because either was put back to an earlier state; files of the newest one are damaged; or the log is gone. A table of
/// which nothing is left begins anew.
///
/// # Errors
/// The table cannot be read now.
pub(crate) async fn cannot_go_on(
    storage: &Storage,
    store: &Store,
    output: &Folder,
    log: &TableLog,
) -> Result<Option<Fault>> {
    let mut found = compared(storage, store, output, log).await?;
    for _ in 0..MAX_ATTEMPTS {
        if found.is_none() {
            return Ok(None);
        }
        // Others may have committed meanwhile. A log that is read while nobody commits has all sets but the newest.
        let before = Store::open(store.folder()).await?;
        found = compared(storage, &before, output, &TableLog::open(output, &CHANGES).await?).await?;
        if Store::open(store.folder()).await?.sequence() == before.sequence() {
            return Ok(found);
        }
    }
    Err(others_committed(MAX_ATTEMPTS))
}

/// Compares a table of changes with a state of the store.
async fn compared(storage: &Storage, store: &Store, output: &Folder, log: &TableLog) -> Result<Option<Fault>> {
    let url = log.table().url();
    let refused = |reason: String| Some(damaged(url, reason).remedy(words![PUT_BACK, MOVED_AWAY]));
    let change = match missing_changes(storage, store, output, log).await {
        Ok(change) => change,
        Err(error) if !is_about_content(&error) => return Err(error),
        Err(_) if begins_anew(log) => return Ok(None),
        Err(error) => {
            let fault = match file_and_reason(&error) {
                Some((file, reason)) => damaged(file, reason),
                None => error,
            };
            return Ok(Some(fault.remedy(words!["restore it from a backup, or ", MOVED_AWAY])));
        }
    };
    let stays = |file: &&TableFile| !change.removed.contains(&file.path);
    let there = newest_of(log.files().filter(stays).chain(&change.added));
    // Of an output of which the store knows nothing, no set is newer than its own newest one.
    let known = known_newest(storage, store, output);
    let most = known.unwrap_or(store.n_change_sets());
    Ok(match known {
        _ if there > most => refused(format!(
            "it has set of changes {there}, and the store knows it up to {most}, as if the store had been put back to an earlier state"
        )),
        Some(known) if there < known && !begins_anew(log) => refused(format!(
            "it has sets of changes up to {there}, and the store knows it up to {known}, as if the results had been put back to an earlier \
             state"
        )),
        _ if lacks_earlier_sets(storage, store, output, log, &change).await?
            && has_nights(store, &read_tables(output).await?) =>
        {
            refused("its log is gone, and files of earlier sets of changes are there".to_owned())
        }
        _ => None,
    })
}

const PUT_BACK: &str = "put back the other one of store and results too, from the same backup, or ";
const MOVED_AWAY: &str = "move the folder `changes` away: whoever follows it then begins anew with the corpus";

/// Returns whether a table of changes has nothing yet, or nothing any more.
fn begins_anew(log: &TableLog) -> bool {
    log.files().next().is_none() && log.removed().is_empty()
}

/// Returns the number of the newest set of which files have rows, or 0.
fn newest_of<'a>(files: impl Iterator<Item = &'a TableFile>) -> u64 {
    files.filter_map(set_of).max().unwrap_or(0)
}

/// Returns the number of the newest set of a file. `None` means that it has no rows.
pub(crate) fn set_of(file: &TableFile) -> Option<u64> {
    u64::try_from(file.largest(CHANGE_SET)?).ok()
}

/// Returns the number of the newest set of which the table of an output has rows, as the store knows it. `None` means that it
/// knows none of the output.
fn known_newest(storage: &Storage, store: &Store, output: &Folder) -> Option<u64> {
    let newest = store.changes().into_iter().flat_map(|set| &set.newest);
    newest.filter(|(root, _)| is_root_of(storage, root, output)).map(|(_, &number)| number).max()
}

/// Returns whether this is the root of an output: two jobs may write one output as two texts. An output that cannot be named any
/// more, as on S3 without a region, is another one.
pub(crate) fn is_root_of(storage: &Storage, root: &str, output: &Folder) -> bool {
    storage.folder(root).is_ok_and(|root| root.is_same_place(output))
}

/// Returns whether tables of nights name any of a release with the table `changes`: that has a log then, unless it is lost.
pub(crate) fn has_nights(store: &Store, logs: &[TableLog]) -> bool {
    let is_former = |dt: &str| store.night(dt).is_some_and(|night| night.run.is_of_release_0_2());
    logs.iter().any(|log| log.files().any(|file| !is_former(&file.dt)))
}

/// Returns whether a table of changes that has no version has files of earlier sets than the newest one: a run would write a log
/// with that set alone. Where nothing is to be written, a first set may be on its way. A store's first set has none before it,
/// and files of the newest number that the store does not name are those of a run that was killed, or was not the first.
async fn lacks_earlier_sets(
    storage: &Storage,
    store: &Store,
    output: &Folder,
    log: &TableLog,
    newest: &TableChange,
) -> Result<bool> {
    // The table had nothing when the newest set was made, so what else lies there a killed run has left.
    let begins = |of: &ChangedOutput| of.after == Some(0) && is_root_of(storage, &of.output, output);
    let is_first = store.n_change_sets() <= 1 || store.changes().is_some_and(|set| set.outputs.iter().any(begins));
    if is_first || newest.added.is_empty() || !begins_anew(log) {
        return Ok(false);
    }
    for night in log.table().names().await?.into_iter().filter(|name| !name.starts_with('_')) {
        for file in log.table().join(&night).names().await? {
            let path = format!("{night}/{file}");
            let Some(name) = PublishedName::parse(&path) else { continue };
            if newest.added.iter().any(|added| added.path == path) {
                continue;
            }
            // What cannot be read is of no set that is known to be a later one.
            let described = TableFile::of(log.table(), &path, name.dt, log.dataset()).await;
            if described.map_or(true, |file| set_of(&file).is_some_and(|number| number < store.n_change_sets())) {
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
        let there = newest_of(log.files());
        if let Some(after) = of.after.filter(|&after| after != there)
            && !change.added.is_empty()
            && !begins_anew(log)
        {
            let reason = format!("it has sets of changes up to {there}, and the newest one follows set {after}");
            return Err(damaged(log.table().url(), reason));
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
    (own, homeless): (Option<&str>, &BTreeSet<String>),
) -> Result<TableChange> {
    let mut change = TableChange::default();
    let remove = |change: &mut TableChange, dt: &str| {
        change.removed.extend(log.night(dt).map(|file| file.path.clone()));
    };
    for night in store.nights() {
        if !is_in(storage, output, night)? {
            if !homeless.contains(&night.dt) {
                remove(&mut change, &night.dt);
            }
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

/// Returns the nights that stay in the tables of this output although the store says that they are in another one, which does not
/// have them: a relative path of the store may lead elsewhere from this working folder.
async fn homeless_nights(
    storage: &Storage,
    store: &Store,
    output: &Folder,
    logs: &[TableLog],
) -> Result<BTreeSet<String>> {
    let mut homeless = BTreeSet::new();
    for night in store.nights().iter().filter(|night| have_night(logs, &night.dt)) {
        if is_in(storage, output, night)? {
            continue;
        }
        let other = storage.folder(night.output_root())?;
        // What cannot be read now goes with a later run.
        let manifest = other.join(&night.generation_path()).join(MANIFEST).find().await;
        if !matches!(manifest, Ok(Some(_))) {
            homeless.insert(night.dt.clone());
        }
    }
    Ok(homeless)
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
