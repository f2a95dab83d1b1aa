//! Input files that are not those that the runs read, and their refusal.

use nearprint_fault::{ErrorKind, Fault, Result, Words};

use super::inputs::NightInput;

/// The input files of nights that are gone or have changed.
#[derive(Debug, Default)]
pub(crate) struct LostInputs(Vec<Lost>);

/// What a user may do about lost inputs.
pub(crate) struct Remedies {
    /// About one file that is gone.
    pub(crate) gone: Words,
    /// About one file that has changed.
    pub(crate) changed: Words,
    /// About several files.
    pub(crate) several: Words,
}

#[derive(Debug)]
enum Lost {
    /// All files of a night are gone.
    Night {
        dt: String,
        n_files: usize,
    },
    File(NightInput),
}

impl LostInputs {
    /// Adds the lost inputs of a night, of which `n_found` others were found.
    pub(crate) fn add(&mut self, dt: &str, lost: Vec<NightInput>, n_found: usize) {
        let n_files = lost.len();
        if n_found == 0 && n_files > 1 && lost.iter().all(|input| matches!(input, NightInput::Gone { .. })) {
            self.0.push(Lost::Night { dt: dt.to_owned(), n_files });
        } else {
            self.0.extend(lost.into_iter().map(Lost::File));
        }
    }

    /// Refuses the lost inputs. It counts all of them, and names the first `n_listed` of each kind.
    ///
    /// # Errors
    /// [`ErrorKind::InputMissing`] if files are gone, or [`ErrorKind::BadData`] if files have changed and none is gone.
    pub(crate) fn refuse(self, n_listed: usize, remedies: Remedies) -> Result<()> {
        match self.0.as_slice() {
            [] => return Ok(()),
            [Lost::File(NightInput::Gone { url })] => {
                return Err(Fault::input_missing("input file", url, remedies.gone));
            }
            [Lost::File(NightInput::Changed { url, reason })] => {
                return Err(Fault::bad_data(url, reason.clone()).remedy(remedies.changed));
            }
            _ => {}
        }
        let (gone, changed): (Vec<Lost>, Vec<Lost>) = self.0.into_iter().partition(Lost::is_gone);
        let mut reasons = Vec::new();
        if !gone.is_empty() {
            reasons.push(format!("{} input files are gone: {}", n_files(&gone), listed(&gone, n_listed)));
        }
        if !changed.is_empty() {
            let (n, names) = (n_files(&changed), listed(&changed, n_listed));
            reasons.push(format!("{n} input files have changed since their nights were published: {names}"));
        }
        let kind = if gone.is_empty() { ErrorKind::BadData } else { ErrorKind::InputMissing };
        Err(Fault::new(kind, reasons.join("; ")).remedy(remedies.several))
    }
}

impl Lost {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Night { .. } | Self::File(NightInput::Gone { .. }))
    }

    fn n_files(&self) -> usize {
        match self {
            Self::Night { n_files, .. } => *n_files,
            Self::File(_) => 1,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Night { dt, n_files } => format!("all {n_files} of {dt}"),
            Self::File(NightInput::Gone { url } | NightInput::Changed { url, .. }) => url.clone(),
            Self::File(NightInput::Unchanged(file)) => file.url.clone(),
        }
    }
}

fn n_files(lost: &[Lost]) -> usize {
    lost.iter().map(Lost::n_files).sum()
}

fn listed(lost: &[Lost], n_listed: usize) -> String {
    let (first, more) = lost.split_at(n_listed.min(lost.len()));
    let names: Vec<String> = first.iter().map(Lost::name).collect();
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", n_files(more)) };
    names.join(", ") + &more
}
