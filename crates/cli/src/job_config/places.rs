//! Where the paths of a job file lead.

use std::path::{Path, PathBuf};

use nearprint_fault::Fault;
use nearprint_storage::{Roots, Storage};

use super::JobConfig;
use crate::exit_code::Failure;
use crate::job_folder::JobFolder;
use crate::place::{Dates, Given, refuse_stream, refuse_unexpanded};

/// The keys of folders in which all the others may lie.
const UNGUARDED: [&str; 3] = ["roots", "clone_roots", "resources.spill_dir"];

impl JobConfig {
    /// Returns the folder at which the relative paths of the job file begin.
    pub fn folder(&self) -> &JobFolder {
        &self.folder
    }

    /// Returns the keys that name places which a storage opens, each with its place. The storage takes a relative one from
    /// the folder of the job file. Its text stays as it is written, because it ends up in commits and manifests.
    pub(super) fn places(&self) -> Vec<(&'static str, &str)> {
        let one = [("documents", &self.documents), ("store", &self.store), ("output", &self.output)];
        let several = [("references", &self.references), ("roots", &self.roots), ("clone_roots", &self.clone_roots)];
        let one = one.into_iter().filter_map(|(key, place)| Some((key, place.as_deref()?)));
        let several =
            several.into_iter().flat_map(|(key, places)| places.iter().map(move |place| (key, place.as_str())));
        one.chain(several).collect()
    }

    /// Returns the keys that name files and folders of this machine, each with its path. They begin at the folder of the job
    /// file too.
    pub(super) fn files(&mut self) -> [(&'static str, &mut Option<PathBuf>); 5] {
        [
            ("user_dictionary", &mut self.user_dictionary),
            ("stop_words", &mut self.stop_words),
            ("idf", &mut self.idf),
            ("lock", &mut self.lock),
            ("resources.spill_dir", &mut self.resources.spill_dir),
        ]
    }

    /// Returns the keys of paths that would have to be expanded, and those of files that were written for a release which took
    /// relative paths from the working folder, each with the reason.
    pub(super) fn unusable_paths(&mut self) -> Vec<(&'static str, String)> {
        let folder = self.folder.clone();
        let files =
            self.files().map(|(key, file)| (key, file.as_ref().map(|file| file.to_string_lossy().into_owned())));
        let files: Vec<(&str, &str)> = files.iter().filter_map(|(key, file)| Some((*key, file.as_deref()?))).collect();
        let mut unusable = Vec::new();
        for (key, path) in self.places().into_iter().chain(files.iter().copied()) {
            let dates = if key == "documents" { Dates::Allowed } else { Dates::None };
            let refused = refuse_stream(path).and_then(|()| refuse_unexpanded(path, dates));
            unusable.extend(refused.err().map(|reason| (key, reason)));
        }
        for (key, path) in files {
            unusable.extend(folder.former(path).map(|there| (key, begins_elsewhere(path, &there, &folder))));
        }
        unusable
    }

    /// Returns the keys that name the places of the job's data and the files that it reads or locks, each with its place as a
    /// command line names it. No command writes a file of another kind there.
    pub fn guarded(&self) -> Vec<(&'static str, String)> {
        let places = self.places().into_iter().map(|(key, place)| (key, self.folder.typed(place)));
        let mut job = self.clone();
        let files = job.files().map(|(key, file)| Some((key, file.take()?.display().to_string())));
        let all = places.chain(files.into_iter().flatten());
        all.filter(|(key, _)| !UNGUARDED.contains(key)).collect()
    }

    /// Returns the job with the roots of the command line, if there are any, instead of its own.
    pub fn with_roots(mut self, roots: &[Given]) -> Self {
        if !roots.is_empty() {
            self.roots = roots.iter().map(|root| self.folder.given(root)).collect();
        }
        self
    }

    /// Returns the storage by which a command with this job accesses its places.
    pub fn storage(&self) -> Storage {
        Storage::new(self.s3()).below(self.folder.base()).within(self.roots())
    }

    /// Returns the places that a command with this job may access.
    fn roots(&self) -> Roots {
        Roots { roots: self.roots.clone(), clone_roots: self.clone_roots.clone() }
    }

    /// Returns the documents, which the command line may give instead.
    pub fn documents(&self, given: Option<&Given>) -> Result<String, Failure> {
        self.required("documents", given, self.documents.as_ref())
    }

    /// Returns the store, which the command line may give instead.
    pub fn store(&self, given: Option<&Given>) -> Result<String, Failure> {
        self.required("store", given, self.store.as_ref())
    }

    /// Returns the output, which the command line may give instead.
    pub fn output(&self, given: Option<&Given>) -> Result<String, Failure> {
        self.required("output", given, self.output.as_ref())
    }

    /// Returns a failure for each place that was written for a release which took relative paths from the working folder.
    pub fn misplaced(&self) -> Vec<Failure> {
        let places = self.places().into_iter().filter(|(key, _)| *key != "roots");
        places.filter_map(|(key, place)| self.own(key, place).err()).collect()
    }

    /// Describes a required key that is missing.
    pub fn missing(&self, key: &str) -> Failure {
        Failure::config(format!("no '{key}': set it in the job file or give --{key}"))
    }

    fn required(&self, key: &str, given: Option<&Given>, own: Option<&String>) -> Result<String, Failure> {
        match (given, own) {
            (Some(given), _) => Ok(self.folder.given(given)),
            (None, Some(own)) => self.own(key, own),
            (None, None) => Err(self.missing(key)),
        }
    }

    /// Returns the reference stores, which the command line may give instead.
    pub fn references(&self, given: &[Given]) -> Result<Vec<String>, Failure> {
        match given {
            [] => self.references.iter().map(|own| self.own("references", own)).collect(),
            given => Ok(given.iter().map(|given| self.folder.given(given)).collect()),
        }
    }

    /// Returns a place that the job file names. A place that was written for a release which took relative paths from the
    /// working folder is refused: a night there would be made without what lies at the former place.
    fn own(&self, key: &str, place: &str) -> Result<String, Failure> {
        match self.folder.former(place) {
            Some(there) => Err(Fault::config(key, begins_elsewhere(place, &there, &self.folder)).into()),
            None => Ok(place.to_owned()),
        }
    }
}

/// Says of a path that lies below the working folder, and not below that of the job file, what became of it.
fn begins_elsewhere(path: &str, there: &Path, folder: &JobFolder) -> String {
    let (own, there) = (folder.base(), there.display());
    let here = std::env::current_dir().map_or_else(|_| "there".to_owned(), |here| format!("to {}", here.display()));
    format!(
        "there is no {path} in {}, the folder of this job file, but there is {there}: up to release 0.2.0, relative paths \
         began at the current folder; move the job file {here}, or write the whole path if no night is published yet; if that \
         is another one, start the command in another folder",
        own.display()
    )
}
