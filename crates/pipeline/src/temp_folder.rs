//! Temporary folders: private, gone at the end, and those of killed runs gone at the next start.

use std::fs::{DirBuilder, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::{PipelineError, Result};

/// Their names begin so.
const PREFIX: &str = "nearprint-";
/// Characters of the rest of the name.
const NAME_CHARS: usize = 6;

/// A folder that only its owner may enter, removed with all that is in it when dropped.
///
/// Invariant: as long as it is in use the folder itself is locked, by this process. One that is not locked is of a process that died;
/// it may be removed by whoever holds the lock.
#[derive(Debug)]
pub(crate) struct TempFolder {
    path: PathBuf,
    _lock: File,
}

/// The folders of this process, for [`remove_temp_folders`].
static IN_USE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Times that a name is drawn, and that a folder is emptied while others still write to it.
const ATTEMPTS: usize = 100;

impl TempFolder {
    /// A new folder in `parent`.
    pub(crate) fn try_new(parent: &Path) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            let path = parent.join(format!("{PREFIX}{}", drawn_name()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(PipelineError::io(parent)(error)),
            }
            if let Some(lock) = locked(&path).map_err(PipelineError::io(&path))? {
                remember(&path);
                return Ok(Self { path, _lock: lock });
            }
        }
        let none = std::io::Error::new(ErrorKind::AlreadyExists, "no name for a temporary folder is free");
        Err(PipelineError::io(parent)(none))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        remove(&self.path);
        if let Ok(mut in_use) = IN_USE.lock() {
            in_use.retain(|path| *path != self.path);
        }
    }
}

/// Locks a folder that was just made; none where somebody who took it for a dead one's removed it first.
fn locked(path: &Path) -> std::io::Result<Option<File>> {
    let gone = |error: std::io::Error| if error.kind() == ErrorKind::NotFound { Ok(None) } else { Err(error) };
    let folder = match File::open(path) {
        Ok(folder) => folder,
        Err(error) => return gone(error),
    };
    // Where a file system has no locks, nobody gets one, and nothing is ever taken for dead.
    if let Err(error) = folder.lock() {
        tracing::debug!(%error, path = %path.display(), "no lock");
    }
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok(is_same(&there, &folder.metadata()?).then_some(folder)),
        Err(error) => gone(error),
    }
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Removes folders of dead processes of this user in `parent`. Nothing that cannot be removed is an error.
pub(crate) fn remove_dead(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if rest.is_some_and(|rest| rest.len() == NAME_CHARS && rest.bytes().all(|b| b.is_ascii_alphanumeric())) {
            remove_if_dead(&entry.path(), user);
        }
    }
}

fn remove_if_dead(path: &Path, user: u32) {
    // No link is followed: what is at the place must be a folder of this user, and the one that was locked.
    let is_own = |there: &Metadata| there.is_dir() && there.uid() == user && there.mode() & 0o077 == 0;
    let Ok(there) = std::fs::symlink_metadata(path) else {
        return;
    };
    let Ok(folder) = (if is_own(&there) { File::open(path) } else { return }) else {
        return;
    };
    if folder.try_lock().is_err() {
        return;
    }
    let unchanged = std::fs::symlink_metadata(path).is_ok_and(|now| is_own(&now))
        && folder.metadata().is_ok_and(|opened| is_same(&opened, &there));
    if unchanged {
        tracing::info!(path = %path.display(), "removing the temporary folder of a run that was killed");
        remove(path);
    }
}

/// Removes the temporary folders of this process that are still there: for an end that does not wait for threads at work.
pub fn remove_temp_folders() {
    let left = IN_USE.lock().map(|mut in_use| std::mem::take(&mut *in_use)).unwrap_or_default();
    for path in left {
        remove(&path);
    }
}

fn remember(path: &Path) {
    if let Ok(mut in_use) = IN_USE.lock() {
        in_use.push(path.to_path_buf());
    }
}

/// Others may still be creating files in it.
fn remove(path: &Path) {
    for _ in 0..ATTEMPTS {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "cannot remove a temporary folder");
                return;
            }
            _ => return,
        }
    }
}

/// Nothing published depends on it.
fn drawn_name() -> String {
    use std::hash::{BuildHasher, Hasher};
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let drawn = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (0..NAME_CHARS).map(|i| char::from(ALPHABET[(drawn >> (5 * i) & 31) as usize])).collect()
}
