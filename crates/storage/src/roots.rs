//! The places that a job may access.

use crate::error::{Result, StorageError};
use crate::folder::Folder;
use crate::redact::redact;
use crate::storage::Storage;

/// The folders in which everything that a job names must lie. If the list is empty, a job may name any place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots(pub Vec<String>);

impl Roots {
    /// Refuses a place that is neither one of the roots nor below one. Links and `..` are resolved first. For a glob,
    /// only the folder before the first wildcard is checked: wildcards match existing names, never `..`.
    ///
    /// # Errors
    /// [`StorageError::Usage`], with `key` in its message, if the place is outside; an error if the place or a root
    /// cannot be opened.
    pub fn refuse_outside(&self, storage: &Storage, key: &str, url: &str) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { self.refuse(storage, key, url, &storage.base_of(url)?) }
    }

    /// Refuses an input file that lies outside the roots, for example because a link leads there.
    ///
    /// # Errors
    /// [`StorageError::Usage`] if the file is outside; an error if the file's path or a root cannot be resolved.
    pub fn refuse_file_outside(&self, storage: &Storage, url: &str) -> Result<()> {
        if self.0.is_empty() || url.starts_with("s3://") {
            return Ok(());
        }
        self.refuse(storage, "input", url, &storage.folder(url)?)
    }

    fn refuse(&self, storage: &Storage, key: &str, url: &str, place: &Folder) -> Result<()> {
        for root in &self.0 {
            if storage.folder(root)?.contains(place) {
                return Ok(());
            }
        }
        let reason = format!("{key} {} lies outside of `root` {}", redact(url), self.0.join(", "));
        Err(StorageError::Usage { reason })
    }
}
