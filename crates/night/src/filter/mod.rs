//! Writes the documents of published nights that survived: those of nights, those of the whole corpus, or what a night
//! changes in it.

mod corpus;
mod decided;
mod gone;
mod histories;
mod names;
mod night;
mod plan;
mod request;

use std::collections::BTreeSet;

use nearprint_fault::{ErrorKind, Fault, Result, key, words};
use nearprint_parquet::{StagedFile, upload};
use nearprint_pipeline::Resources;
use nearprint_storage::{Folder, Progress, Storage, date_of_day};
use nearprint_store::{Night, Store};

use self::corpus::{Choice, Taken, WithoutRecord, choose, n_repeated};
use self::gone::gone_documents;
use self::histories::DecidedNight;
use self::night::{Written, filter_night};
use self::plan::{Planned, plan_all};
use self::request::SUCCESS;
pub use self::request::{FilterCounts, FilterRequest, FilterSummary, FilteredNight, Selection};
use crate::published::{files_of, open_store};

/// Writes the surviving documents of published nights, file by file, in the formats and with the columns and the order
/// of rows of the run's input; or, beside them, a flag for each row.
///
/// The input of all nights is compared with their manifests before anything is written. Each file appears whole or not
/// at all. `_SUCCESS` in a night's folder is written last, after the counts of rows were compared with those of the
/// run. Where the selection is not of nights but of the corpus, the output has a `_SUCCESS` too, which comes after all else.
///
/// # Errors
/// A night is not published, an input file has changed since its run, the output exists, or the rows do not add up.
pub async fn filter(
    storage: &Storage,
    request: &FilterRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<FilterSummary> {
    storage.refuse_outside("output", &request.output)?;
    let output = storage.folder(&request.output)?;
    request.selection.check()?;
    let store = open_store(storage, &request.store).await?;
    request.refuse_overlaps(storage, &store, &output)?;
    let nights = request.selection.nights(&store)?;
    output.probe().await?;
    let mut published = Vec::with_capacity(nights.len());
    for night in &nights {
        published.push(files_of(storage, &store, night).await?);
    }
    let decided: Vec<DecidedNight> =
        nights.iter().zip(&published).map(|(night, files)| DecidedNight::of(night, files)).collect();
    let temp = resources.temp_dir()?;
    let choice = match taken(&request.selection, &store, &nights) {
        Some(taken) => Some(choose(&store, &decided, taken, resources, temp.path(), progress).await?),
        None => None,
    };
    let (fates, removed, without_record) = match choice {
        Some(Choice { fates, removed, without_record }) => {
            (fates.into_iter().map(Some).collect(), removed, without_record)
        }
        None => (vec![None; nights.len()], None, Vec::new()),
    };
    if !request.selection.allows_gone() {
        refuse_without_record(&without_record)?;
    }
    let previous = request.selection.previous(&nights);
    let (planned, there) = plan_all(storage, request, &store, &output, nights, published, fates).await?;
    let mut summary = FilterSummary {
        output: output.url().to_owned(),
        counts: FilterCounts::default(),
        n_repeated: match (&request.selection, decided.len()) {
            (Selection::Nights { .. }, 2..) => n_repeated(&decided, resources, progress).await?,
            _ => 0,
        },
        n_removed: None,
        n_gone: None,
        previous,
        forgotten_before: request.selection.forgotten_before(&store),
        nights: Vec::with_capacity(planned.len()),
    };
    let mut written = Written::default();
    if there.contains(SUCCESS) {
        output.join(SUCCESS).delete().await?;
    }
    let (gone, planned): (Vec<Planned>, Vec<Planned>) = planned.into_iter().partition(|night| night.is_gone);
    for night in planned {
        let (dt, stale) = (night.dt.clone(), night.stale);
        let (generation, url) = (night.published.digest.clone(), night.output.url().to_owned());
        let counts = filter_night(request, resources, progress, night, temp.path(), &mut written).await?;
        summary.counts.add(counts);
        summary.nights.push(FilteredNight { dt, generation, output: url, stale, counts });
    }
    let n_rows = |files: &Vec<StagedFile>| files.iter().map(|file| file.record.rows).sum();
    let lists_gone = removed.is_some() || request.selection.allows_gone();
    let gone = if lists_gone { Some(gone_documents(&gone, without_record, temp.path()).await?) } else { None };
    (summary.n_removed, summary.n_gone) = (removed.as_ref().map(n_rows), gone.as_ref().map(n_rows));
    for staged in [removed, gone].into_iter().flatten() {
        upload(&output, &staged, "publish", progress).await?;
        written.add_all(staged.into_iter().map(|file| file.record.name));
    }
    if !request.selection.is_of_nights() {
        complete(&output, there, &written).await?;
    }
    Ok(summary)
}

/// Deletes what an earlier execution wrote and this one has no more, and marks the output as complete.
async fn complete(output: &Folder, there: BTreeSet<String>, written: &Written) -> Result<()> {
    for name in there.into_iter().filter(|name| name != SUCCESS && !written.has(name)) {
        output.delete_found(name, || futures::future::ok::<(), Fault>(())).await?;
    }
    output.join(SUCCESS).put(bytes::Bytes::new()).await
}

/// The number of documents that a message names.
const MAX_EXAMPLES: usize = 3;

/// Refuses kept documents whose text is in no record of the nights.
fn refuse_without_record(documents: &[WithoutRecord]) -> Result<()> {
    if documents.is_empty() {
        return Ok(());
    }
    let example = |of: &WithoutRecord| {
        let since = date_of_day(of.day).map_or_else(String::new, |date| format!(" (text of {date})"));
        format!("'{}'{since}", of.id.escape_debug())
    };
    let examples: Vec<String> = documents.iter().take(MAX_EXAMPLES).map(example).collect();
    let kept = match documents.len() {
        1 => "a kept document, whose newest record is a revisit".to_owned(),
        n => format!("{n} kept documents, whose newest records are revisits"),
    };
    let reason = format!("no night of the store has a record with the text of {kept}: {}", examples.join(", "));
    let remedy = words![
        "the nights that had the texts are forgotten or have other ones now, or another page has them: write all other documents, and list these in _gone, with ",
        key("allow_gone")
    ];
    Err(Fault::new(ErrorKind::InputMissing, reason).remedy(remedy))
}

/// Returns what is taken of the nights together, or `None` if that is what each of them decided.
fn taken(selection: &Selection, store: &Store, nights: &[&Night]) -> Option<Taken> {
    match selection {
        Selection::Nights { .. } => None,
        Selection::Corpus { .. } => Some(Taken::Corpus),
        Selection::New { .. } => {
            let is_stale = nights.last().is_some_and(|night| store.is_stale(night));
            Some(Taken::New { is_stale, has_forgotten: store.forgotten().is_some() })
        }
    }
}
