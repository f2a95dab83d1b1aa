//! Temporary folders. They are private and removed at the end. The folders of killed executions are removed when the
//! next one starts.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nearprint_fault::{Fault, Result};

use crate::local;
use crate::locked::locked;

/// The beginning of their names.
const PREFIX: &str = "nearprint-";
/// The number of characters in the rest of the name. Nobody else draws names that long by chance or with `mktemp`.
const NAME_CHARS: usize = 24;

/// The file that identifies a temporary folder. It is created first and deleted last.
const MARKER: &str = ".nearprint-temporary-folder";

/// A folder that only its owner may enter. It is removed with its whole content when dropped.
///
/// Invariants: while the folder is in use, this process holds a lock on it, so an unlocked folder belongs to a process
/// that died. The folder holds a [`MARKER`], written under the lock, that names the folder and its inode. A folder that
/// has files but no marker, or the marker of another folder, is not ours and is never removed.
///
/// ```
/// use nearprint_storage::TempFolder;
///
/// let temp = TempFolder::try_new(&std::env::temp_dir())?;
/// let path = temp.path().to_path_buf();
/// std::fs::write(path.join("spilled"), b"rows")?;
/// drop(temp);
/// assert!(!path.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TempFolder {
    own: OwnFolder,
    _lock: File,
}

/// A folder's path, and the identity of the folder that was created there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnFolder {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// The folders of this process.
#[derive(Debug)]
struct InUse {
    folders: Vec<OwnFolder>,
    /// Whether the process ends, so that nobody would remove another folder.
    is_ending: bool,
}

/// A folder is created under this lock, so that [`remove_temp_folders`] sees it or prevents it.
static IN_USE: Mutex<InUse> = Mutex::new(InUse { folders: Vec::new(), is_ending: false });

/// The number of times that a name is drawn, and that a folder is emptied while others still write to it.
const ATTEMPTS: usize = 100;

impl TempFolder {
    /// Checks that a folder can be created in `parent`, as far as permissions tell. Creates none.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if there is no such folder, or
    /// [`ErrorKind::Permission`](nearprint_fault::ErrorKind::Permission) if the permissions forbid it.
    pub fn refuse_forbidden(parent: &Path) -> Result<()> {
        local::refuse_missing(parent)?;
        local::refuse_forbidden(parent)
    }

    /// Creates a folder in `parent`.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the folder or its marker cannot be created, or if
    /// the process ends.
    pub fn try_new(parent: &Path) -> Result<Self> {
        let mut in_use = locked(&IN_USE);
        if in_use.is_ending {
            return Err(Fault::io(parent)(std::io::Error::new(ErrorKind::Interrupted, "the process ends")));
        }
        for _ in 0..ATTEMPTS {
            let path = parent.join(format!("{PREFIX}{}", drawn_name()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Fault::io(parent)(error)),
            }
            if let Some((own, lock)) = marked(&path).map_err(Fault::io(&path))? {
                in_use.folders.push(own.clone());
                return Ok(Self { own, _lock: lock });
            }
        }
        let none = std::io::Error::new(ErrorKind::AlreadyExists, "no name for a temporary folder is free");
        Err(Fault::io(parent)(none))
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.own.path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        self.own.remove();
        locked(&IN_USE).folders.retain(|own| *own != self.own);
    }
}

/// Locks and marks a folder that was just created. Returns `None` if somebody took it for a dead process's folder and
/// removed it first.
fn marked(path: &Path) -> std::io::Result<Option<(OwnFolder, File)>> {
    let gone = |error: std::io::Error| if error.kind() == ErrorKind::NotFound { Ok(None) } else { Err(error) };
    let folder = match File::open(path) {
        Ok(folder) => folder,
        Err(error) => return gone(error),
    };
    // On a file system without locks, nobody can lock a folder, so no folder is ever taken for dead.
    if let Err(error) = folder.lock() {
        tracing::debug!(%error, path = %path.display(), "no lock");
    }
    let own = OwnFolder::of(path, &folder.metadata()?);
    if !own.is_there() {
        return Ok(None);
    }
    match own.write_marker() {
        Ok(()) => Ok(Some((own, folder))),
        Err(error) => {
            own.remove();
            Err(error)
        }
    }
}

impl OwnFolder {
    fn of(path: &Path, metadata: &Metadata) -> Self {
        Self { path: path.to_path_buf(), device: metadata.dev(), inode: metadata.ino() }
    }

    /// Returns whether the path still leads to the same folder.
    fn is_there(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|there| Self::of(&self.path, &there) == *self)
    }

    fn marker(&self) -> PathBuf {
        self.path.join(MARKER)
    }

    /// Returns the content of the marker. It holds the name and the inode. The number of the device is left out,
    /// because it changes when the device is mounted again.
    fn marker_text(&self) -> String {
        // The folder was made under a name that was drawn.
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!(
            "nearprint made this folder for one command and removes it with all that is in it\n{name} {}\n",
            self.inode
        )
    }

    /// Writes the marker and syncs it, so that after a power failure it exists if anything written after it exists.
    fn write_marker(&self) -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.marker())?;
        file.write_all(self.marker_text().as_bytes())?;
        file.sync_all()
    }

    /// Returns the content of the marker. Returns `None` if there is no marker, or if it is not a regular file of this
    /// user.
    fn read_marker(&self) -> Option<String> {
        let no_follow = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = File::options().read(true).custom_flags(no_follow.bits().cast_signed()).open(self.marker()).ok()?;
        let is_own = |m: &Metadata| m.is_file() && m.uid() == rustix::process::geteuid().as_raw();
        file.metadata().ok().filter(is_own)?;
        let mut text = String::new();
        file.take(4096).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Returns whether the marker proves that nearprint created this folder. If the folder holds nothing else, a marker
    /// that is missing or only begun is proof enough.
    fn is_proven(&self) -> bool {
        let Some(said) = self.read_marker() else {
            return self.is_empty_but_for_marker();
        };
        let expected = self.marker_text();
        said == expected || (expected.starts_with(&said) && self.is_empty_but_for_marker())
    }

    fn is_empty_but_for_marker(&self) -> bool {
        let is_marker =
            |entry: std::io::Result<std::fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == MARKER);
        std::fs::read_dir(&self.path).is_ok_and(|mut entries| entries.all(is_marker))
    }

    /// Removes the folder with its whole content, while others may still be creating files in it.
    fn remove(&self) {
        for _ in 0..ATTEMPTS {
            if !self.is_there() {
                return;
            }
            match self.try_remove() {
                Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {}
                Err(error) => {
                    tracing::warn!(path = %self.path.display(), %error, "cannot remove a temporary folder");
                    return;
                }
                Ok(()) => return,
            }
        }
    }

    /// Removes the folder's content, then the marker, then the folder. The marker is last so that, if the removal is
    /// killed, the next execution still recognises the folder.
    fn try_remove(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() == MARKER {
                continue;
            }
            if entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())?;
            } else {
                std::fs::remove_file(entry.path())?;
            }
        }
        match std::fs::remove_file(self.marker()) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::remove_dir(&self.path)
    }
}

/// Removes the folders in `parent` that belong to dead processes of this user. A folder stays if it is one of the
/// `protected` places or contains one. Folders that cannot be removed are passed over.
pub fn remove_dead(parent: &Path, protected: &[PathBuf]) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    let protected: Vec<PathBuf> = protected.iter().map(|place| existing(place)).collect();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if rest.is_some_and(|rest| rest.len() == NAME_CHARS && rest.bytes().all(|b| ALPHABET.contains(&b))) {
            remove_if_dead(&entry.path(), &protected);
        }
    }
}

/// Returns a path whose links are resolved as far as it exists.
fn existing(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let found = absolute.ancestors().find_map(|above| above.canonicalize().ok().zip(absolute.strip_prefix(above).ok()));
    found.map_or(absolute.clone(), |(above, rest)| above.join(rest))
}

fn remove_if_dead(path: &Path, protected: &[PathBuf]) {
    // No link is followed: the path must lead to a folder of this user, and to the one that is locked here.
    let user = rustix::process::geteuid().as_raw();
    let is_private = |there: &Metadata| there.is_dir() && there.uid() == user && there.mode() & 0o077 == 0;
    let Ok(folder) = (match std::fs::symlink_metadata(path) {
        Ok(there) if is_private(&there) => File::open(path),
        _ => return,
    }) else {
        return;
    };
    if folder.try_lock().is_err() {
        return;
    }
    let Ok(opened) = folder.metadata() else {
        return;
    };
    let own = OwnFolder::of(path, &opened);
    let resolved = existing(path);
    if protected.iter().any(|place| place.starts_with(&resolved)) || !is_private(&opened) {
        return;
    }
    if own.is_there() && own.is_proven() {
        tracing::info!(path = %path.display(), "removing the temporary folder of a run that was killed");
        own.remove();
    }
}

/// Removes the remaining temporary folders of this process, in which no other can be created afterwards. This is for an exit
/// that does not wait for threads at work.
pub fn remove_temp_folders() {
    let mut in_use = locked(&IN_USE);
    in_use.is_ending = true;
    let left = std::mem::take(&mut in_use.folders);
    drop(in_use);
    for own in left {
        own.remove();
    }
}

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Draws a name. Nothing that is published depends on it.
fn drawn_name() -> String {
    use std::hash::{BuildHasher, Hasher};
    let drawn = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    let half = |drawn: u64| (0..NAME_CHARS / 2).map(move |i| char::from(ALPHABET[(drawn >> (5 * i) & 31) as usize]));
    half(drawn()).chain(half(drawn())).collect()
}
