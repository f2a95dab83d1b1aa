//! Relations between places, however their paths are written.

use std::os::unix::fs::MetadataExt;
use std::path::Path as LocalPath;

use nearprint_fault::Result;

use crate::backend::Backend;
use crate::folder::Folder;
use crate::listing::{WantedFiles, is_hidden};
use crate::storage::Storage;

impl Folder {
    /// Returns whether `other` is this place or lies below it. The comparison looks through links, `..`, and folders
    /// that are mounted at two places.
    pub fn contains(&self, other: &Self) -> bool {
        self.names_to(other).is_some()
    }

    /// Returns whether both are the same place.
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.names_to(other).is_some_and(|names| names.is_empty())
    }

    /// Returns whether one of the two contains the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// Returns the names that lead from here down to `other`, or `None` if `other` does not lie below.
    pub fn names_to(&self, other: &Self) -> Option<Vec<String>> {
        match (&self.backend, &other.backend) {
            (Backend::Disk, Backend::Disk) => local_names(self.local.as_deref()?, other.local.as_deref()?),
            (Backend::Bucket(a), Backend::Bucket(b)) if a.name() == b.name() => {
                Some(other.prefix.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect())
            }
            _ => None,
        }
    }
}

fn local_names(above: &LocalPath, below: &LocalPath) -> Option<Vec<String>> {
    let top = below.ancestors().find(|path| *path == above || is_same_folder(path, above))?;
    let rest = below.strip_prefix(top).ok()?;
    Some(rest.iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

fn is_same_folder(a: &LocalPath, b: &LocalPath) -> bool {
    let identity = |path: &LocalPath| std::fs::metadata(path).ok().map(|there| (there.dev(), there.ino()));
    identity(a).is_some_and(|a| Some(a) == identity(b))
}

impl Storage {
    /// Returns whether a listing of `pattern` would find something at `place` or below it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the pattern is malformed or its URL is not supported.
    pub fn reaches(&self, pattern: &str, place: &Folder) -> Result<bool> {
        let (base, glob) = self.place_of(pattern)?;
        let wanted = glob.map_or(WantedFiles::All, WantedFiles::Matching);
        let url = base.shown_names_to(place).map(|names| base.below(&names));
        let is_wanted = url.is_some_and(|url| wanted.has(&url) || wanted.may_be_below(&url));
        // A path with brackets may exist exactly as it is written.
        Ok(is_wanted || self.folder(pattern)?.shown_names_to(place).is_some())
    }

    /// Returns whether `place` is one of the places that a pattern names, or lies below one, hidden or not. A path without
    /// wildcards names itself.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the pattern is malformed or its URL is not supported.
    pub fn covers(&self, pattern: &str, place: &Folder) -> Result<bool> {
        let (base, glob) = self.place_of(pattern)?;
        let names = glob.and_then(|glob| Some((WantedFiles::Matching(glob), base.names_to(place)?)));
        let is_below_a_match = names.is_some_and(|(wanted, names)| {
            (1..=names.len()).any(|n| names.get(..n).is_some_and(|above| wanted.has(&base.below(above))))
        });
        // A path with brackets may exist exactly as it is written.
        Ok(is_below_a_match || self.folder(pattern)?.contains(place))
    }

    /// Returns whether the pattern begins at `place` or below it. This holds for the folder before the first wildcard,
    /// and for the path that equals the pattern.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the pattern is malformed or its URL is not supported.
    pub fn begins_below(&self, pattern: &str, place: &Folder) -> Result<bool> {
        Ok(place.contains(&self.place_of(pattern)?.0) || place.contains(&self.folder(pattern)?))
    }
}

impl Folder {
    /// Returns the names that lead from here down to `other`, or `None` if a listing would not get there because it
    /// passes over hidden names.
    fn shown_names_to(&self, other: &Self) -> Option<Vec<String>> {
        self.names_to(other).filter(|names| !names.iter().any(|name| is_hidden(name)))
    }
}
