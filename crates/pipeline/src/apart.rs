//! Checks that the output of a command lies apart from its input. Otherwise, the command would destroy its input, or
//! read its own results next time.

use crate::error::{PipelineError, Result};
use nearprint_dataset::{DocumentPlace, is_document_name};
use nearprint_storage::{Folder, Storage, redact};

/// A key, and the place that it names.
pub type Named<'a> = (&'a str, &'a str);

/// Refuses a folder of results (`--output`, or a folder below it) that lies in an input, or in which an input lies.
pub(crate) fn refuse_folder(storage: &Storage, written: &Folder, output: &str, inputs: &[Named<'_>]) -> Result<()> {
    for (key, pattern) in inputs {
        if storage.reaches(pattern, written)? || storage.begins_below(pattern, written)? {
            let reason = format!(
                "`output` {} and `{key}` {} lie in one another: name an output of its own, so that no input is overwritten and no \
                 result is read as one",
                redact(output),
                redact(pattern)
            );
            return Err(PipelineError::Usage { reason });
        }
    }
    Ok(())
}

/// Refuses to write a file that is one of the files which a command reads, or that would be one of its documents next
/// time.
///
/// # Errors
/// [`PipelineError::Usage`] if the file is refused. It names both keys.
pub fn refuse_file(
    storage: &Storage,
    (key, output): Named<'_>,
    documents: &DocumentPlace,
    inputs: &[Named<'_>],
) -> Result<()> {
    let place = storage.folder(output)?;
    let refused = |other: &str, url: &str| {
        let reason = format!(
            "`{key}` {} would overwrite what `{other}` {} reads: name another file",
            redact(output),
            redact(url)
        );
        Err(PipelineError::Usage { reason })
    };
    for (other, url) in inputs {
        if place.contains(&storage.folder(url)?) {
            return refused(other, url);
        }
    }
    documents.check(storage)?;
    for documents in documents.patterns() {
        let is_next_document = is_document_name(output) && storage.reaches(documents, &place)?;
        if is_next_document || storage.begins_below(documents, &place)? {
            return refused("documents", documents);
        }
    }
    Ok(())
}
