//! Everything that lies below a folder, whatever its name, and deleting it.

use std::path::Path as LocalPath;
use std::time::SystemTime;

use futures::TryStreamExt;
use object_store::{ObjectMeta, ObjectStore};

use crate::error::{ErrorKind, Result, StorageError};
use crate::folder::Folder;
use crate::local;
use crate::runtime::blocking;

/// A file below a folder, whatever its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Path below the folder.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// When it was last written, by the clock of its store.
    pub modified: SystemTime,
}

impl Folder {
    /// The absolute path on a local disk, without `..` and links as far as it exists; none on S3.
    pub fn local_path(&self) -> Option<&LocalPath> {
        self.local.as_deref()
    }

    /// All files below, also hidden ones and what interrupted writers left; none where there is no such folder. Links are not
    /// followed.
    pub async fn inventory(&self) -> Result<Vec<FoundFile>> {
        if let Some(local) = self.local.clone() {
            return blocking("list", move || walk(&local)).await;
        }
        let fail = StorageError::store("list", &self.url);
        let listed: Vec<ObjectMeta> =
            self.backend.store().await?.list(Some(&self.prefix)).try_collect().await.map_err(fail)?;
        let found = |meta: ObjectMeta| {
            let parts: Vec<String> =
                meta.location.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect();
            Some(FoundFile { name: parts.join("/"), bytes: meta.size, modified: meta.last_modified.into() })
        };
        Ok(listed.into_iter().filter_map(found).collect())
    }

    /// Deletes a file that [`inventory`](Self::inventory) found, if it `may` still be deleted, and on local disks the folders that it leaves
    /// empty. One that is gone already is no error; one that a writer still holds stays.
    ///
    /// Invariant: on local disks the file is set aside before `may` is asked, and put back where the answer is no. However long the
    /// process sleeps, and whenever, it deletes nothing that it must not. A request to an object store has no such two steps: there the
    /// answer is as old as the request.
    pub async fn delete_found<E, F>(&self, name: String, may: impl FnOnce() -> F) -> std::result::Result<(), E>
    where
        E: From<StorageError>,
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
        let Some(aside) = local::Aside::of(&path).map_err(StorageError::io(&path))? else {
            return Ok(());
        };
        match may().await {
            Ok(()) => aside.delete().map_err(StorageError::io(&path))?,
            Err(error) => {
                aside.put_back().map_err(StorageError::io(&path))?;
                return Err(error);
            }
        }
        // A folder that is not empty stays: that is no error.
        path.ancestors().skip(1).take_while(|a| *a != root && std::fs::remove_dir(a).is_ok()).for_each(drop);
        Ok(())
    }
}

/// Whether no file of a store or an output lies below a folder.
fn is_of_others(root: &LocalPath, folder: &LocalPath) -> bool {
    const OWN: [&str; 5] = ["_commits", "_probe", "pages", "runs", "segments"];
    let below = folder.strip_prefix(root).ok().and_then(|below| below.components().next());
    let first = below.and_then(|first| first.as_os_str().to_str());
    first.is_some_and(|first| !OWN.contains(&first) && !first.starts_with("dt="))
}

fn walk(root: &LocalPath) -> Result<Vec<FoundFile>> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = open.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Not there, or gone since it was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            // Such as lost+found at the root of a disk.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied && is_of_others(root, &folder) => {
                continue;
            }
            Err(error) => return Err(StorageError::io(folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(StorageError::io(&folder))?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(StorageError::io(entry.path())(error)),
            };
            if metadata.is_dir() {
                open.push(entry.path());
            } else if let Some(name) = entry.path().strip_prefix(root).ok().and_then(LocalPath::to_str) {
                let modified = metadata.modified().map_err(StorageError::io(entry.path()))?;
                found.push(FoundFile { name: name.to_owned(), bytes: metadata.len(), modified });
            }
        }
    }
    Ok(found)
}
