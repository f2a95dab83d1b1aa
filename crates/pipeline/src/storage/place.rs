//! How places lie to each other, however they are written.

use std::os::unix::fs::MetadataExt;
use std::path::Path as LocalPath;

use super::listing::Wanted;
use super::{Backend, Folder, Storage};
use crate::error::Result;

impl Folder {
    /// Whether `other` is this place, or lies below it. Links, `..` and mounts of one folder at two places are seen through.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        self.names_to(other).is_some()
    }

    /// Whether one of the two contains the other.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// The names that lead from here down to `other`; none where it does not lie below.
    fn names_to(&self, other: &Self) -> Option<Vec<String>> {
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
    /// Whether a listing of `pattern` would come upon what lies at `place` or below it.
    pub(crate) fn reaches(&self, pattern: &str, place: &Folder) -> Result<bool> {
        let (base, glob) = self.place_of(pattern)?;
        let Some(names) = base.names_to(place).filter(|names| !names.iter().any(|name| name.starts_with(['_', '.'])))
        else {
            return Ok(false);
        };
        let url = base.below(&names);
        let wanted = glob.map_or(Wanted::All, Wanted::Matching);
        Ok(wanted.has(&url) || wanted.may_be_below(&url))
    }

    /// The place before the first wildcard; the whole where there is none.
    pub(crate) fn fixed_part(&self, pattern: &str) -> Result<Folder> {
        Ok(self.place_of(pattern)?.0)
    }
}
