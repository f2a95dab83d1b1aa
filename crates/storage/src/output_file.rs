//! A single file that a command writes. Its place is checked before the work starts. Afterwards the file is written
//! completely, or not at all.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nearprint_fault::{Fault, Result, Words, key, words};
use tempfile::NamedTempFile;

use crate::folder::Folder;
use crate::local;
use crate::storage::Storage;

/// The answer to an output that exists already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfExists {
    /// Refuse to write.
    #[default]
    Refuse,
    /// Replace it.
    Replace,
}

/// A place on a local disk where a file may be written.
#[derive(Debug, Clone)]
pub struct LocalFile {
    path: PathBuf,
    folder: PathBuf,
}

impl LocalFile {
    /// Checks that the folder exists and can be written to. If something stands at the place already, it must be a
    /// regular file, a link to one or a dangling link, and `if_exists` says whether it may be replaced.
    ///
    /// # Errors
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if the place is taken, or
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the folder is missing or cannot be
    /// written to.
    pub fn try_new(path: &Path, if_exists: IfExists) -> Result<Self> {
        let place = Self::there(path, if_exists)?;
        place.part()?;
        Ok(place)
    }

    /// Checks the same as [`try_new`](Self::try_new), as far as permissions tell. Nothing is written.
    ///
    /// # Errors
    /// The same as those of [`try_new`](Self::try_new).
    pub fn refuse_forbidden(path: &Path, if_exists: IfExists) -> Result<()> {
        local::refuse_forbidden(&Self::there(path, if_exists)?.folder)
    }

    /// Returns a place that is not taken, in a folder that is there.
    fn there(path: &Path, if_exists: IfExists) -> Result<Self> {
        refuse(path, if_exists)?;
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        local::refuse_missing(&folder)?;
        Ok(Self { path: path.to_path_buf(), folder })
    }

    /// Writes the file beside its place and renames it. If a link stands at the place, the link is replaced, not the
    /// file it points to.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo). If the write or the rename failed, nothing has
    /// changed; if only the sync of the folder failed, the file is in place.
    pub fn write(&self, content: &[u8]) -> Result<()> {
        let fail = |source| Fault::io(self.path.clone())(source);
        let mut part = self.part()?;
        part.write_all(content).and_then(|()| part.as_file().sync_all()).map_err(fail)?;
        part.persist(&self.path).map_err(|e| fail(e.error))?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(fail)
    }

    /// Creates an empty file in the folder. It is deleted again unless it is renamed.
    fn part(&self) -> Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        // The umask takes its bits away from this mode.
        builder.prefix(".nearprint-").permissions(Permissions::from_mode(0o666));
        builder.tempfile_in(&self.folder).map_err(Fault::io(&self.folder))
    }
}

fn refuse(path: &Path, if_exists: IfExists) -> Result<()> {
    let refused = |reason| Err(Fault::output_exists(path.display().to_string(), reason));
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Fault::io(path)(error)),
        Ok(_) => {}
    }
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return refused("this is no regular file: name another place".into());
    }
    match if_exists {
        IfExists::Replace => Ok(()),
        IfExists::Refuse => refused(exists()),
    }
}

fn exists() -> Words {
    words!["the file exists: name another, or replace it with ", key("replace")]
}

/// A place on a local disk or S3 where a file may be written.
///
/// ```
/// use nearprint_fault::ErrorKind;
/// use nearprint_storage::{IfExists, OutputFile, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let url = temp.path().join("pairs.csv").display().to_string();
/// let storage = Storage::default();
/// let file = OutputFile::try_new(&storage, &url, IfExists::Refuse).await?;
/// // Hours of work may lie between: the place is known to be free.
/// file.write(b"id_a,id_b\n".to_vec()).await?;
/// let taken = OutputFile::try_new(&storage, &url, IfExists::Refuse).await.unwrap_err();
/// assert_eq!(taken.kind(), ErrorKind::OutputExists);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub enum OutputFile {
    /// A place on a local disk.
    Local(LocalFile),
    /// A place on S3.
    Remote(Folder),
}

impl OutputFile {
    /// Checks that the place is free, or that `if_exists` allows to replace what is there. On a local disk it also checks
    /// that the place can be written to.
    ///
    /// # Errors
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if the place is taken; otherwise an error
    /// of the disk or the object store.
    pub async fn try_new(storage: &Storage, url: &str, if_exists: IfExists) -> Result<Self> {
        let place = storage.folder(url)?;
        if !place.is_remote() {
            let path = url.strip_prefix("file://").unwrap_or(url);
            return LocalFile::try_new(&storage.base().join(path), if_exists).map(Self::Local);
        }
        if if_exists == IfExists::Refuse && place.find().await?.is_some() {
            return Err(Fault::output_exists(url.to_owned(), exists()));
        }
        Ok(Self::Remote(place))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// An error of the disk or the object store. The place then holds what it held before, or the whole new file.
    pub async fn write(&self, content: Vec<u8>) -> Result<()> {
        match self {
            Self::Local(file) => file.write(&content),
            Self::Remote(place) => place.put(content.into()).await,
        }
    }
}
