//! The documents of a night: their places, and the reasons why there may be none.

use nearprint_documents::{Absent, DocumentPlace, Documents};
use nearprint_fault::{Fault, Result};
use nearprint_storage::{Folder, Storage, is_date};

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
    let pattern = night.name();
    warn_of_misnamed_nights(storage, root).await;
    let nights = Nights::of(storage, root)?;
    // A folder dt=DATE is taken for a part of a table anyway.
    if let Some(nights) = nights.as_ref().filter(|nights| !nights.before.contains('=')) {
        storage.refuse_table(&nights.root).await?;
    }
    let opened = opening.await;
    let absent = opened.as_ref().err().and_then(Fault::matter);
    if absent == Some(&Absent::NoMarker) {
        refuse_missing_root(storage, &request.documents).await?;
    }
    let nothing = match &opened {
        Ok(documents) => documents.is_without_files(),
        Err(_) => absent == Some(&Absent::Missing),
    };
    match nights {
        Some(nights) if nothing => nights.explain(opened, pattern, &request.dt).await,
        None if nothing => refuse_missing_base(storage, pattern).await.and(opened),
        _ => opened,
    }
}

/// Refuses a place of nights that is missing. No night is looked for.
pub(crate) async fn refuse_missing_root(storage: &Storage, documents: &DocumentPlace) -> Result<()> {
    let DocumentPlace::Pattern { pattern, .. } = documents else { return Ok(()) };
    let Some(nights) = Nights::of(storage, pattern)? else { return refuse_missing_base(storage, pattern).await };
    if nights.root.is_local_folder() || !nights.root.names().await?.is_empty() {
        return Ok(());
    }
    Err(nights.no_root())
}

/// Returns the newest night that has a folder or files at a place of nights. `None` if there is none, or if wildcards come
/// before the date.
///
/// # Errors
/// The place of nights is missing or cannot be listed.
pub(crate) async fn newest_night(storage: &Storage, documents: &DocumentPlace) -> Result<Option<String>> {
    refuse_missing_root(storage, documents).await?;
    let DocumentPlace::Pattern { pattern, .. } = documents else { return Ok(None) };
    let Some(nights) = Nights::of(storage, pattern)? else { return Ok(None) };
    let names = nights.root.names().await?;
    Ok(names.iter().filter_map(|name| nights.date(name)).max().map(str::to_owned))
}

/// Warns of folders beside the nights' whose names are not dates: files in them belong to no night.
async fn warn_of_misnamed_nights(storage: &Storage, documents: &str) {
    if documents.contains("{dt}") {
        return;
    }
    // If the root cannot be listed, the attempt to open the night's own folder reports it.
    let names = match storage.folder(documents) {
        Ok(root) => root.names().await.unwrap_or_default(),
        Err(_) => return,
    };
    for name in names.iter().filter_map(|name| name.strip_prefix("dt=")).filter(|dt| !is_date(dt)) {
        tracing::warn!("{documents}/dt={}: not a date like 2026-11-20, in no night", name.escape_debug());
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
        "there is no such place at all: check its name, and whether its disk is mounted; nothing was read or written";
    Fault::input_missing("documents", url, remedy).about(Absent::NoNights)
}

/// The folder of the nights, and the texts before and after the date in their names.
struct Nights {
    root: Folder,
    before: String,
    after: String,
}

impl Nights {
    /// Returns the nights of a place. `None` means that wildcards come before the date.
    fn of(storage: &Storage, documents: &str) -> Result<Option<Self>> {
        let (root, before, after) = match documents.split_once("{dt}") {
            None => (documents, "dt=", ""),
            Some((before, after)) => {
                let (root, before) = before.rsplit_once('/').unwrap_or((".", before));
                // A split has at least one piece.
                (if root.is_empty() { "/" } else { root }, before, after.split('/').next().unwrap_or_default())
            }
        };
        if format!("{root}{before}").contains(['*', '?', '[']) {
            return Ok(None);
        }
        Ok(Some(Self { root: storage.folder(root)?, before: before.to_owned(), after: after.to_owned() }))
    }

    /// Explains why there are no documents.
    async fn explain(&self, opened: Result<Documents>, pattern: &str, dt: &str) -> Result<Documents> {
        let names = self.root.names().await?;
        if names.is_empty() && !self.root.is_local_folder() {
            return Err(self.no_root());
        }
        if opened.is_ok() {
            return opened;
        }
        let mut dates: Vec<&str> = names.iter().filter_map(|name| self.date(name)).collect();
        dates.sort_unstable_by(|a, b| b.cmp(a));
        let there = match dates.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ") {
            _ if dates.contains(&dt) => "its folder is there, but has no files".to_owned(),
            newest if newest.is_empty() => format!("{} is there, but has no nights", self.root.url()),
            newest => format!("the newest nights there: {newest}"),
        };
        let remedy = format!("{there}: run it again when the crawl has arrived; nothing was read or written");
        Err(Fault::input_missing("documents", pattern, remedy).about(Absent::NoNight))
    }

    fn no_root(&self) -> Fault {
        let url = self.root.url().to_owned();
        if self.root.local_path().is_some_and(std::path::Path::exists) {
            let reason = format!(
                "{url} is no folder: name the folder that has the nights' folders dt=DATE, or put {{dt}} where a path has the date"
            );
            return Fault::config("documents".to_owned(), reason);
        }
        nights_missing(&url)
    }

    fn date<'a>(&self, name: &'a str) -> Option<&'a str> {
        let date = name.strip_prefix(self.before.as_str())?;
        let date = if self.after.contains(['*', '?', '[']) {
            date.get(..10)?
        } else {
            date.strip_suffix(self.after.as_str())?
        };
        is_date(date).then_some(date)
    }
}
