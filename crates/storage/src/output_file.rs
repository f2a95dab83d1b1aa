//! A single file that a command writes: checked before the work, all of it or none of it after.

use std::fs::{self, File, Permissions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Result, StorageError};
use crate::folder::Folder;
use crate::storage::Storage;

/// A place on a local disk where a file may be written.
#[derive(Debug, Clone)]
pub struct LocalFile {
    path: PathBuf,
    folder: PathBuf,
}

impl LocalFile {
    /// Checks that the folder is there and can be written to. What stands at the place already must be a regular file, or a link to one or
    /// to nothing, and only `replace` lets it be replaced.
    ///
    /// # Errors
    /// [`StorageError::OutputExists`], or the disk's.
    pub fn try_new(path: &Path, replace: bool) -> Result<Self> {
        refuse(path, replace)?;
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        if !folder.is_dir() {
            let none = Error::new(ErrorKind::NotFound, "no such folder: create it, or name another place");
            return Err(StorageError::io(folder)(none));
        }
        let place = Self { path: path.to_path_buf(), folder };
        place.part()?;
        Ok(place)
    }

    /// Writes the file beside its place and renames it: a link at the place is replaced, not what it points to.
    ///
    /// # Errors
    /// The disk's; nothing has changed then.
    pub fn write(&self, content: &[u8]) -> Result<()> {
        let fail = |source| StorageError::Io { path: self.path.clone(), source };
        let mut part = self.part()?;
        part.write_all(content).and_then(|()| part.as_file().sync_all()).map_err(fail)?;
        part.persist(&self.path).map_err(|e| fail(e.error))?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(fail)
    }

    /// An empty file in the folder, which goes away again unless it is renamed.
    fn part(&self) -> Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        // Less what the umask takes away.
        builder.prefix(".nearprint-").permissions(Permissions::from_mode(0o666));
        builder.tempfile_in(&self.folder).map_err(StorageError::io(&self.folder))
    }
}

fn refuse(path: &Path, replace: bool) -> Result<()> {
    let exists = |reason: &str| {
        let (url, reason) = (path.display().to_string(), reason.to_owned());
        Err(StorageError::OutputExists { url, reason })
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StorageError::io(path)(error)),
        Ok(_) => {}
    }
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return exists("this is no regular file: name another place");
    }
    if replace { Ok(()) } else { exists(EXISTS) }
}

const EXISTS: &str = "the file exists: name another, or replace it with --replace";

/// The same on a local disk or S3.
#[derive(Debug, Clone)]
pub enum OutputFile {
    /// On a local disk.
    Local(LocalFile),
    /// On S3.
    Remote(Folder),
}

impl OutputFile {
    /// Checks that the place can be written to, and that nothing is there unless it may be replaced.
    ///
    /// # Errors
    /// [`StorageError::OutputExists`], or the place's.
    pub async fn try_new(storage: &Storage, url: &str, replace: bool) -> Result<Self> {
        let place = storage.folder(url)?;
        if !place.is_remote() {
            let path = url.strip_prefix("file://").unwrap_or(url);
            return LocalFile::try_new(Path::new(path), replace).map(Self::Local);
        }
        if !replace && place.find().await?.is_some() {
            return Err(StorageError::OutputExists { url: url.to_owned(), reason: EXISTS.to_owned() });
        }
        Ok(Self::Remote(place))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The place's; nothing has changed then.
    pub async fn write(&self, content: Vec<u8>) -> Result<()> {
        match self {
            Self::Local(file) => file.write(&content),
            Self::Remote(place) => place.put(content.into()).await,
        }
    }
}
