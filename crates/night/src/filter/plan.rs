//! The checks before anything is written: the input of all nights, and the output.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt};
use nearprint_documents::{DocumentColumns, Fate, FilterOutput};
use nearprint_fault::{Fault, Result, key, words};
use nearprint_parquet::is_part_name;
use nearprint_storage::{Folder, IfExists, InputFile, Storage};
use nearprint_store::{Night, Store};

use super::corpus::NightFates;
use super::names;
use super::request::{FilterRequest, GONE, REMOVED, SUCCESS, Selection};
use crate::inputs::{LOOK_UPS_AT_ONCE, NightInput};
use crate::lost_inputs::{LostInputs, Remedies};
use crate::manifest::InputRecord;
use crate::published::PublishedFiles;

/// A night whose input and output were checked.
#[derive(Debug)]
pub struct Planned {
    pub dt: String,
    pub stale: bool,
    pub published: PublishedFiles,
    /// What becomes of the rows of the night's decisions. `None` means what the night decided.
    pub fates: Option<NightFates>,
    /// The files to read, each with its name in the output.
    pub inputs: Vec<(InputFile, String)>,
    /// The columns of the run, with the folder below which HTML files have their ids.
    pub columns: DocumentColumns,
    /// The size in bytes above which a text made its row no document.
    pub max_doc_bytes: u64,
    pub output: Folder,
    /// The documents are only listed, because input files are gone or have changed.
    pub is_gone: bool,
}

/// Checks the input and the output of all nights. Nights of which nothing is to be written are left out: their input is not
/// needed any more. Returns the names of the files in the output that are those of the nights and may be replaced, if the
/// output is one of the corpus.
///
/// # Errors
/// Input files are gone or have changed: the error names all of them. The output has other files.
pub async fn plan_all(
    storage: &Storage,
    request: &FilterRequest,
    store: &Store,
    output: &Folder,
    nights: Vec<&Night>,
    published: Vec<PublishedFiles>,
    fates: Vec<Option<NightFates>>,
) -> Result<(Vec<Planned>, BTreeSet<String>)> {
    if matches!(request.selection, Selection::Nights { .. }) {
        refuse_corpus(output).await?;
    }
    let newest = nights.last().map(|night| night.dt.clone()).unwrap_or_default();
    let mut planned = Vec::with_capacity(nights.len());
    let mut lost = LostInputs::default();
    let mut own = BTreeSet::from([SUCCESS.to_owned()]);
    for ((night, published), fates) in nights.into_iter().zip(published).zip(fates) {
        let is_newest = night.dt == newest;
        let place = output.join(&format!("dt={}", night.dt));
        let read = published.manifest.read_inputs();
        let urls = read.iter().map(|input| Ok(storage.input(&input.url)?.url().to_owned()));
        let urls: Vec<String> = urls.collect::<Result<_>>()?;
        refuse_among_inputs(storage, &place, &urls)?;
        let base = request.source.base(storage, &night.dt)?;
        let of_inputs: Vec<&str> = urls.iter().map(String::as_str).collect();
        let names = names::names(base.as_ref().map(Folder::url), &of_inputs, request.texts)?;
        match request.selection {
            Selection::Nights { .. } => refuse_existing(&place, request.if_exists, &names).await?,
            _ => own.extend(
                names.iter().map(String::as_str).chain([SUCCESS]).map(|name| format!("dt={}/{name}", night.dt)),
            ),
        }
        let stale = store.is_stale(night);
        if stale {
            tracing::warn!(
                night = night.dt,
                "it is stale: a night before it was added, replaced or dropped; `run --stale` decides it anew"
            );
        }
        if !request.needs(fates.as_ref(), is_newest) {
            continue;
        }
        let (inputs, lost_here) = look_up(storage, read, names).await?;
        let is_gone = !lost_here.is_empty() && request.may_lack(is_newest);
        if !is_gone {
            lost.add(&night.dt, lost_here, inputs.len());
        }
        let (columns, max_doc_bytes) = request.source.as_read(&published.manifest, base.as_ref());
        planned.push(Planned {
            dt: night.dt.clone(),
            stale,
            published,
            fates,
            inputs,
            columns,
            max_doc_bytes,
            output: place,
            is_gone,
        });
    }
    lost.refuse(usize::MAX, remedies())?;
    let there = match request.selection {
        Selection::Nights { .. } => BTreeSet::new(),
        _ => refuse_others(output, request.if_exists, &own).await?,
    };
    Ok((planned, there))
}

impl FilterRequest {
    /// Returns whether the input of a night is read. That of the night whose changes are written always is, so that its rows
    /// add up.
    fn needs(&self, fates: Option<&NightFates>, is_newest: bool) -> bool {
        let Some(fates) = fates else { return true };
        let is_asked_for = match self.selection {
            Selection::Nights { .. } => true,
            Selection::Corpus { .. } => self.what == FilterOutput::Flags,
            Selection::New { .. } => is_newest,
        };
        is_asked_for || fates.n(Fate::Keep) > 0
    }

    /// Returns whether the documents of a night are only listed if input files of it are gone.
    fn may_lack(&self, is_newest: bool) -> bool {
        self.selection.allows_gone() && !is_newest
    }
}

fn remedies() -> Remedies {
    Remedies {
        gone: "the night was made from it: restore it; a relative path is one below the folder of the job file".into(),
        changed: "restore the file, or publish the night again with `nearprint run --replace`".into(),
        several: "restore them, or publish the nights of changed files again with `nearprint run --replace`".into(),
    }
}

fn refuse_among_inputs(storage: &Storage, output: &Folder, urls: &[String]) -> Result<()> {
    for url in urls {
        if output.contains(&storage.folder(url)?) {
            let reason =
                words![key("output"), format!(" {} holds the input {url}: name an output of its own", output.url())];
            return Err(Fault::usage(reason));
        }
    }
    Ok(())
}

/// Returns the files that are the ones that the run read, with their names, and the others.
async fn look_up(
    storage: &Storage,
    read: Vec<InputRecord>,
    names: Vec<String>,
) -> Result<(Vec<(InputFile, String)>, Vec<NightInput>)> {
    let found = futures::stream::iter(read).map(|input| NightInput::of(storage, input)).buffered(LOOK_UPS_AT_ONCE);
    let found: Vec<NightInput> = found.try_collect().await?;
    let (mut inputs, mut lost) = (Vec::with_capacity(found.len()), Vec::new());
    for (input, name) in found.into_iter().zip(names) {
        match input {
            NightInput::Unchanged(file) => inputs.push((file, name)),
            other => lost.push(other),
        }
    }
    Ok((inputs, lost))
}

fn refuse_found(output: &Folder) -> Fault {
    let reason = words!["the output exists: name another folder, or replace it with ", key("replace")];
    Fault::output_exists(output.url().to_owned(), reason)
}

fn refuse_other(output: &Folder, name: &str, whose: &str) -> Fault {
    let reason = format!("it has {name}, which is no file of {whose}: remove it, or name another folder");
    Fault::output_exists(output.url().to_owned(), reason)
}

/// Refuses an output that has a corpus: that would have a document twice, and be marked as finished.
async fn refuse_corpus(output: &Folder) -> Result<()> {
    let names = output.names().await?;
    let Some(name) = names.iter().find(|name| [SUCCESS, REMOVED, GONE].contains(&name.as_str())) else {
        return Ok(());
    };
    let reason = format!("it has {name}, as the output of a corpus has: name another folder for the nights");
    Err(Fault::output_exists(output.url().to_owned(), reason))
}

/// Refuses a night's folder that has files, or, if these may be replaced, one that has other files.
async fn refuse_existing(output: &Folder, if_exists: IfExists, names: &[String]) -> Result<()> {
    output.tidy().await;
    let found = output.inventory().await?;
    let own: BTreeSet<&str> = names.iter().map(String::as_str).chain([SUCCESS]).collect();
    match (if_exists, found.iter().find(|file| !own.contains(file.name.as_str()))) {
        (IfExists::Refuse, _) if !found.is_empty() => Err(refuse_found(output)),
        (IfExists::Replace, Some(other)) => Err(refuse_other(output, &other.name, "the night")),
        _ => Ok(()),
    }
}

/// Refuses an output that has files, or, if these may be replaced, one that has files of another kind. Returns the names of
/// the files that it has.
async fn refuse_others(output: &Folder, if_exists: IfExists, own: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    output.tidy().await;
    let found: BTreeSet<String> = output.inventory().await?.into_iter().map(|file| file.name).collect();
    if if_exists == IfExists::Refuse && !found.is_empty() {
        return Err(refuse_found(output));
    }
    let is_listed = |name: &str| {
        name.split_once('/').is_some_and(|(folder, part)| [REMOVED, GONE].contains(&folder) && is_part_name(part))
    };
    match found.iter().find(|name| !own.contains(*name) && !is_listed(name)) {
        Some(other) => Err(refuse_other(output, other, "the nights")),
        None => Ok(found),
    }
}
