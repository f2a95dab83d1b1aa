//! A run's documents, store, results and spill folder lie apart from each other.

use std::path::Path;

use nearprint_storage::{Folder, Storage, redact};
use nearprint_store::generation_name;

use super::request::{RunRequest, night_pattern};
use crate::error::{PipelineError, Result};

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
