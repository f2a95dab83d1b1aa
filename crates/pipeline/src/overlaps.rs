//! Checks that the output of a command lies apart from its input. Otherwise, the command would destroy its input, or
//! read its own results next time.

use nearprint_fault::{Fault, Result, key, words};
use nearprint_storage::{Folder, Storage, redact};

/// A key, and the place that it names.
pub type Named<'a> = (&'a str, &'a str);

/// Refuses a folder of results (`--output`, or a folder below it) that lies in an input, or in which an input lies.
pub(crate) fn refuse_folder(storage: &Storage, written: &Folder, output: &str, inputs: &[Named<'_>]) -> Result<()> {
    for (name, pattern) in inputs {
        if storage.reaches(pattern, written)? || storage.begins_below(pattern, written)? {
            let reason = words![
                key("output"),
                format!(" {} and ", redact(output)),
                key((*name).to_owned()),
                format!(
                    " {} lie in one another: name an output of its own, so that no input is overwritten and no result is read as one",
                    redact(pattern)
                )
            ];
            return Err(Fault::usage(reason));
        }
    }
    Ok(())
}
