//! The documents of a night: their places, and the reasons why there may be none.

use std::collections::BTreeSet;

use nearprint_documents::{
    Absent, DocumentPlace, Documents, NightFolders, NightPlace, first_names, is_document_name, layout_of,
};
use nearprint_fault::{Fault, Result};
use nearprint_storage::{Storage, is_date};

use super::request::RunRequest;

/// The number of nights that a message lists.
const LISTED: usize = 3;

/// Opens a night's documents: the inputs that the request names, or what is at their place.
///
/// # Errors
/// [`Documents::open`] fails, or the folder of the nights is missing. The latter is an error even if a night may be
/// empty.
pub(crate) async fn open(storage: &Storage, request: &RunRequest) -> Result<Documents> {
    let night = request.night_documents();
    if let Some(known) = &request.inputs {
        return Documents::open_known(storage, &night, known.clone(), request.columns.clone(), &request.input).await;
    }
    let opening = Documents::open(storage, &night, request.columns.clone(), &request.input);
    let DocumentPlace::Pattern { pattern: root, .. } = &request.documents else {
        return opening.await;
    };
    if request.is_of_a_whole_table() {
        return opening.await;
    }
    let pattern = night.name();
    let place = NightPlace::parse(root);
    if !place.has_date() {
        warn_of_misnamed_nights(storage, root).await;
    }
    let nights = place.nights(storage)?;
    // A folder dt=DATE is taken for a part of a table anyway.
    if let Some(nights) = nights.as_ref().filter(|nights| !nights.are_partitions()) {
        storage.refuse_table(&nights.root).await?;
    }
    let opened = opening.await;
    let absent = opened.as_ref().err().and_then(Fault::matter);
    if absent == Some(&Absent::NoMarker) {
        refuse_missing(storage, root, nights.as_ref()).await?;
    }
    let nothing = match &opened {
        // What a table has, its log or its metadata tell, and no folders.
        Ok(documents) => documents.is_without_files() && !documents.lacks_partition,
        Err(_) => absent == Some(&Absent::Missing),
    };
    match nights {
        Some(nights) if nothing => explain(storage, &nights, opened, (root, &place), (pattern, &request.dt)).await,
        None if nothing => refuse_missing_base(storage, pattern).await.and(opened),
        _ => opened,
    }
}

/// Refuses a place of nights that is missing. `nights` are its folders, unless wildcards come before the date.
async fn refuse_missing(storage: &Storage, documents: &str, nights: Option<&NightFolders>) -> Result<()> {
    let Some(nights) = nights else { return refuse_missing_base(storage, documents).await };
    if nights.root.is_local_folder() || !nights.root.names().await?.is_empty() {
        return Ok(());
    }
    Err(no_root(nights).await)
}

/// Returns the nights that have a folder or files at a place of nights, by date. There are none if wildcards come before the date.
///
/// # Errors
/// The place of nights is missing or cannot be listed, or its folders have names of nights in another form.
pub(crate) async fn nights_there(storage: &Storage, documents: &DocumentPlace) -> Result<BTreeSet<String>> {
    let DocumentPlace::Pattern { pattern, .. } = documents else { return Ok(BTreeSet::new()) };
    let place = NightPlace::parse(pattern);
    let nights = place.nights(storage)?;
    refuse_missing(storage, pattern, nights.as_ref()).await?;
    let Some(nights) = nights else { return Ok(BTreeSet::new()) };
    let dates = nights.dates().await?;
    // The folders of a table are those of its partitions, and a run may ask for its files by their version.
    if !dates.is_empty() || storage.refuse_table(&nights.root).await.is_err() {
        return Ok(dates);
    }
    other_layout(&nights, &nights.root.names().await?, (pattern, &place), ANY_DATE).map_or(Ok(dates), Err)
}

/// What stands for a date where no night is looked for.
const ANY_DATE: &str = "YYYY-MM-DD";

/// Warns of folders beside the nights' whose names are not dates: files in them belong to no night. The place of the nights has no
/// placeholders.
async fn warn_of_misnamed_nights(storage: &Storage, documents: &str) {
    // A root that cannot be listed has no names to warn of. The night's own folder may be readable all the same.
    let names = match storage.folder(documents) {
        Ok(root) => root.names().await.unwrap_or_default(),
        Err(_) => return,
    };
    for name in names.iter().filter_map(|name| name.strip_prefix("dt=")).filter(|dt| !is_date(dt)) {
        tracing::warn!(
            "{documents}/dt={} is not a date like 2026-11-20, so its files belong to no night",
            name.escape_debug()
        );
    }
}

/// Refuses a glob whose folder before the first wildcard is missing: its disk may not be mounted.
async fn refuse_missing_base(storage: &Storage, pattern: &str) -> Result<()> {
    let base = storage.base_of(pattern)?;
    if base.is_local_folder() || !base.names().await?.is_empty() {
        return Ok(());
    }
    Err(nights_missing(base.url()))
}

/// Makes the fault of a place of nights that is missing.
fn nights_missing(url: &str) -> Fault {
    let remedy =
        "this place does not exist: check its name, and whether its disk is mounted; nothing was read or written";
    Fault::input_missing("documents", url, remedy).about(Absent::NoNights)
}

/// Explains why a night has no documents. `job` is the place of all nights, as the job has it, and `documents` that of the night.
async fn explain(
    storage: &Storage,
    nights: &NightFolders,
    opened: Result<Documents>,
    job: (&str, &NightPlace),
    (documents, dt): (&str, &str),
) -> Result<Documents> {
    let names = nights.root.names().await?;
    if names.is_empty() && !nights.root.is_local_folder() {
        return Err(no_root(nights).await);
    }
    let is_there = nights.has(dt).await?;
    if is_there && opened.is_ok() {
        return opened;
    }
    let dates = nights.dates().await?;
    if !is_there {
        if let Some(fault) = other_form(storage, nights, (&names, &dates), job, dt).await? {
            return Err(fault);
        }
        if let Some(fault) = other_digits(nights, job.1, dt).await? {
            return Err(fault);
        }
    }
    if opened.is_ok() {
        return opened;
    }
    let there = if is_there {
        "its folder is there, but has no files".to_owned()
    } else if dates.is_empty() {
        if let Some(fault) = other_layout(nights, &names, job, dt) {
            return Err(fault);
        }
        let there = if names.is_empty() { "nothing".to_owned() } else { first_names(names.iter().map(String::as_str)) };
        let (root, folder) = (nights.root.url(), nights.name_of(dt));
        let is_folder = !folder.contains(['*', '?', '[']) && !is_document_name(&folder);
        let meant = match is_folder && names.iter().any(|name| is_document_name(name)) {
            true => format!(" (put the documents of a night into {root}/{folder})"),
            false => String::new(),
        };
        format!("{root} is there, but has no nights: {folder} was looked for, and there is: {there}{meant}")
    } else {
        let newest: Vec<&str> = dates.iter().rev().take(LISTED).map(String::as_str).collect();
        format!("the newest nights there: {}", newest.join(", "))
    };
    let remedy = format!("{there}: run it again when the crawl has arrived; nothing was read or written");
    Err(Fault::input_missing("documents", documents, remedy).about(Absent::NoNight))
}

/// Returns a fault if the folders at the place of nights have names of nights in another form. `documents` is the place as
/// the job has it.
fn other_layout(
    nights: &NightFolders,
    names: &[String],
    (documents, place): (&str, &NightPlace),
    dt: &str,
) -> Option<Fault> {
    if place.has_date() {
        return None;
    }
    let (name, layout) = names.iter().find_map(|name| Some((name, layout_of(name)?)))?;
    Some(misplaced(nights, name, (documents, place), &layout, dt))
}

/// Returns a fault if a night is there with its date in another form. Where other nights have the form of the place, the night may be
/// late, and what has another form may be no crawl; but a name of one folder in place of `dt=DATE` is the night's. `names` and `dates` are
/// those at the place of nights, and `job` is that place as the job has it.
async fn other_form(
    storage: &Storage,
    nights: &NightFolders,
    (names, dates): (&[String], &BTreeSet<String>),
    job: (&str, &NightPlace),
    dt: &str,
) -> Result<Option<Fault>> {
    // The date as the default place has it is a form of its own for places that say another.
    let layouts: BTreeSet<String> =
        names.iter().filter_map(|name| layout_of(name)).chain(["dt={dt}".to_owned()]).collect();
    let is_of_place = !dates.is_empty();
    // A key that the job does not name may be that of other data.
    let is_known = |key: &str| ["dt", "year", "Year"].contains(&key) || job.0.contains(&format!("{key}="));
    let has_key = |layout: &str| layout.split_once('=').is_some_and(|(key, _)| !is_known(key));
    let may_be_nights = |layout: &&String| match job.1.has_date() {
        true => !is_of_place && !has_key(layout),
        false => !is_of_place || !layout.contains('/'),
    };
    for layout in layouts.iter().filter(may_be_nights) {
        let Some(other) = NightPlace::parse(&format!("{}/{layout}", nights.root.url())).nights(storage)? else {
            continue;
        };
        let (name, own) = (other.name_of(dt), nights.name_of(dt));
        // Its folder may be there before its files. What cannot be listed is left to whoever reads it.
        let is_within = own == name || own.starts_with(&format!("{name}/"));
        if !is_within && other.has(dt).await.unwrap_or(false) {
            return Ok(Some(misplaced(nights, &name, job, layout, dt)));
        }
    }
    Ok(None)
}

/// Makes the fault of nights whose folders have their dates in another form than the job says.
fn misplaced(
    nights: &NightFolders,
    name: &str,
    (documents, place): (&str, &NightPlace),
    layout: &str,
    dt: &str,
) -> Fault {
    let remedy = match place.has_date() {
        true => format!("write the date in it as {layout}"),
        false => {
            format!("write the place with the date in it, documents = \"{}/{layout}\"", documents.trim_end_matches('/'))
        }
    };
    let (root, folder) = (nights.root.url(), nights.name_of(dt));
    let reason = format!("{root} has no folder {folder}, but {name}: {remedy}; nothing was read or written");
    Fault::config("documents", reason)
}

/// Returns a fault if a night has names whose month or day has other digits than the place says, such as `day=1` for `day={dd}`.
/// `place` is the place as the job has it.
async fn other_digits(nights: &NightFolders, place: &NightPlace, dt: &str) -> Result<Option<Fault>> {
    let Some(digits) = nights.other_digits(dt).await? else { return Ok(None) };
    let reason = format!(
        "{} has no folder {}, but {}: write the place with such numbers, documents = \"{}\"; nothing was read or written",
        nights.root.url(),
        nights.name_of(dt),
        nights.with_digits(digits).name_of(dt),
        place.with_digits(digits)
    );
    Ok(Some(Fault::config("documents", reason)))
}

async fn no_root(nights: &NightFolders) -> Fault {
    let url = nights.root.url().to_owned();
    let is_there = nights.root.local_path().is_some_and(std::path::Path::exists);
    // What cannot be asked for, as a bucket itself, is no object.
    let is_object = nights.root.is_remote() && nights.root.find().await.is_ok_and(|found| found.is_some());
    if is_there || is_object {
        let reason = format!(
            "{url} is no folder: name the folder that has the nights' folders dt=DATE, or put {{dt}} where a path has the date"
        );
        return Fault::config("documents", reason);
    }
    nights_missing(&url)
}
