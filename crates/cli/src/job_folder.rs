//! The folder of a job file, at which the relative paths of the file begin. Those of the command line begin at the working
//! folder.

use std::path::{Path, PathBuf};

use crate::place::Given;

/// The folder of a job file, at which the relative paths of the file begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFolder {
    /// The whole path, or `None` if the folder is the working folder.
    elsewhere: Option<PathBuf>,
}

impl JobFolder {
    /// Returns the folder of a job file. Links are not followed: a link to a job file stands for a file in the folder of the
    /// link. A job file that is no regular file, such as a pipe, has the working folder, and so has one that is named by the
    /// number under which it is open, such as `/dev/stdin`.
    pub fn of(job_file: &Path) -> Self {
        let has_folder = job_file.is_file() && !is_number(job_file);
        if has_folder { Self::of_folder(job_file.parent()) } else { Self::default() }
    }

    fn of_folder(folder: Option<&Path>) -> Self {
        let Some(folder) = folder.filter(|folder| *folder != Path::new("")) else { return Self::default() };
        let is_here = matches!((folder.canonicalize(), Path::new(".").canonicalize()), (Ok(a), Ok(b)) if a == b);
        Self { elsewhere: (!is_here).then(|| std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf())) }
    }

    /// Returns the folder of a job file that is about to be written.
    pub fn for_new(job_file: &Path) -> Self {
        Self::of_folder(job_file.parent())
    }

    /// Returns the folder as the base of a storage, where an empty path stands for the working folder.
    pub fn base(&self) -> PathBuf {
        self.elsewhere.clone().unwrap_or_default()
    }

    /// Returns a path of the job file as a path that does not begin at the folder.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.elsewhere.as_ref().map_or_else(|| path.to_path_buf(), |folder| folder.join(path))
    }

    /// Returns a place of the job file as a command line names it.
    pub fn typed(&self, place: &str) -> String {
        if is_url(place) { place.to_owned() } else { self.path(Path::new(place)).to_string_lossy().into_owned() }
    }

    /// Returns a path of the command line as one that begins at the folder.
    pub fn given_path(&self, path: &Path) -> PathBuf {
        match &self.elsewhere {
            Some(_) => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()),
            None => path.to_path_buf(),
        }
    }

    /// Returns a place of the command line as one that begins at the folder.
    pub fn given(&self, place: &Given) -> String {
        self.given_text(place.as_typed())
    }

    /// Returns a place that a list of the command line names as one that begins at the folder.
    pub fn given_text(&self, place: &str) -> String {
        if is_url(place) { place.to_owned() } else { self.given_path(Path::new(place)).to_string_lossy().into_owned() }
    }

    /// Returns the whole path of a relative one of the job file, or `None` for a URL or a whole path.
    pub fn whole(&self, place: &str) -> Option<String> {
        let is_relative = !is_url(place) && Path::new(place).is_relative();
        let whole = || std::path::absolute(self.path(Path::new(place))).ok();
        is_relative.then(whole).flatten().map(|path| path.display().to_string())
    }

    /// Returns the whole path of what a place of the job file would name if it began at the working folder, as until release
    /// 0.2.0. `None` unless there is something, and nothing at the folder of the job file.
    pub fn former(&self, place: &str) -> Option<PathBuf> {
        self.elsewhere.as_ref()?;
        // A folder before the first wildcard or date may be there before its nights are.
        let fixed =
            place.find(['*', '?', '[', '{']).map_or(place, |at| place[..at].rsplit_once('/').map_or("", |(a, _)| a));
        let is_path = !is_url(place) && !fixed.is_empty() && Path::new(fixed).is_relative();
        let there = || std::path::absolute(fixed).ok().filter(|path| path.exists());
        if is_path && !self.path(Path::new(fixed)).exists() { there() } else { None }
    }
}

/// Returns whether a path is the number of a file that this process has open: nobody else can name it.
pub(crate) fn is_number(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn is_url(place: &str) -> bool {
    place.contains("://")
}
