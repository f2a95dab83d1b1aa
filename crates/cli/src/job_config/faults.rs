//! Job files as they are read, and all that is wrong with one.

use std::path::Path;
use std::string::FromUtf8Error;

use nearprint_documents::MAX_REPEATED_IDS;
use nearprint_fault::Fault;
use nearprint_night::Breakers;
use nearprint_pipeline::StubRules;
use nearprint_profile::HtmlText;
use toml::Table;

use super::JobConfig;
use super::input::keep_keys;
use super::profile::content_of;
use super::schema::schema;
use crate::exit_code::{CONFIG, Failure};
use crate::finding::{Finding, parsed};
use crate::job_folder::JobFolder;
use crate::job_keys::{self, line_and_column};
use crate::remedy::Remedy;

impl JobConfig {
    /// Reads a job file. Its relative paths are taken from its folder.
    ///
    /// # Errors
    /// The file cannot be read, or has faults. The failure lists all of them.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let (job, mut faults) = Self::read_with_faults(path)?;
        if faults.is_empty() {
            return Ok(job);
        }
        if !faults.iter().any(|fault| fault.is_of_syntax) {
            faults.extend(job.mended().1.iter().filter_map(|failure| job.fault(failure)));
            faults.sort_by_key(Finding::place);
        }
        Err(Failure::of_findings(path, faults))
    }

    /// Reads a job file and returns what can be read of it, together with its faults, in order. A key with a fault has its
    /// default.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_with_faults(path: &Path) -> Result<(Self, Vec<Finding>), Failure> {
        let text =
            String::from_utf8(std::fs::read(path).map_err(|e| unread(path, &e))?).map_err(|e| not_text(path, &e))?;
        let (mut job, mut faults) = parsed::<Self>(&text, schema());
        job.path = Some(path.to_path_buf());
        job.folder = JobFolder::of(path);
        if faults.iter().all(|fault| !fault.is_of_syntax) {
            let unusable = job.unusable_paths().into_iter();
            faults.extend(unusable.map(|(key, reason)| Finding::of(&text, None, Fault::config(key, reason))));
        }
        let folder = job.folder.clone();
        for (_, file) in job.files() {
            *file = file.take().map(|file| folder.path(&file));
        }
        faults.sort_by_key(Finding::place);
        job.text = text;
        Ok((job, faults))
    }

    /// Returns a fault as one of the job file. It is about its own key or, if the file has no such key, about `key`.
    pub fn finding(&self, key: Option<&str>, fault: Fault) -> Finding {
        Finding::of(&self.text, key, fault)
    }

    /// Returns the failure as a fault of the job file, if it is about a value there.
    fn fault(&self, failure: &Failure) -> Option<Finding> {
        let is_of_file = failure.code == CONFIG && failure.fault.place().file.is_none();
        is_of_file.then(|| self.finding(None, failure.fault.clone())).filter(|fault| fault.line().is_some())
    }

    /// Returns a failure about a value of the job file with the place of its key in the file, and with all other faults of
    /// the file. Other failures stay as they are, such as those about a file or a flag.
    pub fn located(&self, failure: Failure) -> Failure {
        let (Some(path), Some(fault)) = (&self.path, self.fault(&failure)) else { return failure };
        let mut faults: Vec<Finding> = self.mended().1.iter().filter_map(|failure| self.fault(failure)).collect();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
        faults.sort_by_key(Finding::place);
        Failure::of_findings(path, faults)
    }

    /// Returns the job with defaults in place of the values that are wrong for their meaning, and the failures that these
    /// values cause.
    pub fn mended(&self) -> (Self, Vec<Failure>) {
        let (mut job, mut failures) = (self.clone(), Vec::new());
        for key in self.keep.iter().flatten() {
            if let Err(failure) = keep_keys(std::slice::from_ref(key)) {
                failures.push(failure);
                job.keep.iter_mut().for_each(|keys| keys.retain(|other| other != key));
            }
        }
        if let Err(failure) = job.keep_order() {
            failures.push(failure);
            job.keep = None;
        }
        if let Err(failure) = job.checked_html_text() {
            failures.push(failure);
            job.html_text = HtmlText::Main;
        }
        if let Err(failure) = job.input() {
            failures.push(failure);
            (job.require_marker, job.max_repeated_ids) = (None, MAX_REPEATED_IDS);
        }
        if let Err(failure) = job.time_zone() {
            failures.push(failure);
            job.time_zone = None;
        }
        for (key, file) in
            [("user_dictionary", &mut job.user_dictionary), ("stop_words", &mut job.stop_words), ("idf", &mut job.idf)]
        {
            if let Err(failure) = content_of(key, file.as_deref()) {
                failures.push(failure);
                *file = None;
            }
        }
        let mut is_profile = true;
        while let Err(failure) = job.profile_config() {
            is_profile = false;
            let is_left = job.drop_section(&failure);
            failures.push(failure);
            if !is_left {
                break;
            }
        }
        // What is left of a profile may not go with its files.
        if let Err(failure) = job.analyzed() {
            if is_profile {
                failures.push(failure);
            }
            (job.tokenize, job.sketch) = (None, None);
            (job.user_dictionary, job.stop_words, job.idf) = (None, None, None);
        }
        if let Err(fault) = self.stubs.validate() {
            failures.push(Failure::from(fault));
            job.stubs = StubRules::default();
        }
        let unusable = self.unusable_watch_files().into_iter();
        failures.extend(unusable.map(|(watched, reason)| Failure::from(Fault::config(watched.key(), reason))));
        failures.extend(self.breakers.faults().into_iter().map(Failure::from));
        if !self.breakers.faults().is_empty() {
            job.breakers = Breakers::default();
        }
        (job, failures)
    }

    /// Takes the section out that a failure of the profile is about, or all of them if that is none. Returns `false` if
    /// nothing was left to take out.
    fn drop_section(&mut self, failure: &Failure) -> bool {
        let path = failure.fault.of_key().unwrap_or_default();
        let key = path.rsplit('.').next().unwrap_or(path).to_owned();
        let has_bits = self.bits.is_some();
        let mut sections = self.sections_mut();
        let is_meant = |name: &str, section: &Option<Table>| {
            section.as_ref().is_some_and(|table| path.starts_with(name) || table.contains_key(&key))
        };
        if let Some((_, section)) = sections.iter_mut().find(|(name, section)| is_meant(name, section)) {
            **section = None;
            return true;
        }
        let was_left = sections.iter().any(|(_, section)| section.is_some()) || has_bits;
        sections.into_iter().for_each(|(_, section)| *section = None);
        self.bits = None;
        was_left
    }
}

/// Describes a job file that is not UTF-8, by its first byte that is not.
fn not_text(path: &Path, error: &FromUtf8Error) -> Failure {
    let (valid, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
    let valid = String::from_utf8_lossy(valid);
    let (line, column) = line_and_column(&valid, valid.len());
    Failure::new(
        CONFIG,
        format!("job file {}: line {line}, column {column}: not UTF-8: save it as UTF-8", path.display()),
    )
    .at(path, Some(line))
}

/// Describes a job file that cannot be read. For one that is missing, the one that was meant is named, or the command that
/// writes one where there is none.
fn unread(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::reading(&format!("job file {}", path.display()), error).at(path, None);
    let beside = match error.kind() {
        std::io::ErrorKind::NotFound => names_beside(path),
        _ => None,
    };
    let Some(beside) = beside else { return failure };
    let typed = path.to_string_lossy().into_owned();
    match meant(path, &beside) {
        Some((name, is_alike)) => {
            let meant = path.with_file_name(name).to_string_lossy().into_owned();
            let failure = failure.with(|fault| fault.remedy(format!("did you mean {meant}?")));
            // Another job does other work.
            if is_alike { failure.mended_by(Remedy::Instead(typed, meant)) } else { failure }
        }
        None if beside.is_empty() => {
            failure.mended_by(Remedy::Command(vec!["config".to_owned(), "init".to_owned(), typed]))
        }
        None => failure,
    }
}

/// The usual name of a job file.
const USUAL_NAME: &str = "job.toml";

/// Returns the TOML files in the folder of a file, or `None` if there is no such folder.
fn names_beside(path: &Path) -> Option<Vec<String>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = found.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    Some(names)
}

/// Returns the job file that was meant: the one with a name like that of `path`, or else the one with the usual name; and
/// whether the names are alike.
fn meant<'a>(path: &Path, beside: &'a [String]) -> Option<(&'a String, bool)> {
    let stem = path.file_stem()?.to_str()?;
    let stems = beside.iter().filter_map(|name| name.strip_suffix(".toml"));
    let near = job_keys::nearest(stem, stems).map(|stem| format!("{stem}.toml"));
    let name = near.as_deref().unwrap_or(USUAL_NAME);
    beside.iter().find(|beside| *beside == name).map(|found| (found, near.is_some()))
}
