//! Listing all files below a folder, whatever their names, and deleting them.

use std::path::Path as LocalPath;
use std::time::SystemTime;

use futures::TryStreamExt;
use nearprint_fault::{ErrorKind, Fault, Result};
use object_store::{ObjectMeta, ObjectStore};

use crate::error::request;
use crate::folder::Folder;
use crate::local;
use crate::runtime::blocking;

/// A file below a folder. Its name may be hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// The path below the folder.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The time of the last write, by the clock of the file's store.
    pub modified: SystemTime,
}

impl Folder {
    /// Returns the absolute path on a local disk, without `..` and with links resolved as far as the path exists.
    /// Returns `None` on S3.
    pub fn local_path(&self) -> Option<&LocalPath> {
        self.local.as_deref()
    }

    /// Lists all files below this folder, including hidden ones and those that interrupted writers left. Links are not
    /// followed. The list is empty if there is no such folder.
    ///
    /// # Errors
    /// A folder cannot be listed. A folder for which permission is missing is passed over if it cannot hold files of a
    /// store or an output.
    pub async fn inventory(&self) -> Result<Vec<FoundFile>> {
        if let Some(local) = self.local.clone() {
            return blocking("list", move || walk(&local)).await;
        }
        let fail = request("list", &self.url);
        let listed: Vec<ObjectMeta> =
            self.backend.store().await?.list(Some(&self.prefix)).try_collect().await.map_err(fail)?;
        let found = |meta: ObjectMeta| {
            let parts: Vec<String> =
                meta.location.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect();
            Some(FoundFile { name: parts.join("/"), bytes: meta.size, modified: meta.last_modified.into() })
        };
        Ok(listed.into_iter().filter_map(found).collect())
    }

    /// Deletes a file that [`inventory`](Self::inventory) found, if `may` still allows that. On local disks it also
    /// deletes the folders that become empty. It is no error if the file is already gone. A file that a writer still
    /// holds is not deleted.
    ///
    /// Invariant: on local disks the file is set aside before `may` is called, and put back if `may` refuses. So the
    /// process deletes nothing that it must not, however long it sleeps at any point. A request to an object store
    /// cannot be divided like that: there, `may` answers before the request is sent.
    ///
    /// # Errors
    /// The error of `may`, or one of the disk or the object store.
    pub async fn delete_found<E, F>(&self, name: String, may: impl FnOnce() -> F) -> std::result::Result<(), E>
    where
        E: From<Fault>,
        F: Future<Output = std::result::Result<(), E>>,
    {
        let Some(root) = &self.local else {
            may().await?;
            return match self.join(&name).delete().await {
                Err(error) if error.kind() == ErrorKind::InputMissing => Ok(()),
                done => done.map_err(E::from),
            };
        };
        let path = root.join(&name);
        if local::is_at_work(&path) {
            return Ok(());
        }
        let Some(aside) = local::Aside::of(&path).map_err(Fault::io(&path))? else {
            return Ok(());
        };
        match may().await {
            Ok(()) => aside.delete().map_err(Fault::io(&path))?,
            Err(error) => {
                aside.put_back().map_err(Fault::io(&path))?;
                return Err(error);
            }
        }
        path.parent().into_iter().for_each(|folder| local::remove_empty(folder, root));
        Ok(())
    }
}

/// Returns whether a folder cannot hold any file of a store or an output: it is hidden, or the one in which a file
/// system keeps what it found without a name.
fn is_of_others(root: &LocalPath, folder: &LocalPath) -> bool {
    let below = folder.strip_prefix(root).ok().and_then(|below| below.components().next());
    let first = below.and_then(|first| first.as_os_str().to_str());
    first.is_some_and(|first| first == "lost+found" || first.starts_with('.'))
}

fn walk(root: &LocalPath) -> Result<Vec<FoundFile>> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = open.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // The folder does not exist, or was removed after it was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied && is_of_others(root, &folder) => {
                continue;
            }
            Err(error) => return Err(Fault::io(folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(Fault::io(&folder))?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Fault::io(entry.path())(error)),
            };
            if metadata.is_dir() {
                open.push(entry.path());
            } else if let Some(name) = entry.path().strip_prefix(root).ok().and_then(LocalPath::to_str) {
                let modified = metadata.modified().map_err(Fault::io(entry.path()))?;
                found.push(FoundFile { name: name.to_owned(), bytes: metadata.len(), modified });
            }
        }
    }
    Ok(found)
}
