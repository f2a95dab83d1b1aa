//! What a command writes lies apart from what it reads: else it would destroy its input, or read its own results next time.

use std::path::Path;

use crate::error::{PipelineError, Result};
use crate::night::request::{RunRequest, night_pattern};
use nearprint_dataset::is_document_name;
use nearprint_storage::{Folder, Storage, redact};
use nearprint_store::generation_name;

/// A flag or key, and the place that it names.
pub type Named<'a> = (&'a str, &'a str);

/// Any date, as a glob.
const ANY_DATE: &str = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]";

/// Refuses a run whose nights could come upon its own store or results, and results and store of which one lies in the other, or stands
/// where a file is.
pub(crate) fn refuse_run(storage: &Storage, request: &RunRequest, spill: &Path) -> Result<()> {
    let (store, output) = (storage.folder(&request.store)?, storage.folder(&request.output)?);
    store.refuse_file_in_its_way()?;
    output.refuse_file_in_its_way()?;
    let results = output.join(&format!("dt={}", request.dt)).join(&generation_name(""));
    for (key, url, place) in [("output", &request.output, &results), ("store", &request.store, &store)] {
        if nights_reach(storage, &request.documents, place)? {
            return Err(overlap(
                key,
                url,
                "documents",
                &request.documents,
                "the next run would read what this one writes",
            ));
        }
    }
    let (spill, nights) = (spill.display().to_string(), night_pattern(&request.documents, "{dt}"));
    if nights_reach(storage, &nights, &storage.folder(&spill)?)? {
        let why = "another run would read what this one spills";
        return Err(overlap("resources.spill_dir", &spill, "documents", &request.documents, why));
    }
    if store.overlaps(&output) {
        let why = "no command may take the files of one for those of the other";
        return Err(overlap("output", &request.output, "store", &request.store, why));
    }
    Ok(())
}

/// Whether some night's documents could lie at a place or below it. A root without `{dt}` is the crawl's as a whole.
fn nights_reach(storage: &Storage, documents: &str, place: &Folder) -> Result<bool> {
    if !documents.contains("{dt}") {
        return Ok(storage.reaches(documents, place)?);
    }
    let nights = documents.replace("{dt}", ANY_DATE);
    let nights = nights.trim_end_matches('/');
    Ok(storage.reaches(nights, place)? || storage.reaches(&format!("{nights}/**"), place)?)
}

fn overlap(key: &str, url: &str, other: &str, other_url: &str, why: &str) -> PipelineError {
    let reason = format!(
        "'{}' holds or lies in {other} = '{}': {why}; name a folder outside of it",
        redact(url),
        redact(other_url)
    );
    PipelineError::Config { key: key.to_owned(), reason }
}

/// Refuses a folder of results, `--output` or below it, that lies among what is read, or above it.
pub(crate) fn refuse_folder(storage: &Storage, written: &Folder, output: &str, inputs: &[Named<'_>]) -> Result<()> {
    for (flag, pattern) in inputs {
        if storage.reaches(pattern, written)? || storage.begins_below(pattern, written)? {
            let reason = format!(
                "--output {} and {flag} {} lie in one another: name an output of its own, so that no input is overwritten and no \
                 result is read as one",
                redact(output),
                redact(pattern)
            );
            return Err(PipelineError::Usage { reason });
        }
    }
    Ok(())
}

/// Refuses a file to write that is one of the files which a command reads, or that would be one of its documents next time.
///
/// # Errors
/// [`PipelineError::Usage`] naming both flags.
pub fn refuse_file(storage: &Storage, (flag, output): Named<'_>, documents: &str, inputs: &[Named<'_>]) -> Result<()> {
    let place = storage.folder(output)?;
    let refused = |other: &str, url: &str| {
        let reason =
            format!("{flag} {} would overwrite what {other} {} reads: name another file", redact(output), redact(url));
        Err(PipelineError::Usage { reason })
    };
    for (other, url) in inputs {
        if place.contains(&storage.folder(url)?) {
            return refused(other, url);
        }
    }
    let is_next_document = is_document_name(output) && storage.reaches(documents, &place)?;
    if is_next_document || storage.begins_below(documents, &place)? {
        return refused("--documents", documents);
    }
    Ok(())
}
