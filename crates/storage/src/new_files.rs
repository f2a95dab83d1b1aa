//! Files that only count together: if the work that writes them fails, they go again.

use std::path::{Path as LocalPath, PathBuf};

use bytes::Bytes;
use nearprint_fault::Result;

use crate::folder::Folder;
use crate::local::{self, MadeFiles};

/// The files that an execution writes before it publishes them. On local disks, those that it made go when this is dropped,
/// with the folders that are then empty, unless they are [kept](Self::keep). Files that were there before, or that others
/// have written again since, stay. On S3 nothing tells the two apart, and all stay.
///
/// ```
/// use nearprint_storage::{NewFiles, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let url = temp.path().join("out").display().to_string();
/// let output = Storage::default().folder(&url)?;
/// output.join("there.txt").put("before".into()).await?;
/// let mut new = NewFiles::default();
/// new.put(&output, "there.txt", "again".into()).await?;
/// new.put(&output, "tables/new.txt", "new".into()).await?;
/// drop(new);
/// assert_eq!(output.names().await?, ["there.txt"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct NewFiles {
    made: MadeFiles,
    /// The roots on local disks, and the folders below them into which files were to be written.
    folders: Vec<(PathBuf, PathBuf)>,
    is_kept: bool,
}

impl NewFiles {
    /// Writes a file below a root, and replaces an existing one.
    ///
    /// # Errors
    /// An error of the disk or the object store.
    pub async fn put(&mut self, root: &Folder, name: &str, content: Bytes) -> Result<()> {
        let place = root.join(name);
        match place.local_path() {
            Some(path) => {
                self.goes_to(root, path);
                local::make(path, content, self.made.clone()).await
            }
            None => place.put(content).await,
        }
    }

    /// Copies a local file to a name below a root, and replaces an existing file.
    ///
    /// # Errors
    /// The local file cannot be read, or the copy cannot be written.
    pub async fn put_file(&mut self, root: &Folder, name: &str, from: &LocalPath) -> Result<()> {
        let place = root.join(name);
        match place.local_path() {
            Some(path) => {
                self.goes_to(root, path);
                local::make_file(path, from, self.made.clone()).await
            }
            None => place.put_file(from).await,
        }
    }

    fn goes_to(&mut self, root: &Folder, path: &LocalPath) {
        let folder = root.local_path().zip(path.parent());
        self.folders.extend(folder.map(|(root, folder)| (root.to_path_buf(), folder.to_path_buf())));
    }

    /// Keeps the files, whatever happens from now on.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Deletes the files, also those that were kept.
    pub fn delete(mut self) {
        self.is_kept = false;
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        self.made.delete();
        for (root, folder) in &self.folders {
            local::remove_empty(folder, root);
        }
    }
}
