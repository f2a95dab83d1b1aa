//! The places that a job may touch.

use crate::error::{Result, StorageError};
use crate::folder::Folder;
use crate::redact::redact;
use crate::storage::Storage;

/// Where everything that a job names must lie; anywhere where none is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots(pub Vec<String>);

impl Roots {
    /// Refuses a place that is not one of the roots or below it, links and `..` resolved. Of a glob, what comes before its first
    /// wildcard is looked at: wildcards only match names that are there, never `..`.
    ///
    /// # Errors
    /// [`StorageError::Usage`] naming `key`.
    pub fn refuse_outside(&self, storage: &Storage, key: &str, url: &str) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { self.refuse(storage, key, url, &storage.base_of(url)?) }
    }

    /// Refuses a file that a link leads out of the roots.
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
        let reason = format!("{key} {} lies outside of --root {}", redact(url), self.0.join(", --root "));
        Err(StorageError::Usage { reason })
    }
}
