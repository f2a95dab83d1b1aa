//! A file of any size that is written piece by piece, and that readers see whole or not at all.

use std::fs::File;
use std::path::Path;

use nearprint_fault::{Fault, Result, key, words};
use tempfile::NamedTempFile;

use crate::folder::Folder;
use crate::local::Part;
use crate::output_file::IfExists;

/// A file that has no name yet. If it is dropped, nothing of it remains.
///
/// ```
/// use std::io::Write;
///
/// use nearprint_fault::ErrorKind;
/// use nearprint_storage::{IfExists, NewFile, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let url = temp.path().join("out").display().to_string();
/// let place = Storage::default().folder(&url)?.join("pages.txt");
/// let new = NewFile::create(&place, temp.path()).await?;
/// new.handle()?.write_all(b"one page")?;
/// assert!(place.find().await?.is_none());
/// new.publish(IfExists::Refuse).await?;
/// assert_eq!(place.get().await?.as_deref(), Some(&b"one page"[..]));
///
/// let again = NewFile::create(&place, temp.path()).await?;
/// assert_eq!(again.publish(IfExists::Refuse).await.unwrap_err().kind(), ErrorKind::OutputExists);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct NewFile {
    place: Folder,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A scratch file beside the final place.
    Beside(Part),
    /// A file in the folder of temporary files, which is uploaded at the end.
    Temporary(NamedTempFile),
}

impl NewFile {
    /// Creates an empty file that is to stand at `place`. Folders that are missing on a local disk are made. A file for
    /// an object store grows in the local folder `temp`.
    ///
    /// # Errors
    /// An error of the disk.
    pub async fn create(place: &Folder, temp: &Path) -> Result<Self> {
        let content = match place.local_path() {
            Some(path) => Content::Beside(Part::create(path, 0).await?),
            None => Content::Temporary(NamedTempFile::new_in(temp).map_err(Fault::io(temp))?),
        };
        Ok(Self { place: place.clone(), content })
    }

    /// Returns a handle through which the content is written. All handles share one position.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn handle(&self) -> Result<File> {
        match &self.content {
            Content::Beside(part) => part.handle(),
            Content::Temporary(file) => file.as_file().try_clone().map_err(Fault::io(file.path())),
        }
    }

    /// Returns the number of bytes that were written so far.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn n_bytes(&self) -> Result<u64> {
        Ok(self.handle()?.metadata().map_err(Fault::io(self.place.url()))?.len())
    }

    /// Gives the file its name, after all its bytes are on the disk or in the object store. Returns its size in bytes.
    ///
    /// # Errors
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if `if_exists` does not allow to replace a
    /// file that is there; otherwise an error of the disk or the object store.
    pub async fn publish(self, if_exists: IfExists) -> Result<u64> {
        let n_bytes = self.n_bytes()?;
        let taken = || {
            let reason = words!["the file exists: name another place, or replace it with ", key("replace")];
            Fault::output_exists(self.place.url().to_owned(), reason)
        };
        let replaces = if_exists == IfExists::Replace;
        match self.content {
            Content::Beside(part) => {
                if !part.counting(n_bytes).keep(replaces).await? {
                    return Err(taken());
                }
            }
            Content::Temporary(file) => {
                if !replaces && self.place.find().await?.is_some() {
                    return Err(taken());
                }
                self.place.put_file(file.path()).await?;
            }
        }
        Ok(n_bytes)
    }
}
